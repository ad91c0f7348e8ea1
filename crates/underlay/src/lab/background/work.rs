//! One piece of background work: opening what it needs, and doing it on a thread of its own.
//!
//! Knows nothing of runs, records and moments.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use underlay_blockio::copy::{CopyResult, CopySpec, copy};
use underlay_blockio::load::{
    LoadJob, LoadResult, LoadSpec, OnError, Operation, run_load, write_all,
};
use underlay_blockio::{BlockIoError, Caching, IoGauge, Target};
use underlay_core::{Dilation, Histogram, RootSeed};
use underlay_datastore::MountedVolume;
use underlay_study::{BackgroundPlan, BackgroundWork, CopyPlan};
use underlay_workload::block::{Content, IoProfile};

use super::outcome::Done;

/// A load without an end of its own is given this long; the run ends before.
const LONG: Duration = Duration::from_secs(30 * 86_400);

/// Targets that are open, and what is done with them.
pub(super) enum Ready {
    Load { profile: Box<IoProfile>, targets: Vec<Target>, seed: RootSeed },
    Copy { plan: CopyPlan, from: Target, to: Option<Target> },
}

/// Opens what the work needs.
pub(super) fn ready(
    plan: &BackgroundPlan,
    volumes: &[MountedVolume],
    seed: RootSeed,
) -> Result<Ready, Preparation> {
    let volume = |name: &str| {
        let found = volumes.iter().find(|volume| volume.name == name);
        found.ok_or_else(|| Preparation::NoVolume(name.to_string()))
    };
    let file = |name: &str| -> Result<_, Preparation> {
        Ok(volume(name)?.path.join(format!("background-{}", plan.name)))
    };
    match &plan.work {
        BackgroundWork::Load { profile, volumes, working_set } => {
            let content = Content::new(profile.content, seed).map_err(Preparation::Content)?;
            let targets = volumes.iter().map(|name| -> Result<Target, Preparation> {
                let target = Target::create(&file(name)?, *working_set)?;
                // A file with holes is read from memory.
                write_all(&target, *working_set, &content, 0, None, &mut |_| true)?;
                Ok(target)
            });
            let targets = targets.collect::<Result<Vec<_>, _>>()?;
            Ok(Ready::Load { profile: profile.clone(), targets, seed })
        }
        BackgroundWork::Copy(copy) => {
            let from = volume(&copy.from)?;
            let device = from
                .block_device
                .as_ref()
                .ok_or_else(|| Preparation::NoDevice(copy.from.clone()))?;
            let from = Target::open_to_read(&Path::new("/dev").join(device), Caching::Direct)?;
            let to = match &copy.to {
                Some(name) => Some(Target::create(&file(name)?, copy.space)?),
                None => None,
            };
            Ok(Ready::Copy { plan: copy.clone(), from, to })
        }
    }
}

/// Why background work cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub(super) enum Preparation {
    #[error("the design has no volume `{0}`")]
    NoVolume(String),
    #[error("the volume `{0}` has no block device of its own")]
    NoDevice(String),
    #[error(transparent)]
    Content(underlay_workload::block::ContentProblem),
    #[error(transparent)]
    Io(#[from] BlockIoError),
}

/// Does it until it is done or `stop` is set.
pub(super) fn work(ready: Ready, gauge: &IoGauge, stop: &AtomicBool) -> Done {
    let done = match ready {
        Ready::Copy { plan, from, to } => {
            let spec = CopySpec {
                from: &from,
                to: to.as_ref(),
                block_bytes: plan.block_size.0 as u32,
                queue_depth: plan.queue_depth,
                bytes_per_second: plan.bytes_per_second,
            };
            copy(&spec, gauge, stop).map(of_copy)
        }
        Ready::Load { profile, targets, seed } => {
            let jobs = (0..targets.len())
                .flat_map(|target| profile.jobs.iter().map(move |job| (target, job)));
            let spec = LoadSpec {
                targets: targets.iter().collect(),
                verifiers: &[],
                jobs: jobs
                    .map(|(target, job)| LoadJob {
                        target,
                        name: job.workload.name.clone(),
                        workload: &job.workload,
                        working_set: targets[target].size(),
                        concurrency: job.concurrency,
                        pace: job.pace,
                    })
                    .collect(),
                content: match Content::new(profile.content, seed) {
                    Ok(content) => content,
                    Err(problem) => return failed(problem.to_string()),
                },
                dilation: Dilation::NONE,
                warm_up: Duration::ZERO,
                measure: LONG,
                seed,
                // It shall take from the storage, not from the processors of the host.
                workers_max: 1,
                on_error: OnError::Continue,
                spin: Duration::ZERO,
                // What is drawn second by second must not wait for the end of a second of the load's own.
                gauge: Some(gauge),
            };
            run_load(&spec, &mut |_| {}, &mut || stop.load(Ordering::Relaxed))
                .map(|result| of_load(&result))
        }
    };
    done.unwrap_or_else(|error| failed(error.to_string()))
}

fn failed(failure: String) -> Done {
    Done {
        complete: false,
        errors: 0,
        read: Histogram::new(),
        write: Histogram::new(),
        failure: Some(failure),
    }
}

fn of_copy(result: CopyResult) -> Done {
    Done {
        complete: result.complete,
        errors: result.errors.values().sum(),
        read: result.read,
        write: result.write,
        failure: None,
    }
}

fn of_load(result: &LoadResult) -> Done {
    Done {
        complete: true,
        errors: result.errors(),
        read: result.total(|kind| kind.operation == Operation::Read).response,
        write: result.total(|kind| kind.operation == Operation::Write).response,
        failure: result.failure.clone(),
    }
}
