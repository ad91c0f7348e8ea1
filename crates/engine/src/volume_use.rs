//! Which part of a volume is used, by a database or by its backups.
//!
//! Not here: the volume, which is a target of `model`.

use underlay_core::Bytes;

/// The part of a volume that a database uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeUse {
    /// The volume, by its number in the target.
    pub volume: usize,
    /// Where the part begins.
    pub offset: Bytes,
    /// Its length.
    pub length: Bytes,
}
