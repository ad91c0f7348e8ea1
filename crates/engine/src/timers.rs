//! A heap of timers that keeps the order of equal times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A user's pause, or a message's time on the network, ends.
    Session { database: u16, session: u32 },
    /// The next arrival of an open loop is due.
    Arrival { database: u16 },
    /// The checkpointer looks whether it has to begin or to write.
    Checkpointer { database: u16 },
    /// The background writer, or the page cleaners, make a round.
    Writer { database: u16 },
    /// The kernel looks for old dirty pages.
    Flusher { database: u16 },
    /// The log is flushed for those who do not wait.
    LogWriter { database: u16 },
    /// A worker of autovacuum begins.
    Autoanalyze { database: u16 },
    /// It has slept.
    AnalyzeNext { database: u16 },
    /// A job begins, or its pause ends.
    Job { database: u16 },
    /// A job may copy more.
    JobRate { database: u16 },
    /// Background work.
    Background { work: u16, timer: BackgroundTimer },
}

/// What a timer of background work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackgroundTimer {
    /// It begins.
    Begin,
    /// It is stopped.
    End,
    /// A place in its queue starts its next request.
    Place(u32),
}

/// The heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    set: u64,
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, at: Nanos, timer: Timer) {
        self.set += 1;
        self.heap.push(Reverse((at, self.set, timer)));
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes one that is due by `now`.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Timer> {
        let due = self.next().is_some_and(|at| at <= now);
        due.then(|| self.heap.pop()).flatten().map(|Reverse((_, _, timer))| timer)
    }
}
