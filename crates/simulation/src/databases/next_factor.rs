//! The search for a factor on processor times: which one to try after those that were tried.
//!
//! Not here: what a trial simulates.

/// A search ends after so many trials.
pub(super) const TRIALS: usize = 8;
/// A trial this near is the fit.
pub(super) const NEAR: f64 = 0.03;
/// Factors that are believed. What is beyond has another cause than the engine and the processor of the bed.
pub const FACTORS: (f64, f64) = (0.2, 5.0);
/// The factor of the first trials changes by at most this.
const STEP: f64 = 4.0;
/// Throughput that changes less than this power of the processor times is not theirs.
const LEAST_ELASTICITY: f64 = 0.1;

/// The factor that leads to a published number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// On the default times.
    pub factor: f64,
    /// What is simulated with it.
    pub simulated: f64,
}

/// The factor to try after these, or `None` where throughput does not come to the number by processor times, or only
/// by those that nobody would believe.
///
/// Throughput falls as the factor rises, but may not do so where storage is the limit.
pub(super) fn next(wanted: f64, trials: &[(f64, f64)]) -> Option<f64> {
    let last_that = |is_too_fast: bool| {
        trials.iter().rev().find(|(_, value)| (*value > wanted) == is_too_fast).copied()
    };
    let next = match (last_that(true), last_that(false)) {
        // Where it is too slow, processors are the limit, and throughput is about the inverse of their times.
        (Some((fast, _)), Some((slow, below))) => match slow * below / wanted {
            factor if factor > fast => factor,
            _ => (fast * slow).sqrt(),
        },
        _ => beyond(wanted, trials)?,
    };
    let next = next.clamp(FACTORS.0, FACTORS.1);
    (next != trials.last()?.0).then_some(next)
}

/// The factor to try where all were too slow, or all too fast.
fn beyond(wanted: f64, trials: &[(f64, f64)]) -> Option<f64> {
    let &(factor, simulated) = trials.last()?;
    let bounded = |step: f64| Some(factor * step.clamp(1.0 / STEP, STEP));
    // As its inverse, until two trials have shown it.
    let Some((other, before)) = trials.iter().rev().nth(1) else {
        return bounded(simulated / wanted);
    };
    let elasticity = (simulated / before).ln() / (factor / other).ln();
    if elasticity < -LEAST_ELASTICITY {
        return bounded((wanted / simulated).powf(1.0 / elasticity));
    }
    // Slower processors become the limit at last, faster ones do not.
    if simulated > wanted { bounded(STEP) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{NEAR, TRIALS, next};

    /// Storage carries 400 per second, processors 1,200 over the factor.
    #[test]
    fn processors_are_slowed_until_they_are_the_limit() {
        let fitted = |wanted: f64| {
            let mut trials = vec![(1.0_f64, 400.0_f64)];
            while trials.len() < TRIALS {
                let factor = next(wanted, &trials)?;
                trials.push((factor, (1200.0 / factor).min(400.0)));
                if (wanted / trials.last()?.1).ln().abs() <= NEAR {
                    return trials.last().map(|(factor, _)| *factor);
                }
            }
            panic!("no end: {trials:?}")
        };
        for wanted in [300.0, 385.0, 250.0] {
            let factor = fitted(wanted).expect("it is reached");
            assert!((factor * wanted / 1200.0 - 1.0).abs() < 0.04, "{wanted}: {factor}");
        }
        assert_eq!(fitted(500.0), None, "faster processors do not help");
        assert_eq!(fitted(200.0), None, "processors that are six times as slow are not believed");
    }
}
