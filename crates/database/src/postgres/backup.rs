//! Backups by `pg_basebackup`, and how fast they were.

use std::path::PathBuf;
use std::time::Duration;

use underlay_core::Bytes;

/// The form of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupFormat {
    /// A tree of files.
    Plain,
    /// `base.tar` and `pg_wal.tar`: large sequential writes.
    Tar,
}

/// A finished backup or its restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Where the backup is.
    pub path: PathBuf,
    /// Its form.
    pub format: BackupFormat,
    /// What it holds.
    pub bytes: Bytes,
    /// How long it took, until it was durable.
    pub duration: Duration,
}

impl BackupReport {
    /// Throughput in bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes.0 as f64 / self.duration.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}
