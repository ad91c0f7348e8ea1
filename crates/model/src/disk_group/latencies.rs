//! Histograms of the latencies that a group has shown, and whose they are.
//!
//! What is not here: the histograms of devices, which each of them keeps.

use crate::request::Operation;
use crate::scheduler::IoClass;
use underlay_core::{Histogram, Nanos};

/// Whose latencies a histogram holds, see [`DiskGroup::take_latencies`](super::DiskGroup::take_latencies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyOf {
    /// Requests of a class to the group, from submission to answer.
    Class(IoClass),
    /// Requests to a device, those it had to wait for included; 0 = the cache device.
    Member(usize),
}

/// Latencies of the answered requests of a group, ns, from submission to answer.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(pub(super) [[Histogram; 2]; 4]);

impl Latencies {
    pub(crate) fn new() -> Latencies {
        Latencies(std::array::from_fn(|_| std::array::from_fn(|_| Histogram::new())))
    }

    /// Reads and writes only.
    pub(crate) fn of(&self, class: IoClass, operation: Operation) -> Option<&Histogram> {
        match operation {
            Operation::Read => Some(&self.0[class.index()][0]),
            Operation::Write => Some(&self.0[class.index()][1]),
            Operation::Flush | Operation::Discard => None,
        }
    }

    pub(crate) fn record(&mut self, class: IoClass, operation: Operation, latency: Nanos) {
        let which = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush | Operation::Discard => return,
        };
        self.0[class.index()][which].record(latency.0);
    }
}
