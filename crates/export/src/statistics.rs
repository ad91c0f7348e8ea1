//! Counters and histograms of the server.

use underlay_core::{Histogram, Nanos, Operation};

use crate::back_end::Answer;
use crate::path_cost::ByDirection;

/// Everything counted.
#[derive(Debug)]
pub struct Statistics {
    /// By number; those of removed volumes stay.
    pub volumes: Vec<VolumeStatistics>,
    /// How long after their deadlines clients saw the answers that were held back.
    pub lateness: Histogram,
    /// What the model said about them.
    pub modelled: Histogram,
    /// How many there were.
    pub delayed: Interval,
    /// Requests for which this host was slower than the model.
    pub host_limited: Interval,
    /// Reads and writes answered by a model, and the sum of their modelled latencies.
    pub modelled_ios: Interval,
    /// That sum.
    pub modelled_ns: Interval,
    /// Since the start, reads and writes apart: what their clients should have seen. Where this host takes longer than the model,
    /// that is what it took: no compensation makes up for it.
    pub expected_by_direction: ByDirection,
    /// Sum of the lateness since the start.
    pub lateness_ns: u64,
}

/// A counter with the value it had when an interval began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Since the start.
    pub total: u64,
    begin: u64,
}

impl Interval {
    fn add(&mut self, amount: u64) {
        self.total += amount;
    }

    /// What was counted since the last call.
    pub fn take(&mut self) -> u64 {
        debug_assert!(self.total >= self.begin, "counters only grow");
        let counted = self.total - self.begin;
        self.begin = self.total;
        counted
    }
}

/// What was counted of one volume.
#[derive(Clone, Debug, Default)]
pub struct VolumeStatistics {
    /// In the order of [`Operation::ALL`].
    pub operations: [OperationCounters; 4],
    /// Requests answered with an I/O error; none of them for want of power.
    pub errors: u64,
    latency: [Histogram; 4],
}

/// What was counted of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounters {
    /// Requests.
    pub ios: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Sum of latencies as a client sees them.
    pub latency_ns: u64,
    /// Sum of the modelled waiting for other requests.
    pub queue_ns: u64,
    /// Those that a model was asked about.
    pub modelled: ModelledCounters,
}

/// Requests that a model was asked about: what it said, and what their clients got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelledCounters {
    /// Requests.
    pub ios: u64,
    /// Sum of the modelled latencies, queueing included.
    pub modelled_ns: u64,
    /// Sum of the latencies as a client sees them.
    pub actual_ns: u64,
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

    /// Counts a request whose answer had been handed out at `replied`. `way` is what the path adds for the client (see
    /// [`crate::path_cost`]).
    pub(crate) fn record<C>(&mut self, answer: &Answer<C>, replied: Nanos, way: Nanos) {
        let index = answer.operation.index();
        let seen = replied + way;
        let latency_ns = seen.saturating_sub(answer.arrived).0;
        let volume = &mut self.volumes[answer.volume];
        let counters = &mut volume.operations[index];
        counters.ios += 1;
        counters.bytes += u64::from(answer.bytes);
        counters.latency_ns += latency_ns;
        volume.latency[index].record(latency_ns);
        let Some(modelled) = answer.modelled else { return };
        debug_assert!(modelled.deadline >= answer.arrived, "due before it arrived");
        counters.queue_ns += modelled.queue.0;
        let modelled_ns = (modelled.deadline - answer.arrived).0;
        counters.modelled.ios += 1;
        counters.modelled.modelled_ns += modelled_ns;
        counters.modelled.actual_ns += latency_ns;
        if matches!(answer.operation, Operation::Read | Operation::Write) {
            self.modelled_ios.add(1);
            self.modelled_ns.add(modelled_ns);
            let held_back = modelled.delayed;
            let expected_ns = if held_back { modelled_ns } else { modelled_ns.max(latency_ns) };
            self.expected_by_direction.add(answer.operation, expected_ns);
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
    pub fn take_latency(&mut self) -> Vec<(usize, usize, Histogram)> {
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
pub fn take(histogram: &mut Histogram) -> Histogram {
    let copy = histogram.clone();
    histogram.clear();
    copy
}

#[cfg(test)]
mod tests {
    use super::{ModelledCounters, Statistics};
    use crate::back_end::{Answer, Modelled};
    use crate::path_cost::Compensation;
    use underlay_core::{Nanos, Operation};

    fn record(
        statistics: &mut Statistics,
        (replied_us, deadline_us): (u64, u64),
        delayed: bool,
        way: Nanos,
    ) {
        let (deadline, queue) = (Nanos::from_micros(deadline_us), Nanos(5));
        let answer: Answer<()> = Answer {
            client: None,
            volume: 0,
            operation: Operation::Read,
            bytes: 4096,
            arrived: Nanos::from_micros(1_000),
            modelled: Some(Modelled { deadline, queue, delayed }),
            early: way,
            failed: false,
            buffer: Vec::new(),
            wanted: 0..0,
        };
        statistics.record(&answer, Nanos::from_micros(replied_us), way);
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
                record(&mut statistics, (replied_us, 1_000 + modelled_us), delayed, early);
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
        record(&mut statistics, (1_180, 1_200), true, way); // Seen at 1,220: 20 us late.
        record(&mut statistics, (1_150, 1_200), true, way); // Seen at 1,190: early.
        record(&mut statistics, (1_010, 1_025), false, way); // Could not be held back.
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
        assert_eq!(read.modelled, ModelledCounters { ios: 3, modelled_ns, actual_ns });
        assert_eq!(statistics.take_latency().len(), 1);
        assert_eq!(statistics.take_latency().len(), 0);
    }
}
