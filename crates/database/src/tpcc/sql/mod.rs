//! The workload's SQL: one file and one folder for each engine. The texts are part of the workload's identity.

mod dialect;
mod mariadb;
mod postgres;

pub(super) use dialect::Calls;

use underlay_workload::tpcc::{HomeWarehouse, Identity, Parameters, Profile, Tpcc};

use super::{Mode, statements};
use crate::Engine;
use dialect::Dialect;

/// The texts of an engine.
pub(super) fn dialect(engine: Engine) -> &'static Dialect {
    match engine {
        Engine::Postgresql => &postgres::DIALECT,
        Engine::Mariadb => &mariadb::DIALECT,
    }
}

/// The tables of an engine, without the keys that follow the rows.
pub fn schema_sql(engine: Engine) -> &'static str {
    dialect(engine).schema
}

/// The identity of the workload as an engine runs it: results with different identities are not comparable.
pub fn identity(engine: Engine, parameters: &Parameters, mode: Mode) -> Identity {
    let dialect = dialect(engine);
    let settings = dialect.settings.concat();
    let statements = statements::texts(engine).concat();
    let transactions = match mode {
        Mode::Procedures => dialect.procedures,
        Mode::Statements => &statements,
    };
    let texts = [dialect.schema, dialect.keys, &settings, transactions];
    underlay_workload::tpcc::identity(parameters, &texts, mode.as_str())
}

/// The identity of a workload of any profile and homes; that of the specification is [`identity`].
pub fn identity_for(engine: Engine, workload: &Tpcc, mode: Mode) -> Identity {
    let population = identity(engine, &workload.parameters, mode);
    let of_profile = match workload.profile {
        Profile::Specification => population,
        Profile::HammerdbLike => {
            let texts = [population.0.as_str(), dialect(engine).drawn_new_order.text];
            underlay_workload::tpcc::identity(
                &workload.parameters,
                &texts,
                workload.profile.as_str(),
            )
        }
    };
    match workload.home_warehouse {
        HomeWarehouse::Fixed => of_profile,
        HomeWarehouse::Drawn => underlay_workload::tpcc::identity(
            &workload.parameters,
            &[of_profile.0.as_str()],
            "drawn home warehouses",
        ),
    }
}
