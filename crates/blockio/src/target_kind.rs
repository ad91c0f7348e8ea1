//! The two kinds of targets; apart from [`crate::target`] because errors name them too.

use std::fmt;

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetKind::File => "a regular file",
            TargetKind::BlockDevice => "a block device",
        })
    }
}
