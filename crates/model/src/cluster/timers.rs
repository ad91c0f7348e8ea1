//! What happens by itself, in order of time, and of the order in which it was scheduled where times are equal.

use super::ids::{ComponentId, DeviceId};
use super::slab::Key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// Something that happens by itself at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A request's turn has come.
    Start { operation: Key },
    /// A request reaches a host.
    Arrive { sub: Key },
    /// An answer that is looked at by itself reaches the owner.
    Answer { sub: Key },
    /// The last of the answers that a part waits for reaches the owner.
    LastAnswer { part: Key },
    /// The silence of the hosts that changed together is noticed.
    Detect { epoch: u32 },
    /// A stuck device counts as failed.
    GiveUp { device: DeviceId, epoch: u32 },
    /// An absent component is rebuilt elsewhere.
    Repair { component: ComponentId, absence: u32 },
    /// Witnesses on hosts that are gone for long are moved.
    RepairWitnesses,
    /// Fullness is looked at.
    Rebalance,
    /// Copying that waits for something is tried again.
    RetryCopies,
}

/// A place in the sequence of what happens by itself: a moment in the upper half, in the lower one how many places were
/// taken before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u128);

impl Turn {
    /// When it is.
    pub(super) fn at(self) -> Nanos {
        Nanos((self.0 >> 64) as u64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    turn: Turn,
    timer: Timer,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        self.turn == other.turn
    }
}

impl Eq for Pending {}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// All that is pending.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Pending>>,
    taken: u64,
}

impl Timers {
    /// Nothing pending.
    pub(super) fn new() -> Timers {
        Timers { heap: BinaryHeap::with_capacity(1024), taken: 0 }
    }

    /// Takes a place for something that will be scheduled there, or not at all.
    pub(super) fn take_turn(&mut self, at: Nanos) -> Turn {
        self.taken += 1;
        Turn(u128::from(at.0) << 64 | u128::from(self.taken))
    }

    /// Schedules something at a place that was taken.
    pub(super) fn schedule(&mut self, turn: Turn, timer: Timer) {
        self.heap.push(Reverse(Pending { turn, timer }));
    }

    /// When the next thing happens, in ns; `u64::MAX` = never.
    pub(super) fn next(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |pending| pending.0.turn.at().0)
    }

    /// Takes what happens next.
    pub(super) fn pop(&mut self) -> Option<(Nanos, Timer)> {
        self.heap.pop().map(|Reverse(pending)| (pending.turn.at(), pending.timer))
    }
}

#[cfg(test)]
mod tests {
    use super::{Timer, Timers};
    use underlay_core::Nanos;

    #[test]
    fn a_place_is_kept_for_what_is_scheduled_later() {
        let mut timers = Timers::new();
        let kept = timers.take_turn(Nanos(5));
        let later = timers.take_turn(Nanos(5));
        timers.schedule(later, Timer::RetryCopies);
        timers.schedule(kept, Timer::Rebalance);
        let sooner = timers.take_turn(Nanos(4));
        timers.schedule(sooner, Timer::RepairWitnesses);
        assert_eq!(timers.next(), 4);
        assert_eq!(timers.pop(), Some((Nanos(4), Timer::RepairWitnesses)));
        assert_eq!(timers.pop(), Some((Nanos(5), Timer::Rebalance)));
        assert_eq!(timers.pop(), Some((Nanos(5), Timer::RetryCopies)));
        assert_eq!((timers.pop(), timers.next()), (None, u64::MAX));
    }
}
