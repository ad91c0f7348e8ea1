//! Which scheduled fault is due when. Pure: the caller says which phase began and what time it is.

use underlay_core::Nanos;
use underlay_record::PhaseKind;
use underlay_study::FaultPlan;

use crate::lab::phases::scheduled_phase;

/// The faults of one run. Times are since the run's origin.
#[derive(Debug)]
pub struct Schedule {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    plan: FaultPlan,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its phase has not begun.
    Waiting,
    /// It happens at that time.
    Armed { at: Nanos },
    /// It happened, and is mended at that time; `None` = at the end of the load.
    InForce { until: Option<Nanos> },
    /// Nothing is left to do about it.
    Over,
}

/// What is to be done about the fault of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It happens.
    Happen(usize),
    /// It is mended.
    Mend(usize),
}

impl Schedule {
    /// The faults of `design`, out of those of a plan.
    pub fn new(faults: &[FaultPlan], design: usize) -> Schedule {
        let concerned = faults.iter().filter(|fault| fault.designs.contains(&design));
        let entry = |plan: &FaultPlan| Entry { plan: plan.clone(), state: State::Waiting };
        Schedule { entries: concerned.map(entry).collect() }
    }

    /// Whether nothing is scheduled at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The fault of that number.
    pub fn plan(&self, number: usize) -> &FaultPlan {
        &self.entries[number].plan
    }

    /// Says that a phase began at `now`: its faults are armed.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32, now: Nanos) {
        let Some(phase) = scheduled_phase(kind) else { return };
        for Entry { plan, state } in &mut self.entries {
            let meant = plan.phase == phase && plan.users.is_none_or(|rung| rung == users);
            if meant && *state == State::Waiting {
                *state = State::Armed { at: now + plan.at };
            }
        }
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Nanos> {
        self.entries.iter().filter_map(|entry| entry.state.due()).min()
    }

    /// The next act that is due at `now`; what ends comes before what begins at the same time.
    pub fn due(&self, now: Nanos) -> Option<Act> {
        let due = self.entries.iter().enumerate().filter_map(|(number, entry)| {
            let at = entry.state.due().filter(|at| *at <= now)?;
            Some((at, matches!(entry.state, State::Armed { .. }), number))
        });
        due.min().map(|(_, happens, number)| match happens {
            true => Act::Happen(number),
            false => Act::Mend(number),
        })
    }

    /// Says that a fault happened at `now`. Returns when it will be mended, if that is planned.
    pub fn happened(&mut self, number: usize, now: Nanos) -> Option<Nanos> {
        let Entry { plan, state } = &mut self.entries[number];
        let until = plan.lasts.map(|lasts| now + lasts);
        *state = match plan.action.kind().can_last() {
            true => State::InForce { until },
            false => State::Over,
        };
        until
    }

    /// Says that nothing is left to do about a fault.
    pub fn is_over(&mut self, number: usize) {
        self.entries[number].state = State::Over;
    }

    /// Faults that last, latest first: the order in which they are mended at the end.
    pub fn in_force(&self) -> Vec<usize> {
        let lasting = |number: &usize| matches!(self.entries[*number].state, State::InForce { .. });
        (0..self.entries.len()).rev().filter(lasting).collect()
    }

    /// Faults that have not happened.
    pub fn outstanding(&self) -> Vec<usize> {
        let waits = |number: &usize| {
            matches!(self.entries[*number].state, State::Waiting | State::Armed { .. })
        };
        (0..self.entries.len()).filter(waits).collect()
    }
}

impl State {
    fn due(self) -> Option<Nanos> {
        match self {
            State::Armed { at } => Some(at),
            State::InForce { until } => until,
            State::Waiting | State::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Schedule};
    use underlay_core::Nanos;
    use underlay_record::PhaseKind;
    use underlay_study::{FaultAction, FaultPhase, FaultPlan};

    fn fault(host: &str, at_s: u64, lasts_s: Option<u64>, users: u32) -> FaultPlan {
        FaultPlan {
            action: FaultAction::HostLost { host: host.to_string() },
            at: Nanos::from_secs(at_s),
            phase: FaultPhase::Measure,
            users: Some(users),
            lasts: lasts_s.map(Nanos::from_secs),
            designs: vec![1],
            line: 1,
        }
    }

    /// Carries out everything due up to `until`, second by second.
    fn play(schedule: &mut Schedule, seconds: std::ops::Range<u64>) -> Vec<(u64, Act)> {
        let mut acts = Vec::new();
        for second in seconds {
            let now = Nanos::from_secs(second);
            while let Some(act) = schedule.due(now) {
                match act {
                    Act::Happen(number) => {
                        schedule.happened(number, now);
                    }
                    Act::Mend(number) => schedule.is_over(number),
                }
                acts.push((second, act));
            }
        }
        acts
    }

    #[test]
    fn faults_happen_in_their_phase_and_end_before_others_begin() {
        let faults = [fault("a", 2, Some(3), 4), fault("b", 5, None, 4), fault("c", 1, None, 8)];
        assert!(Schedule::new(&faults, 0).is_empty());
        let mut schedule = Schedule::new(&faults, 1);
        schedule.phase_began(PhaseKind::WarmUp, 8, Nanos::ZERO);
        assert_eq!(schedule.next_due(), None);
        schedule.phase_began(PhaseKind::Measure, 4, Nanos::from_secs(10));
        assert_eq!(schedule.next_due(), Some(Nanos::from_secs(12)));
        let acts = play(&mut schedule, 10..30);
        assert_eq!(acts, [(12, Act::Happen(0)), (15, Act::Mend(0)), (15, Act::Happen(1))]);
        assert_eq!(schedule.in_force(), [1]);
        assert_eq!(schedule.outstanding(), [2]);
        // A phase of that kind comes once per rung.
        schedule.phase_began(PhaseKind::Measure, 8, Nanos::from_secs(40));
        assert_eq!(play(&mut schedule, 40..50), [(41, Act::Happen(2))]);
        assert_eq!(schedule.in_force(), [2, 1]);
    }

    #[test]
    fn single_acts_leave_nothing_to_mend() {
        let faults = [FaultPlan {
            action: FaultAction::BitRot { volume: "data".to_string(), bits: 1 },
            ..fault("a", 1, None, 4)
        }];
        let mut schedule = Schedule::new(&faults, 1);
        schedule.phase_began(PhaseKind::Measure, 4, Nanos::ZERO);
        assert_eq!(play(&mut schedule, 0..9), [(1, Act::Happen(0))]);
        assert_eq!((schedule.in_force(), schedule.outstanding()), (vec![], vec![]));
    }
}
