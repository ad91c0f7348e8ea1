//! One source's ticks, and rates and means of its series over a span.
//!
//! A reading tells of the time up to it: it is drawn where the interval that it ends has its middle, and so in the second in
//! which what it tells of happened. `docs/method.md` has the convention for readers.

use underlay_core::Nanos;
use underlay_core::series::SeriesSpec;
use underlay_record::{Column, Interval, Table};

/// Ticks at a span's edges may lie this part of the sampling interval outside it, because samplers and phases are not
/// aligned to each other.
const EDGE: f64 = 0.25;

/// The ticks of one source in one run.
#[derive(Debug)]
pub(crate) struct SourceTicks {
    /// When each tick was read: the middle of its acquisition window, seconds on the run's clock.
    pub(crate) times: Vec<f64>,
    /// The time that each tick describes: when it was read, unless its source repeats an earlier report.
    as_of: Vec<f64>,
    columns: Vec<Column>,
    /// The sampling interval, seconds.
    tick_s: f64,
}

/// One series of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series<'a> {
    times: &'a [f64],
    tick_s: f64,
    column: &'a Column,
}

impl SourceTicks {
    /// Of a run that was sampled every `tick_s` seconds.
    pub(crate) fn of(table: Table, tick_s: f64) -> SourceTicks {
        let times: Vec<f64> = table.ticks.iter().map(|tick| middle(*tick)).collect();
        SourceTicks { as_of: times.clone(), times, columns: table.columns, tick_s }
    }

    /// For a source that repeats the last report it received: its readings describe the times (ascending) of those reports.
    pub(crate) fn at_reports(mut self, moments: &[Nanos]) -> SourceTicks {
        for as_of in &mut self.as_of {
            let before = moments.partition_point(|moment| moment.as_secs_f64() <= *as_of);
            if let Some(told) = before.checked_sub(1) {
                *as_of = moments[told].as_secs_f64();
            }
        }
        self
    }

    /// What series whose names begin with `prefix` say, under the rest of their names; `None` without any.
    pub(crate) fn part(&self, prefix: &str) -> Option<SourceTicks> {
        let renamed = |column: &Column| {
            let name = column.spec.name.strip_prefix(prefix)?.to_string();
            let spec = SeriesSpec { name, ..column.spec.clone() };
            Some(Column { spec, values: column.values.clone() })
        };
        let columns: Vec<Column> = self.columns.iter().filter_map(renamed).collect();
        let (times, as_of) = (self.times.clone(), self.as_of.clone());
        let tick_s = self.tick_s;
        (!columns.is_empty()).then_some(SourceTicks { times, as_of, columns, tick_s })
    }

    /// The series with this name.
    pub(crate) fn series(&self, name: &str) -> Option<Series<'_>> {
        let column = self.columns.iter().find(|column| column.spec.name == name)?;
        Some(Series { times: &self.as_of, tick_s: self.tick_s, column })
    }

    /// The names of all series.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.spec.name.as_str())
    }

    /// Longest time between two ticks within a span, seconds; `None` of fewer than two ticks.
    pub(crate) fn longest_gap(&self, span: (f64, f64)) -> Option<f64> {
        let inside = |time: &f64| is_within(*time, span, self.tick_s);
        let times: Vec<f64> = self.times.iter().copied().filter(inside).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).max_by(f64::total_cmp)
    }
}

impl<'a> Series<'a> {
    /// Increase of a counter per second over a span; resets and gaps are left out.
    pub(crate) fn rate(&self, span: (f64, f64)) -> Option<f64> {
        let (mut increase, mut seconds) = (0.0, 0.0);
        for (from, to, by) in self.steps() {
            if is_within(from, span, self.tick_s) && is_within(to, span, self.tick_s) {
                increase += by;
                seconds += to - from;
            }
        }
        (seconds > 0.0).then(|| increase / seconds)
    }

    /// From the first to the last value in a span; `None` of fewer than two.
    pub(crate) fn span_within(&self, span: (f64, f64)) -> Option<(f64, f64)> {
        let (first, last) = (self.values_within(span).next()?, self.values_within(span).last()?);
        (last.0 > first.0).then_some((first.0, last.0))
    }

    /// Increase of a counter per second from the first to the last value in a span, with the time in which it could not be
    /// read; `None` of fewer than two, and of a counter that was reset in between.
    pub(crate) fn rate_throughout(&self, span: (f64, f64)) -> Option<f64> {
        if self.was_reset(span) {
            return None;
        }
        let (first, last) = (self.values_within(span).next()?, self.values_within(span).last()?);
        (last.0 > first.0).then(|| (last.1 - first.1) / (last.0 - first.0))
    }

    /// Whether a counter was lower than before within a span.
    pub(crate) fn was_reset(&self, span: (f64, f64)) -> bool {
        let values: Vec<f64> = self.values_within(span).map(|(_, value)| value).collect();
        values.windows(2).any(|pair| pair[1] < pair[0])
    }

    fn values_within(&self, span: (f64, f64)) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let (times, values, tick_s) = (self.times, &self.column.values, self.tick_s);
        times
            .iter()
            .copied()
            .zip(values.iter().copied())
            .filter(move |(time, _)| is_within(*time, span, tick_s))
            .filter(|(_, value)| !value.is_nan())
    }

    /// Mean of a gauge over a span.
    pub(crate) fn mean(&self, span: (f64, f64)) -> Option<f64> {
        let inside: Vec<f64> = self
            .times
            .iter()
            .zip(&self.column.values)
            .filter(|(time, value)| is_within(**time, span, self.tick_s) && !value.is_nan())
            .map(|(_, value)| *value)
            .collect();
        crate::statistics::mean(&inside)
    }

    /// The increases of a counter between ticks: (from, to, by), without resets and gaps.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (f64, f64, f64)> + use<'a> {
        let (times, values) = (self.times, &self.column.values);
        (1..values.len()).filter_map(move |i| {
            let by = values[i] - values[i - 1];
            (by >= 0.0).then_some((times[i - 1], times[i], by))
        })
    }

    /// Increase per second between ticks: (middle of the interval, rate).
    pub(crate) fn rates(&self) -> Vec<(f64, f64)> {
        self.steps()
            .filter(|(from, to, _)| to > from)
            .map(|(from, to, by)| ((from + to) / 2.0, by / (to - from)))
            .collect()
    }

    /// The values of a gauge: (middle of the interval that the reading ends, value).
    pub(crate) fn values(&self) -> Vec<(f64, f64)> {
        let mut before = f64::NEG_INFINITY;
        let mut values = Vec::new();
        for (time, value) in self.times.iter().zip(&self.column.values) {
            // A report is one value, however often it was read.
            if *time > before && !value.is_nan() {
                // After a gap it says nothing of the time before.
                values.push(((before.max(time - self.tick_s) + time) / 2.0, *value));
            }
            before = *time;
        }
        values
    }
}

/// Whether a tick belongs to a span.
fn is_within(time: f64, span: (f64, f64), tick_s: f64) -> bool {
    (span.0 - EDGE * tick_s..=span.1 + EDGE * tick_s).contains(&time)
}

/// The middle of an interval, seconds on the run's clock.
pub(crate) fn middle(interval: Interval) -> f64 {
    (interval.begin.as_secs_f64() + interval.end.as_secs_f64()) / 2.0
}

#[cfg(test)]
mod tests {
    use super::SourceTicks;
    use underlay_core::Nanos;
    use underlay_core::series::{Layer, SeriesSpec};
    use underlay_record::{Column, Interval, Source, SourceStatus, Table};

    fn ticks(values: &[f64]) -> SourceTicks {
        ticks_every(1_000, values)
    }

    fn ticks_every(ms: u64, values: &[f64]) -> SourceTicks {
        let instant = |number: usize| {
            let at = Nanos::from_millis(ms * number as u64);
            Interval { begin: at, end: at }
        };
        let spec = SeriesSpec::counter("x", "ns");
        SourceTicks::of(
            Table {
                source: Source {
                    index: 0,
                    name: "s".into(),
                    layer: Layer::Host,
                    status: SourceStatus::Available,
                    series: vec![spec.clone()],
                },
                ticks: (0..values.len()).map(instant).collect(),
                columns: vec![Column { spec, values: values.to_vec() }],
            },
            ms as f64 / 1e3,
        )
    }

    /// Of a short window that was sampled often, little of what surrounds it counts.
    #[test]
    fn the_edge_of_a_span_is_a_part_of_the_sampling_interval() {
        // Eight ticks a second; the counter stands still outside of 1 s to 1.75 s.
        let counted = |tick: usize| (tick.clamp(8, 14) - 8) as f64 * 100.0;
        let ticks = ticks_every(125, &(0..24).map(counted).collect::<Vec<_>>());
        let rate = ticks.series("x").unwrap().rate((1.0, 1.75));
        assert_eq!(rate, Some(800.0));
        let shifted = ticks.series("x").unwrap().rate((1.02, 1.73));
        assert_eq!(shifted, Some(800.0), "phases and samplers are not aligned");
    }

    #[test]
    fn rates_leave_out_resets_gaps_and_what_is_outside() {
        let ticks = ticks(&[0.0, 10.0, 20.0, 5.0, 15.0, f64::NAN, 100.0, 110.0]);
        let series = ticks.series("x").unwrap();
        assert_eq!(series.rate((0.0, 4.0)), Some(10.0));
        assert_eq!(series.rate((6.0, 7.0)), Some(10.0));
        assert_eq!(series.rate((4.0, 6.0)), None);
        assert_eq!(series.mean((0.0, 2.0)), Some(10.0));
        assert_eq!(ticks.longest_gap((0.0, 7.0)), Some(1.0));
        assert_eq!(series.span_within((1.5, 4.6)), Some((2.0, 4.0)));
        assert_eq!(series.span_within((1.5, 2.2)), None);
        assert_eq!(series.span_within((4.5, 7.0)), Some((6.0, 7.0)));
        assert!(ticks.series("y").is_none());
    }

    /// A rate without the time in which the counter could not be read is that of another load.
    #[test]
    fn a_rate_throughout_has_gaps_in_it_and_ends_with_a_counter_that_began_anew() {
        let nan = f64::NAN;
        let ticks = ticks(&[0.0, 100.0, nan, nan, 130.0, 230.0, 10.0, 110.0]);
        let series = ticks.series("x").unwrap();
        assert_eq!(series.rate((0.0, 5.0)), Some(100.0));
        assert_eq!(series.rate_throughout((0.0, 5.0)), Some(46.0));
        assert!(!series.was_reset((0.0, 5.0)));
        assert_eq!(series.rate_throughout((0.0, 7.0)), None);
        assert!(series.was_reset((0.0, 7.0)));
        assert_eq!(series.rate_throughout((6.0, 7.0)), Some(100.0));
        assert_eq!(series.rate_throughout((2.0, 4.0)), None);
    }

    #[test]
    fn a_reading_tells_of_the_second_that_it_ends() {
        let ticks = ticks(&[0.0, 10.0, 30.0, f64::NAN, 5.0, 6.0]);
        let series = ticks.series("x").unwrap();
        assert_eq!(series.rates(), [(0.5, 10.0), (1.5, 20.0), (4.5, 1.0)]);
        let gauge = [(-0.5, 0.0), (0.5, 10.0), (1.5, 30.0), (3.5, 5.0), (4.5, 6.0)];
        assert_eq!(series.values(), gauge);
    }

    #[test]
    fn what_was_told_earlier_is_as_of_then() {
        let told = [0.6, 1.6, 3.7].map(|s: f64| Nanos((s * 1e9) as u64));
        // Read at 0 to 5 s; at 0 s nothing had been told, at 3 s what had been told at 1.6 s was read again.
        let ticks = ticks(&[f64::NAN, 10.0, 20.0, 20.0, 41.0, 41.0]).at_reports(&told);
        let series = ticks.series("x").unwrap();
        let rates = series.rates();
        assert_eq!(rates.len(), 2, "{rates:?}");
        assert!((rates[0].0 - 1.1).abs() < 1e-9 && (rates[0].1 - 10.0).abs() < 1e-9, "{rates:?}");
        assert!((rates[1].0 - 2.65).abs() < 1e-9 && (rates[1].1 - 10.0).abs() < 1e-9, "{rates:?}");
        let values: Vec<f64> = series.values().into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [10.0, 20.0, 41.0]);
        assert_eq!(ticks.longest_gap((0.0, 5.0)), Some(1.0), "it was read all the time");
    }
}
