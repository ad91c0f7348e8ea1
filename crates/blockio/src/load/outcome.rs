//! What came out of a load: per second, and in whole.

use std::collections::BTreeMap;
use underlay_core::{Histogram, Nanos};
use underlay_workload::block::Access;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Returns bytes.
    Read,
    /// Stores bytes.
    Write,
    /// Makes what was stored durable.
    Flush,
}

impl Operation {
    /// All of them, in the order of their numbers.
    pub const ALL: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Flush];

    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
        }
    }
}

impl From<Access> for Operation {
    fn from(access: Access) -> Operation {
        match access {
            Access::Read => Operation::Read,
            Access::Write => Operation::Write,
        }
    }
}

/// A kind of requests: every figure is kept per kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindKey {
    /// Number of the target.
    pub target: usize,
    /// The job's name.
    pub job: String,
    /// The stream's name.
    pub stream: String,
    /// What it does.
    pub operation: Operation,
}

/// When in a load something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Before the measured time.
    WarmUp,
    /// In it.
    Measure,
    /// After it, while requests that were started in it complete.
    Drain,
}

/// What requests of one kind did.
#[derive(Clone, Debug, Default)]
pub struct KindResult {
    /// Completed without error.
    pub completed: u64,
    /// Of those, completed within the measured time: what rates are made of.
    pub in_window: u64,
    /// Bytes moved within the measured time.
    pub bytes_in_window: u64,
    /// Bytes moved, whenever.
    pub bytes: u64,
    /// Failed, by error number of the system.
    pub errors: BTreeMap<i32, u64>,
    /// Nanoseconds from the intended start.
    pub response: Histogram,
    /// Nanoseconds from the actual start.
    pub service: Histogram,
}

impl KindResult {
    /// Adds the other's.
    pub fn merge(&mut self, other: &KindResult) {
        self.completed += other.completed;
        self.in_window += other.in_window;
        self.bytes_in_window += other.bytes_in_window;
        self.bytes += other.bytes;
        for (error, count) in &other.errors {
            *self.errors.entry(*error).or_default() += count;
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }
}

/// One second of a load, all workers together: of this host's time.
#[derive(Clone, Debug)]
pub struct SecondTick {
    /// Where in the load.
    pub part: Part,
    /// Begin and end since the load began.
    pub begin: Nanos,
    /// See `begin`.
    pub end: Nanos,
    /// By kind; only those in which something happened.
    pub kinds: Vec<(KindKey, KindResult)>,
    /// How late requests were handed to the kernel although there was room for them: the generator's own fault.
    pub dispatch_lag: Histogram,
    /// Arrivals of open loops that are due and wait for room in the queue, at the end of the second.
    pub backlog: u64,
    /// Processor time of all workers.
    pub processor: Nanos,
}

/// What the workers cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCost {
    /// Threads of the operating system.
    pub workers: u32,
    /// Processor time in the measured time, all workers together.
    pub processor: Nanos,
    /// The largest share of a processor that one worker used in the measured time, in thousandths.
    pub busiest_permille: u32,
}

/// A load in whole.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// The measured time.
    pub duration: Nanos,
    /// By kind.
    pub kinds: Vec<(KindKey, KindResult)>,
    /// See [`SecondTick::dispatch_lag`]; of the measured time.
    pub dispatch_lag: Histogram,
    /// Arrivals of an open loop that fell due in the measured time; 0 in a closed one.
    pub due: u64,
    /// Of those, never started: the target did not keep up.
    pub undelivered: u64,
    /// For how long the first of those had waited at the end.
    pub oldest_undelivered: Nanos,
    /// Requests that waited for another one to the same blocks (verifying only).
    pub conflicts: u64,
    /// Units of verified blocks that were compared with what was written.
    pub verified_units: u64,
    /// What the load generator itself cost.
    pub cost: WorkerCost,
    /// Whether it was asked to stop early.
    pub interrupted: bool,
    /// Why it ended before its time.
    pub failure: Option<String>,
    /// Blocks that held something else than what was written; the first few.
    pub violations: Vec<crate::verify::Violation>,
    /// How many of those there were.
    pub violation_count: u64,
}

impl LoadResult {
    /// Adds a load that followed this one: another round.
    pub fn append(&mut self, other: &LoadResult) {
        let busy = |result: &LoadResult| {
            u64::from(result.cost.busiest_permille) * result.duration.0 / 1_000_000
        };
        let busiest = (busy(self) + busy(other)) * 1_000_000;
        self.duration += other.duration;
        for (key, kind) in &other.kinds {
            match self.kinds.iter_mut().find(|(known, _)| known == key) {
                Some((_, sum)) => sum.merge(kind),
                None => self.kinds.push((key.clone(), kind.clone())),
            }
        }
        self.dispatch_lag.merge(&other.dispatch_lag);
        self.due += other.due;
        self.undelivered += other.undelivered;
        self.oldest_undelivered = self.oldest_undelivered.max(other.oldest_undelivered);
        self.conflicts += other.conflicts;
        self.verified_units += other.verified_units;
        self.cost.workers = self.cost.workers.max(other.cost.workers);
        self.cost.processor += other.cost.processor;
        self.cost.busiest_permille = (busiest / self.duration.0.max(1)) as u32;
        self.interrupted |= other.interrupted;
        self.failure = self.failure.take().or_else(|| other.failure.clone());
        // A verifier's violations are those since its beginning.
        self.violations.clone_from(&other.violations);
        self.violation_count = other.violation_count;
    }

    /// All kinds for which `matches` holds, together.
    pub fn total(&self, matches: impl Fn(&KindKey) -> bool) -> KindResult {
        let mut total = KindResult::default();
        for (key, result) in &self.kinds {
            if matches(key) {
                total.merge(result);
            }
        }
        total
    }

    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.total(|key| key.operation != Operation::Flush).in_window)
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.total(|_| true).bytes_in_window)
    }

    /// A count of the measured time as a rate.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.duration.0 == 0 { 0.0 } else { count as f64 / self.duration.as_secs_f64() }
    }

    /// Errors of all kinds.
    pub fn errors(&self) -> u64 {
        self.kinds.iter().flat_map(|(_, result)| result.errors.values()).sum()
    }
}
