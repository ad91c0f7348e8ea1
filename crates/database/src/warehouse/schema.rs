//! The tables, their marker and their removal.

use underlay_core::RootSeed;
use underlay_workload::warehouse::{Population, Refreshed, Scale};

use super::WarehouseError;
use super::marker::{Described, MARKER_FORMAT};
use super::sql::{dialect, tables};
use crate::connection::Connection;
use crate::error::SessionError;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::{BINARY_TEXT, Definition, SchemaClaim, SchemaOwner, State};
use crate::target::Target;

pub(super) const OURS: WorkloadTables = WorkloadTables::Warehouse;

/// Connects with the warehouse, which must be there.
pub(super) async fn open<C: SchemaOwner + Connection>(target: &Target) -> Result<C, SessionError> {
    let mut connection = C::connect(&C::with_database(target, OURS), 0).await?;
    connection.run(dialect(C::ENGINE).settings).await?;
    Ok(connection)
}

/// Creates marker and tables.
pub(super) async fn create<C: SchemaOwner + Connection>(
    target: &Target,
    population: &Population,
) -> Result<(), WarehouseError> {
    let found = match C::state(target, OURS).await? {
        State::Foreign => return Err(WarehouseError::Foreign),
        State::Ours => return Err(WarehouseError::AlreadyLoaded),
        found @ (State::Absent | State::Free) => found,
    };
    let dialect = dialect(C::ENGINE);
    let definition = Definition {
        workload: OURS,
        settings: dialect.settings,
        marker: dialect.marker,
        marker_row: format!(
            "INSERT INTO {} VALUES ({MARKER_FORMAT}, {}, {}, 0, 0, 0{{made}})",
            C::table(OURS, OURS.marker()),
            population.scale.hundredths(),
            population.seed.0.cast_signed(),
        ),
        database_options: BINARY_TEXT,
        statements: tables(dialect),
    };
    let created = C::create(target, found, &definition).await;
    created.map_err(WarehouseError::during("creating the warehouse"))
}

impl Described {
    fn new(
        hundredths: i64,
        seed: i64,
        inserted: i64,
        deleted: i64,
    ) -> Result<Described, WarehouseError> {
        let damaged = |what: &str| WarehouseError::Damaged(what.to_string());
        let scale = u32::try_from(hundredths)
            .ok()
            .and_then(|hundredths| Scale::from_hundredths(hundredths).ok())
            .ok_or_else(|| damaged("no scale factor"))?;
        let sets =
            |number: i64| u32::try_from(number).map_err(|_| damaged("no number of refreshes"));
        Ok(Described {
            population: Population { scale, seed: RootSeed(seed.cast_unsigned()) },
            refreshed: Refreshed { inserted: sets(inserted)?, deleted: sets(deleted)? },
        })
    }
}

/// What warehouse a database holds.
pub(super) async fn describe<C: SchemaOwner + Connection>(
    target: &Target,
) -> Result<Described, WarehouseError> {
    require_ours::<C>(target).await?;
    let mut connection: C = open(target).await?;
    let sql =
        "SELECT format, hundredths, seed, inserted, deleted, is_complete FROM underlay_warehouse";
    let rows = connection.read_all(sql).await.map_err(WarehouseError::during("reading the marker"));
    let rows = rows?;
    let row = rows.first().ok_or(WarehouseError::Incomplete)?;
    let number = |index: usize| {
        let text = row.get(index).and_then(|cell| cell.as_deref()).unwrap_or_default();
        text.parse::<i64>()
            .map_err(|_| WarehouseError::Damaged(format!("`{text}` is not a number")))
    };
    if number(0)? != i64::from(MARKER_FORMAT) {
        return Err(WarehouseError::OtherFormat { found: number(0)? as i32 });
    }
    if number(5)? != 1 {
        return Err(WarehouseError::Incomplete);
    }
    Described::new(number(1)?, number(2)?, number(3)?, number(4)?)
}

async fn require_ours<C: SchemaOwner>(target: &Target) -> Result<(), WarehouseError> {
    match C::state(target, OURS).await? {
        State::Absent | State::Free => Err(WarehouseError::NotLoaded),
        State::Foreign => Err(WarehouseError::Foreign),
        State::Ours => Ok(()),
    }
}

/// Removes the tables, if Underlay made them, and schema or database, if it made that and nothing else is there.
pub(super) async fn drop_schema<C: SchemaOwner>(target: &Target) -> Result<(), WarehouseError> {
    require_ours::<C>(target).await?;
    let removed = C::remove(target, OURS, SchemaClaim::Release).await;
    removed.map_err(WarehouseError::during("dropping the warehouse"))
}
