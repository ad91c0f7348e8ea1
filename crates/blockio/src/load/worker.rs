//! One worker: a thread of the operating system with a ring of its own, which serves threads of a workload on one
//! target.
//!
//! Everything about a request happens on one thread without locks: due, put into a place of the queue, handed over,
//! taken, counted. Once a second a worker hands over what it counted.

use super::outcome::{KindResult, Operation, Part};
use super::ring::{LoadRing, Wait};
use super::slot::Slot;
use super::spec::{LoadJob, LoadSpec, OnError};
use super::tally::{Second, Seconds, WorkerTick};
use crate::error::BlockIoError;
use crate::target::Target;
use crate::verify::{Verifier, journal::Mark};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use underlay_core::{Histogram, Nanos};
use underlay_workload::arrivals::{ArrivalSchedule, Share};
use underlay_workload::block::{Access, Durability, Pace, RequestGenerator, Worker as Thread};

/// How long a worker sleeps whose requests all wait for those of other workers.
const CONFLICT_PAUSE: Duration = Duration::from_micros(50);
/// After an error, so that a target that fails at once does not fail a million times a second.
const ERROR_PAUSE: Duration = Duration::from_millis(1);
/// Requests that are handed over at once. With all of a deep queue at once the target would be idle while they are
/// prepared, and answer them all at once again: 0.89 x fio's rate at queue depth 32; one by one costs a system call
/// each; 4 gives 1.00 x at 0.69 x fio's processor time (`io_cost`).
const BATCH: usize = 4;
/// Operations per stream.
pub(super) const OPERATIONS: usize = Operation::ALL.len();

/// What all workers share.
pub(super) struct Shared<'a> {
    pub(super) spec: &'a LoadSpec<'a>,
    pub(super) began: Instant,
    pub(super) seconds: Seconds,
    pub(super) stop: AtomicBool,
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

/// What a worker tells.
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
    durability: Vec<Durability>,
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
    lag: Histogram,
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
            lag: Histogram::new(),
            processor: processor_time(),
            journal: Vec::new(),
            end: WorkerEnd::default(),
            sender,
        })
    }

    /// Works until the end of the load, or until it is told to stop, or an error.
    pub(super) fn run(mut self) {
        if let Err(error) = self.work() {
            self.fail(error);
        }
        let now = self.now();
        self.hand_over(now.max(self.second.begin));
        // Nobody listens only when the load was given up.
        let _ = self.sender.send(Message::End(self.end));
    }

    fn work(&mut self) -> Result<(), BlockIoError> {
        let end = self.shared.seconds.end;
        let mut completed = Vec::with_capacity(self.slots.len());
        let mut now = self.now();
        loop {
            let stopping = now >= end || self.shared.stop.load(Ordering::Relaxed);
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
                self.ring.arm_timer(Duration::from_nanos(self.second.end.saturating_sub(now)));
            }
            self.write_journal()?;
            self.ring.submit(self.wait(stopping))?;
            self.ring.take(&mut completed);
            now = self.now();
            if now >= self.second.end {
                self.hand_over(now);
            }
            for (slot, result) in completed.drain(..) {
                self.complete(slot, result, now)?;
            }
        }
    }

    fn now(&self) -> u64 {
        self.shared.began.elapsed().as_nanos() as u64
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
        let spin = self.shared.spec.spin.as_nanos() as u64;
        let rest = due.0.saturating_sub(self.now()).saturating_sub(spin);
        if rest == 0 { Wait::Not } else { Wait::AtMost(Duration::from_nanos(rest)) }
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
                    self.end.due += 1;
                    self.prepare(slot, due.0, now)?;
                }
                self.schedule = Some(schedule);
            }
        }
        Ok(())
    }

    /// Draws the next request for a place, and starts it unless others are at its blocks.
    fn prepare(&mut self, slot: u32, intended: u64, now: u64) -> Result<(), BlockIoError> {
        let state = &mut self.slots[slot as usize];
        state.request = self.generators[state.thread as usize].next_request();
        state.operation = state.request.access.into();
        state.intended = intended;
        if !self.try_start(slot, now) {
            self.end.conflicts += 1;
            self.blocked.push(slot);
        } else if self.ring.unsubmitted() >= BATCH && self.journal.is_empty() {
            self.ring.hand_over()?;
        }
        Ok(())
    }

    fn retry_blocked(&mut self, now: u64, stopping: bool) {
        let blocked = std::mem::take(&mut self.blocked);
        for slot in blocked {
            if stopping {
                self.free.push(slot);
            } else if !self.try_start(slot, now) {
                self.blocked.push(slot);
            }
        }
    }

    fn try_start(&mut self, slot: u32, now: u64) -> bool {
        let state = &mut self.slots[slot as usize];
        let request = state.request;
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        state.started = now;
        match request.access {
            Access::Read => {
                if self.verifier.is_some_and(|verifier| !verifier.begin_read(offset, length)) {
                    return false;
                }
                self.ring.read(slot, offset, length);
            }
            Access::Write => {
                let through = self.durability[request.stream] == Durability::WriteThrough;
                match self.verifier {
                    None => {
                        // Different bytes for each write, wherever it goes.
                        let version = (self.part.worker as u64) << 40 ^ now;
                        let bytes = self.ring.buffer(slot, length);
                        self.shared.spec.content.fill(offset, version, bytes);
                    }
                    Some(verifier) => {
                        let Some(write) = verifier.begin_write(offset, length) else {
                            return false;
                        };
                        state.mark = write;
                        let thread = self.thread_numbers[state.thread as usize];
                        verifier.mark(offset, write, thread, self.ring.buffer(slot, length));
                        if verifier.journal().is_some() {
                            let mark = verifier.write_mark(Mark::Begun, offset, length, write);
                            self.journal.extend_from_slice(&mark);
                        }
                    }
                }
                // Making the bytes is not the target's time.
                state.started = self.shared.began.elapsed().as_nanos() as u64;
                self.ring.write(slot, offset, length, through);
            }
        }
        let state = &self.slots[slot as usize];
        if self.schedule_lags() {
            self.lag.record(state.started.saturating_sub(state.intended));
        }
        true
    }

    /// Lateness is the generator's own only while there is room in the queue.
    fn schedule_lags(&self) -> bool {
        self.job.pace != Pace::CLOSED && !self.free.is_empty()
    }

    fn complete(&mut self, slot: u32, result: i32, now: u64) -> Result<(), BlockIoError> {
        let state = self.slots[slot as usize];
        let request = state.request;
        let kind = request.stream * OPERATIONS + state.operation as usize;
        let moved = match state.operation {
            Operation::Flush => 0,
            Operation::Read | Operation::Write => request.length_bytes,
        };
        let succeeded = result >= 0 && result as u32 == moved;
        self.settle(&state, slot, succeeded);
        let counted = &mut self.kinds[kind];
        if succeeded {
            counted.completed += 1;
            counted.bytes += u64::from(moved);
            counted.response.record(now - state.intended.min(now));
            if self.split {
                counted.service.record(now - state.started.min(now));
            }
            if self.second.part == Part::Measure {
                counted.in_window += 1;
                counted.bytes_in_window += u64::from(moved);
            }
            if state.operation == Operation::Write && self.must_flush(&state) {
                self.flush(slot, now);
                return Ok(());
            }
        } else {
            // What is too short is an error that the system did not call one.
            let number = if result < 0 { -result } else { libc::EIO };
            *counted.errors.entry(number).or_default() += 1;
            if self.shared.spec.on_error == OnError::Stop {
                return Err(self.error(&state, result));
            }
            std::thread::sleep(ERROR_PAUSE);
        }
        self.free.push(slot);
        Ok(())
    }

    /// Tells the verifier and its journal what became of a request.
    fn settle(&mut self, state: &Slot, slot: u32, succeeded: bool) {
        let Some(verifier) = self.verifier else { return };
        let request = state.request;
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        let mark = match state.operation {
            Operation::Read if succeeded => {
                let compared = verifier.end_read(offset, self.ring.buffer(slot, length));
                self.end.verified_units += compared;
                None
            }
            Operation::Read => {
                verifier.abandon_read(offset, length);
                None
            }
            Operation::Write => {
                verifier.end_write(offset, length, state.mark, succeeded);
                let kind = match self.durability[request.stream] {
                    Durability::WriteThrough => Mark::Durable,
                    Durability::Cached | Durability::FlushEvery(_) => Mark::Acknowledged,
                };
                succeeded.then(|| verifier.write_mark(kind, offset, length, state.mark))
            }
            Operation::Flush => succeeded.then(|| verifier.flush_mark(Mark::Flushed, state.mark)),
        };
        if let (Some(mark), Some(_)) = (mark, verifier.journal()) {
            self.journal.extend_from_slice(&mark);
        }
    }

    fn must_flush(&mut self, state: &Slot) -> bool {
        let stream = state.request.stream;
        let Durability::FlushEvery(every) = self.durability[stream] else { return false };
        let count = &mut self.unflushed[state.thread as usize * self.durability.len() + stream];
        *count += 1;
        if *count < every {
            return false;
        }
        *count = 0;
        true
    }

    fn flush(&mut self, slot: u32, now: u64) {
        let state = &mut self.slots[slot as usize];
        state.operation = Operation::Flush;
        state.intended = now;
        state.started = now;
        if let Some(verifier) = self.verifier {
            state.mark = verifier.next_flush();
            if verifier.journal().is_some() {
                let mark = verifier.flush_mark(Mark::FlushBegun, state.mark);
                self.journal.extend_from_slice(&mark);
            }
        }
        self.ring.flush(slot);
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

    fn error(&self, state: &Slot, result: i32) -> BlockIoError {
        let path = self.target.path().to_path_buf();
        let request = state.request;
        if result >= 0 {
            let (offset, asked) = (request.offset_bytes, request.length_bytes);
            return BlockIoError::Short { path, offset, asked, moved: result as u32 };
        }
        let action = match state.operation {
            Operation::Read => "read",
            Operation::Write => "write to",
            Operation::Flush => "flush",
        };
        BlockIoError::Target { action, path, source: io::Error::from_raw_os_error(-result) }
    }

    /// Ends the load of all workers; what is in flight is waited for by the ring's drop.
    fn fail(&mut self, error: BlockIoError) {
        self.end.failure = Some(error);
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    fn count_undelivered(&mut self, now: u64) {
        let until = Nanos(now.min(self.shared.seconds.end));
        let Some(schedule) = &mut self.schedule else { return };
        if let Some(oldest) = schedule.next_due().filter(|due| *due < until) {
            self.end.oldest_undelivered = until.0 - oldest.0;
        }
        while schedule.next_due().is_some_and(|due| due < until) {
            schedule.take_due(until);
            self.end.due += 1;
            self.end.undelivered += 1;
        }
    }

    /// Ends the second and begins the one that `now` lies in.
    fn hand_over(&mut self, now: u64) {
        let processor = processor_time();
        let fresh = vec![KindResult::default(); self.kinds.len()];
        let backlog = match (&self.schedule, self.free.is_empty()) {
            (Some(schedule), true) => backlog(schedule, now),
            _ => 0,
        };
        let tick = WorkerTick {
            worker: self.part.worker,
            part: self.second.part,
            second: self.second.number,
            begin: self.second.begin,
            end: self.second.end.min(now.max(self.second.begin)),
            kinds: std::mem::replace(&mut self.kinds, fresh),
            lag: std::mem::take(&mut self.lag),
            backlog,
            processor: processor - self.processor,
        };
        self.processor = processor;
        self.second = self.shared.seconds.at(now);
        // Nobody listens only when the load was given up.
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
