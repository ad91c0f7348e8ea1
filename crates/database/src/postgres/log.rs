//! The server's log: its last lines, and the cause of death they name.

use std::fmt;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The last lines, oldest first.
    pub lines: Vec<String>,
    /// The cause that they name.
    pub cause: Option<LogCause>,
    /// The line that names it.
    pub evidence: Option<String>,
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
    /// The cause with its evidence, or the last line.
    pub fn headline(&self) -> String {
        match (&self.cause, &self.evidence) {
            (Some(cause), Some(evidence)) => format!("{cause} ({evidence})"),
            _ => self.lines.last().cloned().unwrap_or_else(|| "it logged nothing".to_string()),
        }
    }
}

impl fmt::Display for LogCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
