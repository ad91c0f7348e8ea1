//! The tables, their marker, and their removal.

use underlay_core::RootSeed;
use underlay_workload::dvdstore::{Parameters, Size};

use super::DvdStoreError;
use super::marker::{Described, MARKER_FORMAT};
use super::sql::dialect;
use crate::connection::{Connection, is_true};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::{BINARY_TEXT, Definition, SchemaClaim, SchemaOwner, State};
use crate::target::Target;

pub(super) const OURS: WorkloadTables = WorkloadTables::Dvdstore;

/// Creates schema, marker, tables, routines and the trigger, which the load does not fire.
pub(super) async fn create<C: SchemaOwner + Connection>(
    target: &Target,
    parameters: &Parameters,
    identity: &str,
) -> Result<(), DvdStoreError> {
    let found = match C::state(target, OURS).await? {
        State::Foreign => return Err(DvdStoreError::Foreign),
        State::Ours => return Err(DvdStoreError::AlreadyLoaded),
        found @ (State::Absent | State::Free) => found,
    };
    let dialect = dialect(C::ENGINE);
    let mut statements = (dialect.definitions)(dialect.schema);
    statements.extend((dialect.definitions)(dialect.routines));
    let definition = Definition {
        workload: OURS,
        settings: dialect.settings,
        marker: dialect.marker,
        marker_row: format!(
            "INSERT INTO {} VALUES ({MARKER_FORMAT}, {}, {}, '{identity}', false{{made}})",
            C::table(OURS, OURS.marker()),
            parameters.size.nominal_kb(),
            parameters.seed.0.cast_signed(),
        ),
        database_options: BINARY_TEXT,
        statements,
    };
    Ok(C::create(target, found, &definition).await?)
}

/// What shop a database holds.
pub(super) async fn describe<C: SchemaOwner + Connection>(
    target: &Target,
) -> Result<Described, DvdStoreError> {
    require_ours::<C>(target).await?;
    let mut connection = C::connect(&C::with_database(target, OURS), 0).await?;
    let sql = format!(
        "SELECT format, nominal_kb, seed, complete, identity FROM {}",
        C::table(OURS, OURS.marker())
    );
    let rows = connection.read_all(&sql).await?;
    // An interrupted creation leaves a marker without a row.
    let row = rows.into_iter().next().ok_or(DvdStoreError::Incomplete)?;
    let cell = |column: usize| row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    let number = |column: usize| {
        let text = cell(column);
        text.parse::<i64>().map_err(|_| DvdStoreError::NotANumber(text.to_string()))
    };
    let found = number(0)?;
    if found != i64::from(MARKER_FORMAT) {
        return Err(DvdStoreError::OtherFormat { found: found as i32 });
    }
    if !is_true(cell(3)) {
        return Err(DvdStoreError::Incomplete);
    }
    let size = Size::of_nominal_kb(number(1)?.cast_unsigned())?;
    let parameters = Parameters::new(size, RootSeed(number(2)?.cast_unsigned()));
    Ok(Described { parameters, identity: cell(4).to_string() })
}

/// Removes tables and routines, if Underlay created them.
pub(super) async fn drop_tables<C: SchemaOwner>(target: &Target) -> Result<(), DvdStoreError> {
    require_ours::<C>(target).await?;
    Ok(C::remove(target, OURS, SchemaClaim::Release).await?)
}

async fn require_ours<C: SchemaOwner>(target: &Target) -> Result<(), DvdStoreError> {
    match C::state(target, OURS).await? {
        State::Absent | State::Free => Err(DvdStoreError::NotLoaded),
        State::Foreign => Err(DvdStoreError::Foreign),
        State::Ours => Ok(()),
    }
}
