//! What a cluster must keep through single chains of faults, each of which once lost something.
//!
//! Random chains are in `cluster_simulation`; here are those that it found, in the shortest form, on real bytes in memory.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_datastore::data_plane::{BlockStore, DataPlane, Delivered, MemoryStore, MemoryStores};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterSettings, ClusterSpec, ClusterState, DeviceId, DurabilityPoint,
    Fault, Found, HostId, HostSpec, Method, NetworkSpec, Outcome, Policy, Restart, ReturnedContent,
    VolumeId,
};
use underlay_model::{DiskGroupSpec, Operation, Request, RequestId, builtin};

const UNIT: u64 = 64 << 10;
const VOLUME: u64 = 1 << 20;
const MIRROR: Policy = Policy::DEFAULT;
const RAID5: Policy = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };

/// Whether an acknowledged write survives the loss of power.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    Protected,
    Volatile,
}

/// A cluster with one volume and its bytes.
struct Bench {
    spec: ClusterSpec,
    power: Power,
    cluster: Cluster,
    data: DataPlane<MemoryStores>,
    volume: VolumeId,
    now: Nanos,
    next: u64,
    ended: Vec<(RequestId, Outcome, Option<Delivered>)>,
}

impl Bench {
    fn new(hosts: usize, policy: Policy, power: Power, seed: u64) -> Bench {
        let mut device = builtin::find("dc1500m-960").expect("built in");
        device.capacity = Bytes::from_mib(64);
        device.power_loss_protected = power == Power::Protected;
        let host = |index: usize| HostSpec {
            name: format!("h{index}"),
            fault_domain: None,
            groups: vec![DiskGroupSpec::new("g", device.clone(), vec![device.clone()])],
        };
        let spec = ClusterSpec {
            hosts: (0..hosts).map(host).collect(),
            network: NetworkSpec {
                latency: Nanos::from_micros(5),
                bytes_per_second: 3_000_000_000,
                divisor: 1,
            },
            settings: ClusterSettings {
                stripe_unit: Bytes(UNIT),
                failure_detection: Nanos::from_millis(5),
                owner_overhead: Nanos::ZERO,
                checksum_overhead_per_4k: Nanos::ZERO,
                ..ClusterSettings::default()
            },
        };
        let mut cluster = Cluster::new(spec.clone(), RootSeed(seed)).expect("valid");
        let volume =
            cluster.create_volume(Nanos::ZERO, "v", Bytes(VOLUME), policy).expect("there is room");
        let mut bench = Bench {
            spec,
            power,
            cluster,
            data: DataPlane::new(MemoryStores),
            volume,
            now: Nanos::ZERO,
            next: 1,
            ended: Vec::new(),
        };
        bench.pass(Nanos::ZERO);
        bench
    }

    /// Lets time pass, and carries out what the cluster wants done.
    fn pass(&mut self, span: Nanos) {
        self.now += span;
        let mut events = Vec::new();
        self.cluster.advance(self.now, &mut events);
        for event in events {
            match event {
                ClusterEvent::Data(command) => self.data.execute(&command),
                ClusterEvent::Finished(done) => {
                    let delivered = self.data.finish(done.request);
                    self.ended.push((done.request, done.outcome, delivered));
                }
                ClusterEvent::StateChanged(_) | ClusterEvent::Notice { .. } => {}
            }
        }
    }

    /// Submits a request; a write stores `value` everywhere.
    fn submit(&mut self, request: Request, value: u8) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        match request.operation {
            Operation::Write => {
                self.data.stage_write(id, vec![value; request.length_bytes as usize])
            }
            Operation::Read => self.data.stage_read(id, vec![0xAA; request.length_bytes as usize]),
            Operation::Flush | Operation::Discard => {}
        }
        self.cluster.submit(self.now, self.volume, &request, id);
        id
    }

    /// Waits for a request.
    fn end_of(&mut self, id: RequestId) -> (Outcome, Option<Delivered>) {
        for _ in 0..1_000_000 {
            if let Some(at) = self.ended.iter().position(|(ended, _, _)| *ended == id) {
                let (_, outcome, delivered) = self.ended.swap_remove(at);
                return (outcome, delivered);
            }
            let next = self.cluster.next_wakeup().expect("the request is in flight");
            self.pass(next.saturating_sub(self.now));
        }
        panic!("{id:?} hangs");
    }

    fn done(&mut self, request: Request, value: u8) {
        let id = self.submit(request, value);
        assert_eq!(self.end_of(id).0, Outcome::Ok, "{request:?}");
    }

    /// The value of a block, if it can be read.
    fn value_at(&mut self, offset: u64) -> Option<u8> {
        let id = self.submit(Request::read(offset, 4096), 0);
        let (Outcome::Ok, Some(Delivered::Bytes(bytes))) = self.end_of(id) else { return None };
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn: {:?}", &bytes[..16]);
        Some(bytes[0])
    }

    fn inject(&mut self, fault: Fault) {
        self.cluster.inject(self.now, fault).expect("possible");
        self.pass(Nanos::ZERO);
    }

    /// The program is killed and starts again with what it had stored and what the components hold.
    fn restart(&mut self, mut state: ClusterState) {
        let old = std::mem::replace(&mut self.data, DataPlane::new(MemoryStores));
        let durability = match self.power {
            Power::Protected => DurabilityPoint::OnWrite,
            Power::Volatile => DurabilityPoint::OnFlush,
        };
        for (id, store) in old.into_stores() {
            let held = store.allocated_blocks().map(|block| (block * 4096, 4096)).collect();
            state.correct(id, &Found::Holds(held));
            self.data.attach(id, store, durability);
        }
        self.now = Nanos::ZERO;
        let restored = Cluster::restore(self.spec.clone(), RootSeed(9), &state, Restart::Unclean);
        self.cluster = restored.expect("its own state");
        self.pass(Nanos::ZERO);
    }

    /// The host of a member of the first set.
    fn host_of_slot(&self, slot: u8) -> HostId {
        let status = self.cluster.volume_status(self.volume).expect("exists");
        let found = status.components.iter().find(|found| found.set == 0 && found.slot == slot);
        found.expect("each slot has a component").host
    }

    /// Both replicas of the first row.
    fn replicas(&mut self) -> Vec<Vec<u8>> {
        let status = self.cluster.volume_status(self.volume).expect("exists");
        let first = status.components.iter().filter(|found| found.set == 0);
        let ids: Vec<_> = first.map(|found| found.component).collect();
        ids.into_iter()
            .map(|id| {
                let mut bytes = vec![0; UNIT as usize];
                self.data.store_mut(id).expect("exists").read(0, &mut bytes).expect("memory");
                bytes
            })
            .collect()
    }
}

#[test]
fn a_write_that_only_a_returned_member_holds_is_copied_to_the_one_that_missed_it() {
    let mut bench = Bench::new(3, MIRROR, Power::Protected, 1);
    let (first, second) = (bench.host_of_slot(0), bench.host_of_slot(1));
    bench.inject(Fault::HostFrozen { host: second });
    bench.pass(Nanos::from_secs(1));
    // Sent to the first alone. The other is back before it ends, and has missed nothing so far.
    let write = bench.submit(Request::write(0, 4096), 7);
    bench.inject(Fault::HostReturned { host: second });
    bench.inject(Fault::HostLost { host: first });
    bench.inject(Fault::HostReturned { host: first });
    assert_eq!(bench.end_of(write).0, Outcome::Ok);
    bench.pass(Nanos::from_secs(10));
    assert_eq!(bench.value_at(0), Some(7), "the first row is read from the first replica");
    let replicas = bench.replicas();
    assert_eq!(replicas[0], replicas[1]);
}

#[test]
fn what_was_flushed_without_a_member_is_not_taken_from_it_after_it_lost_its_power() {
    for seed in 0..16 {
        let mut bench = Bench::new(4, RAID5, Power::Volatile, seed);
        let kind = bench.cluster.geometry(bench.volume).expect("exists").kind;
        let first = bench.host_of_slot(kind.data_member(0, 0));
        let second = bench.host_of_slot(kind.data_member(0, 1));
        bench.done(Request::write(0, 3 * UNIT as u32), 1);
        bench.done(Request::flush(), 0);
        bench.done(Request::write(0, 4096), 2);
        bench.inject(Fault::HostsPartitioned { hosts: vec![first] });
        bench.pass(Nanos::from_secs(1));
        bench.done(Request::flush(), 0);
        bench.done(Request::write(UNIT, 4096), 3);
        bench.inject(Fault::HostLost { host: second });
        bench.inject(Fault::HostLost { host: first });
        bench.pass(Nanos::from_secs(1));
        bench.inject(Fault::HostReturned { host: first });
        bench.inject(Fault::HostReturned { host: second });
        bench.pass(Nanos::from_secs(10));
        // Two hosts are more than was promised: it may be gone, and must not be what it was before the flush.
        let value = bench.value_at(0);
        assert!(matches!(value, None | Some(2)), "seed {seed}: {value:?}");
    }
}

#[test]
fn replicas_agree_after_a_power_cut_has_brought_back_what_was_discarded() {
    let mut returned = 0;
    for seed in 0..16 {
        let mut bench = Bench::new(3, MIRROR, Power::Volatile, seed);
        bench.done(Request::write(0, UNIT as u32), 5);
        bench.done(Request::flush(), 0);
        bench.done(Request::discard(0, UNIT as u32), 0);
        bench.inject(Fault::PowerCut);
        bench.inject(Fault::PowerOn);
        bench.pass(Nanos::from_secs(10));
        let replicas = bench.replicas();
        assert_eq!(replicas[0], replicas[1], "seed {seed}");
        let occupied: u64 = bench.cluster.devices().map(|device| device.used.0).sum();
        let holds = replicas[0].iter().any(|byte| *byte != 0);
        returned += u32::from(holds);
        assert!(occupied >= if holds { 2 * UNIT } else { 0 }, "seed {seed}: held and not counted");
        // Reported once; afterwards a discard that is flushed gives the space back.
        let report = bench.submit(Request::flush(), 0);
        bench.end_of(report);
        bench.done(Request::discard(0, UNIT as u32), 0);
        bench.done(Request::flush(), 0);
        assert!(bench.cluster.devices().all(|device| device.used.0 == 0), "seed {seed}");
        assert!(bench.cluster.space_is_exact());
    }
    assert!(returned > 0, "no seed brought anything back");
}

#[test]
fn what_was_written_after_the_memory_was_stored_is_rebuilt_after_a_kill() {
    let mut bench = Bench::new(3, MIRROR, Power::Protected, 1);
    let state = bench.cluster.state();
    bench.done(Request::write(0, UNIT as u32), 7);
    bench.restart(state);
    bench.pass(Nanos::from_secs(10));
    // Everything on the first host is gone, and comes from the other.
    let status = bench.cluster.volume_status(bench.volume).expect("exists");
    let device = DeviceId { group: status.components[0].device.group, member: 0 };
    bench.inject(Fault::DeviceLost { device });
    bench.inject(Fault::DeviceReturned { device, content: ReturnedContent::Blank });
    bench.pass(Nanos::from_secs(10));
    assert_eq!(bench.value_at(0), Some(7), "the first row is read from the first replica");
    let replicas = bench.replicas();
    assert_eq!(replicas[0], replicas[1]);
}

#[test]
fn parity_with_a_member_missing_is_the_truth_after_a_kill() {
    let mut bench = Bench::new(4, RAID5, Power::Protected, 1);
    bench.done(Request::write(0, VOLUME as u32), 7);
    let missing = bench.host_of_slot(0);
    bench.inject(Fault::HostLost { host: missing });
    bench.pass(Nanos::from_secs(10));
    bench.done(Request::write(0, VOLUME as u32), 8);
    let state = bench.cluster.state();
    bench.restart(state);
    for unit in 0..VOLUME / UNIT {
        assert_eq!(bench.value_at(unit * UNIT), Some(8), "unit {unit}");
    }
    bench.inject(Fault::HostReturned { host: missing });
    bench.pass(Nanos::from_secs(10));
    for host in (0..4).map(HostId).filter(|host| *host != missing) {
        bench.inject(Fault::HostLost { host });
        bench.pass(Nanos::from_secs(10));
        for unit in 0..VOLUME / UNIT {
            assert_eq!(bench.value_at(unit * UNIT), Some(8), "unit {unit} without {host:?}");
        }
        bench.inject(Fault::HostReturned { host });
        bench.pass(Nanos::from_secs(10));
    }
}

#[test]
fn a_component_whose_store_is_gone_is_copied_or_answers_errors() {
    for (policy, expected) in
        [(MIRROR, Some(7)), (Policy { failures_to_tolerate: 0, ..MIRROR }, None)]
    {
        let mut bench = Bench::new(3, policy, Power::Protected, 1);
        bench.done(Request::write(0, VOLUME as u32), 7);
        let status = bench.cluster.volume_status(bench.volume).expect("exists");
        let lost = status.components[0].component;
        let length = status.components[0].length.0;
        *bench.data.store_mut(lost).expect("exists") = MemoryStore::new(length);
        let mut state = bench.cluster.state();
        state.correct(lost, &Found::Lost);
        let clean = Cluster::restore(bench.spec.clone(), RootSeed(9), &state, Restart::Clean);
        bench.cluster = clean.expect("its own state");
        bench.now = Nanos::ZERO;
        bench.pass(Nanos::from_secs(10));
        assert_eq!(bench.value_at(0), expected);
        if expected.is_some() {
            let replicas = bench.replicas();
            assert_eq!(replicas[0], replicas[1]);
        }
    }
}

/// Silent damage in one member, while the host of another one is away: what is copied to that must not be the damage, and what
/// it still has of the damaged block is as good as it was, if nobody has written there meanwhile.
#[test]
fn damage_does_not_spread_to_a_member_that_is_filled() {
    const ROTTED: u64 = 3 * 4096;
    const ASIDE: u64 = 5 * 4096;
    for (policy, written, expected) in [
        (MIRROR, ASIDE, [Some(1), Some(2)]),
        (MIRROR, ROTTED, [None, None]),
        // In another unit of the row: the one that is away.
        (RAID5, UNIT + ASIDE, [Some(1), Some(2)]),
        (RAID5, UNIT + ROTTED, [None, None]),
    ] {
        let mut bench =
            Bench::new(if policy == MIRROR { 3 } else { 4 }, policy, Power::Protected, 1);
        let kind = bench.cluster.geometry(bench.volume).expect("exists").kind;
        let slots = if policy == MIRROR {
            [0, 1]
        } else {
            [kind.data_member(0, 0), kind.data_member(0, 1)]
        };
        let [damaged, away] = slots.map(|slot| bench.host_of_slot(slot));
        bench.done(Request::write(0, 2 * UNIT as u32), 1);
        bench.inject(Fault::HostLost { host: away });
        bench.pass(Nanos::from_secs(1));
        bench.done(Request::write(written, 4096), 2);
        let status = bench.cluster.volume_status(bench.volume).expect("exists");
        let members = &status.components;
        let found = members.iter().find(|member| member.set == 0 && member.host == damaged);
        let component = found.expect("it has one").component;
        bench.inject(Fault::BitRot { component, offset_bytes: ROTTED + 17, bit: 3 });
        bench.inject(Fault::HostReturned { host: away });
        bench.pass(Nanos::from_secs(10));
        let context = format!("{policy:?}, written at {written}");
        let found = |bench: &mut Bench| [bench.value_at(ROTTED), bench.value_at(written)];
        assert_eq!(found(&mut bench), expected, "{context}");
        bench.inject(Fault::HostLost { host: damaged });
        bench.pass(Nanos::from_secs(1));
        assert_eq!(found(&mut bench), expected, "{context}, without a host");
    }
}
