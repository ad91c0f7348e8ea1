//! Sysbench's OLTP tables and transactions on PostgreSQL.
//!
//! What all engines share is in [`crate::sysbench`]; here is what only PostgreSQL can be told. The tables are in
//! the first schema of the search path, where sysbench looks for them.

mod check;
mod load;
mod schema;
mod session;

use underlay_workload::sysbench::Parameters;

pub use check::{check, tally};
pub use load::load;
pub use schema::{describe, drop_bulk_tables, drop_tables, prepare_bulk};
pub use session::Session;

/// The identity of the workload as this engine runs it.
pub fn identity(parameters: &Parameters) -> String {
    let mut texts = vec![schema::TABLE_SQL, schema::KEYS_SQL];
    texts.extend(session::texts());
    underlay_workload::sysbench::identity(parameters, &texts)
}
