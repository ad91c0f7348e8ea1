//! The record of a load: one run, a phase per load, and every second of every kind as it was counted.

use super::json::profile_json;
use super::medium::Medium;
use super::options::LoadArguments;
use super::session::{Outcome, Phase};
use super::targets::Place;
use super::text::is_saturated;
use crate::stop::{Stop, chain};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use underlay_blockio::load::{KindKey, LoadResult, Operation, Part, SecondTick};
use underlay_core::{Evidence, Nanos};
use underlay_record::conventions::{DISPATCH_LAG, document, histogram_scope};
use underlay_record::{
    Design, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseId, PhaseKind, PhaseStatus,
    Recorder, RunEnd, RunId, RunStatus, StoredHistogram, TransactionTick, WriteError,
};
use underlay_workload::block::IoProfile;

/// A record being written.
pub struct Recording {
    recorder: Recorder,
    run: RunId,
    began: std::time::Instant,
    phase: Option<OpenPhase>,
    many_targets: bool,
    curve: bool,
    /// Begin and end of each load that ended.
    spans: Vec<(Nanos, Nanos)>,
}

struct OpenPhase {
    label: String,
    in_flight: u32,
    /// Of the load's clock, on the run's.
    origin: Nanos,
    current: Option<(Part, PhaseId)>,
}

fn failed(error: WriteError) -> Stop {
    Stop::host(chain(&error))
}

impl Recording {
    /// Creates the file, which must not exist.
    pub fn create(
        path: &Path,
        options: &LoadArguments,
        profile: &IoProfile,
        places: &[Place],
    ) -> Result<Recording, Stop> {
        if path.exists() {
            return Err(Stop::bad_input(format!("{} exists", path.display()))
                .with_hint("name a record that does not exist yet"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = now.map_or(0, |now| now.as_nanos() as u64);
        // The weakest kind among the targets.
        let emulated = places.iter().any(|place| place.medium == Medium::Emulated);
        let evidence = if emulated { Evidence::Emulated } else { Evidence::Measured };
        let paths: Vec<String> =
            places.iter().map(|place| place.target.path().display().to_string()).collect();
        let in_memory: Vec<&String> = places
            .iter()
            .zip(&paths)
            .filter_map(|(place, path)| (place.medium == Medium::Memory).then_some(path))
            .collect();
        let titles = places.iter().zip(&paths).map(|(place, path)| match place.medium {
            Medium::Memory => format!("{path} (in memory, no storage)"),
            Medium::Storage | Medium::Emulated => path.clone(),
        });
        let title = titles.collect::<Vec<_>>().join(", ");
        let load = json!({
            "command": "io",
            "profile": profile_json(profile),
            "targets": paths,
            "in_memory": in_memory,
            "direct": !options.buffered,
            "duration_ns": options.duration.0,
            "warm_up_ns": options.warm_up.0,
            "workload": { "io": { "shape": shape(profile, places.len()) } },
        });
        let manifest = Manifest {
            study_name: format!("io-{}", profile.name),
            title: format!("Block load {}: {}", profile.name, profile.title),
            question: "What does this storage do under this block load?".to_string(),
            evidence,
            seed: options.root(),
            identity: format!("io {}", profile_json(profile)),
            started_wall_ns: wall,
            plan: load.clone(),
            host: Value::Null,
            software: json!({ "underlay": env!("CARGO_PKG_VERSION") }),
        };
        let mut recorder =
            Recorder::create(path, &manifest).map_err(|error| Stop::host(chain(&error)))?;
        let design = Design {
            index: 0,
            name: "target".to_string(),
            title,
            description: String::new(),
            evidence,
            detail: load,
        };
        recorder.add_design(&design).map_err(failed)?;
        let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: wall };
        let run = recorder.begin_run(&new).map_err(failed)?;
        let began = std::time::Instant::now();
        Ok(Recording {
            recorder,
            run,
            began,
            phase: None,
            many_targets: places.len() > 1,
            curve: options.curve,
            spans: Vec::new(),
        })
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// A load begins.
    pub fn begin_phase(&mut self, label: &str, in_flight: u32) {
        let (label, origin) = (label.to_string(), self.now());
        self.phase = Some(OpenPhase { label, in_flight, origin, current: None });
    }

    /// A second of it.
    pub fn tick(&mut self, tick: &SecondTick) -> Result<(), Stop> {
        let phase = self.phase.as_mut().expect("a load began");
        let at = |time: Nanos| Nanos(phase.origin.0 + time.0);
        // What is counted after the end belongs to requests of the measured time, and comes in no second of its own.
        let interval =
            Interval { begin: at(tick.begin), end: at(tick.end.max(Nanos(tick.begin.0 + 1))) };
        let measured = tick.part != Part::WarmUp;
        let known = phase.current.is_some_and(|(part, _)| (part != Part::WarmUp) == measured);
        if !known {
            if let Some((_, id)) = phase.current.take() {
                self.recorder
                    .end_phase(id, interval.begin, PhaseStatus::Finished)
                    .map_err(failed)?;
            }
            let new = NewPhase {
                run: Some(self.run),
                kind: if measured { PhaseKind::Measure } else { PhaseKind::WarmUp },
                label: phase.label.clone(),
                users: Some(phase.in_flight),
                at: interval.begin,
            };
            phase.current = Some((tick.part, self.recorder.begin_phase(&new).map_err(failed)?));
        }
        for (key, kind) in &tick.kinds {
            let row = TransactionTick {
                interval,
                transaction: name(key, self.many_targets),
                committed: kind.completed,
                rolled_back: 0,
                failed: kind.errors.values().sum(),
                unknown: 0,
                errors: kind
                    .errors
                    .iter()
                    .map(|(number, count)| (format!("errno {number}"), *count))
                    .collect::<BTreeMap<_, _>>(),
                retries: 0,
                response: StoredHistogram::from(&kind.response),
                service: StoredHistogram::from(&kind.service),
            };
            self.recorder.transactions(self.run, &row).map_err(failed)?;
        }
        if !tick.dispatch_lag.is_empty() {
            let (scope, lag) = (histogram_scope::DRIVER, &tick.dispatch_lag);
            self.recorder
                .histogram(self.run, interval, scope, DISPATCH_LAG, lag)
                .map_err(failed)?;
        }
        self.recorder.commit().map_err(failed)
    }

    /// The load ended.
    pub fn end_phase(&mut self, result: &LoadResult) -> Result<(), Stop> {
        let phase = self.phase.take().expect("a load began");
        self.spans.push((phase.origin, self.now()));
        let Some((_, id)) = phase.current else { return Ok(()) };
        let status = match (&result.failure, result.interrupted) {
            (Some(_), _) => PhaseStatus::Failed,
            (None, true) => PhaseStatus::Interrupted,
            (None, false) => PhaseStatus::Finished,
        };
        let now = self.now();
        self.recorder.end_phase(id, now, status).map_err(failed)
    }

    /// What the loads came to, for the report's curve.
    fn loads(&self, outcome: &Outcome) -> Value {
        let load = |(number, phase): (usize, &Phase)| {
            let response = phase.result.total(|key| key.operation != Operation::Flush).response;
            let (begin, end) = self.spans.get(number).copied().unwrap_or_default();
            json!({
                "label": phase.label,
                "in_flight": phase.in_flight,
                // Of a curve only the load that found the maximum was not held back.
                "counts": phase.counts && (!self.curve || number == 0),
                "offered_per_second": phase.offered,
                "done_per_second": phase.result.iops(),
                "bytes_per_second": phase.result.bytes_per_second(),
                "mean_ns": response.mean(),
                "p50_ns": response.quantile(0.5),
                "p95_ns": response.quantile(0.95),
                "p99_ns": response.quantile(0.99),
                "p999_ns": response.quantile(0.999),
                "saturated": is_saturated(phase),
                "begin_ns": begin.0,
                "end_ns": end.0,
            })
        };
        json!({
            "loads": outcome.phases.iter().enumerate().map(load).collect::<Vec<_>>(),
            "steady": outcome.steady.map(|state| state.is_steady()),
        })
    }

    /// Ends the record.
    pub fn finish(mut self, outcome: &Outcome) -> Result<(), Stop> {
        let (run_status, status) = match (outcome.failure(), outcome.interrupted) {
            (Some(_), _) => (RunStatus::Failed, ExecutionStatus::Failed),
            (None, true) => (RunStatus::Interrupted, ExecutionStatus::Cancelled),
            (None, false) => (RunStatus::Finished, ExecutionStatus::Finished),
        };
        self.recorder
            .write_document(Some(self.run), document::BLOCK_LOAD, &self.loads(outcome))
            .map_err(failed)?;
        let end = RunEnd { at: self.now(), status: run_status, reason: outcome.failure() };
        self.recorder.end_run(self.run, &end).map_err(failed)?;
        self.recorder.finish(status).map_err(failed)
    }
}

/// `data.write`: operation, with target, job and stream where they tell kinds apart.
fn name(key: &KindKey, many_targets: bool) -> String {
    let target = many_targets.then(|| (key.target + 1).to_string());
    kind_name(target, &key.job, &key.stream, key.operation)
}

fn kind_name(target: Option<String>, job: &str, stream: &str, operation: Operation) -> String {
    // A job or a stream that is the only one and was given no name is called `all`.
    let telling = [job, stream].into_iter().filter(|name| *name != "all").map(str::to_string);
    let parts = target.into_iter().chain(telling).chain([operation.as_str().to_string()]);
    parts.collect::<Vec<_>>().join(".")
}

/// What a report must know to name and count requests: the headline is reads and writes per second.
fn shape(profile: &IoProfile, targets: usize) -> Value {
    let mut types = Vec::new();
    for target in 0..targets {
        let target = (targets > 1).then(|| (target + 1).to_string());
        for job in &profile.jobs {
            for stream in &job.workload.streams {
                for operation in [Operation::Read, Operation::Write] {
                    let job = &job.workload.name;
                    types.push(kind_name(target.clone(), job, &stream.name, operation));
                }
            }
        }
    }
    json!({
        "headline": { "types": types, "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64 },
    })
}
