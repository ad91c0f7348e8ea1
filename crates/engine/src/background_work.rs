//! Background work at its work: it begins and is stopped by timers, keeps requests in flight, and
//! counts what they do.
//!
//! It belongs to no database, so it has stations of its own. As in real runs, requests in flight
//! are waited for when it is stopped, and blocks that a copy has read are still written. Nothing
//! fails. Not here: what is asked next ([`crate::copying`], [`crate::block_loads`]), and when it
//! begins.

use crate::background_result::{BackgroundPart, BackgroundResult};
use crate::background_spec::{BackgroundSpec, VolumeWork};
use crate::block_loads::BlockLoads;
use crate::copying::Copying;
use crate::core_state::{Core, IoPath};
use crate::next_request::NextRequest;
use crate::timers::{BackgroundTimer, Timer};
use underlay_core::{Nanos, RootSeed};
use underlay_model::Operation;
use underlay_model::target::Target;

/// Where it is.
#[derive(Clone, Debug)]
enum State {
    /// It has not begun.
    Waiting,
    /// It works, or waits for its requests in flight because it is to stop.
    Working { progress: Progress, is_stopping: bool },
    /// Nothing is left to do.
    Over,
}

/// How far it is.
#[derive(Clone, Debug)]
enum Progress {
    Copy(Copying),
    Loads(BlockLoads),
}

impl Progress {
    fn places(&self) -> usize {
        match self {
            Progress::Copy(copying) => copying.places(),
            Progress::Loads(loads) => loads.places(),
        }
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Asked {
    part: usize,
    operation: Operation,
    length: u32,
    intended: Nanos,
}

/// A piece of background work.
pub(crate) struct BackgroundWork {
    number: u16,
    spec: BackgroundSpec,
    /// Of its parts.
    volumes: Vec<usize>,
    seed: RootSeed,
    state: State,
    /// By the place in its queue: its request in flight.
    asked: Vec<Option<Asked>>,
    /// Places that have a request in flight or wait until one starts.
    busy: usize,
    result: BackgroundResult,
}

impl BackgroundWork {
    /// Work that has not begun.
    pub(crate) fn new(number: u16, spec: &BackgroundSpec, seed: RootSeed) -> BackgroundWork {
        let volumes: Vec<usize> = spec.parts().iter().map(|part| part.volume).collect();
        BackgroundWork {
            number,
            seed: seed.child("engine.background", u64::from(number)),
            state: State::Waiting,
            asked: Vec::new(),
            busy: 0,
            result: BackgroundResult {
                name: spec.name.clone(),
                parts: fresh(&volumes),
                began: None,
                ended: None,
                is_complete: false,
            },
            volumes,
            spec: spec.clone(),
        }
    }

    /// A timer of it is due.
    pub(crate) fn on_timer<T: Target>(&mut self, core: &mut Core<T>, timer: BackgroundTimer) {
        match (timer, &mut self.state) {
            (BackgroundTimer::Begin, State::Waiting) => self.begin(core),
            (BackgroundTimer::End, State::Working { is_stopping, .. }) => {
                *is_stopping = true;
                // Places that wait until a request starts have nothing to do any more.
                self.busy = self.asked.iter().flatten().count();
                self.end_if_idle(core.now);
            }
            (BackgroundTimer::Place(place), State::Working { is_stopping: false, .. }) => {
                self.go_on(core, place);
            }
            // It ended by itself, or was stopped while a place waited.
            _ => {}
        }
    }

    fn begin<T: Target>(&mut self, core: &mut Core<T>) {
        let progress = match &self.spec.work {
            VolumeWork::Copy(copy) => Progress::Copy(Copying::new(copy, core.now)),
            VolumeWork::Loads(loads) => {
                Progress::Loads(BlockLoads::new(loads, core.now, self.seed))
            }
        };
        let places = progress.places();
        self.result.began = Some(core.now);
        self.state = State::Working { progress, is_stopping: false };
        self.asked = vec![None; places];
        self.busy = places;
        (0..places as u32).for_each(|place| self.go_on(core, place));
    }

    /// A request is done that was in flight for so long.
    pub(crate) fn on_io<T: Target>(&mut self, core: &mut Core<T>, place: u32, latency: Nanos) {
        if let Some(Asked { part, operation, length, intended }) = self.asked[place as usize].take()
        {
            let io = self.result.parts[part].of_kind(operation);
            io.station.depart(core.now, core.now - latency);
            io.bytes += u64::from(length);
            io.response.record((core.now - intended).0);
        }
        self.go_on(core, place);
    }

    /// A place does what it has to do next.
    fn go_on<T: Target>(&mut self, core: &mut Core<T>, number: u32) {
        let (place, now) = (number as usize, core.now);
        let State::Working { progress, is_stopping } = &mut self.state else { return };
        let next = match (progress, *is_stopping) {
            (Progress::Copy(copying), false) => copying.next(place, now),
            (Progress::Copy(copying), true) => copying.finish(place, now),
            (Progress::Loads(loads), false) => loads.next(place, now),
            (Progress::Loads(_), true) => NextRequest::None,
        };
        match next {
            NextRequest::Ask { part, request, intended } => {
                let (operation, length) = (request.operation, request.length_bytes);
                self.result.parts[part].of_kind(operation).station.arrive(now);
                self.asked[place] = Some(Asked { part, operation, length, intended });
                let path = IoPath { host: self.spec.host, cpu_per_io: self.spec.cpu_per_io };
                let volume = self.volumes[part];
                core.submit_background(path, volume, request, (self.number, number));
            }
            NextRequest::Wait { until } => {
                let timer = BackgroundTimer::Place(number);
                core.timers.set(until, Timer::Background { work: self.number, timer });
            }
            NextRequest::None => {
                self.busy -= 1;
                self.end_if_idle(now);
            }
        }
    }

    fn end_if_idle(&mut self, now: Nanos) {
        let State::Working { progress, .. } = &self.state else { return };
        if self.busy > 0 {
            return;
        }
        self.result.ended = Some(now);
        self.result.is_complete = match progress {
            Progress::Copy(copying) => copying.is_complete(),
            Progress::Loads(_) => true,
        };
        self.state = State::Over;
    }

    /// What was counted by `until`; counting begins again.
    pub(crate) fn take(&mut self, until: Nanos) -> BackgroundResult {
        let mut left = fresh(&self.volumes);
        for (part, left) in self.result.parts.iter_mut().zip(&mut left) {
            for kind in [Operation::Read, Operation::Write, Operation::Flush] {
                let station = &mut part.of_kind(kind).station;
                let taken = station.take(until);
                left.of_kind(kind).station = std::mem::replace(station, taken);
            }
        }
        let parts = std::mem::replace(&mut self.result.parts, left);
        BackgroundResult { parts, ..self.result.clone() }
    }
}

fn fresh(volumes: &[usize]) -> Vec<BackgroundPart> {
    volumes.iter().map(|volume| BackgroundPart::of(*volume)).collect()
}
