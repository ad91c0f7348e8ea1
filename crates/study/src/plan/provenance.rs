//! Where each value of a plan came from.

use std::fmt;

/// One resolved value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Dotted path in the file format, for example `design.nvme.volumes.wal.capacity`.
    pub path: String,
    /// The value as the file would carry it.
    pub value: String,
    /// Who decided.
    pub origin: Origin,
}

/// Who decided a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The study file, or a built-in study.
    File {
        /// Line, from 1.
        line: usize,
    },
    /// The defaults that Underlay documents in `defaults.toml`.
    Default,
    /// A built-in design or device profile.
    Builtin {
        /// Its name.
        name: String,
    },
    /// An option of the command line.
    CommandLine {
        /// The option, for example `--repeats`.
        option: &'static str,
    },
    /// Similarity scaling of a value.
    Scale {
        /// The value before scaling.
        full: String,
        /// Who decided the value before scaling.
        of: Box<Origin>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { line } => write!(f, "line {line}"),
            Origin::Default => f.write_str("default"),
            Origin::Builtin { name } => write!(f, "built-in {name}"),
            Origin::CommandLine { option } => write!(f, "command line {option}"),
            Origin::Scale { full, of } => write!(f, "scaled from {full} ({of})"),
        }
    }
}
