//! The client's commit ledger against the database: what was acknowledged must be there.
//!
//! Every acknowledged order exists; and the order numbers advanced by the acknowledged orders plus at most those whose
//! outcome the client never learned. The first finds lost commits, the second finds commits that were never acknowledged. An
//! order number that was acknowledged twice is a third case: the database went back to a state before the first order, and
//! then used its number again.

use std::collections::{BTreeMap, BTreeSet};

use underlay_core::CheckOutcome;
use underlay_workload::tpcc::Ledger;
use underlay_workload::tpcc::ledger::DistrictLedger;

use super::{CheckResult, TableNames};
use crate::connection::{Cells, Connection, RequestError};

/// D_NEXT_O_ID by (warehouse, district).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderNumbers(BTreeMap<(u32, u32), u32>);

impl OrderNumbers {
    /// The sum over all districts: its difference over a run is the number of new orders that were
    /// committed, as the database counts.
    pub fn sum(&self) -> u64 {
        self.0.values().map(|next| u64::from(*next)).sum()
    }
}

const TITLE: &str = "every order acknowledged to clients exists, and no others";

/// Reads D_NEXT_O_ID of all districts.
pub(super) async fn order_numbers<C: Connection>(
    connection: &mut C,
    tables: &TableNames,
) -> Result<OrderNumbers, RequestError> {
    let sql = tables.insert_into("SELECT d_w_id, d_id, d_next_o_id FROM {district}");
    let rows = connection.read_all(&sql).await?;
    let numbers = rows.iter().map(|row| Ok(((number(row, 0)?, number(row, 1)?), number(row, 2)?)));
    numbers.collect::<Result<_, _>>().map(OrderNumbers)
}

/// The whole number in a column. Other tools' columns may have decimal places.
fn number(row: &Cells, column: usize) -> Result<u32, RequestError> {
    let cell = row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    let (whole, fraction) = cell.split_once('.').unwrap_or((cell, ""));
    let number = whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'));
    number
        .ok_or_else(|| RequestError::unexpected("a number of an order or a district that is none"))
}

/// Checks the ledger, with the order numbers from before the orders in it.
pub(super) async fn check<C: Connection>(
    connection: &mut C,
    tables: &TableNames,
    ledger: &Ledger,
    before: &OrderNumbers,
) -> CheckResult {
    let outcome = match examine(connection, tables, ledger, before).await {
        Ok(outcome) => outcome,
        Err(error) => CheckOutcome::Failed { error: error.message().to_string() },
    };
    CheckResult { id: "ledger", title: TITLE, outcome }
}

async fn examine<C: Connection>(
    connection: &mut C,
    tables: &TableNames,
    ledger: &Ledger,
    before: &OrderNumbers,
) -> Result<CheckOutcome, RequestError> {
    let (lost, example) = lost_orders(connection, tables, ledger).await?;
    if lost > 0 {
        return Ok(CheckOutcome::Violated { rows: lost, example: format!("lost: {example}") });
    }
    Ok(compare(before, &order_numbers(connection, tables).await?, ledger))
}

/// Acknowledged orders that do not exist: how many, and one of them. What was acknowledged are few ranges of numbers per
/// district; each is counted, and looked at only if some are missing.
async fn lost_orders<C: Connection>(
    connection: &mut C,
    tables: &TableNames,
    ledger: &Ledger,
) -> Result<(u64, String), RequestError> {
    let (mut lost, mut example) = (0, String::new());
    for (key, kept) in ledger.districts() {
        for range in kept.ranges() {
            let (first, last) = (*range.start(), *range.end());
            let of_range = tables.insert_into(&format!(
                "FROM {{orders}} WHERE o_w_id = {} AND o_d_id = {} AND o_id BETWEEN {first} AND {last}",
                key.warehouse, key.district
            ));
            let count = format!("SELECT count(DISTINCT o_id) {of_range}");
            let found = connection.read_all(&count).await?;
            let found = found.first().map_or(Ok(0), |row| number(row, 0))?;
            let wanted = last - first + 1;
            if found == wanted {
                continue;
            }
            lost += u64::from(wanted - found);
            if example.is_empty() {
                let there = connection.read_all(&format!("SELECT o_id {of_range}")).await?;
                let there = there.iter().map(|row| number(row, 0));
                let there = there.collect::<Result<BTreeSet<u32>, _>>()?;
                let missing = (first..=last).find(|order| !there.contains(order));
                example = format!(
                    "warehouse {} district {} order {}",
                    key.warehouse,
                    key.district,
                    missing.unwrap_or(first)
                );
            }
        }
    }
    Ok((lost, example))
}

/// Whether the order numbers advanced by what the ledger knows.
fn compare(before: &OrderNumbers, after: &OrderNumbers, ledger: &Ledger) -> CheckOutcome {
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
