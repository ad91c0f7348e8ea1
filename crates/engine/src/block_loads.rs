//! Block loads alongside databases: what each place in their queues asks for next, and when.
//!
//! Requests are those of `workload::block`. A place of a closed loop asks again after its pause;
//! one of an open loop takes the next arrival, and is late if that is over. After so many writes of
//! its thread, a place flushes where the stream says so. Not here: requests in flight, the time
//! they take.

use crate::background_spec::LoadSpec;
use crate::next_request::NextRequest;
use underlay_core::{Nanos, RootSeed};
use underlay_model::Request;
use underlay_workload::arrivals::{ArrivalSchedule, Share};
use underlay_workload::block::{Access, FlushPolicy, IoJob, Pace, RequestGenerator, Worker};

/// A load at work.
#[derive(Clone, Debug)]
struct Load {
    /// Where its part begins on the volume.
    base: u64,
    /// By thread.
    generators: Vec<RequestGenerator>,
    /// By stream.
    durability: Vec<FlushPolicy>,
    /// By thread and stream: writes since the last flush.
    unflushed: Vec<u32>,
    think: Nanos,
    schedule: Option<ArrivalSchedule>,
}

impl Load {
    /// Whether a thread that has written has to flush now.
    fn must_flush(&mut self, thread: usize, stream: usize) -> bool {
        let FlushPolicy::FlushEvery(every) = self.durability[stream] else { return false };
        let count = &mut self.unflushed[thread * self.durability.len() + stream];
        *count += 1;
        if *count < every {
            return false;
        }
        *count = 0;
        true
    }
}

/// A place in the queue of a load.
#[derive(Clone, Copy, Debug)]
struct Place {
    load: usize,
    thread: usize,
    /// When its next request starts, where that is known already.
    starts: Option<Nanos>,
    /// The stream of its request, where that was a write.
    wrote: Option<usize>,
}

/// Loads, which go on for ever.
#[derive(Clone, Debug)]
pub(crate) struct BlockLoads {
    loads: Vec<Load>,
    places: Vec<Place>,
}

impl BlockLoads {
    /// Loads that begin.
    pub(crate) fn new(specs: &[LoadSpec], began: Nanos, seed: RootSeed) -> BlockLoads {
        let mut places = Vec::new();
        let mut loads = Vec::new();
        for (number, spec) in specs.iter().enumerate() {
            let IoJob { workload, concurrency, pace } = &spec.job;
            let generator = |thread| {
                let worker = Worker { volume: number as u32, thread };
                RequestGenerator::new(workload, spec.place.length, *concurrency, worker, seed)
            };
            let (think, schedule) = match *pace {
                Pace::Closed { think } => (think, None),
                Pace::Open { rate_per_second, arrivals } => {
                    let seed = seed.child("arrivals", number as u64);
                    let share = Share { index: 0, of: 1 };
                    let mut schedule = ArrivalSchedule::new(arrivals, seed, share);
                    schedule.set_rate(began, rate_per_second, Nanos::ZERO);
                    (Nanos::ZERO, Some(schedule))
                }
            };
            let starts = schedule.is_none().then_some(began);
            let threads = concurrency.threads;
            let numbers = (0..concurrency.in_flight()).map(|place| (place % threads) as usize);
            let place = |thread| Place { load: number, thread, starts, wrote: None };
            places.extend(numbers.map(place));
            let streams = workload.streams.iter();
            let durability: Vec<FlushPolicy> = streams.map(|stream| stream.durability).collect();
            loads.push(Load {
                base: spec.place.offset.0,
                generators: (0..threads).map(generator).collect(),
                unflushed: vec![0; threads as usize * durability.len()],
                durability,
                think,
                schedule,
            });
        }
        BlockLoads { loads, places }
    }

    /// Places in all queues.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// What a place does next whose request is done, or whose next one starts.
    pub(crate) fn next(&mut self, place: usize, now: Nanos) -> NextRequest {
        let Place { load: part, thread, starts: known, wrote } = &mut self.places[place];
        let load = &mut self.loads[*part];
        if wrote.take().is_some_and(|stream| load.must_flush(*thread, stream)) {
            return NextRequest::Ask { part: *part, request: Request::flush(), intended: now };
        }
        let starts = match (known.take(), &mut load.schedule) {
            (Some(starts), _) => starts,
            (None, None) => now + load.think,
            (None, Some(schedule)) => {
                let Some(due) = schedule.next_due() else { return NextRequest::None };
                schedule.take_due(due);
                due
            }
        };
        if starts > now {
            *known = Some(starts);
            return NextRequest::Wait { until: starts };
        }
        let drawn = load.generators[*thread].next_request();
        let (offset, length) = (load.base + drawn.offset_bytes, drawn.length_bytes);
        let request = match drawn.access {
            Access::Read => Request::read(offset, length),
            Access::Write => {
                *wrote = Some(drawn.stream);
                let force_unit_access = load.durability[drawn.stream] == FlushPolicy::WriteThrough;
                Request { force_unit_access, ..Request::write(offset, length) }
            }
        };
        NextRequest::Ask { part: *part, request, intended: starts }
    }
}
