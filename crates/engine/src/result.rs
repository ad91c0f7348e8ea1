//! What a simulated window shows: distributions, counters and times per place, per database and
//! host.
//!
//! Raw counts and distributions; rates follow from the window's length. Times are virtual, counts
//! are whole events.

use crate::background_result::BackgroundResult;
use crate::cpu::CpuUse;
use crate::pool::PoolCounters;
use crate::redo_log::LogCounters;
use crate::station::Station;
use crate::writers::WriterCounters;
use underlay_core::{Histogram, Nanos};
use underlay_workload::transactional::Headline;

/// Where a transaction can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the queue for a connection.
    Connection,
    /// On the client's processors.
    Client,
    /// On the network.
    Network,
    /// On the server's processors, waiting for them included.
    Cpu,
    /// Waiting for a lock.
    Lock,
    /// Waiting for a page to be read.
    Read,
    /// Waiting for the log to be durable.
    Log,
    /// Stopped: too many dirty pages wait to be written, no frame can give way, the log has no
    /// room, or a page that is to be changed is being written.
    Throttle,
}

impl Place {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// All, by their index.
    pub const ALL: [Place; Place::COUNT] = [
        Place::Connection,
        Place::Client,
        Place::Network,
        Place::Cpu,
        Place::Lock,
        Place::Read,
        Place::Log,
        Place::Throttle,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Place::Connection => "connection",
            Place::Client => "client",
            Place::Network => "network",
            Place::Cpu => "cpu",
            Place::Lock => "lock",
            Place::Read => "read",
            Place::Log => "log",
            Place::Throttle => "throttle",
        }
    }
}

/// Transactions of one type that ended in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeResult {
    /// Its name.
    pub name: &'static str,
    /// Those that ended as the workload wants it.
    pub committed: u64,
    /// Intended rollbacks.
    pub rolled_back: u64,
    /// From the intended start to the answer, in nanoseconds.
    pub response: Histogram,
    /// From the actual start to the answer, in nanoseconds.
    pub service: Histogram,
    /// Processor time of the server's sessions for them, in nanoseconds.
    pub cpu_ns: u64,
}

/// An operation of a job that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOperation {
    /// Its type in the workload's shape.
    pub kind: usize,
    /// Its cycle, from 1; of a warehouse, 1 in the power run and 2 in the throughput run.
    pub cycle: u32,
    /// Its stream; 0 where there is only one.
    pub stream: u32,
    /// When it began.
    pub begin: Nanos,
    /// When what it wrote was durable, or a query was answered.
    pub end: Nanos,
    /// What it wrote, or what a query read.
    pub bytes: u64,
}

/// Bytes that a job read from a volume and wrote to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// The results of a job in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResult {
    /// Operations that ended, in their order.
    pub operations: Vec<JobOperation>,
    /// Bytes on the volume of the tables, and on that of backups.
    pub volumes: [VolumeBytes; 2],
    /// When all was done; `None` while it is not.
    pub ended: Option<Nanos>,
}

impl JobResult {
    /// Adds later results.
    pub fn add(&mut self, later: &JobResult) {
        self.operations.extend_from_slice(&later.operations);
        for (sum, volume) in self.volumes.iter_mut().zip(&later.volumes) {
            sum.read += volume.read;
            sum.written += volume.written;
        }
        self.ended = later.ended;
    }

    /// Counts its times from a later moment, at which nothing had begun.
    pub(crate) fn count_from(&mut self, moment: Nanos) {
        for operation in &mut self.operations {
            operation.begin = operation.begin - moment;
            operation.end = operation.end - moment;
        }
        self.ended = self.ended.map(|ended| ended - moment);
    }
}

/// I/O requests of a job on one volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobIoResult {
    /// Reads.
    pub read: Station,
    /// Writes.
    pub write: Station,
    /// Flushes.
    pub flush: Station,
}

/// I/O requests of a database, per purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IoResult {
    /// Pages read by sessions.
    pub read: Station,
    /// Writes of the log.
    pub log_write: Station,
    /// Flushes of the log volume.
    pub log_flush: Station,
    /// Writes of pages.
    pub page_write: Station,
    /// Flushes of the data volume.
    pub data_flush: Station,
    /// Batches written to InnoDB's doublewrite buffer.
    pub doublewrite: Station,
    /// Pages read by autovacuum.
    pub analyze: Station,
    /// What the kernel reads ahead of sessions.
    pub read_ahead: Station,
    /// Those of a job: on the volume of the tables, and on that of backups.
    pub job: [JobIoResult; 2],
}

/// Misses of the buffer pool for which sessions read nothing from the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadMisses {
    /// Pages that did not exist: a session added them.
    pub created: u64,
    /// Pages that the page cache of the operating system had.
    pub cached: u64,
}

/// What was changed and is not on the volumes, at the end of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Dirty pages of the buffer pool.
    pub pool_pages: u64,
    /// Pages that the kernel has not begun to write.
    pub kernel_pages: u64,
    /// Bytes of log records that are not durable.
    pub log_bytes: u64,
}

/// What a database did in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseResult {
    /// Its name.
    pub name: String,
    /// Per transaction type.
    pub types: Vec<TypeResult>,
    /// The headline of the workload.
    pub headline: Headline,
    /// By [`Place`]: visits and stays of transactions.
    pub places: [Station; Place::COUNT],
    /// I/O requests.
    pub io: IoResult,
    /// The buffer pool.
    pub pool: PoolCounters,
    /// Misses of sessions that needed no read.
    pub unread: UnreadMisses,
    /// The page cache of the operating system: lookups of pages that the pool missed. Without any
    /// where the engine reads around it.
    pub page_cache: PoolCounters,
    /// Pages that the kernel read beside those that sessions waited for.
    pub ahead_pages: u64,
    /// The log.
    pub log: LogCounters,
    /// Who wrote pages, and checkpoints.
    pub writers: WriterCounters,
    /// What waits to be written.
    pub unwritten: Unwritten,
    /// Arrivals of an open loop that waited for a free user at the end of the window.
    pub backlog: u64,
    /// Its job; `None` of a database with users.
    pub job: Option<JobResult>,
}

impl DatabaseResult {
    /// Committed transactions of all types.
    pub fn committed(&self) -> u64 {
        self.types.iter().map(|kind| kind.committed).sum()
    }

    /// I/O requests that were done.
    pub fn requests(&self) -> u64 {
        let io = self.io;
        let pages =
            [io.read, io.page_write, io.data_flush, io.doublewrite, io.analyze, io.read_ahead];
        let log = [io.log_write, io.log_flush];
        let of_jobs = io.job.iter().flat_map(|io| [io.read, io.write, io.flush]);
        pages.into_iter().chain(log).chain(of_jobs).map(|station| station.departures).sum()
    }

    /// Response times of all types.
    pub fn response(&self) -> Histogram {
        let mut all = Histogram::new();
        self.types.iter().for_each(|kind| all.merge(&kind.response));
        all
    }
}

/// What the processors of a host did in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// Work and its stations.
    pub used: CpuUse,
    /// Work per nanosecond with all threads busy.
    pub full_capacity: f64,
    /// Threads.
    pub threads: u32,
}

impl HostResult {
    /// Busy share of the threads over `length`, 0 to 1: what an operating system shows.
    pub fn busy(&self, length: Nanos) -> f64 {
        self.used.busy_thread_ns / (f64::from(self.threads) * length.0.max(1) as f64)
    }

    /// Work as a share of what the host could do over `length`, 0 to 1.
    pub fn utilisation(&self, length: Nanos) -> f64 {
        self.used.done_ns / (self.full_capacity * length.0.max(1) as f64)
    }
}

/// A measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineRun {
    /// When it began and ended, in virtual time.
    pub from: Nanos,
    /// Its end.
    pub until: Nanos,
    /// In the order of the scenario.
    pub databases: Vec<DatabaseResult>,
    /// In the order of the scenario.
    pub background: Vec<BackgroundResult>,
    /// In the order of the scenario.
    pub hosts: Vec<HostResult>,
    /// Simulated events in the window: bursts, I/O requests and timers.
    pub events: u64,
}

impl EngineRun {
    /// Its length.
    pub fn length(&self) -> Nanos {
        self.until - self.from
    }

    /// The headline of a database, in its unit: NOPM of TPC-C.
    pub fn headline(&self, database: usize) -> f64 {
        let database = &self.databases[database];
        let counted = database.headline.types.iter().map(|kind| database.types[*kind].committed);
        database.headline.rate(counted.sum(), self.length())
    }
}
