//! Counters and histograms of the server.

use underlay_core::{Histogram, Nanos};
use underlay_model::Operation;

use crate::control::OperationStat;
use crate::path_cost::ByDirection;

/// One answered request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) volume: usize,
    pub(crate) operation: Operation,
    pub(crate) bytes: u32,
    pub(crate) arrived: Nanos,
    /// When the answer had been handed to the kernel.
    pub(crate) replied: Nanos,
    /// What the model said; none when no model was asked.
    pub(crate) modelled: Option<Modelled>,
}

/// What the model said about a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modelled {
    pub(crate) deadline: Nanos,
    pub(crate) queue: Nanos,
    /// Whether the answer had to be held back.
    pub(crate) delayed: bool,
}

/// Everything counted.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) volumes: Vec<VolumeStatistics>,
    pub(crate) lateness: Histogram,
    pub(crate) modelled: Histogram,
    /// Since the start, and at the last interval's end.
    pub(crate) delayed: Interval,
    pub(crate) host_limited: Interval,
    /// Reads and writes answered by a model, and the sum of their modelled latencies.
    pub(crate) modelled_ios: Interval,
    pub(crate) modelled_ns: Interval,
    /// Since the start, reads and writes apart: what their clients should have seen. Where this host takes longer than the model,
    /// that is what it took: no compensation makes up for it.
    pub(crate) expected_by_direction: ByDirection,
    pub(crate) lateness_ns: u64,
    pub(crate) errors: u64,
}

/// A counter with the value it had when an interval began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) total: u64,
    begin: u64,
}

impl Interval {
    fn add(&mut self, amount: u64) {
        self.total += amount;
    }

    /// What was counted since the last call.
    pub(crate) fn take(&mut self) -> u64 {
        debug_assert!(self.total >= self.begin, "counters only grow");
        let counted = self.total - self.begin;
        self.begin = self.total;
        counted
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeStatistics {
    pub(crate) operations: [OperationStat; 4],
    /// Requests answered with an I/O error.
    pub(crate) errors: u64,
    latency: [Histogram; 4],
}

impl Statistics {
    pub(crate) fn new(volumes: usize) -> Statistics {
        Statistics {
            volumes: vec![VolumeStatistics::default(); volumes],
            lateness: Histogram::new(),
            modelled: Histogram::new(),
            delayed: Interval::default(),
            host_limited: Interval::default(),
            modelled_ios: Interval::default(),
            modelled_ns: Interval::default(),
            expected_by_direction: ByDirection::default(),
            lateness_ns: 0,
            errors: 0,
        }
    }

    /// A request to a volume is answered with an I/O error.
    pub(crate) fn count_failure(&mut self, volume: usize) {
        if let Some(volume) = self.volumes.get_mut(volume) {
            volume.errors += 1;
        }
    }

    /// There is one volume more.
    pub(crate) fn add_volume(&mut self) {
        self.volumes.push(VolumeStatistics::default());
    }

    /// Counts an answered request. `way` is what the path adds for the client (see `TimingReport`).
    pub(crate) fn record(&mut self, answered: &Answered, way: Nanos) {
        let index = answered.operation.index();
        let seen = answered.replied + way;
        let latency_ns = seen.saturating_sub(answered.arrived).0;
        let volume = &mut self.volumes[answered.volume];
        let counters = &mut volume.operations[index];
        counters.ios += 1;
        counters.bytes += u64::from(answered.bytes);
        counters.latency_ns += latency_ns;
        volume.latency[index].record(latency_ns);
        let Some(modelled) = answered.modelled else { return };
        debug_assert!(modelled.deadline >= answered.arrived, "due before it arrived");
        counters.queue_ns += modelled.queue.0;
        let modelled_ns = (modelled.deadline - answered.arrived).0;
        counters.modelled.ios += 1;
        counters.modelled.modelled_ns += modelled_ns;
        counters.modelled.actual_ns += latency_ns;
        if matches!(answered.operation, Operation::Read | Operation::Write) {
            self.modelled_ios.add(1);
            self.modelled_ns.add(modelled_ns);
            let held_back = modelled.delayed;
            let expected_ns = if held_back { modelled_ns } else { modelled_ns.max(latency_ns) };
            self.expected_by_direction.add(answered.operation, expected_ns);
        }
        if modelled.delayed {
            let late_ns = seen.saturating_sub(modelled.deadline).0;
            self.lateness.record(late_ns);
            self.lateness_ns += late_ns;
            self.modelled.record(modelled_ns);
            self.delayed.add(1);
        } else {
            self.host_limited.add(1);
        }
    }

    /// Latencies since the last call: (volume, index of the operation, histogram).
    pub(crate) fn take_latency(&mut self) -> Vec<(usize, usize, Histogram)> {
        let mut taken = Vec::with_capacity(4 * self.volumes.len());
        for (volume, statistics) in self.volumes.iter_mut().enumerate() {
            for (operation, histogram) in statistics.latency.iter_mut().enumerate() {
                if !histogram.is_empty() {
                    taken.push((volume, operation, take(histogram)));
                }
            }
        }
        taken
    }
}

/// Copies and empties a histogram. It keeps its memory, so that counting goes on without allocation.
pub(crate) fn take(histogram: &mut Histogram) -> Histogram {
    let copy = histogram.clone();
    histogram.clear();
    copy
}

#[cfg(test)]
mod tests {
    use super::{Answered, Modelled, Statistics};
    use crate::control::ModelledIo;
    use crate::path_cost::Compensation;
    use underlay_core::Nanos;
    use underlay_model::Operation;

    fn answered(replied_us: u64, deadline_us: u64, delayed: bool) -> Answered {
        Answered {
            volume: 0,
            operation: Operation::Read,
            bytes: 4096,
            arrived: Nanos::from_micros(1_000),
            replied: Nanos::from_micros(replied_us),
            modelled: Some(Modelled {
                deadline: Nanos::from_micros(deadline_us),
                queue: Nanos(5),
                delayed,
            }),
        }
    }

    /// What the compensation comes to in ten seconds on a host whose way takes 15 us, of requests that the model gives these times.
    fn compensation_us(from_us: u64, modelled_us: &[u64]) -> u64 {
        const WAY_US: u64 = 15;
        let mut compensation = Compensation::starting_from(Nanos::from_micros(from_us));
        for _ in 0..100 {
            let mut statistics = Statistics::new(1);
            let (early, mut seen_us) = (compensation.value(), 0);
            for modelled_us in modelled_us {
                let leaves = Nanos::from_micros(1_000 + modelled_us).saturating_sub(early);
                let delayed = leaves > Nanos::from_micros(1_001);
                let replied_us = if delayed { leaves.0 / 1_000 } else { 1_001 };
                statistics.record(&answered(replied_us, 1_000 + modelled_us, delayed), early);
                seen_us += replied_us - 1_000 + WAY_US;
            }
            let expected = statistics.expected_by_direction.total();
            let (seen_ns, count) = (1e3 * seen_us as f64, modelled_us.len() as f64);
            compensation.correct((seen_ns - expected.ns as f64) / count);
        }
        compensation.value().0 / 1_000
    }

    /// Answers that leave at once are not what the compensation can change: with them in its error, it would come to more than the way
    /// takes, and the others would leave too early; and what it came to on a busy host it would hardly give up.
    #[test]
    fn what_leaves_at_once_moves_no_compensation() {
        for from_us in [0, 15, 250] {
            for modelled_us in [&[27, 27][..], &[97, 5], &[97, 5, 5, 5], &[5, 5]] {
                let found = compensation_us(from_us, modelled_us);
                assert!((13..=17).contains(&found), "{found} us from {from_us}: {modelled_us:?}");
            }
        }
    }

    #[test]
    fn lateness_is_what_the_client_sees_after_the_deadline() {
        let mut statistics = Statistics::new(1);
        let way = Nanos::from_micros(40);
        statistics.record(&answered(1_180, 1_200, true), way); // Seen at 1,220: 20 us late.
        statistics.record(&answered(1_150, 1_200, true), way); // Seen at 1,190: early.
        statistics.record(&answered(1_010, 1_025, false), way); // Could not be held back.
        assert_eq!((statistics.lateness.max(), statistics.lateness.min()), (Some(20_000), Some(0)));
        assert_eq!(statistics.lateness_ns, 20_000);
        let modelled = (statistics.modelled_ios.take(), statistics.modelled_ns.take());
        assert_eq!(modelled, (3, 200_000 + 200_000 + 25_000));
        let expected = statistics.expected_by_direction.reads;
        // The third was seen after 50 us.
        assert_eq!((expected.ios, expected.ns), (3, 200_000 + 200_000 + 50_000));
        assert_eq!((statistics.delayed.take(), statistics.host_limited.take()), (2, 1));
        assert_eq!((statistics.delayed.take(), statistics.delayed.total), (0, 2));
        let read = statistics.volumes[0].operations[0];
        assert_eq!((read.ios, read.bytes, read.queue_ns), (3, 12_288, 15));
        assert_eq!(read.latency_ns, 220_000 + 190_000 + 50_000);
        let (modelled_ns, actual_ns) = (425_000, 460_000);
        assert_eq!(read.modelled, ModelledIo { ios: 3, modelled_ns, actual_ns });
        assert_eq!(statistics.take_latency().len(), 1);
        assert_eq!(statistics.take_latency().len(), 0);
    }
}
