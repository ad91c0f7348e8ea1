//! What the lab needs of a workload: its population, its sessions, its checks. One file per workload.
//!
//! The lab is compiled per workload, like the load generator: it knows none of them. It neither draws
//! transactions nor carries them out; that is between the workload and the engine's sessions.

mod backup;
mod batch;
mod cause;
mod checked;
mod dvdstore;
mod loaded;
mod session;
mod subject;
mod sysbench;
mod tpcc;
mod warehouse;

pub use backup::BackupSubject;
/// Operations of backups, and what they come to.
pub mod backups {
    pub use super::backup::{Operation, outcome};
}
pub use batch::BatchSubject;
pub use cause::{Cause, session_failed, stopped};
pub use checked::Checked;
pub use dvdstore::DvdStoreSubject;
pub use loaded::{Loaded, Progress, load_document};
pub use session::{AnySubject, Session, subject_of};
pub use subject::{Access, Loadable, Subject};
pub use sysbench::SysbenchSubject;
pub use tpcc::TpccSubject;
pub use warehouse::{Asked, WarehouseSubject};
/// The document of a warehouse's runs.
pub mod warehouses {
    pub use super::warehouse::outcome;
}
