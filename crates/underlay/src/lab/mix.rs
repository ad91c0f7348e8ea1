//! Changes of the mix of transactions at their moments, and the workload's own mix again when their time is over.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_driver::Mix;
use underlay_record::conventions::event;
use underlay_record::{Event as RecordEvent, PhaseKind, RunId, Severity};
use underlay_study::{Plan, RunPlan, WeightsPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::generator::LoadGenerator;
use crate::lab::phases::scheduled_phase;
use crate::lab::recording::SharedRecorder;

/// All changes of the mix of one run.
pub struct MixChanges<'a> {
    recorder: &'a SharedRecorder,
    run: RunId,
    origin: Instant,
    entries: Vec<Entry<'a>>,
    /// The change that was made last.
    in_force: Option<usize>,
}

struct Entry<'a> {
    plan: &'a WeightsPlan,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Waiting,
    Armed { at: Nanos },
    InForce { until: Option<Nanos> },
    Over,
}

impl<'a> MixChanges<'a> {
    /// The changes that `plan` has for a run.
    pub fn new(
        plan: &'a Plan,
        scheduled: RunPlan,
        recorder: &'a SharedRecorder,
        run: RunId,
        origin: Instant,
    ) -> MixChanges<'a> {
        let concerned =
            plan.weights.iter().filter(|change| change.designs.contains(&scheduled.design));
        let entries = concerned.map(|plan| Entry { plan, state: State::Waiting }).collect();
        MixChanges { recorder, run, origin, entries, in_force: None }
    }

    /// Says that a phase of the ladder began.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        let Some(phase) = scheduled_phase(kind) else { return };
        let now = self.now();
        for Entry { plan, state } in &mut self.entries {
            let meant = plan.phase == phase && plan.users.is_none_or(|rung| rung == users);
            if meant && matches!(state, State::Waiting) {
                *state = State::Armed { at: now + plan.at };
            }
        }
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.entries.iter().filter_map(|entry| match entry.state {
            State::Armed { at } => Some(at),
            State::InForce { until } => until,
            State::Waiting | State::Over => None,
        });
        due.min().map(|at| self.origin + Duration::from(at))
    }

    /// Makes the changes that are due.
    pub fn carry_out_due(
        &mut self,
        driver: &dyn LoadGenerator,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let now = self.now();
        for number in 0..self.entries.len() {
            match self.entries[number].state {
                State::Armed { at } if at <= now => self.begin(number, driver, observer)?,
                State::InForce { until: Some(until) } if until <= now => {
                    self.entries[number].state = State::Over;
                    // A later change stays, whenever the earlier one would have ended.
                    if self.in_force == Some(number) {
                        self.in_force = None;
                        driver.set_mix(Mix::Prescribed).during("change the mix")?;
                        self.tell("the mix of the workload again", Value::Null, observer)?;
                    }
                }
                _ => {}
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
        let plan = self.entries[number].plan;
        let until = plan.lasts.map(|lasts| self.now() + lasts);
        driver.set_mix(Mix::Weighted(plan.weights.clone())).during("change the mix")?;
        self.entries[number].state = State::InForce { until };
        self.in_force = Some(number);
        let text = format!("weights {}", plan.text);
        self.tell(&text, json!({ "until_ns": until.map(|at| at.0) }), observer)
    }

    fn tell(&self, text: &str, data: Value, observer: &mut dyn Observer) -> Result<(), Abort> {
        observer.notice(&Event::Found { severity: Severity::Information, text });
        let event = RecordEvent {
            run: Some(self.run),
            at: self.now(),
            kind: event::WEIGHTS.to_string(),
            text: text.to_string(),
            data,
        };
        self.recorder.lock().event(&event).during("write the record")
    }

    fn now(&self) -> Nanos {
        self.origin.elapsed().into()
    }
}
