//! The record of a load: one run, a phase per load, and every second of every kind as it was counted.
//!
//! A measured phase is as long as the time that the command divides by, and its seconds add up to what the command counts:
//! requests that complete after it belong to the distributions of its last second, and to no rate.

use super::json::{profile_json, result_json};
use super::medium::Medium;
use super::options::LoadArguments;
use super::session::{Outcome, Phase};
use super::targets::Place;
use super::text::{generator_is_busy, is_saturated, merged};
use crate::stop::{Stop, chain};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use underlay_blockio::TargetKind;
use underlay_blockio::load::{KindKey, KindResult, LoadResult, Operation, Part, SecondTick};
use underlay_core::{Evidence, Nanos};
use underlay_host::host_facts;
use underlay_record::conventions::{DISPATCH_LAG, document, histogram_scope};
use underlay_record::{
    Check, CheckMoment, CheckOutcome, Design, ExecutionStatus, Interval, Manifest, NewPhase,
    NewRun, PhaseId, PhaseKind, PhaseStatus, Recorder, RunEnd, RunId, RunStatus, StoredHistogram,
    TransactionTick, WriteError,
};
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{Durability, IoProfile};

/// A record being written.
pub struct Recording {
    recorder: Recorder,
    run: RunId,
    began: std::time::Instant,
    phase: Option<OpenPhase>,
    /// What can happen in any second.
    kinds: Vec<KindKey>,
    many_targets: bool,
    curve: bool,
    rounds_asked: Option<u32>,
    spin: Nanos,
    /// Begin and end of each load that ended.
    spans: Vec<(Nanos, Nanos)>,
}

struct OpenPhase {
    label: String,
    in_flight: u32,
    /// Of the load's clock, on the run's.
    origin: Nanos,
    /// Where its measured time begins, on the run's clock, once it has.
    measured_from: Option<Nanos>,
    current: Option<(PhaseKind, PhaseId)>,
    /// The last reported second: requests that complete after the measured time are added to it before it is written.
    held: Option<SecondTick>,
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
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = now.map_or(0, |now| now.as_nanos() as u64);
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
        let began = std::time::Instant::now();
        Ok(Recording {
            recorder,
            run,
            began,
            phase: None,
            kinds,
            many_targets: places.len() > 1,
            curve: options.curve,
            rounds_asked: options.steady_state.then(|| options.rounds_max()),
            spin: options.spin,
            spans: Vec::new(),
        })
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// A load begins.
    pub fn begin_phase(&mut self, label: &str, in_flight: u32) {
        let (label, origin) = (label.to_string(), self.now());
        self.phase = Some(OpenPhase {
            label,
            in_flight,
            origin,
            measured_from: None,
            current: None,
            held: None,
        });
    }

    /// A second of it.
    pub fn tick(&mut self, tick: &SecondTick) -> Result<(), Stop> {
        let phase = self.phase.as_mut().expect("a load began");
        if tick.part == Part::Drain {
            // Of a load that was stopped in its warm-up, nothing is measured.
            if let Some(last) = phase.held.as_mut().filter(|last| last.part == Part::Measure) {
                add(last, tick);
            }
            return Ok(());
        }
        match phase.held.replace(tick.clone()) {
            Some(former) => self.write(&former),
            None => Ok(()),
        }
    }

    /// Writes a second, and begins the phase it lies in.
    fn write(&mut self, tick: &SecondTick) -> Result<(), Stop> {
        let phase = self.phase.as_mut().expect("a load began");
        let at = |time: Nanos| Nanos(phase.origin.0 + time.0);
        let interval =
            Interval { begin: at(tick.begin), end: at(tick.end.max(Nanos(tick.begin.0 + 1))) };
        let measured = tick.part == Part::Measure;
        let kind = if measured { PhaseKind::Measure } else { PhaseKind::WarmUp };
        if phase.current.is_none_or(|(current, _)| current != kind) {
            if let Some((_, id)) = phase.current.take() {
                self.recorder
                    .end_phase(id, interval.begin, PhaseStatus::Finished)
                    .map_err(failed)?;
            }
            let new = NewPhase {
                run: Some(self.run),
                kind,
                label: phase.label.clone(),
                users: Some(phase.in_flight),
                at: interval.begin,
            };
            phase.measured_from = measured.then_some(interval.begin);
            phase.current = Some((kind, self.recorder.begin_phase(&new).map_err(failed)?));
        }
        // A second without completions is recorded too.
        let nothing = KindResult::default();
        for key in &self.kinds {
            let found = tick.kinds.iter().find(|(known, _)| known == key);
            let counted = found.map_or(&nothing, |(_, counted)| counted);
            let row = TransactionTick {
                interval,
                transaction: name(key, self.many_targets),
                committed: if measured { counted.in_window } else { counted.completed },
                rolled_back: 0,
                failed: counted.errors.values().sum(),
                unknown: 0,
                errors: counted
                    .errors
                    .iter()
                    .map(|(number, count)| (format!("errno {number}"), *count))
                    .collect::<BTreeMap<_, _>>(),
                retries: 0,
                response: StoredHistogram::from(&counted.response),
                service: StoredHistogram::from(&counted.service),
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
        let held = self.phase.as_mut().and_then(|phase| phase.held.take());
        if let Some(last) = &held {
            self.write(last)?;
        }
        let phase = self.phase.take().expect("a load began");
        let begin = phase.measured_from.unwrap_or(phase.origin);
        let measured = Interval { begin, end: Nanos(begin.0 + result.duration.0) };
        self.spans.push((measured.begin, measured.end));
        let Some((kind, id)) = phase.current else { return Ok(()) };
        let status = match (&result.failure, result.interrupted) {
            (Some(_), _) => PhaseStatus::Failed,
            (None, true) => PhaseStatus::Interrupted,
            (None, false) => PhaseStatus::Finished,
        };
        let end = match kind {
            PhaseKind::Measure => measured.end.max(Nanos(measured.begin.0 + 1)),
            _ => self.now(),
        };
        self.recorder.end_phase(id, end, status).map_err(failed)
    }

    /// The results of the loads, for the report.
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
                "due": phase.result.due,
                "undelivered": phase.result.undelivered,
                "errors": phase.result.errors(),
                "interrupted": phase.result.interrupted,
                "failure": phase.result.failure,
                "begin_ns": begin.0,
                "end_ns": end.0,
            })
        };
        json!({
            "loads": outcome.phases.iter().enumerate().map(load).collect::<Vec<_>>(),
            "loads_planned": self.curve.then_some(1 + PERCENTS.len()),
            "generator_busy": generator_is_busy(self.spin, outcome),
            "interrupted": outcome.interrupted,
            "failure": outcome.failure(),
            "result": (!self.curve && !outcome.phases.is_empty()).then(|| result_json(&merged(outcome))),
            "steady": outcome.steady.map(|state| state.is_steady()),
            "steady_state": self.rounds_asked.map(|rounds_max| json!({
                "rounds": outcome.phases.len(),
                "rounds_max": rounds_max,
                "range_share": outcome.steady.map(|state| state.range_share),
                "excursion_share": outcome.steady.map(|state| state.excursion_share),
            })),
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
        if let Some(outcome) = verified(outcome) {
            let check = Check {
                run: self.run,
                moment: CheckMoment::After,
                id: "blocks".to_string(),
                title: "Every block read contains the last data written to it".to_string(),
                outcome,
            };
            self.recorder.check(&check).map_err(failed)?;
        }
        let reason = match (outcome.failure(), outcome.interrupted) {
            (None, true) => Some("interrupted by the user".to_string()),
            (failure, _) => failure,
        };
        let end = RunEnd { at: self.now(), status: run_status, reason };
        self.recorder.end_run(self.run, &end).map_err(failed)?;
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

/// Adds requests that completed after the measured time to the distributions of its last second. Rates count only the
/// window, so they exclude these.
fn add(last: &mut SecondTick, after: &SecondTick) {
    for (key, counted) in &after.kinds {
        match last.kinds.iter_mut().find(|(known, _)| known == key) {
            Some((_, sum)) => sum.merge(counted),
            None => last.kinds.push((key.clone(), counted.clone())),
        }
    }
    last.dispatch_lag.merge(&after.dispatch_lag);
}

/// What verifying found; `None` where it was not asked.
fn verified(outcome: &Outcome) -> Option<CheckOutcome> {
    let wrong = outcome.violation_count();
    if wrong == 0 && !outcome.verified {
        return None;
    }
    let seen = outcome.phases.last().map(|phase| phase.result.violations.as_slice());
    let looked = outcome.last_look.as_ref().map(|look| look.violations.as_slice());
    let first = looked.or(seen).and_then(<[_]>::first);
    Some(match (wrong, &outcome.broken) {
        (0, Some(error)) => CheckOutcome::Failed { error: error.clone() },
        (0, None) if outcome.last_look.is_none() => CheckOutcome::Failed {
            error: "the load ended early: the written data was not read back at the end"
                .to_string(),
        },
        (0, None) => CheckOutcome::Ok,
        _ => CheckOutcome::Violated {
            rows: wrong,
            example: first.map_or(String::new(), |wrong| {
                let path = outcome.targets.get(wrong.target as usize);
                let path = path.map_or(String::new(), |target| target.path.display().to_string());
                let finding = wrong.finding.as_str();
                format!("{path} at byte {}: {finding}", wrong.offset_bytes)
            }),
        },
    })
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
                let flushes = matches!(stream.durability, Durability::FlushEvery(_));
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
