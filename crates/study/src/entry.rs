//! What a key or a table of a file holds: nothing, something refused, or a value with its place.
//!
//! "Refused" is distinguished from "absent" so that one mistake is reported once: a refused value is
//! not also missing.

use std::ops::{Deref, Range};

/// A key of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Entry<T> {
    /// The file does not have the key.
    #[default]
    Absent,
    /// The file has it, with a value that was refused and reported.
    Refused,
    /// The file has it.
    Given {
        /// The value.
        value: T,
        /// Its bytes in the file.
        span: Range<usize>,
    },
}

/// A table that may be left out, with all its keys optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Section<T> {
    /// The content; all absent when the file does not have the table.
    pub content: T,
    /// Its bytes in the file (the header, or the inline table); `None` when absent.
    pub span: Option<Range<usize>>,
    /// Whether something else than a table stands there.
    pub refused: bool,
}

impl<T> Entry<T> {
    /// The value, if the file has an accepted one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Entry::Given { value, .. } => Some(value),
            Entry::Absent | Entry::Refused => None,
        }
    }

    /// Whether the file does not have the key at all.
    pub fn is_absent(&self) -> bool {
        matches!(self, Entry::Absent)
    }

    /// The bytes of the value, if the file has an accepted one.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Entry::Given { span, .. } => Some(span.clone()),
            Entry::Absent | Entry::Refused => None,
        }
    }
}

impl<T> Section<T> {
    /// Whether the file has the table, be it right or wrong.
    pub fn is_present(&self) -> bool {
        self.span.is_some()
    }
}

impl<T> Deref for Section<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.content
    }
}
