//! The workload's SQL: one file for each engine.

mod dialect;
mod mariadb;
mod postgres;

pub(super) use dialect::{Bulk, Count};

use underlay_workload::sysbench::Parameters;

use super::statement::Kind;
use crate::Engine;
use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}

/// The identity of the workload as an engine runs it: results with different identities are not comparable.
pub fn identity(engine: Engine, parameters: &Parameters) -> String {
    let dialect = dialect(engine);
    let mut texts = vec![dialect.table, dialect.keys];
    texts.extend(dialect.settings);
    texts.extend(Kind::ALL.map(|kind| (dialect.statement)(kind).text));
    underlay_workload::sysbench::identity(parameters, &texts)
}
