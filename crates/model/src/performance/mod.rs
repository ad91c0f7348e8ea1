//! The performance service: what a cluster's volumes, hosts, disk groups and devices have done, under stable names.
//!
//! In reading order: what is measured of each kind of thing ([`measures`]), and the [`Catalogue`] of all things of a cluster.
//! Counters are cumulative, gauges as they are; rates, shares and ratios are computed on reading. Latencies are
//! histograms and come from [`crate::cluster::Cluster::take_latencies`].
//!
//! Names follow the published performance service where it has one; where they differ, the counters of
//! [`crate::disk_group::GroupCounters`] name its own.
//!
//! What is not here: what clients of a volume see (their server knows), rates, and time.

mod emulator_status;

mod measures;

mod catalogue;

pub use catalogue::Catalogue;
pub use emulator_status::{EmulatorStatus, Reduced};
