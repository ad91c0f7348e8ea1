//! Numbers over the runs of a design, with the interval that their number allows.

use crate::analysis::{Basis, Estimate};
use crate::observed::WindowFacts;
use crate::statistics::{MeanInterval, mean, t_interval};

/// A number of each run, in their order: its mean over the time of the run's windows. Of those a load that is repeated in
/// rounds has several, which are parts of one run and no repeats of it.
pub(crate) fn by_run(
    windows: &[&WindowFacts],
    of: impl Fn(&WindowFacts) -> Option<f64>,
) -> Vec<Option<f64>> {
    windows
        .chunk_by(|a, b| a.run == b.run)
        .map(|windows| match windows {
            [only] => of(only),
            _ => {
                let values: Option<Vec<(f64, f64)>> =
                    windows.iter().map(|window| Some((of(window)?, window.load.seconds))).collect();
                let values = values?;
                let seconds: f64 = values.iter().map(|(_, seconds)| seconds).sum();
                let sum: f64 = values.iter().map(|(value, seconds)| value * seconds).sum();
                (seconds > 0.0).then(|| sum / seconds)
            }
        })
        .collect()
}

/// A non-negative number over runs: their mean with Student's interval, cut at 0.
///
/// A single run has the interval `within` (batch means of its seconds), which is marked as such.
pub(crate) fn over_runs(runs: Vec<Option<f64>>, within: Option<MeanInterval>) -> Estimate {
    let present: Vec<f64> = runs.iter().flatten().copied().collect();
    let value = mean(&present);
    let (half_width, basis) = match (t_interval(&present), within) {
        (Some(interval), _) => (Some(interval.half_width), Basis::Runs),
        (None, Some(within)) if present.len() == 1 => (Some(within.half_width), Basis::WithinRun),
        _ => (None, Basis::None),
    };
    let around = value.zip(half_width);
    Estimate {
        value,
        low: around.map(|(value, half_width)| (value - half_width).max(0.0)),
        high: around.map(|(value, half_width)| value + half_width),
        basis,
        runs,
    }
}

#[cfg(test)]
mod tests {
    use super::over_runs;
    use crate::analysis::Basis;
    use crate::statistics::MeanInterval;

    #[test]
    fn the_interval_says_what_it_covers() {
        let within = Some(MeanInterval { mean: 10.0, half_width: 1.0, n: 10 });
        let one = over_runs(vec![Some(10.0), None], within);
        assert_eq!((one.value, one.low, one.basis), (Some(10.0), Some(9.0), Basis::WithinRun));
        let two = over_runs(vec![Some(10.0), Some(12.0)], within);
        assert_eq!((two.value, two.basis), (Some(11.0), Basis::Runs));
        assert_eq!(two.low, Some(0.0), "11 - 12.7 is cut at zero");
        let none = over_runs(vec![None], None);
        assert_eq!((none.value, none.basis), (None, Basis::None));
    }
}
