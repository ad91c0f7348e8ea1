//! TPC-C on PostgreSQL: schema, load, sessions and checks.
//!
//! The workload itself (inputs, population, ledger, identity) is pure and lives in the `workload`
//! crate; here is what only PostgreSQL can be told. The SQL texts are files of their own in `sql/`:
//! they are part of the workload's identity.
//!
//! Everything lives in the database schema `tpcc`, which carries a marker that says Underlay made it.
//! A schema of that name without the marker is never touched.

mod check;
mod connector;
mod copy;
mod link;
mod load;
mod money;
mod procedures;
mod schema;
mod session;
mod statements;

use std::fmt;
use std::str::FromStr;
use underlay_workload::tpcc::{Identity, Parameters};

pub use check::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, CheckResult, OrderNumbers, TableNames,
    check, order_numbers,
};
pub use connector::TpccConnector;
pub use load::{LoadOptions, LoadProgress, LoadReport, LoadStage, load};
pub use schema::{Described, TpccError, describe, drop_schema};
pub use session::Session;
pub use underlay_workload::tpcc::Outcome;

/// How a transaction reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One call of a server-side function: one round trip, commit included.
    Procedures,
    /// Each SQL statement by itself, with an explicit BEGIN and COMMIT.
    Statements,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 2] = [Mode::Procedures, Mode::Statements];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Procedures => "procedures",
            Mode::Statements => "statements",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no [`Mode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode; use `procedures` or `statements`")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;
    fn from_str(word: &str) -> Result<Mode, UnknownMode> {
        Mode::ALL
            .into_iter()
            .find(|mode| mode.as_str() == word)
            .ok_or_else(|| UnknownMode(word.to_string()))
    }
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
