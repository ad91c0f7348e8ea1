//! What every block device can be asked for.

/// The four things a block device can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Return bytes.
    Read,
    /// Store bytes.
    Write,
    /// Make every completed write durable.
    Flush,
    /// Forget a range.
    Discard,
}

impl Operation {
    /// All operations, in the order used by counters.
    pub const ALL: [Operation; 4] =
        [Operation::Read, Operation::Write, Operation::Flush, Operation::Discard];

    /// The word used in series names and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
        }
    }

    /// Position in [`Operation::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
