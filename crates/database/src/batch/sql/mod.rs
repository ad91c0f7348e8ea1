//! The workload's SQL: one file for each engine.

mod dialect;
mod mariadb;
mod postgres;

use crate::Engine;
use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}
