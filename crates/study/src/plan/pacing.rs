//! What makes a user of a plan start the next transaction. When each one starts is not decided here.

use underlay_core::Arrivals;

/// What makes a user start the next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// The answer to the one before.
    Closed {
        /// Multiplier of the standard's keying and think times; 0 = none.
        key_think: f64,
    },
    /// A clock, whatever the database does.
    Open {
        /// Transactions per second over all users.
        rate_per_second: f64,
        /// How they are spread in time.
        arrivals: Arrivals,
    },
    /// Nothing: a job runs until it is done.
    Job,
}
