//! How ids are drawn: sysbench's `--rand-type` and its parameters, with the defaults of both versions.
//!
//! | distribution | parameters (default) | default of |
//! |---|---|---|
//! | uniform | | sysbench master |
//! | special | 12 draws, 1 % of the values, 75 % of the accesses | sysbench 1.0 |
//! | gaussian | 12 draws | |
//! | pareto | h = 0.2 | |
//! | zipfian | exponent 0.8 | |
//!
//! Hot ids lie next to each other (in the middle for special and gaussian, at the low end for pareto and zipfian),
//! as sysbench's do: hot rows share pages. Values are `1..=n`.

use std::fmt;
use std::str::FromStr;
use underlay_core::Words;

use rand_pcg::Pcg64;

use crate::draw::{below, unit_interval};
use crate::zipf::Zipf;

/// Draws averaged for a bell-shaped value.
const DRAWS: u64 = 12;
/// Share of the values that are special, and of the accesses that go to them.
const SPECIAL_VALUES: f64 = 0.01;
const SPECIAL_ACCESSES: f64 = 0.75;
/// The parameter h of the Pareto distribution: a share 1 - h of the accesses goes to a share h of the values.
const PARETO_H: f64 = 0.2;
/// The exponent of the Zipf distribution.
const ZIPFIAN_EXPONENT: f64 = 0.8;

/// How ids are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// All equally likely.
    Uniform,
    /// A few in the middle get most of the accesses, the others are bell-shaped.
    Special,
    /// Bell-shaped: the mean of twelve uniform draws.
    Gaussian,
    /// Self-similar: 80 % of the accesses go to the lowest 20 %, and so on within these.
    Pareto,
    /// By rank.
    Zipfian,
}

/// A word that names no [`Distribution`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a distribution; use uniform, special, gaussian, pareto or zipfian")]
pub struct UnknownDistribution(String);

impl Distribution {
    /// All distributions.
    pub const ALL: [Distribution; 5] = [
        Distribution::Uniform,
        Distribution::Special,
        Distribution::Gaussian,
        Distribution::Pareto,
        Distribution::Zipfian,
    ];

    /// The default of sysbench 1.0.
    pub const DEFAULT_OF_1_0: Distribution = Distribution::Special;
    /// The default of sysbench's development branch, and ours.
    pub const DEFAULT_OF_MASTER: Distribution = Distribution::Uniform;

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Special => "special",
            Distribution::Gaussian => "gaussian",
            Distribution::Pareto => "pareto",
            Distribution::Zipfian => "zipfian",
        }
    }

    /// Values `1..=values`.
    pub fn sampler(self, values: u32) -> Sampler {
        assert!(values > 0, "a distribution over nothing");
        let kind = match self {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Special => Kind::Special,
            Distribution::Gaussian => Kind::Gaussian,
            Distribution::Pareto => Kind::Pareto { power: PARETO_H.ln() / (1.0 - PARETO_H).ln() },
            Distribution::Zipfian => Kind::Zipfian(Zipf::new(u64::from(values), ZIPFIAN_EXPONENT)),
        };
        Sampler { values, kind }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Words for Distribution {
    const NAME: &'static str = "distribution";

    fn all() -> &'static [Distribution] {
        &Distribution::ALL
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(word: &str) -> Result<Distribution, UnknownDistribution> {
        Distribution::ALL
            .into_iter()
            .find(|distribution| distribution.as_str() == word)
            .ok_or_else(|| UnknownDistribution(word.to_string()))
    }
}

/// A distribution over `1..=values`, ready to draw from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    values: u32,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Uniform,
    Special,
    Gaussian,
    Pareto { power: f64 },
    Zipfian(Zipf),
}

impl Sampler {
    /// A value.
    pub fn sample(&self, random: &mut Pcg64) -> u32 {
        let values = u64::from(self.values);
        let zero_based = match &self.kind {
            Kind::Uniform => below(random, values),
            Kind::Special => special(random, values),
            Kind::Gaussian => bell(random, values),
            Kind::Pareto { power } => {
                // (0, 1] to [0, 1): the highest value must not be drawn beyond the last one.
                let unit = 1.0 - unit_interval(random);
                (values as f64 * unit.powf(*power)) as u64
            }
            Kind::Zipfian(zipf) => zipf.rank(random),
        };
        zero_based.min(values - 1) as u32 + 1
    }
}

/// The mean of some uniform draws, rounded down.
fn bell(random: &mut Pcg64, values: u64) -> u64 {
    (0..DRAWS).map(|_| below(random, values)).sum::<u64>() / DRAWS
}

fn special(random: &mut Pcg64, values: u64) -> u64 {
    if unit_interval(random) > SPECIAL_ACCESSES {
        return bell(random, values);
    }
    let hot = ((values as f64 * SPECIAL_VALUES) as u64).max(1);
    values / 2 - hot / 2 + below(random, hot)
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Sampler};
    use proptest::prelude::{prop_assert, proptest};
    use underlay_core::RootSeed;

    const DRAWN: u32 = 200_000;

    fn counts(distribution: Distribution, values: u32) -> Vec<u64> {
        let sampler: Sampler = distribution.sampler(values);
        let mut random = RootSeed(5).stream("test", 0);
        let mut counts = vec![0; values as usize];
        (0..DRAWN).for_each(|_| counts[sampler.sample(&mut random) as usize - 1] += 1);
        counts
    }

    fn share(counts: &[u64]) -> f64 {
        counts.iter().sum::<u64>() as f64 / f64::from(DRAWN)
    }

    /// Chi-square against expected shares; the limit is six standard deviations above its mean.
    fn assert_shares(counts: &[u64], expected: impl Fn(usize) -> f64) {
        let chi: f64 = counts
            .iter()
            .enumerate()
            .map(|(at, count)| {
                let wanted = expected(at) * f64::from(DRAWN);
                (*count as f64 - wanted).powi(2) / wanted
            })
            .sum();
        let freedom = counts.len() as f64 - 1.0;
        let limit = freedom + 6.0 * (2.0 * freedom).sqrt();
        assert!(chi < limit, "chi-square {chi:.1}, limit {limit:.1}");
    }

    #[test]
    fn uniform_is_uniform() {
        assert_shares(&counts(Distribution::Uniform, 100), |_| 0.01);
    }

    #[test]
    fn zipfian_has_the_probabilities_of_its_ranks() {
        let norm: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.8)).sum();
        assert_shares(&counts(Distribution::Zipfian, 100), |at| {
            ((at + 1) as f64).powf(-0.8) / norm
        });
    }

    #[test]
    fn pareto_is_self_similar() {
        // P(value <= x) = x^(1 / power): a fifth of the values gets four fifths of the accesses, at each level.
        let inverse = 0.8f64.ln() / 0.2f64.ln();
        let below = |x: f64| x.powf(inverse);
        assert_shares(&counts(Distribution::Pareto, 50), |at| {
            below((at + 1) as f64 / 50.0) - below(at as f64 / 50.0)
        });
        assert!((below(0.2) - 0.8).abs() < 1e-12 && (below(0.04) - 0.64).abs() < 1e-12);
    }

    #[test]
    fn gaussian_has_the_moments_of_a_mean_of_twelve() {
        let counts = counts(Distribution::Gaussian, 1_000);
        let moment = |power: i32, about: f64| {
            counts
                .iter()
                .enumerate()
                .map(|(at, count)| (at as f64 - about).powi(power) * *count as f64)
                .sum::<f64>()
                / f64::from(DRAWN)
        };
        let mean = moment(1, 0.0);
        // Rounding down takes half a value off the mean of 499.5; the variance is that of one draw over 12.
        assert!((mean - 499.0).abs() < 1.5, "{mean}");
        let variance = moment(2, mean);
        let expected = (1_000.0f64.powi(2) - 1.0) / 12.0 / 12.0;
        assert!((variance / expected - 1.0).abs() < 0.02, "{variance} of {expected}");
    }

    #[test]
    fn special_gives_most_accesses_to_one_percent_in_the_middle() {
        let counts = counts(Distribution::Special, 10_000);
        let hot = share(&counts[4_950..5_050]);
        // Three quarters, and the bell's share of the same values.
        assert!((0.75..0.80).contains(&hot), "{hot}");
        assert_shares(&counts[4_950..5_050], |_| hot / 100.0);
        assert!(share(&counts[..1_000]) < 0.001 && share(&counts[9_000..]) < 0.001);
    }

    #[test]
    fn words_are_read_back() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.as_str().parse(), Ok(distribution));
        }
        assert!("normal".parse::<Distribution>().is_err());
        assert_eq!(Distribution::DEFAULT_OF_1_0.as_str(), "special");
        assert_eq!(Distribution::DEFAULT_OF_MASTER.as_str(), "uniform");
    }

    proptest! {
        #[test]
        fn no_value_lies_outside(values in 1u32..5_000, kind in 0usize..5, seed in 0u64..1_000) {
            let sampler = Distribution::ALL[kind].sampler(values);
            let mut random = RootSeed(seed).stream("test", 0);
            for _ in 0..200 {
                let value = sampler.sample(&mut random);
                prop_assert!(value >= 1 && value <= values, "{} of {}", value, values);
            }
        }
    }
}
