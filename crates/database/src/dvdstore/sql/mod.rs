//! The workload's SQL: one file and one folder for each engine. The texts are part of the workload's identity.

mod dialect;
mod mariadb;
mod postgres;

pub(super) use dialect::Statements;

use underlay_workload::dvdstore::{self, Parameters};

use crate::Engine;
use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}

/// The identity of the population as an engine holds it.
pub fn population_identity(engine: Engine, parameters: &Parameters) -> String {
    let dialect = dialect(engine);
    let texts = [dialect.schema, dialect.keys, dialect.references, dialect.routines];
    dvdstore::population_identity(parameters, &texts)
}

/// The identity of the workload as an engine runs it: results with different identities are not comparable.
pub fn identity(engine: Engine, parameters: &Parameters) -> String {
    let dialect = dialect(engine);
    let mut texts = dialect.statements.texts();
    texts.extend(dialect.settings);
    dvdstore::identity(parameters, &population_identity(engine, parameters), &texts)
}
