//! A block load in the record of its run: a phase per load, every second of every kind as it was counted, and the results of all
//! loads in one document.
//!
//! A measured phase is as long as the time that rates are divided by, and its seconds add up to what is counted: requests
//! that complete after it belong to the distributions of its last second, and to no rate.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use underlay_blockio::load::{KindKey, KindResult, LoadResult, Operation, Part, SecondTick};
use underlay_core::Nanos;
use underlay_record::conventions::{DISPATCH_LAG, histogram_scope};
use underlay_record::{
    CheckOutcome, Interval, NewPhase, PhaseId, PhaseKind, PhaseStatus, StoredHistogram,
    TransactionTick, WriteError,
};

use super::outcome::{Outcome, Phase};
use crate::lab::run_log::RunLog;
use crate::stop::{Stop, chain};

/// The id of the check that verified blocks are.
pub const CHECK: &str = "blocks";
/// What it says.
pub const CHECK_TITLE: &str = "Every block read contains the last data written to it";

/// Loads of one run, being written to its record.
pub struct LoadRecording<'a> {
    log: RunLog<'a>,
    /// What each kind of requests is called; kinds of the same name are one.
    name: Box<dyn Fn(&KindKey) -> String + 'a>,
    /// What can happen in any second.
    names: Vec<String>,
    phase: Option<OpenPhase>,
    /// Begin and end of each load that ended.
    spans: Vec<(Nanos, Nanos)>,
}

struct OpenPhase {
    label: String,
    /// What the measured time is.
    measured: PhaseKind,
    /// Requests in flight, as the run counts them.
    users: u32,
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

impl<'a> LoadRecording<'a> {
    /// For a run in which requests of these names can happen.
    pub fn new(
        log: RunLog<'a>,
        names: Vec<String>,
        name: impl Fn(&KindKey) -> String + 'a,
    ) -> LoadRecording<'a> {
        LoadRecording { log, name: Box::new(name), names, phase: None, spans: Vec::new() }
    }

    /// Now, on the clock of a run in real time.
    pub fn now(&self) -> Nanos {
        self.log.now()
    }

    /// A load begins at `at` on the run's clock; its measured time is a phase of that kind.
    pub fn begin_load(&mut self, label: &str, measured: PhaseKind, users: u32, at: Nanos) {
        self.phase = Some(OpenPhase {
            label: label.to_string(),
            measured,
            users,
            origin: at,
            measured_from: None,
            current: None,
            held: None,
        });
    }

    /// A second of it; says when that was, on the run's clock.
    pub fn tick(&mut self, tick: &SecondTick) -> Result<Interval, Stop> {
        let phase = self.phase.as_mut().expect("a load began");
        let interval = phase.interval(tick);
        if tick.part == Part::Drain {
            // Of a load that was stopped in its warm-up, nothing is measured.
            if let Some(last) = phase.held.as_mut().filter(|last| last.part == Part::Measure) {
                add(last, tick);
            }
            return Ok(interval);
        }
        if let Some(former) = phase.held.replace(tick.clone()) {
            self.write(&former)?;
        }
        Ok(interval)
    }

    /// Writes a second, and begins the phase it lies in.
    fn write(&mut self, tick: &SecondTick) -> Result<(), Stop> {
        let phase = self.phase.as_mut().expect("a load began");
        let mut recorder = self.log.recorder.lock();
        let interval = phase.interval(tick);
        let is_measured = tick.part == Part::Measure;
        let kind = if is_measured { phase.measured } else { PhaseKind::WarmUp };
        if phase.current.is_none_or(|(current, _)| current != kind) {
            if let Some((_, id)) = phase.current.take() {
                recorder.end_phase(id, interval.begin, PhaseStatus::Finished).map_err(failed)?;
            }
            let new = NewPhase {
                run: Some(self.log.run),
                kind,
                label: phase.label.clone(),
                users: Some(phase.users),
                at: interval.begin,
            };
            phase.measured_from = is_measured.then_some(interval.begin);
            phase.current = Some((kind, recorder.begin_phase(&new).map_err(failed)?));
        }
        let mut counted: BTreeMap<String, KindResult> = BTreeMap::new();
        for (key, result) in &tick.kinds {
            counted.entry((self.name)(key)).or_default().merge(result);
        }
        // A second without completions is recorded too.
        let nothing = KindResult::default();
        for name in &self.names {
            let counted = counted.get(name).unwrap_or(&nothing);
            let row = TransactionTick {
                interval,
                transaction: name.clone(),
                committed: if is_measured { counted.in_window } else { counted.completed },
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
            recorder.transactions(self.log.run, &row).map_err(failed)?;
        }
        if !tick.dispatch_lag.is_empty() {
            let (scope, lag) = (histogram_scope::DRIVER, &tick.dispatch_lag);
            recorder.histogram(self.log.run, interval, scope, DISPATCH_LAG, lag).map_err(failed)?;
        }
        recorder.commit().map_err(failed)
    }

    /// The load ended; it is `now` on the run's clock.
    pub fn end_load(&mut self, result: &LoadResult, now: Nanos) -> Result<(), Stop> {
        let held = self.phase.as_mut().and_then(|phase| phase.held.take());
        if let Some(last) = &held {
            self.write(last)?;
        }
        let phase = self.phase.take().expect("a load began");
        let begin = phase.measured_from.unwrap_or(phase.origin);
        let measured = Interval { begin, end: Nanos(begin.0 + result.duration.0) };
        if phase.measured == PhaseKind::Measure {
            self.spans.push((measured.begin, measured.end));
        }
        let Some((kind, id)) = phase.current else { return Ok(()) };
        let status = match (&result.failure, result.interrupted) {
            (Some(_), _) => PhaseStatus::Failed,
            (None, true) => PhaseStatus::Interrupted,
            (None, false) => PhaseStatus::Finished,
        };
        let end = match kind {
            PhaseKind::WarmUp => now,
            _ => measured.end.max(Nanos(measured.begin.0 + 1)),
        };
        self.log.recorder.lock().end_phase(id, end, status).map_err(failed)
    }

    /// The results of the loads, for the report.
    pub fn document(&self, outcome: &Outcome, shown: &Shown) -> Value {
        let load = |(number, phase): (usize, &Phase)| {
            let of = |wanted: &dyn Fn(Operation) -> bool| {
                phase.result.total(|key| wanted(key.operation)).response
            };
            let response = of(&|operation| operation != Operation::Flush);
            let (reads, writes) =
                (of(&|operation| operation == Operation::Read), of(&|it| it == Operation::Write));
            let (begin, end) = self.spans.get(number).copied().unwrap_or_default();
            json!({
                "label": phase.label,
                "in_flight": phase.in_flight,
                // Of a curve only the load that found the maximum was not held back.
                "counts": phase.counts && (!shown.is_curve || number == 0),
                "offered_per_second": phase.offered,
                "done_per_second": phase.result.iops(),
                "bytes_per_second": phase.result.bytes_per_second(),
                "mean_ns": response.mean(),
                "read_mean_ns": reads.mean(),
                "write_mean_ns": writes.mean(),
                "p50_ns": response.quantile(0.5),
                "p95_ns": response.quantile(0.95),
                "p99_ns": response.quantile(0.99),
                "p999_ns": response.quantile(0.999),
                "saturated": phase.is_saturated(),
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
            "loads_planned": shown.planned,
            "generator_busy": outcome.is_generator_busy(shown.spin),
            "interrupted": outcome.interrupted,
            "failure": outcome.failure(),
            "result": if shown.is_curve { None } else { outcome.merged().as_ref().map(shown.result) },
            "steady": outcome.steady.map(|state| state.is_steady()),
            "steady_state": shown.rounds_max.map(|rounds_max| json!({
                "rounds": outcome.phases.len(),
                "rounds_max": rounds_max,
                "range_share": outcome.steady.map(|state| state.range_share),
                "excursion_share": outcome.steady.map(|state| state.excursion_share),
            })),
        })
    }
}

/// What a document of loads says of their course.
pub struct Shown<'a> {
    /// Whether loads after the first are points of a curve.
    pub is_curve: bool,
    /// How many loads were to be run, where that was fixed.
    pub planned: Option<usize>,
    /// Rounds after which a steady state was to be given up, where it was asked for.
    pub rounds_max: Option<u32>,
    /// How long workers waited awake.
    pub spin: Nanos,
    /// What is kept of the reported result.
    pub result: &'a dyn Fn(&LoadResult) -> Value,
}

impl OpenPhase {
    /// When a second was, on the run's clock.
    fn interval(&self, tick: &SecondTick) -> Interval {
        let at = |time: Nanos| Nanos(self.origin.0 + time.0);
        Interval { begin: at(tick.begin), end: at(tick.end.max(Nanos(tick.begin.0 + 1))) }
    }
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
pub fn verified(outcome: &Outcome) -> Option<CheckOutcome> {
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

#[cfg(test)]
mod tests {
    use super::LoadRecording;
    use crate::lab::run_log::RunLog;
    use crate::lab::shared_recorder::SharedRecorder;
    use serde_json::json;
    use std::time::Instant;
    use underlay_blockio::load::{
        KindKey, KindResult, LoadResult, Operation, Part, SecondTick, WorkerCost,
    };
    use underlay_core::{Dilation, Evidence, Histogram, Nanos, RootSeed};
    use underlay_record::{
        Design, ExecutionStatus, Manifest, NewRun, PhaseKind, Record, Recorder, RunEnd, RunStatus,
    };

    fn kind(target: usize, completed: u64, in_window: u64) -> (KindKey, KindResult) {
        let mut response = Histogram::new();
        response.record_n(1_000_000, completed);
        let all = "all".to_string();
        let key = KindKey { target, job: all.clone(), stream: all, operation: Operation::Read };
        let result = KindResult { completed, in_window, response, ..KindResult::default() };
        (key, result)
    }

    fn second(part: Part, begin_s: u64, kinds: Vec<(KindKey, KindResult)>) -> SecondTick {
        SecondTick {
            part,
            begin: Nanos::from_secs(begin_s),
            end: Nanos::from_secs(begin_s + 1),
            kinds,
            dispatch_lag: Histogram::new(),
            backlog: 0,
            processor: Nanos::ZERO,
        }
    }

    fn result(duration: Nanos) -> LoadResult {
        LoadResult {
            duration,
            kinds: Vec::new(),
            dispatch_lag: Histogram::new(),
            due: 0,
            undelivered: 0,
            oldest_undelivered: Nanos::ZERO,
            conflicts: 0,
            verified_units: 0,
            cost: WorkerCost::default(),
            interrupted: false,
            failure: None,
            violations: Vec::new(),
            violation_count: 0,
        }
    }

    /// Requests of all targets are one row, warm-up has a phase of its own, and what completes after the measured time is in
    /// the distribution of its last second and in no count.
    #[test]
    fn kinds_of_one_name_are_one_row_in_the_phase_of_their_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.sqlite");
        let manifest = Manifest {
            study_name: "s".into(),
            title: "t".into(),
            question: "q".into(),
            evidence: Evidence::Measured,
            seed: RootSeed(1),
            identity: "i".into(),
            started_wall_ns: 0,
            plan: json!({}),
            host: json!({}),
            software: json!({}),
        };
        let mut recorder = Recorder::create(&path, &manifest).unwrap();
        let design = Design {
            index: 0,
            name: "d".into(),
            title: "D".into(),
            description: String::new(),
            evidence: Evidence::Measured,
            detail: json!({}),
        };
        recorder.add_design(&design).unwrap();
        let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: 0 };
        let run = recorder.begin_run(&new).unwrap();
        let recorder = SharedRecorder::new(recorder);
        let origin = Instant::now();
        let log =
            RunLog { recorder: &recorder, run, origin, dilation: Dilation::NONE, database: "" };
        let names = vec!["read".to_string(), "write".to_string()];
        let mut loads = LoadRecording::new(log, names, |key| key.operation.as_str().to_string());
        loads.begin_load("8 threads", PhaseKind::NullTwin, 8, Nanos::ZERO);
        loads.tick(&second(Part::WarmUp, 0, vec![kind(0, 5, 0)])).unwrap();
        loads.tick(&second(Part::Measure, 1, vec![kind(0, 10, 10), kind(1, 20, 20)])).unwrap();
        loads.tick(&second(Part::Drain, 2, vec![kind(1, 3, 0)])).unwrap();
        loads.end_load(&result(Nanos::from_secs(1)), Nanos::from_secs(3)).unwrap();
        let end = RunEnd { at: Nanos::from_secs(9), status: RunStatus::Finished, reason: None };
        recorder.lock().end_run(run, &end).unwrap();
        drop(loads);
        recorder.finish(ExecutionStatus::Finished).unwrap();
        let record = Record::open_read_only(&path).unwrap();
        let phases: Vec<(PhaseKind, Option<u32>)> = record
            .phases(Some(run))
            .unwrap()
            .iter()
            .map(|phase| (phase.kind, phase.users))
            .collect();
        assert_eq!(phases, [(PhaseKind::WarmUp, Some(8)), (PhaseKind::NullTwin, Some(8))]);
        let rows = record.transactions(run).unwrap();
        let reads: Vec<(u64, u64)> = rows
            .iter()
            .filter(|row| row.transaction == "read")
            .map(|row| (row.committed, row.response.decoded().count()))
            .collect();
        assert_eq!(reads, [(5, 5), (30, 33)]);
        let writes = rows.iter().filter(|row| row.transaction == "write");
        assert_eq!(writes.map(|row| row.committed).collect::<Vec<_>>(), [0, 0]);
    }
}
