//! A volume: its layouts, its policy, and who serves it.
//!
//! What is not here: the slots and components of a layout (`object`).

use underlay_core::Bytes;

use super::ids::{HostId, VolumeId};
use super::iops_limit::IopsLimit;
use super::object::Object;
use super::policy::Policy;
use super::policy_change::Reshape;
use super::volume_counters::VolumeCounters;

/// One volume.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub(super) id: VolumeId,
    pub(super) name: String,
    pub(super) capacity: Bytes,
    pub(super) policy: Policy,
    pub(super) object: Object,
    /// Number of the layout, counted up by each policy change that ends.
    pub(super) layout: u32,
    /// A policy change in progress.
    pub(super) reshape: Option<Box<Reshape>>,
    /// A policy change that was given up for now.
    pub(super) wanted: Option<Policy>,
    /// Why a repair could not begin, as last announced.
    pub(super) repair_blocked: Option<String>,
    /// The host whose stack serves the volume.
    pub(super) owner: HostId,
    pub(super) limit: Option<IopsLimit>,
    pub(super) available: bool,
    /// Power cuts that took unflushed writes, and how many of them have been reported.
    pub(super) losses: u32,
    pub(super) losses_reported: u32,
    pub(super) counters: VolumeCounters,
}
