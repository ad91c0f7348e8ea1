//! The client's commit ledger against the database: what was acknowledged must be there.
//!
//! Two statements per district: every acknowledged order exists; and the order numbers advanced by the
//! acknowledged orders plus at most those whose outcome the client never learned. The first catches lost
//! commits, the second commits that nobody was told of. An order number that was acknowledged twice is a
//! third: the database went back to a state before the first, whose number it then gave again.

use std::collections::BTreeMap;
use tokio_postgres::{Client, Error};
use underlay_workload::tpcc::Ledger;
use underlay_workload::tpcc::ledger::DistrictLedger;

use super::{CheckOutcome, CheckResult, TableNames};
use crate::error::{CommitState, SessionError};

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

/// Reads D_NEXT_O_ID of all districts.
pub async fn order_numbers(
    client: &Client,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    read_order_numbers(client, tables)
        .await
        .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))
}

async fn read_order_numbers(client: &Client, tables: &TableNames) -> Result<OrderNumbers, Error> {
    let sql = tables.insert_into("SELECT d_w_id, d_id, d_next_o_id FROM {district}");
    client
        .query(&sql, &[])
        .await?
        .iter()
        .map(|row| {
            let number = |column: usize| row.try_get::<_, i32>(column).map(i32::cast_unsigned);
            Ok(((number(0)?, number(1)?), number(2)?))
        })
        .collect::<Result<_, _>>()
        .map(OrderNumbers)
}

const TITLE: &str = "every order that a client was told is committed exists, and no others";

pub(super) async fn check(
    client: &Client,
    tables: &TableNames,
    ledger: &Ledger,
    before: &OrderNumbers,
) -> CheckResult {
    let outcome = match examine(client, tables, ledger, before).await {
        Ok(outcome) => outcome,
        Err(error) => CheckOutcome::Failed { error: super::describe(&error) },
    };
    CheckResult { id: "ledger", title: TITLE, outcome }
}

async fn examine(
    client: &Client,
    tables: &TableNames,
    ledger: &Ledger,
    before: &OrderNumbers,
) -> Result<CheckOutcome, Error> {
    let (lost, example) = lost_orders(client, tables, ledger).await?;
    if lost > 0 {
        return Ok(CheckOutcome::Violated { rows: lost, example: format!("lost: {example}") });
    }
    let after = read_order_numbers(client, tables).await?;
    let wrong: Vec<String> = after
        .0
        .iter()
        .filter_map(|(district, next)| {
            let first = before.0.get(district).copied().unwrap_or(*next);
            disagreement(*district, first, *next, ledger)
        })
        .collect();
    Ok(match wrong.first() {
        None => CheckOutcome::Ok,
        Some(example) => {
            CheckOutcome::Violated { rows: wrong.len() as u64, example: example.clone() }
        }
    })
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

/// Acknowledged orders that do not exist: how many, and one of them.
async fn lost_orders(
    client: &Client,
    tables: &TableNames,
    ledger: &Ledger,
) -> Result<(u64, String), Error> {
    let sql = tables.insert_into(
        "SELECT count(*), min(format('warehouse %s district %s order %s', w, d, o))
           FROM (SELECT w, d, generate_series(first, last) AS o
                   FROM unnest($1::int[], $2::int[], $3::int[], $4::int[]) AS r (w, d, first, last)) AS known
          WHERE NOT EXISTS (SELECT 1 FROM {orders} WHERE o_w_id = w AND o_d_id = d AND o_id = o)",
    );
    let (mut w, mut d, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (key, kept) in ledger.districts() {
        for range in kept.ranges() {
            w.push(key.warehouse.cast_signed());
            d.push(key.district.cast_signed());
            first.push(range.start().cast_signed());
            last.push(range.end().cast_signed());
        }
    }
    let row = client.query_one(&sql, &[&w, &d, &first, &last]).await?;
    let rows: i64 = row.try_get(0)?;
    let example: Option<String> = row.try_get(1)?;
    Ok((rows.unsigned_abs(), example.unwrap_or_default()))
}
