//! When a device has settled: the two criteria of the SNIA Solid State Storage Performance Test
//! Specification, over the last five rounds of the tracked figure.
//!
//! The window is steady when its range is at most 20 % of its mean, and the least-squares line through it
//! rises or falls by at most 10 % of the mean *from its first to its last round* (the excursion, which
//! is slope x 4 for five rounds; a slope per round compared with the same limit would be four times too
//! lenient). Pure: values in, verdict out. Who runs rounds, and until when, is not decided here.

/// Rounds of the window.
pub const WINDOW_ROUNDS: usize = 5;
/// Largest range, as a share of the mean.
pub const RANGE_MAX: f64 = 0.20;
/// Largest excursion of the fitted line, as a share of the mean.
pub const EXCURSION_MAX: f64 = 0.10;
/// Rounds after which the specification gives up.
pub const ROUNDS_MAX: u32 = 25;

/// What the last rounds look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// Mean over the window.
    pub mean: f64,
    /// Largest minus smallest value, as a share of the mean.
    pub range_share: f64,
    /// Change of the fitted line over the window, as a share of the mean. Never negative.
    pub excursion_share: f64,
}

impl SteadyState {
    /// Whether both criteria hold.
    pub fn is_steady(&self) -> bool {
        self.range_share <= RANGE_MAX && self.excursion_share <= EXCURSION_MAX
    }
}

/// Judges the last five values; `None` when there are fewer, or their mean is not above zero.
pub fn steady_state(rounds: &[f64]) -> Option<SteadyState> {
    let window = &rounds[rounds.len().checked_sub(WINDOW_ROUNDS)?..];
    let count = WINDOW_ROUNDS as f64;
    let mean = window.iter().sum::<f64>() / count;
    if mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let largest = window.iter().copied().fold(f64::MIN, f64::max);
    let smallest = window.iter().copied().fold(f64::MAX, f64::min);
    let middle = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (round, value) in window.iter().enumerate() {
        let distance = round as f64 - middle;
        above += distance * (value - mean);
        below += distance * distance;
    }
    let excursion = (above / below * (count - 1.0)).abs();
    Some(SteadyState {
        mean,
        range_share: (largest - smallest) / mean,
        excursion_share: excursion / mean,
    })
}

#[cfg(test)]
mod tests {
    use super::steady_state;
    use proptest::prelude::{prop_assert, prop_assume, proptest};

    #[test]
    fn fewer_than_five_rounds_say_nothing() {
        assert_eq!(steady_state(&[100.0; 4]), None);
        assert_eq!(steady_state(&[0.0; 5]), None);
        assert!(steady_state(&[100.0; 5]).is_some_and(|state| state.is_steady()));
    }

    #[test]
    fn only_the_last_five_rounds_count() {
        let falling = [900.0, 500.0, 300.0, 101.0, 100.0, 99.0, 100.0, 101.0];
        assert!(steady_state(&falling).is_some_and(|state| state.is_steady()));
        assert!(!steady_state(&falling[..7]).is_some_and(|state| state.is_steady()));
    }

    #[test]
    fn a_slope_within_the_range_is_not_steady() {
        // From 94 to 106: a range of 12 %, but a line that rises by 12 % over the window.
        let state = steady_state(&[94.0, 97.0, 100.0, 103.0, 106.0]).unwrap();
        assert!((state.range_share - 0.12).abs() < 1e-9);
        assert!((state.excursion_share - 0.12).abs() < 1e-9);
        assert!(!state.is_steady());
        // The same values without a direction are.
        let mixed = steady_state(&[106.0, 94.0, 100.0, 97.0, 103.0]).unwrap();
        assert!(mixed.is_steady(), "{mixed:?}");
    }

    #[test]
    fn a_range_without_slope_is_not_steady() {
        let state = steady_state(&[100.0, 85.0, 100.0, 106.0, 100.0]).unwrap();
        assert!(state.range_share > 0.2 && !state.is_steady(), "{state:?}");
    }

    proptest! {
        /// Neither the unit nor the direction of time changes the verdict, and the line never leaves the
        /// values by more than their range allows.
        #[test]
        fn the_verdict_has_no_unit(values in proptest::collection::vec(1.0f64..1e6, 5), factor in 0.001f64..1e3) {
            let state = steady_state(&values).unwrap();
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let other = steady_state(&scaled).unwrap();
            prop_assert!((state.range_share - other.range_share).abs() < 1e-9);
            prop_assert!((state.excursion_share - other.excursion_share).abs() < 1e-9);
            let mut reversed = values.clone();
            reversed.reverse();
            let back = steady_state(&reversed).unwrap();
            prop_assume!(state.mean > 0.0);
            prop_assert!((state.excursion_share - back.excursion_share).abs() < 1e-9);
            prop_assert!(state.excursion_share <= 1.21 * state.range_share + 1e-9);
        }
    }
}
