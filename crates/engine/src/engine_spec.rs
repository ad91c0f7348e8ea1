//! Which server a database has, with its settings and the sizes that are built into it.
//!
//! Not here: how it works (`engine.rs`) and how its programs move files (`job_spec.rs`).

use crate::settings::{InnodbSettings, PostgresqlSettings};
use underlay_core::Bytes;

/// A database server.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineSpec {
    /// PostgreSQL.
    Postgresql(PostgresqlSettings),
    /// MariaDB with InnoDB tables.
    Mariadb(InnodbSettings),
}

impl EngineSpec {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        match self {
            EngineSpec::Postgresql(_) => 8 << 10,
            EngineSpec::Mariadb(_) => 16 << 10,
        }
    }

    /// The unit in which the log is written: a page of PostgreSQL's log, a block of the file system
    /// for InnoDB.
    pub(crate) fn log_block_bytes(&self) -> u64 {
        match self {
            EngineSpec::Postgresql(_) => 8 << 10,
            EngineSpec::Mariadb(_) => 4 << 10,
        }
    }

    /// Bytes of the doublewrite buffer, which is in the data volume.
    pub(crate) fn doublewrite_bytes(&self) -> Bytes {
        match self {
            EngineSpec::Postgresql(_) => Bytes::ZERO,
            EngineSpec::Mariadb(_) => Bytes::from_mib(2),
        }
    }
}
