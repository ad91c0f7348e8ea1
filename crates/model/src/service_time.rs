//! Sampling how long a unit of a device is occupied: lognormal, with a rare slow class.
//!
//! The lognormal is drawn from a table of its quantiles, because a device model is asked millions of
//! times per second and a table costs one random number. The table is cut at probability 1/8192 on
//! either side; what lies beyond is the slow class's business.

use rand::Rng;
use rand_pcg::Pcg64;
use std::sync::Arc;
use underlay_core::Nanos;

/// Entries of the quantile table; a power of two so that random bits select one.
const TABLE_SIZE: usize = 4096;

/// A distribution of service times.
#[derive(Clone, Debug)]
pub(crate) struct ServiceTime {
    /// Quantiles at the middle of each of [`TABLE_SIZE`] equally likely classes, in ns.
    quantiles_ns: Arc<[u64]>,
    /// A 32-bit random number below this means slow.
    slow_threshold: u64,
    /// Mean addition of a slow operation.
    slow: Nanos,
}

impl ServiceTime {
    /// Lognormal with the given mean and coefficient of variation: `sigma^2 = ln(1 + cv^2)`,
    /// `mu = ln(mean) - sigma^2 / 2`; with probability `slow_probability`, `slow` x U(0.5, 1.5) is added.
    pub(crate) fn new(mean: Nanos, cv: f64, slow_probability: f64, slow: Nanos) -> ServiceTime {
        assert!(cv >= 0.0 && (0.0..=1.0).contains(&slow_probability), "the profile was checked");
        ServiceTime {
            quantiles_ns: lognormal_quantiles(mean.0 as f64, cv),
            slow_threshold: (slow_probability * (1u64 << 32) as f64).round() as u64,
            slow,
        }
    }

    /// Uses the table of another distribution if it is the same: the tables of many devices do not fit into a cache.
    pub(crate) fn share(&mut self, other: &ServiceTime) {
        if self.quantiles_ns == other.quantiles_ns {
            self.quantiles_ns = Arc::clone(&other.quantiles_ns);
        }
    }

    /// One draw.
    pub(crate) fn sample(&self, random: &mut Pcg64) -> Nanos {
        let bits = random.next_u64();
        let regular_ns = self.quantiles_ns[(bits >> 52) as usize];
        if (bits & 0xffff_ffff) >= self.slow_threshold {
            return Nanos(regular_ns);
        }
        let factor = 0.5 + unit_interval(random);
        Nanos(regular_ns + (self.slow.0 as f64 * factor) as u64)
    }
}

/// A uniform number in 0..1.
pub(crate) fn unit_interval(random: &mut Pcg64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn lognormal_quantiles(mean_ns: f64, cv: f64) -> Arc<[u64]> {
    let sigma = (1.0 + cv * cv).ln().sqrt();
    let raw: Vec<f64> = (0..TABLE_SIZE)
        .map(|i| (sigma * normal_quantile((i as f64 + 0.5) / TABLE_SIZE as f64)).exp())
        .collect();
    // Cutting the tails and discretising shifts the mean a little: put it back exactly.
    let scale = mean_ns * TABLE_SIZE as f64 / raw.iter().sum::<f64>();
    raw.into_iter().map(|value| (value * scale).round() as u64).collect()
}

/// The inverse of the standard normal distribution function for `p` in 0..1 (exclusive).
///
/// Rational approximation of P. J. Acklam, relative error below 1.15e-9.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    const LOW: f64 = 0.02425;
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p < LOW {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    } else if p <= 1.0 - LOW {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    } else {
        -normal_quantile(1.0 - p)
    }
}

#[cfg(test)]
mod tests {
    use super::{ServiceTime, normal_quantile};
    use underlay_core::{Nanos, RootSeed};

    #[test]
    fn normal_quantiles_are_right() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959964), (0.001, -3.090232), (0.9999, 3.719016)] {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn mean_and_variation_are_those_asked_for() {
        let service = ServiceTime::new(Nanos::from_micros(57), 0.4, 0.0, Nanos::ZERO);
        let mut random = RootSeed(1).stream("test", 0);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| service.sample(&mut random).0 as f64).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean / 57_000.0 - 1.0).abs() < 0.005, "{mean}");
        assert!((variance.sqrt() / mean / 0.4 - 1.0).abs() < 0.02, "{}", variance.sqrt() / mean);
    }

    #[test]
    fn slow_class_has_its_share_and_size() {
        let service = ServiceTime::new(Nanos::from_micros(10), 0.0, 0.02, Nanos::from_micros(100));
        let mut random = RootSeed(2).stream("test", 0);
        let n = 200_000;
        let slow: Vec<u64> =
            (0..n).map(|_| service.sample(&mut random).0).filter(|ns| *ns > 10_000).collect();
        let share = slow.len() as f64 / f64::from(n);
        assert!((share / 0.02 - 1.0).abs() < 0.06, "{share}");
        assert!(slow.iter().all(|ns| (60_000..=160_000).contains(ns)));
        let mean = slow.iter().sum::<u64>() as f64 / slow.len() as f64;
        assert!((mean / 110_000.0 - 1.0).abs() < 0.02, "{mean}");
    }
}
