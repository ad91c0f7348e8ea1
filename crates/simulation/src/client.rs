//! Who asks: one workload on one volume, at its pace and with its limit of requests in flight.

use std::collections::VecDeque;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_workload::arrivals::{ArrivalSchedule, Share};
use underlay_workload::block::{
    BlockWorkload, Concurrency, Pace, RequestGenerator, Worker, WorkloadProblem,
};

/// Arrivals of all clients that may wait for a free place in the queue; more end the run.
const BACKLOG_MAX: usize = 1 << 20;
/// Arrivals of each client that may wait, however many clients there are.
const CLIENT_BACKLOG_MIN: usize = 1 << 10;

/// One workload on one volume. Clients of the same name are reported together.
#[derive(Clone, Debug)]
pub struct ClientSpec<'a> {
    /// Name in the results.
    pub name: String,
    /// The volume, by its number in the target.
    pub volume: usize,
    /// What is asked.
    pub workload: &'a BlockWorkload,
    /// Bytes used, from the beginning of the volume.
    pub working_set: Bytes,
    /// Requests in flight.
    pub concurrency: Concurrency,
    /// What makes the next request start.
    pub pace: Pace,
}

impl ClientSpec<'_> {
    /// Every rule that the client's workload violates.
    pub fn problems(&self) -> Vec<WorkloadProblem> {
        self.workload.problems(self.working_set, self.concurrency)
    }
}

/// A client at work.
pub(crate) struct Client {
    pub(crate) volume: usize,
    /// Where its first stream is among the results.
    pub(crate) first_stream: usize,
    generators: Vec<RequestGenerator>,
    think: Nanos,
    schedule: Option<ArrivalSchedule>,
    /// Places in the queue without a request.
    free: Vec<u32>,
    /// Arrivals without a place.
    backlog: VecDeque<Nanos>,
    backlog_max: usize,
}

impl Client {
    pub(crate) fn new(
        spec: &ClientSpec<'_>,
        (number, of): (usize, usize),
        first_stream: usize,
        begin: Nanos,
        seed: RootSeed,
    ) -> Client {
        let generator = |thread| {
            let worker = Worker { volume: number as u32, thread };
            RequestGenerator::new(spec.workload, spec.working_set, spec.concurrency, worker, seed)
        };
        let (think, schedule) = match spec.pace {
            Pace::Closed { think } => (think, None),
            Pace::Open { rate_per_second, arrivals } => {
                let seed = seed.child("simulation.arrivals", number as u64);
                let mut schedule = ArrivalSchedule::new(arrivals, seed, Share { index: 0, of: 1 });
                schedule.set_rate(begin, rate_per_second, Nanos::ZERO);
                (Nanos::ZERO, Some(schedule))
            }
        };
        Client {
            volume: spec.volume,
            first_stream,
            generators: (0..spec.concurrency.threads).map(generator).collect(),
            think,
            schedule,
            free: Vec::new(),
            backlog: VecDeque::new(),
            backlog_max: (BACKLOG_MAX / of).max(CLIENT_BACKLOG_MIN),
        }
    }

    /// The generator of a thread.
    pub(crate) fn generator(&mut self, thread: u32) -> &mut RequestGenerator {
        &mut self.generators[thread as usize]
    }

    /// When the next arrival of an open client is due.
    pub(crate) fn next_arrival(&self) -> Option<Nanos> {
        self.schedule.as_ref().and_then(ArrivalSchedule::next_due)
    }

    /// Takes one due arrival: the place in the queue that serves it, or none when all are taken.
    pub(crate) fn arrive(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        let due = self.schedule.as_mut()?.take_due(now)?;
        if let Some(slot) = self.free.pop() {
            return Some((due, slot));
        }
        self.backlog.push_back(due);
        None
    }

    /// Whether more wait than may.
    pub(crate) fn is_swamped(&self) -> bool {
        self.backlog.len() > self.backlog_max
    }

    /// Whether an arrival is due by `now`.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.next_arrival().is_some_and(|due| due <= now)
    }

    /// A place in the queue became free at `now`: the intended start of its next request, or none when
    /// there is nothing to do yet.
    pub(crate) fn next_start(&mut self, now: Nanos, slot: u32) -> Option<Nanos> {
        if self.schedule.is_none() {
            return Some(now + self.think);
        }
        let waiting = self.backlog.pop_front();
        if waiting.is_none() {
            self.free.push(slot);
        }
        waiting
    }

    /// A place that an open client may use from the beginning. Closed clients start them at once.
    pub(crate) fn add_slot(&mut self, slot: u32) -> bool {
        if self.schedule.is_some() {
            self.free.push(slot);
        }
        self.schedule.is_none()
    }

    /// Arrivals that wait for a place.
    pub(crate) fn backlog(&self) -> u64 {
        self.backlog.len() as u64
    }
}
