//! The table, its marker, and their removal.
//!
//! The marker is a table that says that Underlay created the other, and how it was to be filled. A table without it was
//! created by somebody else: it is neither overwritten nor dropped.

use super::BatchError;
use super::marker::Marker;
use super::sql::dialect;
use crate::connection::{Cells, Connection, is_true};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::{BINARY_TEXT, Definition, SchemaClaim, SchemaOwner, State};
use crate::target::Target;

const OURS: WorkloadTables = WorkloadTables::Batch;

/// Creates marker and table; those of an earlier insertion are removed.
pub(super) async fn create<C: Connection + SchemaOwner>(
    target: &Target,
    marker: &Marker,
) -> Result<(), BatchError> {
    let found = match C::state(target, OURS).await? {
        State::Foreign => return Err(BatchError::Foreign),
        State::Ours => {
            C::remove(target, OURS, SchemaClaim::Keep).await?;
            C::state(target, OURS).await?
        }
        found @ (State::Absent | State::Free) => found,
    };
    let dialect = dialect(C::ENGINE);
    let definition = Definition {
        workload: OURS,
        settings: dialect.settings,
        marker: dialect.marker,
        marker_row: format!(
            "INSERT INTO {} VALUES ({}, {}, {}, {}, '{}', {}, {}{{made}})",
            C::table(OURS, OURS.marker()),
            marker.format,
            marker.rows,
            marker.seed,
            marker.sessions,
            marker.mode,
            marker.is_rollback,
            marker.is_complete,
        ),
        database_options: BINARY_TEXT,
        statements: vec![dialect.table.to_string()],
    };
    Ok(C::create(target, found, &definition).await?)
}

/// Writes into the marker that the insertion completed.
pub(super) async fn mark_complete<C: Connection + SchemaOwner>(
    target: &Target,
) -> Result<(), BatchError> {
    let sql = format!("UPDATE {} SET is_complete = true", C::table(OURS, OURS.marker()));
    Ok(open::<C>(target).await?.run(&[&sql]).await?)
}

/// Reads the marker.
pub(super) async fn marker<C: Connection + SchemaOwner>(
    target: &Target,
) -> Result<Marker, BatchError> {
    let rows = open::<C>(target).await?.read_all(dialect(C::ENGINE).describe).await?;
    let row = rows.into_iter().next();
    let row = row.ok_or_else(|| BatchError::Damaged("it is empty".to_string()))?;
    let text = |column: usize| row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    Ok(Marker {
        format: number(&row, 0)?,
        rows: number(&row, 1)?,
        seed: number(&row, 2)?,
        sessions: number(&row, 3)?,
        mode: text(4).to_string(),
        is_rollback: is_true(text(5)),
        is_complete: is_true(text(6)),
    })
}

/// The whole number in a column.
pub(super) fn number<T: std::str::FromStr>(row: &Cells, column: usize) -> Result<T, BatchError> {
    let cell = row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    cell.parse().map_err(|_| BatchError::Damaged(format!("`{cell}` is not a number")))
}

/// Removes marker and table, if Underlay created them.
pub(super) async fn drop_schema<C: SchemaOwner>(target: &Target) -> Result<(), BatchError> {
    require_ours::<C>(target).await?;
    Ok(C::remove(target, OURS, SchemaClaim::Release).await?)
}

/// A connection with the database of the table, which must be ours.
pub(super) async fn open<C: Connection + SchemaOwner>(target: &Target) -> Result<C, BatchError> {
    require_ours::<C>(target).await?;
    let mut connection = C::connect(&C::with_database(target, OURS), 0).await?;
    connection.run(dialect(C::ENGINE).settings).await?;
    Ok(connection)
}

async fn require_ours<C: SchemaOwner>(target: &Target) -> Result<(), BatchError> {
    match C::state(target, OURS).await? {
        State::Absent | State::Free => Err(BatchError::NotThere),
        State::Foreign => Err(BatchError::Foreign),
        State::Ours => Ok(()),
    }
}
