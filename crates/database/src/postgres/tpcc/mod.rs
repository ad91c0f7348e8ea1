//! TPC-C on PostgreSQL: schema, load, sessions and checks.
//!
//! The workload itself (inputs, population, ledger, identity) is pure and lives in the `workload`
//! crate; here is what only PostgreSQL can be told. The SQL texts are files of their own in `sql/`:
//! they are part of the workload's identity.
//!
//! Everything lives in the database schema `tpcc`, which carries a marker that says Underlay made it.
//! A schema of that name without the marker is never touched.

mod check;
mod copy;
mod load;
mod procedures;
mod schema;
mod session;
mod statements;

use underlay_workload::tpcc::{Identity, Parameters, Profile, Tpcc};

pub use crate::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, CheckResult, Described, LoadOptions,
    LoadProgress, LoadReport, LoadStage, Mode, OrderNumbers, Outcome, TableNames, TpccConnector,
    TpccError,
};
pub use check::{check, order_numbers};
pub use load::load;
pub use schema::{describe, drop_schema};
pub use session::Session;

/// The conditions that the checks are made of.
#[cfg(test)]
pub(crate) fn conditions() -> &'static [crate::tpcc::check::Condition] {
    check::CONDITIONS
}

/// The tables, without keys.
pub fn schema_sql() -> &'static str {
    include_str!("sql/schema.sql")
}

/// Keys and indexes, one statement per line.
pub fn keys_sql() -> &'static str {
    include_str!("sql/keys.sql")
}

/// The five transactions as functions.
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
    let statements = statements::texts().concat();
    let texts: Vec<&str> = match mode {
        Mode::Procedures => vec![schema_sql(), keys_sql(), session::SETTINGS, procedures_sql()],
        Mode::Statements => vec![schema_sql(), keys_sql(), session::SETTINGS, &statements],
    };
    underlay_workload::tpcc::identity(parameters, &texts, mode.as_str())
}
