//! Whether throughput was steady over a window, and what its length does not allow to tell.

use crate::analysis::{Steady, SteadyState};
use crate::statistics::{change_points, drift, effective_samples, mser5};
use crate::wording::{amount, percent};

/// Windows shorter than this are not judged, seconds.
pub(crate) const SHORTEST_S: f64 = 30.0;
/// Values from which on a window is long: MSER-5 finds the end of a warm-up, with fewer it often cuts at
/// random.
const LONG_WINDOW: usize = 100;
/// Trends below this are accepted, relative to the mean.
const LARGEST_DRIFT: f64 = 0.02;
/// And those that chance produces more often than this, in long and in short windows. Stricter in short ones,
/// because in half a minute of correlated seconds the test finds a trend of p < 0.01 in 4 to 7 % of the
/// cases where there is none.
const DRIFT_P: (f64, f64) = (0.01, 0.002);

/// Judges the values of equally long ticks that begin at `begin_s`.
pub(crate) fn judge(values: &[f64], seconds: f64, begin_s: f64) -> Steady {
    let per_value = seconds / values.len().max(1) as f64;
    let trim = mser5(values).filter(|_| values.len() >= LONG_WINDOW);
    let rest = &values[trim.map_or(0, |trim| if trim.settled { trim.values } else { 0 })..];
    let cut = values.len() - rest.len();
    let points = change_points(rest);
    let trend = drift(rest);
    let drift_p = if values.len() >= LONG_WINDOW { DRIFT_P.0 } else { DRIFT_P.1 };
    let mut steady = Steady {
        state: SteadyState::Steady,
        text: String::new(),
        trimmed_s: trim.map(|trim| trim.values as f64 * per_value),
        drift: trend.map(|trend| trend.relative),
        change_points_s: points
            .iter()
            .map(|point| begin_s + (cut + point.index) as f64 * per_value)
            .collect(),
        effective_samples: effective_samples(values),
    };
    if seconds < SHORTEST_S {
        steady.state = SteadyState::TooShort;
        steady.text = format!(
            "a window of {} s is too short to judge steadiness (at least {SHORTEST_S:.0} s)",
            amount(seconds)
        );
        return steady;
    }
    let mut reasons = Vec::new();
    if trim.is_some_and(|trim| !trim.settled) {
        reasons.push("it never settles (MSER-5 would cut more than half)".to_string());
    }
    for point in &points {
        reasons.push(format!(
            "the level changes by {} at {:.0} s into the window",
            signed_percent(point.relative),
            (cut + point.index) as f64 * per_value
        ));
    }
    if let Some(trend) = trend.filter(|t| t.p < drift_p && t.relative.abs() >= LARGEST_DRIFT) {
        reasons.push(format!("it drifts by {} over the window", signed_percent(trend.relative)));
    }
    if !reasons.is_empty() {
        steady.state = SteadyState::NotSteady;
        steady.text = reasons.join("; ");
    } else {
        steady.text = accepted(&steady, trim.is_some());
    }
    steady
}

fn accepted(steady: &Steady, warm_up_judged: bool) -> String {
    let drift = steady.drift.map_or(String::new(), |drift| {
        format!(" (trend {} over the window, within chance or below 2 %)", signed_percent(drift))
    });
    let warm_up = match (warm_up_judged, steady.trimmed_s) {
        (true, Some(trimmed)) if trimmed > 0.0 => {
            format!("; MSER-5 would cut the first {trimmed:.0} s")
        }
        (true, _) => String::new(),
        (false, _) => "; too short to judge the end of the warm-up".to_string(),
    };
    format!("no step and no trend found{drift}{warm_up}")
}

fn signed_percent(share: f64) -> String {
    if share > 0.0 { format!("+{}", percent(share)) } else { percent(share) }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::analysis::SteadyState;
    use crate::synthetic_series::{ar1, stream};

    fn shaped(seed: u64, length: usize, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        ar1(&mut stream("steady", seed), length, 0.7, 1000.0, 40.0)
            .iter()
            .enumerate()
            .map(|(i, value)| value * shape(i as f64 / length as f64))
            .collect()
    }

    fn count(state: SteadyState, shape: impl Fn(f64) -> f64 + Copy, length: usize) -> usize {
        (0..50)
            .filter(|seed| judge(&shaped(*seed, length, shape), length as f64, 0.0).state == state)
            .count()
    }

    #[test]
    fn steady_windows_are_accepted() {
        assert!(count(SteadyState::Steady, |_| 1.0, 300) >= 46);
        assert!(count(SteadyState::Steady, |_| 1.0, 60) >= 44);
    }

    #[test]
    fn drifts_and_late_steps_that_mser_misses_are_refused() {
        assert!(count(SteadyState::NotSteady, |t| 1.0 - 0.1 * t, 1200) >= 49);
        let late_step = |t: f64| if t > 0.75 { 0.8 } else { 1.0 };
        assert!(count(SteadyState::NotSteady, late_step, 1200) >= 49);
        assert!(count(SteadyState::NotSteady, late_step, 120) >= 40);
    }

    #[test]
    fn short_windows_say_what_cannot_be_judged() {
        let steady = judge(&shaped(1, 15, |_| 1.0), 15.0, 0.0);
        assert_eq!(steady.state, SteadyState::TooShort);
        assert!(steady.text.contains("15 s is too short"), "{}", steady.text);
        let steady = judge(&shaped(1, 40, |_| 1.0), 40.0, 0.0);
        assert!(steady.text.contains("too short to judge the end of the warm-up"));
    }
}
