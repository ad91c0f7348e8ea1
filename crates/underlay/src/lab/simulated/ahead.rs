//! Runs that are simulated ahead of the record, one per processor.
//!
//! The result of a run depends on plan and seed alone, so runs need not wait for each other. The
//! record is written in the order of the schedule all the same: each run hands its seconds over
//! through a queue of its own. Nothing here writes or prints.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, available_parallelism};
use std::time::Duration;
use underlay_core::RootSeed;
use underlay_engine::{JobResult, Scenario};
use underlay_simulation::databases::{
    BackgroundSchedule, DesignTarget, Ladder, Rung, Second, Stage, scale, scenario,
};
use underlay_study::Plan;

use super::bed::Bed;
use super::inputs::{How, seed_of};
use crate::lab::abort::Abort;
use crate::lab::interrupt;
use crate::stop::chain;

/// Seconds of a run that wait for the record at most. They take some 10 MB.
const SECONDS_AHEAD: usize = 1_000;
/// How often a recorder that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What a run comes to, in its order.
pub enum Step {
    /// It begins.
    Begun(Box<Scenario>),
    /// A second of it, with so many active users.
    Second(Stage, u32, Box<Second>),
    /// The rung in hand is over.
    RungEnded(Rung),
    /// The run is over: what its jobs came to, by the numbers of their databases.
    Ended(BTreeMap<usize, JobResult>),
    /// The run cannot go on.
    Refused(String),
}

/// A run's steps as they come.
pub struct Steps(Receiver<Step>);

impl Steps {
    /// The next one; waits for it.
    ///
    /// # Errors
    /// A run that cannot go on, a request to stop.
    pub fn next(&self) -> Result<Step, Abort> {
        loop {
            if interrupt::requested() {
                return Err(Abort::Interrupted);
            }
            match self.0.recv_timeout(LOOK) {
                Ok(Step::Refused(why)) => return Err(Abort::Failed(why)),
                Ok(step) => return Ok(step),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Abort::Failed("the simulation ended early".to_string()));
                }
            }
        }
    }
}

/// The runs of a study, by their place in its schedule.
pub struct Ahead(Vec<Option<Steps>>);

impl Ahead {
    /// Begins to simulate the runs that are not done. If their steps are no longer taken, they end.
    pub fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        (plan, how, bed): (&'scope Plan, &'scope How, &'scope Bed),
        done: &[bool],
    ) -> Ahead {
        let mut runs = Vec::new();
        let mut steps: Vec<Option<Steps>> = plan.schedule.iter().map(|_| None).collect();
        for (order, run) in plan.schedule.iter().enumerate().filter(|(order, _)| !done[*order]) {
            let (send, receive) = sync_channel(SECONDS_AHEAD);
            steps[order] = Some(Steps(receive));
            runs.push(Mutex::new(Some((*run, send))));
        }
        let workers = available_parallelism().map_or(1, usize::from).min(runs.len());
        // In their order: the run whose steps are awaited has always begun.
        let next = Arc::new(AtomicUsize::new(0));
        let runs = Arc::new(runs);
        for _ in 0..workers {
            let (runs, next) = (runs.clone(), next.clone());
            scope.spawn(move || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let taken = run.lock().expect("no holder of this lock panics").take();
                    let (run, send) = taken.expect("each run is taken once");
                    let point = plan.plans()[plan.point_of(run.design)];
                    let seed = seed_of(plan, run.repeat);
                    if let Err(Left::Refused(why)) =
                        simulate(point, run.design, (how, bed), seed, &send)
                    {
                        // The receiver may be gone.
                        send.send(Step::Refused(why)).ok();
                    }
                }
            });
        }
        Ahead(steps)
    }

    /// Those of a run, once.
    pub fn take(&mut self, order: usize) -> Steps {
        self.0[order].take().expect("a run of the schedule is carried out once")
    }
}

/// Why a run did not come to its end.
enum Left {
    /// Its steps are no longer taken.
    NotTaken,
    /// It cannot be simulated.
    Refused(String),
}

fn simulate(
    plan: &Plan,
    position: usize,
    (how, bed): (&How, &Bed),
    seed: RootSeed,
    send: &SyncSender<Step>,
) -> Result<(), Left> {
    let design = &plan.designs[position];
    let hand_over = |step| send.send(step).map_err(|_| Left::NotTaken);
    let users = plan.procedure.users_at_once();
    let mut scenario = scenario(plan, design, users, &how.assumed)
        .map_err(|problems| Left::Refused(problems.join("; ")))?;
    scale(&mut scenario, bed.factor());
    hand_over(Step::Begun(Box::new(scenario.clone())))?;
    let target = DesignTarget::in_study(plan, position, seed.child("storage", 0))
        .map_err(|error| Left::Refused(chain(&error)))?;
    let (on, background) = ((target, &scenario), BackgroundSchedule::of(plan, position));
    let mut ladder = Ladder::with_background(on, background, &plan.procedure, how.effort, seed)
        .map_err(|error| Left::Refused(chain(&error)))?;
    let mut each = |stage, users, second: &Second| {
        hand_over(Step::Second(stage, users, Box::new(second.clone()))).is_ok()
    };
    if !ladder.warm_up(&mut each) {
        return Err(Left::NotTaken);
    }
    for users in &plan.procedure.users {
        // Without a taker it ends at its first second.
        let rung = ladder.rung(*users, &mut each);
        hand_over(Step::RungEnded(rung))?;
    }
    hand_over(Step::Ended(ladder.jobs().clone()))
}
