//! The timing plane: which request is answered when.
//!
//! Requests enter with the moment of their arrival, after their data has been moved. The model gives
//! each a deadline; [`Engine::take_due`] hands out those whose deadline, less the compensation, has
//! come.

use std::collections::VecDeque;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{
    DeviceCondition, Finished, Operation, Request, RequestId, Store, StoreDevice, StoreOutcome,
    StoreVolume,
};

use super::slab::Slab;
use super::statistics::{Answered, Modelled, Statistics};
use crate::control::TimingMode;
use crate::path_cost::PathCost;

/// Requests in flight that need no memory to be allocated.
const IN_FLIGHT_EXPECTED: usize = 2048;

/// The timing plane of one server. `R` is whatever answers a request.
pub(crate) struct Engine<R> {
    devices: Vec<StoreDevice>,
    volumes: Vec<StoreVolume>,
    seed: RootSeed,
    store: Store,
    /// What stood in for `store` before volumes came or went, as long as it has something to finish.
    retired: Vec<Store>,
    mode: TimingMode,
    /// After how long probes are answered; none = there are none.
    probe: Option<Nanos>,
    /// Probes in flight: when each is to be seen by its client, in this order.
    probes: VecDeque<(Nanos, R)>,
    pending: Slab<Pending<R>>,
    finished: Vec<Finished>,
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
            seed,
        }
    }

    /// Whether requests to the volume are to be answered at once, without being submitted.
    pub(crate) fn is_immediate(&self, volume: usize) -> bool {
        match self.mode {
            // A device that cannot answer cannot do so faster.
            TimingMode::Off => !self.store.condition(self.volumes[volume].device).fails(),
            TimingMode::Modelled => {
                let device = self.volumes[volume].device;
                self.devices[device].profile.is_instant()
                    && self.store.condition(device) == DeviceCondition::Healthy
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

    /// Whether the models delay anything.
    pub(crate) fn is_any_delayed(&self) -> bool {
        self.devices.iter().any(|device| !device.profile.is_instant())
    }

    /// Takes out what is to be answered at `now`.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut Vec<Due<R>>) {
        let compensation = self.path.compensation();
        let until = now + compensation;
        while let Some((_, reply)) = self.probes.pop_front_if(|(at, _)| *at <= until) {
            due.push(Due { reply, answered: None, failed: false });
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
            self.in_flight[finished.volume] -= 1;
            let delayed = finished.at > pending.ready + compensation;
            due.push(Due {
                answered: Some(answered(&finished, pending.bytes, delayed)),
                reply: pending.reply,
                failed: finished.outcome != StoreOutcome::Done,
            });
        }
    }

    /// When the next request is to be answered; `None` = nothing is in flight.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        let probe = self.probes.front().map(|(at, _)| *at);
        let retired = self.retired.iter().filter_map(Store::next_wakeup).min();
        let next = [self.store.next_wakeup(), probe, retired].into_iter().flatten().min()?;
        Some(next.saturating_sub(self.path.compensation()))
    }

    /// Counts an answered request.
    pub(crate) fn record(&mut self, answered: &Answered) {
        if let Some(modelled) = answered.modelled.filter(|modelled| modelled.delayed) {
            let leaves = modelled.deadline.saturating_sub(self.path.compensation());
            self.path.observe_answer(answered.replied.saturating_sub(leaves));
        }
        self.statistics.record(answered, self.path.way());
    }

    /// Counts a request whose data could not be moved.
    pub(crate) fn count_error(&mut self) {
        self.statistics.errors += 1;
    }

    pub(crate) fn set_mode(&mut self, mode: TimingMode) {
        self.mode = mode;
    }

    /// Stops accepting requests and returns the answers of all in flight, to be failed.
    pub(crate) fn power_off(&mut self) -> Vec<R> {
        self.is_powered = false;
        self.retired.clear();
        self.in_flight.fill(0);
        self.power_cycles += 1;
        // Devices come back idle, and not with the same random numbers as the first time.
        let seed = self.seed.child("power-cycle", self.power_cycles);
        let conditions: Vec<DeviceCondition> =
            (0..self.devices.len()).map(|device| self.store.condition(device)).collect();
        self.store = Store::new(&self.devices, &self.volumes, seed);
        for (device, condition) in conditions.into_iter().enumerate() {
            self.store.set_condition(Nanos::ZERO, device, condition);
        }
        let pending = self.pending.drain().into_iter().map(|pending| pending.reply);
        pending.chain(self.probes.drain(..).map(|(_, reply)| reply)).collect()
    }

    pub(crate) fn power_on(&mut self) {
        self.is_powered = true;
    }

    /// Adds a volume and returns its number. The devices begin anew, idle and drained: where volumes lie on them
    /// has changed.
    pub(crate) fn add_volume(&mut self, now: Nanos, device: usize, capacity_bytes: u64) -> usize {
        self.volumes.push(StoreVolume { device, capacity: Bytes(capacity_bytes) });
        self.in_flight.push(0);
        self.statistics.add_volume();
        self.lay_out_anew(now);
        self.volumes.len() - 1
    }

    /// Takes a volume away that has nothing in flight. Its number is not given to another one.
    pub(crate) fn remove_volume(&mut self, now: Nanos, volume: usize) {
        self.volumes[volume].capacity = Bytes::ZERO;
        self.lay_out_anew(now);
    }

    /// How a device works.
    pub(crate) fn condition(&self, device: usize) -> DeviceCondition {
        self.store.condition(device)
    }

    /// Changes how a device works.
    pub(crate) fn set_condition(&mut self, now: Nanos, device: usize, condition: DeviceCondition) {
        self.store.set_condition(now.max(self.last_arrival), device, condition);
    }

    fn lay_out_anew(&mut self, now: Nanos) {
        self.layouts += 1;
        let seed = self.seed.child("layout", self.layouts);
        let mut store = Store::new(&self.devices, &self.volumes, seed);
        for device in 0..self.devices.len() {
            store.set_condition(now, device, self.store.condition(device));
        }
        let old = std::mem::replace(&mut self.store, store);
        if old.in_flight() > 0 {
            self.retired.push(old);
        }
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

fn answered(finished: &Finished, bytes: u32, delayed: bool) -> Answered {
    Answered {
        volume: finished.volume,
        operation: finished.operation,
        bytes: if finished.operation == Operation::Flush { 0 } else { bytes },
        arrived: finished.arrived,
        replied: finished.at,
        modelled: Some(Modelled { deadline: finished.at, queue: finished.queue, delayed }),
    }
}

#[cfg(test)]
mod tests {
    use super::Engine;
    use crate::control::TimingMode;
    use underlay_core::{Bytes, Nanos, RootSeed};
    use underlay_model::{Request, StoreDevice, StoreVolume, builtin};

    fn engine(profile: &str) -> Engine<u32> {
        let profile = builtin::find(profile).unwrap();
        let device = StoreDevice { name: "a".to_string(), profile };
        let volume = StoreVolume { device: 0, capacity: Bytes::from_mib(64) };
        Engine::new(vec![device], vec![volume], RootSeed(1))
    }

    const PATH: Nanos = Nanos::from_micros(60);

    fn due(engine: &mut Engine<u32>, now: Nanos) -> Vec<u32> {
        let mut due = Vec::new();
        engine.take_due(now, &mut due);
        due.into_iter().map(|due| due.reply).collect()
    }

    #[test]
    fn answers_leave_before_their_deadline_by_the_compensation() {
        let mut engine = engine("dc1500m-960");
        engine.set_probe(Some(Nanos::from_micros(200)));
        engine.path.compensate(PATH);
        let arrived = Nanos::from_micros(1_000);
        assert!(engine.is_probe(0, 4096) && !engine.is_probe(4096, 4096));
        engine.submit_probe(arrived, 7);
        assert_eq!(engine.next_answer(), Some(Nanos::from_micros(1_140)));
        assert!(due(&mut engine, Nanos(1_139_999)).is_empty());
        assert_eq!(due(&mut engine, Nanos::from_micros(1_140)), [7]);
        engine.submit(arrived, arrived, 0, &Request::read(1 << 20, 4096), 8);
        let deadline = engine.next_answer().expect("in flight") + PATH;
        assert!(deadline > arrived + PATH, "the device takes longer than the path");
        assert!(due(&mut engine, deadline.saturating_sub(PATH + Nanos(1))).is_empty());
        assert_eq!(engine.in_flight(0), 1);
        assert_eq!(due(&mut engine, deadline.saturating_sub(PATH)), [8]);
        assert_eq!((engine.in_flight(0), engine.next_answer()), (0, None));
    }

    #[test]
    fn what_the_host_is_too_slow_for_is_due_at_once() {
        let mut engine = engine("dc1500m-960");
        engine.path.compensate(PATH);
        engine.submit(Nanos(0), Nanos(0), 0, &Request::write(0, 4096), 1);
        let mut due = Vec::new();
        engine.take_due(Nanos(0), &mut due);
        assert!(!due[0].answered.unwrap().modelled.unwrap().delayed);
    }

    #[test]
    fn a_power_cut_hands_back_what_is_in_flight() {
        let mut engine = engine("hdd-7200");
        for reply in 0..3 {
            engine.submit(Nanos(0), Nanos(0), 0, &Request::read(0, 4096), reply);
        }
        engine.set_probe(Some(Nanos(5)));
        engine.submit_probe(Nanos(0), 3);
        assert_eq!(engine.power_off(), [0, 1, 2, 3]);
        assert!(!engine.is_powered());
        assert!(due(&mut engine, Nanos::from_secs(1)).is_empty());
        engine.power_on();
        engine.submit(Nanos(2), Nanos(2), 0, &Request::read(0, 4096), 10);
        assert!(due(&mut engine, Nanos(3)).is_empty());
        assert_eq!(due(&mut engine, Nanos::from_secs(1)), [10]);
    }

    #[test]
    fn instant_devices_and_switched_off_timing_are_immediate() {
        assert!(engine("null").is_immediate(0));
        let mut engine = engine("hdd-7200");
        assert!(!engine.is_immediate(0));
        engine.set_mode(TimingMode::Off);
        assert!(engine.is_immediate(0));
    }
}
