//! Scheduled changes of the mix of transactions, and the return to the workload's own mix when their time is over.

use serde_json::{Value, json};
use std::time::Instant;
use underlay_driver::Mix;
use underlay_record::conventions::event;
use underlay_record::{PhaseKind, Severity};
use underlay_study::WeightsPlan;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::generator::LoadGenerator;
use crate::lab::run_log::RunLog;
use crate::lab::schedule::{Act, Schedule};

/// All changes of the mix of one run.
pub struct MixChanges<'a> {
    log: RunLog<'a>,
    schedule: Schedule<&'a WeightsPlan>,
    /// The change that was made last.
    in_force: Option<usize>,
}

impl<'a> MixChanges<'a> {
    /// The changes that a plan has for a run of `design`.
    pub fn new(changes: &'a [WeightsPlan], design: usize, log: RunLog<'a>) -> MixChanges<'a> {
        let schedule = Schedule::new(changes, design, |change| change);
        MixChanges { log, schedule, in_force: None }
    }

    /// Arms the changes of a phase that began.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        let now = self.log.now();
        self.schedule.phase_began(kind, users, now);
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.schedule.next_due().map(|at| self.log.instant(at))
    }

    /// Makes the changes that are due.
    pub fn carry_out_due(
        &mut self,
        driver: &dyn LoadGenerator,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        while let Some(act) = self.schedule.due(self.log.now()) {
            match act {
                Act::Begin(number) => self.begin(number, driver, observer)?,
                Act::End(number) => self.end(number, driver, observer)?,
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        number: usize,
        driver: &dyn LoadGenerator,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let plan = *self.schedule.item(number);
        let until = self.schedule.begun(number, self.log.now());
        driver.set_mix(Mix::Weighted(plan.weights.clone())).during("change the mix")?;
        self.in_force = Some(number);
        let text = format!("weights {}", plan.text);
        self.report(&text, json!({ "until_ns": until.map(|at| at.0) }), observer)
    }

    fn end(
        &mut self,
        number: usize,
        driver: &dyn LoadGenerator,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        self.schedule.is_over(number);
        // A later change stays, whenever the earlier one would have ended.
        if self.in_force != Some(number) {
            return Ok(());
        }
        self.in_force = None;
        driver.set_mix(Mix::Prescribed).during("change the mix")?;
        self.report("the mix of the workload again", Value::Null, observer)
    }

    fn report(&self, text: &str, data: Value, observer: &mut dyn Observer) -> Result<(), Abort> {
        observer.notice(&Event::Found { severity: Severity::Information, text });
        self.log.event(event::WEIGHTS, self.log.now(), text, data)
    }
}
