//! The plan: a study with every value decided, and where each value came from.
//!
//! Inner types, therefore without serde: the JSON form is written by [`crate::plan_json`]. Nothing in
//! here touches the host; what the host can do was given as values when the plan was made.

mod axis;
mod block;
mod client;
mod database;
mod design;
mod engine;
mod engine_kind;
mod pacing;
mod procedure;
mod provenance;
mod repeats;
mod scale;
mod sizes;
mod workload;

use std::path::PathBuf;

use underlay_core::{Bytes, Evidence, Nanos, RootSeed};

use crate::background_plan::BackgroundPlan;
use crate::fault_plan::FaultPlan;
use crate::finding::Finding;
use crate::options::PlanOptions;
use crate::problem::Source;
use crate::weights_plan::WeightsPlan;

pub use axis::{AxisPlan, AxisPoint, AxisUnit, VariantPlan};
pub use block::BlockPlan;
pub(crate) use block::scaled as scaled_concurrency;
pub use client::{ClientPlace, ClientPlan, NetworkPlan};
pub(crate) use database::volume_name;
pub use database::{DatabasePart, DatabasePlan};
pub(crate) use design::unplaced_host;
pub use design::{
    ClusterPlan, DatastoreKind, DesignPlan, HostCompute, Layout, ReductionKind, ResyncKind,
    VolumePlan,
};
pub use engine::{EnginePlan, SettingError};
pub use engine_kind::EngineKind;
pub use pacing::Pacing;
pub use procedure::{
    CausalPlan, CoolDownPlan, Order, ProcedurePlan, SearchPlan, TWIN_MEASURE, TWIN_RAMP_UP,
    TimeDilation, TimeDilationError, Until,
};
pub use provenance::{Origin, Setting};
pub use repeats::{FEWEST_REPEATS_UNTIL, Precision, Repeats, RepeatsError};
pub use scale::{Scale, ScaleError};
pub use sizes::Sizes;
pub use underlay_core::{Arrivals, CallMode as Mode, Durability, FileSystem};
pub use underlay_workload::tpcc::{HomeWarehouse, Profile};
pub use workload::{
    BackupPlan, BatchPlan, DvdstorePlan, Population, SysbenchPlan, TpccPlan, WarehousePlan,
    WorkloadKind, WorkloadPlan,
};

/// A study resolved for one host and one set of command-line options.
#[derive(Clone, Debug)]
pub struct Plan {
    /// File-name safe name of the study (`kingston/k2` has the name `kingston-k2`).
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the study asks, in one sentence.
    pub question: String,
    /// Of a study that repeats a publication: what differs from it, one sentence each.
    pub deviations: Vec<String>,
    /// The seed everything random in the study derives from.
    pub seed: RootSeed,
    /// The weakest kind of evidence among the designs.
    pub evidence: Evidence,
    /// The engine as all designs use it, before the overrides of a design; of several databases that of the first.
    pub engine: EnginePlan,
    /// The storage designs, in the order of the file. At least one. With axes: the variants, which are each design at each
    /// combination of points.
    pub designs: Vec<DesignPlan>,
    /// What is varied besides designs and users; in the order of the file.
    pub axes: Vec<AxisPlan>,
    /// With axes: the plan of each combination of points, with the designs and the schedule of the whole. Empty without; then
    /// this plan is its only one. Values above that an axis varies are those of the first combination.
    pub points: Vec<Plan>,
    /// What the users do; of several databases what those of the first do.
    pub workload: WorkloadPlan,
    /// The databases under test, at least one; in the order of the file.
    pub databases: Vec<DatabasePlan>,
    /// How it is measured.
    pub procedure: ProcedurePlan,
    /// Changes of the mix of transactions in every run; in the order of the file.
    pub weights: Vec<WeightsPlan>,
    /// Work beside the users in every run; in the order of the file.
    pub background: Vec<BackgroundPlan>,
    /// What breaks, or changes, during every run; in the order of the file.
    pub faults: Vec<FaultPlan>,
    /// Every run of the study in the order of execution; the last repeats may turn out not to be needed
    /// ([`ProcedurePlan::repeats_until`]).
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

impl Plan {
    /// The plans of all combinations of points: this one, without axes.
    pub fn plans(&self) -> Vec<&Plan> {
        if self.points.is_empty() { vec![self] } else { self.points.iter().collect() }
    }

    /// The position in [`Plan::plans`] of the plan that the runs of a design carry out.
    pub fn point_of(&self, design: usize) -> usize {
        self.designs[design].variant.as_ref().map_or(0, |variant| variant.point)
    }

    /// Whether the study names its databases. One without a name is the only one.
    pub fn has_named_databases(&self) -> bool {
        self.databases.iter().any(|database| !database.name.is_empty())
    }

    /// Whether databases have jobs, beside others that have users.
    pub fn has_jobs_beside_users(&self) -> bool {
        self.has_named_databases() && self.databases.iter().any(DatabasePlan::is_job)
    }

    /// Whether the designs are different kinds of evidence, so that none can be said of all.
    pub fn is_mixed_evidence(&self) -> bool {
        self.designs.windows(2).any(|two| two[0].evidence != two[1].evidence)
    }

    /// Whether the first run of a design ends with its null twin: the load without the delays of its storage. A design that has
    /// none is a twin itself; what breaks or works beside the users would not be what it was in the measured windows, nor would
    /// jobs of other databases.
    pub fn has_null_twin(&self, design: usize) -> bool {
        let has_delays = match &self.designs[design].kind {
            DatastoreKind::Path { .. } => false,
            DatastoreKind::Emulated { devices, link, .. } => {
                link.is_some() || devices.iter().any(|(_, profile)| !profile.is_instant())
            }
            DatastoreKind::Cluster(cluster) => !cluster.spec.is_instant(),
        };
        self.procedure.null_twin
            && has_delays
            && !self.points.get(self.point_of(design)).unwrap_or(self).has_jobs_beside_users()
            && self.background.iter().all(|work| !work.designs.contains(&design))
            && self.faults.iter().all(|fault| !fault.designs.contains(&design))
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

/// What a study will need. Estimates, with their constants in `estimate.rs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimates {
    /// Time of the load (once per template).
    pub load: Nanos,
    /// Time of one run: restore, start, settle, warm-up, all rungs, stop, check.
    pub run: Nanos,
    /// The part of a run that time dilation does not stretch: restore, start, checks, stop.
    pub around_load: Nanos,
    /// The part that it does, in design time.
    pub under_load: Nanos,
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
    /// Size of the database in units of the server's memory limit; below 1 it fits the cache. `None` where the
    /// memory is not known or nothing is read again.
    pub working_set_ratio: Option<f64>,
}

/// Results published by others for one design of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSeries {
    /// Name of the design in this study.
    pub design: String,
    /// The point of each axis, by their names; in the order of the axes.
    pub at: Vec<(String, String)>,
    /// One of several databases; empty where it is of all of them, or of the only one.
    pub database: String,
    /// What was measured, by the words of the study format: `nopm`, `p95`, ...
    pub metric: String,
    /// Unit of the values as printed; empty where it is that of the workload.
    pub unit: String,
    /// What a value is multiplied by to be in the unit of records.
    pub factor: f64,
    /// Number of users of each value, at the size the study was published with; empty of a job.
    pub users: Vec<u32>,
    /// The values, one per number of users.
    pub values: Vec<f64>,
    /// Whether agreement says nothing, because the model was fitted to it, or the study sets it.
    pub given: bool,
    /// Id of the experiment; empty where it has none.
    pub experiment: String,
    /// Document and figure.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
}
