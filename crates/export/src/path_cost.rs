//! What the way through the host costs a request beyond its modelled latency, and how that is made up for.
//!
//! A client sees a modelled latency plus the *way* (to the server and back, hand-overs between threads
//! included) plus the *wake-up* of the server by its timer. Both change with the load: at a queue depth of 8 the way
//! is three times as long as alone, and it doubles again while a database uses the CPUs. So nothing measured once
//! can be right for all of a run.
//!
//! Two sources correct each other. On an idle host, before anything is measured, a *probe*: a read that takes a
//! constant time by definition. Later the kernel's block layer, which sees every request from its submission to its
//! completion: its mean latency beside the modelled mean of the same requests is the error of the moment. A request that
//! the model answers sooner than this host can leaves at once; it counts as it was seen here, or the others would leave too early
//! to make up for it.
//! Requests are answered before their deadline by the *compensation*, which follows that error.
//!
//! The mean, because it is what a database feels: users that wait for storage get through as many transactions as the
//! mean latency allows.
//!
//! Reads and writes are followed apart. Writes come in bursts that wait for each other on this path, and in a cluster they
//! move their bytes to all members right before they are answered. With one value for both, reads alongside writes would be
//! answered too early, because writes are late.
//!
//! Pure: no clock, no files. Who measures (`emulated::path_calibration` and `emulated::path_follower` of
//! `underlay-datastore`) tells the server.

use serde::{Deserialize, Serialize};
use underlay_core::{Nanos, Operation};

/// By how much answers leave early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathCompensation {
    /// Reads.
    pub reads_ns: u64,
    /// Writes, and everything else that is not a read.
    pub writes_ns: u64,
}

impl PathCompensation {
    /// The same for everything.
    pub fn of_all(value: Nanos) -> PathCompensation {
        PathCompensation { reads_ns: value.0, writes_ns: value.0 }
    }
}

/// Requests and the sum of their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counted {
    /// Requests.
    pub ios: u64,
    /// The sum.
    pub ns: u64,
}

impl Counted {
    /// Both added.
    pub fn plus(self, other: Counted) -> Counted {
        Counted { ios: self.ios + other.ios, ns: self.ns + other.ns }
    }

    /// The difference to an earlier reading; zero if the counters were reset.
    pub fn since(self, earlier: Counted) -> Counted {
        Counted {
            ios: self.ios.saturating_sub(earlier.ios),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }
}

/// Reads and writes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ByDirection {
    /// Reads.
    pub reads: Counted,
    /// Writes.
    pub writes: Counted,
}

impl ByDirection {
    /// One more; flushes and discards do not count.
    pub fn add(&mut self, operation: Operation, latency_ns: u64) {
        let counted = match operation {
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
            Operation::Flush | Operation::Discard => return,
        };
        *counted = counted.plus(Counted { ios: 1, ns: latency_ns });
    }

    /// Both together.
    pub fn total(self) -> Counted {
        self.reads.plus(self.writes)
    }
}

/// Probes per correction. The median of them is not moved by the few that waited for a CPU.
pub const PROBES_PER_STEP: usize = 16;
/// Share of the error that is corrected at once: less would lag behind a load that begins, more would swing.
const GAIN: f64 = 0.6;
/// What is seen beyond this is a host that is overloaded, not a path. To compensate for it would make most answers
/// far too early because some are far too late.
const COMPENSATION_MAX_NS: f64 = 250_000.0;
/// One correction under load changes no more than this: a few requests that waited milliseconds for a CPU must not.
const CORRECTION_MAX_NS: f64 = 20_000.0;

/// By how much requests are to be answered early, corrected by what probes see.
#[derive(Clone, Debug, Default)]
pub struct Compensation {
    ns: f64,
    errors_ns: Vec<i64>,
}

impl Compensation {
    /// Goes on from what was found before.
    pub fn starting_from(value: Nanos) -> Compensation {
        Compensation { ns: value.0 as f64, errors_ns: Vec::new() }
    }

    /// The value to use now.
    pub fn value(&self) -> Nanos {
        Nanos(self.ns as u64)
    }

    /// A probe that should have taken `expected` took `seen`. Returns the error that was corrected when the
    /// value changed.
    pub fn observe(&mut self, expected: Nanos, seen: Nanos) -> Option<i64> {
        self.errors_ns.push(seen.0 as i64 - expected.0 as i64);
        if self.errors_ns.len() < PROBES_PER_STEP {
            return None;
        }
        let middle = self.errors_ns.len() / 2;
        let (_, median, _) = self.errors_ns.select_nth_unstable(middle);
        let median = *median;
        self.errors_ns.clear();
        self.change_by(GAIN * median as f64);
        Some(median)
    }

    /// Many requests took this much longer than they should have, on average; negative = shorter.
    pub fn correct(&mut self, mean_error_ns: f64) {
        self.change_by((GAIN * mean_error_ns).clamp(-CORRECTION_MAX_NS, CORRECTION_MAX_NS));
    }

    fn change_by(&mut self, correction_ns: f64) {
        self.ns = (self.ns + correction_ns).clamp(0.0, COMPENSATION_MAX_NS);
    }
}

/// How late the server's answers leave, seen by the server itself, and how long before an answer it must be awake.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathCost {
    compensation: PathCompensation,
    late_ns: f64,
    lead_ns: f64,
}

/// Weight of a new observation in the running mean.
const LATE_WEIGHT: f64 = 1.0 / 64.0;
/// A wake-up later than this was an accident.
const LATE_CLIP_NS: f64 = 100_000.0;
/// The server is awake early enough for this share of its wake-ups.
const LEAD_QUANTILE: f64 = 0.95;
/// Waiting awake for longer than this would take more from the database than keeping time is worth.
const LEAD_MAX_NS: f64 = 12_000.0;
/// One step of the running quantile.
const LEAD_STEP_NS: f64 = 400.0;

impl PathCost {
    /// Requests are answered this much before their deadline from now on.
    pub fn compensate(&mut self, compensation: PathCompensation) {
        self.compensation = compensation;
    }

    /// The timer was to go off at some time and the server was awake this much later.
    ///
    /// The lead follows the quantile by steps whose sizes are as its odds (stochastic approximation of Robbins and
    /// Monro): it rests where late wake-ups are as rare as they should be.
    pub fn observe_wake(&mut self, late: Nanos) {
        let late_ns = (late.0 as f64).min(LATE_CLIP_NS);
        let step =
            if late_ns > self.lead_ns { LEAD_QUANTILE } else { LEAD_QUANTILE - 1.0 } * LEAD_STEP_NS;
        self.lead_ns = (self.lead_ns + step).clamp(0.0, LEAD_MAX_NS);
    }

    /// An answer that had been held back left this much after it was to leave.
    pub fn observe_answer(&mut self, late: Nanos) {
        self.late_ns += LATE_WEIGHT * ((late.0 as f64).min(LATE_CLIP_NS) - self.late_ns);
    }

    /// How long before an answer the server sets its alarm.
    pub fn lead(&self) -> Nanos {
        Nanos(self.lead_ns as u64)
    }

    /// What a client sees after an answer has left: the compensation without the server's own usual lateness.
    pub fn way(&self, compensation: Nanos) -> Nanos {
        compensation.saturating_sub(Nanos(self.late_ns as u64))
    }

    /// By how much requests are answered before their deadline.
    pub fn compensation_of(&self, operation: Operation) -> Nanos {
        Nanos(match operation {
            Operation::Read => self.compensation.reads_ns,
            Operation::Write | Operation::Flush | Operation::Discard => self.compensation.writes_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        COMPENSATION_MAX_NS, CORRECTION_MAX_NS, Compensation, LEAD_MAX_NS, PROBES_PER_STEP,
        PathCompensation, PathCost,
    };
    use underlay_core::{Nanos, Operation};

    const PROBE: Nanos = Nanos::from_micros(200);

    /// Probes through a path that costs `path_us`, every eighth of which waits for a CPU.
    fn probe(compensation: &mut Compensation, path_us: u64, steps: usize) {
        for i in 0..steps * PROBES_PER_STEP {
            let accident = if i % 8 == 7 { Nanos::from_millis(3) } else { Nanos::ZERO };
            // An answer cannot leave before its request arrived.
            let held = PROBE.saturating_sub(compensation.value());
            compensation.observe(PROBE, held + Nanos::from_micros(path_us) + accident);
        }
    }

    #[test]
    fn follows_the_path_up_and_down_in_a_few_steps() {
        let mut compensation = Compensation::default();
        for path_us in [80, 120, 18] {
            probe(&mut compensation, path_us, 8);
            let error_ns = compensation.value().0.abs_diff(path_us * 1_000);
            assert!(error_ns < 1_000, "{path_us} us: {:?}", compensation.value());
        }
    }

    #[test]
    fn an_overloaded_host_is_not_compensated_without_bounds() {
        let mut compensation = Compensation::default();
        probe(&mut compensation, 5_000, 50);
        assert_eq!(compensation.value(), Nanos(COMPENSATION_MAX_NS as u64));
        probe(&mut compensation, 50, 20);
        assert!(compensation.value() < Nanos::from_micros(52));
    }

    #[test]
    fn under_load_it_follows_the_mean_in_bounded_steps() {
        let mut compensation = Compensation::starting_from(Nanos::from_micros(20));
        compensation.correct(5e6);
        assert_eq!(compensation.value().0, 20_000 + CORRECTION_MAX_NS as u64);
        for _ in 0..30 {
            let error_ns = 90_000.0 - compensation.value().0 as f64;
            compensation.correct(error_ns);
        }
        assert!(compensation.value().0.abs_diff(90_000) < 100, "{:?}", compensation.value());
        (0..9).for_each(|_| compensation.correct(-5e6));
        assert_eq!(compensation.value(), Nanos::ZERO);
    }

    #[test]
    fn the_lead_covers_nearly_all_wake_ups_and_never_the_accidents() {
        let mut cost = PathCost::default();
        // 0 to 10 us, evenly.
        (0..20_000u64).for_each(|i| cost.observe_wake(Nanos(i * 7_919 % 10_000)));
        assert!((8_700..=10_300).contains(&cost.lead().0), "{:?}", cost.lead());
        (0..20_000).for_each(|_| cost.observe_wake(Nanos::from_millis(4)));
        assert_eq!(cost.lead(), Nanos(LEAD_MAX_NS as u64));
    }

    #[test]
    fn the_way_is_what_the_server_does_not_see_itself() {
        let mut cost = PathCost::default();
        cost.compensate(PathCompensation::of_all(Nanos::from_micros(60)));
        (0..2_000).for_each(|_| cost.observe_answer(Nanos::from_micros(20)));
        let compensation = cost.compensation_of(Operation::Read);
        assert_eq!(compensation, Nanos::from_micros(60));
        let way = cost.way(compensation);
        assert!(way.0.abs_diff(40_000) < 100, "{way:?}");
    }
}
