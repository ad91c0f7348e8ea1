//! All workers of a load together: started at one instant, merged second by second.

use super::outcome::{KindKey, KindResult, LoadResult, Operation, Part, SecondTick, WorkerCost};
use super::spec::LoadSpec;
use super::tally::{Seconds, WorkerTick};
use super::worker::{Message, NEVER, OPERATIONS, Shared, Worker, WorkerEnd, WorkerShare};
use crate::error::BlockIoError;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use underlay_core::{Histogram, Nanos};
use underlay_workload::arrivals::Share;

/// How often it is asked whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How far ahead the end of a load is announced, so that all workers know it in time and their seconds end at the same instant.
const STOP_AHEAD: Duration = Duration::from_millis(20);
/// Threads need a moment until all are ready.
const START_AFTER: Duration = Duration::from_millis(20);

/// Runs a load. `on_second` is called for each second; `stop` is polled many times a second whether to end early.
///
/// A request that fails does not make this fail: see [`LoadResult::failure`].
///
/// # Errors
/// When a worker cannot begin, or writing was asked of a target that was opened for reading.
///
/// # Panics
/// If a workload has problems with its working set, or a working set exceeds its target.
pub fn run_load(
    spec: &LoadSpec<'_>,
    on_second: &mut dyn FnMut(&SecondTick),
    stop: &mut dyn FnMut() -> bool,
) -> Result<LoadResult, BlockIoError> {
    check(spec)?;
    let parts = parts(spec);
    let warm_up = spec.warm_up.as_nanos() as u64;
    let length = spec.dilation.design(Nanos::from_secs(1)).0;
    let seconds = Seconds { warm_up, end: warm_up + spec.measure.as_nanos() as u64, length };
    let began = Instant::now() + START_AFTER;
    let shared = Shared { spec, began, seconds, stop_at: AtomicU64::new(NEVER) };
    let (sender, receiver) = channel();
    let mut merged = Merged::new(spec, &parts, seconds);
    std::thread::scope(|scope| {
        for part in &parts {
            let (sender, shared) = (sender.clone(), &shared);
            scope.spawn(move || {
                let worker = match Worker::new(*part, shared, sender.clone()) {
                    Ok(worker) => worker,
                    Err(error) => {
                        shared.stop_at(0);
                        let end = WorkerEnd { failure: Some(error), ..WorkerEnd::default() };
                        let _ = sender.send(Message::End(end));
                        return;
                    }
                };
                std::thread::sleep(began.saturating_duration_since(Instant::now()));
                worker.run();
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(Message::Tick(tick)) => merged.add(tick, on_second),
                Ok(Message::End(end)) => merged.end(end),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !merged.interrupted && stop() {
                let at = spec.dilation.design((began.elapsed() + STOP_AHEAD).into()).0;
                merged.interrupted = at < seconds.end;
                shared.stop_at(at);
            }
        }
    });
    merged.stopped_at = shared.stopped_at();
    merged.finish(on_second)
}

fn check(spec: &LoadSpec<'_>) -> Result<(), BlockIoError> {
    for job in &spec.jobs {
        let target = spec.targets[job.target];
        assert!(job.working_set <= target.size(), "the working set reaches beyond the target");
        let problems = job.workload.problems(job.working_set, job.concurrency);
        assert!(problems.is_empty(), "job `{}`: {problems:?}", job.name);
        if job.workload.streams.iter().any(|stream| stream.read_share < 1.0) {
            target.require_writable()?;
        }
    }
    Ok(())
}

fn parts(spec: &LoadSpec<'_>) -> Vec<WorkerShare> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let most = if spec.workers_max == 0 { processors } else { spec.workers_max };
    let mut parts = Vec::new();
    for (job, described) in spec.jobs.iter().enumerate() {
        let of = described.concurrency.threads.min(most).max(1);
        for index in 0..of {
            parts.push(WorkerShare { worker: parts.len(), job, share: Share { index, of } });
        }
    }
    parts
}

/// A second that not all workers have handed over.
struct Open {
    waiting_for: usize,
    tick: SecondTick,
}

/// The reports of all workers so far.
struct Merged<'a> {
    spec: &'a LoadSpec<'a>,
    seconds: Seconds,
    /// Job of each worker.
    jobs: Vec<usize>,
    open: BTreeMap<(Part, u64), Open>,
    kinds: BTreeMap<KindKey, KindResult>,
    lag: Histogram,
    processor: u64,
    per_worker: Vec<u64>,
    ends: WorkerEnd,
    interrupted: bool,
    /// When it was asked to end, if early.
    stopped_at: u64,
    last: u64,
    /// Whether the measured time has begun.
    measured: bool,
}

impl<'a> Merged<'a> {
    fn new(spec: &'a LoadSpec<'a>, parts: &[WorkerShare], seconds: Seconds) -> Merged<'a> {
        Merged {
            spec,
            seconds,
            jobs: parts.iter().map(|part| part.job).collect(),
            open: BTreeMap::new(),
            kinds: BTreeMap::new(),
            lag: Histogram::new(),
            processor: 0,
            per_worker: vec![0; parts.len()],
            ends: WorkerEnd::default(),
            interrupted: false,
            stopped_at: NEVER,
            last: 0,
            measured: false,
        }
    }

    fn add(&mut self, tick: WorkerTick, on_second: &mut dyn FnMut(&SecondTick)) {
        let keyed = self.keyed(tick.worker, tick.kinds);
        self.last = self.last.max(tick.end);
        self.measured |= tick.part == Part::Measure;
        // Of a load that was stopped in its warm-up, nothing is a result.
        if tick.part != Part::WarmUp && self.measured {
            for (key, result) in &keyed {
                self.kinds.entry(key.clone()).or_default().merge(result);
            }
            self.lag.merge(&tick.lag);
        }
        if tick.part == Part::Measure {
            self.processor += tick.processor;
            self.per_worker[tick.worker] += tick.processor;
        }
        let workers = self.jobs.len();
        let open = self.open.entry((tick.part, tick.second)).or_insert_with(|| Open {
            waiting_for: workers,
            tick: SecondTick {
                part: tick.part,
                begin: Nanos(tick.begin),
                end: Nanos(tick.end),
                kinds: Vec::new(),
                dispatch_lag: Histogram::new(),
                backlog: 0,
                processor: Nanos::ZERO,
            },
        });
        let whole = &mut open.tick;
        for (key, result) in keyed {
            match whole.kinds.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => sum.merge(&result),
                None => whole.kinds.push((key, result)),
            }
        }
        whole.end = whole.end.max(Nanos(tick.end));
        whole.dispatch_lag.merge(&tick.lag);
        whole.backlog += tick.backlog;
        whole.processor += Nanos(tick.processor);
        open.waiting_for -= 1;
        if open.waiting_for == 0 {
            let done = self.open.remove(&(tick.part, tick.second)).expect("just counted");
            on_second(&done.tick);
        }
    }

    /// What a worker counted, by kind; what never happened is left out. In a closed loop without
    /// conflicts, service is response.
    fn keyed(&self, worker: usize, kinds: Vec<KindResult>) -> Vec<(KindKey, KindResult)> {
        let job = &self.spec.jobs[self.jobs[worker]];
        let happened = |result: &KindResult| result.completed > 0 || !result.errors.is_empty();
        let numbered = kinds.into_iter().enumerate().filter(|(_, result)| happened(result));
        numbered
            .map(|(number, mut result)| {
                if result.service.is_empty() {
                    result.service = result.response.clone();
                }
                let key = KindKey {
                    target: job.target,
                    job: job.name.clone(),
                    stream: job.workload.streams[number / OPERATIONS].name.clone(),
                    operation: Operation::ALL[number % OPERATIONS],
                };
                (key, result)
            })
            .collect()
    }

    fn end(&mut self, end: WorkerEnd) {
        self.ends.due += end.due;
        self.ends.undelivered += end.undelivered;
        self.ends.oldest_undelivered = self.ends.oldest_undelivered.max(end.oldest_undelivered);
        self.ends.conflicts += end.conflicts;
        self.ends.verified_units += end.verified_units;
        if self.ends.failure.is_none() {
            self.ends.failure = end.failure;
        }
    }

    fn finish(
        mut self,
        on_second: &mut dyn FnMut(&SecondTick),
    ) -> Result<LoadResult, BlockIoError> {
        // Seconds that a worker did not reach, because it had failed.
        for open in std::mem::take(&mut self.open).into_values() {
            on_second(&open.tick);
        }
        let begun = self.kinds.values().any(|kind| kind.completed > 0 || !kind.errors.is_empty());
        let failure = match self.ends.failure.take() {
            // Nothing was done at all.
            Some(error) if !begun && self.last == 0 => return Err(error),
            failure => failure,
        };
        let ended = self.stopped_at.min(self.seconds.end);
        let duration = ended.saturating_sub(self.seconds.warm_up);
        let on_this_host = self.spec.dilation.wall(Nanos(duration)).0;
        let busiest = self.per_worker.iter().copied().max().unwrap_or(0);
        let mut violations = Vec::new();
        let mut violation_count = 0;
        for verifier in self.spec.verifiers {
            let (count, first) = verifier.violations();
            violation_count += count;
            violations.extend(first);
        }
        Ok(LoadResult {
            duration: Nanos(duration),
            kinds: self.kinds.into_iter().collect(),
            dispatch_lag: self.lag,
            due: self.ends.due,
            undelivered: self.ends.undelivered,
            oldest_undelivered: Nanos(self.ends.oldest_undelivered),
            conflicts: self.ends.conflicts,
            verified_units: self.ends.verified_units,
            cost: WorkerCost {
                workers: self.jobs.len() as u32,
                processor: Nanos(self.processor),
                busiest_permille: (busiest * 1000 / on_this_host.max(1)) as u32,
            },
            interrupted: self.interrupted,
            failure: failure.map(|error| chain(&error)),
            violations,
            violation_count,
        })
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
