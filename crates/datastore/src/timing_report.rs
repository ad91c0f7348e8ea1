//! How well an emulation kept its promise: the report that every emulated run carries.
//!
//! Definitions, for one request that arrived in the server at `a` and was answered at `r`:
//!
//! * *modelled latency* `m`: what the device model says, queueing included; the deadline is `a + m`.
//! * *floor* `f`: what the export path itself costs, measured at start as the median of a read without
//!   delay, client to client. A client sees an answer about `f` later than `r - a` suggests.
//! * *lateness*: `max(0, (r + f) - (a + m))`, how much later than the device would have
//!   answered the client got its answer.
//! * *delayed*: the server had to hold the request back (`m` exceeded the compensation). Only such
//!   requests have a lateness: for the others the host was slower than the device, which is
//!   what *host-limited* means.

use underlay_core::{Histogram, Nanos};

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
    /// What the export path itself costs, client to client.
    pub floor: Nanos,
    /// The constant by which requests are answered before their deadline, so that the client sees
    /// them on time.
    pub compensation: Nanos,
}

impl TimingReport {
    /// Judges what was observed: valid unless lateness p99 exceeds [`LATENESS_SHARE_MAX`] of the
    /// median modelled latency of the delayed requests.
    pub fn judge(
        lateness: Histogram,
        modelled: Histogram,
        host_limited_share: f64,
        floor: Nanos,
        compensation: Nanos,
    ) -> TimingReport {
        let reason = match (lateness.quantile(0.99), modelled.quantile(0.5)) {
            (Some(late_ns), Some(typical_ns))
                if late_ns as f64 > LATENESS_SHARE_MAX * typical_ns as f64 =>
            {
                Some(format!(
                    "the slowest 1 % of requests were {} late or more, over {:.0} % of the modelled {}; \
                     the host was too busy to keep time",
                    Nanos(late_ns),
                    LATENESS_SHARE_MAX * 100.0,
                    Nanos(typical_ns),
                ))
            }
            _ => None,
        };
        TimingReport {
            lateness,
            modelled,
            valid: reason.is_none(),
            reason,
            host_limited_share,
            floor,
            compensation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TimingReport;
    use underlay_core::{Histogram, Nanos};

    fn judge(late_us: u64) -> TimingReport {
        let mut lateness = Histogram::new();
        lateness.record_n(0, 970);
        lateness.record_n(late_us * 1000, 30);
        let mut modelled = Histogram::new();
        modelled.record_n(200_000, 1000);
        TimingReport::judge(lateness, modelled, 0.0, Nanos(40_000), Nanos(50_000))
    }

    #[test]
    fn late_runs_are_not_valid_and_say_why() {
        assert!(judge(19).valid);
        let late = judge(25);
        assert!(!late.valid);
        let reason = late.reason.expect("a reason");
        assert!(reason.contains("25 us") && reason.contains("200 us"), "{reason}");
    }

    #[test]
    fn nothing_observed_is_valid() {
        let report =
            TimingReport::judge(Histogram::new(), Histogram::new(), 0.0, Nanos(0), Nanos(0));
        assert!(report.valid && report.reason.is_none());
    }
}
