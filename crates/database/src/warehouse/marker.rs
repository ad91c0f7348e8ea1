//! What the marker says of the warehouse. How it is written and read is in `schema`.

use underlay_workload::warehouse::{Population, Refreshed};

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What a database holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What was loaded.
    pub population: Population,
    /// What refresh functions did since.
    pub refreshed: Refreshed,
}
