//! The record of a load: one run, a phase per load, and every second of every kind as it was counted.

use super::json::profile_json;
use super::options::LoadArguments;
use super::session::Outcome;
use super::targets::Place;
use crate::stop::{Stop, chain};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use underlay_blockio::load::{KindKey, LoadResult, Part, SecondTick};
use underlay_core::{Evidence, Nanos};
use underlay_record::conventions::{DISPATCH_LAG, histogram_scope};
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
}

struct OpenPhase {
    label: String,
    users: u32,
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
        let emulated = places.iter().any(|place| place.evidence != Evidence::Measured);
        let evidence = if emulated { Evidence::Emulated } else { Evidence::Measured };
        let paths: Vec<String> =
            places.iter().map(|place| place.target.path().display().to_string()).collect();
        let load = json!({
            "command": "io",
            "profile": profile_json(profile),
            "targets": paths,
            "direct": !options.buffered,
            "duration_ns": options.duration.0,
            "warm_up_ns": options.warm_up.0,
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
            title: paths.join(", "),
            description: String::new(),
            evidence,
            detail: load,
        };
        recorder.add_design(&design).map_err(failed)?;
        let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: wall };
        let run = recorder.begin_run(&new).map_err(failed)?;
        let began = std::time::Instant::now();
        Ok(Recording { recorder, run, began, phase: None, many_targets: places.len() > 1 })
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// A load begins.
    pub fn begin_phase(&mut self, label: &str, profile: &IoProfile) -> Result<(), Stop> {
        let users = profile.jobs.iter().map(|job| job.concurrency.in_flight()).sum();
        let (label, origin) = (label.to_string(), self.now());
        self.phase = Some(OpenPhase { label, users, origin, current: None });
        Ok(())
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
                users: Some(phase.users),
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
        let Some((_, id)) = phase.current else { return Ok(()) };
        let status = match (&result.failure, result.interrupted) {
            (Some(_), _) => PhaseStatus::Failed,
            (None, true) => PhaseStatus::Interrupted,
            (None, false) => PhaseStatus::Finished,
        };
        let now = self.now();
        self.recorder.end_phase(id, now, status).map_err(failed)
    }

    /// Ends the record.
    pub fn finish(mut self, outcome: &Outcome) -> Result<(), Stop> {
        let (run_status, status) = match (outcome.failure(), outcome.interrupted) {
            (Some(_), _) => (RunStatus::Failed, ExecutionStatus::Failed),
            (None, true) => (RunStatus::Interrupted, ExecutionStatus::Cancelled),
            (None, false) => (RunStatus::Finished, ExecutionStatus::Finished),
        };
        let end = RunEnd { at: self.now(), status: run_status, reason: outcome.failure() };
        self.recorder.end_run(self.run, &end).map_err(failed)?;
        self.recorder.finish(status).map_err(failed)
    }
}

/// `data.write`, with job and target where they tell kinds apart.
fn name(key: &KindKey, many_targets: bool) -> String {
    let target = if many_targets { format!("{}.", key.target + 1) } else { String::new() };
    format!("{target}{}.{}.{}", key.job, key.stream, key.operation.as_str())
}
