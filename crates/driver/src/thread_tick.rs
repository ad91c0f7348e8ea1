//! What one thread counted since the last tick. Owned by the thread and swapped out at a tick, so that
//! counting takes no lock.

use underlay_core::{Histogram, Nanos};
use underlay_database::SessionError;

use crate::activity::ActivityLog;
use crate::errors::ErrorSamples;
use crate::outage::{OutageEvent, Restoration, UnknownCommit};
use crate::slot::Slot;
use crate::tick::{ArrivalTick, ConnectTick, ThreadLoad, TypeTick, Users};

/// Bound of the outage events kept between two ticks; a storm beyond it is counted by class only.
const EVENTS_MAX: usize = 1 << 18;

/// The times of one completed transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When it was due.
    pub(crate) intended: Nanos,
    /// When a user took it up.
    pub(crate) taken: Nanos,
    /// When it had a connection of the pool, and its first attempt began.
    pub(crate) first_attempt: Nanos,
    /// When its last attempt began.
    pub(crate) last_attempt: Nanos,
    /// When it was completed.
    pub(crate) completed: Nanos,
}

/// How a transaction ended that was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Undone, and not repeated.
    Failed,
    /// Perhaps committed.
    Unknown,
    /// Stopped before it could commit.
    Abandoned,
}

/// The counts of one thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadTick {
    pub(crate) types: Vec<TypeTick>,
    pub(crate) arrivals: ArrivalTick,
    pub(crate) connects: ConnectTick,
    pub(crate) users: Users,
    pub(crate) dispatch_lag: Histogram,
    pub(crate) held_back_ns: u64,
    pub(crate) samples: ErrorSamples,
    pub(crate) activity: ActivityLog,
    pub(crate) events: Vec<OutageEvent>,
    /// What the thread did since its start.
    pub(crate) load: ThreadLoad,
}

impl ThreadTick {
    /// No counts, for `types` types of transactions.
    pub(crate) fn new(types: usize) -> ThreadTick {
        ThreadTick { types: vec![TypeTick::default(); types], ..ThreadTick::default() }
    }

    /// Counts a transaction that was carried out to the end.
    pub(crate) fn completed(&mut self, kind: usize, committed: bool, times: &Times) {
        let counts = &mut self.types[kind];
        if committed {
            counts.committed += 1;
        } else {
            counts.rolled_back += 1;
        }
        counts.response.record(times.completed.saturating_sub(times.intended).0);
        counts.service.record(times.completed.saturating_sub(times.last_attempt).0);
        if times.taken > times.intended {
            counts.admission_wait.record((times.taken - times.intended).0);
        }
        if times.first_attempt > times.taken {
            counts.pool_wait.record((times.first_attempt - times.taken).0);
        }
        if times.last_attempt > times.first_attempt {
            counts.retry_wait.record((times.last_attempt - times.first_attempt).0);
        }
        self.activity.note(times.completed);
    }

    /// Counts a transaction that was not.
    pub(crate) fn lost(&mut self, kind: usize, loss: Loss) {
        let counts = &mut self.types[kind];
        match loss {
            Loss::Failed => counts.failed += 1,
            Loss::Unknown => counts.unknown += 1,
            Loss::Abandoned => counts.abandoned += 1,
        }
    }

    /// Counts an error of an attempt (`kind`), or of opening a session (none).
    pub(crate) fn error(&mut self, kind: Option<usize>, at: Nanos, error: &SessionError) {
        match kind {
            Some(kind) => self.types[kind].errors.count(error.class),
            None => self.connects.errors.count(error.class),
        }
        self.samples.note(at, error);
    }

    /// Notes an error on the outage time line.
    pub(crate) fn outage_error(
        &mut self,
        slot: &Slot,
        user: u32,
        at: Nanos,
        unknown: UnknownCommit,
    ) {
        let storm = self.events.len() >= EVENTS_MAX;
        if storm && slot.affected.get() && unknown == UnknownCommit::No {
            return;
        }
        slot.affected.set(true);
        self.events.push(OutageEvent::Error { at, user, unknown });
    }

    /// Notes that a user is through with an outage, if it was in one.
    pub(crate) fn restored(&mut self, slot: &Slot, user: u32, at: Nanos, by: Restoration) {
        if slot.affected.take() {
            self.events.push(OutageEvent::Restored { at, user, by });
        }
    }
}
