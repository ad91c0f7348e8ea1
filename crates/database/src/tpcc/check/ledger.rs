//! The client's commit ledger against order numbers.

use std::collections::BTreeMap;

use underlay_core::CheckOutcome;
use underlay_workload::tpcc::Ledger;
use underlay_workload::tpcc::ledger::DistrictLedger;

use super::CheckResult;

/// D_NEXT_O_ID by (warehouse, district).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderNumbers(BTreeMap<(u32, u32), u32>);

impl OrderNumbers {
    /// From ((warehouse, district), number).
    pub(crate) fn of(numbers: BTreeMap<(u32, u32), u32>) -> OrderNumbers {
        OrderNumbers(numbers)
    }

    /// The sum over all districts: its difference over a run is the number of new orders that were
    /// committed, as the database counts.
    pub fn sum(&self) -> u64 {
        self.0.values().map(|next| u64::from(*next)).sum()
    }
}

const TITLE: &str = "every order acknowledged to clients exists, and no others";

/// The ledger's check with an outcome.
pub(crate) fn ledger_result(outcome: CheckOutcome) -> CheckResult {
    CheckResult { id: "ledger", title: TITLE, outcome }
}

/// Whether the order numbers advanced by what the ledger knows.
pub(crate) fn compare(
    before: &OrderNumbers,
    after: &OrderNumbers,
    ledger: &Ledger,
) -> CheckOutcome {
    let wrong: Vec<String> = after
        .0
        .iter()
        .filter_map(|(district, next)| {
            let first = before.0.get(district).copied().unwrap_or(*next);
            disagreement(*district, first, *next, ledger)
        })
        .collect();
    match wrong.first() {
        None => CheckOutcome::Ok,
        Some(example) => {
            CheckOutcome::Violated { rows: wrong.len() as u64, example: example.clone() }
        }
    }
}

/// What is wrong with one district, whose order numbers went from `first` to `next`.
fn disagreement(
    (warehouse, district): (u32, u32),
    first: u32,
    next: u32,
    ledger: &Ledger,
) -> Option<String> {
    let advanced = i64::from(next) - i64::from(first);
    let kept = ledger.district(warehouse, district);
    let count = |of: fn(&DistrictLedger) -> u64| kept.map_or(0, |kept| of(kept).cast_signed());
    let known = count(DistrictLedger::acknowledged_count);
    let unknown = count(DistrictLedger::unknown_count);
    let repeated = count(DistrictLedger::duplicate_count);
    if repeated == 0 && (known..=known + unknown).contains(&advanced) {
        return None;
    }
    Some(format!(
        "warehouse {warehouse} district {district}: numbers advanced by {advanced}, {known} acknowledged, \
         {repeated} of them more than once, {unknown} unknown"
    ))
}
