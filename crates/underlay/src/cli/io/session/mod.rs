//! The phases of a load: fill, precondition, then one run, rounds until steady, or a rate curve, and a final
//! verification of everything that was written.

mod outcome;
mod progress;

use super::options::LoadArguments;
use super::recording::Recording;
use super::stop;
use super::targets::Place;
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use std::time::Duration;
use underlay_blockio::Target;
use underlay_blockio::load::{
    KindResult, LoadJob, LoadResult, LoadSpec, OnError, Operation, Part, SecondTick, run_load,
    write_all,
};
use underlay_blockio::verify::{Journal, JournalTarget, Verifier, journal, unit_bytes};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::steady_state::WINDOW_ROUNDS;
use underlay_workload::block::{Content, IoProfile, curve_rate, steady_state};

pub use outcome::{LastLook, Outcome, Phase, Second, TargetFacts};
use progress::{Progress, line};

/// Carries out the course; `filled` is called when all that is created has its content.
pub fn run(
    options: &LoadArguments,
    profile: &IoProfile,
    places: &[Place],
    filled: &dyn Fn(),
) -> Result<Outcome, Stop> {
    let content = Content::new(profile.content, options.root())
        .map_err(|error| Stop::bad_input(error.to_string()))?;
    let verifiers = verifiers(options, profile, places, content)?;
    let recording = match &options.record {
        None => None,
        Some(path) => Some(Recording::create(path, options, profile, places)?),
    };
    let mut session = Session {
        options,
        places,
        content,
        verifiers,
        recording,
        outcome: Outcome {
            targets: places.iter().map(facts).collect(),
            phases: Vec::new(),
            steady: None,
            verified: options.verify,
            last_look: None,
            interrupted: false,
            broken: None,
        },
    };
    session.prepare()?;
    filled();
    if !session.outcome.interrupted {
        if options.curve {
            session.curve(profile)?;
        } else if options.steady_state {
            session.rounds(profile)?;
        } else {
            session.load("load", profile, options.measure(), options.warm_up.into())?;
        }
    }
    session.look_again();
    if let Some(recording) = session.recording.take() {
        recording.finish(&session.outcome)?;
    }
    Ok(session.outcome)
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

/// Identity of this run in the marks of its blocks: what an earlier run wrote must not pass for ours.
fn run_identity() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id()) << 48
}

fn verifiers(
    options: &LoadArguments,
    profile: &IoProfile,
    places: &[Place],
    content: Content,
) -> Result<Vec<Verifier>, Stop> {
    if !options.verify {
        return Ok(Vec::new());
    }
    let unit_bytes = unit_bytes(profile.jobs.iter().map(|job| &job.workload));
    let run = run_identity();
    let journal = match &options.journal {
        None => None,
        Some(path) => {
            let header = journal::Header {
                run,
                seed: options.root(),
                content: profile.content,
                unit_bytes,
                targets: places
                    .iter()
                    .map(|place| JournalTarget {
                        path: place.target.path().to_path_buf(),
                        working_set: place.working_set,
                    })
                    .collect(),
            };
            let created = Journal::create(path, &header, options.journal_durable);
            Some(created.map_err(|error| Stop::bad_input(chain(&error)))?)
        }
    };
    let verifier = |(number, place): (usize, &Place)| {
        let set = place.working_set;
        Verifier::new(run, number as u32, set, unit_bytes, content, journal.clone())
    };
    Ok(places.iter().enumerate().map(verifier).collect())
}

struct Session<'a> {
    options: &'a LoadArguments,
    places: &'a [Place],
    content: Content,
    verifiers: Vec<Verifier>,
    recording: Option<Recording>,
    outcome: Outcome,
}

impl Session<'_> {
    fn prepare(&mut self) -> Result<(), Stop> {
        let passes = |place: &Place| match place.created || self.options.fill {
            // Preconditioning fills too.
            true => self.options.precondition.max(1),
            false => self.options.precondition,
        };
        for (number, place) in self.places.iter().enumerate() {
            for pass in 1..=passes(place) {
                let mut progress =
                    Progress::new(format!("writing {}", place.target.path().display()));
                let verifier = self.verifiers.get(number);
                let version = u64::from(pass) << 56;
                let set = place.working_set;
                let written =
                    write_all(&place.target, set, &self.content, version, verifier, &mut |at| {
                        progress.tell(|| format!("{} of {}", at.done, at.of));
                        !interrupt::requested()
                    });
                match written {
                    Ok(()) => {}
                    Err(underlay_blockio::BlockIoError::Interrupted) => {
                        self.outcome.interrupted = true;
                        return Ok(());
                    }
                    Err(error) => return Err(stop(&error)),
                }
            }
        }
        Ok(())
    }

    /// Runs the profile once; returns whether to go on.
    fn load(
        &mut self,
        label: &str,
        profile: &IoProfile,
        measure: Duration,
        warm_up: Duration,
    ) -> Result<bool, Stop> {
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
        let phase = self.outcome.phases.len() as u64;
        let spec = LoadSpec {
            targets,
            verifiers: &self.verifiers,
            jobs: jobs.collect(),
            content: self.content,
            warm_up,
            measure,
            seed: self.options.root().child("io.phase", phase),
            workers_max: self.options.workers,
            on_error: match self.options.continue_on_error {
                true => OnError::Continue,
                false => OnError::Stop,
            },
            spin: self.options.spin.into(),
            gauge: None,
        };
        let offered: Option<f64> = profile.jobs.iter().map(|job| job.rate_per_second()).sum();
        let offered = offered.map(|rate| rate * self.places.len() as f64);
        let per_target: u32 = profile.jobs.iter().map(|job| job.concurrency.in_flight()).sum();
        let in_flight = per_target * self.places.len() as u32;
        if let Some(recording) = &mut self.recording {
            recording.begin_phase(label, in_flight);
        }
        let mut progress = Progress::new(label.to_string());
        let mut seconds = Vec::new();
        let mut lost = None;
        let recording = &mut self.recording;
        let result = run_load(
            &spec,
            &mut |tick| {
                let second = second(tick);
                progress.tell(|| line(&second));
                if let Some(recording) = recording.as_mut()
                    && let Err(error) = recording.tick(tick)
                {
                    lost.get_or_insert(error);
                }
                seconds.push(second);
            },
            &mut interrupt::requested,
        )
        .map_err(|error| stop(&error))?;
        if let Some(error) = lost {
            return Err(error);
        }
        if let Some(recording) = &mut self.recording {
            recording.end_phase(&result)?;
        }
        let goes_on = !result.interrupted && result.failure.is_none();
        self.outcome.interrupted |= result.interrupted;
        let label = label.to_string();
        self.outcome.phases.push(Phase {
            label,
            offered,
            in_flight,
            counts: true,
            result,
            seconds,
        });
        Ok(goes_on)
    }

    fn rounds(&mut self, profile: &IoProfile) -> Result<(), Stop> {
        let mut tracked = Vec::new();
        for round in 1..=self.options.rounds_max() {
            // Load between rounds goes on as in one long run, so only the first one warms up.
            let warm_up = if round == 1 { self.options.warm_up.into() } else { Duration::ZERO };
            let measure = self.options.measure();
            if !self.load(&format!("round {round}"), profile, measure, warm_up)? {
                break;
            }
            tracked.push(self.outcome.phases.last().expect("just run").result.iops());
            self.outcome.steady = steady_state(&tracked);
            if self.outcome.steady.is_some_and(|state| state.is_steady()) {
                break;
            }
        }
        let before = self.outcome.phases.len().saturating_sub(WINDOW_ROUNDS);
        self.outcome.phases[..before].iter_mut().for_each(|phase| phase.counts = false);
        Ok(())
    }

    fn curve(&mut self, profile: &IoProfile) -> Result<(), Stop> {
        let (measure, warm_up) = (self.options.measure(), self.options.warm_up.into());
        if !self.load("maximum", profile, measure, warm_up)? {
            return Ok(());
        }
        let most = self.outcome.phases[0].result.iops();
        let targets = self.places.len() as f64;
        // Jobs keep the shares of the requests that they had at the maximum.
        let shares = job_shares(profile, &self.outcome.phases[0].result);
        for percent in PERCENTS {
            let rate = curve_rate(most, percent).rate_per_second as f64 / targets;
            let mut paced = profile.clone();
            for (job, share) in paced.jobs.iter_mut().zip(&shares) {
                let arrivals: Arrivals = self.options.arrivals();
                // A job that did nothing at the maximum gets next to nothing.
                let rate_per_second = (rate * share).max(0.001);
                job.pace = underlay_workload::block::Pace::Open { rate_per_second, arrivals };
            }
            if !self.load(&format!("{percent} %"), &paced, measure, warm_up)? {
                break;
            }
        }
        Ok(())
    }

    /// Compares everything that was written.
    fn look_again(&mut self) {
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
