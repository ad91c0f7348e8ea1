//! The study file: TOML, checked, resolved into a plan; built-in studies, designs, device profiles and block loads.
//!
//! Reading order is the order of the data: text -> file types with spans -> plan. All problems of a
//! study are reported at once, each with its line, the reason and a remedy, before anything is touched.
//!
//! Pure: what the host has is given as values ([`HostView`]). It opens no file, looks at no clock and
//! starts nothing.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod plan;

mod axis;
mod background_plan;
mod fault_plan;
mod weights_plan;

mod finding;
mod host_view;
mod options;
mod problem;

mod planner;

mod plan_json;
mod plan_text;

mod built_in_datastore;
mod builtin;
mod change;
mod design_file;
mod dialect;
mod engine_dialect;
mod entry;
mod estimate;
mod exact;
mod file;
mod io_profile;
mod json_value;
mod laptop;
mod limits;
mod mariadb;
mod parse;
mod postgresql;
mod procedure_keys;
mod profile_text;
mod published_numbers;
mod quantity_schema;
mod reader;
mod report;
mod resolve;
mod scale;
mod schema;
mod section;
mod suggest;
mod timers;

pub use background_plan::{BackgroundPlan, BackgroundWork, CopyPlan};
pub use built_in_datastore::builtin_datastore;
pub use builtin::{
    Builtin, DEFAULTS, builtin_designs, builtin_devices, builtin_studies, find_study,
    suggest_design, suggest_study,
};
pub use design_file::{parse_design, single_device};
pub use estimate::MEMORY_PER_SESSION;
pub use fault_plan::{FaultAction, FaultKind, FaultPhase, FaultPlan, PolicyChange};
pub use finding::{Finding, Severity};
pub use host_view::{DirectoryState, Enforcement, HostView, InstalledServer, ServerLookup};
pub use io_profile::{builtin_io_profiles, find_io_profile, parse_io_profile, suggest_io_profile};
pub use limits::{TORN_KEEP, TORN_UNIT};
pub use options::{PlanOptions, StudySize};
pub use parse::{Study, read};
pub use plan::{
    Arrivals, AxisPlan, AxisPoint, AxisUnit, BackupPlan, BatchPlan, BlockPlan, CausalPlan,
    ClientPlace, ClientPlan, ClusterPlan, CoolDownPlan, DatabasePart, DatabasePlan, DatastoreKind,
    DesignPlan, Durability, DvdstorePlan, EngineKind, EnginePlan, Estimates, FEWEST_REPEATS_UNTIL,
    FileSystem, HostCompute, Mode, NetworkPlan, Order, Origin, Pacing, Plan, Population, Precision,
    ProcedurePlan, Profile, PublishedSeries, ReductionKind, Repeats, RepeatsError, ResyncKind,
    RunPlan, Scale, ScaleError, SearchPlan, Setting, SettingError, Sizes, SysbenchPlan,
    TWIN_MEASURE, TWIN_RAMP_UP, TimeDilation, TimeDilationError, TpccPlan, Until, VariantPlan,
    VolumePlan, WarehousePlan, WorkloadKind, WorkloadPlan,
};
pub use plan_json::{
    PLAN_FORMAT, RecordedPlanError, measurement_json, plan_json, recorded_study, study_json,
};
pub use plan_text::render_plan;
pub use planner::{check, parse, plan};
pub use problem::{Colour, Problem, Problems, Source};
pub use profile_text::{parse_profile, profile_toml};
pub use published_numbers::{PublishedNumber, publications, published_numbers};
pub use schema::{json_schema, profile_json_schema};
pub use timers::{DilatedSetting, dilated_settings};
pub use weights_plan::WeightsPlan;
