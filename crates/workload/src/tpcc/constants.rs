//! The run constants of the non-uniform random function (clause 2.1.6).

use underlay_core::RootSeed;

use super::nurand;
use crate::draw::uniform;

/// The constants C of NURand, one per field. Store them with the data and print them with results:
/// a different `c_run_last` is a different workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// C of customer last names in the population, 0 to 255.
    pub c_load_last: u32,
    /// C of customer last names in the transactions, 0 to 255; its distance to `c_load_last` is one
    /// that [`Constants::distance_is_allowed`] accepts.
    pub c_run_last: u32,
    /// C of customer numbers, 0 to 1023.
    pub c_customer: u32,
    /// C of item numbers, 0 to 8191.
    pub c_item: u32,
}

impl Constants {
    /// The constants of `seed`: random in their ranges, the two of the last name at an allowed
    /// distance.
    pub fn derive(seed: RootSeed) -> Constants {
        let mut random = seed.stream("tpcc/constants", 0);
        let c_load_last = uniform(&mut random, 0, nurand::A_LAST_NAME);
        let allowed: Vec<u32> = (0..=nurand::A_LAST_NAME)
            .filter(|&c_run| Constants::distance_is_allowed(c_load_last, c_run))
            .collect();
        let c_run_last = allowed[uniform(&mut random, 0, allowed.len() as u32 - 1) as usize];
        Constants {
            c_load_last,
            c_run_last,
            c_customer: uniform(&mut random, 0, nurand::A_CUSTOMER),
            c_item: uniform(&mut random, 0, nurand::A_ITEM),
        }
    }

    /// The C-Load/C-Run rule (clause 2.1.6.1): a distance of 65 to 119, but not 96 nor 112.
    pub fn distance_is_allowed(c_load: u32, c_run: u32) -> bool {
        let distance = c_load.abs_diff(c_run);
        (65..=119).contains(&distance) && distance != 96 && distance != 112
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use underlay_core::RootSeed;

    use super::Constants;
    use crate::tpcc::nurand;

    #[test]
    fn every_load_constant_has_an_allowed_run_constant() {
        for c_load in 0..=nurand::A_LAST_NAME {
            assert!((0..=nurand::A_LAST_NAME).any(|c| Constants::distance_is_allowed(c_load, c)));
        }
    }

    #[test]
    fn derived_constants_obey_ranges_and_distance() {
        let mut distances = BTreeSet::new();
        for seed in 0..20_000 {
            let c = Constants::derive(RootSeed(seed));
            assert!(c.c_load_last <= 255 && c.c_run_last <= 255);
            assert!(c.c_customer <= 1023 && c.c_item <= 8191);
            distances.insert(c.c_load_last.abs_diff(c.c_run_last));
        }
        let expected: BTreeSet<u32> = (65..=119).filter(|d| *d != 96 && *d != 112).collect();
        assert_eq!(distances, expected, "all 53 allowed distances occur, and no other");
    }

    #[test]
    fn constants_are_a_value_of_the_seed() {
        assert_eq!(Constants::derive(RootSeed(42)), Constants::derive(RootSeed(42)));
        assert_ne!(Constants::derive(RootSeed(42)), Constants::derive(RootSeed(43)));
    }
}
