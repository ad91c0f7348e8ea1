//! Where random requests go: evenly, by a power law, or by zones.
//!
//! A popular place is not a low address: the power law's ranks are scattered over the region by a
//! fixed permutation, so that neighbours in rank are not neighbours on the device.

use rand::Rng;
use rand_pcg::Pcg64;

use crate::draw::fraction;
use crate::zipf::Zipf;

/// How random places are distributed over a region.
#[derive(Clone, Debug, PartialEq)]
pub enum Locality {
    /// Every place equally likely.
    Uniform,
    /// The k-th most popular place has a probability proportional to k^-exponent.
    Zipf {
        /// Above 0, at most 5. 0.99 = the usual "Zipf" of storage benchmarks.
        exponent: f64,
    },
    /// Parts of the region, from its beginning on, each with a share of the accesses.
    Zones(Vec<Zone>),
}

/// One zone of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Share of the region's space. Above 0; all together 1.
    pub space_share: f64,
    /// Share of the accesses. At least 0; all together 1.
    pub access_share: f64,
}

impl Locality {
    /// The value and the rule, if one is violated.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        match self {
            Locality::Uniform => None,
            Locality::Zipf { exponent } => {
                let holds = *exponent > 0.0 && *exponent <= 5.0;
                (!holds).then(|| (exponent.to_string(), "the exponent lies above 0, up to 5"))
            }
            Locality::Zones(zones) => {
                let is_one = |shares: f64| (shares - 1.0).abs() < 1e-6;
                let holds = is_one(zones.iter().map(|zone| zone.space_share).sum())
                    && is_one(zones.iter().map(|zone| zone.access_share).sum())
                    && zones.iter().all(|zone| zone.space_share > 0.0 && zone.access_share >= 0.0);
                (!holds).then(|| (format!("{zones:?}"), "the zones' shares add up to 1 each"))
            }
        }
    }
}

/// Draws places of a region of `places` equal places, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct PlaceSampler {
    places: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    /// Per zone: cumulated access share, first place, number of places.
    Zones(Vec<(f64, u64, u64)>),
}

impl PlaceSampler {
    pub(super) fn new(locality: &Locality, places: u64) -> PlaceSampler {
        assert!(places > 0, "the workload was checked");
        let kind = match locality {
            Locality::Uniform => Kind::Uniform,
            Locality::Zipf { exponent } => Kind::Zipf(Zipf::new(places, *exponent)),
            Locality::Zones(zones) => Kind::Zones(cumulated(zones, places)),
        };
        PlaceSampler { places, kind }
    }

    pub(super) fn sample(&self, random: &mut Pcg64) -> u64 {
        match &self.kind {
            Kind::Uniform => below(random, self.places),
            Kind::Zipf(zipf) => scatter(zipf.rank(random), self.places),
            Kind::Zones(zones) => {
                let access = fraction(random);
                let found = zones.iter().find(|(cumulated, _, _)| access < *cumulated);
                // Rounding may leave the last cumulated share a little below 1.
                let (_, first, count) = found.or(zones.last()).expect("the workload was checked");
                first + below(random, *count)
            }
        }
    }
}

fn cumulated(zones: &[Zone], places: u64) -> Vec<(f64, u64, u64)> {
    let (mut space, mut access, mut first) = (0.0, 0.0, 0);
    let mut cumulated = Vec::with_capacity(zones.len());
    for zone in zones {
        space += zone.space_share;
        access += zone.access_share;
        let end = ((space * places as f64).round() as u64).clamp(first + 1, places.max(first + 1));
        // A zone too small for a place of its own shares the last one.
        let begin = first.min(places - 1);
        cumulated.push((access, begin, (end - first).min(places - begin)));
        first = end.min(places);
    }
    cumulated
}

/// A uniform number in 0..n. The bias is below n / 2^64.
pub(super) fn below(random: &mut Pcg64, n: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(n)) >> 64) as u64
}

/// A permutation of 0..places: an odd multiplier and a shift-xor in the next power of two, walked until
/// the value lies inside. At most a few steps, as at least half of the values do.
fn scatter(rank: u64, places: u64) -> u64 {
    let bits = (64 - (places - 1).leading_zeros()).max(1);
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut value = rank;
    loop {
        value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
        value ^= value >> (bits / 2).max(1);
        value = value.wrapping_mul(0xD134_2543_DE82_EF95) & mask;
        if value < places {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Locality, PlaceSampler, Zone, scatter};
    use proptest::prelude::{prop_assert, proptest};
    use std::collections::HashSet;
    use underlay_core::RootSeed;

    fn counts(locality: &Locality, places: u64, draws: u32) -> Vec<u32> {
        let sampler = PlaceSampler::new(locality, places);
        let mut random = RootSeed(5).stream("test", 0);
        let mut counts = vec![0; places as usize];
        (0..draws).for_each(|_| counts[sampler.sample(&mut random) as usize] += 1);
        counts
    }

    #[test]
    fn uniform_places_are_equally_likely() {
        let counts = counts(&Locality::Uniform, 50, 100_000);
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn popular_places_are_scattered() {
        let counts = counts(&Locality::Zipf { exponent: 1.1 }, 10_000, 100_000);
        let mut popular: Vec<usize> = (0..counts.len()).collect();
        popular.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
        let in_first_half = popular[..100].iter().filter(|place| **place < 5_000).count();
        assert!((25..=75).contains(&in_first_half), "{in_first_half} of 100");
    }

    #[test]
    fn zones_get_their_share_of_the_accesses() {
        // 95 % of the accesses in 5 % of the space, 4 % in the next 10 %.
        let zones = [(0.05, 0.95), (0.10, 0.04), (0.85, 0.01)];
        let zones = zones.map(|(space_share, access_share)| Zone { space_share, access_share });
        let counts = counts(&Locality::Zones(zones.to_vec()), 1000, 100_000);
        let share = |range: std::ops::Range<usize>| counts[range].iter().sum::<u32>() as f64 / 1e5;
        assert!((share(0..50) - 0.95).abs() < 0.005);
        assert!((share(50..150) - 0.04).abs() < 0.005);
        assert!((share(150..1000) - 0.01).abs() < 0.005);
    }

    proptest! {
        #[test]
        fn scattering_is_a_permutation(places in 1u64..3000) {
            let seen: HashSet<u64> = (0..places).map(|rank| scatter(rank, places)).collect();
            prop_assert!(seen.len() as u64 == places && seen.iter().all(|place| *place < places));
        }

        #[test]
        fn zones_never_leave_the_region(places in 1u64..50, a in 0.01f64..0.98) {
            let zones = vec![
                Zone { space_share: a, access_share: 0.5 },
                Zone { space_share: (1.0 - a) / 2.0, access_share: 0.3 },
                Zone { space_share: (1.0 - a) / 2.0, access_share: 0.2 },
            ];
            let sampler = PlaceSampler::new(&Locality::Zones(zones), places);
            let mut random = RootSeed(1).stream("test", 0);
            for _ in 0..200 {
                prop_assert!(sampler.sample(&mut random) < places);
            }
        }
    }
}
