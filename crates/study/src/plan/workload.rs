//! What the users of a plan do, and how many rows that takes.

use underlay_core::{CallMode as Mode, Nanos, RootSeed};
use underlay_workload::batch::{Loop, Mode as BatchMode};
use underlay_workload::dvdstore::{Behaviour, Size};
use underlay_workload::sysbench::{Distribution, Script};
use underlay_workload::tpcc::{HomeWarehouse, Profile};
use underlay_workload::transactional::Shape;
use underlay_workload::warehouse::Scale as WarehouseScale;

use super::BlockPlan;
use super::pacing::Pacing;

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

/// A workload of database transactions, or of requests to the volumes.
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
    /// A block load on the volumes, without a database.
    Block(Box<BlockPlan>),
    /// Backup and restore cycles of the engine's own programs, on TPC-C's data: a job.
    Backup(BackupPlan),
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
    /// How the home warehouse of a transaction is chosen.
    pub home_warehouse: HomeWarehouse,
    /// Share of random characters in generated text, in percent: 100 = incompressible.
    pub entropy: u8,
}

impl TpccPlan {
    /// What deviates from the specification beyond what all of Underlay's results deviate in.
    pub fn deviations(&self) -> impl Iterator<Item = &'static str> {
        self.profile.deviations().iter().chain(self.home_warehouse.deviations()).copied()
    }
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
    /// Who goes from row to row.
    pub place: Loop,
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

/// Backup and restore cycles: what does not hold for every workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupPlan {
    /// Warehouses of TPC-C, which set the size of the database.
    pub warehouses: u32,
    /// Cycles.
    pub cycles: u32,
    /// Idle time between two of them.
    pub pause: Nanos,
    /// Whether each backup is restored.
    pub restore: bool,
    /// The most that a backup copies per second, where that is limited.
    pub bytes_per_second: Option<u64>,
}

impl BackupPlan {
    /// The population, which no transaction changes.
    pub fn population(&self) -> TpccPlan {
        TpccPlan {
            warehouses: self.warehouses,
            mode: Mode::Procedures,
            profile: Profile::Specification,
            home_warehouse: HomeWarehouse::Fixed,
            entropy: 100,
        }
    }
}

/// What a batch insertion comes to, as pages define it.
const ROWS_PER_SECOND: &str = "rows that the table accepted, over the time from when all sessions were connected to \
    the end of the last one; creating and checking the table are not included";

/// What a warehouse's run comes to: clauses 5.4.1 to 5.4.3 of the TPC-H specification.
const QUERIES_PER_HOUR: &str = "TPC-H's composition, not a count: the geometric mean of the power (3600 s over the \
    geometric mean of the times of the 22 queries and 2 refresh functions, run one after the other) and the \
    throughput (queries of all streams per hour of their whole duration), both times the scale factor; without \
    streams the power alone";

/// What backups come to.
const MEGABYTES_PER_SECOND: &str = "bytes (in 1,000,000) of all backups of the run over the time that they took: from \
    the start of the engine's program until the backup is durable on its volume. Restores are counted separately; \
    pauses and the removal of earlier files are not counted";

impl WorkloadKind {
    /// The names of the transaction types and what the headline counts.
    pub fn shape(&self) -> &'static Shape {
        match self {
            WorkloadKind::Tpcc(_) => &underlay_workload::tpcc::SHAPE,
            WorkloadKind::Sysbench(_) => &underlay_workload::sysbench::SHAPE,
            WorkloadKind::Dvdstore(_) => &underlay_workload::dvdstore::SHAPE,
            WorkloadKind::Batch(_) => &underlay_workload::batch::SHAPE,
            WorkloadKind::Warehouse(_) => &underlay_workload::warehouse::SHAPE,
            WorkloadKind::Block(_) => &underlay_workload::block::SHAPE,
            WorkloadKind::Backup(_) => &underlay_workload::backup::SHAPE,
        }
    }

    /// Sessions of a job, which has no users and runs until it is done; `None` of a workload that users follow.
    pub fn job_sessions(&self) -> Option<u32> {
        match self {
            WorkloadKind::Tpcc(_)
            | WorkloadKind::Sysbench(_)
            | WorkloadKind::Dvdstore(_)
            | WorkloadKind::Block(_) => None,
            WorkloadKind::Batch(plan) => Some(plan.sessions),
            WorkloadKind::Warehouse(plan) => Some(plan.streams.max(1)),
            WorkloadKind::Backup(_) => Some(1),
        }
    }

    /// The keys of a study that set how much data the workload reads again and again; `None` where nothing is
    /// read again, so that it does not matter how much of the data a cache holds.
    pub fn read_again(&self) -> Option<&'static str> {
        match self {
            WorkloadKind::Tpcc(_) => Some("warehouses"),
            WorkloadKind::Sysbench(_) => Some("tables or table-size"),
            WorkloadKind::Dvdstore(_) => Some("db-size"),
            WorkloadKind::Warehouse(_) => Some("scale"),
            // A block load goes past every cache. A backup reads its files once, and none of them is in memory when it begins.
            WorkloadKind::Batch(_) | WorkloadKind::Block(_) | WorkloadKind::Backup(_) => None,
        }
    }

    /// The block load, where there is no database.
    pub fn block(&self) -> Option<&BlockPlan> {
        match self {
            WorkloadKind::Block(block) => Some(block),
            _ => None,
        }
    }

    /// What the headline of a job is; `None` of a workload whose headline is counted.
    pub fn job_headline(&self) -> Option<&'static str> {
        match self {
            WorkloadKind::Tpcc(_)
            | WorkloadKind::Sysbench(_)
            | WorkloadKind::Dvdstore(_)
            | WorkloadKind::Block(_) => None,
            WorkloadKind::Batch(_) => Some(ROWS_PER_SECOND),
            WorkloadKind::Warehouse(_) => Some(QUERIES_PER_HOUR),
            WorkloadKind::Backup(_) => Some(MEGABYTES_PER_SECOND),
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
            WorkloadKind::Backup(plan) => {
                Population { count: u64::from(plan.warehouses), unit: "warehouses" }
            }
            WorkloadKind::Warehouse(plan) => {
                Population { count: plan.scale.orders(), unit: "orders" }
            }
            WorkloadKind::Block(plan) => {
                Population { count: plan.working_set.0 >> 20, unit: "MiB per volume" }
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
