//! What all runs of an execution share. Nothing of a single run is here.

use std::path::Path;

use tokio::runtime::Runtime;
use underlay_core::Dilation;
use underlay_database::managed::{Install, Template};
use underlay_host::{StateDir, User};
use underlay_study::DatabasePlan;
use underlay_study::Plan;

use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::workload::AnySubject;

/// What all runs of an execution share.
pub struct Bench<'a> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Where the record is written.
    pub recorder: &'a SharedRecorder,
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The databases under test, at least one.
    pub databases: Vec<DatabaseBench<'a>>,
    /// Who their servers run as.
    pub user: Option<&'a User>,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// For the checks.
    pub runtime: &'a Runtime,
    /// How many times longer every run takes than what it stands for.
    pub dilation: Dilation,
}

/// What all runs of an execution share of a database.
pub struct DatabaseBench<'a> {
    /// What it is.
    pub plan: &'a DatabasePlan,
    /// Its programs.
    pub install: &'a Install,
    /// The loaded database that every run starts from.
    pub template: &'a Template,
    /// Its workload.
    pub subject: &'a dyn AnySubject,
}
