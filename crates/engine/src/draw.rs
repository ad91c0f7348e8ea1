//! Uniform draws, and numbers that are a function of a key.
//!
//! Not here: the workload's own draws; these are for what a database decides by itself.

use rand::Rng;
use rand_pcg::Pcg64;

/// A number in `0..count`, all equally likely; the bias is below `count / 2^64`.
pub(crate) fn below(random: &mut Pcg64, count: u64) -> u64 {
    debug_assert!(count > 0, "an empty range has no element");
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// A number that looks random and is a function of `key` (the finaliser of SplitMix64; Steele et
/// al., OOPSLA 2014).
pub(crate) const fn scatter(key: u64) -> u64 {
    let mut x = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A number in `0..count` that is a function of `key`.
pub(crate) const fn scatter_below(key: u64, count: u64) -> u64 {
    ((scatter(key) as u128 * count as u128) >> 64) as u64
}
