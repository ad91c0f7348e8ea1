//! What is simulated: hosts, databases on them, and the users of each database.
//!
//! Plain values that a caller fills from a plan or by hand. Storage is not among them: it is a
//! target of `model`, whose volumes a database names by their numbers. Not here: what transactions
//! cost ([`crate::DemandProfile`]).

use crate::demand::DemandProfile;
use underlay_core::{Arrivals, Bytes, Nanos};
use underlay_workload::sysbench::Sysbench;
use underlay_workload::tpcc::Tpcc;
use underlay_workload::transactional::{Headline, Mix, Workload};

/// Hosts and the databases on them.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Machines with processors.
    pub hosts: Vec<HostSpec>,
    /// Databases, each on one host.
    pub databases: Vec<DatabaseSpec>,
}

/// The processors of a machine: of a host, or of what a control group leaves of one.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Unique in the scenario.
    pub name: String,
    /// Cores.
    pub cores: u32,
    /// Threads of each core, 1 to 8.
    pub threads_per_core: u32,
    /// How fast a core is, compared with the one that the demands were measured on; 1 for the same.
    pub speed: f64,
    /// What a core with all its threads busy does, compared with one thread alone; 1.0 to
    /// `threads_per_core`. Without meaning where a core has one thread. About 1.25 for database
    /// transactions on two threads (assumed; vendors state 1.2 to 1.3).
    pub smt_yield: f64,
}

impl HostSpec {
    /// A host of so many cores of one thread and speed 1.
    pub fn new(name: &str, cores: u32) -> HostSpec {
        HostSpec { name: name.to_string(), cores, threads_per_core: 1, speed: 1.0, smt_yield: 1.0 }
    }
}

/// One database and its users.
#[derive(Clone, Debug)]
pub struct DatabaseSpec {
    /// Unique in the scenario.
    pub name: String,
    /// Its host, by its number in the scenario.
    pub host: usize,
    /// The server.
    pub engine: EngineSpec,
    /// What users do, and on how much data.
    pub workload: WorkloadSpec,
    /// How transaction types are chosen.
    pub mix: Mix,
    /// What transactions cost.
    pub demands: DemandProfile,
    /// The volume of the tables.
    pub data: VolumeUse,
    /// The volume of the log; may be that of the tables, then in a part of its own.
    pub log: VolumeUse,
    /// Users.
    pub load: Load,
    /// Where users are and how they connect.
    pub client: ClientSpec,
    /// Processor time of the host's software path per I/O request, on the database's host; zero
    /// where the storage has its own processors.
    pub cpu_per_io: Nanos,
    /// Transactions that users have made on the database since it was loaded: on PostgreSQL, the
    /// first change on a page costs more than later ones. Only those that fill caches count.
    pub transactions_before: u64,
}

/// The part of a volume that a database uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeUse {
    /// The volume, by its number in the target.
    pub volume: usize,
    /// Where the part begins.
    pub offset: Bytes,
    /// Its length.
    pub length: Bytes,
}

/// A database server.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineSpec {
    /// PostgreSQL.
    Postgresql(PostgresqlSettings),
    /// MariaDB with InnoDB tables.
    Mariadb(InnodbSettings),
}

impl EngineSpec {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        match self {
            EngineSpec::Postgresql(_) => 8 << 10,
            EngineSpec::Mariadb(_) => 16 << 10,
        }
    }

    /// The unit in which the log is written: a page of PostgreSQL's log, a block of the file system
    /// for InnoDB.
    pub(crate) fn log_block_bytes(&self) -> u64 {
        match self {
            EngineSpec::Postgresql(_) => 8 << 10,
            EngineSpec::Mariadb(_) => 4 << 10,
        }
    }

    /// Bytes of the doublewrite buffer, which is in the data volume.
    pub(crate) fn doublewrite_bytes(&self) -> Bytes {
        match self {
            EngineSpec::Postgresql(_) => Bytes::ZERO,
            EngineSpec::Mariadb(_) => Bytes::from_mib(2),
        }
    }
}

/// PostgreSQL's settings that the model knows; defaults are the server's own.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresqlSettings {
    /// `shared_buffers`.
    pub shared_buffers: Bytes,
    /// Memory for the operating system's page cache: the server's memory limit without shared
    /// buffers and processes.
    pub page_cache: Bytes,
    /// `checkpoint_timeout`.
    pub checkpoint_timeout: Nanos,
    /// `checkpoint_completion_target`, above 0, at most 1.
    pub checkpoint_completion_target: f64,
    /// `max_wal_size`.
    pub max_wal_size: Bytes,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// `synchronous_commit`; off, commits do not wait for the log.
    pub synchronous_commit: bool,
    /// `bgwriter_delay`.
    pub bgwriter_delay: Nanos,
    /// `bgwriter_lru_maxpages`; 0 switches the background writer off.
    pub bgwriter_lru_maxpages: u32,
    /// `bgwriter_lru_multiplier`.
    pub bgwriter_lru_multiplier: f64,
}

impl Default for PostgresqlSettings {
    fn default() -> PostgresqlSettings {
        PostgresqlSettings {
            shared_buffers: Bytes::from_mib(128),
            page_cache: Bytes::from_gib(1),
            checkpoint_timeout: Nanos::from_secs(300),
            checkpoint_completion_target: 0.9,
            max_wal_size: Bytes::from_gib(1),
            full_page_writes: true,
            synchronous_commit: true,
            bgwriter_delay: Nanos::from_millis(200),
            bgwriter_lru_maxpages: 100,
            bgwriter_lru_multiplier: 2.0,
        }
    }
}

/// InnoDB's settings that the model knows; defaults are MariaDB's own. Files are opened with
/// `O_DIRECT`: there is no page cache.
#[derive(Clone, Debug, PartialEq)]
pub struct InnodbSettings {
    /// `innodb_buffer_pool_size`.
    pub buffer_pool_size: Bytes,
    /// `innodb_log_file_size`.
    pub log_file_size: Bytes,
    /// `innodb_flush_log_at_trx_commit = 1`; otherwise commits do not wait for the log.
    pub flush_log_at_commit: bool,
    /// `innodb_doublewrite`.
    pub doublewrite: bool,
    /// `innodb_io_capacity`, pages per second.
    pub io_capacity: u32,
    /// `innodb_io_capacity_max`, pages per second.
    pub io_capacity_max: u32,
    /// `innodb_max_dirty_pages_pct`.
    pub max_dirty_pages_pct: f64,
    /// `innodb_max_dirty_pages_pct_lwm`; 0 = off.
    pub max_dirty_pages_pct_lwm: f64,
    /// `innodb_lru_scan_depth`, pages.
    pub lru_scan_depth: u32,
    /// `innodb_old_blocks_pct`.
    pub old_blocks_pct: u32,
    /// `innodb_old_blocks_time`.
    pub old_blocks_time: Nanos,
}

impl Default for InnodbSettings {
    fn default() -> InnodbSettings {
        InnodbSettings {
            buffer_pool_size: Bytes::from_mib(128),
            log_file_size: Bytes::from_mib(96),
            flush_log_at_commit: true,
            doublewrite: true,
            io_capacity: 200,
            io_capacity_max: 2_000,
            max_dirty_pages_pct: 90.0,
            max_dirty_pages_pct_lwm: 0.0,
            lru_scan_depth: 1_536,
            old_blocks_pct: 37,
            old_blocks_time: Nanos::from_secs(1),
        }
    }
}

impl InnodbSettings {
    fn check(&self, check: &mut impl FnMut(&'static str, f64, bool, &'static str)) {
        let pool = self.buffer_pool_size;
        check(
            "innodb_buffer_pool_size",
            pool.0 as f64,
            pool >= Bytes::from_mib(5),
            "at least 5 MiB",
        );
        let log = self.log_file_size;
        check("innodb_log_file_size", log.0 as f64, log >= Bytes::from_mib(4), "at least 4 MiB");
        let capacity = f64::from(self.io_capacity);
        check("innodb_io_capacity", capacity, self.io_capacity >= 100, "at least 100");
        let max = f64::from(self.io_capacity_max);
        let holds = self.io_capacity_max >= self.io_capacity;
        check("innodb_io_capacity_max", max, holds, "at least innodb_io_capacity");
        let dirty = self.max_dirty_pages_pct;
        check("innodb_max_dirty_pages_pct", dirty, (0.0..100.0).contains(&dirty), "0 to 99.999");
        let low = self.max_dirty_pages_pct_lwm;
        check("innodb_max_dirty_pages_pct_lwm", low, (0.0..100.0).contains(&low), "0 to 99.999");
        let old = f64::from(self.old_blocks_pct);
        check("innodb_old_blocks_pct", old, (5.0..=95.0).contains(&old), "5 to 95");
    }
}

/// What users do.
#[derive(Clone, Debug)]
pub enum WorkloadSpec {
    /// TPC-C; its number of warehouses is the size of the database.
    Tpcc(Tpcc),
    /// sysbench's scripts; tables and their size are the size of the database.
    Sysbench(Sysbench),
}

impl WorkloadSpec {
    /// Names of the transaction types.
    pub fn types(&self) -> &'static [&'static str] {
        match self {
            WorkloadSpec::Tpcc(tpcc) => tpcc.shape().types,
            WorkloadSpec::Sysbench(sysbench) => sysbench.shape().types,
        }
    }

    /// What the headline counts.
    pub fn headline(&self) -> Headline {
        match self {
            WorkloadSpec::Tpcc(tpcc) => tpcc.shape().headline,
            WorkloadSpec::Sysbench(sysbench) => sysbench.shape().headline,
        }
    }
}

/// The users of a database.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Each user waits for the answer, then pauses, then asks again.
    Closed {
        /// How many.
        users: u32,
        /// What keying and think times are multiplied by; 0 = no pauses, 1 = the workload's own.
        pacing: f64,
    },
    /// Transactions arrive at a rate, whatever becomes of them; a free user takes each.
    Open {
        /// Transactions in service at most; the rest waits.
        users: u32,
        /// Arrivals per second.
        rate_per_second: f64,
        /// How they follow each other.
        arrivals: Arrivals,
    },
}

impl Load {
    /// Users at most.
    pub fn users(&self) -> u32 {
        match self {
            Load::Closed { users, .. } | Load::Open { users, .. } => *users,
        }
    }
}

/// Where the users are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientSpec {
    /// Connections at most, shared by the users; `None` = each has its own.
    pub connections: Option<u32>,
    /// The host whose processors the load generator uses; `None` = one that is not modelled.
    pub host: Option<usize>,
    /// Time on the network per round trip; a transaction has one.
    pub round_trip: Nanos,
}

/// A rule that a scenario violates.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioProblem {
    /// A value out of its range.
    #[error("{of}: {what} is {value}; use {range}")]
    Range {
        /// Whose.
        of: String,
        /// What.
        what: &'static str,
        /// The value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A host that is not there.
    #[error("{of}: host {host} does not exist; there are {hosts}, counted from 0")]
    NoHost {
        /// Whose.
        of: String,
        /// Which.
        host: usize,
        /// How many there are.
        hosts: usize,
    },
    /// Demands for another workload.
    #[error("{of}: the demands have types {demands}, the workload {workload}")]
    OtherTypes {
        /// Whose.
        of: String,
        /// The demands' types.
        demands: String,
        /// The workload's types.
        workload: String,
    },
    /// The tables do not fit.
    #[error("{of}: tables and indexes need {needed}, but the data volume has {there}")]
    TooSmall {
        /// Whose.
        of: String,
        /// What they need.
        needed: Bytes,
        /// What there is.
        there: Bytes,
    },
}

impl Scenario {
    /// Every rule that is violated; empty for a scenario that can be simulated.
    pub fn problems(&self) -> Vec<ScenarioProblem> {
        let mut problems = Vec::new();
        for host in &self.hosts {
            let mut check = |what, value, holds: bool, range| {
                if !holds {
                    let of = format!("host `{}`", host.name);
                    problems.push(ScenarioProblem::Range { of, what, value, range });
                }
            };
            let threads = f64::from(host.threads_per_core);
            check("cores", f64::from(host.cores), host.cores > 0, "at least 1");
            let range = (1..=8).contains(&host.threads_per_core);
            check("threads per core", threads, range, "1 to 8");
            let speed = host.speed;
            check("speed", speed, speed > 0.0 && speed.is_finite(), "a number above 0");
            let range = (1.0..=threads).contains(&host.smt_yield);
            check("SMT yield", host.smt_yield, range, "1 to the threads per core");
        }
        for database in &self.databases {
            database.problems(self.hosts.len(), &mut problems);
        }
        problems
    }
}

impl DatabaseSpec {
    fn problems(&self, hosts: usize, problems: &mut Vec<ScenarioProblem>) {
        let of = format!("database `{}`", self.name);
        for host in [Some(self.host), self.client.host].into_iter().flatten() {
            if host >= hosts {
                problems.push(ScenarioProblem::NoHost { of: of.clone(), host, hosts });
            }
        }
        let names: Vec<&str> = self.demands.types.iter().map(|demand| &*demand.name).collect();
        if names != self.workload.types() {
            problems.push(ScenarioProblem::OtherTypes {
                of: of.clone(),
                demands: names.join(", "),
                workload: self.workload.types().join(", "),
            });
        }
        let mut check = |what, value: f64, holds: bool, range| {
            if !holds {
                problems.push(ScenarioProblem::Range { of: of.clone(), what, value, range });
            }
        };
        check("users", f64::from(self.load.users()), self.load.users() > 0, "at least 1");
        match self.load {
            Load::Closed { pacing, .. } => {
                check("pacing", pacing, (0.0..=100.0).contains(&pacing), "0 to 100");
            }
            Load::Open { rate_per_second: rate, .. } => {
                check("rate", rate, rate > 0.0 && rate <= 1e7, "above 0, at most 1e7");
            }
        }
        if let Some(connections) = self.client.connections {
            check("connections", f64::from(connections), connections > 0, "at least 1");
        }
        let factors =
            [("CPU factor", self.demands.cpu_factor), ("log factor", self.demands.log_factor)];
        for (what, value) in factors {
            check(what, value, (0.0..=1e3).contains(&value), "0 to 1000");
        }
        let log_length = self.log.length.0 as f64;
        check(
            "log volume in bytes",
            log_length,
            self.log.length >= Bytes::from_mib(16),
            "at least 16 MiB",
        );
        match &self.engine {
            EngineSpec::Postgresql(settings) => settings.check(&mut check),
            EngineSpec::Mariadb(settings) => {
                settings.check(&mut check);
                let holds = settings.log_file_size <= self.log.length;
                let log = settings.log_file_size.0 as f64;
                check("innodb_log_file_size", log, holds, "at most what the log volume has");
            }
        }
    }
}

impl PostgresqlSettings {
    fn check(&self, check: &mut impl FnMut(&'static str, f64, bool, &'static str)) {
        let buffers = self.shared_buffers.0 as f64;
        check(
            "shared_buffers",
            buffers,
            self.shared_buffers >= Bytes::from_mib(1),
            "at least 1 MiB",
        );
        let target = self.checkpoint_completion_target;
        check(
            "checkpoint_completion_target",
            target,
            target > 0.0 && target <= 1.0,
            "above 0, at most 1",
        );
        let timeout = self.checkpoint_timeout.as_secs_f64();
        check("checkpoint_timeout in s", timeout, timeout >= 1.0, "at least 1");
        let wal = self.max_wal_size.0 as f64;
        check("max_wal_size", wal, self.max_wal_size >= Bytes::from_mib(2), "at least 2 MiB");
        let delay = self.bgwriter_delay.as_secs_f64();
        check("bgwriter_delay in s", delay, (0.01..=10.0).contains(&delay), "0.01 to 10");
        let multiplier = self.bgwriter_lru_multiplier;
        check("bgwriter_lru_multiplier", multiplier, (0.0..=10.0).contains(&multiplier), "0 to 10");
    }
}
