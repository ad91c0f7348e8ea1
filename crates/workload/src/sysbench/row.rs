//! Rows of `sbtest<n>`: `id`, `k`, and two texts of random digits in groups of eleven.
//!
//! The row of a table and an id is a function of the seed alone, so any part of a table can be made alone.
//! Digits carry 3.3 bits in each byte of 8: storage that compresses finds 2:1, as with sysbench's own data.

use rand_pcg::Pcg64;
use underlay_core::RootSeed;

use super::Sampler;
use crate::draw::below;

/// Bytes of `c`: ten groups.
pub const C_LENGTH: usize = 119;
/// Bytes of `pad`: five groups.
pub const PAD_LENGTH: usize = 59;

/// Digits of a group, and how many values they have.
const GROUP: usize = 11;
const GROUP_VALUES: u64 = 100_000_000_000;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The primary key.
    pub id: u32,
    /// The indexed value.
    pub k: u32,
    /// 119 bytes.
    pub c: [u8; C_LENGTH],
    /// 59 bytes.
    pub pad: [u8; PAD_LENGTH],
}

impl Row {
    /// The row `id` of table `table`, both from 1, as it is loaded; `k` is drawn from `sampler`.
    pub fn of(seed: RootSeed, table: u32, id: u32, sampler: &Sampler) -> Row {
        let index = (u64::from(table) << 32) | u64::from(id);
        let mut random = seed.stream("sysbench/row", index);
        Row { id, k: sampler.sample(&mut random), c: text(&mut random), pad: text(&mut random) }
    }
}

/// The text of a number: what a transaction that carries only the number stores.
pub fn text_of<const N: usize>(number: u64) -> [u8; N] {
    text(&mut RootSeed(number).stream("sysbench/text", 0))
}

/// Groups of eleven digits with a hyphen between; `N` is a multiple of twelve less one.
fn text<const N: usize>(random: &mut Pcg64) -> [u8; N] {
    let mut text = [b'-'; N];
    for group in text.chunks_mut(GROUP + 1) {
        put_digits(below(random, GROUP_VALUES), &mut group[..GROUP]);
    }
    text
}

/// The decimal numbers of two digits, one after the other: a division fewer for every second digit of a text, which a
/// load has 150 of per row.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// `value` as eleven digits.
fn put_digits(value: u64, out: &mut [u8]) {
    debug_assert!(value < GROUP_VALUES && out.len() == GROUP, "a group");
    let (high, low) = ((value / 100_000_000) as u32, (value % 100_000_000) as u32);
    let mut put = |at: usize, number: u32| {
        let pair = 2 * number as usize;
        out[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    };
    // From the left: three digits, then four pairs.
    put(0, high / 10);
    put(1, high % 100);
    put(3, low / 1_000_000);
    put(5, low / 10_000 % 100);
    put(7, low / 100 % 100);
    put(9, low % 100);
}

#[cfg(test)]
mod tests {
    use super::{C_LENGTH, GROUP, GROUP_VALUES, PAD_LENGTH, Row, put_digits, text_of};
    use crate::sysbench::Distribution;
    use sha2::{Digest, Sha256};
    use underlay_core::RootSeed;

    fn is_grouped(text: &[u8], groups: usize) -> bool {
        let text = std::str::from_utf8(text).unwrap();
        let parts: Vec<&str> = text.split('-').collect();
        parts.len() == groups
            && parts.iter().all(|part| part.len() == 11 && part.bytes().all(|b| b.is_ascii_digit()))
    }

    #[test]
    fn groups_are_the_digits_of_their_number() {
        let mut value = 1;
        while value < GROUP_VALUES {
            for value in [value - 1, value, value * 7 % GROUP_VALUES] {
                let mut out = [0; GROUP];
                put_digits(value, &mut out);
                assert_eq!(std::str::from_utf8(&out).unwrap(), format!("{value:011}"));
            }
            value = value * 3 + 1;
        }
    }

    #[test]
    fn texts_have_sysbenchs_form() {
        let sampler = Distribution::Uniform.sampler(1_000);
        for id in 1..200 {
            let row = Row::of(RootSeed(3), 2, id, &sampler);
            assert!(is_grouped(&row.c, 10) && is_grouped(&row.pad, 5));
            assert!((1..=1_000).contains(&row.k));
        }
        assert!(
            is_grouped(&text_of::<C_LENGTH>(9), 10) && is_grouped(&text_of::<PAD_LENGTH>(9), 5)
        );
    }

    #[test]
    fn rows_of_a_seed_never_change() {
        let sampler = Distribution::Special.sampler(500);
        let mut hash = Sha256::new();
        for (table, id) in [(1, 1), (1, 2), (2, 1), (9, 500)] {
            let row = Row::of(RootSeed(42), table, id, &sampler);
            hash.update(row.k.to_le_bytes());
            hash.update(row.c);
            hash.update(row.pad);
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, GOLDEN);
    }

    #[test]
    fn digits_are_uniform() {
        let sampler = Distribution::Uniform.sampler(10);
        let mut counts = [0u64; 10];
        for id in 1..=2_000 {
            let row = Row::of(RootSeed(1), 1, id, &sampler);
            row.c.iter().filter(|b| **b != b'-').for_each(|b| counts[(b - b'0') as usize] += 1);
        }
        let expected = counts.iter().sum::<u64>() as f64 / 10.0;
        let chi: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum();
        assert!(chi < 40.0, "chi-square {chi} of 9 degrees of freedom");
    }

    const GOLDEN: &str = "cc008738f43b88fa413f3519d49e5a4a17a8d83dc340ae920cd3de7dbe42778b";
}
