//! How MariaDB's error log is read:
//!
//! ```text
//! 2026-01-01 10:00:00 0 [ERROR] InnoDB: Write to file ./ibdata1 failed ... No space left on device
//! 2026-01-01T10:00:00.123456Z 0 [ERROR] [MY-012592] [InnoDB] Operating system error number 28 ...
//! ```

use crate::managed::{LogCause, Reader, Severity};

/// How lines of this log are read.
pub(crate) const READER: Reader =
    Reader { severity, cause: cause_of, message, reports_kills: false, is_crash: no, is_ready: no };

/// It has one process: a crash ends it, which is noticed without its log.
fn no(_: &str) -> bool {
    false
}

/// Said when all of a database is on disk and the server ends.
const SHUTDOWN_COMPLETE: &str = "Shutdown complete";
/// Said when connections are accepted.
const READY: &str = "ready for connections";

/// Whether the text of a log says that the last server that was ready was also shut down completely. A
/// log without any start belongs to a database that was just made.
pub(crate) fn ended_cleanly(text: &str) -> bool {
    match (text.rfind(READY), text.rfind(SHUTDOWN_COMPLETE)) {
        (Some(ready), Some(complete)) => complete > ready,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// Whether the text of one start's log tells of a recovery.
pub(crate) fn has_recovered(text: &str) -> bool {
    ["Starting crash recovery", "Starting recovery", "was not shutdown normally"]
        .iter()
        .any(|mark| text.contains(mark))
}

fn cause_of(line: &str) -> Option<LogCause> {
    let has = |text: &str| line.contains(text);
    // Numbers of the system's errors stand at the end of a word: `errno: 28`, `error number 28`.
    let number = |number: &str| {
        ["errno: ", "errno=", "error number ", "error number: ", "OS error: ", "error: "]
            .iter()
            .any(|name| {
                line.split(&format!("{name}{number}"))
                    .skip(1)
                    .any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
            })
    };
    if has("No space left on device")
        || has("Disk quota exceeded")
        || has("Disk full")
        || number("28")
    {
        return Some(LogCause::DiskFull);
    }
    if has("Address already in use")
        || has("Unable to lock ./ib")
        || has("Can't lock aria control file")
        || has("Another process with pid")
    {
        return Some(LogCause::AddressInUse);
    }
    if has("Input/output error") || has("Read-only file system") || number("5") {
        return Some(LogCause::IoError);
    }
    if has("Cannot allocate memory") || has("Out of memory") || number("12") {
        return Some(LogCause::OutOfMemory);
    }
    if has("page corruption")
        || has("is corrupted")
        || has("Corrupted page")
        || has("Invalid log header checksum")
        || has("Invalid redo log")
        || (has("ib_logfile0") && has("not found"))
    {
        return Some(LogCause::Corruption);
    }
    if has("unknown variable")
        || has("unknown option")
        || has("Unknown suffix")
        || has("Error while setting value")
        || has("ambiguous option")
    {
        return Some(LogCause::Configuration);
    }
    if severity(line) == Severity::Panic {
        return Some(LogCause::Crash);
    }
    None
}

fn severity(line: &str) -> Severity {
    let is_panic =
        ["[FATAL]", " got signal ", " got exception ", "Assertion failure", "Assertion `"];
    if is_panic.iter().any(|mark| line.contains(mark)) {
        Severity::Panic
    } else if line.contains("[ERROR]") {
        Severity::Error
    } else {
        Severity::Other
    }
}

/// The line without time and thread.
fn message(line: &str) -> &str {
    ["[ERROR] ", "[Warning] ", "[Note] ", "[System] "]
        .iter()
        .find_map(|mark| line.split_once(mark))
        .map_or(line, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::{READER, ended_cleanly, has_recovered};
    use crate::managed::{LogCause, LogTail};

    fn check(text: &str, cause: Option<LogCause>, evidence: &str) {
        let tail = LogTail::of(text, READER);
        assert_eq!(tail.cause, cause, "{text}");
        assert!(tail.headline().contains(evidence), "{}", tail.headline());
    }

    #[test]
    fn names_the_cause_and_not_its_consequences() {
        check(
            "2026-01-01 10:00:00 0 [ERROR] InnoDB: preallocating 8192 bytes for file ./t.ibd failed with error 28\n\
             2026-01-01 10:00:00 0 [ERROR] InnoDB: The error means the disk is full: No space left on device\n\
             2026-01-01 10:00:00 0 [ERROR] Aborting\n",
            Some(LogCause::DiskFull),
            "a volume is full",
        );
        check(
            "2026-01-01 10:00:00 0 [ERROR] [FATAL] InnoDB: write(\"ib_logfile0\") returned I/O error 5: Input/output error\n\
             261122 10:00:00 [ERROR] mysqld got signal 6 ;\n",
            Some(LogCause::IoError),
            "ib_logfile0",
        );
        check(
            "2026-01-01 10:00:00 0 [ERROR] mariadbd: unknown variable 'inodb_buffer_pool_size=1M'\n\
             2026-01-01 10:00:00 0 [ERROR] Aborting\n",
            Some(LogCause::Configuration),
            "inodb_buffer_pool_size",
        );
        check(
            "2026-01-01 10:00:00 0 [ERROR] InnoDB: Operating system error number 12 in a file operation.\n",
            Some(LogCause::OutOfMemory),
            "memory ran out",
        );
        check(
            "261122 10:00:00 [ERROR] mysqld got signal 11 ;\n",
            Some(LogCause::Crash),
            "signal 11",
        );
        check(
            "2026-01-01 10:00:00 0 [ERROR] InnoDB: File ./ib_logfile0 was not found\n",
            Some(LogCause::Corruption),
            "ib_logfile0",
        );
    }

    #[test]
    fn ordinary_lines_name_nothing() {
        check(
            "2026-01-01 10:00:00 0 [Note] InnoDB: log sequence number 28; transaction id 5\n\
             2026-01-01 10:00:00 3 [Warning] Aborted connection 3 to db: 'tpcc' (Got an error reading communication packets)\n\
             2026-01-01 10:00:00 0 [Note] mariadbd: ready for connections.\n",
            None,
            "ready for connections",
        );
    }

    #[test]
    fn knows_the_end_of_a_life() {
        let ready = "x [Note] mariadbd: ready for connections.\n";
        let complete = "x [Note] mariadbd: Shutdown complete\n";
        assert!(ended_cleanly(""));
        assert!(ended_cleanly(&format!("{ready}{complete}")));
        assert!(!ended_cleanly(ready));
        assert!(!ended_cleanly(&format!("{ready}{complete}{ready}")));
        assert!(has_recovered("x [Note] InnoDB: Starting crash recovery from checkpoint LSN=5\n"));
        assert!(!has_recovered(ready));
    }
}
