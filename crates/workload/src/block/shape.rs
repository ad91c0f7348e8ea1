//! The names of what a block load does, in the form that all workloads of a study share.

use crate::transactional::{Headline, Shape};
use underlay_core::Nanos;

/// Reads, writes and flushes; the headline is reads and writes per second.
pub static SHAPE: Shape = Shape {
    name: "block",
    types: &["read", "write", "flush"],
    headline: Headline {
        types: &[0, 1],
        counted: "I/Os",
        unit: "IOPS",
        period: Nanos::from_secs(1),
    },
    notice: "",
};
