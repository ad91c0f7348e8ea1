//! The warehouse's SQL. Queries and tables are written once; the file of an engine has what it writes differently.

mod dialect;
mod mariadb;
mod postgres;
pub(super) mod queries;
mod tables;

pub(super) use tables::{keys, tables};

use crate::Engine;
use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}
