//! What a virtual user does about an error, and how long it waits first. Pure.
//!
//! The rule behind the table: a transaction that is known not to have committed is tried again
//! with the same inputs; one that may have committed is never repeated, because a repetition would turn
//! one order into two.

use rand::RngExt;
use rand_pcg::Pcg64;
use underlay_core::Nanos;
use underlay_database::ErrorClass;

/// What to do about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The transaction lost against others: again soon, on the same session.
    Retry,
    /// The server cannot work at present: again later, on the same session.
    RetryLater,
    /// The session is of no more use: connect again, then try again.
    Reconnect,
    /// Trying again would not help.
    GiveUp,
}

/// The reaction to an error of `class`.
pub fn reaction(class: ErrorClass) -> Reaction {
    match class {
        ErrorClass::Deadlock | ErrorClass::Serialization => Reaction::Retry,
        ErrorClass::Timeout | ErrorClass::Io => Reaction::RetryLater,
        // After a failover the address may lead to a server that can write.
        ErrorClass::ConnectionLost | ErrorClass::ReadOnly => Reaction::Reconnect,
        ErrorClass::Constraint | ErrorClass::Other => Reaction::GiveUp,
    }
}

/// Whether errors of `class` are part of an outage, and not of ordinary work under contention.
pub fn is_outage(class: ErrorClass) -> bool {
    matches!(reaction(class), Reaction::RetryLater | Reaction::Reconnect)
}

/// How the waits between attempts grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Bound of the first wait.
    pub first: Nanos,
    /// Bound that no wait exceeds.
    pub cap: Nanos,
}

impl Backoff {
    /// Among users that compete for rows: 2 ms, doubling to 100 ms.
    pub const CONTENTION: Backoff =
        Backoff { first: Nanos::from_millis(2), cap: Nanos::from_millis(100) };
    /// While the server is away: 50 ms, doubling to 1 s, so that a recovery is seen within a second.
    pub const OUTAGE: Backoff = Backoff { first: Nanos::from_millis(50), cap: Nanos::from_secs(1) };

    /// The wait before attempt number `failures` + 1: the upper half of an exponentially growing
    /// bound, at random, so that users who failed together do not come back together.
    pub fn wait(&self, failures: u32, random: &mut Pcg64) -> Nanos {
        let doublings = failures.saturating_sub(1).min(32);
        let bound = self.first.0.saturating_mul(1 << doublings).min(self.cap.0).max(1);
        Nanos(random.random_range(bound / 2..=bound))
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Reaction, is_outage, reaction};
    use proptest::prelude::{any, prop_assert, proptest};
    use underlay_core::{Nanos, RootSeed};
    use underlay_database::ErrorClass;

    #[test]
    fn only_contention_is_not_an_outage_among_the_repeated() {
        assert_eq!(reaction(ErrorClass::Deadlock), Reaction::Retry);
        assert!(!is_outage(ErrorClass::Serialization));
        assert!(is_outage(ErrorClass::ConnectionLost) && is_outage(ErrorClass::Io));
        assert!(!is_outage(ErrorClass::Constraint));
    }

    proptest! {
        #[test]
        fn waits_grow_up_to_the_cap_and_never_beyond(failures in 1u32..200, seed in any::<u64>()) {
            let mut random = RootSeed(seed).stream("test", 0);
            let backoff = Backoff::OUTAGE;
            let wait = backoff.wait(failures, &mut random);
            let bound = backoff.first.0.saturating_mul(1u64 << (failures - 1).min(20)).min(backoff.cap.0);
            prop_assert!(wait <= Nanos(bound) && wait >= Nanos(bound / 2));
        }
    }
}
