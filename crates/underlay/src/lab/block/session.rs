//! The course of a block load: write the targets in order, then loads, rounds until steady or a rate curve, and a last look at
//! everything that was written.
//!
//! `underlay io` and studies carry out the same courses. Who watches records and shows them; the course itself knows neither
//! records nor terminals, and opens no target.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use underlay_blockio::load::{
    KindResult, LoadJob, LoadResult, LoadSpec, OnError, Operation, Part, SecondTick, Written,
    run_load, write_all,
};
use underlay_blockio::verify::{Journal, Verifier, unit_bytes};
use underlay_blockio::{BlockIoError, Target};
use underlay_core::{Dilation, Nanos, RootSeed};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::steady_state::WINDOW_ROUNDS;
use underlay_workload::block::{Content, IoProfile, Pace, curve_rate, steady_state};

use super::io_error::stop;
use super::outcome::{LastLook, Outcome, Phase, Place, Second, TargetFacts};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};

/// How loads are made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Of addresses, sizes and arrivals.
    pub seed: RootSeed,
    /// What written bytes look like.
    pub content: Content,
    /// How many times as long everything takes; times and rates are in design time.
    pub dilation: Dilation,
    /// Load before the first load's own, not measured.
    pub warm_up: Duration,
    /// Load before each measured time.
    pub ramp_up: Duration,
    /// The measured time of each load.
    pub measure: Duration,
    /// Threads of the operating system per job and target; 0 = one per processor.
    pub workers: u32,
    /// What a failed request ends.
    pub on_error: OnError,
    /// How long before an arrival a worker waits awake.
    pub spin: Nanos,
}

/// What is run.
#[derive(Clone, Debug)]
pub enum Course {
    /// One load after another, each with its label.
    Loads(Vec<(String, IoProfile)>),
    /// Rounds of a load until they are steady, at most so many.
    Rounds(IoProfile, u32),
    /// The maximum, then these percentages of it by a clock.
    Curve(IoProfile, Vec<u32>, Arrivals),
}

/// Who watches a course. An error ends it.
pub trait Watch {
    /// A target begins to be written in order.
    fn write_began(&mut self, _path: &Path) {}

    /// So much of it was written.
    fn wrote(&mut self, _written: Written) {}

    /// A load begins, with so many requests in flight per target.
    fn load_began(&mut self, label: &str, in_flight_per_target: u32);

    /// A second of it is over.
    fn second(&mut self, tick: &SecondTick, second: &Second) -> Result<(), Stop>;

    /// It has ended.
    fn load_ended(&mut self, result: &LoadResult) -> Result<(), Stop>;
}

/// A course under way.
pub struct Session<'a> {
    settings: Settings,
    places: &'a [Place],
    verifiers: Vec<Verifier>,
    passes: u64,
    loads: u64,
    outcome: Outcome,
}

impl<'a> Session<'a> {
    /// Nothing is run yet. Verifiers are one per place, or none.
    pub fn new(settings: Settings, places: &'a [Place], verifiers: Vec<Verifier>) -> Session<'a> {
        let outcome = Outcome {
            targets: places.iter().map(facts).collect(),
            phases: Vec::new(),
            steady: None,
            verified: !verifiers.is_empty(),
            last_look: None,
            interrupted: false,
            broken: None,
        };
        Session { settings, places, verifiers, passes: 0, loads: 0, outcome }
    }

    /// What came out so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The same, at the end.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Writes each target in order so many times.
    pub fn write(
        &mut self,
        passes: impl Fn(&Place) -> u32,
        watch: &mut dyn Watch,
    ) -> Result<(), Stop> {
        let most = self.places.iter().map(&passes).max().unwrap_or(0);
        for (number, place) in self.places.iter().enumerate() {
            for pass in 1..=u64::from(passes(place)) {
                watch.write_began(place.target.path());
                let verifier = self.verifiers.get(number);
                let version = (self.passes + pass) << 56;
                let (set, content) = (place.working_set, &self.settings.content);
                let written =
                    write_all(&place.target, set, content, version, verifier, &mut |at| {
                        watch.wrote(at);
                        !interrupt::requested()
                    });
                match written {
                    Ok(()) => {}
                    Err(BlockIoError::Interrupted) => {
                        self.outcome.interrupted = true;
                        return Ok(());
                    }
                    Err(error) => return Err(stop(&error)),
                }
            }
        }
        self.passes += u64::from(most);
        Ok(())
    }

    /// Carries out a course, unless it was interrupted before.
    pub fn run(&mut self, course: &Course, watch: &mut dyn Watch) -> Result<(), Stop> {
        if self.outcome.interrupted {
            return Ok(());
        }
        match course {
            Course::Loads(loads) => {
                for (label, profile) in loads {
                    if !self.load(label, profile, watch)? {
                        break;
                    }
                }
                Ok(())
            }
            Course::Rounds(profile, rounds_max) => self.rounds(profile, *rounds_max, watch),
            Course::Curve(profile, percents, arrivals) => {
                self.curve(profile, percents, *arrivals, watch)
            }
        }
    }

    /// Runs a load that is no result: neither in the outcome nor in what is reported.
    pub fn run_aside(
        &mut self,
        label: &str,
        profile: &IoProfile,
        (ramp_up, measure): (Duration, Duration),
        watch: &mut dyn Watch,
    ) -> Result<(), Stop> {
        let result = self.run_once(label, profile, (ramp_up, measure), watch)?;
        self.outcome.interrupted |= result.result.interrupted;
        match result.result.failure {
            Some(failure) => Err(Stop::run_failed(failure)),
            None => Ok(()),
        }
    }

    /// Runs the profile once; returns whether to go on.
    fn load(
        &mut self,
        label: &str,
        profile: &IoProfile,
        watch: &mut dyn Watch,
    ) -> Result<bool, Stop> {
        let Settings { warm_up, ramp_up, measure, .. } = self.settings;
        let before = if self.outcome.phases.is_empty() { warm_up + ramp_up } else { ramp_up };
        let phase = self.run_once(label, profile, (before, measure), watch)?;
        let goes_on = !phase.result.interrupted && phase.result.failure.is_none();
        self.outcome.interrupted |= phase.result.interrupted;
        self.outcome.phases.push(phase);
        Ok(goes_on)
    }

    fn run_once(
        &mut self,
        label: &str,
        profile: &IoProfile,
        (warm_up, measure): (Duration, Duration),
        watch: &mut dyn Watch,
    ) -> Result<Phase, Stop> {
        let targets: Vec<&Target> = self.places.iter().map(|place| &place.target).collect();
        let jobs = self.places.iter().enumerate().flat_map(|(target, place)| {
            profile.jobs.iter().map(move |job| LoadJob {
                target,
                name: job.workload.name.clone(),
                workload: &job.workload,
                working_set: place.working_set,
                concurrency: job.concurrency,
                pace: job.pace,
            })
        });
        let spec = LoadSpec {
            targets,
            verifiers: &self.verifiers,
            jobs: jobs.collect(),
            content: self.settings.content,
            dilation: self.settings.dilation,
            warm_up,
            measure,
            seed: self.settings.seed.child("io.phase", self.loads),
            workers_max: self.settings.workers,
            on_error: self.settings.on_error,
            spin: self.settings.spin.into(),
            gauge: None,
        };
        self.loads += 1;
        let offered: Option<f64> = profile.jobs.iter().map(|job| job.rate_per_second()).sum();
        let offered = offered.map(|rate| rate * self.places.len() as f64);
        let per_target: u32 = profile.jobs.iter().map(|job| job.concurrency.in_flight()).sum();
        watch.load_began(label, per_target);
        let mut seconds = Vec::new();
        // The load ends when its observer fails.
        let is_lost = Cell::new(false);
        let mut lost = None;
        let result = run_load(
            &spec,
            &mut |tick| {
                let second = second(tick);
                if let Err(error) = watch.second(tick, &second) {
                    is_lost.set(true);
                    lost.get_or_insert(error);
                }
                seconds.push(second);
            },
            &mut || is_lost.get() || interrupt::requested(),
        )
        .map_err(|error| stop(&error))?;
        if let Some(error) = lost {
            return Err(error);
        }
        watch.load_ended(&result)?;
        let in_flight = per_target * self.places.len() as u32;
        Ok(Phase { label: label.to_string(), offered, in_flight, counts: true, result, seconds })
    }

    fn rounds(
        &mut self,
        profile: &IoProfile,
        rounds_max: u32,
        watch: &mut dyn Watch,
    ) -> Result<(), Stop> {
        let mut tracked = Vec::new();
        for round in 1..=rounds_max {
            if !self.load(&format!("round {round}"), profile, watch)? {
                break;
            }
            // Load between rounds goes on as in one long run, so only the first one warms up.
            self.settings.ramp_up = Duration::ZERO;
            tracked.extend(self.outcome.phases.last().map(|phase| phase.result.iops()));
            self.outcome.steady = steady_state(&tracked);
            if self.outcome.steady.is_some_and(|state| state.is_steady()) {
                break;
            }
        }
        let before = self.outcome.phases.len().saturating_sub(WINDOW_ROUNDS);
        self.outcome.phases[..before].iter_mut().for_each(|phase| phase.counts = false);
        Ok(())
    }

    fn curve(
        &mut self,
        profile: &IoProfile,
        percents: &[u32],
        arrivals: Arrivals,
        watch: &mut dyn Watch,
    ) -> Result<(), Stop> {
        if !self.load("maximum", profile, watch)? {
            return Ok(());
        }
        let most = self.outcome.phases[0].result.iops();
        let targets = self.places.len() as f64;
        // Jobs keep the shares of the requests that they had at the maximum.
        let shares = job_shares(profile, &self.outcome.phases[0].result);
        for percent in percents {
            let rate = curve_rate(most, *percent).rate_per_second as f64 / targets;
            let mut paced = profile.clone();
            for (job, share) in paced.jobs.iter_mut().zip(&shares) {
                // A job that did nothing at the maximum gets next to nothing.
                let rate_per_second = (rate * share).max(0.001);
                job.pace = Pace::Open { rate_per_second, arrivals };
            }
            if !self.load(&format!("{percent} %"), &paced, watch)? {
                break;
            }
        }
        Ok(())
    }

    /// Compares everything that was written.
    pub fn look_again(&mut self) {
        let ended_early = self.outcome.interrupted || self.outcome.failure().is_some();
        if self.verifiers.is_empty() || ended_early {
            return;
        }
        let mut look =
            LastLook { units: 0, unit_bytes: 0, violation_count: 0, violations: Vec::new() };
        for (verifier, place) in self.verifiers.iter().zip(self.places) {
            match verifier.check_all(&place.target, &mut interrupt::requested) {
                Ok(units) => look.units += units,
                Err(error) => {
                    self.outcome.broken.get_or_insert(chain(&error));
                }
            }
            let (count, violations) = verifier.violations();
            look.violation_count += count;
            look.violations.extend(violations);
            look.unit_bytes = verifier.unit_bytes();
        }
        self.outcome.last_look = Some(look);
    }
}

/// Identity of a run in the marks of its blocks: what an earlier run wrote must not pass for ours.
pub fn run_identity() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id()) << 48
}

/// What follows the blocks of each place; a journal outlives the process.
pub fn verifiers(
    run: u64,
    profile: &IoProfile,
    places: &[Place],
    content: Content,
    journal: Option<&Journal>,
) -> Vec<Verifier> {
    let unit_bytes = unit_bytes(profile.jobs.iter().map(|job| &job.workload));
    let verifier = |(number, place): (usize, &Place)| {
        let set = place.working_set;
        Verifier::new(run, number as u32, set, unit_bytes, content, journal.cloned())
    };
    places.iter().enumerate().map(verifier).collect()
}

fn facts(place: &Place) -> TargetFacts {
    TargetFacts {
        path: place.target.path().to_path_buf(),
        kind: place.target.kind(),
        size: place.target.size(),
        working_set: place.working_set,
        created: place.created,
        medium: place.medium,
    }
}

/// Share of the requests that each job had.
fn job_shares(profile: &IoProfile, result: &LoadResult) -> Vec<f64> {
    let count = |name: &str| {
        result.total(|key| key.job == name && key.operation != Operation::Flush).in_window as f64
    };
    let counts: Vec<f64> = profile.jobs.iter().map(|job| count(&job.workload.name)).collect();
    let total: f64 = counts.iter().sum();
    let even = 1.0 / counts.len() as f64;
    counts.iter().map(|count| if total > 0.0 { count / total } else { even }).collect()
}

fn second(tick: &SecondTick) -> Second {
    let mut all = KindResult::default();
    let mut counts = [0u64; 3];
    let mut bytes = 0;
    for (key, kind) in &tick.kinds {
        counts[key.operation as usize] += kind.completed;
        if key.operation != Operation::Flush {
            all.merge(kind);
            bytes += kind.bytes;
        }
    }
    let [reads, writes, flushes] = counts;
    Second {
        measured: tick.part == Part::Measure,
        begin: tick.begin,
        end: tick.end,
        reads,
        writes,
        flushes,
        bytes,
        errors: tick.kinds.iter().flat_map(|(_, kind)| kind.errors.values()).sum(),
        p50: all.response.quantile(0.5),
        p99: all.response.quantile(0.99),
        max: all.response.max(),
        backlog: tick.backlog,
    }
}
