//! The timing plane: when each request to a device is answered.
//!
//! Requests enter after their data has been moved. The model gives each a deadline; [`Engine::take_due`] hands out those
//! whose deadline, less the compensation, has come.

use underlay_core::{Bytes, Nanos, Operation, RootSeed};
use underlay_export::path_cost::PathCost;
use underlay_export::{Answer, Modelled};
use underlay_model::{
    CopyState, DeviceCondition, Finished, HostLink, LinkUse, Request, RequestId, ServiceFactor,
    Store, StoreDevice, StoreOutcome, StoreVolume,
};

use super::undo_log::Generation;
use crate::control::TimingMode;
use crate::server::slab::Slab;

/// Requests in flight that need no memory to be allocated.
const IN_FLIGHT_EXPECTED: usize = 2048;

/// The timing plane of the devices of one server. `C` names the client that is answered.
pub(crate) struct Engine<C> {
    devices: Vec<StoreDevice>,
    volumes: Vec<StoreVolume>,
    link: Option<HostLink>,
    seed: RootSeed,
    store: Store,
    /// What stood in for `store` before volumes came or went, as long as it has something to finish.
    retired: Vec<Store>,
    /// Per volume, in the order of `Operation::ALL`; those that are missing are 1.
    factors: Vec<[ServiceFactor; 4]>,
    mode: TimingMode,
    waiting: Slab<InFlight<C>>,
    finished: Vec<Finished>,
    in_flight: Vec<u64>,
    last_arrival: Nanos,
    is_powered: bool,
    power_cycles: u64,
    layouts: u64,
}

/// A request while its device has it.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    pub(super) client: C,
    pub(super) volume: usize,
    pub(super) arrived: Nanos,
    /// Bytes that were asked for; 0 for a flush.
    pub(super) bytes: u32,
    /// When its data had been moved and it could have been answered.
    pub(super) ready: Nanos,
    /// What its answer has to wait for no longer.
    pub(super) effect: Effect,
    /// What was read; empty for everything else.
    pub(super) buffer: Vec<u8>,
}

/// What becomes durable when a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// A range.
    Durable {
        offset: u64,
        length: u32,
    },
    /// Everything that was written before the flush arrived.
    Flushed(Generation),
}

/// By how much reads, and everything else, leave early.
fn compensations(path: &PathCost) -> [Nanos; 2] {
    [Operation::Read, Operation::Write].map(|operation| path.compensation_of(operation))
}

impl<C> InFlight<C> {
    /// One that reads nothing and makes nothing durable.
    pub(super) fn new(client: C, volume: usize, arrived: Nanos) -> InFlight<C> {
        let (effect, buffer) = (Effect::Nothing, Vec::new());
        InFlight { client, volume, arrived, bytes: 0, ready: arrived, effect, buffer }
    }
}

impl<C> Engine<C> {
    pub(crate) fn new(
        devices: Vec<StoreDevice>,
        volumes: Vec<StoreVolume>,
        seed: RootSeed,
    ) -> Engine<C> {
        Engine {
            store: Store::new(&devices, &volumes, seed),
            retired: Vec::new(),
            factors: Vec::new(),
            mode: TimingMode::Modelled,
            waiting: Slab::with_capacity(IN_FLIGHT_EXPECTED),
            finished: Vec::with_capacity(IN_FLIGHT_EXPECTED),
            in_flight: vec![0; volumes.len()],
            last_arrival: Nanos::ZERO,
            is_powered: true,
            power_cycles: 0,
            layouts: 0,
            devices,
            volumes,
            link: None,
            seed,
        }
    }

    /// Puts all devices behind a link.
    pub(crate) fn behind(mut self, link: Option<HostLink>) -> Engine<C> {
        self.link = link;
        self.store.set_link(link);
        self
    }

    /// Whether requests to the volume are to be answered at once, without being submitted.
    pub(crate) fn is_immediate(&self, volume: usize) -> bool {
        match self.mode {
            // A device that cannot answer cannot do so faster, and what a copy misses must be known.
            TimingMode::Off => {
                let device = self.volumes[volume].device;
                if self.devices[device].profile.copies == 1 {
                    !self.store.condition(device).fails()
                } else {
                    self.store.is_whole(device)
                }
            }
            TimingMode::Modelled => {
                let device = self.volumes[volume].device;
                self.devices[device].profile.is_instant()
                    && self.link.is_none()
                    && self.store.is_whole(device)
            }
        }
    }

    pub(crate) fn is_powered(&self) -> bool {
        self.is_powered
    }

    /// Accepts a request; `now` is when its data had been moved.
    ///
    /// # Panics
    /// If there is no power.
    pub(crate) fn submit(&mut self, now: Nanos, request: &Request, mut in_flight: InFlight<C>) {
        assert!(self.is_powered, "the caller checks the power");
        let (volume, arrived) = (in_flight.volume, in_flight.arrived);
        debug_assert!(arrived <= now, "data moves after its request has arrived");
        in_flight.ready = now;
        let key = self.waiting.insert(in_flight);
        self.store.submit(arrived, volume, request, RequestId(key));
        self.last_arrival = arrived;
        self.in_flight[volume] += 1;
    }

    /// Whether answers have to leave at moments of their own.
    pub(crate) fn keeps_time(&self) -> bool {
        let is_delayed = |device: &StoreDevice| !device.profile.is_instant();
        self.mode == TimingMode::Modelled
            && (self.link.is_some() || self.devices.iter().any(is_delayed))
    }

    /// Hands over what is to be answered at `now`, each with what becomes durable if it has not failed.
    pub(crate) fn take_due(
        &mut self,
        now: Nanos,
        path: &PathCost,
        mut answer: impl FnMut(Answer<C>, Effect),
    ) {
        let until = compensations(path).map(|early| now + early);
        self.store.advance_apart(until, &mut self.finished);
        if !self.retired.is_empty() {
            for store in &mut self.retired {
                store.advance_apart(until, &mut self.finished);
            }
            self.retired.retain(|store| store.in_flight() > 0);
        }
        for Finished { request, volume, operation, at, queue, outcome, .. } in
            self.finished.drain(..)
        {
            let Some(done) = self.waiting.remove(request.0) else { continue };
            let early = path.compensation_of(operation);
            debug_assert!(at <= now + early, "answered before its time");
            debug_assert!(self.in_flight[volume] > 0, "answered more often than asked");
            self.in_flight[volume] -= 1;
            let delayed = at > done.ready + early;
            let finished = Answer {
                client: Some(done.client),
                volume,
                operation,
                bytes: done.bytes,
                arrived: done.arrived,
                modelled: Some(Modelled { deadline: at, queue, delayed }),
                early,
                failed: outcome != StoreOutcome::Done,
                buffer: done.buffer,
                wanted: 0..done.bytes as usize,
            };
            answer(finished, done.effect);
        }
    }

    /// When the next request is to be answered; `None` = nothing is in flight.
    pub(crate) fn next_answer(&self, path: &PathCost) -> Option<Nanos> {
        let early = compensations(path);
        let stores = self.retired.iter().chain([&self.store]);
        stores.filter_map(|store| store.next_wakeup_apart(early)).min()
    }

    pub(crate) fn set_mode(&mut self, mode: TimingMode) {
        self.mode = mode;
    }

    /// Stops accepting requests and returns the clients that wait for an answer.
    pub(crate) fn power_off(&mut self) -> Vec<C> {
        self.is_powered = false;
        self.retired.clear();
        self.in_flight.fill(0);
        self.power_cycles += 1;
        // Devices come back idle, and not with the same random numbers as the first time.
        let seed = self.seed.child("power-cycle", self.power_cycles);
        self.replace_store(Nanos::ZERO, seed);
        self.waiting.drain().into_iter().map(|waiting| waiting.client).collect()
    }

    pub(crate) fn power_on(&mut self, now: Nanos) {
        self.is_powered = true;
        self.store.resume_copying(now);
    }

    /// Adds a volume and returns its number. The devices restart idle and drained: where volumes lie on them has
    /// changed.
    pub(crate) fn add_volume(&mut self, now: Nanos, device: usize, capacity_bytes: u64) -> usize {
        self.volumes.push(StoreVolume { device, capacity: Bytes(capacity_bytes) });
        self.in_flight.push(0);
        // Both are looked up by the same number.
        assert_eq!(self.volumes.len(), self.in_flight.len(), "a volume without its counter");
        self.rebuild_layout(now);
        self.volumes.len() - 1
    }

    /// Takes a volume away that has nothing in flight. Its number is not given to another one.
    pub(crate) fn remove_volume(&mut self, now: Nanos, volume: usize) {
        assert_eq!(self.in_flight[volume], 0, "the caller waits until its requests are answered");
        self.volumes[volume].capacity = Bytes::ZERO;
        self.rebuild_layout(now);
    }

    /// How a device works.
    pub(crate) fn condition(&self, device: usize) -> DeviceCondition {
        self.store.condition(device)
    }

    /// How each copy of a mirrored device is.
    pub(crate) fn copies(&self, device: usize) -> Vec<CopyState> {
        self.store.copies(device)
    }

    /// What the link before the devices has carried.
    pub(crate) fn link_use(&self) -> Option<LinkUse> {
        self.store.link_use()
    }

    /// Changes how a device works, or one copy of a mirrored one.
    pub(crate) fn set_condition(
        &mut self,
        now: Nanos,
        device: usize,
        copy: Option<usize>,
        condition: DeviceCondition,
    ) {
        let now = now.max(self.last_arrival);
        match copy {
            None => self.store.set_condition(now, device, condition),
            Some(copy) => self.store.set_copy_condition(now, device, copy, condition),
        }
    }

    /// Services of each volume's operations take longer by these factors from now on. It is the modelled service itself,
    /// so that queues and write buffers react as those of a slower device.
    pub(crate) fn set_factors(&mut self, now: Nanos, factors: Vec<[ServiceFactor; 4]>) {
        self.store.set_factors(now.max(self.last_arrival), factors.clone());
        self.factors = factors;
    }

    fn rebuild_layout(&mut self, now: Nanos) {
        self.layouts += 1;
        let seed = self.seed.child("layout", self.layouts);
        let old = self.replace_store(now, seed);
        self.store.resume_copying(now);
        if old.in_flight() > 0 {
            self.retired.push(old);
        }
    }

    /// Restarts with idle devices in the same condition; returns what they were.
    fn replace_store(&mut self, now: Nanos, seed: RootSeed) -> Store {
        let mut store = Store::new(&self.devices, &self.volumes, seed);
        store.set_factors(now, self.factors.clone());
        store.set_link(self.link);
        store.succeed(now, &self.store);
        std::mem::replace(&mut self.store, store)
    }

    /// Number of times the power was cut.
    pub(crate) fn power_cycles(&self) -> u64 {
        self.power_cycles
    }

    pub(crate) fn in_flight(&self, volume: usize) -> u64 {
        self.in_flight[volume]
    }

    /// The devices by number.
    pub(crate) fn devices(&self) -> &[StoreDevice] {
        &self.devices
    }

    /// Bytes of a device that no volume takes.
    pub(crate) fn free_bytes(&self, device: usize) -> u64 {
        let on_device = self.volumes.iter().filter(|volume| volume.device == device);
        let used: u64 = on_device.map(|volume| volume.capacity.0.next_multiple_of(1 << 20)).sum();
        self.devices[device].profile.capacity.0.saturating_sub(used)
    }

    /// (bytes in the write buffer, bytes drained) per device.
    pub(crate) fn buffers(&mut self, now: Nanos) -> Vec<(u64, u64)> {
        let now = now.max(self.last_arrival);
        (0..self.devices.len())
            .map(|device| {
                (self.store.buffer_fill(device, now).0, self.store.drained_bytes(device, now).0)
            })
            .collect()
    }
}
