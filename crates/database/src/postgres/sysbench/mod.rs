//! Sysbench's OLTP tables and transactions on PostgreSQL.
//!
//! The tables are those that `sysbench oltp_* prepare` makes, under the names that it looks for, in the first
//! schema of the search path: either program can drive what the other loaded. A table of Underlay's own,
//! `underlay_sysbench`, says that Underlay made them; without it they are somebody else's and are neither
//! loaded over nor dropped, and driven only when the user says so.

mod check;
mod connector;
mod load;
mod schema;
mod session;

use underlay_workload::sysbench::Parameters;

pub use check::{Check, CheckResult, Tally, check, tally};
pub use connector::SysbenchConnector;
pub use load::{LoadReport, load};
pub use schema::{Described, SysbenchError, describe, drop_tables, prepare_bulk};
pub use session::Session;

/// The identity of the workload as this engine runs it.
pub fn identity(parameters: &Parameters) -> String {
    let mut texts = vec![schema::TABLE_SQL, schema::KEYS_SQL];
    texts.extend(session::texts());
    underlay_workload::sysbench::identity(parameters, &texts)
}
