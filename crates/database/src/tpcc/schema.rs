//! The tables, their marker, and their removal.
//!
//! The marker is a table that says that Underlay created the others, and with which parameters. Tables without it were created by
//! somebody else: they are neither overwritten, nor dropped, nor driven.

use underlay_core::RootSeed;
use underlay_workload::tpcc::{Entropy, Parameters};

use super::TpccError;
use super::marker::{Described, MARKER_FORMAT};
use super::sql::dialect;
use crate::connection::{Connection, is_true};
use crate::error::SessionError;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::{BINARY_TEXT, Definition, SchemaClaim, SchemaOwner, State};
use crate::target::Target;

pub(super) const OURS: WorkloadTables = WorkloadTables::Tpcc;

/// Creates schema, marker, tables and routines.
pub(super) async fn create<C: SchemaOwner + Connection>(
    target: &Target,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), TpccError> {
    let found = match C::state(target, OURS).await? {
        State::Foreign => return Err(TpccError::Foreign),
        State::Ours => return Err(TpccError::AlreadyLoaded),
        found @ (State::Absent | State::Free) => found,
    };
    let dialect = dialect(C::ENGINE);
    let mut statements = (dialect.definitions)(dialect.schema);
    statements.extend((dialect.definitions)(dialect.procedures));
    let definition = Definition {
        workload: OURS,
        settings: dialect.settings,
        marker: dialect.marker,
        marker_row: format!(
            "INSERT INTO {} VALUES ({MARKER_FORMAT}, {}, {}, {}, '{identity}', false{{made}})",
            C::table(OURS, OURS.marker()),
            parameters.warehouses,
            parameters.seed.0.cast_signed(),
            parameters.entropy.percent(),
        ),
        database_options: BINARY_TEXT,
        statements,
    };
    Ok(C::create(target, found, &definition).await?)
}

/// What population a database holds.
pub(super) async fn describe<C: SchemaOwner + Connection>(
    target: &Target,
) -> Result<Described, TpccError> {
    require_ours::<C>(target).await?;
    let mut connection = C::connect(&C::with_database(target, OURS), 0).await?;
    let sql = format!(
        "SELECT format, warehouses, seed, entropy, complete, identity FROM {}",
        C::table(OURS, OURS.marker())
    );
    let rows = connection.read_all(&sql).await?;
    // An interrupted creation leaves a marker without a row.
    let row = rows.into_iter().next().ok_or(TpccError::Incomplete)?;
    let cell = |column: usize| row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    let number = |column: usize| {
        let text = cell(column);
        let damaged = || SessionError::refusal("the population's marker has a text for a number");
        text.parse::<i64>().map_err(|_| TpccError::Session(damaged()))
    };
    let found = number(0)?;
    if found != i64::from(MARKER_FORMAT) {
        return Err(TpccError::OtherFormat { found: found as i32, expected: MARKER_FORMAT });
    }
    if !is_true(cell(4)) {
        return Err(TpccError::Incomplete);
    }
    let entropy = Entropy::new(u8::try_from(number(3)?).unwrap_or(u8::MAX))?;
    let warehouses = u32::try_from(number(1)?).unwrap_or(0);
    let parameters = Parameters::new(warehouses, RootSeed(number(2)?.cast_unsigned()), entropy)?;
    Ok(Described { parameters, identity: cell(5).to_string() })
}

/// Removes tables and routines, if Underlay created them.
pub(super) async fn drop_schema<C: SchemaOwner>(target: &Target) -> Result<(), TpccError> {
    require_ours::<C>(target).await?;
    Ok(C::remove(target, OURS, SchemaClaim::Release).await?)
}

async fn require_ours<C: SchemaOwner>(target: &Target) -> Result<(), TpccError> {
    match C::state(target, OURS).await? {
        State::Absent | State::Free => Err(TpccError::NotLoaded),
        State::Foreign => Err(TpccError::Foreign),
        State::Ours => Ok(()),
    }
}
