//! The database server of a plan.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

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

/// The engines a study can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// PostgreSQL.
    #[default]
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [EngineKind; 3] =
        [EngineKind::Postgresql, EngineKind::Mariadb, EngineKind::Mysql];

    /// Its name, for people.
    pub fn title(self) -> &'static str {
        crate::dialect::Dialect::of(self).title
    }

    /// What to do where it is not installed.
    pub fn install(self) -> &'static str {
        crate::dialect::Dialect::of(self).install
    }

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineKind::Postgresql => "postgresql",
            EngineKind::Mariadb => "mariadb",
            EngineKind::Mysql => "mysql",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
