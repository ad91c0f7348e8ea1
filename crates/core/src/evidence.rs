//! The three kinds of evidence, which are never mixed silently.

use std::fmt;

/// How a number was obtained. Every record, page and comparison carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// A real database on a real datastore, in real time.
    Measured,
    /// A real database on modelled devices, in real time.
    Emulated,
    /// Virtual time: no database, no device.
    Simulated,
}

impl Evidence {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Evidence::Measured => "measured",
            Evidence::Emulated => "emulated",
            Evidence::Simulated => "simulated",
        }
    }

    /// The kind named by [`Evidence::as_str`], if any.
    pub fn from_word(word: &str) -> Option<Evidence> {
        [Evidence::Measured, Evidence::Emulated, Evidence::Simulated]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
