//! Backup and restore cycles: the names of the job and of what it counts.
//!
//! The data is a population of TPC-C that is never changed, so every backup has the same bytes. What is deliberately not
//! here: the programs that take backups (they are the engines'), clocks.

use underlay_core::Nanos;

use crate::transactional::{Headline, Shape};

/// The type of bytes that a backup writes, in [`SHAPE`].
pub const BACKUP: usize = 0;
/// The type of bytes that a restore writes.
pub const RESTORE: usize = 1;

/// The names of the workload: what backups and restores write is counted while they do, in megabytes (1,000,000 bytes). The result
/// of a run is not that count: it is the rate of its backups.
pub const SHAPE: Shape = Shape {
    name: "backup",
    types: &["backup", "restore"],
    headline: Headline {
        types: &[BACKUP, RESTORE],
        counted: "MB",
        unit: "MB/s",
        period: Nanos::from_secs(1),
    },
    notice: "",
};
