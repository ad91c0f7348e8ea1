//! One run: one design in one repeat, from nothing to nothing.
//!
//! Restore, start, check, warm up, climb, stop, check. Whatever is acquired is on a teardown stack of
//! this run's own, which is unwound at the end however the run ends.

mod active;
mod bench;
mod checks;
mod cpu_limits;
mod database;
mod load;
mod outcome;
mod provision;
mod site;
mod under_test;

use std::time::{Instant, SystemTime, UNIX_EPOCH};
use underlay_core::{Dilation, Nanos};
use underlay_database::managed::StopMode;
use underlay_datastore::Timing;
use underlay_host::{StateDir, Teardown};
use underlay_record::{NewRun, PhaseKind, RunEnd, RunId, RunStatus, Severity};
use underlay_study::{Plan, RunPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::event::{Event, Observer};
use crate::lab::faults::Faults;
use crate::lab::ladder::Rung;
use crate::lab::phases::Phases;
use crate::lab::run_log::RunLog;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::verification::Verified;

use active::ActiveRun;
use cpu_limits::CpuLimits;
use load::Running;
use under_test::{UnderTest, serving};

pub use bench::{Bench, DatabaseBench};
pub use load::{drive_spec, first_rate, kernel_threads, volume_targets};
pub use outcome::{keep_outages, keep_summary, keep_timing};
pub use provision::{
    Ground, begin_timing, close, datastore_spec, open_datastore, set_timing, volume_requests,
};

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

/// Carries out one run of all databases and removes everything it made.
pub fn carry_out(
    bench: &Bench<'_>,
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
    let Frame { plan, recorder, state, dilation } = frame;
    let design = &plan.designs[scheduled.design];
    let origin = Instant::now();
    let position = (order, plan.schedule.len());
    recorded((plan, recorder), position, scheduled, observer, |run, observer| {
        let teardown = Teardown::create(state, &format!("run {} {}", order + 1, design.name))
            .during("keep a list of what is created")?;
        let log = RunLog { recorder, run, origin, dilation, database: "" };
        let came = act(log, &teardown, observer);
        for leftover in teardown.unwind() {
            let text = format!("could not remove {}: {}", leftover.resource, leftover.reason);
            observer.notice(&Event::Found { severity: Severity::Warning, text: &text });
        }
        Ok((came, dilation.design(origin.elapsed().into())))
    })
}

/// Begins a run in the record, lets `act` carry it out, and ends it. `act` also says when that is, on the run's clock.
pub fn recorded(
    (plan, recorder): (&Plan, &SharedRecorder),
    (order, runs): (usize, usize),
    scheduled: RunPlan,
    observer: &mut dyn Observer,
    act: impl FnOnce(RunId, &mut dyn Observer) -> Result<(Came, Nanos), Abort>,
) -> Result<RunResult, Abort> {
    let new = NewRun {
        design: u32::try_from(scheduled.design).unwrap_or(u32::MAX),
        repeat: scheduled.repeat + 1,
        order: u32::try_from(order).unwrap_or(u32::MAX),
        at: Nanos::ZERO,
        origin_wall_ns: wall_clock_ns(),
    };
    let run = recorder.lock().begin_run(&new).during("write the record")?;
    observer.notice(&Event::RunBegan {
        position: order + 1,
        runs,
        design: &plan.designs[scheduled.design].title,
        repeat: new.repeat,
    });
    let (Came { result, rungs, verified }, at) = act(run, observer)?;
    let (status, reason) = match (result, &verified) {
        (Ok(()), Some(Verified::Broken(check))) => (RunStatus::Failed, Some(check.clone())),
        (Ok(()), _) => (RunStatus::Finished, None),
        (Err(Abort::Interrupted), _) => {
            (RunStatus::Interrupted, Some("stopped by the user".to_string()))
        }
        (Err(Abort::Failed(reason)), _) => (RunStatus::Failed, Some(reason)),
    };
    let end = RunEnd { at, status, reason: reason.clone() };
    recorder.lock().end_run(run, &end).during("write the record")?;
    let unit = plan.workload.kind.shape().headline.unit;
    observer.notice(&Event::RunEnded { status, unit, rungs: &rungs, reason: reason.as_deref() });
    Ok(RunResult { status, reason, verified })
}

impl ActiveRun<'_> {
    fn carry_out(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let log = self.log;
        let mut phases = Phases::new(log);
        let scratch = self.scratch()?;
        let (datastore, volumes) =
            phases.carry_out(PhaseKind::Prepare, observer, |_| self.open_datastore(&scratch))?;
        let (cgroups, hosts) = self.make_cgroups(observer)?;
        let limits = CpuLimits::of(cgroups.iter().flatten().chain(&hosts));
        limits.lift()?;
        let mut background = Background::new(self.bench.plan, self.scheduled.design, log);
        let mut databases = phases.carry_out(PhaseKind::Restore, observer, |_| {
            self.set_timing(&datastore, Timing::Off)?;
            background.prepare(&volumes, self.bench.plan.seed)?;
            self.restore_all(&scratch, &volumes, cgroups)
        })?;
        phases.carry_out(PhaseKind::Start, observer, |observer| {
            self.start_all(&mut databases, observer)
        })?;
        let mut sessions = phases.carry_out(PhaseKind::Check, observer, |observer| {
            self.check_before(&mut databases, observer)
        })?;
        begin_timing(self.design, &datastore)?;
        limits.restore()?;
        let mut faults = Faults::new(self.bench.plan, self.scheduled, log);
        let running = Running {
            databases: &mut databases,
            sessions: &mut sessions,
            datastore: &datastore,
            volumes: &volumes,
            faults: &mut faults,
            background: &mut background,
        };
        let driven = self.drive(running, &mut phases, observer);
        keep_timing(log, &datastore)?;
        limits.lift()?;
        let is_lost = match driven {
            Err(Abort::Failed(reason)) if faults.lost().is_some() => {
                self.verified = Some(Verified::Broken(reason));
                true
            }
            driven => {
                driven?;
                false
            }
        };
        if faults.have_happened() && faults.lost().is_none() {
            phases.carry_out(PhaseKind::Fault, observer, |_| {
                self.set_timing(&datastore, Timing::Off)?;
                faults.restart_for_checks(&mut serving(&mut databases), &datastore)
            })?;
        }
        if let Some(reason) = faults.lost() {
            self.verified = Some(Verified::Broken(reason.to_string()));
        }
        if !is_lost && faults.lost().is_none() {
            let restored: Vec<_> = databases
                .iter_mut()
                .zip(&sessions)
                .filter_map(|(database, session)| Some((&mut database.server, session.restored()?)))
                .collect();
            if !restored.is_empty() {
                phases.carry_out(PhaseKind::Start, observer, |_| {
                    self.set_timing(&datastore, Timing::Off)?;
                    restored.into_iter().try_for_each(|(server, copy)| {
                        server.stop(StopMode::Fast).during("stop the database server")?;
                        server.adopt(copy).during("use the restored copy")?;
                        server.start().during("start the database server on the restored copy")?;
                        Ok(())
                    })
                })?;
            }
            phases.carry_out(PhaseKind::Check, observer, |observer| {
                self.set_timing(&datastore, Timing::Off)?;
                let by_faults = faults.have_happened();
                let verified =
                    self.check_after(&mut databases, &mut sessions, by_faults, observer)?;
                self.verified = Some(verified);
                Ok(())
            })?;
        }
        faults.conclude(self.verified.as_ref(), observer)?;
        phases.carry_out(PhaseKind::Stop, observer, |_| {
            databases.iter_mut().try_for_each(|database| match faults.lost() {
                None => {
                    database.server.stop(StopMode::Fast).during("stop the database server")?;
                    Ok(())
                }
                Some(_) => database.server.kill().during("end the database server"),
            })
        })?;
        drop(sessions);
        for UnderTest { server, cgroup, .. } in databases {
            drop(server);
            if let Some(cgroup) = cgroup {
                cgroup.release().during("remove the control group")?;
            }
        }
        for host in hosts {
            host.release().during("remove the control group of a host")?;
        }
        close(datastore)
    }
}

/// Now, in nanoseconds since the Unix epoch.
pub fn wall_clock_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos::from(since_epoch).0
}
