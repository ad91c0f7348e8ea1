//! Which class an I/O of a database belongs to: the one rule that statistics, causal checks and reports share.
//!
//! A volume server sees volumes and kinds of requests, and nothing of the database. That is enough, because each volume has
//! one purpose: `data`, `wal` (the log of every engine), `temp`, `backup`. What a request is worth to a transaction, and
//! how much of its time the host added, is decided elsewhere.

use underlay_core::IoClass;

use crate::request::Operation;

/// The volume of the log.
pub const LOG_VOLUME: &str = "wal";
/// The volume of backups, for which no session waits.
pub const BACKUP_VOLUME: &str = "backup";

/// The class of a request to `volume`, one of `volumes` of the same database.
///
/// Without a log volume the log lies on one of the others, where writes of log and pages look the same: then all writes and
/// flushes but the backup's count as the log, which never hides a wait.
pub fn class_of(volume: &str, operation: Operation, volumes: &[&str]) -> IoClass {
    let has_log = volume == LOG_VOLUME || !volumes.contains(&LOG_VOLUME);
    match operation {
        _ if volume == BACKUP_VOLUME => IoClass::DataWrite,
        Operation::Read => IoClass::Read,
        Operation::Write | Operation::Flush if has_log => IoClass::Log,
        Operation::Write | Operation::Flush | Operation::Discard => IoClass::DataWrite,
    }
}

#[cfg(test)]
mod tests {
    use super::class_of;
    use crate::request::Operation::{Discard, Flush, Read, Write};
    use underlay_core::IoClass::{DataWrite, Log, Read as Reads};

    #[test]
    fn a_log_of_its_own() {
        let volumes = ["data", "wal", "backup", "temp"];
        let classes = |volume| [Read, Write, Flush, Discard].map(|o| class_of(volume, o, &volumes));
        assert_eq!(classes("data"), [Reads, DataWrite, DataWrite, DataWrite]);
        assert_eq!(classes("wal"), [Reads, Log, Log, DataWrite]);
        assert_eq!(classes("temp"), [Reads, DataWrite, DataWrite, DataWrite]);
        assert_eq!(classes("backup"), [DataWrite; 4]);
    }

    #[test]
    fn a_log_among_the_data_makes_every_write_one_that_may_be_waited_for() {
        let volumes = ["data", "backup"];
        let classes = |volume| [Read, Write, Flush, Discard].map(|o| class_of(volume, o, &volumes));
        assert_eq!(classes("data"), [Reads, Log, Log, DataWrite]);
        assert_eq!(classes("backup"), [DataWrite; 4]);
    }
}
