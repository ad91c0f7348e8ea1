//! The kinds of transactions, by the names of sysbench's scripts.

use std::fmt;
use std::str::FromStr;
use underlay_core::Words;

/// A kind of transaction: the event of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    /// Reads, updates, a delete and an insert in one transaction.
    ReadWrite,
    /// The reads of `read_write` in one transaction.
    ReadOnly,
    /// The writes of `read_write` in one transaction.
    WriteOnly,
    /// One select by id.
    PointSelect,
    /// One update of the indexed column.
    UpdateIndex,
    /// One update of a column without index.
    UpdateNonIndex,
    /// One insert.
    Insert,
    /// One delete.
    Delete,
    /// One insert of many rows into a table of the user's own.
    BulkInsert,
}

/// A word that names no [`Script`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a sysbench script; use one of {known}")]
pub struct UnknownScript {
    word: String,
    known: String,
}

impl Script {
    /// All scripts, in the order of their [`index`](Script::index).
    pub const ALL: [Script; 9] = [
        Script::ReadWrite,
        Script::ReadOnly,
        Script::WriteOnly,
        Script::PointSelect,
        Script::UpdateIndex,
        Script::UpdateNonIndex,
        Script::Insert,
        Script::Delete,
        Script::BulkInsert,
    ];

    /// The place in [`Script::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in records: sysbench's, without `oltp_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Script::ReadWrite => "read_write",
            Script::ReadOnly => "read_only",
            Script::WriteOnly => "write_only",
            Script::PointSelect => "point_select",
            Script::UpdateIndex => "update_index",
            Script::UpdateNonIndex => "update_non_index",
            Script::Insert => "insert",
            Script::Delete => "delete",
            Script::BulkInsert => "bulk_insert",
        }
    }

    /// Whether it is a transaction of several statements between BEGIN and COMMIT.
    pub const fn is_explicit(self) -> bool {
        matches!(self, Script::ReadWrite | Script::ReadOnly | Script::WriteOnly)
    }

    /// Whether it changes anything.
    pub const fn writes(self) -> bool {
        !matches!(self, Script::ReadOnly | Script::PointSelect)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Words for Script {
    const NAME: &'static str = "script";

    fn all() -> &'static [Script] {
        &Script::ALL
    }

    fn word(self) -> &'static str {
        self.as_str()
    }

    /// In every spelling that [`FromStr`] accepts.
    fn from_word(text: &str) -> Option<Script> {
        text.parse().ok()
    }
}

impl FromStr for Script {
    type Err = UnknownScript;

    /// With or without sysbench's `oltp_`, with hyphens or underscores.
    fn from_str(word: &str) -> Result<Script, UnknownScript> {
        let name = word.replace('-', "_");
        let name = name.strip_prefix("oltp_").unwrap_or(&name);
        Script::ALL.into_iter().find(|script| script.as_str() == name).ok_or_else(|| {
            UnknownScript {
                word: word.to_string(),
                known: Script::ALL.map(Script::as_str).join(", "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Script;

    #[test]
    fn sysbenchs_names_are_understood() {
        for (index, script) in Script::ALL.into_iter().enumerate() {
            assert_eq!(script.index(), index);
            assert_eq!(script.as_str().parse(), Ok(script));
            assert_eq!(format!("oltp_{script}").parse(), Ok(script));
        }
        assert_eq!("read-write".parse(), Ok(Script::ReadWrite));
        let error = "select".parse::<Script>().unwrap_err().to_string();
        assert!(error.starts_with("`select` is not a sysbench script; use one of read_write, "));
    }
}
