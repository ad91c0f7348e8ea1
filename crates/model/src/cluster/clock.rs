//! The cluster's clock: what time it is, and what happens by itself later.
//!
//! What is not here: what a timer does when it expires (the cluster decides) and the disk groups' own events, which the
//! inventory of hosts and groups keeps.

use super::timers::Timer;
use crate::agenda::{Agenda, Position};
use underlay_core::Nanos;

/// The present and the timers.
#[derive(Debug)]
pub(super) struct Clock {
    now: Nanos,
    timers: Agenda<Timer>,
}

impl Clock {
    /// Time zero, and no timers.
    pub(super) fn new() -> Clock {
        Clock { now: Nanos::ZERO, timers: Agenda::new() }
    }

    /// The time up to which everything has happened.
    #[inline(always)]
    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// Lets time pass; it never goes backwards.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// When the next timer expires, in ns; `u64::MAX` = never.
    #[inline(always)]
    pub(super) fn next_timer(&self) -> u64 {
        self.timers.next().0
    }

    /// Takes the next timer out and advances to its time.
    #[inline(always)]
    pub(super) fn take_timer(&mut self) -> Option<Timer> {
        let (at, timer) = self.timers.take()?;
        self.advance_to(at);
        Some(timer)
    }

    /// Starts a timer.
    #[inline]
    pub(super) fn schedule(&mut self, at: Nanos, timer: Timer) {
        debug_assert!(at >= self.now, "a timer expires in the future");
        let position = self.reserve_position(at);
        self.schedule_at_position(position, timer);
    }

    /// Reserves a position among the timers of that time, to be used or not.
    #[inline]
    pub(super) fn reserve_position(&mut self, at: Nanos) -> Position {
        self.timers.reserve_position(at)
    }

    /// Starts a timer at a reserved position.
    #[inline]
    pub(super) fn schedule_at_position(&mut self, position: Position, timer: Timer) {
        self.timers.enter_at(position, timer);
    }
}
