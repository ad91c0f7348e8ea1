//! The refresh functions: each is one transaction, with the marker's count in it.

use underlay_workload::warehouse::{Order, Population, REFRESH_SETS};

use super::WarehouseError;
use super::connection::Connection;
use super::rows::values;

/// Orders of one statement.
const STATEMENT_ORDERS: usize = 100;

/// Inserts the next thousandth of orders.
pub(super) async fn insert(
    connection: &mut Connection,
    population: &Population,
) -> Result<(), WarehouseError> {
    let set = begin(connection, "inserted").await?;
    let doing = "the first refresh function";
    let orders: Vec<Order> =
        population.inserted_orders(set).map(|index| population.order(index)).collect();
    for orders in orders.chunks(STATEMENT_ORDERS) {
        let (rows, lines) = values(orders);
        connection.execute(doing, &format!("INSERT INTO orders VALUES {rows}")).await?;
        connection.execute(doing, &format!("INSERT INTO lineitem VALUES {lines}")).await?;
    }
    connection.execute(doing, "COMMIT").await
}

/// Deletes the next thousandth of orders.
pub(super) async fn delete(
    connection: &mut Connection,
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
        let sql = format!("DELETE FROM lineitem WHERE l_orderkey IN ({keys})");
        connection.execute(doing, &sql).await?;
        connection
            .execute(doing, &format!("DELETE FROM orders WHERE o_orderkey IN ({keys})"))
            .await?;
    }
    connection.execute(doing, "COMMIT").await
}

/// Begins a transaction, and takes the next number of a function. The row of the marker makes others wait.
async fn begin(connection: &mut Connection, column: &str) -> Result<u32, WarehouseError> {
    let doing = "beginning a refresh function";
    connection.execute(doing, "START TRANSACTION").await?;
    let update = format!("UPDATE underlay_warehouse SET {column} = {column} + 1");
    connection.execute(doing, &update).await?;
    let rows = connection.rows(doing, &format!("SELECT {column} FROM underlay_warehouse")).await?;
    let count = rows.iter().flatten().flatten().next().and_then(|text| text.parse::<u32>().ok());
    match count {
        Some(count @ 1..=REFRESH_SETS) => Ok(count - 1),
        Some(_) => {
            connection.execute(doing, "ROLLBACK").await?;
            Err(WarehouseError::RefreshesUsedUp)
        }
        None => Err(WarehouseError::Damaged(format!("no number of what was {column}"))),
    }
}
