//! TPC-C's tables that another program loaded: where they are and how many warehouses they have, so that they can be
//! checked as they are. Nothing else can be done with them: transactions and loads are Underlay's own.

use mysql_async::prelude::Queryable;

use super::{TableNames, TpccError};
use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb};

/// Looks for tables of the specification's names (`orders` for ORDER, `new_order`, `order_line`): on PostgreSQL in the
/// search path, then in the schema `tpcc`; on MariaDB in the target's database, `tpcc` where it names none. Gives their
/// names and the largest number of a warehouse.
///
/// # Errors
/// [`TpccError::NoTables`] when there is no table `warehouse` with a row.
pub async fn others(target: &Target) -> Result<(TableNames, u32), TpccError> {
    let (names, largest) = match target.engine {
        Engine::Postgresql => of_postgresql(target).await?,
        Engine::Mariadb => of_mariadb(target).await?,
    };
    let warehouses = largest.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    Ok((names, warehouses.ok_or(TpccError::NoTables)?))
}

async fn of_postgresql(target: &Target) -> Result<(TableNames, Option<String>), TpccError> {
    let client = target.connect().await?;
    let row = client
        .query_one(
            "SELECT to_regclass('warehouse') IS NOT NULL, to_regclass('tpcc.warehouse') IS NOT NULL",
            &[],
        )
        .await?;
    let (names, warehouse) = match (row.get(0), row.get(1)) {
        (true, _) => (TableNames::mapped(str::to_string), "warehouse"),
        (_, true) => (TableNames::underlay(), "tpcc.warehouse"),
        _ => return Err(TpccError::NoTables),
    };
    let sql = format!("SELECT max(w_id)::integer::text FROM {warehouse}");
    Ok((names, client.query_one(&sql, &[]).await?.get(0)))
}

async fn of_mariadb(target: &Target) -> Result<(TableNames, Option<String>), TpccError> {
    let refused = |error| SessionError::from_mariadb(&error, CommitState::NotSent);
    let database = if target.database.is_empty() { "tpcc" } else { target.database.as_str() };
    let mut conn = mariadb::connect(&target.with_database("")).await?;
    mariadb::ownership::require_sight(&mut conn, database, "warehouse").await?;
    let sql = "SELECT count(*) FROM information_schema.tables \
               WHERE table_schema = ? AND table_name = 'warehouse'";
    if conn.exec_first(sql, (database,)).await.map_err(refused)? != Some(1_u64) {
        return Err(TpccError::NoTables);
    }
    let place = mariadb::connection::quoted(database);
    let sql = format!("SELECT cast(max(w_id) AS char) FROM {place}.warehouse");
    let largest: Option<Option<String>> = conn.query_first(sql).await.map_err(refused)?;
    Ok((TableNames::of(Engine::Mariadb), largest.flatten()))
}
