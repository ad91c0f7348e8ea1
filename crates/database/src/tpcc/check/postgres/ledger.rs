//! The client's commit ledger against the database: what was acknowledged must be there.
//!
//! Two statements per district: every acknowledged order exists; and the order numbers advanced by the
//! acknowledged orders plus at most those whose outcome the client never learned. The first finds lost
//! commits, the second finds commits that were never acknowledged. An order number that was acknowledged
//! twice is a third case: the database went back to a state before the first order, and then used its
//! number again.

use tokio_postgres::{Client, Error};
use underlay_workload::tpcc::Ledger;

use super::outcome::describe;
use crate::error::{CommitState, SessionError};
use crate::tpcc::check::{compare, ledger_result};
use crate::tpcc::{CheckOutcome, CheckResult, OrderNumbers, TableNames};

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
    // Other tools' tables have narrower columns.
    let sql = tables.insert_into("SELECT d_w_id::int, d_id::int, d_next_o_id::int FROM {district}");
    client
        .query(&sql, &[])
        .await?
        .iter()
        .map(|row| {
            let number = |column: usize| row.try_get::<_, i32>(column).map(i32::cast_unsigned);
            Ok(((number(0)?, number(1)?), number(2)?))
        })
        .collect::<Result<_, _>>()
        .map(OrderNumbers::of)
}

pub(super) async fn check(
    client: &Client,
    tables: &TableNames,
    ledger: &Ledger,
    before: &OrderNumbers,
) -> CheckResult {
    let outcome = match examine(client, tables, ledger, before).await {
        Ok(outcome) => outcome,
        Err(error) => CheckOutcome::Failed { error: describe(&error) },
    };
    ledger_result(outcome)
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
    Ok(compare(before, &read_order_numbers(client, tables).await?, ledger))
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
