//! The tables, their marker, and their removal.

use underlay_core::RootSeed;
use underlay_workload::sysbench::{Distribution, Parameters, Script};

use super::SysbenchError;
use super::marker::{Described, MARKER_FORMAT};
use super::names::{BULK_COMMENT, bulk_tables, numbered};
use super::sql::dialect;
use crate::connection::{Cells, Connection, is_true};
use crate::loading::Loader;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::{Definition, SchemaOwner, State};
use crate::target::Target;

const OURS: WorkloadTables = WorkloadTables::Sysbench;
/// Before the number in the names of the tables.
const STEM: &str = "sbtest";

/// Whose tables there are, where it is not somebody else.
async fn state<C: SchemaOwner>(target: &Target) -> Result<State, SysbenchError> {
    match C::state_of_numbered(target, OURS, STEM).await? {
        (State::Foreign, table) => Err(SysbenchError::Foreign { table: table.unwrap_or_default() }),
        (state, _) => Ok(state),
    }
}

/// Creates marker and tables, without the keys that follow the rows.
pub(super) async fn create<C: SchemaOwner + Connection>(
    target: &Target,
    parameters: &Parameters,
) -> Result<(), SysbenchError> {
    let found = state::<C>(target).await?;
    if found == State::Ours {
        return Err(SysbenchError::AlreadyLoaded);
    }
    let dialect = dialect(C::ENGINE);
    let definition = Definition {
        workload: OURS,
        settings: &[],
        marker: dialect.marker,
        marker_row: format!(
            "INSERT INTO underlay_sysbench VALUES ({MARKER_FORMAT}, {}, {}, {}, '{}', false{{made}})",
            parameters.tables,
            parameters.table_size,
            parameters.seed.0.cast_signed(),
            parameters.distribution.as_str(),
        ),
        database_options: "",
        statements: (1..=parameters.tables).map(|table| numbered(dialect.table, table)).collect(),
    };
    Ok(C::create(target, found, &definition).await?)
}

/// What tables of Underlay's a database holds.
pub(super) async fn describe<C: SchemaOwner + Connection>(
    target: &Target,
) -> Result<Described, SysbenchError> {
    let rows = ours::<C>(target).await?.read_all(dialect(C::ENGINE).describe).await?;
    let row = rows.into_iter().next().ok_or(SysbenchError::Incomplete)?;
    let found = number(&row, 0)?;
    if found != i64::from(MARKER_FORMAT) {
        return Err(SysbenchError::OtherFormat { found: found as i32 });
    }
    if !row.get(5).is_some_and(|cell| cell.as_deref().is_some_and(is_true)) {
        return Err(SysbenchError::Incomplete);
    }
    let small = |column| {
        u32::try_from(number(&row, column)?)
            .map_err(|_| SysbenchError::Damaged("a number is out of range".to_string()))
    };
    let distribution: Distribution =
        row.get(4).and_then(|cell| cell.as_deref()).unwrap_or_default().parse()?;
    let seed = RootSeed(number(&row, 3)?.cast_unsigned());
    let (tables, table_size) = (small(1)?, small(2)?);
    let parameters = Parameters::new(tables, table_size, seed, distribution, Script::ReadWrite)?;
    Ok(Described { parameters })
}

/// The whole number in a column.
pub(super) fn number(row: &Cells, column: usize) -> Result<i64, SysbenchError> {
    let cell = row.get(column).and_then(|cell| cell.as_deref()).unwrap_or_default();
    cell.parse().map_err(|_| SysbenchError::Damaged(format!("`{cell}` is not a number")))
}

/// Removes the tables, if Underlay created them.
pub(super) async fn drop_tables<C: SchemaOwner + Loader>(
    target: &Target,
) -> Result<(), SysbenchError> {
    let mut connection = ours::<C>(target).await?;
    // Only what a load or a bulk insert of ours created: the marker says how many, the names are fixed.
    let marker = connection.read_all(dialect(C::ENGINE).tables_of_marker).await?;
    let row = marker.into_iter().next();
    let tables = row.as_ref().map_or(Ok(0), |row| number(row, 0))?;
    let was_made = row.is_some_and(|row| row[1].as_deref().is_some_and(is_true));
    let mut statements: Vec<String> =
        (1..=tables).map(|table| format!("DROP TABLE IF EXISTS {STEM}{table}")).collect();
    let bulk = bulk_of_ours(&mut connection).await?;
    statements.extend(bulk.iter().map(|table| format!("DROP TABLE {table}")));
    // The marker last, so that a removal that was cut short can be repeated.
    statements.push(format!("DROP TABLE {}", OURS.marker()));
    connection.run_together(&statements).await?;
    Ok(C::release_database(target, OURS, was_made).await?)
}

/// Removes the tables for bulk inserts that Underlay created, even next to foreign tables; gives their number.
pub(super) async fn drop_bulk_tables<C: SchemaOwner + Loader>(
    target: &Target,
) -> Result<u64, SysbenchError> {
    // Who may not see the tables is refused.
    C::require_sight(target, OURS, OURS.marker()).await?;
    let mut connection = match C::connect(&C::with_database(target, OURS), 0).await {
        Err(error) if error.is_absent() => return Ok(0),
        connection => connection?,
    };
    let tables = bulk_of_ours(&mut connection).await?;
    let statements: Vec<String> =
        tables.iter().map(|table| format!("DROP TABLE {table}")).collect();
    if !statements.is_empty() {
        connection.run_together(&statements).await?;
    }
    Ok(statements.len() as u64)
}

async fn bulk_of_ours<C: Connection>(connection: &mut C) -> Result<Vec<String>, SysbenchError> {
    names(connection, dialect(C::ENGINE).bulk_of_ours).await
}

async fn names<C: Connection>(connection: &mut C, sql: &str) -> Result<Vec<String>, SysbenchError> {
    let rows = connection.read_all(&sql.replace("{comment}", BULK_COMMENT)).await?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

/// Gives each of `users` users an empty table for bulk inserts.
pub(super) async fn prepare_bulk<C: SchemaOwner + Loader>(
    target: &Target,
    users: u32,
) -> Result<(), SysbenchError> {
    let dialect = dialect(C::ENGINE);
    let mut connection = C::connect(&C::with_database(target, OURS), 0).await?;
    let tables = bulk_tables(users);
    let others = names(&mut connection, dialect.bulk_of_others).await?;
    if let Some(table) = others.into_iter().find(|name| tables.contains(name)) {
        return Err(SysbenchError::ForeignBulk { table });
    }
    let statements: Vec<String> = tables
        .iter()
        .flat_map(|table| {
            dialect
                .bulk_table
                .iter()
                .map(move |sql| sql.replace("{table}", table).replace("{comment}", BULK_COMMENT))
        })
        .collect();
    Ok(connection.run_together(&statements).await?)
}

/// A connection with the database of Underlay's tables.
async fn ours<C: SchemaOwner + Connection>(target: &Target) -> Result<C, SysbenchError> {
    match state::<C>(target).await? {
        State::Ours => Ok(C::connect(&C::with_database(target, OURS), 0).await?),
        State::Absent | State::Free | State::Foreign => Err(SysbenchError::NotLoaded),
    }
}
