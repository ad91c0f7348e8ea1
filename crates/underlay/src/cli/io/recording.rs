//! The record of `underlay io`: one design, one run, and what its load leaves behind.

use super::json::{profile_json, result_json};
use super::options::LoadArguments;
use crate::lab::block::recording::{CHECK, CHECK_TITLE, LoadRecording, Shown, verified};
use crate::lab::block::{Medium, Outcome, Place};
use crate::lab::recording::SharedRecorder;
use crate::lab::run_log::RunLog;
use crate::lab::wall_clock_ns;
use crate::stop::{Stop, chain};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use underlay_blockio::TargetKind;
use underlay_blockio::load::{KindKey, Operation};
use underlay_core::{Dilation, Evidence, Nanos};
use underlay_host::host_facts;
use underlay_record::conventions::document;
use underlay_record::{
    Check, CheckMoment, Design, ExecutionStatus, Manifest, NewRun, Recorder, RunEnd, RunId,
    RunStatus, WriteError,
};
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{FlushPolicy, IoProfile};

/// A record with its run.
pub struct Recording {
    recorder: SharedRecorder,
    run: RunId,
    began: Instant,
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
        let kinds = kinds(profile, places.len());
        let wall = wall_clock_ns();
        // The weakest kind among the targets.
        let emulated = places.iter().any(|place| place.medium == Medium::Emulated);
        let evidence = if emulated { Evidence::Emulated } else { Evidence::Measured };
        let paths: Vec<String> = places.iter().map(lasting_path).collect();
        let targets = places.iter().zip(&paths).map(|(place, path)| {
            json!({
                "path": path,
                "kind": kind_word(place),
                "size_bytes": (!place.created).then_some(place.target.size().0),
                "medium": medium_word(place.medium),
            })
        });
        let titles = places.iter().zip(&paths).map(|(place, path)| match place.medium {
            Medium::Memory => format!("{path} (memory, not storage)"),
            Medium::Storage | Medium::Emulated => path.clone(),
        });
        let title = titles.collect::<Vec<_>>().join(", ");
        let load = json!({
            "command": "io",
            "profile": profile_json(profile),
            "targets": targets.collect::<Vec<_>>(),
            "working_set_bytes": places.iter().map(|place| place.working_set.0).collect::<Vec<_>>(),
            "direct": !options.buffered,
            "filled": places.iter().any(|place| place.created) || options.fill,
            "precondition": options.precondition,
            "verify": options.verify,
            "journal": options.journal.is_some(),
            "course": match (options.curve, options.steady_state) {
                (true, _) => "curve",
                (false, true) => "steady-state",
                (false, false) => "once",
            },
            "duration_ns": options.duration.0,
            "warm_up_ns": options.warm_up.0,
            "spin_ns": options.spin.0,
            "workers": options.workers,
            "workload": { "io": { "shape": shape(&kinds, places.len() > 1) } },
        });
        let manifest = Manifest {
            study_name: format!("io-{}", profile.name),
            title: format!("Block load {}: {}", profile.name, profile.title),
            question: "What throughput and latency does this storage reach under this block load?"
                .to_string(),
            evidence,
            seed: options.root(),
            identity: format!("io {}", profile_json(profile)),
            started_wall_ns: wall,
            plan: load.clone(),
            host: serde_json::to_value(host_facts()).unwrap_or(Value::Null),
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
        Ok(Recording { recorder: SharedRecorder::new(recorder), run, began: Instant::now() })
    }

    fn log(&self) -> RunLog<'_> {
        let (recorder, run, origin) = (&self.recorder, self.run, self.began);
        RunLog { recorder, run, origin, dilation: Dilation::NONE, database: "" }
    }

    /// What writes the loads.
    pub fn loads(&self, profile: &IoProfile, targets: usize) -> LoadRecording<'_> {
        let many_targets = targets > 1;
        let kinds = kinds(profile, targets);
        let names = kinds.iter().map(|key| name(key, many_targets)).collect();
        LoadRecording::new(self.log(), names, move |key| name(key, many_targets))
    }

    /// Writes what came out.
    pub fn keep(
        &self,
        loads: &LoadRecording<'_>,
        options: &LoadArguments,
        outcome: &Outcome,
    ) -> Result<(), Stop> {
        let shown = Shown {
            is_curve: options.curve,
            planned: options.curve.then_some(1 + PERCENTS.len()),
            rounds_max: options.steady_state.then(|| options.rounds_max()),
            spin: options.spin,
            result: &result_json,
        };
        let mut recorder = self.recorder.lock();
        recorder
            .write_document(Some(self.run), document::BLOCK_LOAD, &loads.document(outcome, &shown))
            .map_err(failed)?;
        if let Some(outcome) = verified(outcome) {
            let check = Check {
                run: self.run,
                moment: CheckMoment::After,
                id: CHECK.to_string(),
                title: CHECK_TITLE.to_string(),
                outcome,
            };
            recorder.check(&check).map_err(failed)?;
        }
        Ok(())
    }

    /// Ends the record.
    pub fn finish(self, outcome: &Outcome) -> Result<(), Stop> {
        let (run_status, status) = match (outcome.failure(), outcome.interrupted) {
            (Some(_), _) => (RunStatus::Failed, ExecutionStatus::Failed),
            (None, true) => (RunStatus::Interrupted, ExecutionStatus::Cancelled),
            (None, false) => (RunStatus::Finished, ExecutionStatus::Finished),
        };
        let reason = match (outcome.failure(), outcome.interrupted) {
            (None, true) => Some("interrupted by the user".to_string()),
            (failure, _) => failure,
        };
        let end = RunEnd { at: self.log().now(), status: run_status, reason };
        self.recorder.lock().end_run(self.run, &end).map_err(failed)?;
        self.recorder.finish(status).map_err(failed)
    }
}

/// `data.write`: operation, with target, job and stream where they tell kinds apart.
fn name(key: &KindKey, many_targets: bool) -> String {
    let target = many_targets.then(|| (key.target + 1).to_string());
    // A job or a stream that is the only one and was given no name is called `all`.
    let telling = [&key.job, &key.stream].into_iter().filter(|name| *name != "all").cloned();
    let parts = target.into_iter().chain(telling);
    parts.chain([key.operation.as_str().to_string()]).collect::<Vec<_>>().join(".")
}

/// Where a target is. For a file created for this load, its folder: the file does not exist later, and no two records
/// have it in common.
fn lasting_path(place: &Place) -> String {
    let path = place.target.path();
    let folder = path.parent().filter(|_| place.created);
    folder.unwrap_or(path).display().to_string()
}

fn kind_word(place: &Place) -> &'static str {
    match (place.target.kind(), place.created) {
        (TargetKind::BlockDevice, _) => "block-device",
        (TargetKind::File, true) => "file created for the run",
        (TargetKind::File, false) => "file",
    }
}

fn medium_word(medium: Medium) -> &'static str {
    match medium {
        Medium::Storage => "storage",
        Medium::Emulated => "emulated",
        Medium::Memory => "memory",
    }
}

/// All kinds of requests that the load can make, target by target.
fn kinds(profile: &IoProfile, targets: usize) -> Vec<KindKey> {
    let mut kinds = Vec::new();
    for target in 0..targets {
        for job in &profile.jobs {
            for stream in &job.workload.streams {
                let writes = stream.read_share < 1.0;
                let flushes = matches!(stream.durability, FlushPolicy::FlushEvery(_));
                let can = |operation: &Operation| match operation {
                    Operation::Read => stream.read_share > 0.0,
                    Operation::Write => writes,
                    Operation::Flush => writes && flushes,
                };
                kinds.extend(Operation::ALL.into_iter().filter(can).map(|operation| KindKey {
                    target,
                    job: job.workload.name.clone(),
                    stream: stream.name.clone(),
                    operation,
                }));
            }
        }
    }
    kinds
}

/// What a report must know to name and count requests: the headline is reads and writes per second.
fn shape(kinds: &[KindKey], many_targets: bool) -> Value {
    let counted = kinds.iter().filter(|key| key.operation != Operation::Flush);
    let types: Vec<String> = counted.map(|key| name(key, many_targets)).collect();
    json!({
        "headline": { "types": types, "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64 },
    })
}
