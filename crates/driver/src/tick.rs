//! What the driver did between two ticks: counts and whole distributions, mergeable without loss. Pure.
//!
//! Everything additive is an increment since the previous tick, so merging the ticks of a span gives
//! exactly the span; gauges (users, queue length) are as of the end. A transaction belongs to the tick in
//! which it completed.

use underlay_core::{Bytes, Dilation, Histogram, Nanos};
use underlay_workload::transactional::Shape;

use crate::errors::{ErrorCounts, ErrorSamples};

/// Processor time of the server for some of the transactions of a type: of one per millisecond and thread at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCpu {
    /// Transactions that were measured, of those that were completed.
    pub transactions: u64,
    /// Of the process or thread that worked for their sessions, ns of wall time.
    pub ns: u64,
}

impl ServerCpu {
    /// Adds a transaction.
    pub(crate) fn add(&mut self, ns: u64) {
        self.transactions += 1;
        self.ns += ns;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: ServerCpu) {
        self.transactions += other.transactions;
        self.ns += other.ns;
    }
}

/// What happened to the transactions of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeTick {
    /// Committed.
    pub committed: u64,
    /// Rolled back on purpose, as the workload intends it, and carried out to the end.
    pub rolled_back: u64,
    /// Given up after an error that is known to have undone it.
    pub failed: u64,
    /// Given up after an error that may or may not have undone it.
    pub unknown: u64,
    /// Not finished when the driver was stopped, and known not to have committed.
    pub abandoned: u64,
    /// Repeated attempts.
    pub retries: u64,
    /// Errors of all attempts.
    pub errors: ErrorCounts,
    /// From the intended start to the completion, ns; one value per committed or rolled-back transaction.
    pub response: Histogram,
    /// The last attempt alone, ns; one value per committed or rolled-back transaction.
    pub service: Histogram,
    /// From the intended start until a user took the transaction up, ns; one value per completed
    /// transaction that had to wait (the others waited for nothing).
    pub admission_wait: Histogram,
    /// For a connection of the pool, ns; one value per completed transaction that had to wait.
    pub pool_wait: Histogram,
    /// In failed attempts, in waits between attempts and in connecting again, ns; one value per
    /// completed transaction that was repeated.
    pub retry_wait: Histogram,
    /// Processor time of a server on this host.
    pub server_cpu: ServerCpu,
}

impl TypeTick {
    /// Transactions that the database carried out to the end: committed or rolled back on purpose.
    pub fn completed(&self) -> u64 {
        self.committed + self.rolled_back
    }

    /// Transactions that ended in any way. Each transaction that a user takes up ends in exactly one.
    pub fn ended(&self) -> u64 {
        self.completed() + self.failed + self.unknown + self.abandoned
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &TypeTick) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.abandoned += other.abandoned;
        self.retries += other.retries;
        self.errors.merge(&other.errors);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.admission_wait.merge(&other.admission_wait);
        self.pool_wait.merge(&other.pool_wait);
        self.retry_wait.merge(&other.retry_wait);
        self.server_cpu.merge(other.server_cpu);
    }
}

/// What happened to the arrivals of an open-loop schedule. All zero in a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalTick {
    /// Arrivals that fell due.
    pub due: u64,
    /// Arrivals that a user took up.
    pub taken: u64,
    /// Arrivals dropped because the queue was full: load that was not delivered.
    pub overflowed: u64,
    /// Arrivals in the queue at the end.
    pub queued: u64,
    /// Arrivals that were due by the end, and that the generator itself had not come to: they are in none of the counts
    /// above.
    pub overdue: u64,
}

impl ArrivalTick {
    /// Adds the increments of a later tick and takes over its queue.
    fn append(&mut self, later: &ArrivalTick) {
        self.due += later.due;
        self.taken += later.taken;
        self.overflowed += later.overflowed;
        self.queued = later.queued;
        self.overdue = later.overdue;
    }

    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: &ArrivalTick) {
        self.due += other.due;
        self.taken += other.taken;
        self.overflowed += other.overflowed;
        self.queued += other.queued;
        self.overdue += other.overdue;
    }
}

/// What connecting cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTick {
    /// Sessions opened.
    pub opened: u64,
    /// Sessions given up after an error.
    pub lost: u64,
    /// Failed attempts to open one.
    pub errors: ErrorCounts,
}

impl ConnectTick {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &ConnectTick) {
        self.opened += other.opened;
        self.lost += other.lost;
        self.errors.merge(&other.errors);
    }
}

/// The users at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// Asked for by `set_users`.
    pub active: u32,
    /// Active and through with connecting.
    pub ready: u32,
    /// In a transaction.
    pub in_transaction: u32,
    /// In the same attempt for longer than one second.
    pub stalled: u32,
    /// How long the oldest attempt has been going on.
    pub oldest_attempt: Nanos,
    /// Open sessions.
    pub sessions: u32,
}

impl Users {
    pub(crate) fn add(&mut self, other: &Users) {
        self.active += other.active;
        self.ready += other.ready;
        self.in_transaction += other.in_transaction;
        self.stalled += other.stalled;
        self.oldest_attempt = self.oldest_attempt.max(other.oldest_attempt);
        self.sessions += other.sessions;
    }
}

/// When a thread had something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLoad {
    /// On a processor, ns.
    pub cpu_ns: u64,
    /// Waiting for a processor, ns; 0 where the kernel does not count it.
    pub queue_ns: u64,
}

impl ThreadLoad {
    /// Not asleep: on a processor or waiting for one, ns.
    pub fn awake_ns(&self) -> u64 {
        self.cpu_ns + self.queue_ns
    }

    pub(crate) fn since(&self, earlier: &ThreadLoad) -> ThreadLoad {
        ThreadLoad {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            queue_ns: self.queue_ns.saturating_sub(earlier.queue_ns),
        }
    }

    /// For comparing it with a span of design time: a thread that is always awake is so in both.
    pub(crate) fn in_design_time(self, dilation: Dilation) -> ThreadLoad {
        let design = |wall_ns| dilation.design(Nanos(wall_ns)).0;
        ThreadLoad { cpu_ns: design(self.cpu_ns), queue_ns: design(self.queue_ns) }
    }
}

/// Everything since the last tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveTick {
    /// End of the previous tick, since the clock origin.
    pub begin: Nanos,
    /// When this tick was taken, since the clock origin.
    pub end: Nanos,
    /// Names and headline of the workload.
    pub shape: &'static Shape,
    /// One entry per type of transaction, in the order of the shape.
    pub types: Vec<TypeTick>,
    /// Open-loop arrivals.
    pub arrivals: ArrivalTick,
    /// Sessions opened and lost.
    pub connects: ConnectTick,
    /// Users at the end.
    pub users: Users,
    /// How late the driver itself was, ns: each timer against its due time, a heartbeat of 50 ms per thread
    /// included.
    pub dispatch_lag: Histogram,
    /// CPU time of the driver's threads since their start, ns; real time, however the clock is dilated.
    pub cpu_ns: u64,
    /// The same, per thread.
    pub thread_cpu_ns: Vec<u64>,
    /// What the busiest thread did within this tick, in design time.
    pub busiest: ThreadLoad,
    /// Time for which users left answers untaken because the sessions would still have been at work on the slower processors
    /// of a dilated design, ns of design time.
    pub held_back_ns: u64,
    /// Resident memory of the process at the end.
    pub memory: Bytes,
    /// Threads that did not answer in time; what they did is in a later tick.
    pub late_threads: u32,
    /// The first error of each class within the tick.
    pub samples: ErrorSamples,
}

impl DriveTick {
    /// A tick without counts.
    pub fn empty(shape: &'static Shape, begin: Nanos, end: Nanos) -> DriveTick {
        let types = vec![TypeTick::default(); shape.types.len()];
        DriveTick { shape, begin, end, types, ..DriveTick::default() }
    }

    /// What happened to one type.
    pub fn of(&self, kind: impl Into<usize>) -> &TypeTick {
        &self.types[kind.into()]
    }

    /// Each type with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &TypeTick)> {
        self.shape.types.iter().copied().zip(&self.types)
    }

    /// How long the tick was.
    pub fn length(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }

    /// Committed transactions that the headline counts.
    pub fn headline_count(&self) -> u64 {
        self.headline_types().map(|kind| kind.committed).sum()
    }

    /// The headline in its own unit: for TPC-C committed new orders per minute.
    pub fn headline_rate(&self) -> f64 {
        self.shape.headline.rate(self.headline_count(), self.length())
    }

    /// The response times of what the headline counts, ns.
    pub fn headline_response(&self) -> Histogram {
        let mut response = Histogram::default();
        self.headline_types().for_each(|kind| response.merge(&kind.response));
        response
    }

    /// The response times of all types together, ns.
    pub fn response(&self) -> Histogram {
        let mut response = Histogram::default();
        self.types.iter().for_each(|kind| response.merge(&kind.response));
        response
    }

    /// What transactions of all types that had to wait for a connection of the pool waited, ns.
    pub fn connection_waits(&self) -> Histogram {
        let mut waits = Histogram::default();
        self.types.iter().for_each(|kind| waits.merge(&kind.pool_wait));
        waits
    }

    /// Transactions of all types that were carried out to the end.
    pub fn completed(&self) -> u64 {
        self.types.iter().map(TypeTick::completed).sum()
    }

    /// Errors of all attempts of all types.
    pub fn errors(&self) -> u64 {
        self.types.iter().map(|kind| kind.errors.total()).sum()
    }

    fn headline_types(&self) -> impl Iterator<Item = &TypeTick> {
        self.shape.headline.types.iter().filter_map(|kind| self.types.get(*kind))
    }

    /// Adds what other users, of the same workload, did within the same time: the result is of all of them, and its time is this
    /// tick's own.
    pub fn add_beside(&mut self, other: &DriveTick) {
        for (mine, theirs) in self.types.iter_mut().zip(&other.types) {
            mine.merge(theirs);
        }
        self.arrivals.add(&other.arrivals);
        self.connects.merge(&other.connects);
        self.users.add(&other.users);
        self.dispatch_lag.merge(&other.dispatch_lag);
        self.held_back_ns += other.held_back_ns;
        self.cpu_ns += other.cpu_ns;
        self.thread_cpu_ns.extend_from_slice(&other.thread_cpu_ns);
        if other.busiest.awake_ns() > self.busiest.awake_ns() {
            self.busiest = other.busiest;
        }
        // Drivers of one process each say what the whole process has.
        self.memory = self.memory.max(other.memory);
        self.late_threads += other.late_threads;
        self.samples.merge(other.samples.clone());
    }

    /// Appends the tick that follows this one: the result covers both.
    pub fn append(&mut self, later: &DriveTick) {
        self.end = later.end;
        if self.types.is_empty() {
            self.shape = later.shape;
            self.types.resize_with(later.types.len(), TypeTick::default);
        }
        for (mine, theirs) in self.types.iter_mut().zip(&later.types) {
            mine.merge(theirs);
        }
        self.arrivals.append(&later.arrivals);
        self.connects.merge(&later.connects);
        self.users = later.users;
        self.dispatch_lag.merge(&later.dispatch_lag);
        self.held_back_ns += later.held_back_ns;
        self.cpu_ns = later.cpu_ns;
        self.thread_cpu_ns.clone_from(&later.thread_cpu_ns);
        // Which thread was busiest may differ from tick to tick: the sum is an upper bound that
        // errs towards the warning.
        self.busiest.cpu_ns += later.busiest.cpu_ns;
        self.busiest.queue_ns += later.busiest.queue_ns;
        self.memory = later.memory;
        self.late_threads = self.late_threads.max(later.late_threads);
        self.samples.merge(later.samples.clone());
    }
}
