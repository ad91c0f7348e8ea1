//! A job in a run: a thread that works until it is done, and what it has done so far.
//!
//! It is no load generator of its own: what works is in `database`. Here it is begun, counted in ticks like the load of
//! users, and stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_driver::{DriveError, DriveSummary, DriveTick, Mix, Slowdown, TypeTick, Users};
use underlay_workload::transactional::Shape;

use crate::lab::abort::Abort;
use crate::lab::generator::{LoadGenerator, RunningLoad};
use crate::lab::interrupt;

/// A job that waits for its begin, goes on, or is done. `R` is what it comes to.
pub struct JobRunner<R> {
    shape: &'static Shape,
    origin: Instant,
    sessions: u32,
    begin: Mutex<Option<Sender<()>>>,
    shared: Arc<Shared>,
    thread: JoinHandle<Option<R>>,
}

struct Shared {
    stop: AtomicBool,
    ended: AtomicBool,
    done: Mutex<Done>,
}

struct Done {
    /// Since the last tick.
    types: Vec<TypeTick>,
    /// All ticks.
    totals: DriveTick,
}

/// What a job tells while it works.
pub struct JobProgress(Arc<Shared>);

impl JobProgress {
    /// Whether it shall end early.
    pub fn is_to_stop(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed) || interrupt::requested()
    }

    /// `count` of a type were done; each took `time`, if that is known.
    pub fn completed(&self, kind: usize, count: u64, time: Option<Duration>) {
        let mut done = self.0.done.lock().unwrap_or_else(PoisonError::into_inner);
        let tick = &mut done.types[kind];
        tick.committed += count;
        if let Some(time) = time {
            let nanos = Nanos::from(time).0;
            tick.response.record_n(nanos, count);
            tick.service.record_n(nanos, count);
        }
    }
}

impl<R: Send + 'static> JobRunner<R> {
    /// Prepares `work`, which begins when users are set.
    pub fn start(
        shape: &'static Shape,
        sessions: u32,
        origin: Instant,
        work: impl FnOnce(&JobProgress) -> R + Send + 'static,
    ) -> std::io::Result<JobRunner<R>> {
        let now = Nanos::from(origin.elapsed());
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            done: Mutex::new(Done {
                types: vec![TypeTick::default(); shape.types.len()],
                totals: DriveTick::empty(shape, now, now),
            }),
        });
        let (begin, told) = channel();
        let progress = JobProgress(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("job".to_string()).spawn(move || {
            told.recv().ok()?;
            let came_to = work(&progress);
            progress.0.ended.store(true, Ordering::Release);
            Some(came_to)
        })?;
        let begin = Mutex::new(Some(begin));
        Ok(JobRunner { shape, origin, sessions, begin, shared, thread })
    }
}

impl<R: Send + 'static> LoadGenerator for JobRunner<R> {
    fn shape(&self) -> &'static Shape {
        self.shape
    }

    fn tick(&self) -> DriveTick {
        let working = !self.has_ended() && !self.waits();
        let sessions = if working { self.sessions } else { 0 };
        let mut done = self.shared.done.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Nanos::from(self.origin.elapsed());
        let mut tick = DriveTick::empty(self.shape, done.totals.end, end);
        std::mem::swap(&mut tick.types, &mut done.types);
        tick.users = Users {
            active: sessions,
            ready: sessions,
            in_transaction: sessions,
            sessions,
            ..tick.users
        };
        done.totals.append(&tick);
        tick
    }

    fn set_users(&self, _: u32) {
        let mut begin = self.begin.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begin) = begin.take() {
            // A thread that is gone has panicked; `stop` will say so.
            let _ = begin.send(());
        }
    }

    fn set_rate(&self, _: f64) -> Result<(), DriveError> {
        Err(DriveError::NotOpen)
    }

    fn set_mix(&self, _: Mix) -> Result<(), DriveError> {
        Err(DriveError::NotOpen)
    }

    fn set_slowdown(&self, _: Slowdown) {}

    fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire) || self.thread.is_finished()
    }
}

impl<R> JobRunner<R> {
    fn waits(&self) -> bool {
        self.begin.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl<R: Send + 'static> RunningLoad for JobRunner<R> {
    /// None: it was stopped before it began.
    type Accounting = Option<R>;

    fn stop(self) -> Result<DriveSummary<Option<R>>, Abort> {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A job that has not begun is told by the end of the channel that it never will.
        drop(self.begin.lock().unwrap_or_else(PoisonError::into_inner).take());
        let last_tick = self.tick();
        let accounting =
            self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let done = self.shared.done.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(DriveSummary {
            last_tick,
            totals: done.totals.clone(),
            accounting,
            outages: Vec::new(),
            longest_silence: None,
            commits_unknown: 0,
            delivery: None,
            commits: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::JobRunner;
    use crate::lab::generator::{LoadGenerator, RunningLoad};
    use std::time::{Duration, Instant};
    use underlay_workload::batch::SHAPE;

    #[test]
    fn a_job_waits_for_its_begin_is_counted_and_ends() {
        let job = JobRunner::start(&SHAPE, 2, Instant::now(), |progress| {
            progress.completed(0, 3, Some(Duration::from_millis(1)));
            progress.completed(0, 4, None);
            "done"
        });
        let job = job.unwrap();
        assert_eq!((job.tick().types[0].committed, job.has_ended()), (0, false));
        job.set_users(1);
        while !job.has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let tick = job.tick();
        assert_eq!((tick.types[0].committed, tick.types[0].response.count()), (7, 3));
        let summary = job.stop().unwrap();
        assert_eq!((summary.accounting, summary.totals.types[0].committed), (Some("done"), 7));
    }

    #[test]
    fn a_job_that_never_began_and_one_that_goes_on_are_stopped() {
        let never = JobRunner::start(&SHAPE, 1, Instant::now(), |_| ()).unwrap();
        assert_eq!(never.stop().unwrap().accounting, None);
        let endless = JobRunner::start(&SHAPE, 1, Instant::now(), |progress| {
            while !progress.is_to_stop() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let endless = endless.unwrap();
        endless.set_users(1);
        assert_eq!(endless.stop().unwrap().accounting, Some(()));
    }
}
