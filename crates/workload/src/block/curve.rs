//! The rate curve: first as fast as it goes, then shares of that rate.
//!
//! The rule is vdbench's, because the published curves were made with it: the requested rate of a point is
//! its share of the whole number of requests per second of the maximum run, rounded *up* to a
//! multiple of 100 above 1,000 and of 10 below. Points above 100 % offer more than the storage gave.

/// Shares of the usual curve, in percent.
pub const PERCENTS: [u32; 12] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120];

/// The rate assumed when the maximum run did nothing.
const FALLBACK_RATE: u64 = 10_000;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvePoint {
    /// Share of the maximum, in percent.
    pub percent: u32,
    /// Requests per second to offer.
    pub rate_per_second: u64,
}

/// The rate to offer at `percent` of a maximum run that reached `max_per_second`.
pub fn curve_rate(max_per_second: f64, percent: u32) -> CurvePoint {
    let max = if max_per_second >= 1.0 { max_per_second as u64 } else { FALLBACK_RATE };
    let share = max * u64::from(percent) / 100;
    let step = if share > 1_000 { 100 } else { 10 };
    CurvePoint { percent, rate_per_second: share.div_ceil(step).max(1) * step }
}

#[cfg(test)]
mod tests {
    use super::{PERCENTS, curve_rate};

    #[test]
    fn rates_are_rounded_up_in_their_step() {
        assert_eq!(curve_rate(521_599.4, 50).rate_per_second, 260_800);
        assert_eq!(curve_rate(521_599.4, 100).rate_per_second, 521_600);
        assert_eq!(curve_rate(999.0, 10).rate_per_second, 100);
        assert_eq!(curve_rate(1_234.0, 50).rate_per_second, 620);
        assert_eq!(curve_rate(0.0, 20).rate_per_second, 2_000);
        assert_eq!(curve_rate(5.0, 10).rate_per_second, 10, "never nothing");
    }

    #[test]
    fn a_curve_rises() {
        let rates: Vec<_> = PERCENTS.map(|p| curve_rate(48_321.0, p).rate_per_second).to_vec();
        assert!(rates.is_sorted() && rates[11] >= 57_985, "{rates:?}");
    }
}
