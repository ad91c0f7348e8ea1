//! A server's log: its last lines, and the cause of a failure that they name. The engine parses the
//! lines: see [`Reader`].

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

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
    /// The last line, without its prefix.
    last: Option<String>,
}

/// How an engine's lines are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// How bad a line is.
    pub severity: fn(&str) -> Severity,
    /// The cause of trouble that a line names.
    pub cause: fn(&str) -> Option<LogCause>,
    /// A line without its prefix.
    pub message: fn(&str) -> &str,
    /// Whether the server logs that a process of its was killed: one that has a single process cannot.
    pub reports_kills: bool,
    /// Whether a line says that the server ends all sessions because a process of its crashed.
    pub is_crash: fn(&str) -> bool,
    /// Whether a line says that it accepts connections.
    pub is_ready: fn(&str) -> bool,
}

/// How bad a line is. The worst line names the cause; what follows it are consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// No error.
    Other,
    /// Of one statement.
    Error,
    /// Of one session, or of the start.
    Fatal,
    /// Of the whole server.
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
    pub(crate) fn read(path: &Path, start_bytes: u64, reader: Reader) -> LogTail {
        let text = read_tail(path, start_bytes).unwrap_or_default();
        LogTail::of(&text, reader)
    }

    /// The tail of this text.
    pub(crate) fn of(text: &str, reader: Reader) -> LogTail {
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let worst = lines
            .iter()
            .filter_map(|line| {
                Some(((reader.severity)(line), (reader.cause)(line)?, (reader.message)(line)))
            })
            // The first of the worst: max_by_key would keep the last.
            .reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
        LogTail {
            lines: lines[lines.len().saturating_sub(TAIL_LINES)..]
                .iter()
                .map(|line| line.to_string())
                .collect(),
            cause: worst.map(|(_, cause, _)| cause),
            evidence: worst.map(|(_, _, message)| message.to_string()),
            last: lines.last().map(|line| (reader.message)(line).to_string()),
        }
    }

    /// The cause with its evidence, or the last line.
    pub fn headline(&self) -> String {
        match (&self.cause, &self.evidence) {
            (Some(cause), Some(evidence)) => format!("{cause} ({evidence})"),
            _ => self.last.clone().unwrap_or_else(|| "it logged nothing".to_string()),
        }
    }
}

impl fmt::Display for LogCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the last crash that this part of a log tells of is not recovered from.
pub(crate) fn is_recovering(log: &str, reader: Reader) -> bool {
    let last = log.lines().rfind(|line| (reader.is_crash)(line) || (reader.is_ready)(line));
    last.is_some_and(reader.is_crash)
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
