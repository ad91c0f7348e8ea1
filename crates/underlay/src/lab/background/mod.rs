//! Background work: block loads on volumes and copies of volumes, started and stopped as scheduled.
//!
//! Each has a thread of its own and does its I/O through `blockio`. What it does is counted for the sampler while
//! it runs, and written to the record when it has ended. It never ends a run: failed requests are counted.

pub mod outcome;
mod sampler;
mod work;

use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use underlay_blockio::IoGauge;
use underlay_core::{Nanos, RootSeed};
use underlay_datastore::MountedVolume;
use underlay_record::conventions::document;
use underlay_record::{Interval, PhaseKind};
use underlay_study::{BackgroundPlan, Plan};

use self::outcome::{Done, Ended, Moved};
use self::sampler::BackgroundSampler;
use self::work::{Ready, ready, work};
use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::schedule::{Act, Schedule};

/// All background work of one run.
pub struct Background<'a> {
    log: RunLog<'a>,
    schedule: Schedule<Entry<'a>>,
    done: Vec<Value>,
}

struct Entry<'a> {
    plan: &'a BackgroundPlan,
    gauge: Arc<IoGauge>,
    ready: Option<Ready>,
    running: Option<Running>,
}

struct Running {
    began: Nanos,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Done>,
}

impl<'a> Background<'a> {
    /// The work that `plan` has for a run.
    pub fn new(plan: &'a Plan, design: usize, log: RunLog<'a>) -> Background<'a> {
        let schedule = Schedule::new(&plan.background, design, |plan| Entry {
            plan,
            gauge: Arc::new(IoGauge::default()),
            ready: None,
            running: None,
        });
        Background { log, schedule, done: Vec::new() }
    }

    /// Creates and fills the files that it needs, and opens everything. To be called while the modelled latencies are
    /// off.
    pub fn prepare(&mut self, volumes: &[MountedVolume], seed: RootSeed) -> Result<(), Abort> {
        for (number, entry) in self.schedule.items_mut().enumerate() {
            let seed = seed.child("background", number as u64);
            let ready = ready(entry.plan, volumes, seed);
            entry.ready = Some(ready.during(&format!("prepare `{}`", entry.plan.name))?);
        }
        Ok(())
    }

    /// Counts what it does; `None` where there is no such work.
    pub fn sampler(&self) -> Option<BackgroundSampler> {
        let gauges =
            self.schedule.items().map(|entry| (&*entry.plan.name, Arc::clone(&entry.gauge)));
        (!self.schedule.is_empty()).then(|| BackgroundSampler::new(gauges))
    }

    /// Arms the work of a phase that began.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        let now = self.log.now();
        self.schedule.phase_began(kind, users, now);
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.schedule.next_due().map(|at| self.log.instant(at))
    }

    /// Starts and stops what is due, and writes down what has ended by itself.
    pub fn carry_out_due(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        for number in self.schedule.in_force() {
            let running = self.schedule.item(number).running.as_ref();
            if running.is_some_and(|running| running.thread.is_finished()) {
                self.end(number, observer)?;
            }
        }
        while let Some(act) = self.schedule.due(self.log.now()) {
            match act {
                Act::Begin(number) => self.begin(number, observer)?,
                Act::End(number) => self.end(number, observer)?,
            }
        }
        Ok(())
    }

    /// Stops everything: the load is over, or is given up. What never began is over too.
    pub fn stop(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let mut outcome = Ok(());
        for number in self.schedule.in_force() {
            outcome = outcome.and(self.end(number, observer));
        }
        for number in self.schedule.outstanding() {
            // Open files would keep the volumes from being unmounted.
            self.schedule.item_mut(number).ready = None;
            self.schedule.is_over(number);
        }
        if !self.done.is_empty() {
            let done = Value::Array(std::mem::take(&mut self.done));
            outcome = outcome.and(self.log.document(document::BACKGROUND, &done));
        }
        outcome
    }

    fn begin(&mut self, number: usize, observer: &mut dyn Observer) -> Result<(), Abort> {
        let now = self.log.now();
        let until = self.schedule.begun(number, now);
        let entry = self.schedule.item_mut(number);
        let Some(ready) = entry.ready.take() else {
            self.schedule.is_over(number);
            return Ok(());
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (gauge, is_to_stop) = (Arc::clone(&entry.gauge), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("background".to_string())
            .spawn(move || work(ready, &gauge, &is_to_stop))
            .during("start a thread for background work")?;
        entry.running = Some(Running { began: now, stop, thread });
        outcome::began(&self.log, entry.plan, (now, until), observer)
    }

    fn end(&mut self, number: usize, observer: &mut dyn Observer) -> Result<(), Abort> {
        self.schedule.is_over(number);
        let entry = self.schedule.item_mut(number);
        let Some(Running { began, stop, thread }) = entry.running.take() else { return Ok(()) };
        stop.store(true, Ordering::Relaxed);
        let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let gauge = &entry.gauge;
        let moved = Moved {
            reads: gauge.reads.load(Ordering::Relaxed),
            writes: gauge.writes.load(Ordering::Relaxed),
            read_bytes: gauge.read_bytes.load(Ordering::Relaxed),
            write_bytes: gauge.write_bytes.load(Ordering::Relaxed),
        };
        let interval = Interval { begin: began, end: self.log.now() };
        let ended = Ended { plan: entry.plan, interval, moved, done: &done };
        self.done.push(ended.keep(&self.log, observer)?);
        Ok(())
    }
}

impl Drop for Background<'_> {
    /// Threads must not outlive the run, whatever ended it.
    fn drop(&mut self) {
        for entry in self.schedule.items_mut() {
            if let Some(Running { stop, thread, .. }) = entry.running.take() {
                stop.store(true, Ordering::Relaxed);
                let _ = thread.join();
            }
        }
    }
}
