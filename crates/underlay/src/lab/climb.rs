//! The course of one run's load: warm up with rising load, then climb the ladder of virtual users rung by rung.
//!
//! In between are the search for a rate and the causal check, where the study asks for them. How a second goes by is the
//! [`ladder`](super::ladder)'s.

use std::time::Duration;

use underlay_core::Nanos;
use underlay_record::conventions::finding;
use underlay_record::{PhaseKind, Severity};
use underlay_study::{CoolDownPlan, ProcedurePlan, SearchPlan, TWIN_MEASURE, TWIN_RAMP_UP, Until};

use crate::lab::abort::Abort;
use crate::lab::causal_check;
use crate::lab::ladder::Ladder;
use crate::lab::rate_search;
use crate::lab::window::Window;

/// So many seconds in a row without anything to copy: between two copies there may be a moment without any.
const QUIET_SECONDS: u32 = 2;

impl Ladder<'_> {
    /// Warms up and climbs.
    pub fn climb(&mut self, procedure: &ProcedurePlan) -> Result<(), Abort> {
        let warm_up_users = procedure.warm_up_users();
        self.settle(procedure)?;
        self.phase(PhaseKind::WarmUp, warm_up_users, procedure.warm_up, |ladder| {
            ladder.rise(warm_up_users, procedure.warm_up)
        })?;
        for users in &procedure.users {
            self.phase(PhaseKind::RampUp, *users, procedure.ramp_up, |ladder| {
                ladder.driver.set_users(*users);
                ladder.pass_seconds(procedure.ramp_up)
            })?;
            if let Some(search) = &procedure.search
                && !self.search(search, procedure, *users)?
            {
                continue;
            }
            self.measure(*users, procedure.measure, |_| {})?;
        }
        // What is checked is the last rung, so it must have been measured.
        let last = procedure.users.last().copied();
        let measured = self.measured.windows.last().map(|window| window.users);
        if let (Some(spec), Some(users)) = (self.causal, measured.filter(|_| measured == last)) {
            causal_check::carry_out(self, spec, users)?;
        }
        procedure.cool_down.map_or(Ok(()), |plan| self.cool_down(plan))
    }

    /// Without users, for as long as the study says, or until what it waits for.
    fn cool_down(&mut self, plan: CoolDownPlan) -> Result<(), Abort> {
        self.driver.set_users(0);
        self.site.load_ended(self.observer)?;
        let is_done = self.phase(PhaseKind::CoolDown, 0, plan.at_most, |ladder| {
            ladder.flush()?;
            let (mut left, mut quiet) = (plan.at_most, 0);
            while left > Nanos::ZERO && quiet < QUIET_SECONDS {
                let step = left.min(Nanos::from_secs(1));
                ladder.advance(step, step.into(), |_| {}, |_| true)?;
                left = left.saturating_sub(step);
                quiet = match plan.until {
                    Some(Until::ResyncDone) if ladder.site.is_resync_done()? => quiet + 1,
                    _ => 0,
                };
            }
            Ok(plan.until.is_none() || quiet > 0)
        })?;
        if is_done {
            return Ok(());
        }
        let text = format!("data was still being copied {} after the load", plan.at_most);
        self.log.find(Severity::Warning, finding::RESYNC_NOT_DONE, &text, self.observer)
    }

    /// The same load once more where nothing delays the storage, at these numbers of users: what this host can do at most. The
    /// caller takes the delays away.
    pub fn climb_null_twin(&mut self, rungs: &[u32]) -> Result<(), Abort> {
        for users in rungs {
            self.phase(PhaseKind::RampUp, *users, TWIN_RAMP_UP, |ladder| {
                ladder.driver.set_users(*users);
                ladder.pass_seconds(TWIN_RAMP_UP)
            })?;
            self.phase(PhaseKind::NullTwin, *users, TWIN_MEASURE, |ladder| {
                ladder.pass_seconds(TWIN_MEASURE)
            })?;
        }
        Ok(())
    }

    /// Lets the users of the warm-up fill the caches of servers and host. The caller sees to it that storage takes no time.
    pub fn fill_caches(&mut self, procedure: &ProcedurePlan) -> Result<(), Abort> {
        let users = procedure.warm_up_users();
        self.phase(PhaseKind::Prepare, users, procedure.cache_warm_up, |ladder| {
            ladder.driver.set_users(users);
            ladder.pass_seconds(procedure.cache_warm_up)?;
            ladder.driver.set_users(0);
            Ok(())
        })
    }

    /// Lets a job of so many sessions run until it is done. Its result is known when it has been stopped: the window that it
    /// was watched in is longer than the job.
    pub fn wait_for_job(&mut self, sessions: u32, procedure: &ProcedurePlan) -> Result<(), Abort> {
        self.settle(procedure)?;
        let expected = procedure.measure;
        let mut has_begun = false;
        self.measure(sessions, expected, |ladder| {
            if !std::mem::replace(&mut has_begun, true) {
                ladder.driver.set_users(sessions);
            }
        })?;
        if !self.driver.has_ended() {
            return Err(Abort::Failed(format!(
                "the job was not done within {expected}; raise procedure.measure, or make the job smaller"
            )));
        }
        // The headline of a job is its result, which its owner knows.
        self.measured.windows.iter_mut().for_each(|window| window.is_complete = false);
        Ok(())
    }

    fn settle(&mut self, procedure: &ProcedurePlan) -> Result<(), Abort> {
        self.phase(PhaseKind::Settle, 0, procedure.settle, |ladder| {
            ladder.pass_seconds(procedure.settle)
        })
    }

    /// Searches for the highest rate that meets the target, and offers it. Says whether there is one.
    fn search(
        &mut self,
        search: &SearchPlan,
        procedure: &ProcedurePlan,
        users: u32,
    ) -> Result<bool, Abort> {
        let expected = Nanos(search.settle.0 + search.measure.0);
        let rate = self.phase(PhaseKind::Search, users, expected, |ladder| {
            rate_search::carry_out(ladder, search)
        })?;
        let Some(rate) = rate else { return Ok(false) };
        self.phase(PhaseKind::RampUp, users, procedure.ramp_up, |ladder| {
            ladder.offer(rate)?;
            ladder.pass_seconds(procedure.ramp_up)
        })?;
        Ok(true)
    }

    fn measure(
        &mut self,
        users: u32,
        length: Nanos,
        steer: impl FnMut(&Self),
    ) -> Result<(), Abort> {
        self.phase(PhaseKind::Measure, users, length, |ladder| {
            ladder.flush()?;
            let (cpu_before, ended_before) = (ladder.measured.cpu_ns(), ladder.measured.ended);
            let mut window = Window { users, ended_before, ..Window::default() };
            let passed = ladder.advance(length, Duration::from_secs(1), steer, |tick| {
                window.add(&tick);
                true
            });
            window.is_complete = passed.is_ok();
            window.cpu_ns = window.tick.cpu_ns.saturating_sub(cpu_before);
            ladder.measured.windows.push(window);
            passed
        })
    }

    /// Load rising from one user to `top`, evenly over `length`.
    fn rise(&mut self, top: u32, length: Nanos) -> Result<(), Abort> {
        let began = self.log.now();
        let mut active = 0;
        let steer = |ladder: &Self| {
            let passed = ladder.log.now().saturating_sub(began);
            let share = passed.as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
            // The last quarter of the warm-up runs at full load.
            let users = ((f64::from(top) * share / 0.75).ceil() as u32).clamp(1, top);
            if users != active {
                active = users;
                ladder.driver.set_users(users);
            }
        };
        self.pass(length, Duration::from_secs(1), steer, |_| true)
    }
}
