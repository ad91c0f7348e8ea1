//! Measuring what the export path itself costs, through the path that will be used.
//!
//! Medians of direct 4 KiB reads, one at a time, from a file on a mounted volume: without any delay (the *floor*),
//! and with a constant modelled latency, once with CPUs allowed to sleep and once with CPUs kept awake by
//! threads that yield to everybody. What a client sees beyond the constant, together with the wake-ups that the
//! server saw meanwhile, gives the two points of [`PathLine`].
//!
//! Other work on the host only ever adds time, so each median is the least of several short ones. Where a host
//! is so busy that the usual read of every window waited for a processor, its quickest tenth stands for the
//! path: the wait belongs to the host's load, which is reported as lateness, not to the path.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use underlay_core::{Histogram, Nanos};

use super::server_process::{ServerProcess, unexpected};
use crate::control::{Answer, Command, TimingMode};
use crate::error::DatastoreError;
use crate::path_cost::{PathLine, PathPoint};
use crate::scheduling::yield_to_everybody;

const FILE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 4096;
/// Each median is the least of this many, each over this span.
const WINDOWS: usize = 5;
const WINDOW: Duration = Duration::from_millis(50);
/// A window goes on until it holds this many reads, but not longer than [`WINDOW_MAX`].
const READS_MIN: u64 = 50;
const WINDOW_MAX: Duration = Duration::from_millis(400);
/// A median this many times its quickest tenth is that of a busy host.
const BUSY_FACTOR: u64 = 4;
/// The path has four hand-overs that may each wake a sleeping CPU, 25 us at worst. What is seen beyond that was
/// other work on the host; to compensate for it would answer far too early when the work is done.
const BEYOND_MAX: Nanos = Nanos::from_micros(120);
/// A latency in the middle of those that matter.
const CONSTANT: Nanos = Nanos::from_micros(200);

/// Measures in a directory on a mounted volume, tells the server, and returns the floor. Leaves timing off.
pub(crate) fn calibrate(
    server: &mut ServerProcess,
    directory: &Path,
) -> Result<Nanos, DatastoreError> {
    let path = directory.join(".underlay-calibration");
    server.done(&Command::SetTiming(TimingMode::Off))?;
    let file = create(&path).map_err(DatastoreError::file("write", &path));
    let outcome = file.and_then(|file| measure(server, &file, &path));
    std::fs::remove_file(&path).map_err(DatastoreError::file("remove", &path))?;
    conclude(server, outcome)
}

/// The same through a block device, of which the first megabyte is read and nothing is written. Nobody else may use
/// any volume meanwhile.
pub(crate) fn calibrate_device(
    server: &mut ServerProcess,
    device: &Path,
) -> Result<Nanos, DatastoreError> {
    server.done(&Command::SetTiming(TimingMode::Off))?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device);
    let file = file.map_err(DatastoreError::file("open", device));
    let outcome = file.and_then(|file| measure(server, &file, device));
    conclude(server, outcome)
}

fn conclude(
    server: &mut ServerProcess,
    outcome: Result<(Nanos, PathLine), DatastoreError>,
) -> Result<Nanos, DatastoreError> {
    server.done(&Command::SetTiming(TimingMode::Off))?;
    let (floor, line) = outcome?;
    tracing::info!(?floor, ?line, "calibrated the export path");
    server.done(&Command::Compensate(line))?;
    Ok(floor)
}

fn measure(
    server: &mut ServerProcess,
    file: &File,
    path: &Path,
) -> Result<(Nanos, PathLine), DatastoreError> {
    let floor = least_median(file).map_err(DatastoreError::file("read", path))?;
    server.done(&Command::SetTiming(TimingMode::Constant { latency_ns: CONSTANT.0 }))?;
    let mut point = || -> Result<PathPoint, DatastoreError> {
        server.done(&Command::Compensate(PathLine::default()))?;
        let seen = least_median(file).map_err(DatastoreError::file("read", path))?;
        let wake_ns = usual_wake(server)?;
        let beyond_ns = seen.saturating_sub(CONSTANT).min(BEYOND_MAX).0;
        let wake_ns = wake_ns.min(beyond_ns);
        Ok(PathPoint { wake_ns, way_ns: beyond_ns - wake_ns })
    };
    let asleep = point()?;
    let awake = with_cpus_awake(&mut point)?;
    Ok((floor, PathLine { awake, asleep }))
}

fn usual_wake(server: &mut ServerProcess) -> Result<u64, DatastoreError> {
    match server.ask(&Command::Timing)? {
        Answer::Timing(entry) => Ok(entry.wake_ns),
        other => Err(unexpected(&Command::Timing, &other)),
    }
}

/// Runs something while every CPU has a thread that takes it whenever nobody else wants it.
fn with_cpus_awake<T>(run: impl FnOnce() -> T) -> T {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                // Without the permission to step back they would disturb what is measured.
                if yield_to_everybody().is_ok() {
                    while !ends.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        let outcome = run();
        ends.store(true, Ordering::Relaxed);
        outcome
    })
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

fn least_median(file: &File) -> std::io::Result<Nanos> {
    let mut buffer = Aligned::new(READ_BYTES);
    let medians: std::io::Result<Vec<Nanos>> =
        (0..WINDOWS).map(|_| median_read(file, &mut buffer)).collect();
    Ok(medians?.into_iter().min().expect("there are several windows"))
}

fn median_read(file: &File, buffer: &mut Aligned) -> std::io::Result<Nanos> {
    let mut latency = Histogram::new();
    let begin = Instant::now();
    let blocks = (FILE_BYTES / READ_BYTES) as u64;
    while begin.elapsed() < WINDOW || (latency.count() < READS_MIN && begin.elapsed() < WINDOW_MAX)
    {
        // A stride coprime to the number of blocks visits all of them out of order.
        let block = latency.count() * 97 % blocks;
        let start = Instant::now();
        file.read_exact_at(buffer.bytes_mut(), block * READ_BYTES as u64)?;
        latency.record(Nanos::from(start.elapsed()).0);
    }
    Ok(usual(&latency))
}

/// The median; on a host so busy that the median read waited for a processor, the quickest tenth.
fn usual(latency: &Histogram) -> Nanos {
    let quantile = |q| latency.quantile(q).expect("the window holds at least one read");
    let (quick, median) = (quantile(0.1), quantile(0.5));
    Nanos(if median > BUSY_FACTOR * quick { quick } else { median })
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

#[cfg(test)]
mod tests {
    use super::usual;
    use underlay_core::{Histogram, Nanos};

    fn of(values_us: &[u64]) -> Nanos {
        let mut latency = Histogram::new();
        values_us.iter().for_each(|us| latency.record(us * 1_000));
        usual(&latency)
    }

    #[test]
    fn an_idle_host_is_judged_by_its_median_a_busy_one_by_its_quickest_reads() {
        let near = |found: Nanos, us: u64| found.0.abs_diff(us * 1_000) < us * 1_000 / 64;
        assert!(near(of(&[38, 40, 42, 42, 42, 43, 44, 60, 90, 200]), 42));
        assert!(near(of(&[40, 45, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000]), 40));
    }
}
