//! The shape of a user ladder: the Universal Scalability Law, with its parameters kept in their ranges.
//!
//! Gunther (1993): `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))` with contention `sigma` in
//! `0..=1` and coherency `kappa >= 0`. Unconstrained fits return negative coherency and a maximum at
//! minus a few users; here such values cannot occur, and ladders too short to fit are refused.

/// Rungs below which three parameters mean nothing.
const FEWEST_RUNGS: usize = 6;

/// A fitted law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// Throughput of one user.
    pub lambda: f64,
    /// Contention: share of the work that is serial.
    pub sigma: f64,
    /// Coherency: cost of users keeping up with each other.
    pub kappa: f64,
    /// Root mean square of the relative errors.
    pub relative_error: f64,
}

impl Scalability {
    /// The throughput that the law gives to `users`.
    pub fn throughput(&self, users: f64) -> f64 {
        self.lambda * users
            / (1.0 + self.sigma * (users - 1.0) + self.kappa * users * (users - 1.0))
    }
}

/// Fits the law to `(users, throughput)`; `None` of fewer than 6 rungs with positive throughput.
///
/// Minimises the squared relative errors. For given sigma and kappa the best lambda is known in closed
/// form; sigma and kappa are found on a grid that is refined around its best point.
pub fn fit_scalability(ladder: &[(f64, f64)]) -> Option<Scalability> {
    let rungs: Vec<(f64, f64)> =
        ladder.iter().copied().filter(|(users, x)| *users > 0.0 && *x > 0.0).collect();
    if rungs.len() < FEWEST_RUNGS {
        return None;
    }
    let largest = rungs.iter().map(|(users, _)| *users).fold(1.0, f64::max);
    let (mut centre, mut reach) = ((0.5, 0.5), (0.5, 0.5));
    let mut best = evaluate(&rungs, 0.0, 0.0);
    for _ in 0..40 {
        for i in -8..=8 {
            for j in -8..=8 {
                let u = (centre.0 + reach.0 * f64::from(i) / 8.0).clamp(0.0, 1.0);
                let v = (centre.1 + reach.1 * f64::from(j) / 8.0).clamp(0.0, 1.0);
                // Squares resolve small values; coherency matters in units of 1 / N^2.
                let candidate = evaluate(&rungs, u * u, v * v * 10.0 / largest);
                if candidate.relative_error < best.relative_error {
                    best = candidate;
                }
            }
        }
        centre = (best.sigma.sqrt(), (best.kappa * largest / 10.0).sqrt());
        reach = (reach.0 * 0.7, reach.1 * 0.7);
    }
    Some(best)
}

fn evaluate(rungs: &[(f64, f64)], sigma: f64, kappa: f64) -> Scalability {
    let unit = Scalability { lambda: 1.0, sigma, kappa, relative_error: 0.0 };
    let shapes: Vec<f64> = rungs.iter().map(|(users, x)| unit.throughput(*users) / x).collect();
    // Least squares of (lambda * shape - 1).
    let lambda = shapes.iter().sum::<f64>() / shapes.iter().map(|shape| shape * shape).sum::<f64>();
    let squares: f64 = shapes.iter().map(|shape| (lambda * shape - 1.0).powi(2)).sum();
    Scalability { lambda, sigma, kappa, relative_error: (squares / rungs.len() as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::{Scalability, fit_scalability};

    const USERS: [f64; 8] = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0];

    fn ladder(law: &Scalability) -> Vec<(f64, f64)> {
        USERS.iter().map(|users| (*users, law.throughput(*users))).collect()
    }

    #[test]
    fn recovers_a_known_law() {
        let law = Scalability { lambda: 1000.0, sigma: 0.05, kappa: 0.001, relative_error: 0.0 };
        let found = fit_scalability(&ladder(&law)).unwrap();
        assert!((found.lambda / law.lambda - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.sigma - law.sigma).abs() < 0.003, "{found:?}");
        assert!((found.kappa - law.kappa).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn a_flat_ladder_is_all_contention() {
        let flat: Vec<(f64, f64)> = USERS.iter().map(|users| (*users, 250.0)).collect();
        let found = fit_scalability(&flat).unwrap();
        assert!(found.sigma > 0.95 && found.sigma <= 1.0, "{found:?}");
    }

    #[test]
    fn a_straight_ladder_has_no_contention_and_no_negative_parameter() {
        let straight: Vec<(f64, f64)> = USERS.iter().map(|users| (*users, 80.0 * users)).collect();
        let found = fit_scalability(&straight).unwrap();
        assert!(found.sigma < 1e-3 && found.kappa >= 0.0 && found.kappa < 1e-4, "{found:?}");
        assert_eq!(fit_scalability(&straight[..5]), None);
    }
}
