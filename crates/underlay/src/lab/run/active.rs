//! A run in progress, on which its steps work. Each step is in a file of its own.

use underlay_host::Teardown;
use underlay_study::{DesignPlan, RunPlan};

use super::bench::Bench;
use crate::lab::ladder::Rung;
use crate::lab::run_log::RunLog;
use crate::lab::verification::Verified;

/// A run in progress.
pub(super) struct ActiveRun<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) design: &'a DesignPlan,
    pub(super) scheduled: RunPlan,
    pub(super) log: RunLog<'a>,
    pub(super) teardown: &'a Teardown,
    pub(super) rungs: Vec<Rung>,
    pub(super) verified: Option<Verified>,
}
