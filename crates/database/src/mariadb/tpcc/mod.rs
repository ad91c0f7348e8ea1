//! TPC-C on MariaDB: schema, load, sessions and checks.
//!
//! The workload itself (inputs, population, ledger, identity) is pure and lives in the `workload`
//! crate; what all engines share is in [`crate::tpcc`]; here is what only MariaDB can be told. The SQL
//! texts are files of their own in `sql/`: they are part of the workload's identity.
//!
//! Everything lives in the target's database (`tpcc` where none is named), which carries a marker that
//! says Underlay filled it. A database with tables and without the marker is never touched.

mod check;
mod load;
mod new_order;
mod procedures;
mod rows;
mod schema;
mod session;
mod statements;

use underlay_workload::tpcc::{Identity, Parameters, Profile, Tpcc};

use crate::target::Target;
use crate::tpcc::Mode;

pub use check::{check, order_numbers};
pub use load::load;
pub use schema::{describe, drop_schema};
pub use session::Session;

/// The database that is used where a target names none.
const DATABASE: &str = "tpcc";

/// The tables with their primary keys.
pub fn schema_sql() -> &'static str {
    include_str!("sql/schema.sql")
}

/// Secondary indexes, one statement per line.
pub fn keys_sql() -> &'static str {
    include_str!("sql/keys.sql")
}

/// The five transactions as procedures.
pub fn procedures_sql() -> &'static str {
    include_str!("sql/procedures.sql")
}

/// New-Order with lines that the database draws.
pub fn drawn_new_order_sql() -> &'static str {
    include_str!("sql/drawn_new_order.sql")
}

/// The identity of a workload of any profile; that of the specification is [`identity`].
pub fn identity_for(workload: &Tpcc, mode: Mode) -> Identity {
    match workload.profile {
        Profile::Specification => identity(&workload.parameters, mode),
        Profile::HammerdbLike => {
            let population = identity(&workload.parameters, mode);
            let texts = [population.0.as_str(), drawn_new_order_sql()];
            underlay_workload::tpcc::identity(
                &workload.parameters,
                &texts,
                workload.profile.as_str(),
            )
        }
    }
}

/// The identity of the workload as this engine runs it: results with different identities are not
/// comparable.
pub fn identity(parameters: &Parameters, mode: Mode) -> Identity {
    let settings = session::SETTINGS.concat();
    let statements = statements::texts().concat();
    let texts: Vec<&str> = match mode {
        Mode::Procedures => vec![schema_sql(), keys_sql(), &settings, procedures_sql()],
        Mode::Statements => vec![schema_sql(), keys_sql(), &settings, &statements],
    };
    underlay_workload::tpcc::identity(parameters, &texts, mode.as_str())
}

/// The target with the database that is used, and its name.
fn database_of(target: &Target) -> (Target, String) {
    let name = match target.database.as_str() {
        "" => DATABASE,
        name => name,
    };
    (target.with_database(name), name.to_string())
}
