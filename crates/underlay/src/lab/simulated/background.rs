//! The background work of a simulated run in its record: events, findings, latencies and the
//! document, as of real work.
//!
//! Not here: its counters, which are written with those of the run.

use serde_json::Value;
use std::time::Instant;
use underlay_core::{Dilation, Histogram, Nanos};
use underlay_engine::{BackgroundResult, EngineRun, Scenario};
use underlay_record::conventions::document;
use underlay_record::{Interval, RunId};
use underlay_study::{BackgroundPlan, BackgroundWork, Plan};

use crate::lab::abort::Abort;
use crate::lab::background::outcome::{self, Done, Ended, Moved};
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::shared_recorder::SharedRecorder;

/// All background work of a run.
pub struct Background<'a> {
    log: RunLog<'a>,
    /// In the order of the scenario.
    works: Vec<Work<'a>>,
    done: Vec<Value>,
}

struct Work<'a> {
    plan: &'a BackgroundPlan,
    begin: Option<Nanos>,
    is_over: bool,
    moved: Moved,
    read: Histogram,
    write: Histogram,
}

impl<'a> Background<'a> {
    /// That of a run, before its first second.
    pub fn new(
        (recorder, run): (&'a SharedRecorder, RunId),
        plan: &'a Plan,
        scenario: &Scenario,
    ) -> Background<'a> {
        // All times are given.
        let (origin, dilation) = (Instant::now(), Dilation::NONE);
        let log = RunLog { recorder, run, origin, dilation, database: "" };
        let names = scenario.background.iter().map(|work| &work.name);
        let plans = names.filter_map(|name| plan.background.iter().find(|it| it.name == *name));
        let work = |plan| Work {
            plan,
            begin: None,
            is_over: false,
            moved: Moved { reads: 0, writes: 0, read_bytes: 0, write_bytes: 0 },
            read: Histogram::new(),
            write: Histogram::new(),
        };
        Background { log, works: plans.map(work).collect(), done: Vec::new() }
    }

    /// Counts a second, and writes what began or ended in it.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn second(&mut self, second: &EngineRun, observer: &mut dyn Observer) -> Result<(), Abort> {
        for (work, result) in self.works.iter_mut().zip(&second.background) {
            let (Some(begin), false) = (result.began, work.is_over) else { continue };
            if work.begin.is_none() {
                let until = work.plan.lasts.map(|lasts| begin + lasts);
                outcome::began(&self.log, work.plan, (begin, until), observer)?;
                work.begin = Some(begin);
            }
            work.count(result);
            if let Some(end) = result.ended {
                let interval = Interval { begin, end };
                let kept = work.keep(&self.log, interval, result.is_complete, observer)?;
                self.done.push(kept);
            }
        }
        Ok(())
    }

    /// The load has ended, and the work with it: writes what that did, and the document.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn end(&mut self, end: Nanos, observer: &mut dyn Observer) -> Result<(), Abort> {
        for work in self.works.iter_mut().filter(|work| !work.is_over) {
            let Some(begin) = work.begin else { continue };
            // A copy would have ended by itself.
            let is_complete = matches!(work.plan.work, BackgroundWork::Load { .. });
            let interval = Interval { begin, end };
            self.done.push(work.keep(&self.log, interval, is_complete, observer)?);
        }
        if self.done.is_empty() {
            return Ok(());
        }
        self.log.document(document::BACKGROUND, &Value::Array(std::mem::take(&mut self.done)))
    }
}

impl Work<'_> {
    fn count(&mut self, result: &BackgroundResult) {
        for part in &result.parts {
            self.moved.reads += part.read.station.departures;
            self.moved.writes += part.write.station.departures;
            self.moved.read_bytes += part.read.bytes;
            self.moved.write_bytes += part.write.bytes;
            self.read.merge(&part.read.response);
            self.write.merge(&part.write.response);
        }
    }

    fn keep(
        &mut self,
        log: &RunLog<'_>,
        interval: Interval,
        complete: bool,
        observer: &mut dyn Observer,
    ) -> Result<Value, Abort> {
        self.is_over = true;
        let (read, write) = (std::mem::take(&mut self.read), std::mem::take(&mut self.write));
        // Nothing fails in the model.
        let done = Done { complete, errors: 0, read, write, failure: None };
        Ended { plan: self.plan, interval, moved: self.moved, done: &done }.keep(log, observer)
    }
}
