//! Follows the cost of the export path while the volumes are in use.
//!
//! Ten times a second the kernel's block layer is asked how long requests took, and the server is asked how long they
//! should have taken by the model. For replies that left at once it reports how long they took in the server, because no
//! compensation can make up for a host that is slower than the device. The difference of the means corrects the
//! compensation of reads, and that of writes (see `path_cost`). The block layer sees what the server
//! cannot: requests that wait for a CPU before they reach it, and answers that wait for one after they left it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use underlay_core::{Dilation, Nanos};

use super::block_counters::BlockCounters;
use super::server_process::{ControlConnection, unexpected};
use crate::control::{Answer, Command};
use crate::error::DatastoreError;
use underlay_export::path_cost::{ByDirection, Compensation, Counted, PathCompensation};

const PERIOD: Duration = Duration::from_millis(100);
/// Fewer requests say too little: the block layer counts whole milliseconds.
const REQUESTS_MIN: u64 = 100;

/// A running follower.
pub(crate) struct PathFollower {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<PathCompensation>,
}

/// What both sides have counted up to some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    block: ByDirection,
    expected: ByDirection,
}

/// One compensation, and what both sides had counted when it was last looked at.
struct Followed {
    compensation: Compensation,
    block: Counted,
    expected: Counted,
}

impl Followed {
    fn starting_from(value_ns: u64, block: Counted, expected: Counted) -> Followed {
        Followed { compensation: Compensation::starting_from(Nanos(value_ns)), block, expected }
    }

    /// Corrects it, if there is enough to tell. Returns whether it did.
    fn look(&mut self, block: Counted, expected: Counted) -> bool {
        let (seen, expected_since) = (block.since(self.block), expected.since(self.expected));
        // Reset by a power cycle, or too little to tell.
        if seen.ios.min(expected_since.ios) < REQUESTS_MIN {
            return false;
        }
        (self.block, self.expected) = (block, expected);
        // Requests that were not modelled (timing was off for a while) were counted by the block layer alone.
        if seen.ios.abs_diff(expected_since.ios) * 20 > seen.ios {
            return false;
        }
        let means = (seen.ns / seen.ios, expected_since.ns / expected_since.ios);
        self.compensation.correct(means.0 as f64 - means.1 as f64);
        true
    }
}

/// Reads and writes.
struct Followers {
    reads: Followed,
    writes: Followed,
}

impl Followers {
    fn new(from: PathCompensation, Seen { block, expected }: Seen) -> Followers {
        let starting_from = Followed::starting_from;
        Followers {
            reads: starting_from(from.reads_ns, block.reads, expected.reads),
            writes: starting_from(from.writes_ns, block.writes, expected.writes),
        }
    }

    fn look(&mut self, Seen { block, expected }: Seen) -> bool {
        let reads = self.reads.look(block.reads, expected.reads);
        let writes = self.writes.look(block.writes, expected.writes);
        reads || writes
    }

    fn value(&self) -> PathCompensation {
        let value = |followed: &Followed| followed.compensation.value().0;
        PathCompensation { reads_ns: value(&self.reads), writes_ns: value(&self.writes) }
    }
}

/// Where a follower looks, and whom it tells.
trait Path {
    /// What the block layer has counted.
    fn block(&mut self) -> BlockCounters;

    /// The same, with what the server has counted.
    fn count(&mut self) -> Result<Seen, DatastoreError>;

    /// How early answers leave from now on.
    fn compensate(&mut self, value: PathCompensation) -> Result<(), DatastoreError>;
}

/// The path through block devices of this host.
struct HostPath {
    control: ControlConnection,
    block_devices: Vec<String>,
    dilation: Dilation,
}

impl Path for HostPath {
    fn block(&mut self) -> BlockCounters {
        let devices = self.block_devices.iter();
        devices.map(|device| BlockCounters::read(device, self.dilation)).sum()
    }

    fn count(&mut self) -> Result<Seen, DatastoreError> {
        let stat = match self.control.ask(&Command::Stat)? {
            Answer::Stat(stat) => stat,
            other => return Err(unexpected(&Command::Stat, &other)),
        };
        Ok(Seen { block: self.block().0, expected: stat.expected })
    }

    fn compensate(&mut self, value: PathCompensation) -> Result<(), DatastoreError> {
        self.control.done(&Command::Compensate(value))
    }
}

impl PathFollower {
    /// Follows from what is right for the moment.
    pub(crate) fn start(
        control: ControlConnection,
        (block_devices, dilation): (Vec<String>, Dilation),
        compensation: PathCompensation,
    ) -> Result<PathFollower, DatastoreError> {
        let ends = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ends);
        let follow = move || {
            let mut path = HostPath { control, block_devices, dilation };
            let mut compensation = compensation;
            // Once the server has ended there is nothing to follow; its owner reports that.
            if let Err(error) = follow(&stop, &mut path, &mut compensation) {
                tracing::debug!("no longer following the path: {error}");
            }
            compensation
        };
        let thread = thread::Builder::new()
            .name("path-follower".to_string())
            .spawn(follow)
            .map_err(DatastoreError::system("start a thread"))?;
        Ok(PathFollower { ends, thread })
    }

    /// Ends it and returns the last compensation.
    pub(crate) fn stop(self) -> PathCompensation {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("the follower does not panic")
    }
}

fn follow(
    ends: &AtomicBool,
    path: &mut impl Path,
    compensation: &mut PathCompensation,
) -> Result<(), DatastoreError> {
    let first = path.count()?;
    let mut followers = Followers::new(*compensation, first);
    let mut looked_at = first.block.total();
    while !ends.load(Ordering::Relaxed) {
        thread::park_timeout(PERIOD);
        // The server need not wake up for unused volumes.
        if path.block().0.total().since(looked_at).ios < REQUESTS_MIN {
            continue;
        }
        let now = path.count()?;
        looked_at = now.block.total();
        if followers.look(now) {
            *compensation = followers.value();
            path.compensate(*compensation)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BlockCounters, Path, Seen, follow};
    use crate::error::DatastoreError;
    use std::sync::atomic::{AtomicBool, Ordering};
    use underlay_core::Nanos;
    use underlay_export::path_cost::{Counted, PathCompensation};

    /// Requests and their mean time at the block layer, then at the server.
    type Round = ((u64, u64), (u64, u64));

    /// What happens from one look to the next, reads and writes.
    struct Script<'a> {
        rounds: std::slice::Iter<'a, [Round; 2]>,
        ends: &'a AtomicBool,
        seen: Seen,
        reported: Vec<PathCompensation>,
    }

    impl Path for Script<'_> {
        fn block(&mut self) -> BlockCounters {
            let Some([reads, writes]) = self.rounds.next() else {
                self.ends.store(true, Ordering::Relaxed);
                return BlockCounters(self.seen.block);
            };
            let add = |counted: &mut Counted, (ios, ns): (u64, u64)| {
                *counted = counted.plus(Counted { ios, ns: ios * ns });
            };
            add(&mut self.seen.block.reads, reads.0);
            add(&mut self.seen.expected.reads, reads.1);
            add(&mut self.seen.block.writes, writes.0);
            add(&mut self.seen.expected.writes, writes.1);
            BlockCounters(self.seen.block)
        }

        fn count(&mut self) -> Result<Seen, DatastoreError> {
            Ok(self.seen)
        }

        fn compensate(&mut self, value: PathCompensation) -> Result<(), DatastoreError> {
            self.reported.push(value);
            Ok(())
        }
    }

    fn reported_values(rounds: &[[Round; 2]]) -> Vec<PathCompensation> {
        let ends = AtomicBool::new(false);
        let seen = Seen::default();
        let mut path = Script { rounds: rounds.iter(), ends: &ends, seen, reported: Vec::new() };
        let mut compensation = PathCompensation::of_all(Nanos(40_000));
        follow(&ends, &mut path, &mut compensation).unwrap();
        assert_eq!(path.reported.last(), Some(&compensation));
        path.reported
    }

    const NO_REQUESTS: Round = ((0, 0), (0, 0));

    #[test]
    fn answers_leave_earlier_while_requests_take_longer_than_they_should() {
        let reported = reported_values(&[
            // Too few to say anything; they count with the next.
            [((50, 150_000), (50, 100_000)), NO_REQUESTS],
            [((250, 150_000), (250, 100_000)), NO_REQUESTS],
            // Half of them were not modelled: nothing can be compared.
            [((400, 300_000), (200, 100_000)), NO_REQUESTS],
            [((400, 80_000), (400, 100_000)), NO_REQUESTS],
        ]);
        let [longer, shorter] = reported[..] else { panic!("{reported:?}") };
        let (first, second) = (longer.reads_ns, shorter.reads_ns);
        assert!(first > 40_000 && first <= 90_000, "{first}");
        assert!(second < first && second >= first - 20_000, "{second}");
        assert_eq!(longer.writes_ns, 40_000, "nothing was written");
    }

    #[test]
    fn writes_are_followed_apart_from_reads() {
        // Writes take 60 us more than they should, reads what they should.
        let round = [((700, 300_000), (700, 300_000)), ((300, 560_000), (300, 500_000))];
        let reported = reported_values(&[round, round, round]);
        let last = reported.last().unwrap();
        assert_eq!(last.reads_ns, 40_000);
        assert!(last.writes_ns > 90_000, "{last:?}");
    }
}
