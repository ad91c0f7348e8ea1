//! What the checks are made of that engines say differently: one file for each engine.

mod dialect;
mod mariadb;
mod postgres;

use crate::Engine;
pub(super) use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}
