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

/// Where a follower looks, and whom it tells.
trait Path {
    /// What the block layer has counted.
    fn block(&mut self) -> BlockCounters;

    /// The same, with what the server has counted.
    fn count(&mut self) -> Result<Counted, DatastoreError>;

    /// How early answers leave from now on.
    fn compensate(&mut self, value: Nanos) -> Result<(), DatastoreError>;
}

/// The path through block devices of this host.
struct HostPath {
    control: ControlConnection,
    block_devices: Vec<String>,
}

impl Path for HostPath {
    fn block(&mut self) -> BlockCounters {
        self.block_devices.iter().map(|device| BlockCounters::read(device)).sum()
    }

    fn count(&mut self) -> Result<Counted, DatastoreError> {
        let stat = match self.control.ask(&Command::Stat)? {
            Answer::Stat(stat) => stat,
            other => return Err(unexpected(&Command::Stat, &other)),
        };
        let block = self.block();
        Ok(Counted { block, modelled_ios: stat.modelled_ios, modelled_ns: stat.modelled_ns })
    }

    fn compensate(&mut self, value: Nanos) -> Result<(), DatastoreError> {
        self.control.done(&Command::Compensate { ns: value.0 })
    }
}

impl PathFollower {
    /// Follows from what is right for the moment.
    pub(crate) fn start(
        control: ControlConnection,
        block_devices: Vec<String>,
        compensation: Nanos,
    ) -> Result<PathFollower, DatastoreError> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let follow = move || {
            let mut path = HostPath { control, block_devices };
            let mut compensation = Compensation::starting_from(compensation);
            // Once the server has ended there is nothing to follow; whoever owns it says so.
            if let Err(error) = follow(&told, &mut path, &mut compensation) {
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
    path: &mut impl Path,
    compensation: &mut Compensation,
) -> Result<(), DatastoreError> {
    let mut before = path.count()?;
    while !ends.load(Ordering::Relaxed) {
        thread::park_timeout(PERIOD);
        // The server need not wake for volumes that nobody uses.
        if path.block().since(before.block).ios < REQUESTS_MIN {
            continue;
        }
        let now = path.count()?;
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
        path.compensate(compensation.value())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BlockCounters, Counted, Path, follow};
    use crate::error::DatastoreError;
    use crate::path_cost::Compensation;
    use std::sync::atomic::{AtomicBool, Ordering};
    use underlay_core::Nanos;

    /// What happens from one look to the next: requests and their mean time at the block layer, then at the server.
    type Round = ((u64, u64), (u64, u64));

    struct Script<'a> {
        rounds: std::slice::Iter<'a, Round>,
        ends: &'a AtomicBool,
        counted: Counted,
        told: Vec<u64>,
    }

    impl Path for Script<'_> {
        fn block(&mut self) -> BlockCounters {
            match self.rounds.next() {
                Some(((block_ios, block_ns), (modelled_ios, modelled_ns))) => {
                    self.counted.block.ios += block_ios;
                    self.counted.block.ns += block_ios * block_ns;
                    self.counted.modelled_ios += modelled_ios;
                    self.counted.modelled_ns += modelled_ios * modelled_ns;
                }
                None => self.ends.store(true, Ordering::Relaxed),
            }
            self.counted.block
        }

        fn count(&mut self) -> Result<Counted, DatastoreError> {
            Ok(self.counted)
        }

        fn compensate(&mut self, value: Nanos) -> Result<(), DatastoreError> {
            self.told.push(value.0);
            Ok(())
        }
    }

    #[test]
    fn answers_leave_earlier_while_requests_take_longer_than_they_should() {
        let rounds = [
            // Too few to say anything; they count with the next.
            ((50, 150_000), (50, 100_000)),
            ((250, 150_000), (250, 100_000)),
            // Half of them were not modelled: nothing can be compared.
            ((400, 300_000), (200, 100_000)),
            ((400, 80_000), (400, 100_000)),
        ];
        let ends = AtomicBool::new(false);
        let mut path = Script {
            rounds: rounds.iter(),
            ends: &ends,
            counted: Counted::default(),
            told: Vec::new(),
        };
        let mut compensation = Compensation::starting_from(Nanos(40_000));
        follow(&ends, &mut path, &mut compensation).unwrap();
        let [longer, shorter] = path.told[..] else { panic!("{:?}", path.told) };
        assert!(longer > 40_000 && longer <= 90_000, "{longer}");
        assert!(shorter < longer && shorter >= longer - 20_000, "{shorter}");
        assert_eq!(compensation.value(), Nanos(shorter));
    }
}
