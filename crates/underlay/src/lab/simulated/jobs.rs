//! The results of the jobs of a simulated run, in the words of real runs: outcomes, events and
//! findings.
//!
//! Not here: how they go, which the engine model knows.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use underlay_core::{Bytes, Dilation, Nanos};
use underlay_database::warehouse::{Measured, Step};
use underlay_engine::{
    DatabaseSpec, JobOperation, JobResult, Scenario, WarehouseSpec, WorkloadSpec,
};
use underlay_record::conventions::{document, event, finding};
use underlay_record::{RunId, Severity};

use crate::lab::abort::Abort;
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::workload::backups::{Operation, outcome};
use crate::lab::workload::warehouses;

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
                let operation = |it: &JobOperation| Operation {
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
            WorkloadSpec::Warehouse(warehouse) => of_warehouse(warehouse, job),
            _ => None,
        }
    }
}

/// The document of a warehouse's runs; `None` where they did not end.
fn of_warehouse(spec: &WarehouseSpec, job: &JobResult) -> Option<Value> {
    job.ended?;
    let (power, throughput) = (steps_of_run(job, 1)?, steps_of_run(job, 2));
    let mut outcome = warehouses::outcome(spec.scale, spec.streams, &power, throughput.as_ref())?;
    for run in ["power", "throughput"] {
        for step in outcome[run]["steps"].as_array_mut().into_iter().flatten() {
            // Without data, answers have no rows that could be counted.
            step["rows"] = Value::Null;
        }
    }
    Some(outcome)
}

/// The steps of a warehouse's run, as a real one has them; `None` where there was no such run.
fn steps_of_run(job: &JobResult, run: u32) -> Option<Measured> {
    let mut operations: Vec<&JobOperation> =
        job.operations.iter().filter(|it| it.cycle == run).collect();
    operations.sort_by_key(|it| it.stream);
    let begin = operations.iter().map(|it| it.begin).min()?;
    let end = operations.iter().map(|it| it.end).max()?;
    let kinds: Vec<Step> = Step::all().collect();
    let step = |it: &&JobOperation| {
        let took = it.end.saturating_sub(it.begin);
        (it.stream, kinds[it.kind], took.into(), 0)
    };
    Some(Measured {
        duration: end.saturating_sub(begin).into(),
        steps: operations.iter().map(step).collect(),
        is_stopped: false,
    })
}

#[cfg(test)]
mod tests {
    use super::of_warehouse;
    use underlay_core::Nanos;
    use underlay_engine::{JobOperation, JobResult, WarehouseSpec};
    use underlay_workload::warehouse::Scale;

    #[test]
    fn rates_of_a_warehouse_follow_from_its_steps() {
        let scale = Scale::from_hundredths(50).expect("a scale");
        let spec = WarehouseSpec { scale, streams: 2, workers_per_query: 0, workers: 0 };
        let second = Nanos::from_secs;
        let operation = |kind, cycle, stream, begin, end| JobOperation {
            kind,
            cycle,
            stream,
            begin: second(begin),
            end: second(end),
            bytes: 0,
        };
        let operations = vec![
            operation(22, 1, 0, 5, 7),
            operation(0, 1, 0, 7, 9),
            operation(3, 2, 2, 10, 20),
            operation(5, 2, 1, 10, 802),
        ];
        let mut job = JobResult { operations, ended: Some(second(802)), ..JobResult::default() };
        let outcome = of_warehouse(&spec, &job).expect("both runs");
        // As in the test of the formulas: 2 s on average, and 792 s together.
        assert_eq!((&outcome["power_per_hour"], &outcome["value"]), (&900.0.into(), &300.0.into()));
        assert_eq!(outcome["throughput_per_hour"], 100.0);
        assert_eq!(outcome["power"]["steps"][0]["step"], "RF1");
        let first = &outcome["throughput"]["steps"][0];
        assert_eq!((&first["step"], &first["stream"]), (&"Q6".into(), &1.into()));
        assert!(first["rows"].is_null());
        job.operations.truncate(2);
        assert_eq!(of_warehouse(&spec, &job).expect("a power run")["value"], 900.0);
        job.ended = None;
        assert_eq!(of_warehouse(&spec, &job), None);
    }
}
