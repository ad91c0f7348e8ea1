//! One run: one design in one repeat, from nothing to nothing.
//!
//! Restore, start, check, warm up, climb, stop, check. Whatever is acquired is on a teardown stack of
//! this run's own, which is unwound at the end however the run ends.

mod load;
mod outcome;
mod provision;
mod site;

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use underlay_core::{Dilation, Nanos};
use underlay_database::managed::{Install, Server, StopMode, Template};
use underlay_datastore::{MountedVolume, Timing};
use underlay_host::{Cgroup, StateDir, Teardown, User};
use underlay_record::{CheckMoment, NewRun, PhaseKind, RunEnd, RunStatus, Severity};
use underlay_study::{DesignPlan, Plan, RunPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::event::{Event, Observer};
use crate::lab::faults::Faults;
use crate::lab::ladder::Rung;
use crate::lab::phases::Phases;
use crate::lab::recording::SharedRecorder;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;
use crate::lab::template::access;
use crate::lab::verification::{Verified, crash_behind, keep, made};
use crate::lab::workload::Subject;

pub use load::{drive_spec, first_rate, kernel_threads, process_name, volume_targets};
pub use outcome::{keep_summary, keep_timing};
pub use provision::{Ground, close, datastore_spec, open_datastore, set_timing, volume_requests};

/// What all runs of an execution share.
pub struct Bench<'a, S> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Where the record is written.
    pub recorder: &'a SharedRecorder,
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The database's programs.
    pub install: &'a Install,
    /// The loaded database that every run starts from.
    pub template: &'a Template,
    /// The workload.
    pub subject: &'a S,
    /// Who the server runs as.
    pub user: Option<&'a User>,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// For the checks.
    pub runtime: &'a Runtime,
    /// How many times longer every run takes than what it stands for.
    pub dilation: Dilation,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunResult {
    /// In the record's words.
    pub status: RunStatus,
    /// The cause, when it did not finish.
    pub reason: Option<String>,
    /// Whether the data was right afterwards; `None` when that was not reached.
    pub verified: Option<Verified>,
}

/// Where a run takes place, whatever its workload is.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Where the record is written.
    pub recorder: &'a SharedRecorder,
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// How many times longer every run takes than what it stands for.
    pub dilation: Dilation,
}

/// What a run came to, as far as it came.
pub struct Came {
    /// How it ended.
    pub result: Result<(), Abort>,
    /// What was measured.
    pub rungs: Vec<Rung>,
    /// Whether the data was right afterwards.
    pub verified: Option<Verified>,
}

/// Carries out one run of a database and removes everything it made.
pub fn carry_out<S: Subject>(
    bench: &Bench<'_, S>,
    order: usize,
    scheduled: RunPlan,
    observer: &mut dyn Observer,
) -> Result<RunResult, Abort> {
    let design = &bench.plan.designs[scheduled.design];
    let frame = Frame {
        plan: bench.plan,
        recorder: bench.recorder,
        state: bench.state,
        dilation: bench.dilation,
    };
    in_frame(frame, (order, scheduled), observer, |log, teardown, observer| {
        let (rungs, verified) = (Vec::new(), None);
        let mut active = ActiveRun { bench, design, scheduled, log, teardown, rungs, verified };
        let result = active.carry_out(observer);
        Came { result, rungs: active.rungs, verified: active.verified }
    })
}

/// Begins a run in the record, lets `act` carry it out, ends it, and removes everything that was made.
pub fn in_frame<'a>(
    frame: Frame<'a>,
    (order, scheduled): (usize, RunPlan),
    observer: &mut dyn Observer,
    act: impl FnOnce(RunLog<'a>, &Teardown, &mut dyn Observer) -> Came,
) -> Result<RunResult, Abort> {
    let design = &frame.plan.designs[scheduled.design];
    let origin = Instant::now();
    let run = frame
        .recorder
        .lock()
        .begin_run(&NewRun {
            design: u32::try_from(scheduled.design).unwrap_or(u32::MAX),
            repeat: scheduled.repeat + 1,
            order: u32::try_from(order).unwrap_or(u32::MAX),
            at: Nanos::ZERO,
            origin_wall_ns: wall_clock_ns(),
        })
        .during("write the record")?;
    observer.notice(&Event::RunBegan {
        position: order + 1,
        runs: frame.plan.schedule.len(),
        design: &design.title,
        repeat: scheduled.repeat + 1,
    });
    let teardown = Teardown::create(frame.state, &format!("run {} {}", order + 1, design.name))
        .during("keep a list of what is created")?;
    let log = RunLog { recorder: frame.recorder, run, origin, dilation: frame.dilation };
    let Came { result, rungs, verified } = act(log, &teardown, observer);
    for leftover in teardown.unwind() {
        let text = format!("could not remove {}: {}", leftover.resource, leftover.reason);
        observer.notice(&Event::Found { severity: Severity::Warning, text: &text });
    }
    let (status, reason) = match (result, &verified) {
        (Ok(()), Some(Verified::Broken(check))) => (RunStatus::Failed, Some(check.clone())),
        (Ok(()), _) => (RunStatus::Finished, None),
        (Err(Abort::Interrupted), _) => {
            (RunStatus::Interrupted, Some("stopped by the user".to_string()))
        }
        (Err(Abort::Failed(reason)), _) => (RunStatus::Failed, Some(reason)),
    };
    let end = RunEnd {
        at: frame.dilation.design(origin.elapsed().into()),
        status,
        reason: reason.clone(),
    };
    frame.recorder.lock().end_run(run, &end).during("write the record")?;
    let unit = frame.plan.workload.kind.shape().headline.unit;
    observer.notice(&Event::RunEnded { status, unit, rungs: &rungs, reason: reason.as_deref() });
    Ok(RunResult { status, reason, verified })
}

/// A run in progress.
struct ActiveRun<'a, S> {
    bench: &'a Bench<'a, S>,
    design: &'a DesignPlan,
    scheduled: RunPlan,
    log: RunLog<'a>,
    teardown: &'a Teardown,
    rungs: Vec<Rung>,
    verified: Option<Verified>,
}

/// What is there while load runs.
struct Running<'r, 'f> {
    server: &'r mut Server,
    datastore: &'r SharedDatastore,
    volumes: &'r [MountedVolume],
    cgroup: Option<&'r Cgroup>,
    faults: &'r mut Faults<'f>,
    background: &'r mut Background<'f>,
    scratch: &'r Path,
}

impl<S: Subject> ActiveRun<'_, S> {
    fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let log = self.log;
        let mut phases = Phases::new(log);
        let scratch = self.scratch()?;
        let (datastore, volumes) =
            phases.carry_out(PhaseKind::Prepare, observer, |_| self.open_datastore(&scratch))?;
        let cgroup = self.make_cgroup(observer)?;
        let mut background = Background::new(self.bench.plan, self.scheduled.design, log);
        let mut server = phases.carry_out(PhaseKind::Restore, observer, |_| {
            self.set_timing(&datastore, Timing::Off)?;
            background.prepare(&volumes, self.bench.plan.seed)?;
            self.restore(&scratch, &volumes, cgroup.clone())
        })?;
        phases
            .carry_out(PhaseKind::Start, observer, |observer| self.start(&mut server, observer))?;
        let target = server.target().with_database(self.bench.subject.database());
        let before = phases.carry_out(PhaseKind::Check, observer, |observer| {
            self.check_before(&mut server, &target, observer)
        })?;
        self.set_timing(&datastore, Timing::Modelled)?;
        let mut faults = Faults::new(self.bench.plan, self.scheduled, log);
        let running = Running {
            server: &mut server,
            datastore: &datastore,
            volumes: &volumes,
            cgroup: cgroup.as_ref(),
            faults: &mut faults,
            background: &mut background,
            scratch: &scratch,
        };
        let driven = self.drive(running, &before, &mut phases, observer);
        keep_timing(log, &datastore)?;
        let summary = match driven {
            Err(Abort::Failed(reason)) if faults.lost().is_some() => {
                self.verified = Some(Verified::Broken(reason));
                None
            }
            driven => Some(driven?),
        };
        if faults.have_happened() && faults.lost().is_none() {
            phases.carry_out(PhaseKind::Fault, observer, |_| {
                self.set_timing(&datastore, Timing::Off)?;
                faults.start_anew(&mut server, &datastore)
            })?;
        }
        if let Some(reason) = faults.lost() {
            self.verified = Some(Verified::Broken(reason.to_string()));
        }
        if let Some(summary) = summary.filter(|_| faults.lost().is_none()) {
            if let Some(copy) = self.bench.subject.restored(&summary.accounting) {
                phases.carry_out(PhaseKind::Start, observer, |_| {
                    self.set_timing(&datastore, Timing::Off)?;
                    server.stop(StopMode::Fast).during("stop the database server")?;
                    server.adopt(copy).during("use the restored copy")?;
                    server.start().during("start the database server on the restored copy")
                })?;
            }
            // A server that was started again may be elsewhere.
            let target = server.target().with_database(self.bench.subject.database());
            phases.carry_out(PhaseKind::Check, observer, |observer| {
                self.set_timing(&datastore, Timing::Off)?;
                let known = Some((&before, &summary.accounting));
                let access = access(self.bench.runtime, &target);
                let checks = self.bench.subject.check(access, CheckMoment::After, known);
                // What faults did to the data may also keep the server from being asked.
                let crash = match faults.have_happened() {
                    true => None,
                    false => crash_behind(&checks, &mut server)?,
                };
                let checks = made(checks, crash.as_deref())?;
                keep(&checks, (log, CheckMoment::After), observer)?;
                self.verified = Some(Verified::of(&checks, crash.as_deref())?);
                Ok(())
            })?;
        }
        faults.conclude(self.verified.as_ref(), observer)?;
        phases.carry_out(PhaseKind::Stop, observer, |_| match faults.lost() {
            None => server.stop(StopMode::Fast).during("stop the database server").map(|_| ()),
            Some(_) => server.kill().during("end the database server"),
        })?;
        drop(server);
        if let Some(cgroup) = cgroup {
            cgroup.release().during("remove the control group")?;
        }
        close(datastore)
    }
}

/// Now, in nanoseconds since the Unix epoch.
pub fn wall_clock_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos::from(since_epoch).0
}
