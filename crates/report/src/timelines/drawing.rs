//! How lines are drawn: points, gauges, rates and quantiles, in the buckets of a run.

use underlay_core::Histogram;
use underlay_record::StoredHistogram;

use crate::analysis::{TimelineLine, TimelineSeries};
use crate::observed::{ObservedRun, Series, middle};

/// Buckets per line at most, ...
const MOST_BUCKETS: usize = 1800;
/// ... and fewer when there are many runs: so many per series over all runs, because the lines are most of
/// a report's size; ...
const MOST_BUCKETS_OF_ALL_RUNS: usize = 3600;
/// ... but never fewer than this.
const FEWEST_BUCKETS: usize = 300;
/// The lines drawn so far, and the buckets they share.
pub(super) struct Drawing {
    run: usize,
    begin_s: f64,
    step_s: f64,
    /// The shortest bucket: the sampling interval.
    tick_s: f64,
    buckets: usize,
    pub(super) drawn: Vec<(TimelineSeries, TimelineLine)>,
    /// The part of the storage that is being drawn.
    pub(super) entity: Option<String>,
}

/// What a series is, in short.
pub(super) type Label<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

impl Drawing {
    pub(super) fn of(run: &ObservedRun, runs: usize) -> Drawing {
        let most = (MOST_BUCKETS_OF_ALL_RUNS / runs.max(1)).clamp(FEWEST_BUCKETS, MOST_BUCKETS);
        let tick_s = run.tick_s();
        let length = (run.end_s() - run.begin_s()).max(tick_s);
        let step_s = (length / most as f64 / tick_s).ceil().max(1.0) * tick_s;
        Drawing {
            run: run.position,
            begin_s: run.begin_s(),
            step_s,
            tick_s,
            buckets: ((length / step_s).ceil() as usize).min(most),
            drawn: Vec::new(),
            entity: None,
        }
    }

    fn bucket(&self, time: f64) -> Option<usize> {
        let position = (time - self.begin_s) / self.step_s;
        (position >= 0.0 && position < self.buckets as f64).then_some(position as usize)
    }

    /// Draws points (time on the run's clock, value).
    pub(super) fn points(&mut self, label: Label<'_>, points: &[(f64, f64)]) {
        let mut buckets: Vec<Vec<f64>> = vec![Vec::new(); self.buckets];
        for (time, value) in points.iter().filter(|(_, value)| value.is_finite()) {
            if let Some(bucket) = self.bucket(*time) {
                buckets[bucket].push(*value);
            }
        }
        let mean = buckets.iter().map(|values| crate::statistics::mean(values)).collect();
        let extreme = |of: fn(f64, f64) -> f64| {
            buckets.iter().map(|values| values.iter().copied().reduce(of)).collect()
        };
        self.line(label, mean, || (extreme(f64::min), extreme(f64::max)));
    }

    fn line(
        &mut self,
        (name, title, layer, unit, group): Label<'_>,
        mean: Vec<Option<f64>>,
        extremes: impl FnOnce() -> (Vec<Option<f64>>, Vec<Option<f64>>),
    ) {
        if mean.iter().all(Option::is_none) {
            return;
        }
        let extremes = (self.step_s > self.tick_s).then(extremes);
        let short = |values: Vec<Option<f64>>| -> Vec<Option<f64>> {
            values.into_iter().map(|value| value.map(five_digits)).collect()
        };
        let (min, max) = match extremes {
            Some((min, max)) => (Some(short(min)), Some(short(max))),
            None => (None, None),
        };
        let series = TimelineSeries {
            name: name.to_string(),
            title: title.to_string(),
            layer: layer.to_string(),
            unit: unit.to_string(),
            group: group.to_string(),
            entity: self.entity.clone(),
        };
        let line = TimelineLine {
            run: self.run,
            series: 0,
            begin_s: 0.0,
            step_s: self.step_s,
            mean: short(mean),
            min,
            max,
        };
        self.drawn.push((series, line));
    }

    pub(super) fn rate(&mut self, label: Label<'_>, series: Option<Series<'_>>, factor: f64) {
        let Some(series) = series else { return };
        let points: Vec<(f64, f64)> =
            series.rates().into_iter().map(|(time, rate)| (time, rate * factor)).collect();
        self.points(label, &points);
    }

    pub(super) fn gauge(&mut self, label: Label<'_>, series: Option<Series<'_>>) {
        let Some(series) = series else { return };
        self.points(label, &series.values());
    }

    /// Draws quantiles of merged histograms; each histogram is decoded and merged once.
    pub(super) fn quantiles<'a>(
        &mut self,
        drawn: &[(Label<'_>, f64)],
        rows: impl Iterator<Item = (f64, &'a StoredHistogram)>,
    ) {
        let mut merged: Vec<Histogram> = vec![Histogram::new(); self.buckets];
        let mut seconds: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); self.buckets]; drawn.len()];
        for (time, histogram) in rows {
            let Some(bucket) = self.bucket(time) else { continue };
            let histogram = histogram.decoded();
            for ((_, q), seconds) in drawn.iter().zip(&mut seconds) {
                seconds[bucket].extend(histogram.quantile(*q).map(|ns| ns as f64));
            }
            merged[bucket].merge(&histogram);
        }
        for ((label, q), seconds) in drawn.iter().zip(&seconds) {
            let mean =
                merged.iter().map(|bucket| bucket.quantile(*q).map(|ns| ns as f64)).collect();
            let extreme = |of: fn(f64, f64) -> f64| {
                seconds.iter().map(|values| values.iter().copied().reduce(of)).collect()
            };
            self.line(*label, mean, || (extreme(f64::min), extreme(f64::max)));
        }
    }
}

/// The histograms of a run with this name, each with the middle of its interval.
pub(super) fn histogram_rows<'a>(
    run: &'a ObservedRun,
    scope: &'a str,
    name: &'a str,
) -> impl Iterator<Item = (f64, &'a StoredHistogram)> {
    run.histograms
        .iter()
        .filter(move |row| row.scope == scope && row.name == name)
        .map(|row| (middle(row.interval), &row.histogram))
}

/// Enough for a chart, and half the size of the text of a full number.
fn five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

#[cfg(test)]
mod tests {
    use super::five_digits;

    #[test]
    fn numbers_are_shortened_not_changed() {
        assert_eq!(five_digits(123_456_789.0), 123_460_000.0);
        assert_eq!(five_digits(0.001_234_567), 0.001_234_6);
        assert_eq!(five_digits(12.5), 12.5);
        assert_eq!(five_digits(0.0), 0.0);
    }
}
