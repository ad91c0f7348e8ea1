//! One source's ticks, and rates and means of its series over a span.

use underlay_record::{Column, Interval, Table};

/// Ticks at a span's edges may lie this far outside it (seconds), because samplers and phases are not
/// aligned to each other.
const EDGE: f64 = 0.25;

/// The ticks of one source in one run.
#[derive(Debug)]
pub(crate) struct SourceTicks {
    /// When each tick was read: the middle of its acquisition window, seconds on the run's clock.
    pub(crate) times: Vec<f64>,
    columns: Vec<Column>,
}

/// One series of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series<'a> {
    times: &'a [f64],
    column: &'a Column,
}

impl SourceTicks {
    pub(crate) fn of(table: Table) -> SourceTicks {
        let times = table.ticks.iter().map(|tick| middle(*tick)).collect();
        SourceTicks { times, columns: table.columns }
    }

    /// The series with this name.
    pub(crate) fn series(&self, name: &str) -> Option<Series<'_>> {
        let column = self.columns.iter().find(|column| column.spec.name == name)?;
        Some(Series { times: &self.times, column })
    }

    /// The names of all series.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.spec.name.as_str())
    }

    /// Longest time between two ticks within a span, seconds; `None` of fewer than two ticks.
    pub(crate) fn longest_gap(&self, span: (f64, f64)) -> Option<f64> {
        let inside = |time: &f64| (span.0 - EDGE..=span.1 + EDGE).contains(time);
        let times: Vec<f64> = self.times.iter().copied().filter(inside).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).max_by(f64::total_cmp)
    }
}

impl<'a> Series<'a> {
    /// Increase of a counter per second over a span; resets and gaps are left out.
    pub(crate) fn rate(&self, span: (f64, f64)) -> Option<f64> {
        let (mut increase, mut seconds) = (0.0, 0.0);
        for (from, to, by) in self.steps() {
            if from >= span.0 - EDGE && to <= span.1 + EDGE {
                increase += by;
                seconds += to - from;
            }
        }
        (seconds > 0.0).then(|| increase / seconds)
    }

    /// From the first to the last reading in a span; `None` of fewer than two.
    pub(crate) fn span_within(&self, span: (f64, f64)) -> Option<(f64, f64)> {
        let inside = |time: &&f64| (span.0 - EDGE..=span.1 + EDGE).contains(*time);
        let first = self.times.iter().find(inside)?;
        let last = self.times.iter().rev().find(inside)?;
        (last > first).then_some((*first, *last))
    }

    /// Mean of a gauge over a span.
    pub(crate) fn mean(&self, span: (f64, f64)) -> Option<f64> {
        let inside: Vec<f64> = self
            .times
            .iter()
            .zip(&self.column.values)
            .filter(|(time, value)| {
                (span.0 - EDGE..=span.1 + EDGE).contains(*time) && !value.is_nan()
            })
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

    /// Increase per second between ticks, at the time of the later one.
    pub(crate) fn rates(&self) -> Vec<(f64, f64)> {
        self.steps()
            .filter(|(from, to, _)| to > from)
            .map(|(from, to, by)| (to, by / (to - from)))
            .collect()
    }

    /// The values of a gauge: (time, value).
    pub(crate) fn values(&self) -> Vec<(f64, f64)> {
        self.times
            .iter()
            .zip(&self.column.values)
            .filter(|(_, value)| !value.is_nan())
            .map(|(time, value)| (*time, *value))
            .collect()
    }
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
        let instant = |second: usize| {
            let at = Nanos::from_secs(second as u64);
            Interval { begin: at, end: at }
        };
        let spec = SeriesSpec::counter("x", "ns");
        SourceTicks::of(Table {
            source: Source {
                index: 0,
                name: "s".into(),
                layer: Layer::Host,
                status: SourceStatus::Available,
                series: vec![spec.clone()],
            },
            ticks: (0..values.len()).map(instant).collect(),
            columns: vec![Column { spec, values: values.to_vec() }],
        })
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
        assert!(ticks.series("y").is_none());
    }
}
