//! The results of the jobs of a simulated run, in the words of real runs: outcomes, events and
//! findings.
//!
//! Not here: how they go, which the engine model knows.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use underlay_core::{Bytes, Dilation, Nanos};
use underlay_engine::{DatabaseSpec, JobResult, Scenario, WorkloadSpec};
use underlay_record::conventions::{document, event, finding};
use underlay_record::{RunId, Severity};

use crate::lab::abort::Abort;
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::workload::backups::{Operation, outcome};

/// A run whose jobs are kept.
pub struct Jobs<'a> {
    /// The record.
    pub recorder: &'a SharedRecorder,
    /// The run.
    pub run: RunId,
    /// What was simulated.
    pub scenario: &'a Scenario,
    /// When it ended, on its clock.
    pub end: Nanos,
}

impl Jobs<'_> {
    /// Writes what they came to. Returns the result of the only database, if that has a job.
    ///
    /// # Errors
    /// A job of an only database that was not done in its time.
    pub fn keep(
        &self,
        jobs: &BTreeMap<usize, JobResult>,
        observer: &mut dyn Observer,
    ) -> Result<Option<f64>, Abort> {
        let mut value = None;
        for (number, job) in jobs {
            let database = &self.scenario.databases[*number];
            let log = RunLog {
                recorder: self.recorder,
                run: self.run,
                // All times are given.
                origin: Instant::now(),
                dilation: Dilation::NONE,
                database: &database.name,
            };
            let outcome = self.outcome(database, job);
            if let Some(outcome) = &outcome {
                log.document(document::OUTCOME, outcome)?;
            }
            if database.name.is_empty() {
                value = outcome.and_then(|outcome| outcome["value"].as_f64());
                if job.ended.is_none() {
                    return Err(Abort::Failed(
                        "the job was not done in its time; raise procedure.measure, or make the \
                         job smaller"
                            .to_string(),
                    ));
                }
                continue;
            }
            match job.ended {
                None => {
                    let text = "the users' window ended before the job was done";
                    log.find(Severity::Information, finding::JOB_STOPPED, text, observer)?;
                }
                Some(ended) => {
                    log.event(event::JOB_DONE, ended, "the job was done", Value::Null)?;
                    if ended < self.end {
                        let text = "the job was done before the users had been measured";
                        log.find(Severity::Warning, finding::JOB_DONE_EARLY, text, observer)?;
                    }
                }
            }
        }
        Ok(value)
    }

    /// The document of a job; `None` where nothing of it was done.
    fn outcome(&self, database: &DatabaseSpec, job: &JobResult) -> Option<Value> {
        match &database.workload {
            WorkloadSpec::Backup(_) if !job.operations.is_empty() => {
                let operation = |it: &underlay_engine::JobOperation| Operation {
                    kind: it.kind,
                    cycle: it.cycle,
                    begin: it.begin.into(),
                    bytes: Bytes(it.bytes),
                    took: it.end.saturating_sub(it.begin).into(),
                };
                let operations: Vec<Operation> = job.operations.iter().map(operation).collect();
                Some(outcome(&operations, job.ended.is_none()))
            }
            WorkloadSpec::Batch(batch) => {
                let took = job.ended?;
                Some(json!({
                    "value": f64::from(batch.rows) / took.as_secs_f64(),
                    "rows": batch.rows,
                    "rows_acknowledged": batch.rows,
                    "duration_ns": took.0,
                }))
            }
            _ => None,
        }
    }
}
