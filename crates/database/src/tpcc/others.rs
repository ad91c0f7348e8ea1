//! TPC-C's tables that another program loaded: where they are and how many warehouses they have, so that they can be
//! checked as they are. Nothing else can be done with them: transactions and loads are Underlay's own.

use super::{TableNames, TpccError};
use crate::connection::Connection;
use crate::dispatch::with_engine;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Looks for tables of the specification's names (`orders` for ORDER, `new_order`, `order_line`): on PostgreSQL in the
/// search path, then in the schema `tpcc`; on MariaDB in the target's database, `tpcc` where it names none. Gives their
/// names and the largest number of a warehouse.
///
/// # Errors
/// [`TpccError::NoTables`] when there is no table `warehouse` with a row.
pub async fn others(target: &Target) -> Result<(TableNames, u32), TpccError> {
    with_engine!(target.engine, C => find::<C>(target).await)
}

async fn find<C: Connection + SchemaOwner>(
    target: &Target,
) -> Result<(TableNames, u32), TpccError> {
    C::require_sight(target, WorkloadTables::Tpcc, "warehouse").await?;
    let mut connection = match C::connect(&C::with_database(target, WorkloadTables::Tpcc), 0).await
    {
        Err(error) if error.is_absent() => return Err(TpccError::NoTables),
        connection => connection?,
    };
    for names in [TableNames::mapped(str::to_string), TableNames::of(C::ENGINE)] {
        // Whole, also where the column has decimal places.
        let sql = names.insert_into("SELECT floor(max(w_id)) FROM {warehouse}");
        let largest = match connection.read_all(&sql).await {
            Err(error) if error.is_absent() => continue,
            rows => rows?.into_iter().flatten().flatten().next(),
        };
        let warehouses = largest.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
        return Ok((names, warehouses.ok_or(TpccError::NoTables)?));
    }
    Err(TpccError::NoTables)
}
