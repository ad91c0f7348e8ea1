//! Sysbench's OLTP tables and transactions on MariaDB and MySQL.
//!
//! What all engines share is in [`crate::sysbench`]; here is what only MariaDB can be told. The tables are in the
//! target's database; where it names none, in `sbtest`, which is what sysbench assumes.

mod check;
mod load;
mod schema;
mod session;

use underlay_workload::sysbench::Parameters;

use crate::target::Target;

pub use check::{check, tally};
pub use load::load;
pub use schema::{describe, drop_bulk_tables, drop_tables, prepare_bulk};
pub use session::Session;

/// The database that is used where a target names none.
const DATABASE: &str = "sbtest";

/// The identity of the workload as this engine runs it.
pub fn identity(parameters: &Parameters) -> String {
    let mut texts = vec![schema::TABLE_SQL, schema::KEYS_SQL, session::SETTINGS];
    texts.extend(session::texts());
    underlay_workload::sysbench::identity(parameters, &texts)
}

/// The target with the database that is used.
pub(crate) fn with_database(target: &Target) -> Target {
    match target.database.as_str() {
        "" => target.with_database(DATABASE),
        _ => target.clone(),
    }
}
