//! A policy change in progress: the layout that is being filled, and what is missing from it.
//!
//! What is not here: how it is filled and when it takes over (`repair`).

use super::object::Object;
use super::policy::Policy;
use super::regions::RegionSet;
use super::row_copy::RowCopy;

/// A policy change in progress.
#[derive(Clone, Debug)]
pub(super) struct Reshape {
    pub(super) object: Object,
    pub(super) policy: Policy,
    /// Units of the volume that are not in the new layout yet.
    pub(super) pending: RegionSet,
    /// Units of which slices are in flight; `row` is the unit.
    pub(super) units: Vec<RowCopy>,
    pub(super) cursor: u64,
    pub(super) in_flight: u32,
    pub(super) epoch: u32,
}
