//! The client's commit ledger against this database: what was acknowledged must be there.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use underlay_workload::tpcc::Ledger;

use super::outcome::describe;
use crate::tpcc::check::{compare, ledger_result};
use crate::tpcc::{CheckOutcome, CheckResult, OrderNumbers, TableNames};

pub(super) async fn read_order_numbers(
    client: &mut Conn,
    tables: &TableNames,
) -> Result<OrderNumbers, Error> {
    let sql = tables.insert_into("SELECT d_w_id, d_id, d_next_o_id FROM {district}");
    let rows: Vec<(u32, u32, u32)> = client.query(sql).await?;
    Ok(OrderNumbers::of(rows.into_iter().map(|(w, d, next)| ((w, d), next)).collect()))
}

pub(super) async fn check(
    client: &mut Conn,
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
    client: &mut Conn,
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

/// Acknowledged orders that do not exist: how many, and one of them. What was acknowledged are few ranges
/// of numbers per district; each is counted, and looked at only if some are missing.
async fn lost_orders(
    client: &mut Conn,
    tables: &TableNames,
    ledger: &Ledger,
) -> Result<(u64, String), Error> {
    let range_of = "FROM {orders} WHERE o_w_id = ? AND o_d_id = ? AND o_id BETWEEN ? AND ?";
    let count = tables.insert_into(&format!("SELECT count(*) {range_of}"));
    let list = tables.insert_into(&format!("SELECT o_id {range_of} ORDER BY o_id"));
    let (mut lost, mut example) = (0, String::new());
    for (key, kept) in ledger.districts() {
        for range in kept.ranges() {
            let (first, last) = (*range.start(), *range.end());
            let values = (key.warehouse, key.district, first, last);
            let found: u64 = client.exec_first(&count, values).await?.unwrap_or(0);
            let wanted = u64::from(last - first) + 1;
            if found == wanted {
                continue;
            }
            lost += wanted - found;
            if example.is_empty() {
                let there: Vec<u32> = client.exec(&list, values).await?;
                let missing = (first..=last).find(|order| there.binary_search(order).is_err());
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
