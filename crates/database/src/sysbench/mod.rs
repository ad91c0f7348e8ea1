//! Sysbench's OLTP tables and transactions on every engine: what they have in common, and one entry for whoever
//! has a [`Target`].
//!
//! The tables are those that `sysbench oltp_* prepare` makes, under the names that it looks for: either program
//! can drive what the other loaded. A table of Underlay's own, `underlay_sysbench`, says that Underlay made them;
//! without it they are somebody else's and are neither loaded over nor dropped, and driven only when the user
//! says so. SQL and sessions are the engines' own; see `postgres::sysbench` and
//! `mariadb::sysbench`.

mod check;
mod connector;
mod error;
mod load;
mod others;
mod session;
mod statement;

use underlay_workload::sysbench::{Parameters, SysbenchAccounting};

pub use crate::load_report::LoadReport;
pub use check::{Check, CheckResult, Tally};
pub use connector::SysbenchConnector;
pub use error::SysbenchError;
pub use others::others;
pub use session::Session;

pub(crate) use check::{index_violation, judge, texts_violation};
pub(crate) use load::{Piece, Spent, Stage, has_table_per_connection, pieces, whole};
pub(crate) use statement::{Execute, Input, Kind, operate};

use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What the marker says; the script is left at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What the rows were made from.
    pub parameters: Parameters,
}

/// The identity of the workload as an engine runs it: results with different identities are not comparable.
pub fn identity(engine: Engine, parameters: &Parameters) -> String {
    match engine {
        Engine::Postgresql => postgres::sysbench::identity(parameters),
        Engine::Mariadb => mariadb::sysbench::identity(parameters),
    }
}

/// Creates and loads the tables, on `parallel` connections. Blocks; must not be called from within a runtime.
///
/// # Errors
/// When there are such tables already. After any other error they are there without their mark of completion:
/// they cannot be used by mistake, and can be dropped.
pub fn load(
    target: &Target,
    parameters: &Parameters,
    parallel: usize,
) -> Result<LoadReport, SysbenchError> {
    match target.engine {
        Engine::Postgresql => postgres::sysbench::load(target, parameters, parallel),
        Engine::Mariadb => mariadb::sysbench::load(target, parameters, parallel),
    }
}

/// What tables of Underlay's a database holds.
pub async fn describe(target: &Target) -> Result<Described, SysbenchError> {
    match target.engine {
        Engine::Postgresql => postgres::sysbench::describe(&target.connect().await?).await,
        Engine::Mariadb => mariadb::sysbench::describe(target).await,
    }
}

/// Counts all tables.
pub async fn tally(target: &Target, parameters: &Parameters) -> Result<Tally, SysbenchError> {
    match target.engine {
        Engine::Postgresql => postgres::sysbench::tally(&target.connect().await?, parameters).await,
        Engine::Mariadb => mariadb::sysbench::tally(target, parameters).await,
    }
}

/// Makes all checks. With `run`, also those against the tally before and the accounting of a run.
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &SysbenchAccounting)>,
) -> Result<Vec<CheckResult>, SysbenchError> {
    let checks = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::sysbench::check(&target.connect().await?, parameters, run).await
            }
            Engine::Mariadb => mariadb::sysbench::check(target, parameters, run).await,
        }
    };
    target.stop.unless(checks).await
}

/// Removes the tables, if Underlay made them.
pub async fn drop_tables(target: &Target) -> Result<(), SysbenchError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => postgres::sysbench::drop_tables(&target.connect().await?).await,
            Engine::Mariadb => mariadb::sysbench::drop_tables(target).await,
        }
    };
    target.stop.unless(work).await
}

/// Removes the tables for bulk inserts that Underlay made, also beside tables of others, and gives their number.
pub async fn drop_bulk_tables(target: &Target) -> Result<u64, SysbenchError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::sysbench::drop_bulk_tables(&target.connect().await?).await
            }
            Engine::Mariadb => mariadb::sysbench::drop_bulk_tables(target).await,
        }
    };
    target.stop.unless(work).await
}

/// Gives each of `users` users an empty table for bulk inserts.
///
/// # Errors
/// When one of them is there already and not Underlay's; then none of them is touched.
pub async fn prepare_bulk(target: &Target, users: u32) -> Result<(), SysbenchError> {
    match target.engine {
        Engine::Postgresql => {
            postgres::sysbench::prepare_bulk(&target.connect().await?, users).await
        }
        Engine::Mariadb => mariadb::sysbench::prepare_bulk(target, users).await,
    }
}

/// What the engine remembers of a table for bulk inserts, so that those of others are told apart.
pub(crate) const BULK_COMMENT: &str = "made by underlay for bulk inserts";

/// The names of the tables for bulk inserts of so many users.
pub(crate) fn bulk_tables(users: u32) -> Vec<String> {
    (1..=users).map(|user| format!("sbtest_bulk{user}")).collect()
}

/// A text with the number of its table.
pub(crate) fn numbered(sql: &str, table: u32) -> String {
    sql.replace('#', &table.to_string())
}
