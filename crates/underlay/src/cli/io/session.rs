//! The course that the options of `underlay io` ask for, watched on a terminal and in a record.

use super::options::LoadArguments;
use super::progress::{Progress, line};
use super::recording::Recording;
use crate::lab::block::recording::LoadRecording;
use crate::lab::block::{Course, Outcome, Place, Second, Session, Settings, Watch};
use crate::lab::block::{run_identity, verifiers};
use crate::stop::{Stop, chain};
use std::path::Path;
use std::time::Duration;
use underlay_blockio::load::{LoadResult, OnError, SecondTick, Written};
use underlay_blockio::verify::{Journal, JournalTarget, Verifier, journal, unit_bytes};
use underlay_core::Dilation;
use underlay_record::PhaseKind;
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{Content, IoProfile};

/// Carries out the course; `filled` is called when all that is created has its content.
pub fn run(
    options: &LoadArguments,
    profile: &IoProfile,
    places: &[Place],
    filled: &dyn Fn(),
) -> Result<Outcome, Stop> {
    let content = Content::new(profile.content, options.root())
        .map_err(|error| Stop::bad_input(error.to_string()))?;
    let verifiers = match options.verify {
        true => verified_places(options, profile, places, content)?,
        false => Vec::new(),
    };
    let recording = match &options.record {
        None => None,
        Some(path) => Some(Recording::create(path, options, profile, places)?),
    };
    let settings = Settings {
        seed: options.root(),
        content,
        dilation: Dilation::NONE,
        warm_up: Duration::ZERO,
        ramp_up: options.warm_up.into(),
        measure: options.measure(),
        workers: options.workers,
        on_error: match options.continue_on_error {
            true => OnError::Continue,
            false => OnError::Stop,
        },
        spin: options.spin,
    };
    let course = if options.curve {
        Course::Curve(profile.clone(), PERCENTS.to_vec(), options.arrivals())
    } else if options.steady_state {
        Course::Rounds(profile.clone(), options.rounds_max())
    } else {
        Course::Loads(vec![("load".to_string(), profile.clone())])
    };
    let mut session = Session::new(settings, places, verifiers);
    let loads = recording.as_ref().map(|recording| recording.loads(profile, places.len()));
    let mut watcher = Watcher { progress: None, loads, targets: places.len() as u32 };
    let passes = |place: &Place| match place.created || options.fill {
        // Preconditioning fills too.
        true => options.precondition.max(1),
        false => options.precondition,
    };
    session.write(passes, &mut watcher)?;
    filled();
    session.run(&course, &mut watcher)?;
    session.look_again();
    let outcome = session.into_outcome();
    if let (Some(recording), Some(loads)) = (&recording, &watcher.loads) {
        recording.keep(loads, options, &outcome)?;
    }
    drop(watcher);
    if let Some(recording) = recording {
        recording.finish(&outcome)?;
    }
    Ok(outcome)
}

/// What follows the blocks of each target, with a journal if one was asked for.
fn verified_places(
    options: &LoadArguments,
    profile: &IoProfile,
    places: &[Place],
    content: Content,
) -> Result<Vec<Verifier>, Stop> {
    let run = run_identity();
    let journal = match &options.journal {
        None => None,
        Some(path) => {
            let header = journal::Header {
                run,
                seed: options.root(),
                content: profile.content,
                unit_bytes: unit_bytes(profile.jobs.iter().map(|job| &job.workload)),
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
    Ok(verifiers(run, profile, places, content, journal.as_ref()))
}

/// Progress lines, and the record if there is one.
struct Watcher<'a> {
    progress: Option<Progress>,
    loads: Option<LoadRecording<'a>>,
    targets: u32,
}

impl Watch for Watcher<'_> {
    fn write_began(&mut self, path: &Path) {
        self.progress = Some(Progress::new(format!("writing {}", path.display())));
    }

    fn wrote(&mut self, written: Written) {
        if let Some(progress) = &mut self.progress {
            progress.show(|| format!("{} of {}", written.done, written.of));
        }
    }

    fn load_began(&mut self, label: &str, in_flight_per_target: u32) {
        self.progress = Some(Progress::new(label.to_string()));
        if let Some(loads) = &mut self.loads {
            let now = loads.now();
            loads.begin_load(label, PhaseKind::Measure, in_flight_per_target * self.targets, now);
        }
    }

    fn second(&mut self, tick: &SecondTick, second: &Second) -> Result<(), Stop> {
        if let Some(progress) = &mut self.progress {
            progress.show(|| line(second));
        }
        match &mut self.loads {
            Some(loads) => loads.tick(tick).map(drop),
            None => Ok(()),
        }
    }

    fn load_ended(&mut self, result: &LoadResult) -> Result<(), Stop> {
        match &mut self.loads {
            Some(loads) => loads.end_load(result, loads.now()),
            None => Ok(()),
        }
    }
}
