//! Physical backups of a running server: their forms, their place and how fast they were. Which program
//! takes one, and how it becomes a database again, is each engine's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use underlay_core::Bytes;

use crate::managed::{ServerError, ServerSpec, make_private};

/// The form of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupFormat {
    /// A tree of files.
    Plain,
    /// One archive, large sequential writes: `base.tar` and `pg_wal.tar` of PostgreSQL,
    /// `base.mbstream` of MariaDB.
    Archive,
}

/// A finished backup or its restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Where the backup is.
    pub path: PathBuf,
    /// Its form.
    pub format: BackupFormat,
    /// What was written.
    pub bytes: Bytes,
    /// How long it took, until it was durable.
    pub duration: Duration,
}

impl BackupReport {
    /// Throughput in bytes per second; what took less than a nanosecond counts as having taken one.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes.0 as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// Carries out `take` on a new directory `base-1`, `base-2`, ... below the backup directory. What a
/// failed one leaves is removed: it would look like a backup.
pub(crate) fn in_new_directory<I>(
    spec: &ServerSpec<I>,
    take: impl FnOnce(&Path) -> Result<(), ServerError>,
) -> Result<PathBuf, ServerError> {
    make_private(&spec.backup, spec.run_as.as_ref())?;
    let path = (1u32..)
        .map(|number| spec.backup.join(format!("base-{number}")))
        .find(|path| !path.exists())
        .expect("a directory has fewer than 2^32 entries");
    make_private(&path, spec.run_as.as_ref())?;
    match take(&path) {
        Ok(()) => Ok(path),
        Err(error) => {
            // The first failure is the one to tell.
            let _ = fs::remove_dir_all(&path);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use underlay_core::Bytes;

    use super::{BackupFormat, BackupReport};

    #[test]
    fn throughput_is_bytes_over_time() {
        let report = BackupReport {
            path: "/backup/base-1".into(),
            format: BackupFormat::Plain,
            bytes: Bytes::from_mib(3),
            duration: Duration::from_millis(1_500),
        };
        assert_eq!(report.bytes_per_second(), f64::from(2 << 20));
        let instant = BackupReport { duration: Duration::ZERO, ..report };
        assert!(instant.bytes_per_second().is_finite());
    }
}
