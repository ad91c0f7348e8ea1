//! Runs that are simulated ahead of the record, one per processor.
//!
//! The result of a run depends on plan and seed alone, so runs need not wait for each other. The
//! record is written in the order of the schedule all the same: each run hands its steps over
//! through a queue of its own. Nothing here writes or prints, or knows what a step is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, available_parallelism};
use std::time::Duration;
use underlay_study::{Plan, RunPlan};

use crate::lab::abort::Abort;
use crate::lab::interrupt;

/// Steps of a run that wait for the record at most. Seconds of databases take some 10 MB.
const STEPS_AHEAD: usize = 1_000;
/// How often a recorder that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A run's steps as they come; an error is why it cannot go on.
pub struct Steps<S>(Receiver<Result<S, String>>);

impl<S> Steps<S> {
    /// The next one; waits for it.
    ///
    /// # Errors
    /// A run that cannot go on, a request to stop.
    pub fn next(&self) -> Result<S, Abort> {
        loop {
            if interrupt::requested() {
                return Err(Abort::Interrupted);
            }
            match self.0.recv_timeout(LOOK) {
                Ok(step) => return step.map_err(Abort::Failed),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Abort::Failed("the simulation ended early".to_string()));
                }
            }
        }
    }
}

/// Takes the steps of a run.
pub struct Taker<S>(SyncSender<Result<S, String>>);

impl<S> Taker<S> {
    /// Hands a step over; waits while many are not taken.
    ///
    /// # Errors
    /// Steps that are no longer taken.
    pub fn take(&self, step: S) -> Result<(), Left> {
        self.0.send(Ok(step)).map_err(|_| Left::NotTaken)
    }
}

/// Why a run did not come to its end.
pub enum Left {
    /// Its steps are no longer taken.
    NotTaken,
    /// It cannot be simulated.
    Refused(String),
}

/// Simulates a run of the schedule.
pub type Work<'w, S> = dyn Fn(RunPlan, &Taker<S>) -> Result<(), Left> + Sync + 'w;

/// The runs of a study, by their place in its schedule.
pub struct Ahead<S>(Vec<Option<Steps<S>>>);

impl<S: Send> Ahead<S> {
    /// Begins to simulate the runs that are not done. If their steps are no longer taken, they end.
    pub fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: &Plan,
        done: &[bool],
        work: &'scope Work<'scope, S>,
    ) -> Ahead<S>
    where
        S: 'scope,
    {
        let mut runs = Vec::new();
        let mut steps: Vec<Option<Steps<S>>> = plan.schedule.iter().map(|_| None).collect();
        for (order, run) in plan.schedule.iter().enumerate().filter(|(order, _)| !done[*order]) {
            let (send, receive) = sync_channel(STEPS_AHEAD);
            steps[order] = Some(Steps(receive));
            runs.push(Mutex::new(Some((*run, Taker(send)))));
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
                    let (run, taker) = taken.expect("each run is taken once");
                    if let Err(Left::Refused(why)) = work(run, &taker) {
                        // The receiver may be gone.
                        taker.0.send(Err(why)).ok();
                    }
                }
            });
        }
        Ahead(steps)
    }

    /// Those of a run, once.
    pub fn take(&mut self, order: usize) -> Steps<S> {
        self.0[order].take().expect("a run of the schedule is carried out once")
    }
}
