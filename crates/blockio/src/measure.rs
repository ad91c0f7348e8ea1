//! Everything that a calibration needs, measured on a real target.
//!
//! First reads, which harm nothing; then, only if the target may be written to, writes. A created file is
//! filled before anything is read: holes cost nothing to read, and a device's first write to a place is
//! not like its later ones.

use crate::buffer::Buffers;
use crate::closed_loop::{Job, JobResult, run};
use crate::error::BlockIoError;
use crate::target::Target;
use rustix::fs::fdatasync;
use rustix::io::pwrite;
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_model::calibration::{
    DepthPoint, Figures, Measurements, MixedPoint, Sustained, WriteMeasurements,
};
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, FlushPolicy, Locality, Region, RequestGenerator, Runs,
    SizeShare, Worker,
};

const BLOCK_BYTES: u32 = 4096;
const SEQUENTIAL_BYTES: u32 = 256 << 10;
const SEQUENTIAL_DEPTH: u32 = 16;
const WRITE_DEPTH: u32 = 32;
const BURST_BYTES: u32 = 1 << 20;
const BURSTS: u32 = 15;
const INTERVAL: Duration = Duration::from_millis(100);
/// A sustained run is this many times as long as the others: buffers must fill.
const SUSTAINED_FACTOR: u32 = 4;
const MIXED_READ_SHARE: f64 = 0.7;
/// Above this, the host rather than the target is measured.
const PROCESSOR_LIMIT: f64 = 0.9;

/// What to measure.
#[derive(Clone, Debug)]
pub struct MeasureSpec {
    /// Queue depths of random reads, ascending, the first 1.
    pub depths: Vec<u32>,
    /// Length of each phase.
    pub phase: Duration,
    /// Bytes of the target that are used; all of it at most.
    pub working_set: Bytes,
    /// Of the requests.
    pub seed: RootSeed,
}

/// One step, for progress messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Writing the created file once.
    Fill,
    /// Random reads at a queue depth.
    Read(u32),
    /// Sequential reads.
    SequentialRead,
    /// Single writes and flushes.
    SingleWrite,
    /// Flushes after bursts.
    Burst,
    /// Sequential writes.
    SequentialWrite,
    /// Reads mixed with writes.
    Mixed,
    /// Random writes until they are steady.
    Sustained,
}

/// What was measured, and what to know about it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The figures.
    pub measurements: Measurements,
    /// Doubts about them, as sentences.
    pub doubts: Vec<String>,
}

/// Measures the target; writes to it if it was opened for that. `on_phase` is called for each phase and returns whether
/// to go on; it is also asked during each phase.
///
/// # Errors
/// When a request fails or the callback asks to stop.
pub fn measure(
    target: &Target,
    spec: &MeasureSpec,
    on_phase: &mut dyn FnMut(Phase) -> bool,
) -> Result<Measured, BlockIoError> {
    let mut session = Session { target, spec, on_phase, doubts: Vec::new() };
    let mut reads = Vec::new();
    for depth in &spec.depths {
        reads.push(session.reads(*depth)?);
    }
    let sequential = session.sequential(Phase::SequentialRead, 1.0)?;
    let writes = match target.is_writable() {
        true => Some(session.writes()?),
        false => None,
    };
    let measurements = Measurements {
        block_bytes: BLOCK_BYTES,
        reads,
        sequential_read_bytes_per_second: Some(sequential),
        writes,
    };
    Ok(Measured { measurements, doubts: session.doubts })
}

/// Writes the whole target once.
///
/// # Errors
/// When a request fails or the callback asks to stop.
pub fn fill(
    target: &Target,
    seed: RootSeed,
    on_phase: &mut dyn FnMut(Phase) -> bool,
) -> Result<(), BlockIoError> {
    target.require_writable()?;
    let mut random = seed.stream("blockio.fill", 0);
    let mut buffers = Buffers::new(1, BURST_BYTES, &mut random)?;
    let mut offset = 0;
    while offset < target.size().0 {
        if !on_phase(Phase::Fill) {
            return Err(BlockIoError::Interrupted);
        }
        let length =
            (target.size().0 - offset).min(u64::from(BURST_BYTES)) as u32 & !(BLOCK_BYTES - 1);
        if length == 0 {
            break;
        }
        write_at(target, buffers.bytes(0, length), offset)?;
        offset += u64::from(length);
    }
    flush(target)
}

struct Session<'a> {
    target: &'a Target,
    spec: &'a MeasureSpec,
    on_phase: &'a mut dyn FnMut(Phase) -> bool,
    doubts: Vec<String>,
}

impl Session<'_> {
    fn reads(&mut self, depth: u32) -> Result<DepthPoint, BlockIoError> {
        let result = self.job(Phase::Read(depth), depth, &random(1.0), 1)?;
        let figures = self.figures(&result.read, result.duration, "random reads")?;
        Ok(DepthPoint { queue_depth: depth, figures })
    }

    fn sequential(&mut self, phase: Phase, read_share: f64) -> Result<f64, BlockIoError> {
        let workload = workload(SEQUENTIAL_BYTES, read_share, 0.0);
        let result = self.job(phase, SEQUENTIAL_DEPTH, &workload, 1)?;
        let rate = result.bytes_per_second();
        if rate > 0.0 {
            return Ok(rate);
        }
        Err(BlockIoError::Nothing {
            phase: "sequential requests",
            seconds: self.spec.phase.as_secs_f64(),
        })
    }

    fn writes(&mut self) -> Result<WriteMeasurements, BlockIoError> {
        let (single, flush) = self.single_writes()?;
        let burst_flush_ns = self.burst_flush()?;
        let sequential_bytes_per_second = self.sequential(Phase::SequentialWrite, 0.0)?;
        // Reads mixed with writes in the steady state, so after the long run.
        let sustained = self.sustained()?;
        let mixed = self.mixed()?;
        Ok(WriteMeasurements {
            single,
            flush,
            burst_bytes: u64::from(BURST_BYTES),
            burst_flush_ns,
            sustained,
            sequential_bytes_per_second,
            mixed: Some(mixed),
        })
    }

    fn sustained(&mut self) -> Result<Sustained, BlockIoError> {
        let result = self.job(Phase::Sustained, WRITE_DEPTH, &random(0.0), SUSTAINED_FACTOR)?;
        Ok(Sustained {
            queue_depth: WRITE_DEPTH,
            interval: Nanos(INTERVAL.as_nanos() as u64),
            bytes: result.intervals,
        })
    }

    fn mixed(&mut self) -> Result<MixedPoint, BlockIoError> {
        let result = self.job(Phase::Mixed, WRITE_DEPTH, &random(MIXED_READ_SHARE), 1)?;
        let read = self.figures(&result.read, result.duration, "mixed reads and writes")?;
        Ok(MixedPoint { read_share: MIXED_READ_SHARE, queue_depth: WRITE_DEPTH, read })
    }

    fn single_writes(&mut self) -> Result<(Figures, Figures), BlockIoError> {
        let mut random_bytes = self.spec.seed.stream("blockio.single", 0);
        let mut buffers = Buffers::new(1, BLOCK_BYTES, &mut random_bytes)?;
        let mut places = self.places(&random(0.0));
        let (mut writes, mut flushes) = (Histogram::new(), Histogram::new());
        let (mut write_time, mut flush_time) = (Duration::ZERO, Duration::ZERO);
        let end = Instant::now() + self.spec.phase;
        while Instant::now() < end {
            self.go_on(Phase::SingleWrite)?;
            let begun = Instant::now();
            write_at(self.target, buffers.bytes(0, BLOCK_BYTES), places())?;
            let written = Instant::now();
            flush(self.target)?;
            let flushed = Instant::now();
            writes.record((written - begun).as_nanos() as u64);
            flushes.record((flushed - written).as_nanos() as u64);
            write_time += written - begun;
            flush_time += flushed - written;
        }
        let nanos = |time: Duration| Nanos(time.as_nanos() as u64);
        Ok((
            self.figures(&writes, nanos(write_time), "single writes")?,
            self.figures(&flushes, nanos(flush_time), "flushes")?,
        ))
    }

    /// The median time of a flush after a burst of scattered writes.
    fn burst_flush(&mut self) -> Result<f64, BlockIoError> {
        let mut random_bytes = self.spec.seed.stream("blockio.burst", 0);
        let mut buffers = Buffers::new(1, BLOCK_BYTES, &mut random_bytes)?;
        let mut places = self.places(&random(0.0));
        let mut flushes = Histogram::new();
        for _ in 0..BURSTS {
            self.go_on(Phase::Burst)?;
            for _ in 0..BURST_BYTES / BLOCK_BYTES {
                write_at(self.target, buffers.bytes(0, BLOCK_BYTES), places())?;
            }
            let begun = Instant::now();
            flush(self.target)?;
            flushes.record((begun.elapsed().as_nanos() as u64).max(1));
        }
        Ok(flushes.quantile(0.5).expect("flushes were measured") as f64)
    }

    fn places(&self, workload: &BlockWorkload) -> impl FnMut() -> u64 + use<> {
        let concurrency = Concurrency { threads: 1, queue_depth: 1 };
        let worker = Worker { volume: 1, thread: 0 };
        let set = self.spec.working_set;
        let mut generator =
            RequestGenerator::new(workload, set, concurrency, worker, self.spec.seed);
        move || generator.next_request().offset_bytes
    }

    fn job(
        &mut self,
        phase: Phase,
        queue_depth: u32,
        workload: &BlockWorkload,
        factor: u32,
    ) -> Result<JobResult, BlockIoError> {
        self.go_on(phase)?;
        let job = Job {
            workload,
            working_set: self.spec.working_set,
            queue_depth,
            warm_up: self.spec.phase / 5,
            measure: self.spec.phase * factor,
            interval: INTERVAL,
            seed: self.spec.seed.child("blockio.phase", u64::from(queue_depth)),
        };
        let on_phase = &mut self.on_phase;
        let result = run(self.target, &job, &mut || !on_phase(phase))?;
        if result.processor_share > PROCESSOR_LIMIT {
            self.doubts.push(format!(
                "at queue depth {queue_depth} this host spent {:.0} % of one processor on the requests: it may \
                 be slower than the device",
                result.processor_share * 100.0
            ));
        }
        Ok(result)
    }

    fn figures(
        &self,
        latencies: &Histogram,
        duration: Nanos,
        phase: &'static str,
    ) -> Result<Figures, BlockIoError> {
        let nothing = BlockIoError::Nothing { phase, seconds: self.spec.phase.as_secs_f64() };
        Figures::of(latencies, duration).ok_or(nothing)
    }

    fn go_on(&mut self, phase: Phase) -> Result<(), BlockIoError> {
        if (self.on_phase)(phase) { Ok(()) } else { Err(BlockIoError::Interrupted) }
    }
}

fn random(read_share: f64) -> BlockWorkload {
    workload(BLOCK_BYTES, read_share, 1.0)
}

fn workload(bytes: u32, read_share: f64, random_share: f64) -> BlockWorkload {
    BlockWorkload {
        name: "calibration".to_string(),
        streams: vec![BlockStream {
            name: "all".to_string(),
            weight: 1.0,
            read_share,
            sizes: vec![SizeShare { bytes, weight: 1.0 }],
            random_share,
            locality: Locality::Uniform,
            runs: Runs::PerThread,
            region: Region::WHOLE,
            durability: FlushPolicy::Cached,
        }],
    }
}

fn write_at(target: &Target, bytes: &[u8], offset: u64) -> Result<(), BlockIoError> {
    target.require_writable()?;
    let path = || target.path().to_path_buf();
    match pwrite(target.file(), bytes, offset) {
        Ok(moved) if moved == bytes.len() => Ok(()),
        Ok(moved) => Err(BlockIoError::Short {
            path: path(),
            offset,
            asked: bytes.len() as u32,
            moved: moved as u32,
        }),
        Err(error) => {
            Err(BlockIoError::Target { action: "write to", path: path(), source: error.into() })
        }
    }
}

fn flush(target: &Target) -> Result<(), BlockIoError> {
    fdatasync(target.file()).map_err(|error| BlockIoError::Target {
        action: "flush",
        path: target.path().to_path_buf(),
        source: error.into(),
    })
}
