//! The server's log: its last lines, and the cause of trouble that they name.
//!
//! Lines start with `log_line_prefix` as [`PREFIX`] sets it, which carries the SQLSTATE:
//!
//! ```text
//! 2026-01-01 10:00:00.123 UTC [42] checkpointer 53100 PANIC:  could not write to file "pg_wal/...
//! ```

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// `log_line_prefix`: time, process, kind of process, SQLSTATE.
pub(crate) const PREFIX: &str = "%m [%p] %b %e ";

/// How much of the end of the log is read.
const TAIL_BYTES: u64 = 256 * 1024;
/// How many lines of it are kept.
const TAIL_LINES: usize = 40;

/// What the log says about why the server is in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCause {
    /// A volume is full.
    DiskFull,
    /// The storage returned errors.
    IoError,
    /// Memory ran out, or a process was killed for it.
    OutOfMemory,
    /// A server process was killed or crashed.
    Crash,
    /// The configuration or the command line was refused.
    Configuration,
    /// The port or socket is taken.
    AddressInUse,
    /// Files are damaged.
    Corruption,
}

/// The end of the server's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The last lines, oldest first.
    pub lines: Vec<String>,
    /// The cause that they name.
    pub cause: Option<LogCause>,
    /// The line that names it, without its prefix.
    pub evidence: Option<String>,
}

/// How bad a line is. The worst line names the cause; what follows it are consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Other,
    Error,
    Fatal,
    Panic,
}

impl LogCause {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogCause::DiskFull => "a volume is full",
            LogCause::IoError => "the storage returned an I/O error",
            LogCause::OutOfMemory => "memory ran out",
            LogCause::Crash => "a server process crashed or was killed",
            LogCause::Configuration => "the configuration was refused",
            LogCause::AddressInUse => "the port or socket is in use",
            LogCause::Corruption => "data files are damaged",
        }
    }
}

impl LogTail {
    /// Reads the end of the file, but nothing before `start_bytes`: earlier lines belong to an
    /// earlier start. A file that cannot be read has no lines.
    pub(crate) fn read(path: &Path, start_bytes: u64) -> LogTail {
        let text = read_tail(path, start_bytes).unwrap_or_default();
        LogTail::of(&text)
    }

    /// The tail of this text.
    pub(crate) fn of(text: &str) -> LogTail {
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let worst = lines
            .iter()
            .filter_map(|line| Some((severity(line), cause_of(line)?, message(line))))
            // The first of the worst: max_by_key would keep the last.
            .reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
        LogTail {
            lines: lines[lines.len().saturating_sub(TAIL_LINES)..]
                .iter()
                .map(|line| line.to_string())
                .collect(),
            cause: worst.map(|(_, cause, _)| cause),
            evidence: worst.map(|(_, _, message)| message.to_string()),
        }
    }

    /// The cause with its evidence, or the last line.
    pub fn headline(&self) -> String {
        match (&self.cause, &self.evidence) {
            (Some(cause), Some(evidence)) => format!("{cause} ({evidence})"),
            _ => self
                .lines
                .last()
                .map_or_else(|| "it logged nothing".to_string(), |line| message(line).to_string()),
        }
    }
}

impl fmt::Display for LogCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The whole log of one start, for questions about its beginning.
pub(crate) fn read_since(path: &Path, start_bytes: u64) -> String {
    read_from(path, start_bytes).unwrap_or_default()
}

fn read_tail(path: &Path, start_bytes: u64) -> std::io::Result<String> {
    let length = path.metadata()?.len();
    read_from(path, start_bytes.max(length.saturating_sub(TAIL_BYTES)))
}

fn read_from(path: &Path, start_bytes: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start_bytes))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

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
    // Children of a postmaster that was killed alone let go of it a moment later.
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
    use super::{LogCause, LogTail};

    fn check(text: &str, cause: Option<LogCause>, evidence: &str) {
        let tail = LogTail::of(text);
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
        assert_eq!(LogTail::read(file.path(), 0).cause, Some(LogCause::DiskFull));
        let tail = LogTail::read(file.path(), old.len() as u64);
        assert_eq!((tail.cause, tail.lines.len()), (None, 1));
    }
}
