//! What comes out of a simulation: distributions per stream, and what happened in each second.

use underlay_core::{Histogram, Nanos};
use underlay_workload::block::steady_state::WINDOW_ROUNDS;
use underlay_workload::block::{Access, SteadyState, steady_state};

/// Latencies of the reads or of the writes of one stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// From the intended start to the completion, ns. In a closed loop the same as `service`.
    pub response: Histogram,
    /// From the submission to the completion, ns.
    pub service: Histogram,
    /// Of that, waiting for others inside the storage, ns.
    pub queue: Histogram,
    /// Bytes moved.
    pub bytes: u64,
}

impl Latencies {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.queue.merge(&other.queue);
        self.bytes += other.bytes;
    }
}

/// One stream of the clients of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamResult {
    /// Name of the clients.
    pub client: String,
    /// Name of the stream in their workload.
    pub stream: String,
    /// Its reads.
    pub read: Latencies,
    /// Its writes.
    pub write: Latencies,
}

/// One second of virtual time, from the beginning of the run (warm-up included).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Requests completed: reads, writes.
    pub count: [u64; 2],
    /// Bytes moved: reads, writes.
    pub bytes: [u64; 2],
    /// Sum of response times in ns: reads, writes.
    pub response_sum_ns: [u64; 2],
    /// Longest response time in ns: reads, writes.
    pub response_max_ns: [u64; 2],
}

impl Second {
    pub(crate) fn record(&mut self, access: Access, bytes: u32, response: Nanos) {
        let index = access_index(access);
        self.count[index] += 1;
        self.bytes[index] += u64::from(bytes);
        self.response_sum_ns[index] += response.0;
        self.response_max_ns[index] = self.response_max_ns[index].max(response.0);
    }
}

/// 0 for reads, 1 for writes: the order of [`Second`]'s pairs.
pub(crate) const fn access_index(access: Access) -> usize {
    match access {
        Access::Read => 0,
        Access::Write => 1,
    }
}

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationResult {
    /// When the run began, in the target's time.
    pub begin: Nanos,
    /// The measured window.
    pub measured_from: Nanos,
    /// Its end: earlier than asked for when the limit of requests or of the backlog was reached.
    pub measured_until: Nanos,
    /// When the last request in flight had completed.
    pub end: Nanos,
    /// Per client name and stream, what completed in the measured window.
    pub streams: Vec<StreamResult>,
    /// All seconds up to the end of the measured window.
    pub seconds: Vec<Second>,
    /// Requests completed per second in five equal parts of the measured window.
    pub rounds_per_second: [f64; WINDOW_ROUNDS],
    /// Requests in flight at most, over all clients.
    pub in_flight_max: u64,
    /// Requests whose time came in the measured window: open loops only.
    pub arrived: u64,
    /// Arrivals that waited for a free place in the queue when the measured window began: open loops only.
    pub backlog_at_begin: u64,
    /// Arrivals that still waited for one at the end.
    pub backlog_at_end: u64,
    /// The run ended early, because more arrivals waited for a place in the queue than a simulation holds: the target
    /// cannot keep the rate. Perhaps before the measured window began.
    pub swamped: bool,
    /// Requests in the measured window that ended with an I/O error; they are in no histogram.
    pub failed: u64,
    /// Requests completed in all, warm-up included.
    pub completed: u64,
}

impl SimulationResult {
    /// The length of the measured window, at least 1 ns.
    pub fn duration(&self) -> Nanos {
        Nanos((self.measured_until - self.measured_from).0.max(1))
    }

    /// Whether the target could not keep the rate: what waited for a place in the queue grew by more than all that is in
    /// flight at once, and by more than chance explains.
    ///
    /// Compared is with what arrived. Poisson gives a tenth fewer or more than the nominal rate in a hundred arrivals,
    /// which says nothing about the target.
    pub fn is_overloaded(&self) -> bool {
        let growth = self.backlog_at_end.saturating_sub(self.backlog_at_begin);
        let chance = 3.0 * (self.arrived as f64).sqrt();
        self.swamped || growth > self.in_flight_max && growth as f64 > chance
    }

    /// How steady the measured window was; none when nothing was measured.
    pub fn steadiness(&self) -> Option<SteadyState> {
        steady_state(&self.rounds_per_second)
    }

    /// Measured requests per place in the queue: in a closed loop, how often each went round.
    pub fn round_trips(&self) -> f64 {
        let counts =
            self.streams.iter().map(|s| s.read.response.count() + s.write.response.count());
        counts.sum::<u64>() as f64 / self.in_flight_max.max(1) as f64
    }

    /// Everything merged: reads, writes.
    pub fn totals(&self) -> [Latencies; 2] {
        let mut totals = [Latencies::default(), Latencies::default()];
        for stream in &self.streams {
            totals[0].merge(&stream.read);
            totals[1].merge(&stream.write);
        }
        totals
    }

    /// Reads and writes merged.
    pub fn total(&self) -> Latencies {
        let [mut total, write] = self.totals();
        total.merge(&write);
        total
    }

    /// Requests per second in the measured window.
    pub fn iops(&self) -> f64 {
        let counts =
            self.streams.iter().map(|s| s.read.response.count() + s.write.response.count());
        counts.sum::<u64>() as f64 / self.duration().as_secs_f64()
    }

    /// Bytes per second in the measured window.
    pub fn bytes_per_second(&self) -> f64 {
        let bytes = self.streams.iter().map(|s| s.read.bytes + s.write.bytes);
        bytes.sum::<u64>() as f64 / self.duration().as_secs_f64()
    }

    /// Mean response time over reads and writes, ns.
    pub fn mean_response_ns(&self) -> Option<f64> {
        self.total().response.mean()
    }
}
