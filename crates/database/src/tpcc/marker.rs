//! What the marker says of a population. How it is written and read is in `schema`.

use underlay_workload::tpcc::Parameters;

/// Version of the population and of the marker. A change makes older databases unusable for new runs.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What the marker says.
#[derive(Clone, Debug)]
pub struct Described {
    /// What the population was made from.
    pub parameters: Parameters,
    /// Identity of the population as given when it was loaded.
    pub identity: String,
}
