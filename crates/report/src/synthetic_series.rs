//! Series with known truth for tests: autocorrelated noise, checkpoint dips, exponential latencies.
//!
//! Only compiled for tests. Everything is drawn from named, seeded streams.

use rand::RngExt;
use rand_pcg::Pcg64;
use underlay_core::RootSeed;

/// The stream of one simulated series.
pub(crate) fn stream(name: &str, seed: u64) -> Pcg64 {
    RootSeed(20_260_101).stream(name, seed)
}

/// A standard normal value (Box and Muller).
pub(crate) fn normal(random: &mut Pcg64) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// An exponential value with this mean.
pub(crate) fn exponential(random: &mut Pcg64, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

/// A stationary AR(1) series with this mean and standard deviation.
pub(crate) fn ar1(
    random: &mut Pcg64,
    length: usize,
    correlation: f64,
    mean: f64,
    deviation: f64,
) -> Vec<f64> {
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut state = normal(random);
    (0..length)
        .map(|_| {
            state = correlation * state + innovation * normal(random);
            mean + deviation * state
        })
        .collect()
}

/// A throughput that dips during checkpoints every 60 s.
pub(crate) mod dips {
    use rand_pcg::Pcg64;

    use super::normal;

    /// The true mean: 50 s at 1000, 10 s at 400.
    pub(crate) const MEAN: f64 = 900.0;

    /// The series, with noise of 5 %.
    pub(crate) fn series(random: &mut Pcg64, length: usize) -> Vec<f64> {
        (0..length)
            .map(|second| {
                let level = if second % 60 < 10 { 400.0 } else { 1000.0 };
                level + 50.0 * normal(random)
            })
            .collect()
    }
}
