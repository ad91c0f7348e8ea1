//! The loop: a virtual clock that jumps from event to event.
//!
//! Events are of three kinds: something happens in the target, a pause of a closed client ends, an arrival of
//! an open client is due. At each time, completions come first, then what they set free, then arrivals, so
//! that the order never depends on anything but the arguments. After the measured window no request is
//! started, and those in flight are waited for: a target can be used for several runs in a row.

use crate::client::{Client, ClientSpec};
use crate::result::{Second, SimulationResult, StreamResult, access_index};
use crate::rounds::Slices;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::{Nanos, RootSeed};
use underlay_model::Request;
use underlay_model::target::{Target, TargetFinished, TargetOutcome};
use underlay_workload::block::Access;

const SECOND_NS: u64 = 1_000_000_000;

/// So many completions without a nanosecond between them, beyond those of everything in flight, are a loop without end.
const TIMELESS_MAX: u64 = 1 << 20;

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// When the run begins in the target's time; not before its last one ended.
    pub begin: Nanos,
    /// Time that is not measured.
    pub warm_up: Nanos,
    /// Time that is measured.
    pub measure: Nanos,
    /// The measured window ends early after that many requests.
    pub requests_max: u64,
}

/// One place in the queue of a client, and the request it holds.
#[derive(Clone, Copy, Debug)]
struct Slot {
    client: u32,
    thread: u32,
    stream: u32,
    access: Access,
    length_bytes: u32,
    intended: Nanos,
    issued: Nanos,
}

/// A request that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// When, in the target's time.
    pub at: Nanos,
    /// The volume, by its number in the target.
    pub volume: usize,
    /// What it did.
    pub access: Access,
    /// Bytes it moved.
    pub bytes: u32,
    /// From the intended start.
    pub response: Nanos,
    /// From the submission.
    pub service: Nanos,
}

/// Who looks on, from the beginning to the end of the measured window.
pub trait Watch<T> {
    /// A request completed without error.
    fn completed(&mut self, done: Completed);

    /// The clock jumped to `now`. What completes there has not been told yet.
    fn at(&mut self, now: Nanos, target: &T);
}

/// Nobody.
impl<T> Watch<T> for () {
    fn completed(&mut self, _: Completed) {}

    fn at(&mut self, _: Nanos, _: &T) {}
}

struct Run<'t, T, W> {
    target: &'t mut T,
    watch: &'t mut W,
    clients: Vec<Client>,
    slots: Vec<Slot>,
    /// Ends of pauses: time, slot.
    pauses: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Next arrivals of open clients: time, client.
    arrivals: BinaryHeap<Reverse<(Nanos, u32)>>,
    streams: Vec<StreamResult>,
    seconds: Vec<Second>,
    begin: Nanos,
    measured_from: Nanos,
    in_flight: u64,
    failed: u64,
    completed: u64,
    measured: u64,
    slices: Slices,
    arrived: u64,
    /// What waited when the measured window began; none before.
    backlog_at_begin: Option<u64>,
    /// An open client has a backlog that only grows.
    swamped: bool,
}

/// Runs the clients on the target.
///
/// # Panics
/// If a client's workload has [`ClientSpec::problems`], the target hands back what it was not given, or a closed client
/// without pauses drives a target without delay: virtual time would never pass.
pub fn simulate<T: Target>(
    target: &mut T,
    clients: &[ClientSpec<'_>],
    spec: &RunSpec,
    seed: RootSeed,
) -> SimulationResult {
    simulate_watched(target, clients, spec, seed, &mut ())
}

/// The same, looked at by somebody.
///
/// # Panics
/// As [`simulate`].
pub fn simulate_watched<T: Target, W: Watch<T>>(
    target: &mut T,
    clients: &[ClientSpec<'_>],
    spec: &RunSpec,
    seed: RootSeed,
    watch: &mut W,
) -> SimulationResult {
    let mut run = Run::new((target, watch), clients, spec, seed);
    run.start(clients);
    let measured_until = run.drive(spec);
    let backlog_at_end = run.backlog();
    let end = run.drain(measured_until);
    SimulationResult {
        begin: spec.begin,
        measured_from: run.measured_from,
        measured_until,
        end,
        streams: run.streams,
        seconds: run.seconds,
        rounds_per_second: run.slices.rounds(measured_until - run.measured_from),
        in_flight_max: run.slots.len() as u64,
        arrived: run.arrived,
        backlog_at_begin: run.backlog_at_begin.unwrap_or(0),
        backlog_at_end,
        swamped: run.swamped,
        failed: run.failed,
        completed: run.completed,
    }
}

impl<'t, T: Target, W: Watch<T>> Run<'t, T, W> {
    fn new(
        (target, watch): (&'t mut T, &'t mut W),
        specs: &[ClientSpec<'_>],
        spec: &RunSpec,
        seed: RootSeed,
    ) -> Run<'t, T, W> {
        let mut streams: Vec<StreamResult> = Vec::new();
        let mut clients = Vec::with_capacity(specs.len());
        for (number, client) in specs.iter().enumerate() {
            let first = streams.iter().position(|stream| stream.client == client.name);
            let first = first.unwrap_or_else(|| {
                let first = streams.len();
                streams.extend(client.workload.streams.iter().map(|stream| StreamResult {
                    client: client.name.clone(),
                    stream: stream.name.clone(),
                    read: Default::default(),
                    write: Default::default(),
                }));
                first
            });
            let number = (number, specs.len());
            clients.push(Client::new(client, number, first, spec.begin, seed));
        }
        Run {
            target,
            watch,
            clients,
            slots: Vec::new(),
            pauses: BinaryHeap::new(),
            arrivals: BinaryHeap::new(),
            streams,
            seconds: Vec::new(),
            begin: spec.begin,
            measured_from: spec.begin + spec.warm_up,
            in_flight: 0,
            failed: 0,
            completed: 0,
            measured: 0,
            slices: Slices::new(),
            arrived: 0,
            backlog_at_begin: None,
            swamped: false,
        }
    }

    /// Creates every place in a queue and starts what starts at once.
    fn start(&mut self, specs: &[ClientSpec<'_>]) {
        for (number, spec) in specs.iter().enumerate() {
            for place in 0..spec.concurrency.in_flight() {
                let slot = self.slots.len() as u32;
                self.slots.push(Slot {
                    client: number as u32,
                    thread: place % spec.concurrency.threads,
                    stream: 0,
                    access: Access::Read,
                    length_bytes: 0,
                    intended: self.begin,
                    issued: self.begin,
                });
                if self.clients[number].add_slot(slot) {
                    self.pauses.push(Reverse((self.begin, slot)));
                }
            }
            if let Some(due) = self.clients[number].next_arrival() {
                self.arrivals.push(Reverse((due, number as u32)));
            }
        }
    }

    /// Runs until the measured window ends, and returns its end.
    fn drive(&mut self, spec: &RunSpec) -> Nanos {
        let until = self.measured_from + spec.measure;
        let mut finished = Vec::new();
        // A moment, and how many completions it may end with.
        let crowd = TIMELESS_MAX + self.slots.len() as u64;
        let mut moment = (self.begin, crowd);
        loop {
            let limit = self.next_start().map_or(until, |start| start.min(until));
            let now = self.target.advance_to_finish(limit, &mut finished);
            self.watch.at(now, self.target);
            if finished.is_empty() && self.next_start().is_none_or(|start| start > now) {
                return until;
            }
            if now > moment.0 {
                moment = (now, self.completed + crowd);
            }
            assert!(self.completed <= moment.1, "a closed loop on a target without delay");
            if now >= self.measured_from && self.backlog_at_begin.is_none() {
                self.backlog_at_begin = Some(self.backlog());
            }
            for done in finished.drain(..) {
                self.complete(&done);
                let slot = &self.slots[done.slot as usize];
                let start = self.clients[slot.client as usize].next_start(done.at, done.slot);
                match start {
                    Some(start) if start <= now => self.issue(now, start, done.slot),
                    Some(start) => self.pauses.push(Reverse((start, done.slot))),
                    None => {}
                }
            }
            if self.measured >= spec.requests_max {
                return now;
            }
            while let Some(Reverse((start, slot))) = self.pauses.pop_if_due(now) {
                self.issue(now, start, slot);
            }
            while let Some(Reverse((_, client))) = self.arrivals.pop_if_due(now) {
                self.arrive(now, client);
            }
            if self.swamped {
                // Perhaps nothing was to be measured yet.
                return now.max(self.measured_from);
            }
        }
    }

    /// When something new is started next, unless something completes before.
    fn next_start(&self) -> Option<Nanos> {
        let pause = self.pauses.peek().map(|Reverse((at, _))| *at);
        let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
        [pause, arrival].into_iter().flatten().min()
    }

    fn arrive(&mut self, now: Nanos, client: u32) {
        while self.clients[client as usize].is_due(now) {
            self.arrived += u64::from(now > self.measured_from);
            if let Some((due, slot)) = self.clients[client as usize].arrive(now) {
                self.issue(now, due, slot);
            } else if self.clients[client as usize].is_swamped() {
                self.swamped = true;
                return;
            }
        }
        if let Some(due) = self.clients[client as usize].next_arrival() {
            self.arrivals.push(Reverse((due, client)));
        }
    }

    fn issue(&mut self, now: Nanos, intended: Nanos, number: u32) {
        let slot = &mut self.slots[number as usize];
        let client = &mut self.clients[slot.client as usize];
        let request = client.generator(slot.thread).next_request();
        slot.stream = (client.first_stream + request.stream) as u32;
        slot.access = request.access;
        slot.length_bytes = request.length_bytes;
        slot.intended = intended;
        slot.issued = now;
        let asked = match request.access {
            Access::Read => Request::read(request.offset_bytes, request.length_bytes),
            Access::Write => Request::write(request.offset_bytes, request.length_bytes),
        };
        self.in_flight += 1;
        self.target.submit(now, client.volume, &asked, number);
    }

    fn complete(&mut self, done: &TargetFinished) {
        assert!(self.in_flight > 0, "the target finished a request it was not given");
        self.in_flight -= 1;
        self.completed += 1;
        let slot = &self.slots[done.slot as usize];
        let response = done.at - slot.intended;
        let second = ((done.at - self.begin).0 / SECOND_NS) as usize;
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, Second::default());
        }
        if done.outcome == TargetOutcome::Failed {
            self.failed += u64::from(done.at > self.measured_from);
            return;
        }
        self.seconds[second].record(slot.access, slot.length_bytes, response);
        self.watch.completed(Completed {
            at: done.at,
            volume: self.clients[slot.client as usize].volume,
            access: slot.access,
            bytes: slot.length_bytes,
            response,
            service: done.at - slot.issued,
        });
        if done.at <= self.measured_from {
            return;
        }
        self.measured += 1;
        self.slices.record(done.at - self.measured_from);
        let stream = &mut self.streams[slot.stream as usize];
        let latencies = [&mut stream.read, &mut stream.write];
        let [read, write] = latencies;
        let latencies = if access_index(slot.access) == 0 { read } else { write };
        latencies.response.record(response.0);
        latencies.service.record((done.at - slot.issued).0);
        latencies.queue.record(done.queue.0);
        latencies.bytes += u64::from(slot.length_bytes);
    }

    /// Arrivals that wait for a place.
    fn backlog(&self) -> u64 {
        self.clients.iter().map(Client::backlog).sum()
    }

    /// Waits for what is in flight.
    fn drain(&mut self, from: Nanos) -> Nanos {
        let mut finished = Vec::new();
        let mut now = from;
        while self.in_flight > 0 {
            let wakeup = self.target.next_wakeup();
            now = now.max(wakeup.expect("a target with requests in flight will wake up"));
            self.target.advance(now, &mut finished);
            self.in_flight -= finished.len() as u64;
            self.completed += finished.len() as u64;
            finished.clear();
        }
        now
    }
}

/// Taking what is due from a heap of times.
trait PopDue {
    type Item;
    fn pop_if_due(&mut self, now: Nanos) -> Option<Self::Item>;
}

impl PopDue for BinaryHeap<Reverse<(Nanos, u32)>> {
    type Item = Reverse<(Nanos, u32)>;

    fn pop_if_due(&mut self, now: Nanos) -> Option<Self::Item> {
        let due = self.peek().is_some_and(|Reverse((at, _))| *at <= now);
        due.then(|| self.pop()).flatten()
    }
}
