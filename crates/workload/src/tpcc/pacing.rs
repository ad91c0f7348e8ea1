//! Keying and think times (clauses 5.2.5.2 and 5.2.5.4).
//!
//! The times of the specification, unscaled; callers multiply them for faster or no pacing. A think
//! time is negative-exponential, `-ln(r) * mean` with `r` uniform in `(0, 1]`, cut at ten times the
//! mean.

use rand_pcg::Pcg64;
use underlay_core::Nanos;

use super::TransactionType;
use crate::draw::unit_interval;

/// A think time is never longer than this many means.
pub const THINK_TIME_CUT: u64 = 10;

/// The time a user takes to enter the inputs.
pub const fn keying_time(transaction: TransactionType) -> Nanos {
    Nanos::from_secs(match transaction {
        TransactionType::NewOrder => 18,
        TransactionType::Payment => 3,
        TransactionType::OrderStatus | TransactionType::Delivery | TransactionType::StockLevel => 2,
    })
}

/// The mean time a user reads the answer.
pub const fn think_time_mean(transaction: TransactionType) -> Nanos {
    Nanos::from_secs(match transaction {
        TransactionType::NewOrder | TransactionType::Payment => 12,
        TransactionType::OrderStatus => 10,
        TransactionType::Delivery | TransactionType::StockLevel => 5,
    })
}

/// A time a user reads the answer; rounded down to whole nanoseconds.
pub(crate) fn think_time(random: &mut Pcg64, transaction: TransactionType) -> Nanos {
    let mean = think_time_mean(transaction).0;
    let drawn_ns = -unit_interval(random).ln() * mean as f64;
    Nanos((drawn_ns as u64).min(THINK_TIME_CUT * mean))
}
