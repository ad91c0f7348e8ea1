//! What the findings are derived from.

use crate::analysis::{Bottleneck, Confound, DriverLoad, Peak, Rung, RungValidity, Window};
use crate::digest::Digest;
use crate::ladder::Group;

/// What the findings are derived from.
pub(crate) struct Evidence<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) groups: &'a [Group<'a>],
    pub(crate) windows: &'a [Window],
    pub(crate) rungs: &'a [Rung],
    pub(crate) peaks: &'a [Peak],
    pub(crate) bottlenecks: &'a [Bottleneck],
    pub(crate) validity: &'a [RungValidity],
    pub(crate) driver: &'a [DriverLoad],
    pub(crate) confounds: &'a [Confound],
}
