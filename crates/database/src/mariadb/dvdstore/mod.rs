//! The web shop on MariaDB: schema, load, sessions and checks.
//!
//! The workload itself is pure and lives in the `workload` crate; what all engines share is in [`crate::dvdstore`];
//! here is what only MariaDB can be told. The SQL texts in `sql/` are part of the workload's identity.
//!
//! Everything lives in the target's database (`dvdstore` where none is named), which carries a marker that says Underlay
//! filled it. A database with tables and without the marker is never touched.

mod check;
mod load;
mod schema;
mod session;
mod statements;

use underlay_workload::dvdstore::{self, Parameters};

pub use check::{CheckConnection, check, tally};
pub use load::load;
pub use schema::{describe, drop_tables};
pub use session::Session;

use crate::target::Target;

/// The database that is used where a target names none.
const DATABASE: &str = "dvdstore";

/// The tables with their primary keys.
pub fn schema_sql() -> &'static str {
    include_str!("sql/schema.sql")
}

/// Secondary indexes, one statement per line.
pub fn keys_sql() -> &'static str {
    include_str!("sql/keys.sql")
}

/// Foreign keys, one statement per line.
pub fn references_sql() -> &'static str {
    include_str!("sql/references.sql")
}

/// The purchase, and the trigger that reorders.
pub fn procedures_sql() -> &'static str {
    include_str!("sql/procedures.sql")
}

/// The identity of the population.
pub fn population_identity(parameters: &Parameters) -> String {
    let texts = [schema_sql(), keys_sql(), references_sql(), procedures_sql()];
    dvdstore::population_identity(parameters, &texts)
}

/// The identity of the workload as this engine runs it.
pub fn identity(parameters: &Parameters) -> String {
    let mut texts = statements::texts();
    texts.extend(session::SETTINGS);
    dvdstore::identity(parameters, &population_identity(parameters), &texts)
}

/// The target with the database that is used, and its name.
fn database_of(target: &Target) -> (Target, String) {
    let name = match target.database.as_str() {
        "" => DATABASE,
        name => name,
    };
    (target.with_database(name), name.to_string())
}
