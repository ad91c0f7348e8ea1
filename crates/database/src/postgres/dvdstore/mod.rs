//! The web shop on PostgreSQL: schema, load, sessions and checks.
//!
//! The workload itself is pure and lives in the `workload` crate; what all engines share is in [`crate::dvdstore`];
//! here is what only PostgreSQL can be told. The SQL texts in `sql/` are part of the workload's identity.

mod check;
mod load;
mod schema;
mod session;
mod statements;

use underlay_workload::dvdstore::{self, Parameters};

pub use check::{check, check_here, tally};
pub use load::load;
pub use schema::{describe, drop_tables};
pub use session::Session;

/// The tables, without keys.
pub fn schema_sql() -> &'static str {
    include_str!("sql/schema.sql")
}

/// Keys and indexes, one statement per line.
pub fn keys_sql() -> &'static str {
    include_str!("sql/keys.sql")
}

/// Foreign keys, one statement per line.
pub fn references_sql() -> &'static str {
    include_str!("sql/references.sql")
}

/// The purchase, and the trigger that reorders.
pub fn functions_sql() -> &'static str {
    include_str!("sql/functions.sql")
}

/// The identity of the population.
pub fn population_identity(parameters: &Parameters) -> String {
    let texts = [schema_sql(), keys_sql(), references_sql(), functions_sql()];
    dvdstore::population_identity(parameters, &texts)
}

/// The identity of the workload as this engine runs it.
pub fn identity(parameters: &Parameters) -> String {
    let mut texts = statements::texts();
    texts.push(session::SETTINGS);
    dvdstore::identity(parameters, &population_identity(parameters), &texts)
}
