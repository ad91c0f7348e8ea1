//! One volume as the exports see it, wherever its bytes are.

use super::volume::VolumeData;

/// One volume as the export sees it.
pub(crate) struct ExportedVolume {
    pub(crate) name: String,
    pub(crate) capacity_bytes: u64,
    /// Its bytes, if they are in a file of its own; those of a cluster's volume are in components.
    pub(crate) data: Option<VolumeData>,
    /// Flushes are acknowledged and ignored.
    pub(crate) lies: bool,
}

impl ExportedVolume {
    /// Whether a range lies within the volume.
    pub(crate) fn contains(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= self.capacity_bytes)
    }
}
