//! From stored readings to differences and rates, for readers of a record. Pure.
//!
//! A counter was read at some unknown moment within its acquisition window. So the time between two
//! readings lies between two bounds, and a rate is an interval `[low, high]` around a best estimate,
//! not a number with invented precision. For a tick of a few hundred microseconds in a second the
//! bounds are 0.05 % apart; for a sampler that had to wait they open as they should.
//!
//! What happens to a counter between two readings:
//!
//! * it grew: the difference;
//! * it fell to less than half: it was reset (a server crashed). What was counted between the last
//!   reading and the reset is lost, what was counted since is the new value: a lower bound;
//! * it fell by less: it stepped back, as idle time of a CPU does by a tick. The difference is zero.
//!   Across missing readings every fall is a reset, because the source had gone;
//! * a reading is missing: the difference spans to the next one and says over how long.
//!
//! It does not interpolate, smooth, or align to seconds.

use underlay_core::Nanos;

/// One stored value with its acquisition window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Start of the window.
    pub begin: Nanos,
    /// End of the window, not before its start.
    pub end: Nanos,
    /// The value; `NAN` = missing.
    pub value: f64,
}

/// What a counter did between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It counted on.
    Counted,
    /// It started again: the amount is a lower bound.
    Reset,
    /// It stepped back a little: the amount is zero.
    SteppedBack,
}

/// The difference of two successive readings that are not missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Window of the earlier reading.
    pub from: (Nanos, Nanos),
    /// Window of the later reading.
    pub to: (Nanos, Nanos),
    /// How much was counted; never negative.
    pub amount: f64,
    /// What the counter did.
    pub change: Change,
    /// Readings between the two that are missing.
    pub missing: usize,
}

/// A rate per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// No less than this.
    pub low: f64,
    /// Amount over the distance of the middles of the windows.
    pub best: f64,
    /// No more than this; infinite when the windows touch.
    pub high: f64,
}

/// Share of the old value below which a fallen counter is taken for a new one.
const RESET_BELOW: f64 = 0.5;

/// Differences of a counter in the order of its readings.
pub fn differences(
    readings: impl IntoIterator<Item = Reading>,
) -> impl Iterator<Item = Difference> {
    let mut before: Option<Reading> = None;
    let mut missing = 0;
    readings.into_iter().filter_map(move |now| {
        if now.value.is_nan() {
            missing += 1;
            return None;
        }
        let earlier = before.replace(now);
        let skipped = std::mem::take(&mut missing);
        earlier.map(|earlier| difference(earlier, now, skipped))
    })
}

fn difference(earlier: Reading, later: Reading, missing: usize) -> Difference {
    let (was, now) = (earlier.value, later.value);
    let (amount, change) = if now >= was {
        (now - was, Change::Counted)
    } else if missing > 0 || now < was * RESET_BELOW {
        (now.max(0.0), Change::Reset)
    } else {
        (0.0, Change::SteppedBack)
    };
    Difference {
        from: (earlier.begin, earlier.end),
        to: (later.begin, later.end),
        amount,
        change,
        missing,
    }
}

impl Difference {
    /// Shortest and longest possible time between the two moments of reading, in seconds.
    pub fn seconds(&self) -> (f64, f64) {
        let shortest = self.to.0.saturating_sub(self.from.1);
        let longest = self.to.1.saturating_sub(self.from.0);
        (shortest.as_secs_f64(), longest.as_secs_f64())
    }

    /// The rate. `quantum` is the smallest step of the counter: the true amount may be off by one step
    /// at either end, which for a slow counter matters more than the windows; 0 when it is exact.
    ///
    /// Nothing when both readings were taken at the same instant. After a reset `low` still holds,
    /// `best` and `high` are those of the lower bound.
    ///
    /// # Panics
    /// If the quantum is negative or not a number.
    pub fn rate(&self, quantum: f64) -> Option<Rate> {
        assert!(quantum >= 0.0, "a step of {quantum} is none");
        let (shortest, longest) = self.seconds();
        let middle = (shortest + longest) / 2.0;
        (middle > 0.0).then(|| Rate {
            low: (self.amount - quantum).max(0.0) / longest,
            best: self.amount / middle,
            // A division by zero is meant: windows that touch bound nothing.
            high: (self.amount + quantum) / shortest,
        })
    }
}

/// The amount counted over a window from the readings at its edges: the last reading that ended by
/// `from`, the last one that ended by `to`. Steps between are summed, so that a reset within is
/// handled. Nothing when there are no two such readings.
pub fn counted_between(readings: &[Reading], from: Nanos, to: Nanos) -> Option<Difference> {
    let within = |reading: &&Reading| !reading.value.is_nan() && reading.end <= to;
    let first =
        readings.iter().rposition(|reading| !reading.value.is_nan() && reading.end <= from)?;
    let steps = differences(readings[first..].iter().filter(within).copied());
    steps.reduce(|sum, step| Difference {
        from: sum.from,
        to: step.to,
        amount: sum.amount + step.amount,
        change: worse(sum.change, step.change),
        missing: sum.missing + step.missing,
    })
}

/// The smallest change of a sum of two that is significant.
fn worse(a: Change, b: Change) -> Change {
    match (a, b) {
        (Change::Reset, _) | (_, Change::Reset) => Change::Reset,
        (Change::SteppedBack, _) | (_, Change::SteppedBack) => Change::SteppedBack,
        (Change::Counted, Change::Counted) => Change::Counted,
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Reading, counted_between, differences};
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
    use underlay_core::Nanos;

    fn at(second: u64, value: f64) -> Reading {
        let begin = Nanos::from_secs(second);
        Reading { begin, end: begin + Nanos::from_millis(1), value }
    }

    #[test]
    fn a_rate_is_known_between_bounds() {
        let step = differences([at(1, 100.0), at(2, 1100.0)]).next().expect("one step");
        let rate = step.rate(0.0).expect("time passed");
        assert_eq!(rate.best, 1000.0);
        assert!((rate.low - 1000.0 / 1.001).abs() < 1e-9);
        assert!((rate.high - 1000.0 / 0.999).abs() < 1e-9);
        let coarse = step.rate(10.0).expect("time passed");
        assert!(coarse.low < rate.low && coarse.high > rate.high);
    }

    #[test]
    fn resets_and_steps_back_are_distinguished() {
        let readings = [at(1, 1000.0), at(2, 40.0), at(3, 60.0), at(4, 59.0)];
        let steps: Vec<_> = differences(readings).map(|d| (d.amount, d.change)).collect();
        assert_eq!(
            steps,
            [(40.0, Change::Reset), (20.0, Change::Counted), (0.0, Change::SteppedBack)]
        );
    }

    #[test]
    fn a_gap_is_spanned_and_said() {
        let readings = [at(1, 10.0), at(2, f64::NAN), at(3, f64::NAN), at(4, 40.0)];
        let steps: Vec<_> = differences(readings).collect();
        assert_eq!(steps.len(), 1);
        assert_eq!((steps[0].amount, steps[0].missing), (30.0, 2));
        assert_eq!(steps[0].rate(0.0).expect("time passed").best, 10.0);
        assert_eq!(differences([at(1, f64::NAN), at(2, 3.0)]).count(), 0);
        let gone = [at(1, 10.0), at(2, f64::NAN), at(3, 9.0)];
        assert_eq!(differences(gone).next().expect("one step").change, Change::Reset);
    }

    #[test]
    fn windows_that_touch_bound_nothing_from_above() {
        let window = |begin, end, value| Reading { begin: Nanos(begin), end: Nanos(end), value };
        let step = differences([window(0, 10, 0.0), window(10, 20, 5.0)]).next().expect("one step");
        assert_eq!(step.rate(0.0).expect("time passed").high, f64::INFINITY);
        let same = differences([window(5, 5, 0.0), window(5, 5, 5.0)]).next().expect("one step");
        assert_eq!(same.rate(0.0), None);
    }

    #[test]
    fn a_window_is_counted_from_its_edges() {
        let readings = [at(1, 10.0), at(2, 20.0), at(3, f64::NAN), at(4, 5.0), at(5, 9.0)];
        let all = counted_between(&readings, Nanos::from_millis(1500), Nanos::from_secs(6));
        let all = all.expect("readings at both edges");
        assert_eq!((all.amount, all.change, all.missing), (10.0 + 5.0 + 4.0, Change::Reset, 0));
        assert_eq!(all.from.0, Nanos::from_secs(1));
        assert_eq!(all.to.0, Nanos::from_secs(5));
        assert_eq!(counted_between(&readings, Nanos::ZERO, Nanos::from_secs(6)), None);
        assert_eq!(counted_between(&readings, Nanos::from_secs(5), Nanos::from_secs(5)), None);
    }

    fn histories() -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
        let value =
            proptest::prop_oneof![4 => 0.0f64..1e12, 1 => proptest::strategy::Just(f64::NAN)];
        proptest::collection::vec((0u64..1_000_000, 0u64..1000, value), 0..40)
    }

    fn readings(history: &[(u64, u64, f64)]) -> Vec<Reading> {
        let mut time = 0;
        history
            .iter()
            .map(|(pause, width, value)| {
                let begin = time + pause;
                time = begin + width;
                Reading { begin: Nanos(begin), end: Nanos(time), value: *value }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn amounts_are_never_negative_and_bounds_enclose(history in histories(), quantum in 0.0f64..100.0) {
            for step in differences(readings(&history)) {
                prop_assert!(step.amount >= 0.0);
                if let Some(rate) = step.rate(quantum) {
                    prop_assert!(rate.low <= rate.best && rate.best <= rate.high, "{rate:?}");
                }
            }
        }

        /// For a counter that only counts, the steps add up to the whole, whatever is missing between.
        #[test]
        fn steps_add_up(growth in proptest::collection::vec(0u32..1000, 2..40), gaps in proptest::collection::vec(proptest::bool::ANY, 40)) {
            let mut sum = 0.0;
            let last = growth.len() - 1;
            let values: Vec<Reading> = growth.iter().enumerate().map(|(index, growth)| {
                sum += f64::from(*growth);
                let missing = gaps[index] && index != 0 && index != last;
                at(index as u64, if missing { f64::NAN } else { sum })
            }).collect();
            let total: f64 = differences(values.iter().copied()).map(|step| step.amount).sum();
            prop_assert_eq!(total, values[last].value - values[0].value);
            let whole = counted_between(&values, Nanos::from_millis(1), Nanos::from_secs(100));
            prop_assert_eq!(whole.map(|whole| whole.amount), Some(total));
        }
    }
}
