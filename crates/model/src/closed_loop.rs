//! A closed loop in virtual time: what a device shows at a fixed queue depth.
//!
//! The virtual counterpart of `fio --rw=randread --iodepth=N`: as many requests as the queue depth are
//! always in flight, the next is submitted the moment one completes. Used by the tests of the model,
//! by the check of the emulator against it, and by calibration.

use crate::device::Device;
use crate::request::Request;
use crate::service_time::unit_interval;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};

/// What to ask a device for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Requests in flight at any time. At least 1.
    pub queue_depth: u32,
    /// Bytes per request, a multiple of 512.
    pub block_bytes: u32,
    /// Share of requests that are reads, 0..=1; the rest are writes.
    pub read_share: f64,
    /// Where the requests go.
    pub pattern: Pattern,
    /// Addresses used, from 0 on.
    pub extent: Bytes,
    /// Requests completed before measuring starts.
    pub warm_up: u32,
    /// Requests measured. At least 1.
    pub measured: u32,
}

/// In which order addresses are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Uniformly at random, aligned to the block size.
    Random,
    /// One after the other, wrapping at the end.
    Sequential,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedLoopResult {
    /// Latency of reads, ns.
    pub read: Histogram,
    /// Latency of writes, ns.
    pub write: Histogram,
    /// Time the measured requests took together.
    pub duration: Nanos,
    /// Bytes per request, for rates.
    pub block_bytes: u32,
}

impl ClosedLoopResult {
    /// Requests per second, reads and writes.
    pub fn iops(&self) -> f64 {
        (self.read.count() + self.write.count()) as f64 / self.duration.as_secs_f64()
    }

    /// Bytes per second, reads and writes.
    pub fn bytes_per_second(&self) -> f64 {
        self.iops() * f64::from(self.block_bytes)
    }
}

/// Runs the loop on a device, from the time of its last request on.
///
/// # Panics
/// If `spec` is out of its ranges.
pub fn run(device: &mut Device, spec: &ClosedLoop, seed: RootSeed) -> ClosedLoopResult {
    assert!(spec.queue_depth > 0 && spec.measured > 0 && spec.block_bytes > 0);
    let mut random = seed.stream("closed-loop", 0);
    let blocks = spec.extent.0 / u64::from(spec.block_bytes);
    assert!(blocks > 0, "the extent holds at least one block");
    let begin = device.last_arrival();
    let mut in_flight: BinaryHeap<Reverse<(Nanos, u32, bool)>> = BinaryHeap::new();
    let mut result = ClosedLoopResult {
        read: Histogram::new(),
        write: Histogram::new(),
        duration: Nanos::ZERO,
        block_bytes: spec.block_bytes,
    };
    let mut measured_from = begin;
    let mut now = begin;
    let (mut submitted, mut completed) = (0u32, 0u32);
    let total = spec.warm_up + spec.measured;
    let mut arrivals = vec![begin; spec.queue_depth as usize];
    let mut free: Vec<u32> = (0..spec.queue_depth).collect();
    while completed < total {
        while let Some(slot) = free.pop() {
            let block = match spec.pattern {
                Pattern::Random => (unit_interval(&mut random) * blocks as f64) as u64,
                Pattern::Sequential => u64::from(submitted) % blocks,
            };
            let is_read = spec.read_share >= 1.0 || unit_interval(&mut random) < spec.read_share;
            let offset = block.min(blocks - 1) * u64::from(spec.block_bytes);
            let request = if is_read {
                Request::read(offset, spec.block_bytes)
            } else {
                Request::write(offset, spec.block_bytes)
            };
            arrivals[slot as usize] = now;
            in_flight.push(Reverse((device.submit(now, &request).at, slot, is_read)));
            submitted += 1;
        }
        let Reverse((at, slot, is_read)) = in_flight.pop().expect("the queue is kept full");
        now = at;
        completed += 1;
        if completed == spec.warm_up {
            measured_from = now;
        } else if completed > spec.warm_up {
            let latency_ns = (now - arrivals[slot as usize]).0;
            let histogram = if is_read { &mut result.read } else { &mut result.write };
            histogram.record(latency_ns);
        }
        free.push(slot);
    }
    result.duration = now - measured_from;
    result
}
