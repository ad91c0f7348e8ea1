//! Measuring what the export path itself costs, through the path that will be used.
//!
//! Two medians of direct 4 KiB reads, one at a time, from a file on a mounted volume: without any delay (the
//! *floor*), and with a constant modelled latency (the *overshoot*: what a client sees beyond it). The
//! overshoot is the constant by which requests are then answered early.
//!
//! One constant for all: at larger queue depths and on busy CPUs the path costs less than on an idle host,
//! where each hand-over first wakes a sleeping CPU, so answers are then a little early.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use underlay_core::{Histogram, Nanos};

use super::server_process::ServerProcess;
use crate::control::{Command, TimingMode};
use crate::error::DatastoreError;

const FILE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 4096;
/// Time spent on each of the two medians.
const SPAN: Duration = Duration::from_millis(250);
/// Discarded at the beginning of each.
const WARM_UP_READS: usize = 50;
/// A latency in the middle of those that matter.
const CONSTANT: Nanos = Nanos::from_micros(200);

/// What the path costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathCost {
    pub(crate) floor: Nanos,
    pub(crate) compensation: Nanos,
}

/// Measures in a directory on a mounted volume and tells the server. Leaves timing off.
pub(crate) fn calibrate(
    server: &mut ServerProcess,
    directory: &Path,
) -> Result<PathCost, DatastoreError> {
    let path = directory.join(".underlay-calibration");
    let outcome = measure(server, &path);
    std::fs::remove_file(&path).map_err(DatastoreError::file("remove", &path))?;
    server.done(&Command::SetTiming(TimingMode::Off))?;
    let cost = outcome?;
    server.done(&Command::Compensate {
        floor_ns: cost.floor.0,
        compensation_ns: cost.compensation.0,
    })?;
    Ok(cost)
}

fn measure(server: &mut ServerProcess, path: &Path) -> Result<PathCost, DatastoreError> {
    server.done(&Command::SetTiming(TimingMode::Off))?;
    server.done(&Command::Compensate { floor_ns: 0, compensation_ns: 0 })?;
    let file = create(path).map_err(DatastoreError::file("write", path))?;
    let median = || median_read(&file).map_err(DatastoreError::file("read", path));
    let floor = median()?;
    server.done(&Command::SetTiming(TimingMode::Constant { latency_ns: CONSTANT.0 }))?;
    let compensation = median()?.saturating_sub(CONSTANT);
    // The way back alone is part of both; noise must not turn them round.
    Ok(PathCost { floor: floor.min(compensation), compensation })
}

fn create(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)?;
    let buffer = Aligned::new(FILE_BYTES);
    file.write_all_at(buffer.bytes(), 0)?;
    file.sync_all()?;
    Ok(file)
}

fn median_read(file: &File) -> std::io::Result<Nanos> {
    let mut buffer = Aligned::new(READ_BYTES);
    let mut latency = Histogram::new();
    let begin = Instant::now();
    let blocks = (FILE_BYTES / READ_BYTES) as u64;
    let mut reads = 0;
    while begin.elapsed() < SPAN || reads < 2 * WARM_UP_READS {
        // A stride coprime to the number of blocks visits all of them out of order.
        let block = reads as u64 * 97 % blocks;
        let start = Instant::now();
        file.read_exact_at(buffer.bytes_mut(), block * READ_BYTES as u64)?;
        if reads >= WARM_UP_READS {
            latency.record(Nanos::from(start.elapsed()).0);
        }
        reads += 1;
    }
    Ok(Nanos(latency.quantile(0.5).expect("reads were recorded")))
}

/// Memory aligned for direct I/O.
struct Aligned {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let memory = vec![0x5a; length + READ_BYTES];
        let from = memory.as_ptr().align_offset(READ_BYTES);
        Aligned { memory, from, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}
