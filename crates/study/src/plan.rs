//! The plan: a study with every value decided, and where each value came from.
//!
//! Inner types, therefore without serde: the JSON form is written by [`crate::plan_json`]. Nothing in
//! here touches the host; what the host can do was given as values when the plan was made.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use underlay_core::{Bytes, Evidence, Nanos, RootSeed};
use underlay_model::cluster::{ClusterSpec, Policy};
use underlay_model::{DeviceProfile, DiskGroupSpec};
use underlay_workload::batch::Mode as BatchMode;
use underlay_workload::dvdstore::{Behaviour, Size};
use underlay_workload::objective::Objective;
use underlay_workload::sysbench::{Distribution, Script};
use underlay_workload::transactional::Shape;
use underlay_workload::warehouse::Scale as WarehouseScale;

use crate::background_plan::BackgroundPlan;
use crate::fault_plan::FaultPlan;
use crate::finding::Finding;
use crate::options::PlanOptions;
use crate::problem::Source;
use crate::weights_plan::WeightsPlan;

/// A study resolved for one host and one set of command-line options.
#[derive(Clone, Debug)]
pub struct Plan {
    /// File-name safe name of the study (`kingston/k2` has the name `kingston-k2`).
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the study asks, in one sentence.
    pub question: String,
    /// The seed everything random in the study derives from.
    pub seed: RootSeed,
    /// The weakest kind of evidence among the designs.
    pub evidence: Evidence,
    /// The engine as all designs use it, before the overrides of a design.
    pub engine: EnginePlan,
    /// The storage designs, in the order of the file. At least one.
    pub designs: Vec<DesignPlan>,
    /// What the users do.
    pub workload: WorkloadPlan,
    /// How it is measured.
    pub procedure: ProcedurePlan,
    /// Changes of the mix of transactions in every run; in the order of the file.
    pub weights: Vec<WeightsPlan>,
    /// Work beside the users in every run; in the order of the file.
    pub background: Vec<BackgroundPlan>,
    /// What breaks, or changes, during every run; in the order of the file.
    pub faults: Vec<FaultPlan>,
    /// Every run of the study in the order of execution.
    pub schedule: Vec<RunPlan>,
    /// Similarity scale applied to everything above.
    pub scale: Scale,
    /// The sizes before scaling; equal to the plan's when the scale is 1/1.
    pub full_size: Sizes,
    /// The sizes that will be used.
    pub size: Sizes,
    /// What the study will need.
    pub estimates: Estimates,
    /// Results that others published, to be shown beside ours.
    pub published: Vec<PublishedSeries>,
    /// Doubts that do not prevent the study; each belongs in the record.
    pub findings: Vec<Finding>,
    /// Where the record is to be written, when the command line said so.
    pub out: Option<PathBuf>,
    /// Each resolved value with its origin, in the order of the file format.
    pub provenance: Vec<Setting>,
    /// The text the plan was made from.
    pub source: Source,
    /// The options the plan was made with.
    pub options: PlanOptions,
}

/// The database engine of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct EnginePlan {
    /// Which engine.
    pub kind: EngineKind,
    /// Major version asked for; `None` = the newest one found.
    pub version: Option<u32>,
    /// Server settings from the study, as the engine's configuration file would carry them.
    pub settings: BTreeMap<String, String>,
    /// Memory of the server including the page cache it fills.
    pub memory_limit: Option<Bytes>,
    /// Processors the server may use, as a number of whole processors.
    pub cpus: Option<f64>,
    /// Folder of the server programs; `None` = look for them.
    pub server_bin: Option<PathBuf>,
}

/// The engines a study can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// PostgreSQL.
    #[default]
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [EngineKind; 3] =
        [EngineKind::Postgresql, EngineKind::Mariadb, EngineKind::Mysql];

    /// Its name, for people.
    pub fn title(self) -> &'static str {
        crate::dialect::Dialect::of(self).title
    }

    /// What to do where it is not installed.
    pub fn install(self) -> &'static str {
        crate::dialect::Dialect::of(self).install
    }

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineKind::Postgresql => "postgresql",
            EngineKind::Mariadb => "mariadb",
            EngineKind::Mysql => "mysql",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One storage design.
#[derive(Clone, Debug)]
pub struct DesignPlan {
    /// File-name safe, unique in the study.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What it is.
    pub description: String,
    /// What its numbers rest on.
    pub source: String,
    /// The built-in design it started from, if any.
    pub based_on: Option<String>,
    /// Where the volumes live.
    pub kind: DatastoreKind,
    /// The volumes; always `data`, `wal` and `backup`, sometimes `temp`, in this order.
    pub volumes: Vec<VolumePlan>,
    /// The engine with this design's overrides applied.
    pub engine: EnginePlan,
    /// The paths below `engine` that this design overrides, for example `settings.wal_level`.
    pub engine_overrides: Vec<String>,
    /// Whether results of this design are measured or emulated.
    pub evidence: Evidence,
}

/// Where the volumes of a design live.
#[derive(Clone, Debug)]
pub enum DatastoreKind {
    /// A directory of the host: a mounted device, a network file system, anything.
    Path {
        /// The directory; each volume becomes a directory below it.
        directory: PathBuf,
    },
    /// Modelled devices over backing files, in real time.
    Emulated {
        /// The devices by name, in the order of the file.
        devices: Vec<(String, DeviceProfile)>,
        /// When an acknowledged write is safe.
        durability: Durability,
        /// Where the backing files go; `None` = Underlay's own folder.
        backing: Option<PathBuf>,
    },
    /// A hyper-converged cluster of modelled hosts.
    Cluster(Box<ClusterPlan>),
}

/// A cluster and what its volumes ask of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPlan {
    /// Hosts, disk groups, network and settings, scaled.
    pub spec: ClusterSpec,
    /// The policy of every volume of the design.
    pub policy: Policy,
}

impl ClusterPlan {
    /// A disk group as this cluster would have it: scheduled and reduced as its other groups are.
    pub fn joining(&self, group: &DiskGroupSpec) -> DiskGroupSpec {
        match self.spec.hosts.iter().flat_map(|host| &host.groups).next() {
            None => group.clone(),
            Some(present) => DiskGroupSpec {
                scheduler: present.scheduler,
                reduction: present.reduction,
                ..group.clone()
            },
        }
    }
}

/// What happens to data as it leaves the write buffer of a disk group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReductionKind {
    /// It is stored as it is.
    Off,
    /// Blocks of 4 KiB are deduplicated and compressed.
    DedupeCompress,
}

impl ReductionKind {
    /// All kinds.
    pub const ALL: [ReductionKind; 2] = [ReductionKind::Off, ReductionKind::DedupeCompress];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ReductionKind::Off => "off",
            ReductionKind::DedupeCompress => "dedupe-compress",
        }
    }
}

/// How rebuilding shares the devices of a disk group with the volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResyncKind {
    /// Volumes first, rebuilding at least its floor.
    Adaptive,
    /// In order of arrival.
    None,
    /// At most a fixed rate.
    StaticLimit,
    /// A rate that follows the volumes' latency.
    LatencyWatermark,
}

impl ResyncKind {
    /// All kinds.
    pub const ALL: [ResyncKind; 4] = [
        ResyncKind::Adaptive,
        ResyncKind::None,
        ResyncKind::StaticLimit,
        ResyncKind::LatencyWatermark,
    ];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResyncKind::Adaptive => "adaptive",
            ResyncKind::None => "none",
            ResyncKind::StaticLimit => "static-limit",
            ResyncKind::LatencyWatermark => "latency-watermark",
        }
    }
}

/// When an emulated device keeps what it acknowledged through a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// As the device profile says: protected buffers keep everything acknowledged.
    Profile,
    /// Only what was flushed, or written through, survives.
    Flushed,
    /// Everything acknowledged survives.
    Acknowledged,
    /// Flushes are acknowledged and not carried out: a device that lies.
    Lying,
}

impl Durability {
    /// All kinds.
    pub const ALL: [Durability; 4] =
        [Durability::Profile, Durability::Flushed, Durability::Acknowledged, Durability::Lying];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Profile => "profile",
            Durability::Flushed => "flushed",
            Durability::Acknowledged => "acknowledged",
            Durability::Lying => "lying",
        }
    }
}

/// One volume (virtual disk) of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlan {
    /// `data`, `wal`, `backup` or `temp`.
    pub name: String,
    /// Size of the volume.
    pub capacity: Bytes,
    /// The device it lies on; `None` where volumes do not lie on single devices.
    pub device: Option<String>,
    /// What it is formatted with (emulated datastores only).
    pub file_system: FileSystem,
}

/// File systems a volume can be formatted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// xfs.
    Xfs,
}

impl FileSystem {
    /// All file systems.
    pub const ALL: [FileSystem; 2] = [FileSystem::Ext4, FileSystem::Xfs];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }
}

/// The workload.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadPlan {
    /// Which workload, and its size.
    pub kind: WorkloadKind,
    /// What makes a user start the next transaction.
    pub pacing: Pacing,
    /// The seed of data and transactions.
    pub seed: RootSeed,
    /// A statement running longer is cancelled and counted as a timeout error. Of a job 0: nothing is cancelled.
    pub statement_timeout: Nanos,
}

/// A workload of database transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadKind {
    /// Order entry, derived from TPC-C.
    Tpcc(TpccPlan),
    /// Transactions compatible with sysbench's OLTP scripts.
    Sysbench(SysbenchPlan),
    /// A web shop after DVD Store 3.
    Dvdstore(DvdstorePlan),
    /// Insertion of many rows: a job.
    Batch(BatchPlan),
    /// Decision support, derived from TPC-H: a job.
    Warehouse(WarehousePlan),
}

/// TPC-C: what does not hold for every workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpccPlan {
    /// Number of warehouses, which sets the size of the database.
    pub warehouses: u32,
    /// One round trip per transaction, or one per statement.
    pub mode: Mode,
    /// Whose rules the users follow.
    pub profile: Profile,
    /// Share of random characters in generated text, in percent: 100 = incompressible.
    pub entropy: u8,
}

/// Sysbench: what does not hold for every workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysbenchPlan {
    /// What a transaction does.
    pub script: Script,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub table_size: u32,
    /// How ids are drawn.
    pub distribution: Distribution,
    /// Ids in a range.
    pub range_size: u32,
}

/// The web shop: what does not hold for every workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DvdstorePlan {
    /// The nominal size.
    pub size: Size,
    /// What visitors do.
    pub behaviour: Behaviour,
}

/// Batch insertion: what does not hold for every workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlan {
    /// Rows to insert.
    pub rows: u32,
    /// Their transactions.
    pub mode: BatchMode,
    /// Sessions that insert side by side.
    pub sessions: u32,
}

/// The warehouse: what does not hold for every workload. A run is a power run, then a throughput run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarehousePlan {
    /// The scale factor.
    pub scale: WarehouseScale,
    /// Query streams of the throughput run; 0 = there is none.
    pub streams: u32,
}

impl WorkloadKind {
    /// The names of the transaction types and what the headline counts.
    pub fn shape(&self) -> &'static Shape {
        match self {
            WorkloadKind::Tpcc(_) => &underlay_workload::tpcc::SHAPE,
            WorkloadKind::Sysbench(_) => &underlay_workload::sysbench::SHAPE,
            WorkloadKind::Dvdstore(_) => &underlay_workload::dvdstore::SHAPE,
            WorkloadKind::Batch(_) => &underlay_workload::batch::SHAPE,
            WorkloadKind::Warehouse(_) => &underlay_workload::warehouse::SHAPE,
        }
    }

    /// Sessions of a job, which has no users and runs until it is done; `None` of a workload that users follow.
    pub fn job_sessions(&self) -> Option<u32> {
        match self {
            WorkloadKind::Tpcc(_) | WorkloadKind::Sysbench(_) | WorkloadKind::Dvdstore(_) => None,
            WorkloadKind::Batch(plan) => Some(plan.sessions),
            WorkloadKind::Warehouse(plan) => Some(plan.streams.max(1)),
        }
    }

    /// What sets the size of the database.
    pub fn population(&self) -> Population {
        match self {
            WorkloadKind::Tpcc(plan) => {
                Population { count: u64::from(plan.warehouses), unit: "warehouses" }
            }
            WorkloadKind::Sysbench(plan) => Population {
                count: u64::from(plan.tables) * u64::from(plan.table_size),
                unit: "rows",
            },
            WorkloadKind::Dvdstore(plan) => {
                Population { count: u64::from(plan.size.customers()), unit: "customers" }
            }
            WorkloadKind::Batch(plan) => Population { count: u64::from(plan.rows), unit: "rows" },
            WorkloadKind::Warehouse(plan) => {
                Population { count: plan.scale.orders(), unit: "orders" }
            }
        }
    }
}

/// What sets the size of a database, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// How many.
    pub count: u64,
    /// Of what, in the plural: `warehouses`.
    pub unit: &'static str,
}

impl std::fmt::Display for Population {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.count, self.unit)
    }
}

/// How a transaction reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One call of a server-side function per transaction.
    Procedures,
    /// Each SQL statement by itself.
    Statements,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 2] = [Mode::Procedures, Mode::Statements];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Procedures => "procedures",
            Mode::Statements => "statements",
        }
    }
}

/// Whose rules the users of TPC-C follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Those of the specification.
    Specification,
    /// Those that HammerDB declares for itself, without its defects.
    HammerdbLike,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 2] = [Profile::Specification, Profile::HammerdbLike];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Profile::Specification => "specification",
            Profile::HammerdbLike => "hammerdb-like",
        }
    }
}

/// What makes a user start the next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// The answer to the one before.
    Closed {
        /// Multiplier of the standard's keying and think times; 0 = none.
        key_think: f64,
    },
    /// A clock, whatever the database does.
    Open {
        /// Transactions per second over all users.
        rate_per_second: f64,
        /// How they are spread in time.
        arrivals: Arrivals,
    },
    /// Nothing: a job runs until it is done.
    Job,
}

/// The arrival process of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrivals {
    /// Independent of each other, as many customers are.
    Poisson,
    /// Evenly spaced.
    Uniform,
}

impl Arrivals {
    /// All arrival processes.
    pub const ALL: [Arrivals; 2] = [Arrivals::Poisson, Arrivals::Uniform];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Uniform => "uniform",
        }
    }
}

/// How a study is measured. One run = restore, start, settle, warm up, then per rung of the ladder
/// ramp up and measure, then stop and check.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcedurePlan {
    /// Virtual users of each rung, strictly ascending; of a job its sessions.
    pub users: Vec<u32>,
    /// Idle time between the start of the server and the warm-up.
    pub settle: Nanos,
    /// Once per run: load rising from one user to the top of the ladder, not measured.
    pub warm_up: Nanos,
    /// Once per rung: users rise to the number of the rung, not measured.
    pub ramp_up: Nanos,
    /// Once per rung: the measured window; after a search at the rate it found. Of a job the longest that it may take.
    pub measure: Nanos,
    /// Before the measured window: the search for the highest rate that meets a latency target.
    pub search: Option<SearchPlan>,
    /// Runs per design.
    pub repeats: u32,
    /// How the runs of the designs are interleaved.
    pub order: Order,
}

/// A search for the highest rate that meets a latency target. It begins at the rate of the open loop, and its answer is the
/// headline of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// What must be met.
    pub objective: Objective,
    /// How near the highest rate that holds and the lowest that fails come, as a share of the former: 0.05.
    pub resolution: f64,
    /// Unmeasured time at each rate.
    pub settle: Nanos,
    /// Measured time at each rate; the answer is measured once more, for twice as long.
    pub measure: Nanos,
}

/// How the runs of the designs are interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// A B, B A, A B, ...: every second repeat is reversed, so that a drift of the host hits all
    /// designs alike.
    Abba,
    /// A B, A B, A B, ...
    Rotating,
}

impl Order {
    /// All orders.
    pub const ALL: [Order; 2] = [Order::Abba, Order::Rotating];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Order::Abba => "abba",
            Order::Rotating => "rotating",
        }
    }
}

/// One run: one design in one repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunPlan {
    /// Index into [`Plan::designs`].
    pub design: usize,
    /// 0 for the first repeat.
    pub repeat: u32,
}

/// The sizes that similarity scaling divides.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Processors of the database server.
    pub cpus: Option<f64>,
    /// Memory of the database server.
    pub memory_limit: Option<Bytes>,
    /// What sets the size of the database.
    pub population: Population,
    /// Estimated size of the loaded database.
    pub database: Bytes,
    /// The user ladder.
    pub users: Vec<u32>,
}

/// What a study will need. Estimates, with their constants in `estimate.rs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimates {
    /// Time of the load (once per template).
    pub load: Nanos,
    /// Time of one run: restore, start, settle, warm-up, all rungs, stop, check.
    pub run: Nanos,
    /// The whole study.
    pub duration: Nanos,
    /// Size of the loaded database, tables and indexes.
    pub database: Bytes,
    /// Disk: the templates kept after the load.
    pub disk_templates: Bytes,
    /// Disk: what the volumes of one run are expected to hold.
    pub disk_volumes: Bytes,
    /// Disk: what the volumes of one run can hold at most.
    pub disk_volumes_worst: Bytes,
    /// Templates and volumes as expected.
    pub disk: Bytes,
    /// Memory: database server, load generator, emulated devices, Underlay itself.
    pub memory: Bytes,
    /// Size of the database in units of the server's memory limit; below 1 it fits the cache.
    pub working_set_ratio: Option<f64>,
}

/// Results published by others for one design of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSeries {
    /// Name of the design in this study.
    pub design: String,
    /// `nopm`, `tpm`, `tpm-per-user`, `cpu-idle`.
    pub metric: String,
    /// Number of users of each value, at the size the study was published with.
    pub users: Vec<u32>,
    /// The values, one per number of users.
    pub values: Vec<f64>,
    /// Document and figure.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
}

/// Similarity scale 1/k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scale {
    /// k: everything scaled is divided by it. At least 1.
    pub divisor: u32,
}

impl Scale {
    /// The size the study was written for.
    pub const FULL: Scale = Scale { divisor: 1 };
}

/// One resolved value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Dotted path in the file format, for example `design.nvme.volumes.wal.capacity`.
    pub path: String,
    /// The value as the file would carry it.
    pub value: String,
    /// Who decided.
    pub origin: Origin,
}

/// Who decided a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The study file, or a built-in study.
    File {
        /// Line, from 1.
        line: usize,
    },
    /// The defaults that Underlay documents in `defaults.toml`.
    Default,
    /// A built-in design or device profile.
    Builtin {
        /// Its name.
        name: String,
    },
    /// An option of the command line.
    CommandLine {
        /// The option, for example `--repeats`.
        option: &'static str,
    },
    /// Similarity scaling of a value.
    Scale {
        /// The value before scaling.
        full: String,
        /// Who decided the value before scaling.
        of: Box<Origin>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { line } => write!(f, "line {line}"),
            Origin::Default => f.write_str("default"),
            Origin::Builtin { name } => write!(f, "built-in {name}"),
            Origin::CommandLine { option } => write!(f, "command line {option}"),
            Origin::Scale { full, of } => write!(f, "scaled from {full} ({of})"),
        }
    }
}
