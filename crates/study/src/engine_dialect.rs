//! Which dialect each engine has, and what people are told about the engine.
//!
//! What a dialect consists of is in `dialect`, and the values of each in the file of its engine.

use crate::dialect::Dialect;
use crate::plan::EngineKind;
use crate::{mariadb, postgresql};

impl Dialect {
    /// The dialect of an engine.
    pub fn of(kind: EngineKind) -> &'static Dialect {
        match kind {
            EngineKind::Postgresql => &postgresql::DIALECT,
            EngineKind::Mariadb => &mariadb::MARIADB,
            EngineKind::Mysql => &mariadb::MYSQL,
        }
    }
}

impl EngineKind {
    /// Its name, for people.
    pub fn title(self) -> &'static str {
        Dialect::of(self).title
    }

    /// What to do where it is not installed.
    pub fn install(self) -> &'static str {
        Dialect::of(self).install
    }
}
