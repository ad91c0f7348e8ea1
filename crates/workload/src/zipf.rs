//! The Zipf distribution over ranks, shared by block and database workloads.

use rand_pcg::Pcg64;

use crate::draw::fraction;

/// Ranks 0.. of a Zipf distribution over `places` places, by rejection-inversion.
///
/// W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6 (1996). `exponent` is the paper's q, ranks are k - 1, `h` is the integral
/// of the hat x^-q and `h_inverse` its inverse. Constant time, no table, whatever the number of places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zipf {
    exponent: f64,
    places: f64,
    h_first: f64,
    h_last: f64,
    squeeze: f64,
}

impl Zipf {
    /// Over `places` places, more than 0.
    pub(crate) fn new(places: u64, exponent: f64) -> Zipf {
        let mut zipf =
            Zipf { exponent, places: places as f64, h_first: 0.0, h_last: 0.0, squeeze: 0.0 };
        zipf.h_first = zipf.h(1.5) - 1.0;
        zipf.h_last = zipf.h(zipf.places + 0.5);
        zipf.squeeze = 2.0 - zipf.h_inverse(zipf.h(2.5) - 2f64.powf(-exponent));
        zipf
    }

    /// A rank, from 0.
    pub(crate) fn rank(&self, random: &mut Pcg64) -> u64 {
        loop {
            let u = self.h_last + fraction(random) * (self.h_first - self.h_last);
            let x = self.h_inverse(u);
            let k = x.round().clamp(1.0, self.places);
            if k - x <= self.squeeze || u >= self.h(k + 0.5) - k.powf(-self.exponent) {
                return k as u64 - 1;
            }
        }
    }

    fn h(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over((1.0 - self.exponent) * log) * log
    }

    fn h_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        (ln1p_over(t) * x).exp()
    }
}

/// (e^x - 1) / x, continuous at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, continuous at 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::Zipf;
    use underlay_core::RootSeed;

    #[test]
    fn zipf_ranks_have_their_probabilities() {
        for exponent in [0.5, 0.99, 1.0, 1.2, 2.0] {
            let zipf = Zipf::new(1000, exponent);
            let mut random = RootSeed(6).stream("test", 0);
            let draws = 200_000;
            let mut counts = vec![0u32; 1000];
            (0..draws).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1);
            let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-exponent)).sum();
            for k in [1usize, 2, 3, 10] {
                let expected = f64::from(draws) * (k as f64).powf(-exponent) / norm;
                let deviation = (f64::from(counts[k - 1]) - expected).abs();
                assert!(
                    deviation < 5.0 * expected.sqrt(),
                    "{exponent} {k}: {deviation} off {expected}"
                );
            }
        }
    }
}
