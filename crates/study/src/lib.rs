//! The study file: TOML, checked, resolved into a plan; built-in studies, designs and device profiles.
//!
//! Reading order is the order of the data: text -> file types with spans -> plan. All problems of a
//! study are reported at once, each with its line, the reason and a remedy, before anything is touched.
//!
//! Pure: what the host has is given as values ([`HostView`]). It opens no file, looks at no clock and
//! starts nothing.

mod finding;
mod host_view;
mod options;
mod plan;
mod problem;

pub use finding::{Finding, Severity};
pub use host_view::{DirectoryState, Enforcement, HostView, InstalledServer};
pub use options::{PlanOptions, ScaleError};
pub use plan::{
    Arrivals, DatastoreKind, DesignPlan, Durability, EngineKind, EnginePlan, Estimates, FileSystem,
    Mode, Order, Origin, Pacing, Plan, ProcedurePlan, PublishedSeries, RunPlan, Scale, Setting,
    Sizes, VolumePlan, WorkloadPlan,
};
pub use problem::{Colour, Problem, Problems, Source};
