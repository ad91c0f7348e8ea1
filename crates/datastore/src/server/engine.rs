//! The timing plane: which request is answered when.
//!
//! Requests enter with the moment of their arrival, after their data has been moved. The model gives
//! each a deadline; [`Engine::take_due`] hands out those whose deadline, less the compensation, has
//! come.

use std::collections::VecDeque;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::Policy;
use underlay_model::{
    CopyState, DeviceCondition, DeviceProfile, Finished as StoreFinished, HostLink, LinkUse,
    Operation, Request, RequestId, ServiceFactor, Store, StoreDevice, StoreOutcome, StoreVolume,
    builtin,
};

use super::cluster::plane::ClusterPlane;
use super::cluster::prolonged::Prolonged;
use super::cluster::request::{Finished, InFlight, Payload};
use super::slab::Slab;
use super::statistics::{Answered, Modelled, Statistics};
use crate::config::VolumeConfig;
use crate::control::TimingMode;
use crate::path_cost::PathCost;

/// Requests in flight that need no memory to be allocated.
const IN_FLIGHT_EXPECTED: usize = 2048;

/// The timing plane of one server. `R` is whatever answers a request.
pub(crate) struct Engine<R> {
    devices: Vec<StoreDevice>,
    volumes: Vec<StoreVolume>,
    link: Option<HostLink>,
    seed: RootSeed,
    store: Store,
    /// What stood in for `store` before volumes came or went, as long as it has something to finish.
    retired: Vec<Store>,
    /// In place of all these: volumes of a cluster.
    pub(crate) cluster: Option<ClusterPlane<R>>,
    from_cluster: Vec<Finished<R>>,
    /// Requests that a cluster has done and that are held back by the factor of their purpose.
    prolonged: Prolonged<R>,
    /// Per volume, in the order of `Operation::ALL`; those that are missing are 1.
    factors: Vec<[ServiceFactor; 4]>,
    mode: TimingMode,
    /// After how long probes are answered; none = there are none.
    probe: Option<Nanos>,
    /// Probes in flight: when each is to be seen by its client, in this order.
    probes: VecDeque<(Nanos, R)>,
    pending: Slab<Pending<R>>,
    finished: Vec<StoreFinished>,
    pub(crate) statistics: Statistics,
    pub(crate) path: PathCost,
    in_flight: Vec<u64>,
    last_arrival: Nanos,
    is_powered: bool,
    power_cycles: u64,
    layouts: u64,
}

struct Pending<R> {
    reply: R,
    bytes: u32,
    /// When its data had been moved and it could have been answered.
    ready: Nanos,
}

/// The length of a probe, at the start of a volume; see `emulated::path_calibration`.
const PROBE_BYTES: u32 = 4096;

/// A request to be answered now.
pub(crate) struct Due<R> {
    pub(crate) reply: R,
    /// What to count; none for probes.
    pub(crate) answered: Option<Answered>,
    /// The device could not do it.
    pub(crate) failed: bool,
    /// What a cluster read; empty for everything else.
    pub(crate) buffer: Vec<u8>,
}

impl<R> Engine<R> {
    pub(crate) fn new(
        devices: Vec<StoreDevice>,
        volumes: Vec<StoreVolume>,
        seed: RootSeed,
    ) -> Engine<R> {
        Engine {
            store: Store::new(&devices, &volumes, seed),
            retired: Vec::new(),
            cluster: None,
            from_cluster: Vec::new(),
            prolonged: Prolonged::default(),
            factors: Vec::new(),
            mode: TimingMode::Modelled,
            probe: None,
            probes: VecDeque::new(),
            pending: Slab::with_capacity(IN_FLIGHT_EXPECTED),
            finished: Vec::with_capacity(IN_FLIGHT_EXPECTED),
            statistics: Statistics::new(volumes.len()),
            path: PathCost::default(),
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
    pub(crate) fn behind(mut self, link: Option<HostLink>) -> Engine<R> {
        self.link = link;
        self.store.set_link(link);
        self
    }

    /// The timing plane of a cluster, without volumes.
    pub(crate) fn of_cluster(plane: ClusterPlane<R>, seed: RootSeed) -> Engine<R> {
        // Nothing is ever asked of this device, but volumes need a number and a place.
        let device = StoreDevice { name: "nowhere".to_string(), profile: nowhere() };
        let mut engine = Engine::new(vec![device], Vec::new(), seed);
        engine.cluster = Some(plane);
        engine
    }

    pub(crate) fn mode(&self) -> TimingMode {
        self.mode
    }

    /// Hands a request to the cluster; it comes back from [`Engine::take_due`]. `at_once`: it is handed back if nothing keeps
    /// it.
    pub(crate) fn carry(
        &mut self,
        in_flight: InFlight<R>,
        request: &Request,
        payload: Payload,
        at_once: bool,
    ) -> Option<Finished<R>> {
        let plane = self.cluster.as_mut()?;
        let volume = in_flight.volume;
        // What is carried through at once is not early for anybody.
        let compensation = self.path.compensation_of(request.operation);
        let head_start = if at_once { Nanos::ZERO } else { compensation };
        let id = plane.submit(in_flight, request, payload, head_start);
        if at_once && let Some(done) = plane.complete_now(id) {
            return Some(done);
        }
        self.in_flight[volume] += 1;
        None
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

    /// Accepts a request that arrived at `arrived`; `now` is when its data had been moved.
    ///
    /// # Panics
    /// If there is no power.
    pub(crate) fn submit(
        &mut self,
        arrived: Nanos,
        now: Nanos,
        volume: usize,
        request: &Request,
        reply: R,
    ) {
        assert!(self.is_powered, "the caller checks the power");
        debug_assert!(arrived <= now, "data moves after its request has arrived");
        let key = self.pending.insert(Pending { reply, bytes: request.length_bytes, ready: now });
        self.store.submit(arrived, volume, request, RequestId(key));
        self.last_arrival = arrived;
        self.in_flight[volume] += 1;
    }

    /// Whether a read is a probe of the path.
    pub(crate) fn is_probe(&self, offset_bytes: u64, length_bytes: u32) -> bool {
        self.probe.is_some() && offset_bytes == 0 && length_bytes == PROBE_BYTES
    }

    /// Accepts a probe that arrived at `arrived`.
    pub(crate) fn submit_probe(&mut self, arrived: Nanos, reply: R) {
        self.probes.push_back((arrived + self.probe.unwrap_or(Nanos::ZERO), reply));
    }

    /// Probes are answered after this time from now on; none = there are none any more.
    pub(crate) fn set_probe(&mut self, latency: Option<Nanos>) {
        self.probe = latency;
    }

    /// Whether answers have to leave at moments of their own.
    pub(crate) fn keeps_time(&self) -> bool {
        self.probe.is_some() || (self.mode == TimingMode::Modelled && self.is_any_delayed())
    }

    /// Whether the models delay anything.
    pub(crate) fn is_any_delayed(&self) -> bool {
        match &self.cluster {
            Some(plane) => !plane.is_instant,
            None => {
                let is_delayed = |device: &StoreDevice| !device.profile.is_instant();
                self.link.is_some() || self.devices.iter().any(is_delayed)
            }
        }
    }

    /// Takes out what is to be answered at `now`.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut Vec<Due<R>>) {
        let compensation = self.path.compensation();
        let until = now + compensation;
        while let Some((_, reply)) = self.probes.pop_front_if(|(at, _)| *at <= until) {
            due.push(Due { reply, answered: None, failed: false, buffer: Vec::new() });
        }
        self.store.advance(until, &mut self.finished);
        if !self.retired.is_empty() {
            for store in &mut self.retired {
                store.advance(until, &mut self.finished);
            }
            self.retired.retain(|store| store.in_flight() > 0);
        }
        for finished in self.finished.drain(..) {
            let Some(pending) = self.pending.remove(finished.request.0) else { continue };
            debug_assert!(finished.at <= until, "answered before its time");
            debug_assert!(self.in_flight[finished.volume] > 0, "answered more often than asked");
            self.in_flight[finished.volume] -= 1;
            let delayed = finished.at > pending.ready + compensation;
            due.push(Due {
                answered: Some(answered(&finished, pending.bytes, delayed)),
                reply: pending.reply,
                failed: finished.outcome != StoreOutcome::Done,
                buffer: Vec::new(),
            });
        }
        if let Some(plane) = &mut self.cluster {
            // Its clock must not run ahead of arrivals; its answers come early by themselves.
            plane.advance(now, &mut self.from_cluster);
            let (factors, path) = (&self.factors, &self.path);
            let in_flight = &mut self.in_flight;
            let mut answer = |done: Finished<R>| {
                debug_assert!(in_flight[done.in_flight.volume] > 0, "answered twice");
                in_flight[done.in_flight.volume] -= 1;
                due.push(done.into_due(path));
            };
            for done in self.from_cluster.drain(..) {
                let factor = factors.get(done.in_flight.volume);
                let factor = factor.map(|of| of[done.operation.index()]);
                match factor.filter(|factor| *factor > ServiceFactor::ONE) {
                    Some(factor) => self.prolonged.hold(done, factor),
                    None => answer(done),
                }
            }
            self.prolonged.release(|done| now + path.compensation_of(done.operation), answer);
        }
    }

    /// When the next request is to be answered; `None` = nothing is in flight.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        let probe = self.probes.front().map(|(at, _)| *at);
        let retired = self.retired.iter().filter_map(Store::next_wakeup).min();
        let cluster = self.cluster.as_ref().and_then(ClusterPlane::next_wakeup);
        let deadlines = [self.store.next_wakeup(), probe, retired];
        let next = deadlines.into_iter().flatten().min();
        let next = next.map(|next| next.saturating_sub(self.path.compensation()));
        let prolonged = self.prolonged.next(|operation| self.path.compensation_of(operation));
        [next, cluster, prolonged].into_iter().flatten().min()
    }

    /// Counts an answered request.
    pub(crate) fn record(&mut self, answered: &Answered) {
        let compensation = match self.cluster {
            Some(_) => self.path.compensation_of(answered.operation),
            None => self.path.compensation(),
        };
        if let Some(modelled) = answered.modelled.filter(|modelled| modelled.delayed) {
            let leaves = modelled.deadline.saturating_sub(compensation);
            self.path.observe_answer(answered.replied.saturating_sub(leaves));
        }
        self.statistics.record(answered, self.path.way(compensation));
    }

    /// Counts a request whose data could not be moved.
    pub(crate) fn count_error(&mut self) {
        self.statistics.errors += 1;
    }

    pub(crate) fn set_mode(&mut self, mode: TimingMode) {
        self.mode = mode;
    }

    /// Stops accepting requests and returns the answers of all in flight, to be failed.
    pub(crate) fn power_off(&mut self, now: Nanos) -> Vec<R> {
        self.is_powered = false;
        self.retired.clear();
        self.in_flight.fill(0);
        self.power_cycles += 1;
        // Devices come back idle, and not with the same random numbers as the first time.
        let seed = self.seed.child("power-cycle", self.power_cycles);
        self.replace_store(Nanos::ZERO, seed);
        let pending = self.pending.drain().into_iter().map(|pending| pending.reply);
        let mut answers: Vec<R> =
            pending.chain(self.probes.drain(..).map(|(_, reply)| reply)).collect();
        if let Some(plane) = &mut self.cluster {
            plane.power_off(now);
            answers.extend(plane.abandon().into_iter().map(|in_flight| in_flight.reply));
            answers.extend(self.prolonged.abandon().map(|done| done.in_flight.reply));
        }
        answers
    }

    pub(crate) fn power_on(&mut self, now: Nanos) {
        self.is_powered = true;
        self.store.resume_copying(now);
        if let Some(plane) = &mut self.cluster {
            plane.power_on(now);
        }
    }

    /// Places a volume on the cluster and returns its number; an error says why it cannot be placed.
    pub(crate) fn add_cluster_volume(
        &mut self,
        now: Nanos,
        volume: &VolumeConfig,
    ) -> Result<usize, String> {
        let plane = self.cluster.as_mut().ok_or("there is no cluster")?;
        let policy = volume.policy.map_or(Policy::DEFAULT, Policy::from);
        let placed = plane.add_volume(now, &volume.name, volume.capacity_bytes, policy);
        placed.map_err(|refusal| refusal.to_string())?;
        Ok(self.add_volume(now, 0, volume.capacity_bytes))
    }

    /// Adds a volume and returns its number. The devices begin anew, idle and drained: where volumes lie on them
    /// has changed.
    pub(crate) fn add_volume(&mut self, now: Nanos, device: usize, capacity_bytes: u64) -> usize {
        self.volumes.push(StoreVolume { device, capacity: Bytes(capacity_bytes) });
        self.in_flight.push(0);
        self.statistics.add_volume();
        // All three are looked up by the same number.
        assert_eq!(self.volumes.len(), self.in_flight.len(), "a volume without its counter");
        assert_eq!(
            self.volumes.len(),
            self.statistics.volumes.len(),
            "a volume without statistics"
        );
        self.lay_out_anew(now);
        self.volumes.len() - 1
    }

    /// Takes a volume away that has nothing in flight. Its number is not given to another one.
    pub(crate) fn remove_volume(&mut self, now: Nanos, volume: usize) {
        if let Some(plane) = &mut self.cluster {
            plane.remove_volume(now, volume);
        }
        assert_eq!(self.in_flight[volume], 0, "the caller waits until its requests are answered");
        self.volumes[volume].capacity = Bytes::ZERO;
        self.lay_out_anew(now);
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

    /// Services of each volume's operations take so many times as long from now on. On devices that is the modelled service
    /// itself, so that queues and write buffers react as those of a slower device. A request to a cluster becomes many,
    /// on devices that also destage and resynchronise: there its answer is held back for a share of the time that it
    /// took, and nothing can become faster.
    pub(crate) fn set_factors(&mut self, now: Nanos, factors: Vec<[ServiceFactor; 4]>) {
        self.store.set_factors(now.max(self.last_arrival), factors.clone());
        self.factors = factors;
    }

    fn lay_out_anew(&mut self, now: Nanos) {
        self.layouts += 1;
        let seed = self.seed.child("layout", self.layouts);
        let old = self.replace_store(now, seed);
        self.store.resume_copying(now);
        if old.in_flight() > 0 {
            self.retired.push(old);
        }
    }

    /// Begins anew with idle devices that work as they did; returns what they were.
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

/// A device that takes no time and holds everything.
fn nowhere() -> DeviceProfile {
    let null = builtin::find("null").expect("it is built in");
    DeviceProfile { capacity: Bytes(1 << 60), ..null }
}

fn answered(finished: &StoreFinished, bytes: u32, delayed: bool) -> Answered {
    Answered {
        volume: finished.volume,
        operation: finished.operation,
        bytes: if finished.operation == Operation::Flush { 0 } else { bytes },
        arrived: finished.arrived,
        replied: finished.at,
        modelled: Some(Modelled { deadline: finished.at, queue: finished.queue, delayed }),
    }
}
