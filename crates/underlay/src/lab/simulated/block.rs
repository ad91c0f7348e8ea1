//! Runs of block loads in virtual time, and their record: the same phases, seconds and document as of a real load.
//!
//! Deliberately not here: what a load does (`simulation::block_study`), and the form of its record (`lab::block::recording`).

use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use underlay_blockio::load::{
    KindKey, KindResult, LoadResult, Operation, Part, SecondTick, WorkerCost,
};
use underlay_core::series::Layer;
use underlay_core::{Dilation, Histogram, Nanos};
use underlay_database::managed::Install;
use underlay_record::conventions::{document, source};
use underlay_record::{Interval, PhaseKind, RunId};
use underlay_simulation::block_study::{BlockRun, Counted, Length, Load, LoadSecond};
use underlay_study::{BlockPlan, DesignPlan, Plan, RunPlan};
use underlay_workload::block::SHAPE;

use super::ahead::{Ahead, Left, Steps, Taker};
use super::counters::Counters;
use super::inputs::{How, seed_of};
use crate::lab::abort::{Abort, During};
use crate::lab::block::recording::{LoadRecording, Shown};
use crate::lab::block::run::{delivery, identity};
use crate::lab::block::{Outcome as LoadOutcome, Phase};
use crate::lab::event::{Event, Observer};
use crate::lab::ladder::Rung;
use crate::lab::run::{Came, RunResult, recorded};
use crate::lab::run_log::RunLog;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::{Outcome, carry_out_runs};
use crate::stop::chain;

const BLOCK: u32 = 0;
const DATASTORE: u32 = 1;

/// The loads of the plan's points.
fn loads(plan: &Plan) -> Vec<&BlockPlan> {
    plan.plans().into_iter().filter_map(|point| point.workload.kind.block()).collect()
}

/// What tells the loads of a plan from others.
pub(super) fn about(plan: &Plan) -> Vec<(String, Option<&'static Install>)> {
    let of = |load: &BlockPlan| (identity(load, plan.workload.seed), None);
    loads(plan).into_iter().map(of).collect()
}

fn length(how: &How) -> Length {
    match how.effort.precision {
        Some(_) => Length::SHORT,
        None => Length::FULL,
    }
}

/// What the numbers rest on, in words and as data.
pub(super) fn described(how: &How, stacks: &str) -> (String, Value) {
    let length = length(how);
    let windows = match length == Length::FULL {
        true => "Loads last as long as the study says.".to_string(),
        false => format!(
            "A load warms up for at most {}, and its window ends after {} requests at the latest.",
            length.warm_up_at_most, length.requests_max
        ),
    };
    let text = format!(
        "Simulated in virtual time by a model of the storage. Volumes are neither filled nor \
         preconditioned. {windows} {stacks}"
    );
    (text, json!({ "requests_max": length.requests_max }))
}

/// Carries out the schedule.
pub(super) fn carry_out(
    (plan, recorder): (&Plan, &SharedRecorder),
    (path, done): (&Path, &[bool]),
    how: &How,
    observer: &mut dyn Observer,
) -> Result<Outcome, Abort> {
    let (points, loads) = (plan.plans(), loads(plan));
    let length = length(how);
    let work = |run: RunPlan, taker: &Taker<Load>| {
        let point = plan.point_of(run.design);
        let seed = seed_of(plan, run.repeat);
        let began = BlockRun::new(points[point], loads[point], run.design, length, seed);
        let mut run = began.map_err(|error| Left::Refused(chain(&error)))?;
        run.carry_out(&mut |load| taker.take(load).is_ok());
        Ok(())
    };
    std::thread::scope(|scope| {
        let mut ahead = Ahead::begin(scope, plan, done, &work);
        carry_out_runs((plan, recorder), (path, done), observer, |order, run, observer| {
            let point = plan.point_of(run.design);
            let (plan, load) = (points[point], loads[point]);
            let active = Active { plan, load, recorder, steps: ahead.take(order) };
            active.carry_out((order, plan.schedule.len()), run, observer)
        })
    })
}

/// A run on its way into the record.
struct Active<'a> {
    plan: &'a Plan,
    load: &'a BlockPlan,
    recorder: &'a SharedRecorder,
    steps: Steps<Load>,
}

impl Active<'_> {
    fn carry_out(
        &self,
        position: (usize, usize),
        scheduled: RunPlan,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, Abort> {
        let design = &self.plan.designs[scheduled.design];
        let record = (self.plan, self.recorder);
        recorded(record, position, scheduled, observer, |run, observer| {
            let mut rungs = Vec::new();
            let mut series = Series::new(self.recorder, run, design);
            let result = self.loads((run, &mut series), &mut rungs, observer);
            Ok((Came { result, rungs, verified: None }, series.now))
        })
    }

    fn loads(
        &self,
        (run, series): (RunId, &mut Series<'_>),
        rungs: &mut Vec<Rung>,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        // All times are given.
        let (origin, dilation) = (Instant::now(), Dilation::NONE);
        let log = RunLog { recorder: self.recorder, run, origin, dilation, database: "" };
        let names = SHAPE.types.iter().map(|name| (*name).to_string()).collect();
        let mut recording =
            LoadRecording::new(log, names, |key: &KindKey| key.operation.as_str().to_string());
        let is_curve = !self.load.curve.is_empty();
        let mut outcome = LoadOutcome {
            targets: Vec::new(),
            phases: Vec::new(),
            steady: None,
            verified: false,
            last_look: None,
            interrupted: false,
            broken: None,
        };
        for _ in 0..self.load.loads() {
            let load = self.steps.next()?;
            let (users, result) = (load.in_flight, result(&load));
            let origin = load.result.begin;
            let (kind, expected) = (PhaseKind::Measure, None);
            observer.notice(&Event::PhaseBegan { kind, users: Some(users), expected });
            recording.begin_load(&load.label, kind, users, origin);
            for second in &load.seconds {
                series.second(second)?;
                recording.tick(&tick(second, origin)).map_err(Abort::from)?;
                report(second, users, observer);
            }
            recording.end_load(&result, series.now).map_err(Abort::from)?;
            if !is_curve || outcome.phases.is_empty() {
                rungs.push((users, result.iops()));
            }
            outcome.phases.push(Phase {
                label: load.label,
                offered: load.offered,
                in_flight: users * series.design.volumes.len() as u32,
                counts: true,
                result,
                seconds: Vec::new(),
            });
        }
        let shown = Shown {
            is_curve,
            planned: Some(self.load.loads()),
            rounds_max: None,
            spin: Nanos::ZERO,
            result: &delivery,
        };
        log.document(document::BLOCK_LOAD, &recording.document(&outcome, &shown))
    }
}

/// What requests of a kind did, as a load generator says it.
fn kinds(counted: &[Counted; 2]) -> Vec<(KindKey, KindResult)> {
    let kind = |(operation, counted): (Operation, &Counted)| {
        let all = "all".to_string();
        let key = KindKey { target: 0, job: all.clone(), stream: all, operation };
        let result = KindResult {
            completed: counted.count,
            in_window: counted.count,
            bytes: counted.bytes,
            bytes_in_window: counted.bytes,
            response: counted.response.clone(),
            service: counted.service.clone(),
            ..KindResult::default()
        };
        (key, result)
    };
    [Operation::Read, Operation::Write].into_iter().zip(counted).map(kind).collect()
}

fn tick(second: &LoadSecond, origin: Nanos) -> SecondTick {
    SecondTick {
        part: if second.is_measured { Part::Measure } else { Part::WarmUp },
        begin: second.begin - origin,
        end: second.end - origin,
        kinds: kinds(&second.counted),
        dispatch_lag: Histogram::new(),
        backlog: 0,
        processor: Nanos::ZERO,
    }
}

fn result(load: &Load) -> LoadResult {
    let simulated = &load.result;
    let totals = simulated.totals().map(|total| Counted {
        count: total.response.count(),
        bytes: total.bytes,
        response: total.response,
        service: total.service,
    });
    LoadResult {
        duration: simulated.duration(),
        kinds: kinds(&totals),
        dispatch_lag: Histogram::new(),
        due: simulated.arrived,
        undelivered: simulated.backlog_at_end.min(simulated.arrived),
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

fn report(second: &LoadSecond, users: u32, observer: &mut dyn Observer) {
    let mut response = Histogram::new();
    second.counted.iter().for_each(|counted| response.merge(&counted.response));
    let rate = response.count() as f64 / (second.end - second.begin).as_secs_f64();
    observer.notice(&Event::Second {
        headline: rate,
        unit: SHAPE.headline.unit,
        counted: SHAPE.headline.counted,
        counted_per_second: rate,
        users,
        response_p99: response.quantile(0.99).map(Nanos),
        errors: 0,
    });
}

/// The counters of volumes and hosts, as samplers would have read them.
struct Series<'a> {
    recorder: &'a SharedRecorder,
    run: RunId,
    design: &'a DesignPlan,
    block: Counters,
    datastore: Counters,
    /// When they were read last.
    read_at: Option<Nanos>,
    /// How far the run is, on its clock.
    now: Nanos,
}

impl<'a> Series<'a> {
    fn new(recorder: &'a SharedRecorder, run: RunId, design: &'a DesignPlan) -> Series<'a> {
        let (block, datastore) = (Counters::default(), Counters::default());
        Series { recorder, run, design, block, datastore, read_at: None, now: Nanos::ZERO }
    }

    fn second(&mut self, second: &LoadSecond) -> Result<(), Abort> {
        if self.read_at.is_none() {
            // Counters begin at 0, at the begin of the first second.
            self.count(second, 0.0);
            self.declare()?;
        }
        // Between two loads nothing is counted.
        if self.read_at.is_none_or(|read| read < second.begin) {
            self.read(second.begin)?;
        }
        self.count(second, 1.0);
        self.read(second.end)?;
        self.now = second.end;
        Ok(())
    }

    fn count(&mut self, second: &LoadSecond, times: f64) {
        for (volume, used) in self.design.volumes.iter().zip(&second.volumes) {
            for (kind, operation) in ["read", "write"].into_iter().enumerate() {
                let sums = [used.count[kind], used.service_ns[kind], used.bytes[kind]];
                let sums = sums.map(|sum| times * sum as f64);
                self.block.add_requests((&volume.name, operation), sums);
            }
        }
        for (host, used) in &second.hosts {
            self.datastore.add_host_use(host, *used, times);
        }
    }

    fn sources(&self) -> [(u32, &'static str, Layer, &Counters); 2] {
        [
            (BLOCK, source::BLOCK, Layer::Block, &self.block),
            (DATASTORE, source::DATASTORE, Layer::Datastore, &self.datastore),
        ]
    }

    fn declare(&self) -> Result<(), Abort> {
        let mut recorder = self.recorder.lock();
        for (index, name, layer, counters) in self.sources() {
            if counters.is_empty() {
                continue;
            }
            let source = counters.source(index, name, layer);
            recorder.source(self.run, &source).during("write the record")?;
        }
        Ok(())
    }

    fn read(&mut self, at: Nanos) -> Result<(), Abort> {
        let interval = Interval { begin: at, end: at };
        let mut recorder = self.recorder.lock();
        for (index, _, _, counters) in self.sources() {
            if !counters.is_empty() {
                let values = counters.values();
                recorder.tick(self.run, index, interval, &values).during("write the record")?;
            }
        }
        drop(recorder);
        self.read_at = Some(at);
        Ok(())
    }
}
