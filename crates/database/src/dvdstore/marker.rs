//! What the marker says of the shop. How it is written and read is in `schema`.

use underlay_workload::dvdstore::Parameters;

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What the marker says; the behaviour is left at its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What the rows were made from.
    pub parameters: Parameters,
    /// The identity of the population as it was loaded.
    pub identity: String,
}
