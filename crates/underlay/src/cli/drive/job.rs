//! A run of a job on an external database: a workload with an end of its own, and neither users nor rates. What it did is
//! printed by the job's own file.

use underlay_core::Nanos;
use underlay_study::{Pacing, ProcedurePlan, WorkloadKind, WorkloadPlan};

use super::command::Command;
use super::external::External;
use super::recording;
use crate::lab::external::{self, CountedSite, ExternalPlan, Finished};
use crate::lab::progress::Progress;
use crate::lab::workload::Access;
use crate::stop::Stop;

/// A job may take so long.
const LONGEST_JOB: Nanos = Nanos::from_secs(30 * 86_400);

/// Runs a job: a workload with an end of its own, and neither users nor rates.
pub(super) fn run_job<S: External>(
    subject: &S,
    command: &Command<'_>,
    access: Access<'_>,
    kind: WorkloadKind,
    checks: bool,
) -> Result<Finished<S>, Stop> {
    let sessions = kind.job_sessions().unwrap_or(1);
    let plan = ExternalPlan {
        workload: WorkloadPlan {
            kind,
            pacing: Pacing::Job,
            seed: command.common.seed(),
            statement_timeout: Nanos::ZERO,
        },
        procedure: ProcedurePlan {
            users: vec![sessions],
            measure: LONGEST_JOB,
            ..ProcedurePlan::empty()
        },
        mix: None,
        weights: Vec::new(),
        connections: None,
        threads: None,
        ramp: Nanos::ZERO,
        checks,
    };
    let recorder = recording::create(command, access, subject, &plan)?;
    let mut site = CountedSite { ask: &|| None, first: None, last: None };
    let mut progress = Progress::of_one_run(command.name, Nanos::ZERO, true);
    external::carry_out(subject, access, &plan, recorder, &mut site, &mut progress)
}
