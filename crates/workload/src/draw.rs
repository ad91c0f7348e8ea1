//! Uniform draws whose values never change between releases of a library.
//!
//! `rand` may change how a range is drawn; generated data must not. A draw takes the high half of a
//! 64 x 64 bit product (Lemire 2019, "Fast random integer generation in an interval", without the
//! rejection step): the bias is below `count / 2^64`, far below anything a test of a run could see.

use rand::Rng;
use rand_pcg::Pcg64;

/// A number in `low..=high`, all equally likely.
pub(crate) fn uniform(random: &mut Pcg64, low: u32, high: u32) -> u32 {
    debug_assert!(low <= high, "an empty range has no element");
    let count = u128::from(high - low) + 1;
    low + ((u128::from(random.next_u64()) * count) >> 64) as u32
}

/// A number in `0..count`, all equally likely.
pub(crate) fn below(random: &mut Pcg64, count: u64) -> u64 {
    debug_assert!(count > 0, "an empty range has no element");
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// True in `percent` of 100 draws.
pub(crate) fn percent(random: &mut Pcg64, percent: u32) -> bool {
    uniform(random, 1, 100) <= percent
}

/// A number in `(0, 1]`, on a grid of `2^-53`.
pub(crate) fn unit_interval(random: &mut Pcg64) -> f64 {
    const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
    ((random.next_u64() >> 11) + 1) as f64 * SCALE
}

/// A number in `[0, 1)`, on a grid of `2^-53`.
pub(crate) fn fraction(random: &mut Pcg64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Puts `values` into a random order, all orders equally likely (Fisher and Yates).
pub(crate) fn shuffle<T>(random: &mut Pcg64, values: &mut [T]) {
    for last in (1..values.len()).rev() {
        let other = uniform(random, 0, last as u32) as usize;
        values.swap(last, other);
    }
}
