//! What is due when, of things that a plan schedules within the phases of a run: faults, changes of weights, work
//! alongside the users. Pure: the caller says which phase began and what time it is, and carries out what is due.

use underlay_core::Nanos;
use underlay_record::PhaseKind;
use underlay_study::{BackgroundPlan, FaultPhase, FaultPlan, WeightsPlan};

/// When something happens, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// The phase.
    pub phase: FaultPhase,
    /// The rung, where the phase comes once per rung; `None` = the first one.
    pub users: Option<u32>,
    /// Since the beginning of the phase.
    pub at: Nanos,
    /// It ends after this time; `None` = with the load.
    pub lasts: Option<Nanos>,
}

/// Something that a plan schedules.
pub trait Scheduled {
    /// When it happens.
    fn when(&self) -> When;
    /// The designs concerned, by position.
    fn designs(&self) -> &[usize];
}

macro_rules! scheduled {
    ($($plan:ty),*) => {$(
        impl Scheduled for $plan {
            fn when(&self) -> When {
                When { phase: self.phase, users: self.users, at: self.at, lasts: self.lasts }
            }

            fn designs(&self) -> &[usize] {
                &self.designs
            }
        }
    )*};
}

scheduled!(FaultPlan, WeightsPlan, BackgroundPlan);

/// The things of one run, numbered in the order of the plan. Times are since the run's origin.
#[derive(Debug)]
pub struct Schedule<T> {
    entries: Vec<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    when: When,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its phase has not begun.
    Waiting,
    /// It begins at that time.
    Armed { at: Nanos },
    /// It began, and ends at that time; `None` = with the load.
    InForce { until: Option<Nanos> },
    /// Nothing is left to do about it.
    Over,
}

/// What is to be done about the thing of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It begins.
    Begin(usize),
    /// It ends.
    End(usize),
}

/// The phase that scheduled things name, if they can.
fn named_phase(kind: PhaseKind) -> Option<FaultPhase> {
    match kind {
        PhaseKind::Settle => Some(FaultPhase::Settle),
        PhaseKind::WarmUp => Some(FaultPhase::WarmUp),
        PhaseKind::RampUp => Some(FaultPhase::RampUp),
        PhaseKind::Measure => Some(FaultPhase::Measure),
        _ => None,
    }
}

impl<T> Schedule<T> {
    /// Those of `plans` that concern `design`, each made an item by `item`.
    pub fn new<'a, P: Scheduled>(
        plans: &'a [P],
        design: usize,
        item: impl Fn(&'a P) -> T,
    ) -> Schedule<T> {
        let concerned = plans.iter().filter(|plan| plan.designs().contains(&design));
        let entry = |plan| Entry { item: item(plan), when: plan.when(), state: State::Waiting };
        Schedule { entries: concerned.map(entry).collect() }
    }

    /// Whether nothing is scheduled at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All items, in the order of their numbers.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.item)
    }

    /// All items, to be changed.
    pub fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.item)
    }

    /// The item of that number.
    pub fn item(&self, number: usize) -> &T {
        &self.entries[number].item
    }

    /// The item of that number, to be changed.
    pub fn item_mut(&mut self, number: usize) -> &mut T {
        &mut self.entries[number].item
    }

    /// Arms what belongs to a phase that began at `now`.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32, now: Nanos) {
        let Some(phase) = named_phase(kind) else { return };
        for Entry { when, state, .. } in &mut self.entries {
            let is_meant = when.phase == phase && when.users.is_none_or(|rung| rung == users);
            if is_meant && *state == State::Waiting {
                *state = State::Armed { at: now + when.at };
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
        due.min().map(|(_, begins, number)| match begins {
            true => Act::Begin(number),
            false => Act::End(number),
        })
    }

    /// Notes that an item began at `now`. Returns when it will end, if that is planned.
    pub fn begun(&mut self, number: usize, now: Nanos) -> Option<Nanos> {
        let Entry { when, state, .. } = &mut self.entries[number];
        debug_assert!(matches!(state, State::Armed { .. }), "only what is armed can begin");
        let until = when.lasts.map(|lasts| now + lasts);
        *state = State::InForce { until };
        until
    }

    /// Notes that nothing is left to do about an item.
    pub fn is_over(&mut self, number: usize) {
        self.entries[number].state = State::Over;
    }

    /// Items that began and have not ended, latest first: the order in which faults are repaired at the end.
    pub fn in_force(&self) -> Vec<usize> {
        let lasting = |number: &usize| matches!(self.entries[*number].state, State::InForce { .. });
        (0..self.entries.len()).rev().filter(lasting).collect()
    }

    /// Items that have not begun.
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
    fn play<T>(schedule: &mut Schedule<T>, seconds: std::ops::Range<u64>) -> Vec<(u64, Act)> {
        let mut acts = Vec::new();
        for second in seconds {
            let now = Nanos::from_secs(second);
            while let Some(act) = schedule.due(now) {
                match act {
                    Act::Begin(number) => {
                        schedule.begun(number, now);
                    }
                    Act::End(number) => schedule.is_over(number),
                }
                acts.push((second, act));
            }
        }
        acts
    }

    #[test]
    fn items_begin_in_their_phase_and_end_before_others_begin() {
        let faults = [fault("a", 2, Some(3), 4), fault("b", 5, None, 4), fault("c", 1, None, 8)];
        assert!(Schedule::new(&faults, 0, |_| ()).is_empty());
        let mut schedule = Schedule::new(&faults, 1, |_| ());
        schedule.phase_began(PhaseKind::WarmUp, 8, Nanos::ZERO);
        assert_eq!(schedule.next_due(), None);
        schedule.phase_began(PhaseKind::Measure, 4, Nanos::from_secs(10));
        assert_eq!(schedule.next_due(), Some(Nanos::from_secs(12)));
        let acts = play(&mut schedule, 10..30);
        assert_eq!(acts, [(12, Act::Begin(0)), (15, Act::End(0)), (15, Act::Begin(1))]);
        assert_eq!(schedule.in_force(), [1]);
        assert_eq!(schedule.outstanding(), [2]);
        // A phase of that kind comes once per rung.
        schedule.phase_began(PhaseKind::Measure, 8, Nanos::from_secs(40));
        assert_eq!(play(&mut schedule, 40..50), [(41, Act::Begin(2))]);
        assert_eq!(schedule.in_force(), [2, 1]);
    }

    #[test]
    fn what_is_over_is_neither_in_force_nor_outstanding() {
        let faults = [fault("a", 1, None, 4)];
        let mut schedule = Schedule::new(&faults, 1, |plan: &FaultPlan| plan.line);
        schedule.phase_began(PhaseKind::Measure, 4, Nanos::ZERO);
        assert_eq!(play(&mut schedule, 0..9), [(1, Act::Begin(0))]);
        assert_eq!((schedule.in_force(), schedule.next_due()), (vec![0], None));
        schedule.is_over(0);
        assert_eq!((schedule.in_force(), schedule.outstanding()), (vec![], vec![]));
        assert_eq!(schedule.items().copied().collect::<Vec<_>>(), [1]);
    }
}
