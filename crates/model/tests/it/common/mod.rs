//! Streams of requests against one disk group in virtual time: shared by tests and examples.
//!
//! A stream is open (Poisson arrivals) or closed (so many requests in flight); writes of virtual machines wait
//! at their client for as long as the group asks for. What is answered is counted per stream, and per
//! stream and interval for time lines.

#![allow(dead_code, reason = "every test and example uses its part")]

use rand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::{Histogram, Nanos, RootSeed};
use underlay_model::{
    DiskGroup, DiskGroupSpec, GroupFinished, GroupIo, GroupOutcome, GroupRequestId, IoClass,
    Operation, builtin,
};

/// When requests come.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Poisson arrivals, per second.
    Open(f64),
    /// So many requests in flight.
    Closed(u32),
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub class: IoClass,
    /// Share of reads; the rest are writes.
    pub read_share: f64,
    pub bytes: u32,
    pub load: Load,
    pub from: Nanos,
    pub until: Nanos,
    /// Addresses used on every disk: first byte and number of bytes.
    pub range: (u64, u64),
    /// Whether addresses follow each other.
    pub is_sequential: bool,
}

impl Stream {
    /// Random requests over 64 GiB from the beginning to the end.
    pub fn random(class: IoClass, read_share: f64, bytes: u32, load: Load) -> Stream {
        Stream {
            class,
            read_share,
            bytes,
            load,
            from: Nanos::ZERO,
            until: Nanos(u64::MAX),
            range: (0, 64 << 30),
            is_sequential: false,
        }
    }

    pub fn sequential(self) -> Stream {
        Stream { is_sequential: true, ..self }
    }

    pub fn within(self, range: (u64, u64)) -> Stream {
        Stream { range, ..self }
    }

    pub fn between(self, from: Nanos, until: Nanos) -> Stream {
        Stream { from, until, ..self }
    }
}

/// What a stream got from the start of the measurement on.
#[derive(Clone, Debug)]
pub struct Measured {
    pub latency: Histogram,
    pub bytes: u64,
    pub requests: u64,
    pub errors: u64,
    /// Bytes per interval, from time zero on.
    pub time_line: Vec<u64>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub streams: Vec<Measured>,
    pub seconds: f64,
    /// Used share of the buffer and congestion, per interval.
    pub fill: Vec<(f64, u8)>,
}

impl Outcome {
    pub fn bytes_per_second(&self, stream: usize) -> f64 {
        self.streams[stream].bytes as f64 / self.seconds
    }

    pub fn requests_per_second(&self, stream: usize) -> f64 {
        self.streams[stream].requests as f64 / self.seconds
    }

    pub fn quantile_us(&self, stream: usize, q: f64) -> f64 {
        self.streams[stream].latency.quantile(q).unwrap_or(0) as f64 / 1e3
    }
}

/// When to measure, and the interval of the time line.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub warm_up: Nanos,
    pub end: Nanos,
    pub interval: Nanos,
}

impl Plan {
    pub fn millis(warm_up: u64, end: u64) -> Plan {
        let interval = Nanos::from_millis(end.max(10) / 10);
        Plan { warm_up: Nanos::from_millis(warm_up), end: Nanos::from_millis(end), interval }
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    stream: usize,
    submitted: Nanos,
}

/// Runs the streams; the requests that are in flight at the end are not counted.
pub fn run(group: &mut DiskGroup, streams: &[Stream], plan: Plan, seed: RootSeed) -> Outcome {
    let mut random = seed.stream("streams", 0);
    let disks = group.spec().capacity.len() as u64;
    let empty = Measured {
        latency: Histogram::new(),
        bytes: 0,
        requests: 0,
        errors: 0,
        time_line: Vec::new(),
    };
    let mut outcome = Outcome {
        streams: vec![empty; streams.len()],
        seconds: (plan.end - plan.warm_up).as_secs_f64(),
        fill: Vec::new(),
    };
    let mut next_block = vec![0u64; streams.len()];
    // When, which stream, and whether it is a read.
    let mut arrivals: BinaryHeap<Reverse<(Nanos, usize, bool)>> = BinaryHeap::new();
    let reads = |stream: &Stream, random: &mut rand_pcg::Pcg64| {
        stream.read_share >= 1.0
            || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 >= 1.0 - stream.read_share
    };
    for (index, stream) in streams.iter().enumerate() {
        let first = match stream.load {
            Load::Open(_) => 1,
            Load::Closed(depth) => depth,
        };
        for _ in 0..first {
            arrivals.push(Reverse((stream.from, index, reads(stream, &mut random))));
        }
    }
    let mut slots: Vec<InFlight> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let mut finished: Vec<GroupFinished> = Vec::new();
    let mut sampled = Nanos::ZERO;
    loop {
        let arrival = arrivals.peek().map_or(Nanos(u64::MAX), |Reverse((at, _, _))| *at);
        let wakeup = group.next_wakeup().unwrap_or(Nanos(u64::MAX));
        let now = arrival.min(wakeup);
        while sampled + plan.interval <= now.min(plan.end) {
            sampled += plan.interval;
            let counters = group.counters(sampled);
            outcome
                .fill
                .push((1.0 - counters.write_buffer.free_percent / 100.0, counters.congestion));
        }
        if now >= plan.end {
            break;
        }
        group.advance(now, &mut finished);
        for done in finished.drain(..) {
            let InFlight { stream: index, submitted } = slots[done.id.0 as usize];
            free.push(done.id.0 as u32);
            let stream = &streams[index];
            let measured = &mut outcome.streams[index];
            let interval = (done.at.0 / plan.interval.0) as usize;
            if interval >= measured.time_line.len() {
                measured.time_line.resize(interval + 1, 0);
            }
            measured.time_line[interval] += u64::from(stream.bytes);
            measured.errors += u64::from(done.outcome != GroupOutcome::Ok);
            if done.at >= plan.warm_up {
                measured.latency.record((done.at - submitted).0);
                measured.bytes += u64::from(stream.bytes);
                measured.requests += 1;
            }
            if matches!(stream.load, Load::Closed(_)) {
                let read = reads(stream, &mut random);
                let waits = stream.class == IoClass::Vm && !read;
                let delay = if waits { group.ingress_delay(now) } else { Nanos::ZERO };
                arrivals.push(Reverse((now + delay, index, read)));
            }
        }
        if arrival > now {
            continue;
        }
        let Some(Reverse((_, index, read))) = arrivals.pop() else { continue };
        let stream = &streams[index];
        if now >= stream.until {
            continue;
        }
        let slot = free.pop().unwrap_or_else(|| {
            slots.push(InFlight { stream: index, submitted: now });
            slots.len() as u32 - 1
        });
        slots[slot as usize] = InFlight { stream: index, submitted: now };
        let blocks = stream.range.1 / u64::from(stream.bytes);
        let (disk, block) = if stream.is_sequential {
            next_block[index] += 1;
            (next_block[index] % disks, next_block[index] / disks % blocks)
        } else {
            let draw = random.next_u64();
            (draw % disks, (draw >> 8) % blocks)
        };
        group.submit(
            now,
            GroupIo {
                id: GroupRequestId(u64::from(slot)),
                class: stream.class,
                operation: if read { Operation::Read } else { Operation::Write },
                disk: disk as usize,
                offset_bytes: stream.range.0 + block * u64::from(stream.bytes),
                length_bytes: stream.bytes,
            },
        );
        if let Load::Open(rate) = stream.load {
            let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let gap = -(1.0 - uniform).ln() / rate;
            let next = now + Nanos((gap * 1e9) as u64);
            arrivals.push(Reverse((next, index, reads(stream, &mut random))));
        }
    }
    outcome
}

/// A group of built-in devices.
pub fn group_spec(cache: &str, capacity: &[&str]) -> DiskGroupSpec {
    let profile =
        |name: &str| builtin::find(name).unwrap_or_else(|| panic!("{name} is a built-in profile"));
    let capacity = capacity.iter().map(|name| profile(name)).collect();
    DiskGroupSpec::new("group", profile(cache), capacity)
}
