//! Batch insertion in a study: a job.
//!
//! The template is an empty database; the table is made by the run itself, and compared with the generator's rows after it.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use underlay_core::{Nanos, RootSeed};
use underlay_database::batch::{BatchError, BatchOptions, BatchReport, insert_watched, verify};
use underlay_database::load_report::LoadReport;
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::{CheckMoment, CheckOutcome};
use underlay_study::BatchPlan;
use underlay_workload::batch::{Parameters, SHAPE, Verdict};
use underlay_workload::identity::identity_of;

use super::cause::stopped;
use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use crate::lab::abort::Abort;
use crate::lab::job::JobRunner;
use crate::stop::Stop;

/// The insertion of some number of rows.
pub struct BatchSubject {
    /// Which rows, and how they are inserted.
    pub options: BatchOptions,
}

/// What it comes to.
type Inserted = Result<BatchReport, BatchError>;

impl BatchSubject {
    /// As the plan has it.
    pub fn new(plan: &BatchPlan, seed: RootSeed) -> BatchSubject {
        let BatchPlan { rows, mode, place, sessions } = *plan;
        let parameters = Parameters { rows, seed };
        BatchSubject {
            options: BatchOptions { parameters, mode, place, sessions, rollback: false },
        }
    }
}

impl BatchSubject {
    /// What a comparison found.
    pub fn checked(verdict: &Verdict) -> Checked {
        Checked {
            id: "rows".to_string(),
            title: "every row as it was generated, none missing, none too many".to_string(),
            outcome: match verdict.violations.first() {
                None => CheckOutcome::Ok,
                Some(first) => {
                    CheckOutcome::Violated { rows: verdict.violation_count, example: first.clone() }
                }
            },
            detail: json!({
                "rows": verdict.rows,
                "sha256": verdict.checksum,
                "sha256_expected": verdict.expected_checksum,
                "violation_count": verdict.violation_count,
                "violations": verdict.violations,
            }),
        }
    }
}

impl Loadable for BatchSubject {
    fn database(&self) -> &'static str {
        "batch"
    }

    fn population(&self) -> String {
        "batch".to_string()
    }

    fn population_identity(&self, engine: Engine) -> String {
        identity_of(&["underlay batch population 1", &format!("{engine}")])
    }

    fn identity(&self, engine: Engine) -> String {
        let BatchOptions { parameters, mode, place, sessions, .. } = self.options;
        let numbers = format!("{} {} {sessions}", parameters.rows, parameters.seed.0);
        let words = [mode.as_str(), place.as_str()];
        identity_of(&["underlay batch 2", &format!("{engine}"), words[0], words[1], &numbers])
    }

    fn load(&self, _: Access<'_>, progress: &(dyn Fn(Progress) + Sync)) -> Result<Loaded, Stop> {
        progress(Progress { share: 1.0, rows: 0 });
        let none = Duration::ZERO;
        let (rows_duration, keys_duration, settle_duration) = (none, none, none);
        Ok(LoadReport { rows: 0, bytes: 0, rows_duration, keys_duration, settle_duration }.into())
    }
}

impl Subject for BatchSubject {
    type Load = JobRunner<Inserted>;
    type Accounting = Option<Inserted>;
    type Before = ();

    fn before(&self, _: Access<'_>, _: u32) -> Result<(), Stop> {
        Ok(())
    }

    fn check(
        &self,
        access: Access<'_>,
        _: CheckMoment,
        run: Option<(&(), &Option<Inserted>)>,
    ) -> Result<Vec<Checked>, Stop> {
        let Some(((), Some(Ok(report)))) = run else { return Ok(Vec::new()) };
        let verdict = verify(access.target, &self.options.parameters, report.claims())
            .map_err(|error| stopped("compare the table with what was inserted", error))?;
        Ok(vec![BatchSubject::checked(&verdict)])
    }

    fn start(
        &self,
        _: DriveSpec,
        target: Target,
        origin: Instant,
        (): &(),
    ) -> Result<Self::Load, Stop> {
        let options = self.options;
        let job = JobRunner::start(&SHAPE, options.sessions, origin, move |progress| {
            let took = |rows| progress.completed(0, rows, None);
            insert_watched(&target, &options, &|| progress.is_to_stop(), &took)
        });
        job.map_err(|error| Stop::host(format!("could not start a thread: {error}")))
    }

    fn outcome(&self, accounting: &Option<Inserted>) -> Result<Option<Value>, Abort> {
        let Some(inserted) = accounting else { return Ok(None) };
        let report = match inserted {
            Ok(report) => report,
            Err(error) => return Err(Abort::failed("the insertion ended early", error)),
        };
        if let Some(error) = report.failure() {
            return Err(Abort::failed("the insertion ended early", error));
        }
        let quantile = |q| report.commit_latency_ns.quantile(q);
        Ok(report.is_complete().then(|| {
            json!({
                "value": report.rate_per_second(),
                "rows": report.rows(),
                "rows_acknowledged": report.rows_acknowledged(),
                "duration_ns": Nanos::from(report.duration).0,
                "rows_per_second": report.rows_per_second,
                "commits": report.commit_latency_ns.count(),
                "commit_p50_ns": quantile(0.5),
                "commit_p99_ns": quantile(0.99),
            })
        }))
    }
}
