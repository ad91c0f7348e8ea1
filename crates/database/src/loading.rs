//! Bulk loads: work divided among connections with a thread each, and what an engine does before and after its rows.

use crate::connection::{Connection, RequestError};
use crate::error::SessionError;
use crate::parallel::{LoadError, on_runtime, spread};
use crate::target::Target;

/// What an engine contributes to a load besides [`Connection::bulk_load`].
pub(crate) trait Loader: Connection {
    /// Settings of all connections of a load.
    const LOAD_SETTINGS: &'static [&'static str];
    /// Settings of connections that load whole tables of their own, of evenly drawn values.
    const OWN_TABLE_SETTINGS: &'static [&'static str];

    /// To be called before rows are loaded into the tables.
    async fn before_rows(target: &Target, tables: &[String]) -> Result<(), SessionError>;

    /// Gathers statistics of loaded tables, the last table first, and does what else would burden the first run. Blocks.
    fn settle<E: LoadError>(
        target: &Target,
        parallel: usize,
        tables: &[String],
        values: Values,
    ) -> Result<(), E>;

    /// The same for one table that no other connection loads.
    async fn settle_own(&mut self, table: &str) -> Result<(), RequestError>;

    /// Writes to the volumes what the server has in memory, where the user may ask for it.
    async fn checkpoint(&mut self) -> Result<(), RequestError>;

    /// Carries out statements in one transaction where the engine can undo definitions, one by one otherwise.
    async fn run_together(&mut self, statements: &[String]) -> Result<(), RequestError>;
}

/// The distribution of a table's values, as far as statistics depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// Not known.
    Any,
    /// All columns are drawn evenly: a small sample says as much as a large one.
    Even,
}

/// Carries out `work` on each of `items`, the last first, on `parallel` threads with a connection each, which has the settings of
/// a load and `settings`. Ends early at the first error.
pub(crate) fn in_parallel<C: Loader, T: Send, E: LoadError>(
    target: &Target,
    (parallel, settings): (usize, &[&str]),
    items: Vec<T>,
    work: impl AsyncFn(&mut C, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    spread((parallel, target.stop), items, async |take| {
        let mut connection = open::<C>(target, settings).await?;
        while let Some(item) = take() {
            work(&mut connection, &item).await?;
        }
        Ok(())
    })
}

/// Carries out `work` on a connection of its own, on this thread.
pub(crate) fn on_connection<C: Loader, T, E: LoadError>(
    target: &Target,
    settings: &[&str],
    work: impl AsyncFnOnce(&mut C) -> Result<T, E>,
) -> Result<T, E> {
    on_runtime(target.stop.unless(async {
        let mut connection = open::<C>(target, settings).await?;
        work(&mut connection).await
    }))
}

async fn open<C: Loader>(target: &Target, settings: &[&str]) -> Result<C, SessionError> {
    let mut connection = C::connect(target, 0).await?;
    connection.run(settings).await?;
    connection.run(C::LOAD_SETTINGS).await?;
    Ok(connection)
}
