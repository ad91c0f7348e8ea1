//! Volumes on devices: what the emulator, the simulator and the tests drive.
//!
//! The interface promises nothing at submission: a request goes in with [`Store::submit`], time passes,
//! and [`Store::advance`] hands back what has completed. Callers ask [`Store::next_wakeup`] when that is
//! worth doing. So the caller does not depend on a request being a single step.
//!
//! A volume is an extent of one device, and a request is one step on that device, or one on each of its
//! copies. All devices may be behind one link. Clusters of disk groups have an interface of their own.

use crate::copies::{CopySet, CopyState, Served};
use crate::device_condition::DeviceCondition;
use crate::host_link::{HostLink, HostLinkState, LinkUse};
use crate::profile::DeviceProfile;
use crate::request::{Operation, Request};
use crate::service_factor::ServiceFactor;
pub use crate::store_outcome::StoreOutcome;
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::{Bytes, Nanos, RootSeed};

/// Volumes on a device start at multiples of this.
pub const EXTENT_ALIGNMENT_BYTES: u64 = 1 << 20;

/// One device of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreDevice {
    /// Unique in the store; selects the device's random stream.
    pub name: String,
    /// What it is.
    pub profile: DeviceProfile,
}

/// One volume of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreVolume {
    /// Index into the store's devices.
    pub device: usize,
    /// Its size.
    pub capacity: Bytes,
}

/// Names a request among those in flight; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The caller's name for it.
    pub request: RequestId,
    /// Index of its volume.
    pub volume: usize,
    /// What it was.
    pub operation: Operation,
    /// When it was submitted.
    pub arrived: Nanos,
    /// When it completed.
    pub at: Nanos,
    /// Time it waited for others.
    pub queue: Nanos,
    /// Whether the device did it.
    pub outcome: StoreOutcome,
}

/// Devices, the volumes on them, and the requests in flight.
#[derive(Clone, Debug)]
pub struct Store {
    devices: Vec<CopySet>,
    volumes: Vec<Extent>,
    /// What all requests pass on their way.
    link: Option<HostLinkState>,
    /// Reads, and everything else: a caller may ask for them apart.
    in_flight: [BinaryHeap<Reverse<Pending>>; 2],
    submitted: u64,
    /// What stuck devices hold, in order of arrival.
    held: Vec<Held>,
    /// Decides which requests an erroring device fails.
    random: Pcg64,
    /// Per volume, in the order of [`Operation::ALL`]; those that are missing are 1.
    factors: Vec<[ServiceFactor; 4]>,
}

/// A request that a stuck device has accepted. The request is already placed on the device.
#[derive(Clone, Copy, Debug)]
struct Held {
    device: usize,
    volume: usize,
    placed: Request,
    id: RequestId,
    arrived: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    device: usize,
    base: u64,
    capacity: Bytes,
}

/// Ordered by completion, then by submission, so that equal times keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    sequence: u64,
    finished: Finished,
}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (self.finished.at, self.sequence).cmp(&(other.finished.at, other.sequence))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Store {
    /// Lays the volumes on their devices, one after the other.
    ///
    /// # Panics
    /// If a profile has problems, a volume names no device, or the volumes of a device exceed it.
    pub fn new(devices: &[StoreDevice], volumes: &[StoreVolume], seed: RootSeed) -> Store {
        let mut used = vec![0u64; devices.len()];
        let extents = volumes
            .iter()
            .map(|volume| {
                let base = used[volume.device];
                let end = base + volume.capacity.0;
                let capacity = devices[volume.device].profile.capacity;
                assert!(end <= capacity.0, "volumes exceed device {}", volume.device);
                used[volume.device] = end.next_multiple_of(EXTENT_ALIGNMENT_BYTES);
                Extent { device: volume.device, base, capacity: volume.capacity }
            })
            .collect();
        let devices = devices
            .iter()
            .zip(&used)
            .map(|(device, used)| {
                let extent = Bytes((*used).max(EXTENT_ALIGNMENT_BYTES));
                CopySet::new(&device.profile, extent, seed, &device.name)
            })
            .collect();
        Store {
            devices,
            volumes: extents,
            link: None,
            in_flight: [(); 2].map(|()| BinaryHeap::with_capacity(4096)),
            submitted: 0,
            held: Vec::new(),
            random: seed.stream("device-errors", 0),
            factors: Vec::new(),
        }
    }

    /// Puts all devices behind a link, idle; `None` = each is connected directly.
    ///
    /// # Panics
    /// If the link has a [`HostLink::problem`].
    pub fn set_link(&mut self, link: Option<HostLink>) {
        self.link = link.map(HostLinkState::new);
    }

    /// What the link has carried; `None` without one.
    pub fn link_use(&self) -> Option<LinkUse> {
        self.link.as_ref().map(HostLinkState::used)
    }

    /// Accepts a request to a volume at `now`. It comes back from [`Store::advance`] under `id`.
    ///
    /// # Panics
    /// If `now` lies before an earlier submission, or the request reaches beyond the volume.
    pub fn submit(&mut self, now: Nanos, volume: usize, request: &Request, id: RequestId) {
        let extent = self.volumes[volume];
        let end = request.offset_bytes + u64::from(request.length_bytes);
        // Otherwise it would reach into the next volume's extent.
        assert!(end <= extent.capacity.0, "request beyond the end of volume {volume}");
        let placed = Request { offset_bytes: extent.base + request.offset_bytes, ..*request };
        let held = Held { device: extent.device, volume, placed, id, arrived: now };
        if self.devices[extent.device].waits(request.operation) {
            self.held.push(held);
        } else {
            self.begin(now, held);
        }
    }

    /// Hands a request to a device that need not hold it.
    fn begin(&mut self, now: Nanos, Held { device, volume, placed, id, arrived }: Held) {
        let factors = self.factors.get(volume);
        let factor = factors.map_or(ServiceFactor::ONE, |of| of[placed.operation.index()]);
        let Served { at, queue, outcome } =
            self.devices[device].serve(now, &placed, factor, &mut self.random);
        let (at, queue) = match &mut self.link {
            Some(link) if outcome != StoreOutcome::DeviceLost => {
                let passed = link.pass(now, at, &placed);
                (passed.at, queue + passed.queue)
            }
            _ => (at, queue),
        };
        self.submitted += 1;
        // What a stuck device held waited there, too.
        let queue = queue + (now - arrived);
        let operation = placed.operation;
        self.in_flight[usize::from(operation != Operation::Read)].push(Reverse(Pending {
            sequence: self.submitted,
            finished: Finished { request: id, volume, operation, arrived, at, queue, outcome },
        }));
    }

    /// Changes how a device works from `now` on, every copy of it. Requests that it has keep the time they were given;
    /// those that it held while it was stuck begin now.
    ///
    /// # Panics
    /// If the condition has a [`DeviceCondition::problem`].
    pub fn set_condition(&mut self, now: Nanos, device: usize, condition: DeviceCondition) {
        self.change_condition(now, device, None, condition);
    }

    /// The same for one copy of a mirrored device, counted from 0.
    ///
    /// # Panics
    /// If the condition has a [`DeviceCondition::problem`], or there is no such copy.
    pub fn set_copy_condition(
        &mut self,
        now: Nanos,
        device: usize,
        copy: usize,
        condition: DeviceCondition,
    ) {
        assert!(copy < self.devices[device].len(), "device {device} has no copy {copy}");
        self.change_condition(now, device, Some(copy), condition);
    }

    fn change_condition(
        &mut self,
        now: Nanos,
        device: usize,
        copy: Option<usize>,
        condition: DeviceCondition,
    ) {
        assert_eq!(condition.problem(), None, "condition of device {device}");
        self.devices[device].set_condition(now, copy, condition);
        self.release(now, device);
    }

    /// Begins what a device held and no longer has to.
    fn release(&mut self, now: Nanos, device: usize) {
        let (released, kept) = std::mem::take(&mut self.held).into_iter().partition(|held| {
            held.device == device && !self.devices[device].waits(held.placed.operation)
        });
        self.held = kept;
        let released: Vec<Held> = released;
        for held in released {
            self.begin(now, held);
        }
    }

    /// Takes over how the devices of `old` work: the same devices, before volumes came or went, or before a power cut.
    /// Nothing is copied before [`Store::resume_copying`].
    pub fn succeed(&mut self, now: Nanos, old: &Store) {
        let layout_changed = self.volumes != old.volumes;
        for (device, old) in self.devices.iter_mut().zip(&old.devices) {
            device.succeed(now, old, layout_changed);
        }
        if let (Some(link), Some(old)) = (&mut self.link, &old.link) {
            link.succeed(old);
        }
    }

    /// Copies are given what they miss, from `now` on.
    pub fn resume_copying(&mut self, now: Nanos) {
        for device in &mut self.devices {
            device.resume_copying(now);
        }
    }

    /// Services take longer by these factors from now on: per volume, in the order of [`Operation::ALL`]; volumes that
    /// are missing are not changed. Requests that the devices have keep the time they were given; what is in a write
    /// buffer drains at the new pace.
    pub fn set_factors(&mut self, now: Nanos, factors: Vec<[ServiceFactor; 4]>) {
        let old = std::mem::replace(&mut self.factors, factors);
        let of_writes = |factors: &[[ServiceFactor; 4]], volume: usize| {
            factors.get(volume).map_or(ServiceFactor::ONE, |of| of[Operation::Write.index()])
        };
        for (number, device) in self.devices.iter_mut().enumerate() {
            device.repace_buffers(now, |offset| {
                let is_there = |extent: &Extent| {
                    extent.device == number
                        && (extent.base..extent.base + extent.capacity.0).contains(&offset)
                };
                let volume = self.volumes.iter().position(is_there).unwrap_or(usize::MAX);
                (of_writes(&old, volume), of_writes(&self.factors, volume))
            });
        }
    }

    /// How a device works. A mirrored one is lost when none of its copies can serve.
    pub fn condition(&self, device: usize) -> DeviceCondition {
        self.devices[device].condition()
    }

    /// How each copy of a mirrored device is; empty for a single one.
    pub fn copies(&self, device: usize) -> Vec<CopyState> {
        self.devices[device].states()
    }

    /// Whether a device is healthy with all its copies, and none of them misses anything.
    pub fn is_whole(&self, device: usize) -> bool {
        self.devices[device].is_whole()
    }

    /// When [`Store::advance`] will next have something to do; `None` when nothing is in flight, and nothing is copied.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        self.next_wakeup_apart([Nanos::ZERO; 2])
    }

    /// The same, where what has completed is asked for so long before its time: reads, and everything else.
    pub fn next_wakeup_apart(&self, [reads, others]: [Nanos; 2]) -> Option<Nanos> {
        let requests = self.in_flight.iter().zip([reads, others]);
        let requests = requests
            .filter_map(|(heap, early)| Some(heap.peek()?.0.finished.at.saturating_sub(early)));
        let copying = self.devices.iter().filter_map(CopySet::next_wakeup);
        copying.map(|at| at.saturating_sub(reads.max(others))).chain(requests).min()
    }

    /// Lets time pass up to `now` and appends what completed, in order of completion.
    pub fn advance(&mut self, now: Nanos, finished: &mut Vec<Finished>) {
        self.advance_apart([now; 2], finished);
    }

    /// The same for a caller that asks for reads, and for everything else, up to different times. Devices advance to the later one.
    pub fn advance_apart(&mut self, until: [Nanos; 2], finished: &mut Vec<Finished>) {
        let now = until[0].max(until[1]);
        for device in 0..self.devices.len() {
            if self.devices[device].advance(now, &mut self.random) {
                // Another copy may be read now.
                self.release(now, device);
            }
        }
        let next_of = |heap: &BinaryHeap<Reverse<Pending>>, until: Nanos| {
            heap.peek().map(|next| next.0).filter(|next| next.finished.at <= until)
        };
        loop {
            let [reads, others] = &mut self.in_flight;
            let next = match (next_of(reads, until[0]), next_of(others, until[1])) {
                (Some(read), Some(other)) if other < read => others.pop(),
                (Some(_), _) => reads.pop(),
                (None, Some(_)) => others.pop(),
                (None, None) => return,
            };
            finished.extend(next.map(|next| next.0.finished));
        }
    }

    /// Number of requests in flight, those that stuck devices hold included.
    pub fn in_flight(&self) -> usize {
        self.in_flight.iter().map(BinaryHeap::len).sum::<usize>() + self.held.len()
    }

    /// Bytes in the write buffer of a device at `now`; of the fullest copy, where there are several.
    pub fn buffer_fill(&mut self, device: usize, now: Nanos) -> Bytes {
        self.devices[device].buffer_fill(now)
    }

    /// Bytes that left the write buffer of a device for its medium up to `now`; of the copy with the most.
    pub fn drained_bytes(&mut self, device: usize, now: Nanos) -> Bytes {
        self.devices[device].drained_bytes(now)
    }
}

#[cfg(test)]
mod tests {
    use super::{Finished, RequestId, Store, StoreDevice, StoreOutcome, StoreVolume};
    use crate::DeviceCondition;
    use crate::builtin;
    use crate::request::Request;
    use crate::service_factor::{ServiceFactor, ServiceFactors};
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use underlay_core::{Bytes, Nanos, RootSeed};

    const VOLUME: Bytes = Bytes::from_mib(64);

    fn store(profile: &str) -> Store {
        let device = |name: &str| StoreDevice {
            name: name.to_string(),
            profile: builtin::find(profile).expect("built in"),
        };
        let volume = |device| StoreVolume { device, capacity: VOLUME };
        Store::new(&[device("a"), device("b")], &[volume(0), volume(0), volume(1)], RootSeed(7))
    }

    fn any_request() -> impl Strategy<Value = (u64, usize, Request)> {
        let block = 0..(VOLUME.0 / 4096 - 256);
        let pages = prop_oneof![Just(1u32), 1..=256u32];
        (0..200_000u64, 0..3usize, block, pages, 0..4u8).prop_map(
            |(gap, volume, block, pages, op)| {
                let (offset, length) = (block * 4096, pages * 4096);
                let request = match op {
                    0 => Request::read(offset, length),
                    1 => Request::write(offset, length),
                    2 => Request::flush(),
                    _ => Request::discard(offset, length),
                };
                (gap, volume, request)
            },
        )
    }

    proptest! {
        /// What goes in comes out, once, in order of time, never early, and equal seeds give equal runs.
        #[test]
        fn requests_are_conserved_and_ordered(
            requests in proptest::collection::vec(any_request(), 1..200),
            profile in prop_oneof![
                Just("dc1500m-960"), Just("5200eco-1920"), Just("hdd-7200"), Just("null")
            ],
        ) {
            let run = || {
                let mut store = store(profile);
                let mut finished = Vec::new();
                let mut now = Nanos(0);
                for (i, (gap, volume, request)) in requests.iter().enumerate() {
                    now += Nanos(*gap);
                    store.advance(now, &mut finished);
                    store.submit(now, *volume, request, RequestId(i as u64));
                    assert_eq!(store.in_flight() + finished.len(), i + 1);
                }
                while let Some(wakeup) = store.next_wakeup() {
                    store.advance(wakeup, &mut finished);
                }
                finished
            };
            let finished = run();
            prop_assert_eq!(finished.len(), requests.len());
            prop_assert!(finished.windows(2).all(|pair| pair[0].at <= pair[1].at));
            for done in &finished {
                prop_assert!(done.at >= done.arrived);
                prop_assert!(done.queue <= done.at - done.arrived);
            }
            let mut ids: Vec<_> = finished.iter().map(|done| done.request.0).collect();
            ids.sort_unstable();
            prop_assert!(ids.iter().copied().eq(0..requests.len() as u64));
            prop_assert_eq!(finished, run());
        }
    }

    #[test]
    fn volumes_on_one_device_disturb_each_other_and_others_do_not() {
        let latency = |busy_volume: Option<usize>| {
            let mut store = store("hdd-7200");
            if let Some(volume) = busy_volume {
                for i in 0..20 {
                    store.submit(Nanos(0), volume, &Request::read(i << 20, 4096), RequestId(i));
                }
            }
            store.submit(Nanos(0), 0, &Request::read(8 << 20, 4096), RequestId(99));
            let mut finished = Vec::new();
            store.advance(Nanos(u64::MAX), &mut finished);
            finished.iter().find(|done| done.request == RequestId(99)).expect("done").at
        };
        assert_eq!(latency(None), latency(Some(2)));
        assert!(latency(Some(1)).0 > 3 * latency(None).0);
    }

    fn finish(store: &mut Store) -> Vec<Finished> {
        let mut finished = Vec::new();
        store.advance(Nanos(u64::MAX), &mut finished);
        finished
    }

    #[test]
    fn a_slow_device_takes_that_much_longer_and_does_that_much_less() {
        let last = |condition| {
            let mut store = store("dc1500m-960");
            store.set_condition(Nanos(0), 0, condition);
            for i in 0..1000 {
                store.submit(Nanos(0), 0, &Request::read(i * 4096, 4096), RequestId(i));
            }
            finish(&mut store).last().expect("a thousand").at.0 as f64
        };
        let slow = last(DeviceCondition::Slow { factor: 8.0 });
        assert!((slow / last(DeviceCondition::Healthy) - 8.0).abs() < 0.01);
    }

    #[test]
    fn stuck_devices_hold_and_lost_ones_fail_and_come_back() {
        let mut store = store("dc1500m-960");
        store.set_condition(Nanos(0), 0, DeviceCondition::Stuck);
        store.submit(Nanos(5), 0, &Request::read(0, 4096), RequestId(1));
        store.submit(Nanos(5), 2, &Request::read(0, 4096), RequestId(2));
        assert_eq!(finish(&mut store).len(), 1, "the other device works");
        assert_eq!((store.in_flight(), store.next_wakeup()), (1, None));
        store.set_condition(Nanos(1_000_000), 0, DeviceCondition::Healthy);
        let finished = finish(&mut store);
        assert_eq!((finished[0].request, finished[0].arrived), (RequestId(1), Nanos(5)));
        assert!(finished[0].at > Nanos(1_000_000) && finished[0].queue >= Nanos(999_995));
        store.set_condition(Nanos(2_000_000), 0, DeviceCondition::Lost);
        store.submit(Nanos(2_000_000), 1, &Request::write(0, 4096), RequestId(3));
        assert_eq!(finish(&mut store)[0].outcome, StoreOutcome::DeviceLost);
        store.set_condition(Nanos(3_000_000), 0, DeviceCondition::Healthy);
        store.submit(Nanos(3_000_000), 1, &Request::write(0, 4096), RequestId(4));
        assert_eq!(finish(&mut store)[0].outcome, StoreOutcome::Done);
    }

    #[test]
    fn an_erroring_device_fails_its_share() {
        let mut store = store("dc1500m-960");
        store.set_condition(Nanos(0), 0, DeviceCondition::Erroring { probability: 0.25 });
        for i in 0..2000 {
            store.submit(Nanos(i), 0, &Request::read(0, 4096), RequestId(i));
        }
        let failed = |done: &&Finished| done.outcome == StoreOutcome::DeviceError;
        let failed = finish(&mut store).iter().filter(failed).count();
        assert!((400..600).contains(&failed), "{failed}");
    }

    #[test]
    #[should_panic(expected = "volumes exceed device 0")]
    fn a_device_is_not_overcommitted() {
        let mut profile = builtin::find("dc1500m-960").expect("built in");
        profile.capacity = Bytes::from_mib(100);
        let device = StoreDevice { name: "a".to_string(), profile };
        let volume = StoreVolume { device: 0, capacity: VOLUME };
        Store::new(&[device], &[volume, volume], RootSeed(0));
    }

    /// The same stores with and without factors: a log volume and a data volume on one device.
    fn paced(profile: &str, factors: ServiceFactors) -> Store {
        let profile = builtin::find(profile).expect("built in");
        let device = StoreDevice { name: "a".to_string(), profile };
        let volume = StoreVolume { device: 0, capacity: VOLUME };
        let mut store = Store::new(&[device], &[volume, volume], RootSeed(7));
        let names = ["wal", "data"];
        store.set_factors(Nanos::ZERO, names.map(|name| factors.of_volume(name, &names)).to_vec());
        store
    }

    /// How long a request to an idle device takes.
    fn alone(store: &mut Store, at_s: u64, volume: usize, request: Request) -> u64 {
        let arrived = Nanos::from_secs(at_s);
        store.submit(arrived, volume, &request, RequestId(at_s));
        let mut finished = Vec::new();
        store.advance(Nanos(u64::MAX), &mut finished);
        (finished[0].at - arrived).0
    }

    #[test]
    fn a_factor_prolongs_its_class_alone() {
        let twice = ServiceFactor::new(2.0).unwrap();
        let cases: [(ServiceFactors, [bool; 5]); 3] = [
            (
                ServiceFactors { log: twice, ..Default::default() },
                [true, true, false, false, false],
            ),
            (
                ServiceFactors { read: twice, ..Default::default() },
                [false, false, true, false, false],
            ),
            (
                ServiceFactors { data_write: twice, ..Default::default() },
                [false, false, false, true, true],
            ),
        ];
        let asked = [
            (0, Request::write(0, 4096)),
            (0, Request::flush()),
            (1, Request::read(1 << 20, 4096)),
            (1, Request::write(8192, 4096)),
            (1, Request::flush()),
        ];
        // A drive with a volatile buffer, and one that flushes nothing.
        for profile in ["extreme-pro-480", "dc1500m-960"] {
            for (factors, prolonged) in cases {
                let mut usual = paced(profile, ServiceFactors::default());
                let mut slowed = paced(profile, factors);
                for (second, ((volume, request), prolonged)) in
                    asked.iter().zip(prolonged).enumerate()
                {
                    let at = second as u64;
                    let before = alone(&mut usual, at, *volume, *request);
                    let after = alone(&mut slowed, at, *volume, *request);
                    let expected = if prolonged { 2 * before } else { before };
                    assert!(
                        after.abs_diff(expected) <= 8,
                        "{profile}, {request:?}: {before} ns, then {after} ns"
                    );
                }
            }
        }
    }

    #[test]
    fn a_full_buffer_feels_a_slowed_class_at_once() {
        const BEGIN: u64 = 50_000;
        let names = ["wal", "data"];
        // Writes of the log as fast as the drain allows; from write `BEGIN` on, a class takes twice as long.
        let rates = |slowed: fn(ServiceFactor) -> ServiceFactors| {
            let mut store = paced("5200eco-1920", ServiceFactors::default());
            let (mut now, mut finished, mut at) = (Nanos::ZERO, Vec::new(), Vec::new());
            for id in 0..BEGIN + 400 {
                if id == BEGIN {
                    let factors = slowed(ServiceFactor::new(2.0).unwrap());
                    let factors = names.map(|name| factors.of_volume(name, &names));
                    store.set_factors(now, factors.to_vec());
                }
                let offset = id.wrapping_mul(0x9e37_79b9) % (VOLUME.0 / 4096) * 4096;
                store.submit(now, 0, &Request::write(offset, 4096), RequestId(id));
                store.advance(Nanos(u64::MAX), &mut finished);
                now = finished.pop().expect("it is done").at;
                at.push(now.0 as f64);
            }
            let (begin, length) = (BEGIN as usize, 300);
            let took = |from: usize| at[from + length] - at[from];
            took(begin + 50) / took(begin - length - 50)
        };
        let log = rates(|log| ServiceFactors { log, ..ServiceFactors::default() });
        assert!((log - 2.0).abs() < 0.1, "{log}");
        let data = rates(|data_write| ServiceFactors { data_write, ..ServiceFactors::default() });
        assert!((data - 1.0).abs() < 0.1, "{data}");
    }

    #[test]
    fn a_slowed_class_takes_its_share_of_the_capacity() {
        // So many reads at once that only throughput matters.
        let last = |factor: f64| {
            let read = ServiceFactor::new(factor).unwrap();
            let mut store =
                paced("dc1500m-960", ServiceFactors { read, ..ServiceFactors::default() });
            for id in 0..4000u64 {
                let offset = id.wrapping_mul(0x9e37_79b9) % (VOLUME.0 / 4096) * 4096;
                store.submit(Nanos::ZERO, 1, &Request::read(offset, 4096), RequestId(id));
            }
            let mut finished = Vec::new();
            store.advance(Nanos(u64::MAX), &mut finished);
            finished.last().expect("all are done").at.0 as f64
        };
        let usual = last(1.0);
        assert!((last(2.0) / usual - 2.0).abs() < 0.05);
        assert!((last(1.0 / 1.2) / usual * 1.2 - 1.0).abs() < 0.05);
    }
}
