//! One parameter per test bed: the cost of the stack at which one experiment's rate comes out as published.

use underlay_core::Nanos;

/// No stack is slower.
const PER_IO_MAX_NS: f64 = 500_000.0;
/// Below this a stack costs nothing.
const PER_IO_MIN_NS: f64 = 100.0;
/// Rates this close are equal: the simulation's own noise is not much below it.
const CLOSE: f64 = 0.01;
const STEPS_MAX: u32 = 12;

/// How a fit ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fit {
    /// The published rate comes out at this cost.
    Found(Nanos),
    /// Without any cost the rate is already lower: something else limits the model.
    NothingLeft,
}

/// Finds the cost at which `rate_of` gives `wanted`. The rate must not rise with the cost.
pub(super) fn fit_stack(wanted: f64, mut rate_of: impl FnMut(Nanos) -> f64) -> Fit {
    if rate_of(Nanos::ZERO) < wanted * (1.0 + CLOSE) {
        return Fit::NothingLeft;
    }
    let (mut low, mut high) = (PER_IO_MIN_NS.ln(), PER_IO_MAX_NS.ln());
    let at = |log: f64| Nanos(log.exp().round() as u64);
    for _ in 0..STEPS_MAX {
        let middle = f64::midpoint(low, high);
        let rate = rate_of(at(middle));
        if (rate / wanted - 1.0).abs() < CLOSE {
            return Fit::Found(at(middle));
        }
        if rate > wanted { low = middle } else { high = middle }
    }
    Fit::Found(at(f64::midpoint(low, high)))
}

#[cfg(test)]
mod tests {
    use super::{Fit, fit_stack};
    use underlay_core::Nanos;

    #[test]
    fn the_cost_is_found_or_said_not_to_exist() {
        let rate = |per_io: Nanos| 1e9 / (per_io.0 as f64 + 2_000.0);
        let Fit::Found(per_io) = fit_stack(50_000.0, rate) else { panic!("there is one") };
        assert!((17_500..18_500).contains(&per_io.0), "{per_io:?}");
        assert_eq!(fit_stack(600_000.0, rate), Fit::NothingLeft);
    }
}
