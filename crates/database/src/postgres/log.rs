//! The server's log: its last lines, and the cause of trouble that they name.
//!
//! Lines start with `log_line_prefix` as [`PREFIX`] sets it, which carries the SQLSTATE:
//!
//! ```text
//! 2026-01-01 10:00:00.123 UTC [42] checkpointer 53100 PANIC:  could not write to file "pg_wal/...
//! ```

use crate::managed::{LogCause, Reader, Severity};

/// `log_line_prefix`: time, process, kind of process, SQLSTATE.
pub(crate) const PREFIX: &str = "%m [%p] %b %e ";

/// How lines of this log are read.
pub(crate) const READER: Reader =
    Reader { severity, cause: cause_of, message, reports_kills: true, is_crash, is_ready };

/// What a line says about a cause. Codes first: they are the server's own words; then texts, for the
/// lines that the postmaster writes about others.
fn cause_of(line: &str) -> Option<LogCause> {
    let has = |text: &str| line.contains(text);
    let code = |code: &str| line.contains(&format!(" {code} "));
    if code("53100") || has("No space left on device") || has("Disk quota exceeded") {
        return Some(LogCause::DiskFull);
    }
    if has("Address already in use") || has("could not create any TCP/IP sockets") {
        return Some(LogCause::AddressInUse);
    }
    // Children of a postmaster that was killed alone release it a moment later.
    if (has("lock file \"") && has("already exists")) || has("pre-existing shared memory block") {
        return Some(LogCause::AddressInUse);
    }
    if code("58030") || has("Input/output error") || has("Read-only file system") {
        return Some(LogCause::IoError);
    }
    if code("53200") || has("Cannot allocate memory") {
        return Some(LogCause::OutOfMemory);
    }
    if code("XX001")
        || code("XX002")
        || has("could not locate a valid checkpoint record")
        || has("incorrect checksum in control file")
    {
        return Some(LogCause::Corruption);
    }
    if has("unrecognized configuration parameter")
        || has("invalid value for parameter")
        || has("outside the valid range for parameter")
        || (has("configuration file") && has("contains errors"))
        || (severity(line) >= Severity::Fatal && (code("22023") || code("F0000")))
    {
        return Some(LogCause::Configuration);
    }
    if has("was terminated by signal") || severity(line) == Severity::Panic {
        return Some(LogCause::Crash);
    }
    None
}

/// The postmaster says so after the line that names the process.
fn is_crash(line: &str) -> bool {
    line.contains(" LOG:  terminating any other active server processes")
}

fn is_ready(line: &str) -> bool {
    line.contains(" LOG:  database system is ready to accept connections")
}

fn severity(line: &str) -> Severity {
    if line.contains(" PANIC:  ") {
        Severity::Panic
    } else if line.contains(" FATAL:  ") {
        Severity::Fatal
    } else if line.contains(" ERROR:  ") {
        Severity::Error
    } else {
        Severity::Other
    }
}

/// The line without its prefix.
fn message(line: &str) -> &str {
    [" PANIC:  ", " FATAL:  ", " ERROR:  ", " WARNING:  ", " LOG:  ", " HINT:  ", " DETAIL:  "]
        .iter()
        .find_map(|mark| line.split_once(mark))
        .map_or(line, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::READER;
    use crate::managed::{LogCause, LogTail};

    fn check(text: &str, cause: Option<LogCause>, evidence: &str) {
        let tail = LogTail::of(text, READER);
        assert_eq!(tail.cause, cause, "{text}");
        assert!(tail.headline().contains(evidence), "{}", tail.headline());
    }

    const TIME: &str = "2026-01-01 10:00:00.123 UTC [42]";

    #[test]
    fn names_the_cause_and_not_its_consequences() {
        check(
            &format!(
                "{TIME} checkpointer 53100 PANIC:  could not write to file \"pg_wal/xlogtemp.9\": No space left on device\n\
                 {TIME} postmaster 00000 LOG:  checkpointer process (PID 43) was terminated by signal 6: Aborted\n\
                 {TIME} postmaster 00000 LOG:  terminating any other active server processes\n"
            ),
            Some(LogCause::DiskFull),
            "a volume is full (could not write to file \"pg_wal",
        );
        check(
            &format!(
                "{TIME} walwriter 58030 PANIC:  could not fdatasync file \"0001\": Input/output error\n"
            ),
            Some(LogCause::IoError),
            "I/O error",
        );
        check(
            &format!(
                "{TIME} postmaster 00000 LOG:  server process (PID 7) was terminated by signal 9: Killed\n"
            ),
            Some(LogCause::Crash),
            "signal 9",
        );
        check(
            &format!(
                "{TIME} postmaster 53200 FATAL:  could not map anonymous shared memory: Cannot allocate memory\n"
            ),
            Some(LogCause::OutOfMemory),
            "memory ran out",
        );
        check(
            &format!(
                "{TIME} client backend XX001 ERROR:  invalid page in block 3 of relation base/5/16384\n"
            ),
            Some(LogCause::Corruption),
            "block 3",
        );
        check(
            &format!("{TIME} startup XX000 PANIC:  could not locate a valid checkpoint record\n"),
            Some(LogCause::Corruption),
            "checkpoint record",
        );
    }

    #[test]
    fn ordinary_lines_name_nothing() {
        check(
            &format!(
                "{TIME} client backend 40P01 ERROR:  deadlock detected\n\
                 {TIME} client backend 57P03 FATAL:  the database system is starting up\n\
                 {TIME} client backend 57P01 FATAL:  terminating connection due to administrator command\n\
                 {TIME} postmaster 00000 LOG:  database system is shut down\n"
            ),
            None,
            "database system is shut down",
        );
        check("", None, "it logged nothing");
    }

    #[test]
    fn the_first_of_the_worst_lines_counts() {
        check(
            &format!(
                "{TIME} client backend 53100 ERROR:  could not extend file \"base/5/1\": No space left on device\n\
                 {TIME} walwriter 58030 PANIC:  could not write to log file: Input/output error\n\
                 {TIME} checkpointer 53100 PANIC:  could not write: No space left on device\n"
            ),
            Some(LogCause::IoError),
            "log file",
        );
    }

    #[test]
    fn reads_only_what_is_new() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let old = format!("{TIME} x 53100 PANIC:  No space left on device\n");
        std::fs::write(file.path(), format!("{old}{TIME} x 00000 LOG:  ready\n")).unwrap();
        assert_eq!(LogTail::read(file.path(), 0, READER).cause, Some(LogCause::DiskFull));
        let tail = LogTail::read(file.path(), old.len() as u64, READER);
        assert_eq!((tail.cause, tail.lines.len()), (None, 1));
    }
}
