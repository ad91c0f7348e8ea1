//! Following what the export path costs while the volumes are in use.
//!
//! Ten times a second the kernel's block layer is asked how long requests took, and the server how long the
//! model said they should take. The difference of the means corrects the compensation. The block layer sees what
//! the server cannot: requests that wait for a CPU before they reach it, and answers that wait for one after they
//! left it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use underlay_core::Nanos;

use super::block_counters::BlockCounters;
use super::server_process::{ControlConnection, unexpected};
use crate::control::{Answer, Command};
use crate::error::DatastoreError;
use crate::path_cost::Compensation;

const PERIOD: Duration = Duration::from_millis(100);
/// Fewer requests say too little: the block layer counts whole milliseconds.
const REQUESTS_MIN: u64 = 100;

/// A running follower.
pub(crate) struct PathFollower {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Nanos>,
}

/// What both sides have counted up to some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    block: BlockCounters,
    modelled_ios: u64,
    modelled_ns: u64,
}

impl PathFollower {
    /// Follows from what is right for the moment.
    pub(crate) fn start(
        mut control: ControlConnection,
        block_devices: Vec<String>,
        compensation: Nanos,
    ) -> Result<PathFollower, DatastoreError> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let follow = move || {
            let mut compensation = Compensation::starting_from(compensation);
            // Once the server has ended there is nothing to follow; whoever owns it says so.
            if let Err(error) = follow(&told, &mut control, &block_devices, &mut compensation) {
                tracing::debug!("no longer following the path: {error}");
            }
            compensation.value()
        };
        let thread = thread::Builder::new()
            .name("path-follower".to_string())
            .spawn(follow)
            .map_err(DatastoreError::system("start a thread"))?;
        Ok(PathFollower { ends, thread })
    }

    /// Ends it and returns the last compensation.
    pub(crate) fn stop(self) -> Nanos {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("the follower does not panic")
    }
}

fn follow(
    ends: &AtomicBool,
    control: &mut ControlConnection,
    block_devices: &[String],
    compensation: &mut Compensation,
) -> Result<(), DatastoreError> {
    let mut before = count(control, block_devices)?;
    while !ends.load(Ordering::Relaxed) {
        thread::park_timeout(PERIOD);
        // The server need not wake for volumes that nobody uses.
        if block_counters(block_devices).since(before.block).ios < REQUESTS_MIN {
            continue;
        }
        let now = count(control, block_devices)?;
        let block = now.block.since(before.block);
        // Reset by a power cycle, or too little to tell.
        let modelled_ios = now.modelled_ios.saturating_sub(before.modelled_ios);
        if block.ios.min(modelled_ios) < REQUESTS_MIN {
            continue;
        }
        let modelled_ns = now.modelled_ns.saturating_sub(before.modelled_ns);
        before = now;
        // Requests that were not modelled (timing was off for a while) were counted by the block layer alone.
        if block.ios.abs_diff(modelled_ios) * 20 > block.ios {
            continue;
        }
        let (seen, expected) = (block.ns / block.ios, modelled_ns / modelled_ios);
        compensation.correct(seen as f64 - expected as f64);
        control.done(&Command::Compensate { ns: compensation.value().0 })?;
    }
    Ok(())
}

fn block_counters(devices: &[String]) -> BlockCounters {
    devices.iter().map(|device| BlockCounters::read(device)).sum()
}

fn count(
    control: &mut ControlConnection,
    block_devices: &[String],
) -> Result<Counted, DatastoreError> {
    let stat = match control.ask(&Command::Stat)? {
        Answer::Stat(stat) => stat,
        other => return Err(unexpected(&Command::Stat, &other)),
    };
    let block = block_counters(block_devices);
    Ok(Counted { block, modelled_ios: stat.modelled_ios, modelled_ns: stat.modelled_ns })
}
