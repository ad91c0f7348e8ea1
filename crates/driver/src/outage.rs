//! Outages as the users saw them: first error, last error, recovery, commits of unknown outcome. Pure.
//!
//! An outage begins with the first error that is not contention and lasts until every user that had
//! such an error has completed a transaction again. The same tracker follows one lost session and a crashed
//! server; the number of affected users tells them apart.

use std::collections::BTreeSet;

use underlay_core::Nanos;

use crate::activity::Span;

/// Something that a thread noted for the outage time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageEvent {
    /// A user had an error that is part of an outage.
    Error {
        /// When the error was noticed.
        at: Nanos,
        /// Number of the user.
        user: u32,
        /// Whether a transaction that may have committed was given up.
        unknown: UnknownCommit,
    },
    /// A user that had such an error completed a transaction, or left.
    Restored {
        /// When it completed or left.
        at: Nanos,
        /// Number of the user.
        user: u32,
        /// How.
        by: Restoration,
    },
}

/// Whether an error left a commit of unknown outcome behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownCommit {
    /// The transaction is known not to have committed.
    No,
    /// It may have committed.
    Yes,
}

/// How a user stopped being affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restoration {
    /// It completed a transaction.
    Completed,
    /// It was stopped before it could.
    Left,
}

impl OutageEvent {
    /// When it happened.
    pub fn at(&self) -> Nanos {
        match self {
            OutageEvent::Error { at, .. } | OutageEvent::Restored { at, .. } => *at,
        }
    }
}

/// One outage. All instants are since the clock origin of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first error.
    pub first_error: Nanos,
    /// The last error, failed attempts to connect included.
    pub last_error: Nanos,
    /// The first transaction that an affected user completed after the last error.
    pub recovered: Option<Nanos>,
    /// When every affected user had completed a transaction again.
    pub restored: Option<Nanos>,
    /// Errors, failed attempts to connect included.
    pub errors: u64,
    /// Users that saw at least one of the errors.
    pub users_affected: u32,
    /// Transactions given up whose commit may or may not have happened.
    pub commits_unknown: u64,
    /// The longest time within the outage in which no user at all completed anything, if it was at
    /// least [`SILENCE`](crate::activity::SILENCE).
    pub silence: Option<Span>,
}

impl Outage {
    fn begin(at: Nanos) -> Outage {
        Outage {
            first_error: at,
            last_error: at,
            recovered: None,
            restored: None,
            errors: 0,
            users_affected: 0,
            commits_unknown: 0,
            silence: None,
        }
    }
}

/// Folds the events of all threads into outages.
#[derive(Clone, Debug, Default)]
pub struct OutageTracker {
    outages: Vec<Outage>,
    /// Whether the last outage goes on, who has been in it, and who still is.
    open: bool,
    seen: BTreeSet<u32>,
    affected: BTreeSet<u32>,
}

impl OutageTracker {
    /// Adds what the threads noted since the last call, in any order.
    pub fn add(&mut self, mut events: Vec<OutageEvent>) {
        events.sort_by_key(OutageEvent::at);
        for event in events {
            match event {
                OutageEvent::Error { at, user, unknown } => self.error(at, user, unknown),
                OutageEvent::Restored { at, user, by } => self.restored(at, user, by),
            }
        }
    }

    /// The outages so far; the last one may still be open (`restored` is then none).
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// The outage that goes on at present.
    pub fn current(&self) -> Option<&Outage> {
        self.outages.last().filter(|_| self.open)
    }

    fn error(&mut self, at: Nanos, user: u32, unknown: UnknownCommit) {
        if !self.open {
            self.open = true;
            self.seen.clear();
            self.outages.push(Outage::begin(at));
        }
        self.affected.insert(user);
        self.seen.insert(user);
        if let Some(outage) = self.outages.last_mut() {
            outage.last_error = outage.last_error.max(at);
            outage.recovered = None;
            outage.errors += 1;
            outage.users_affected = self.seen.len() as u32;
            outage.commits_unknown += u64::from(unknown == UnknownCommit::Yes);
        }
    }

    fn restored(&mut self, at: Nanos, user: u32, by: Restoration) {
        let (true, Some(outage)) = (self.affected.remove(&user), self.outages.last_mut()) else {
            return;
        };
        if by == Restoration::Completed {
            outage.recovered = outage.recovered.or(Some(at));
        }
        if self.affected.is_empty() {
            self.open = false;
            // When all left without completing anything, nothing was restored.
            outage.restored = outage.recovered.map(|_| at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OutageEvent, OutageTracker, Restoration, UnknownCommit};
    use underlay_core::Nanos;

    fn error(at_ms: u64, user: u32, unknown: UnknownCommit) -> OutageEvent {
        OutageEvent::Error { at: Nanos::from_millis(at_ms), user, unknown }
    }

    fn restored(at_ms: u64, user: u32, by: Restoration) -> OutageEvent {
        OutageEvent::Restored { at: Nanos::from_millis(at_ms), user, by }
    }

    #[test]
    fn an_outage_lasts_until_the_last_user_works_again() {
        let mut tracker = OutageTracker::default();
        tracker.add(vec![
            error(1_000, 1, UnknownCommit::Yes),
            error(1_001, 2, UnknownCommit::No),
            error(1_500, 1, UnknownCommit::No),
        ]);
        assert_eq!(tracker.current().map(|outage| outage.errors), Some(3));
        // The events of another thread arrive out of order.
        tracker.add(vec![
            restored(2_100, 1, Restoration::Completed),
            restored(1_900, 2, Restoration::Completed),
        ]);
        assert!(tracker.current().is_none());
        let outage = &tracker.outages()[0];
        assert_eq!(outage.first_error, Nanos::from_millis(1_000));
        assert_eq!(outage.last_error, Nanos::from_millis(1_500));
        assert_eq!(outage.recovered, Some(Nanos::from_millis(1_900)));
        assert_eq!(outage.restored, Some(Nanos::from_millis(2_100)));
        assert_eq!((outage.users_affected, outage.commits_unknown), (2, 1));
    }

    #[test]
    fn an_error_after_a_recovery_reopens_the_question() {
        let mut tracker = OutageTracker::default();
        tracker.add(vec![
            error(100, 1, UnknownCommit::No),
            error(100, 2, UnknownCommit::No),
            restored(200, 1, Restoration::Completed),
            error(300, 1, UnknownCommit::No),
            restored(400, 2, Restoration::Completed),
            restored(500, 1, Restoration::Completed),
        ]);
        assert_eq!(tracker.outages().len(), 1);
        assert_eq!(tracker.outages()[0].recovered, Some(Nanos::from_millis(400)));
        assert_eq!(tracker.outages()[0].restored, Some(Nanos::from_millis(500)));
    }

    #[test]
    fn separate_outages_are_told_apart() {
        let mut tracker = OutageTracker::default();
        tracker
            .add(vec![error(100, 1, UnknownCommit::No), restored(200, 1, Restoration::Completed)]);
        tracker.add(vec![error(900, 5, UnknownCommit::No), restored(950, 5, Restoration::Left)]);
        assert_eq!(tracker.outages().len(), 2);
        assert_eq!(tracker.outages()[1].recovered, None);
        assert_eq!(tracker.outages()[1].restored, None);
        assert_eq!(tracker.outages()[1].users_affected, 1);
    }
}
