//! What is simulated: hosts, databases on them, the users of each database, and background work.
//!
//! Plain values that a caller fills from a plan or by hand. Storage is not among them: it is a
//! target of `model`, whose volumes a database names by their numbers. Not here: what transactions
//! cost ([`crate::DemandProfile`]).

pub use crate::engine_spec::EngineSpec;
pub use crate::volume_use::VolumeUse;

use crate::background_spec::BackgroundSpec;
use crate::demand::DemandProfile;
use crate::job_spec::{BackupSpec, BatchSpec};
use crate::warehouse_spec::WarehouseSpec;
use underlay_core::{Arrivals, Bytes, Nanos};
use underlay_workload::block::WorkloadProblem;
use underlay_workload::dvdstore::DvdStore;
use underlay_workload::sysbench::Sysbench;
use underlay_workload::tpcc::Tpcc;
use underlay_workload::transactional::{Headline, Mix, Workload};

/// Hosts, the databases on them, and what uses volumes alongside.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Machines with processors.
    pub hosts: Vec<HostSpec>,
    /// Databases, each on one host.
    pub databases: Vec<DatabaseSpec>,
    /// Background work.
    pub background: Vec<BackgroundSpec>,
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
}

/// What users do.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadSpec {
    /// TPC-C; its number of warehouses is the size of the database.
    Tpcc(Tpcc),
    /// sysbench's scripts; tables and their size are the size of the database.
    Sysbench(Sysbench),
    /// The web shop; its nominal size is the size of the database.
    DvdStore(DvdStore),
    /// Backups and restores: a job.
    Backup(BackupSpec),
    /// Insertion of rows: a job.
    Batch(BatchSpec),
    /// Queries and refresh functions of a data warehouse: a job.
    Warehouse(WarehouseSpec),
}

impl WorkloadSpec {
    /// Names of the transaction types.
    pub fn types(&self) -> &'static [&'static str] {
        match self {
            WorkloadSpec::Tpcc(tpcc) => tpcc.shape().types,
            WorkloadSpec::Sysbench(sysbench) => sysbench.shape().types,
            WorkloadSpec::DvdStore(shop) => shop.shape().types,
            WorkloadSpec::Backup(_) => underlay_workload::backup::SHAPE.types,
            WorkloadSpec::Batch(_) => underlay_workload::batch::SHAPE.types,
            WorkloadSpec::Warehouse(_) => underlay_workload::warehouse::SHAPE.types,
        }
    }

    /// Whether it is a job, which has no users and works until it is done.
    pub fn is_job(&self) -> bool {
        matches!(
            self,
            WorkloadSpec::Backup(_) | WorkloadSpec::Batch(_) | WorkloadSpec::Warehouse(_)
        )
    }

    /// What the headline counts.
    pub fn headline(&self) -> Headline {
        match self {
            WorkloadSpec::Tpcc(tpcc) => tpcc.shape().headline,
            WorkloadSpec::Sysbench(sysbench) => sysbench.shape().headline,
            WorkloadSpec::DvdStore(shop) => shop.shape().headline,
            WorkloadSpec::Backup(_) => underlay_workload::backup::SHAPE.headline,
            WorkloadSpec::Batch(_) => underlay_workload::batch::SHAPE.headline,
            WorkloadSpec::Warehouse(_) => underlay_workload::warehouse::SHAPE.headline,
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
    /// A job works until it is done.
    Job {
        /// Sessions with which it asks the server for transactions; 0 where it does not.
        sessions: u32,
    },
}

impl Load {
    /// Users at most.
    pub fn users(&self) -> u32 {
        match self {
            Load::Closed { users, .. } | Load::Open { users, .. } => *users,
            Load::Job { sessions } => *sessions,
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
    /// A job with users, or the other way round.
    #[error("{of}: a job has no users, and only a job has none")]
    JobAndUsers {
        /// Whose.
        of: String,
    },
    /// A block load that cannot be on its part of a volume.
    #[error("{of}: {problem}")]
    BlockLoad {
        /// Whose.
        of: String,
        /// What is wrong.
        problem: WorkloadProblem,
    },
    /// A warehouse whose plans are not known.
    #[error("{of}: the queries of a warehouse are simulated on PostgreSQL only")]
    WarehouseOnInnodb {
        /// Whose.
        of: String,
    },
    /// The tables do not fit.
    #[error("{of}: {needed} are needed, but the volume has {there}")]
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
        for work in &self.background {
            background_problems(work, self.hosts.len(), &mut problems);
        }
        problems
    }
}

fn background_problems(work: &BackgroundSpec, hosts: usize, problems: &mut Vec<ScenarioProblem>) {
    let of = format!("background work `{}`", work.name);
    if work.host >= hosts {
        problems.push(ScenarioProblem::NoHost { of: of.clone(), host: work.host, hosts });
    }
    let blocks = work.workload_problems().into_iter();
    problems.extend(blocks.map(|problem| ScenarioProblem::BlockLoad { of: of.clone(), problem }));
    work.check(&mut |what, value, holds, range| {
        if !holds {
            problems.push(ScenarioProblem::Range { of: of.clone(), what, value, range });
        }
    });
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
        let has_job = matches!(self.load, Load::Job { .. });
        if has_job != self.workload.is_job() {
            problems.push(ScenarioProblem::JobAndUsers { of: of.clone() });
        }
        if let (WorkloadSpec::Warehouse(_), EngineSpec::Mariadb(_)) = (&self.workload, &self.engine)
        {
            problems.push(ScenarioProblem::WarehouseOnInnodb { of: of.clone() });
        }
        if let WorkloadSpec::Backup(backup) = &self.workload {
            self.room_for_backups(backup, &of, problems);
        }
        let mut check = |what, value: f64, holds: bool, range| {
            if !holds {
                problems.push(ScenarioProblem::Range { of: of.clone(), what, value, range });
            }
        };
        let users = self.load.users();
        let needs_users = !matches!(self.workload, WorkloadSpec::Backup(_));
        check("users", f64::from(users), users > 0 || !needs_users, "at least 1");
        match self.load {
            Load::Job { .. } => {}
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

impl DatabaseSpec {
    /// Backups need a volume of the database's size, restores as much beside the database.
    fn room_for_backups(&self, backup: &BackupSpec, of: &str, problems: &mut Vec<ScenarioProblem>) {
        let bytes = self.workload.loaded_bytes(&self.engine);
        let copies = if backup.restores { 2 } else { 1 };
        let doublewrite = self.engine.doublewrite_bytes();
        let places = [
            ("the backup", bytes, backup.volume.length),
            ("database and copy", Bytes(bytes.0 * copies + doublewrite.0), self.data.length),
        ];
        for (what, needed, there) in places {
            if needed > there {
                let of = format!("{of}, {what}");
                problems.push(ScenarioProblem::TooSmall { of, needed, there });
            }
        }
    }
}
