//! How similarity scaling divides the volumes of a study. The divisors of a block load are decided with the load.

use crate::plan::Scale;

/// How similarity scaling divides volumes: their number, where requests in flight are too few to be divided by the whole scale,
/// and their size by what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumeScale {
    /// The number of equal volumes is divided by it.
    pub count: u32,
    /// Their size, the files on them and the rates per volume are.
    pub size: Scale,
}

impl VolumeScale {
    /// Of a database, whose volumes are of each kind one.
    pub fn of(scale: Scale) -> VolumeScale {
        VolumeScale { count: 1, size: scale }
    }
}
