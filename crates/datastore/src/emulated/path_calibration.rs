//! Measures the cost of the export path on an idle host, through the path that will be used.
//!
//! The probe is a direct read of the first block of one volume's block device, which the server answers after a
//! constant time and does not count. The time beyond the constant is the cost of the path. Later, under load,
//! `path_follower` corrects this value.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use underlay_core::{Dilation, Nanos};

use super::server_process::ServerProcess;
use crate::control::{Command, TimingMode};
use crate::error::DatastoreError;
use underlay_export::path_cost::{Compensation, PathCompensation};

/// The first block of the device.
const PROBE_BYTES: usize = 4096;
/// A latency in the middle of those that matter.
const CONSTANT: Nanos = Nanos::from_micros(200);
/// Probes for the floor; the median of the best of several such rows counts, for other work only adds.
const FLOOR_PROBES: usize = 100;
const FLOOR_ROWS: usize = 10;
/// For so long more rows are tried while none is quick enough: a busy host has quiet moments.
const FLOOR_TIME_LIMIT: Duration = Duration::from_secs(10);
/// The start is done when two corrections in a row are smaller than this.
const SETTLED: i64 = 3_000;
/// A busy host never settles.
const SETTLE_STEPS_MAX: usize = 60;

/// The probe's file and where its corrections go.
struct Prober {
    device: File,
    block: AlignedBlock,
    compensation: Compensation,
    dilation: Dilation,
}

/// What the path costs an idle host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibration {
    /// A read through the path without any delay.
    pub(crate) floor: Nanos,
    /// By how much answers must leave early; after following a load, by how much they last did.
    pub(crate) compensation: PathCompensation,
}

/// Measures what the path costs while the host is idle, through a volume's block device that has no other user, and
/// tells the server. Leaves the models in force. A floor below `quick_enough`, the fastest read that there is to be, is
/// waited for on a busy host.
pub(crate) fn calibrate(
    server: &mut ServerProcess,
    block_device: &Path,
    dilation: Dilation,
    quick_enough: Option<Nanos>,
) -> Result<Calibration, DatastoreError> {
    let failed = |action| DatastoreError::file(action, block_device);
    let mut prober = Prober::open(block_device, dilation).map_err(failed("open"))?;
    // In force while the path is measured, so that CPUs are as awake as they will be.
    server.done(&Command::SetTiming(TimingMode::Modelled))?;
    server.done(&Command::Compensate(PathCompensation::default()))?;
    server.done(&Command::Probe { latency_ns: 0 })?;
    let floor = floor(|| prober.read(), quick_enough, FLOOR_TIME_LIMIT).map_err(failed("read"))?;
    server.done(&Command::Probe { latency_ns: CONSTANT.0 })?;
    let mut settled = 0;
    for _ in 0..SETTLE_STEPS_MAX {
        let error_ns = loop {
            let seen = prober.read().map_err(failed("read"))?;
            if let Some(error_ns) = prober.compensation.observe(CONSTANT, seen) {
                break error_ns;
            }
        };
        let found = PathCompensation::of_all(prober.compensation.value());
        server.done(&Command::Compensate(found))?;
        settled = if error_ns.abs() < SETTLED { settled + 1 } else { 0 };
        if settled == 2 {
            break;
        }
    }
    server.done(&Command::EndProbe)?;
    let calibration =
        Calibration { floor, compensation: PathCompensation::of_all(prober.compensation.value()) };
    tracing::info!(?calibration, "calibrated the export path");
    Ok(calibration)
}

impl Prober {
    fn open(path: &Path, dilation: Dilation) -> io::Result<Prober> {
        let device = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        let (block, compensation) = (AlignedBlock::new(), Compensation::default());
        Ok(Prober { device, block, compensation, dilation })
    }

    fn read(&mut self) -> io::Result<Nanos> {
        let begin = Instant::now();
        self.device.read_exact_at(self.block.bytes(), 0)?;
        Ok(self.dilation.design(begin.elapsed().into()))
    }
}

/// The median of the best row of reads.
fn floor(
    mut read: impl FnMut() -> io::Result<Nanos>,
    quick_enough: Option<Nanos>,
    patience: Duration,
) -> io::Result<Nanos> {
    let began = Instant::now();
    let (mut least, mut rows) = (Nanos(u64::MAX), 0);
    let is_slow = |least: Nanos| quick_enough.is_some_and(|enough| least >= enough);
    while rows < FLOOR_ROWS || is_slow(least) && began.elapsed() < patience {
        let row: io::Result<Vec<Nanos>> = (0..FLOOR_PROBES).map(|_| read()).collect();
        let mut row = row?;
        let (_, median, _) = row.select_nth_unstable(FLOOR_PROBES / 2);
        least = least.min(*median);
        rows += 1;
    }
    Ok(least)
}

/// Memory aligned for direct I/O.
struct AlignedBlock {
    memory: Vec<u8>,
    from: usize,
}

impl AlignedBlock {
    fn new() -> AlignedBlock {
        let memory = vec![0x5a; 2 * PROBE_BYTES];
        let from = memory.as_ptr().align_offset(PROBE_BYTES);
        AlignedBlock { memory, from }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + PROBE_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::{FLOOR_PROBES, FLOOR_ROWS, floor};
    use std::time::Duration;
    use underlay_core::Nanos;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Reads of 150 us, and of 40 us in one row later than the usual ones.
    fn busy_at_first(reads: &mut usize) -> Nanos {
        *reads += 1;
        let row = (*reads - 1) / FLOOR_PROBES;
        Nanos::from_micros(if row == FLOOR_ROWS + 3 { 40 } else { 150 })
    }

    #[test]
    fn a_busy_moment_is_waited_out_where_a_device_is_quicker() {
        let mut reads = 0;
        let found = floor(|| Ok(busy_at_first(&mut reads)), Some(Nanos::from_micros(95)), PATIENCE);
        assert_eq!(found.unwrap(), Nanos::from_micros(40));
        assert_eq!(reads, (FLOOR_ROWS + 4) * FLOOR_PROBES);
    }

    #[test]
    fn nothing_is_waited_for_where_the_path_is_quick_enough_or_patience_ends() {
        for (quick_enough, patience) in [
            (None, PATIENCE),
            (Some(Nanos::from_micros(200)), PATIENCE),
            (Some(Nanos::from_micros(95)), Duration::ZERO),
        ] {
            let mut reads = 0;
            let found = floor(|| Ok(busy_at_first(&mut reads)), quick_enough, patience);
            assert_eq!(found.unwrap(), Nanos::from_micros(150));
            assert_eq!(reads, FLOOR_ROWS * FLOOR_PROBES);
        }
    }
}
