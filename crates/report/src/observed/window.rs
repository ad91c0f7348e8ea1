//! One measured window of a run, and the ticks that belong to it.

use std::collections::BTreeMap;

use underlay_core::{Histogram, Nanos};
use underlay_record::conventions::event;
use underlay_record::{
    HistogramRow, Interval, Phase, PhaseKind, PhaseStatus, StoredHistogram, TransactionTick,
    WaitWindow,
};

use super::run::ObservedRun;
use crate::workload_view::WorkloadView;

/// One rung in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredWindow<'a> {
    pub(crate) run: &'a ObservedRun,
    pub(crate) users: u32,
    pub(crate) interval: Interval,
}

impl ObservedRun {
    /// The measured windows: finished, with users; of a block load those that belong to what is reported.
    pub(crate) fn windows(&self) -> Vec<MeasuredWindow<'_>> {
        self.of_phases(|phase| self.is_measured(phase) && !self.is_left_out(&phase.label))
    }

    /// The windows of the null twin: the same load without the delays of the modelled storage.
    pub(crate) fn twin_windows(&self) -> Vec<MeasuredWindow<'_>> {
        self.of_phases(|phase| {
            phase.kind == PhaseKind::NullTwin && phase.status == PhaseStatus::Finished
        })
    }

    fn of_phases(&self, is_wanted: impl Fn(&Phase) -> bool) -> Vec<MeasuredWindow<'_>> {
        let window = |phase: &Phase| {
            let interval = phase.interval().filter(|interval| interval.seconds() > 0.0)?;
            Some(MeasuredWindow { run: self, users: phase.users?, interval })
        };
        self.phases.iter().filter(|phase| is_wanted(phase)).filter_map(window).collect()
    }
}

impl<'a> MeasuredWindow<'a> {
    /// Begin and end, seconds on the run's clock.
    pub(crate) fn span(&self) -> (f64, f64) {
        (self.interval.begin.as_secs_f64(), self.interval.end.as_secs_f64())
    }

    /// The transaction ticks that lie in the window.
    ///
    /// Ticks are not cut at the edges: counts are divided by the time that their ticks cover, not by the
    /// length of the phase, so that misaligned edges cause no bias.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &'a TransactionTick> + use<'a> {
        let span = self.span();
        self.run.transactions.iter().filter(move |tick| contains(span, tick.interval))
    }

    /// The wait samples in the window.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &'a WaitWindow> + use<'a> {
        let span = self.span();
        self.run.waits.iter().filter(move |window| contains(span, window.interval))
    }

    /// The other histograms in the window.
    pub(crate) fn histograms(&self) -> impl Iterator<Item = &'a HistogramRow> + use<'a> {
        let span = self.span();
        self.run.histograms.iter().filter(move |row| contains(span, row.interval))
    }

    /// The union of the histograms of a scope and name in the window.
    pub(crate) fn merged_histogram(&self, scope: &str, name: &str) -> Histogram {
        merged(
            self.histograms()
                .filter(|row| row.scope == scope && row.name == name)
                .map(|row| &row.histogram),
        )
    }

    /// Increase of a counter per second in the window.
    pub(crate) fn rate(&self, source: &str, series: &str) -> Option<f64> {
        self.run.series(source, series)?.rate(self.span())
    }

    /// The same over the whole window: `None` if the counter was reset in it.
    pub(crate) fn rate_throughout(&self, source: &str, series: &str) -> Option<f64> {
        self.run.series(source, series)?.rate_throughout(self.span())
    }

    /// Whether the load generator lost the database, or the database was restarted, in the window.
    pub(crate) fn lost_database(&self) -> bool {
        self.run.events.iter().any(|happened| {
            let is_loss = matches!(&*happened.kind, event::OUTAGE | event::RECOVERY);
            let until = happened.data["until_ns"].as_u64().map_or(
                // An outage that did not end lasted as long as the run, a start of the server is a moment.
                if happened.kind == event::OUTAGE { Nanos(u64::MAX) } else { happened.at },
                Nanos,
            );
            is_loss && happened.at < self.interval.end && until > self.interval.begin
        })
    }

    /// Mean of a gauge in the window.
    pub(crate) fn mean(&self, source: &str, series: &str) -> Option<f64> {
        self.run.series(source, series)?.mean(self.span())
    }

    /// What the headline counts, committed in each tick, with its length: begin (nanoseconds) -> tick.
    pub(crate) fn ticks(&self, workload: &WorkloadView) -> BTreeMap<u64, CountedTick> {
        let mut ticks: BTreeMap<u64, CountedTick> = BTreeMap::new();
        for tick in self.transactions() {
            let entry = ticks
                .entry(tick.interval.begin.0)
                .or_insert(CountedTick { seconds: tick.interval.seconds(), counted: 0 });
            if workload.counts(&tick.transaction) {
                entry.counted += tick.committed;
            }
        }
        ticks
    }
}

/// What the headline counts in one tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedTick {
    pub(crate) seconds: f64,
    pub(crate) counted: u64,
}

/// The union of stored histograms.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a StoredHistogram>) -> Histogram {
    let mut union = Histogram::new();
    histograms.for_each(|histogram| union.merge(&histogram.decoded()));
    union
}

/// Share of a tick that must lie in the window. A tick that reaches into the next phase has seen other users.
const INSIDE_MIN: f64 = 0.9;

fn contains(span: (f64, f64), interval: Interval) -> bool {
    let (begin, end) = (interval.begin.as_secs_f64(), interval.end.as_secs_f64());
    let inside = end.min(span.1) - begin.max(span.0);
    inside > 0.0 && inside >= INSIDE_MIN * (end - begin)
}

/// An amount per another one; `None` where that is nothing.
pub(super) fn per(amount: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| amount / of)
}

#[cfg(test)]
mod tests {
    use super::contains;
    use underlay_core::Nanos;
    use underlay_record::Interval;

    #[test]
    fn ticks_that_reach_into_another_phase_do_not_count() {
        let tick = |begin_ms: u64, end_ms: u64| Interval {
            begin: Nanos::from_millis(begin_ms),
            end: Nanos::from_millis(end_ms),
        };
        let span = (10.0, 18.0);
        assert!(contains(span, tick(10_000, 11_000)));
        assert!(contains(span, tick(17_050, 18_050)), "an edge that is a little off is no harm");
        assert!(!contains(span, tick(17_500, 18_450)), "half of it saw the next rung");
        assert!(!contains(span, tick(9_500, 10_500)));
        assert!(!contains(span, tick(18_000, 19_000)));
    }
}
