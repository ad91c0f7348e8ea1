//! Runs that are simulated ahead of the record, one per processor.
//!
//! What a run comes to depends on plan and seed alone, so that runs need not wait for each other.
//! The record is written in the order of the schedule all the same: each run hands its seconds over
//! through a queue of its own. Nothing here writes or prints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, available_parallelism};
use std::time::Duration;
use underlay_core::RootSeed;
use underlay_engine::Scenario;
use underlay_simulation::databases::{
    DesignTarget, Rung, Second, Stage, scale, scenario, simulate_rung,
};
use underlay_study::Plan;

use super::bed::Bed;
use super::{How, seed_of};
use crate::lab::abort::Abort;
use crate::lab::interrupt;
use crate::stop::chain;

/// Seconds of a run that wait for the record at most. They take some 10 MB.
const SECONDS_AHEAD: usize = 1_000;
/// How often a recorder that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What a run comes to, in its order.
pub enum Step {
    /// A rung begins.
    Begun(Box<Scenario>),
    /// A second of it.
    Second(Stage, Box<Second>),
    /// It is over.
    Ended(Box<Rung>),
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
    /// Begins to simulate the runs that are not done. Where nobody takes their steps any more, they
    /// end.
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
                    let taken = run.lock().expect("nobody panics with it").take();
                    let (run, send) = taken.expect("each run is taken once");
                    let point = plan.plans()[plan.point_of(run.design)];
                    let seed = seed_of(plan, run.repeat);
                    if let Err(Left::Refused(why)) =
                        simulate(point, run.design, (how, bed), seed, &send)
                    {
                        // Nobody hears it who has gone.
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
    /// Nobody takes its steps.
    Alone,
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
    let hand_over = |step| send.send(step).map_err(|_| Left::Alone);
    // A run's rungs follow each other on the same database.
    let mut before = 0_u64;
    for users in &plan.procedure.users {
        let mut scenario = scenario(plan, design, *users, &how.assumed)
            .map_err(|problems| Left::Refused(problems.join("; ")))?;
        for database in &mut scenario.databases {
            database.transactions_before = before;
        }
        scale(&mut scenario, bed.factor());
        hand_over(Step::Begun(Box::new(scenario.clone())))?;
        let storage = seed.child("storage", 0);
        let target = DesignTarget::in_study(plan, position, storage)
            .map_err(|error| Left::Refused(chain(&error)))?;
        let mut is_alone = false;
        let mut each = |stage, second: &Second| {
            is_alone = hand_over(Step::Second(stage, Box::new(second.clone()))).is_err();
            !is_alone
        };
        let rung = (target, &scenario);
        let load = (&plan.procedure, *users);
        let rung = simulate_rung(rung, load, how.effort, seed, &mut each)
            .map_err(|error| Left::Refused(chain(&error)))?;
        if is_alone {
            return Err(Left::Alone);
        }
        before = before.saturating_add(rung.transactions);
        hand_over(Step::Ended(Box::new(rung)))?;
    }
    Ok(())
}
