//! The timing report of an emulated run: how closely replies followed the model.
//!
//! Definitions, for one request that arrived in the server at `a` and was answered at `r`:
//!
//! * *modelled latency* `m`: what the device model says, queueing included; the deadline is `a + m`.
//! * *way* `w`: what the path from the client to the server and back costs beyond that, calibrated at start
//!   through the real path and adapted to how awake the CPUs are. A client sees an answer about `w` later
//!   than `r - a` suggests.
//! * *lateness*: `max(0, (r + w) - (a + m))`, how much later than the device would have answered the client got
//!   its answer.
//! * *delayed*: the server had to hold the request back (`m` exceeded the compensation). Only such requests have a
//!   lateness: for the others the host was slower than the device, which is what *host-limited* means.
//!
//! The server cannot see a request that waits for a CPU before it reaches the server. The kernel's block layer
//! can: its mean latency beside the modelled mean shows what the host cost in all.

use underlay_core::{Histogram, Nanos};

use crate::control::{EncodedHistogram, TimingEntry};
use crate::error::DatastoreError;

/// Lateness p99 above this share of the median modelled latency makes a run not timing-valid.
pub const LATENESS_SHARE_MAX: f64 = 0.10;

/// How well modelled latencies were met over some span.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingReport {
    /// Lateness of delayed requests, ns.
    pub lateness: Histogram,
    /// Modelled latency of delayed requests, ns.
    pub modelled: Histogram,
    /// Whether the run may be read as the device's behaviour.
    pub valid: bool,
    /// Why not, if not.
    pub reason: Option<String>,
    /// Share of all requests, 0..=1, for which the host was slower than the device.
    pub host_limited_share: f64,
    /// A read through the export path without any delay, client to client, on the idle host at start.
    pub floor: Nanos,
    /// By how much requests were answered before their deadline at the end of the span, so that
    /// clients see them on time.
    pub compensation: Nanos,
    /// Mean modelled latency of all reads and writes, delayed or not.
    pub modelled_mean: Option<Nanos>,
    /// Mean latency of all reads and writes as the kernel's block layer saw it.
    pub block_mean: Option<Nanos>,
}

/// What a report is made from.
pub(crate) struct Observed {
    pub(crate) lateness: Histogram,
    pub(crate) modelled: Histogram,
    pub(crate) host_limited_share: f64,
    pub(crate) floor: Nanos,
    pub(crate) compensation: Nanos,
    pub(crate) modelled_mean: Option<Nanos>,
    pub(crate) block_mean: Option<Nanos>,
}

impl TimingReport {
    /// Judges what was observed: valid unless lateness p99 exceeds [`LATENESS_SHARE_MAX`] of the
    /// median modelled latency of the delayed requests.
    pub(crate) fn judge(observed: Observed) -> TimingReport {
        debug_assert!((0.0..=1.0).contains(&observed.host_limited_share), "a share");
        let late = observed.lateness.quantile(0.99);
        let typical = observed.modelled.quantile(0.5);
        let reason = late.zip(typical).filter(|(late_ns, typical_ns)| {
            *late_ns as f64 > LATENESS_SHARE_MAX * *typical_ns as f64
        });
        let reason = reason.map(|(late_ns, typical_ns)| {
            format!(
                "p99 of lateness is {}, more than {:.0} % of the modelled median of {}; the host was too busy",
                Nanos(late_ns),
                LATENESS_SHARE_MAX * 100.0,
                Nanos(typical_ns),
            )
        });
        TimingReport {
            valid: reason.is_none(),
            reason,
            lateness: observed.lateness,
            modelled: observed.modelled,
            host_limited_share: observed.host_limited_share,
            floor: observed.floor,
            compensation: observed.compensation,
            modelled_mean: observed.modelled_mean,
            block_mean: observed.block_mean,
        }
    }

    /// The share of the time of all reads and writes that the host cost beyond the model, 0..=1: what the
    /// database waited for the emulation instead of for the device. `None` when nothing was observed.
    pub fn host_cost_share(&self) -> Option<f64> {
        let (seen, modelled) = (self.block_mean?.0 as f64, self.modelled_mean?.0 as f64);
        (seen > 0.0).then(|| (1.0 - modelled / seen).max(0.0))
    }
}

/// A histogram of a server's answer.
fn decode(histogram: &EncodedHistogram) -> Result<Histogram, DatastoreError> {
    histogram.decode().map_err(|source| DatastoreError::BadAnswer {
        command: "timing".to_string(),
        answer: source.to_string(),
    })
}

impl TimingEntry {
    /// Adds what was counted in the span behind this one.
    pub(crate) fn merge(&mut self, later: &TimingEntry) -> Result<(), DatastoreError> {
        for (mine, theirs) in
            [(&mut self.lateness, &later.lateness), (&mut self.modelled, &later.modelled)]
        {
            let mut both = decode(mine)?;
            both.merge(&decode(theirs)?);
            *mine = EncodedHistogram::encode(&both);
        }
        self.delayed += later.delayed;
        self.host_limited += later.host_limited;
        self.modelled_ios += later.modelled_ios;
        self.modelled_ns += later.modelled_ns;
        self.compensation_ns = later.compensation_ns;
        Ok(())
    }

    /// The report on what a server counted.
    pub(crate) fn judge(
        &self,
        floor: Nanos,
        block_mean: Option<Nanos>,
    ) -> Result<TimingReport, DatastoreError> {
        let all = self.delayed + self.host_limited;
        Ok(TimingReport::judge(Observed {
            lateness: decode(&self.lateness)?,
            modelled: decode(&self.modelled)?,
            host_limited_share: if all == 0 { 0.0 } else { self.host_limited as f64 / all as f64 },
            floor,
            compensation: Nanos(self.compensation_ns),
            modelled_mean: self.modelled_ns.checked_div(self.modelled_ios).map(Nanos),
            block_mean,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Observed, TimingReport};
    use underlay_core::{Histogram, Nanos};

    fn judge(lateness: Histogram, modelled: Histogram) -> TimingReport {
        TimingReport::judge(Observed {
            lateness,
            modelled,
            host_limited_share: 0.0,
            floor: Nanos(40_000),
            compensation: Nanos(50_000),
            modelled_mean: Some(Nanos(200_000)),
            block_mean: Some(Nanos(250_000)),
        })
    }

    fn late_by(late_us: u64) -> TimingReport {
        let mut lateness = Histogram::new();
        lateness.record_n(0, 970);
        lateness.record_n(late_us * 1000, 30);
        let mut modelled = Histogram::new();
        modelled.record_n(200_000, 1000);
        judge(lateness, modelled)
    }

    #[test]
    fn late_runs_are_not_valid_and_say_why() {
        assert!(late_by(19).valid);
        let late = late_by(25);
        assert!(!late.valid);
        let reason = late.reason.expect("a reason");
        assert!(reason.contains("25 us") && reason.contains("200 us"), "{reason}");
    }

    #[test]
    fn nothing_observed_is_valid() {
        let report = judge(Histogram::new(), Histogram::new());
        assert!(report.valid && report.reason.is_none());
    }

    #[test]
    fn the_host_costs_what_the_block_layer_sees_beyond_the_model() {
        let share = late_by(0).host_cost_share().expect("both means are there");
        assert!((share - 0.2).abs() < 1e-9);
    }
}
