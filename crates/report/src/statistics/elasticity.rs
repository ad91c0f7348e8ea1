//! How strongly a result follows something that was changed and restored in turn, from the periods of one run.
//!
//! Each changed period is compared with the mean of the two unchanged periods around it, on logarithms: a steady drift
//! cancels, and what is serially correlated over longer times than a period cancels mostly. The differences of all
//! changed things share one variance, because what makes them scatter is the system and not what was changed; so
//! three periods of each suffice for an interval.

use super::student::{two_sided_p, upper_quantile};

/// One period: what was changed (a number below that of all things), and the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// What was changed; `None` = nothing.
    pub changed: Option<usize>,
    /// What was measured: a rate or a latency.
    pub value: f64,
}

/// The result while a thing was changed over the result while nothing was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeEffect {
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p of "ratio = 1".
    pub p: f64,
    /// Changed periods behind it.
    pub periods: usize,
}

/// How much of a result follows a service time: 1 = in proportion, 0 = not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elasticity {
    /// Per cent of the result per per cent of the service time, at the service time as it is.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The effect of each of `things`; `None` where it was changed in fewer than two periods that lie between unchanged ones, or
/// where nothing was measured.
pub fn change_effects(periods: &[Period], things: usize) -> Vec<Option<ChangeEffect>> {
    let unchanged: Vec<f64> = periods
        .iter()
        .filter(|period| period.changed.is_none())
        .map(|period| period.value)
        .collect();
    let usual = unchanged.iter().sum::<f64>() / unchanged.len().max(1) as f64;
    if usual.is_nan() || usual <= 0.0 {
        return vec![None; things];
    }
    // A period in which nothing at all happened has no logarithm: it counts as a hundredth of the usual.
    let log = |period: &Period| period.value.max(usual / 100.0).ln();
    let mut differences = vec![Vec::new(); things];
    for around in periods.windows(3) {
        if let [before, Period { changed: Some(thing), .. }, after] = around
            && before.changed.is_none()
            && after.changed.is_none()
            && let Some(of_thing) = differences.get_mut(*thing)
        {
            of_thing.push(log(&around[1]) - (log(before) + log(after)) / 2.0);
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let usable = || differences.iter().filter(|of_thing| of_thing.len() > 1);
    let degrees: usize = usable().map(|of_thing| of_thing.len() - 1).sum();
    let squares: f64 = usable()
        .map(|of_thing| {
            let mean = mean(of_thing);
            of_thing.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        })
        .sum();
    differences
        .iter()
        .map(|of_thing| {
            let degrees = (of_thing.len() > 1).then_some(degrees as f64)?;
            let error = (squares / degrees / of_thing.len() as f64).sqrt();
            Some(effect(mean(of_thing), error, degrees, of_thing.len()))
        })
        .collect()
}

fn effect(log_mean: f64, error: f64, degrees: f64, periods: usize) -> ChangeEffect {
    let half_width = upper_quantile(0.05, degrees) * error;
    let p = match (error > 0.0, log_mean == 0.0) {
        (true, _) => two_sided_p(log_mean / error, degrees),
        (false, is_same) => f64::from(u8::from(is_same)),
    };
    ChangeEffect {
        ratio: log_mean.exp(),
        low: (log_mean - half_width).exp(),
        high: (log_mean + half_width).exp(),
        p,
        periods,
    }
}

impl ChangeEffect {
    /// Of a rate, when the service time was `factor` times as long: the part of the time per result that is this service time. It
    /// is 1 where the result is made of nothing else, or where the thing is used to capacity.
    pub fn of_rate(&self, factor: f64) -> Elasticity {
        let share = |ratio: f64| (1.0 / ratio - 1.0) / (factor - 1.0);
        Elasticity { value: share(self.ratio), low: share(self.high), high: share(self.low) }
    }

    /// Of a latency, when the service time was `factor` times as long.
    pub fn of_latency(&self, factor: f64) -> Elasticity {
        let share = |ratio: f64| (ratio - 1.0) / (factor - 1.0);
        Elasticity { value: share(self.ratio), low: share(self.low), high: share(self.high) }
    }
}

impl Elasticity {
    /// The rate over the present one if the service time were `factor` times as long: value, lower and upper end.
    pub fn predicted_rate(&self, factor: f64) -> (f64, f64, f64) {
        // More than all of the time cannot become faster, and less than nothing neither.
        let ratio = |share: f64| 1.0 / (1.0 + share.clamp(0.0, 1.0) * (factor - 1.0));
        let (value, one, other) = (ratio(self.value), ratio(self.low), ratio(self.high));
        (value, one.min(other), one.max(other))
    }
}

#[cfg(test)]
mod tests {
    use super::{Elasticity, Period, change_effects};
    use crate::statistics::holm;
    use crate::synthetic_series::{normal, stream};
    use proptest::prelude::{prop_assert, proptest};

    const FACTOR: f64 = 2.0;
    const BLOCKS: usize = 3;

    /// How the system under a check behaves, apart from what is changed.
    #[derive(Clone, Copy)]
    struct Noise {
        /// Standard deviation of the logarithm of a period's rate.
        scatter: f64,
        /// Correlation of a period's deviation with that of the one before.
        correlation: f64,
        /// Drift of the logarithm per period.
        drift: f64,
        /// How much larger the scatter is while something is changed.
        when_changed: f64,
    }

    const QUIET: Noise = Noise { scatter: 0.05, correlation: 0.0, drift: 0.0, when_changed: 1.0 };

    /// A check of a closed loop whose time per transaction consists of these shares, and of what is not changed.
    fn check(shares: &[f64], noise: Noise, seed: u64) -> Vec<Period> {
        let mut random = stream("causal", seed);
        let (mut deviation, mut periods) = (0.0, Vec::new());
        let mut add = |changed: Option<usize>| {
            let own = noise.scatter * (1.0 - noise.correlation * noise.correlation).sqrt();
            deviation = noise.correlation * deviation + own * normal(&mut random);
            let time = 1.0 + changed.map_or(0.0, |thing: usize| shares[thing] * (FACTOR - 1.0));
            let more = if changed.is_some() { noise.when_changed } else { 1.0 };
            let drift = noise.drift * periods.len() as f64;
            let value = 1000.0 / time * (more * deviation + drift).exp();
            periods.push(Period { changed, value });
        };
        for block in 0..BLOCKS {
            for turn in 0..shares.len() {
                add(None);
                // Another order in each block.
                add(Some((turn + block) % shares.len()));
            }
        }
        add(None);
        periods
    }

    #[test]
    fn known_elasticities_are_found() {
        let shares = [0.6, 0.25, 0.0, 1.0];
        let exact = Noise { scatter: 0.0, ..QUIET };
        let effects = change_effects(&check(&shares, exact, 1), shares.len());
        for (effect, share) in effects.iter().zip(shares) {
            let found = effect.unwrap().of_rate(FACTOR);
            assert!((found.value - share).abs() < 1e-9, "{found:?} is not {share}");
        }
        // 20 % faster: 1 / (0.4 + 0.6 / 1.2).
        let (ratio, ..) = effects[0].unwrap().of_rate(FACTOR).predicted_rate(1.0 / 1.2);
        assert!((ratio - 1.0 / 0.9).abs() < 1e-9, "{ratio}");
    }

    /// A transaction whose time is a sum takes `1 - share + share * factor` of its time, and the rate is the inverse.
    #[test]
    fn predictions_are_those_of_a_sum_of_times() {
        for share in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let periods = check(&[share], Noise { scatter: 0.0, ..QUIET }, 1);
            let known = change_effects(&periods, 1)[0].unwrap().of_rate(FACTOR);
            for factor in [0.5, 1.0 / 1.2, 1.0, 2.0] {
                let (value, low, high) = known.predicted_rate(factor);
                let expected = 1.0 / (1.0 - share + share * factor);
                for found in [value, low, high] {
                    let error = (found - expected).abs();
                    assert!(error < 1e-9, "{share} at {factor}: {found}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn the_interval_of_a_prediction_is_that_of_the_elasticity() {
        let faster = 1.0 / 1.2;
        let cases = [
            // 20 % faster: 1 / (1 - share / 6).
            ((0.6, 0.3, 0.9), faster, [1.0 / 0.9, 1.0 / 0.95, 1.0 / 0.85]),
            // Slower: the larger share is the lower rate.
            ((0.6, 0.3, 0.9), 2.0, [1.0 / 1.6, 1.0 / 1.9, 1.0 / 1.3]),
            // More than all of the time cannot become faster.
            ((1.3, 0.9, 1.7), faster, [1.2, 1.0 / 0.85, 1.2]),
            ((-0.1, -0.3, 0.3), faster, [1.0, 1.0, 1.0 / 0.95]),
        ];
        for ((value, low, high), factor, expected) in cases {
            let (value, low, high) = Elasticity { value, low, high }.predicted_rate(factor);
            for (found, expected) in [value, low, high].into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{found} at {factor}, not {expected}");
            }
        }
    }

    #[test]
    fn latencies_follow_in_proportion() {
        let changed = |value| Period { changed: Some(0), value };
        let unchanged = Period { changed: None, value: 10.0 };
        let periods = [unchanged, changed(14.0), unchanged, changed(14.0), unchanged];
        let found = change_effects(&periods, 1)[0].unwrap().of_latency(FACTOR);
        assert!((found.value - 0.4).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_steady_drift_does_not_count() {
        let drifting = Noise { scatter: 0.0, drift: -0.03, ..QUIET };
        for effect in change_effects(&check(&[0.5, 0.0], drifting, 3), 2).iter().zip([0.5, 0.0]) {
            let found = effect.0.unwrap().of_rate(FACTOR).value;
            assert!((found - effect.1).abs() < 1e-9, "{found} is not {}", effect.1);
        }
    }

    /// Share of intervals that contain the truth, and share of things without effect that are called effective.
    fn coverage(noise: Noise) -> (f64, f64) {
        let shares = [0.5, 0.2, 0.0, 0.0];
        let (mut covered, mut alarms, runs) = (0, 0, 1500);
        for seed in 0..runs {
            let effects: Vec<_> = change_effects(&check(&shares, noise, seed), shares.len())
                .into_iter()
                .map(Option::unwrap)
                .collect();
            let p = holm(&effects.iter().map(|effect| effect.p).collect::<Vec<_>>());
            alarms += u32::from(p[2] < 0.05 || p[3] < 0.05);
            for (effect, share) in effects.iter().zip(shares) {
                let found = effect.of_rate(FACTOR);
                covered += u32::from((found.low..=found.high).contains(&share));
            }
        }
        let count = f64::from(u32::try_from(runs).unwrap());
        (f64::from(covered) / (4.0 * count), f64::from(alarms) / count)
    }

    #[test]
    fn intervals_cover_what_they_promise_under_noise_drift_and_correlation() {
        let cases = [
            ("independent", QUIET),
            ("correlated", Noise { correlation: 0.6, drift: 0.01, ..QUIET }),
            ("against each other", Noise { correlation: -0.3, ..QUIET }),
            ("louder when changed", Noise { when_changed: 1.6, ..QUIET }),
        ];
        for (name, noise) in cases {
            let (covered, alarms) = coverage(noise);
            // Nominal 95 % and 5 %.
            assert!((0.92..=0.985).contains(&covered), "{name}: {covered} covered");
            assert!(alarms < 0.07, "{name}: {alarms} false alarms");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_absent() {
        assert_eq!(change_effects(&[], 2), [None, None]);
        let unchanged = Period { changed: None, value: 1.0 };
        let once = [unchanged, Period { changed: Some(0), value: 0.5 }, unchanged];
        assert_eq!(change_effects(&once, 1), [None]);
        let silent = Period { changed: None, value: 0.0 };
        assert_eq!(change_effects(&[silent; 9], 1), [None]);
    }

    proptest! {
        #[test]
        fn estimates_keep_their_order_and_their_intervals(
            values in proptest::collection::vec(0.0..1e6f64, 13), unit in 0.001..1000.0f64,
        ) {
            let period = |(position, value): (usize, &f64)| Period {
                changed: (position % 2 == 1).then_some((position / 2) % 2),
                value: *value,
            };
            let periods: Vec<Period> = values.iter().enumerate().map(period).collect();
            let scaled: Vec<Period> =
                periods.iter().map(|it| Period { value: it.value * unit, ..*it }).collect();
            let effects = change_effects(&periods, 2);
            for (effect, scaled) in effects.iter().zip(change_effects(&scaled, 2)) {
                let (Some(effect), Some(scaled)) = (effect, scaled) else { continue };
                prop_assert!(effect.low <= effect.ratio && effect.ratio <= effect.high);
                prop_assert!((0.0..=1.0).contains(&effect.p));
                // The unit does not matter.
                prop_assert!((scaled.ratio / effect.ratio - 1.0).abs() < 1e-6);
                let share = effect.of_rate(FACTOR);
                prop_assert!(share.low <= share.value && share.value <= share.high);
                let (value, low, high) = share.predicted_rate(1.0 / 1.2);
                prop_assert!(low <= value && value <= high && low >= 1.0 && high <= 1.2 + 1e-9);
            }
        }
    }
}
