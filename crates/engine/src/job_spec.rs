//! Jobs: what a database does without users, until it is done.
//!
//! Plain values, as in [`crate::spec`]. Not here: how a job goes ([`crate::transfer`]), and what it
//! costs ([`crate::DemandProfile`]).

use crate::engine_spec::EngineSpec;
use crate::volume_use::VolumeUse;
use underlay_core::{Bytes, Nanos};
use underlay_workload::batch::{Loop, Mode};
use underlay_workload::tpcc::Tpcc;

/// Backups of TPC-C's data, which nobody changes, each perhaps with its restore beside the
/// database.
#[derive(Clone, Debug, PartialEq)]
pub struct BackupSpec {
    /// The data; its number of warehouses is the size of the database.
    pub tpcc: Tpcc,
    /// How many.
    pub cycles: u32,
    /// Idle time between two of them.
    pub pause: Nanos,
    /// Whether each backup is restored.
    pub restores: bool,
    /// The most that a backup copies per second, where that is limited.
    pub bytes_per_second: Option<u64>,
    /// Where backups go.
    pub volume: VolumeUse,
}

/// Rows that are inserted into one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSpec {
    /// How many.
    pub rows: u32,
    /// Their transactions.
    pub mode: Mode,
    /// Who goes from row to row.
    pub place: Loop,
}

/// How the programs of an engine move files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyForm {
    /// Length of a read request.
    pub(crate) read_bytes: u32,
    /// How many of them are under way or wait for the reader.
    pub(crate) reads_ahead: u32,
    /// Whether a second process writes what the first one reads.
    pub(crate) is_piped: bool,
    /// What may be written into the page cache and not be on the volume; then the writer waits.
    pub(crate) dirty_max: Bytes,
}

/// What a page cache that is not modelled lets a writer be ahead of its volume.
const DIRTY_WITHOUT_CACHE: Bytes = Bytes::from_mib(256);
/// `vm.dirty_ratio`, in percent.
const DIRTY_PERCENT: u64 = 20;
/// The kernel's read-ahead (`read_ahead_kb`), of which the next one is asked for while the last one
/// is read.
const READ_AHEAD: u32 = 128 << 10;
/// mariabackup reads 64 pages at a time and waits for them: it opens tables with `O_DIRECT`.
const MARIABACKUP_READ: u32 = 1 << 20;

impl EngineSpec {
    /// How a backup reads the database and writes its archive.
    pub(crate) fn backup_form(&self) -> CopyForm {
        match self {
            // The server reads files through the page cache, `pg_basebackup` writes the archive.
            EngineSpec::Postgresql(_) => CopyForm { is_piped: true, ..self.restore_form() },
            EngineSpec::Mariadb(_) => CopyForm {
                read_bytes: MARIABACKUP_READ,
                reads_ahead: 1,
                is_piped: false,
                dirty_max: DIRTY_WITHOUT_CACHE,
            },
        }
    }

    /// How a restore reads the archive and writes files: one program through the page cache.
    pub(crate) fn restore_form(&self) -> CopyForm {
        let dirty_max = match self {
            EngineSpec::Postgresql(settings) => {
                Bytes(settings.page_cache.0 * DIRTY_PERCENT / 100).max(Bytes::from_mib(4))
            }
            EngineSpec::Mariadb(_) => DIRTY_WITHOUT_CACHE,
        };
        CopyForm { read_bytes: READ_AHEAD, reads_ahead: 2, is_piped: false, dirty_max }
    }

    /// Memory that keeps files.
    pub(crate) fn page_cache(&self) -> Bytes {
        match self {
            EngineSpec::Postgresql(settings) => settings.page_cache,
            EngineSpec::Mariadb(_) => Bytes::ZERO,
        }
    }
}
