//! What the marker says of the tables. How it is written and read is in `schema`.

use underlay_workload::sysbench::Parameters;

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What the marker says; the script is left at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What the rows were made from.
    pub parameters: Parameters,
}
