//! The refresh functions: each is one transaction, with the marker's count in it.

use underlay_workload::warehouse::{Order, Population, REFRESH_SETS};

use super::WarehouseError;
use super::rows::values;
use crate::connection::Connection;

/// Orders of one statement.
const STATEMENT_ORDERS: usize = 100;

/// Inserts the next thousandth of orders.
pub(super) async fn insert<C: Connection>(
    connection: &mut C,
    population: &Population,
) -> Result<(), WarehouseError> {
    let set = begin(connection, "inserted").await?;
    let doing = "the first refresh function";
    let orders: Vec<Order> =
        population.inserted_orders(set).map(|index| population.order(index)).collect();
    for orders in orders.chunks(STATEMENT_ORDERS) {
        let (rows, lines) = values(orders);
        let rows = format!("INSERT INTO orders VALUES {rows}");
        let lines = format!("INSERT INTO lineitem VALUES {lines}");
        run(connection, doing, &[&rows, &lines]).await?;
    }
    run(connection, doing, &["COMMIT"]).await
}

/// Deletes the next thousandth of orders.
pub(super) async fn delete<C: Connection>(
    connection: &mut C,
    population: &Population,
) -> Result<(), WarehouseError> {
    let set = begin(connection, "deleted").await?;
    let doing = "the second refresh function";
    let keys: Vec<String> = population
        .deleted_orders(set)
        .map(|index| population.order(index).key.to_string())
        .collect();
    for keys in keys.chunks(STATEMENT_ORDERS) {
        let keys = keys.join(", ");
        let lines = format!("DELETE FROM lineitem WHERE l_orderkey IN ({keys})");
        let rows = format!("DELETE FROM orders WHERE o_orderkey IN ({keys})");
        run(connection, doing, &[&lines, &rows]).await?;
    }
    run(connection, doing, &["COMMIT"]).await
}

/// Begins a transaction, and takes the next number of a function. The row of the marker makes others wait.
async fn begin<C: Connection>(connection: &mut C, column: &str) -> Result<u32, WarehouseError> {
    let doing = "beginning a refresh function";
    let update = format!("UPDATE underlay_warehouse SET {column} = {column} + 1");
    run(connection, doing, &["START TRANSACTION", &update]).await?;
    let rows = connection.read_all(&format!("SELECT {column} FROM underlay_warehouse")).await;
    let rows = rows.map_err(WarehouseError::during(doing))?;
    let count = rows.iter().flatten().flatten().next().and_then(|text| text.parse::<u32>().ok());
    match count {
        Some(count @ 1..=REFRESH_SETS) => Ok(count - 1),
        Some(_) => {
            run(connection, doing, &["ROLLBACK"]).await?;
            Err(WarehouseError::RefreshesUsedUp)
        }
        None => Err(WarehouseError::Damaged(format!("no number of what was {column}"))),
    }
}

async fn run<C: Connection>(
    connection: &mut C,
    doing: &str,
    texts: &[&str],
) -> Result<(), WarehouseError> {
    connection.run(texts).await.map_err(WarehouseError::during(doing))
}
