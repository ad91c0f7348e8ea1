//! The checks: what is checked, and the possible results, on every engine.
//!
//! The conditions themselves are queries in each engine's SQL; their identities and titles are the same.

mod condition;
mod ledger;
mod mariadb;
mod options;
mod piece;
mod postgres;
mod result;
mod tables;

use crate::Engine;
use crate::error::SessionError;
use crate::target::Target;

pub use ledger::OrderNumbers;
pub use tables::TableNames;

pub(crate) use condition::{Condition, conditions};
pub(crate) use ledger::{compare, ledger_result};
pub use options::{CheckMoment, CheckOptions};
pub(crate) use piece::{Piece, pieces};
pub(crate) use result::merge;
pub use result::{CheckReport, CheckResult};

/// Makes all checks.
pub(super) async fn check(
    target: &Target,
    options: CheckOptions<'_>,
) -> Result<CheckReport, SessionError> {
    match target.engine {
        Engine::Postgresql => postgres::check(target, options).await,
        Engine::Mariadb => mariadb::check(target, options).await,
    }
}

/// Reads D_NEXT_O_ID of all districts.
pub(super) async fn order_numbers(
    target: &Target,
    tables: &TableNames,
) -> Result<OrderNumbers, SessionError> {
    match target.engine {
        Engine::Postgresql => postgres::order_numbers(&target.connect().await?, tables).await,
        Engine::Mariadb => mariadb::order_numbers(target, tables).await,
    }
}
