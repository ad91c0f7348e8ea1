//! One worker: a thread of the operating system with a ring of its own, which serves threads of a workload on one
//! target.
//!
//! Everything about a request happens on one thread without locks: due, put into a place of the queue, handed over,
//! taken, counted. Once a second a worker hands over what it counted. The steps of a request are in `request`.

mod request;

use super::lateness::Lateness;
use super::outcome::{KindResult, Operation, Part};
use super::ring::{LoadRing, Wait};
use super::slot::Slot;
use super::spec::{LoadJob, LoadSpec};
use super::tally::{Second, Seconds, WorkerTick};
use crate::error::BlockIoError;
use crate::target::Target;
use crate::verify::Verifier;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_workload::arrivals::{ArrivalSchedule, Share};
use underlay_workload::block::{FlushPolicy, Pace, RequestGenerator, Worker as Thread};

/// How long a worker sleeps whose requests all wait for those of other workers.
const CONFLICT_PAUSE: Duration = Duration::from_micros(50);
/// Operations per stream.
pub(super) const OPERATIONS: usize = Operation::ALL.len();

/// What all workers share.
pub(super) struct Shared<'a> {
    pub(super) spec: &'a LoadSpec<'a>,
    pub(super) began: Instant,
    /// In design time, as all that workers count in.
    pub(super) seconds: Seconds,
    /// When the load is to end before its time, in ns since it began; [`NEVER`] otherwise.
    pub(super) stop_at: AtomicU64,
}

/// A load that ends when its time is over.
pub(super) const NEVER: u64 = u64::MAX;

impl Shared<'_> {
    /// Design time since the load began, ns.
    pub(super) fn now(&self) -> u64 {
        self.spec.dilation.design(self.began.elapsed().into()).0
    }

    /// How long this host waits for so many nanoseconds of design time.
    fn wait(&self, design_ns: u64) -> Duration {
        self.spec.dilation.wall(Nanos(design_ns)).into()
    }

    /// Ends the load of all workers at an instant, unless it ends earlier.
    pub(super) fn stop_at(&self, at: u64) {
        self.stop_at.fetch_min(at, Ordering::Relaxed);
    }

    /// The seconds up to where the load ends.
    fn seconds(&self) -> Seconds {
        self.seconds.until(self.stopped_at())
    }

    /// When it is to end before its time, or [`NEVER`].
    pub(super) fn stopped_at(&self) -> u64 {
        self.stop_at.load(Ordering::Relaxed)
    }
}

/// Which part of a job a worker does.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerShare {
    pub(super) worker: usize,
    pub(super) job: usize,
    pub(super) share: Share,
}

/// What a worker says at its end.
#[derive(Debug, Default)]
pub(super) struct WorkerEnd {
    pub(super) due: u64,
    pub(super) undelivered: u64,
    pub(super) oldest_undelivered: u64,
    pub(super) conflicts: u64,
    pub(super) verified_units: u64,
    pub(super) failure: Option<BlockIoError>,
}

/// Messages of a worker.
pub(super) enum Message {
    /// A second is over.
    Tick(WorkerTick),
    /// It is done.
    End(WorkerEnd),
}

pub(super) struct Worker<'a> {
    part: WorkerShare,
    shared: &'a Shared<'a>,
    job: &'a LoadJob<'a>,
    target: &'a Target,
    verifier: Option<&'a Verifier>,
    ring: LoadRing<'a>,
    /// Of the threads of the workload that this worker serves.
    generators: Vec<RequestGenerator>,
    thread_numbers: Vec<u32>,
    durability: Vec<FlushPolicy>,
    /// Writes since the last flush, per thread and stream.
    unflushed: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Places whose request waits for others to the same blocks.
    blocked: Vec<u32>,
    schedule: Option<ArrivalSchedule>,
    /// Whether service and response differ.
    split: bool,
    second: Second,
    kinds: Vec<KindResult>,
    lateness: Lateness,
    processor: u64,
    journal: Vec<u8>,
    end: WorkerEnd,
    sender: Sender<Message>,
}

impl<'a> Worker<'a> {
    /// To be called on the worker's own thread.
    pub(super) fn new(
        part: WorkerShare,
        shared: &'a Shared<'a>,
        sender: Sender<Message>,
    ) -> Result<Worker<'a>, BlockIoError> {
        let spec = shared.spec;
        let job = &spec.jobs[part.job];
        let target = spec.targets[job.target];
        let threads: Vec<u32> =
            (part.share.index..job.concurrency.threads).step_by(part.share.of as usize).collect();
        let generator = |thread: &u32| {
            let worker = Thread { volume: job.target as u32, thread: *thread };
            RequestGenerator::new(job.workload, job.working_set, job.concurrency, worker, spec.seed)
        };
        let depth = job.concurrency.queue_depth;
        let slots: Vec<Slot> =
            (0..depth).flat_map(|_| (0..threads.len() as u32).map(Slot::new)).collect();
        let largest = job.workload.streams.iter().map(|stream| stream.bytes_max()).max();
        let mut random = spec.seed.stream("blockio.load.memory", part.worker as u64);
        let ring = LoadRing::new(target, slots.len() as u32, largest.unwrap_or(512), &mut random)?;
        let schedule = match job.pace {
            Pace::Closed { .. } => None,
            Pace::Open { rate_per_second, arrivals } => {
                let seed = spec.seed.child("blockio.load.arrivals", part.job as u64);
                let mut schedule = ArrivalSchedule::new(arrivals, seed, part.share);
                schedule.set_rate(Nanos::ZERO, rate_per_second, Nanos::ZERO);
                Some(schedule)
            }
        };
        let streams = job.workload.streams.len();
        let verifier = spec.verifiers.get(job.target);
        Ok(Worker {
            part,
            shared,
            job,
            target,
            verifier,
            generators: threads.iter().map(generator).collect(),
            durability: job.workload.streams.iter().map(|stream| stream.durability).collect(),
            unflushed: vec![0; threads.len() * streams],
            thread_numbers: threads,
            free: (0..slots.len() as u32).rev().collect(),
            slots,
            ring,
            blocked: Vec::new(),
            split: schedule.is_some() || verifier.is_some(),
            schedule,
            second: shared.seconds.at(0),
            kinds: vec![KindResult::default(); streams * OPERATIONS],
            lateness: Lateness::default(),
            processor: processor_time(),
            journal: Vec::new(),
            end: WorkerEnd::default(),
            sender,
        })
    }

    /// Works until the end of the load, a request to stop, or an error.
    pub(super) fn run(mut self) {
        if let Err(error) = self.work() {
            self.fail(error);
        }
        let now = self.now();
        self.hand_over(now.max(self.second.begin));
        // The receiver is gone only if the load was cancelled.
        let _ = self.sender.send(Message::End(self.end));
    }

    fn work(&mut self) -> Result<(), BlockIoError> {
        let mut completed = Vec::with_capacity(self.slots.len());
        let mut now = self.now();
        loop {
            let stop = self.shared.seconds.end.min(self.shared.stopped_at());
            let stopping = now >= stop;
            if !self.blocked.is_empty() {
                self.retry_blocked(now, stopping);
            }
            if stopping {
                if self.ring.in_flight() == 0 && self.blocked.is_empty() {
                    // What the last answers were must be known too.
                    self.write_journal()?;
                    self.count_undelivered(now);
                    return Ok(());
                }
            } else {
                self.start_what_is_due(now)?;
                let until = self.second.end.min(stop);
                self.ring.arm_timer(self.shared.wait(until.saturating_sub(now)));
            }
            self.write_journal()?;
            self.ring.submit(self.wait(stopping))?;
            self.ring.take(&mut completed);
            now = self.now();
            if now >= self.second_end() {
                self.hand_over(now);
            }
            for (slot, result) in completed.drain(..) {
                self.complete(slot, result, now)?;
            }
        }
    }

    fn now(&self) -> u64 {
        self.shared.now()
    }

    /// How long there is nothing to do.
    fn wait(&self, stopping: bool) -> Wait {
        if !self.blocked.is_empty() {
            return Wait::AtMost(CONFLICT_PAUSE);
        }
        let due = match &self.schedule {
            Some(schedule) if !stopping && !self.free.is_empty() => schedule.next_due(),
            _ => None,
        };
        let Some(due) = due else { return Wait::Completion };
        // What was due by the last look at the clock was started.
        let rest = self.shared.wait(due.0.saturating_sub(self.now()));
        let rest = rest.saturating_sub(self.shared.spec.spin);
        if rest.is_zero() { Wait::Not } else { Wait::AtMost(rest) }
    }

    fn start_what_is_due(&mut self, now: u64) -> Result<(), BlockIoError> {
        match self.schedule.take() {
            None => {
                while let Some(slot) = self.free.pop() {
                    self.prepare(slot, now, now)?;
                }
            }
            Some(mut schedule) => {
                while let Some(slot) = self.free.last().copied() {
                    let Some(due) = schedule.take_due(Nanos(now)) else { break };
                    self.free.pop();
                    self.end.due += u64::from(self.is_measured(due.0));
                    self.prepare(slot, due.0, now)?;
                }
                self.schedule = Some(schedule);
            }
        }
        Ok(())
    }

    /// The journal knows of a write before the kernel does.
    fn write_journal(&mut self) -> Result<(), BlockIoError> {
        if self.journal.is_empty() {
            return Ok(());
        }
        if let Some(journal) = self.verifier.and_then(Verifier::journal) {
            journal.append(&self.journal)?;
        }
        self.journal.clear();
        Ok(())
    }

    /// Ends the load of all workers; what is in flight is waited for by the ring's drop.
    fn fail(&mut self, error: BlockIoError) {
        self.end.failure = Some(error);
        self.shared.stop_at(self.now());
    }

    /// Whether what fell due then belongs to the measured time: the warm-up's requests are in no figure.
    fn is_measured(&self, due: u64) -> bool {
        due >= self.shared.seconds.warm_up
    }

    fn count_undelivered(&mut self, now: u64) {
        let until = Nanos(now.min(self.shared.seconds().end));
        let measured_from = self.shared.seconds.warm_up;
        let Some(schedule) = &mut self.schedule else { return };
        while let Some(due) = schedule.next_due().filter(|due| *due < until) {
            schedule.take_due(until);
            if due.0 < measured_from {
                continue;
            }
            if self.end.undelivered == 0 {
                self.end.oldest_undelivered = until.0 - due.0;
            }
            self.end.due += 1;
            self.end.undelivered += 1;
        }
    }

    /// Where the second ends: earlier than planned when the load is stopped in it.
    fn second_end(&self) -> u64 {
        match self.second.part {
            Part::Measure => self.second.end.min(self.shared.seconds().end).max(self.second.begin),
            Part::WarmUp | Part::Drain => self.second.end,
        }
    }

    /// Ends the second and begins the one that `now` lies in. Those between them, if this worker got no processor for so
    /// long, are handed over empty: a second is reported when all workers have handed it over, and in its order.
    fn hand_over(&mut self, now: u64) {
        let processor = processor_time();
        let backlog = match (&self.schedule, self.free.is_empty()) {
            (Some(schedule), true) => backlog(schedule, now),
            _ => 0,
        };
        let end = self.second_end();
        self.send_second(self.second, end.min(now.max(self.second.begin)), backlog, processor);
        let seconds = self.shared.seconds();
        self.second = seconds.at(end);
        while self.second.part != Part::Drain && self.second.end <= now {
            self.send_second(self.second, self.second.end, backlog, processor);
            self.second = seconds.at(self.second.end);
        }
    }

    /// Hands over what was counted, as that of a second.
    fn send_second(&mut self, second: Second, end: u64, backlog: u64, processor: u64) {
        let fresh = vec![KindResult::default(); self.kinds.len()];
        let tick = WorkerTick {
            worker: self.part.worker,
            part: second.part,
            second: second.number,
            begin: second.begin,
            end,
            kinds: std::mem::replace(&mut self.kinds, fresh),
            lag: self.lateness.take(),
            backlog,
            processor: processor.saturating_sub(self.processor),
        };
        self.processor = processor;
        // The receiver is gone only if the load was cancelled.
        let _ = self.sender.send(Message::Tick(tick));
    }
}

/// Arrivals that are due and wait. The schedule is asked on a copy, at most so often that it costs nothing.
fn backlog(schedule: &ArrivalSchedule, now: u64) -> u64 {
    const COUNTED_MAX: u64 = 100_000;
    let mut copy = schedule.clone();
    let mut count = 0;
    while count < COUNTED_MAX && copy.take_due(Nanos(now)).is_some() {
        count += 1;
    }
    count
}

/// Processor time of this thread, ns.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
