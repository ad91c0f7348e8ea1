//! How rows are inserted.

use std::fmt;
use std::str::FromStr;

/// Which transactions the rows are in, and how they travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// One `INSERT` per row, each a transaction of its own: every row waits for the log.
    Implicit,
    /// One `INSERT` per row, all of a session in one transaction: one wait for the log, all or nothing.
    Explicit,
    /// The engine's way of taking a stream of rows (`COPY`, `LOAD DATA`), in one transaction.
    Bulk,
}

/// A word that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mode of insertion: choose implicit, explicit or bulk")]
pub struct UnknownMode(String);

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 3] = [Mode::Implicit, Mode::Explicit, Mode::Bulk];

    /// The word used in options and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Implicit => "implicit",
            Mode::Explicit => "explicit",
            Mode::Bulk => "bulk",
        }
    }

    /// Whether the rows of a session become durable together, or not at all.
    pub const fn is_all_or_nothing(self) -> bool {
        !matches!(self, Mode::Implicit)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Mode, UnknownMode> {
        Mode::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;

    #[test]
    fn words_read_back() {
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert!("none".parse::<Mode>().is_err());
    }
}
