//! The measurements of a calibration, taken of a modelled device in virtual time.
//!
//! Serves twice: the search measures its candidates this way, and the tests calibrate against a device whose
//! parameters are known.

use super::measurements::{
    DepthPoint, Figures, Measurements, MixedPoint, Sustained, WriteMeasurements,
};
use crate::closed_loop::{ClosedLoop, Pattern, run};
use crate::device::Device;
use crate::profile::DeviceProfile;
use crate::request::Request;
use crate::service_time::unit_interval;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};

/// Addresses used: large enough that nothing is hit twice by chance.
const EXTENT: Bytes = Bytes::from_gib(16);
const SEQUENTIAL_BLOCK_BYTES: u32 = 256 << 10;
const SEQUENTIAL_DEPTH: u32 = 16;
const SINGLE_WRITES: u32 = 4000;
const BURSTS: u32 = 25;

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementPlan {
    /// Bytes per random request.
    pub block_bytes: u32,
    /// Queue depths of random reads.
    pub depths: Vec<u32>,
    /// Requests per queue depth.
    pub requests: u32,
    /// Whether sequential reads are measured.
    pub sequential: Sequential,
    /// What is measured by writing; none = only reads.
    pub writes: Option<WritePlan>,
}

/// Whether sequential reads are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequential {
    /// They are.
    Measured,
    /// They are not.
    Skipped,
}

/// What is measured by writing.
#[derive(Clone, Debug, PartialEq)]
pub struct WritePlan {
    /// Bytes written before a flush.
    pub burst_bytes: u64,
    /// Requests in flight of the sustained run.
    pub sustained_depth: u32,
    /// Length of its intervals.
    pub interval: Nanos,
    /// Number of its intervals.
    pub intervals: usize,
    /// Read share and queue depth of reads beside writes.
    pub mixed: Option<(f64, u32)>,
}

impl MeasurementPlan {
    /// The plan that gives the same figures as `measured`.
    pub fn like(measured: &Measurements) -> MeasurementPlan {
        MeasurementPlan {
            block_bytes: measured.block_bytes,
            depths: measured.reads.iter().map(|point| point.queue_depth).collect(),
            requests: 20_000,
            sequential: match measured.sequential_read_bytes_per_second {
                Some(_) => Sequential::Measured,
                None => Sequential::Skipped,
            },
            writes: measured.writes.as_ref().map(|writes| WritePlan {
                burst_bytes: writes.burst_bytes,
                sustained_depth: writes.sustained.queue_depth,
                interval: writes.sustained.interval,
                intervals: writes.sustained.bytes.len(),
                mixed: writes.mixed.map(|mixed| (mixed.read_share, mixed.queue_depth)),
            }),
        }
    }
}

/// Measures a modelled device.
///
/// # Panics
/// If the profile has problems.
pub fn measure_device(
    profile: &DeviceProfile,
    plan: &MeasurementPlan,
    seed: RootSeed,
) -> Measurements {
    let extent = Bytes(EXTENT.0.min(profile.capacity.0));
    let fresh = Device::with_extent(profile, extent, seed, "calibration");
    let random = |queue_depth, read_share, requests| ClosedLoop {
        queue_depth,
        block_bytes: plan.block_bytes,
        read_share,
        pattern: Pattern::Random,
        extent,
        warm_up: requests / 10 + queue_depth,
        measured: requests,
    };
    let sequential = |read_share| ClosedLoop {
        queue_depth: SEQUENTIAL_DEPTH,
        block_bytes: SEQUENTIAL_BLOCK_BYTES,
        read_share,
        pattern: Pattern::Sequential,
        extent,
        warm_up: 2000,
        measured: 2000,
    };
    let reads = plan.depths.iter().map(|depth| {
        let spec = random(*depth, 1.0, plan.requests);
        let result = run(&mut fresh.clone(), &spec, seed);
        let figures = Figures::of(&result.read, result.duration).expect("requests were measured");
        DepthPoint { queue_depth: *depth, figures }
    });
    Measurements {
        block_bytes: plan.block_bytes,
        reads: reads.collect(),
        sequential_read_bytes_per_second: (plan.sequential == Sequential::Measured)
            .then(|| run(&mut fresh.clone(), &sequential(1.0), seed).bytes_per_second()),
        writes: plan.writes.as_ref().map(|writes| {
            let (single, flush) = single_writes(&mut fresh.clone(), plan.block_bytes, extent, seed);
            let mixed = writes.mixed.map(|(read_share, queue_depth)| {
                let spec = random(queue_depth, read_share, plan.requests);
                let result = run(&mut fresh.clone(), &spec, seed);
                let read = Figures::of(&result.read, result.duration);
                MixedPoint { read_share, queue_depth, read: read.expect("some are reads") }
            });
            WriteMeasurements {
                single,
                flush,
                burst_bytes: writes.burst_bytes,
                burst_flush_ns: burst_flush(&mut fresh.clone(), writes.burst_bytes, extent, seed),
                sustained: sustained(&mut fresh.clone(), writes, plan.block_bytes, extent, seed),
                sequential_bytes_per_second: run(&mut fresh.clone(), &sequential(0.0), seed)
                    .bytes_per_second(),
                mixed,
            }
        }),
    }
}

fn single_writes(
    device: &mut Device,
    block_bytes: u32,
    extent: Bytes,
    seed: RootSeed,
) -> (Figures, Figures) {
    let mut random = seed.stream("calibration.single", 0);
    let (mut writes, mut flushes) = (Histogram::new(), Histogram::new());
    let (mut now, mut write_time, mut flush_time) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    for _ in 0..SINGLE_WRITES {
        let offset = place(&mut random, extent, block_bytes);
        let written = device.submit(now, &Request::write(offset, block_bytes)).at;
        let flushed = device.submit(written, &Request::flush()).at;
        writes.record((written - now).0);
        flushes.record((flushed - written).0);
        write_time += written - now;
        flush_time += flushed - written;
        now = flushed;
    }
    let figures = |histogram: &Histogram, time: Nanos| {
        Figures::of(histogram, Nanos(time.0.max(1))).expect("requests were measured")
    };
    (figures(&writes, write_time), figures(&flushes, flush_time))
}

fn burst_flush(device: &mut Device, burst_bytes: u64, extent: Bytes, seed: RootSeed) -> f64 {
    let mut random = seed.stream("calibration.burst", 0);
    let mut flushes = Histogram::new();
    let mut now = Nanos::ZERO;
    for _ in 0..BURSTS {
        let mut written = now;
        for _ in 0..burst_bytes.div_ceil(4096) {
            let offset = place(&mut random, extent, 4096);
            written = written.max(device.submit(now, &Request::write(offset, 4096)).at);
        }
        let flushed = device.submit(written, &Request::flush()).at;
        flushes.record((flushed - written).0.max(1));
        now = flushed;
    }
    flushes.quantile(0.5).expect("flushes were measured") as f64
}

fn sustained(
    device: &mut Device,
    plan: &WritePlan,
    block_bytes: u32,
    extent: Bytes,
    seed: RootSeed,
) -> Sustained {
    let mut random = seed.stream("calibration.sustained", 0);
    let mut bytes = vec![0; plan.intervals];
    let mut in_flight = BinaryHeap::new();
    let mut write = |device: &mut Device, now: Nanos| {
        let offset = place(&mut random, extent, block_bytes);
        Reverse(device.submit(now, &Request::write(offset, block_bytes)).at)
    };
    in_flight.extend((0..plan.sustained_depth).map(|_| write(device, Nanos::ZERO)));
    while let Some(Reverse(at)) = in_flight.pop() {
        let interval = (at.0 / plan.interval.0.max(1)) as usize;
        let Some(counter) = bytes.get_mut(interval) else { break };
        *counter += u64::from(block_bytes);
        in_flight.push(write(device, at));
    }
    Sustained { queue_depth: plan.sustained_depth, interval: plan.interval, bytes }
}

fn place(random: &mut rand_pcg::Pcg64, extent: Bytes, block_bytes: u32) -> u64 {
    let blocks = extent.0 / u64::from(block_bytes);
    let block = (unit_interval(random) * blocks as f64) as u64;
    block.min(blocks - 1) * u64::from(block_bytes)
}
