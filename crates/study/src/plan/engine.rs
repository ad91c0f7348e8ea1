//! The database server of a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use underlay_core::words;

use underlay_core::Bytes;

/// The database engine of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct EnginePlan {
    /// Which engine.
    pub kind: EngineKind,
    /// Major version asked for; `None` = the newest one found.
    pub version: Option<u32>,
    /// Server settings from the study, as the engine's configuration file would carry them.
    pub settings: BTreeMap<String, String>,
    /// Memory of the server including the page cache it fills.
    pub memory_limit: Option<Bytes>,
    /// Processors the server may use, as a number of whole processors.
    pub cpus: Option<f64>,
    /// Folder of the server programs; `None` = look for them.
    pub server_bin: Option<PathBuf>,
}

words! {
    /// The engines a study can name.
    #[derive(Default)]
    pub enum EngineKind: "engine" {
        /// PostgreSQL.
        #[default]
        Postgresql = "postgresql",
        /// MariaDB.
        Mariadb = "mariadb",
        /// MySQL.
        Mysql = "mysql",
    }
}

impl EngineKind {
    /// Its name, for people.
    pub fn title(self) -> &'static str {
        crate::dialect::Dialect::of(self).title
    }

    /// What to do where it is not installed.
    pub fn install(self) -> &'static str {
        crate::dialect::Dialect::of(self).install
    }
}
