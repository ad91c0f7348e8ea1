//! Data reduction of a whole cluster against the bytes themselves: random writes of few different blocks, trims, faults,
//! copying, policy changes and restarts from one seed. What is counted is exactly what different blocks there are, at every
//! look and for every disk group; nothing that changed is forgotten.
//!
//! Repeat a failing seed with `UNDERLAY_SEED=N cargo test -p underlay-datastore --test it reduction`.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, BTreeSet};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_datastore::data_plane::{BlockStore, DataPlane, MemoryStore, MemoryStores};
use underlay_datastore::reduction::{MemoryPrints, ReducedGroup, Space, Sweep, compressed_length};
use underlay_model::cluster::{
    Checksum, Cluster, ClusterEvent, ClusterSettings, ClusterSpec, ComponentId, DataCommand,
    DeviceId, DurabilityPoint, Fault, GroupId, HostId, HostSpec, Leaving, Method, NetworkSpec,
    Policy, Restart, ReturnedContent, VolumeId,
};
use underlay_model::{DiskGroupSpec, Reduction, ReductionCosts, Request, RequestId, builtin};

const BLOCK: usize = 4096;
const VOLUME_BLOCKS: u64 = 600;
/// Different contents of a block: 0 is zeros, even ones can be compressed.
const KINDS: u8 = 14;

fn content_of(kind: u8) -> Vec<u8> {
    let mut random = RootSeed(u64::from(kind)).stream("block", 0);
    let noise = match kind {
        0 => 0,
        kind if kind.is_multiple_of(2) => 700,
        _ => BLOCK,
    };
    (0..BLOCK).map(|at| if at < noise { random.next_u64() as u8 } else { kind }).collect()
}

/// A cluster with its bytes, and everything that is counted of them.
struct World {
    random: Pcg64,
    spec: ClusterSpec,
    cluster: Cluster,
    data: DataPlane<MemoryStores>,
    groups: Vec<ReducedGroup>,
    records: BTreeMap<ComponentId, (GroupId, u64, MemoryPrints)>,
    sweep: Sweep,
    /// What each counted block held when it was counted, as the only other account of it.
    counted: BTreeMap<(ComponentId, u64), Vec<u8>>,
    volumes: Vec<VolumeId>,
    now: Nanos,
    next: u64,
    contents: Vec<Vec<u8>>,
    destaged_blocks: u64,
    copied: u64,
}

fn spec(random: &mut Pcg64, durability: DurabilityPoint) -> ClusterSpec {
    let device = |name: &str, mib: u64| {
        let mut profile = builtin::find(name).expect("built in");
        profile.capacity = Bytes::from_mib(mib);
        profile
    };
    let host = |index: usize| {
        let mut cache = device("dc1500m-960", 4);
        cache.power_loss_protected = durability == DurabilityPoint::OnWrite;
        let capacity = vec![device("dc500m-1920", 24), device("dc500m-1920", 24)];
        let mut group = DiskGroupSpec::new("g", cache, capacity);
        group.write_buffer.usable = Bytes::from_mib(1);
        group.reduction = Reduction::DedupeCompress(ReductionCosts::DEFAULT);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    ClusterSpec {
        hosts: (0..5).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings {
            stripe_unit: Bytes::from_kib(64),
            repair_delay: Nanos::from_millis(random.random_range(5..200)),
            failure_detection: Nanos::from_millis(5),
            device_timeout: Nanos::from_millis(20),
            rebalance_interval: Nanos::from_millis(50),
            ..ClusterSettings::default()
        },
    }
}

fn policies() -> [Policy; 4] {
    [
        Policy::DEFAULT,
        Policy { method: Method::ErasureCoding, ..Policy::DEFAULT },
        Policy { stripe_width: 2, ..Policy::DEFAULT },
        Policy { failures_to_tolerate: 2, checksum: Checksum::Off, ..Policy::DEFAULT },
    ]
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = RootSeed(seed).stream("reduction", 0);
        let durability =
            [DurabilityPoint::OnWrite, DurabilityPoint::OnFlush][random.random_range(0..2)];
        let spec = spec(&mut random, durability);
        let cluster = Cluster::new(spec.clone(), RootSeed(seed)).expect("valid");
        let mut world = World {
            groups: vec![ReducedGroup::new(); spec.hosts.len()],
            random,
            spec,
            cluster,
            data: DataPlane::new(MemoryStores),
            records: BTreeMap::new(),
            sweep: Sweep::default(),
            counted: BTreeMap::new(),
            volumes: Vec::new(),
            now: Nanos::ZERO,
            next: 1,
            contents: (0..KINDS).map(content_of).collect(),
            destaged_blocks: 0,
            copied: 0,
        };
        for index in 0..2 {
            let policy = policies()[world.random.random_range(0..3)];
            let bytes = Bytes(VOLUME_BLOCKS * BLOCK as u64);
            let name = format!("v{index}");
            let created = world.cluster.create_volume(Nanos::ZERO, &name, bytes, policy);
            world.volumes.push(created.expect("there is room"));
        }
        world.collect();
        world
    }

    fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        while let Some(at) = self.cluster.next_wakeup().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.collect();
        }
        self.now = end;
        self.collect();
    }

    fn collect(&mut self) {
        let mut events = Vec::new();
        self.cluster.advance(self.now, &mut events);
        for event in events {
            match event {
                ClusterEvent::Data(command) => self.carry_out(&command),
                ClusterEvent::Finished(done) => drop(self.data.finish(done.request)),
                ClusterEvent::StateChanged(_) | ClusterEvent::Notice { .. } => {}
            }
        }
        drop(self.data.take_findings());
    }

    fn carry_out(&mut self, command: &DataCommand) {
        self.data.execute(command);
        match command {
            DataCommand::Create { component, length_bytes, device, .. } => {
                self.data.track(*component);
                let kept = (device.group, *length_bytes, MemoryPrints::default());
                self.records.insert(*component, kept);
            }
            DataCommand::Remove { component } => {
                let Some((group, length, mut records)) = self.records.remove(component) else {
                    return;
                };
                let group = &mut self.groups[group.0 as usize];
                group.forget(&mut records, length).expect("memory");
                self.counted.retain(|(of, _), _| of != component);
            }
            DataCommand::Resync { .. } => self.copied += 1,
            _ => {}
        }
    }

    /// Counts what is to be counted now.
    fn count(&mut self) {
        let mut leaving = Vec::new();
        self.sweep.collect(&mut self.cluster, &mut self.data, &mut leaving);
        for Leaving { component, group, first, blocks } in leaving {
            let (_, _, records) = self.records.get_mut(&component).expect("it exists");
            let store = self.data.store_mut(component).expect("it exists");
            let group = &mut self.groups[group.0 as usize];
            let destaged = group.update(store, records, first, blocks).expect("memory");
            self.destaged_blocks += destaged.blocks;
            for block in first..first + blocks {
                let mut bytes = vec![0; BLOCK];
                store.read(block * BLOCK as u64, &mut bytes).expect("memory");
                self.counted.insert((component, block), bytes);
            }
        }
        for group in self.cluster.reducing_groups() {
            if let Some(observed) = self.groups[group.0 as usize].observed() {
                self.cluster.set_reduction_observed(group, observed);
            }
        }
    }

    /// The space that the counted bytes take, worked out from them alone.
    fn expected(&self, group: GroupId) -> Space {
        let mut space = Space::default();
        let mut unique: BTreeSet<&[u8]> = BTreeSet::new();
        let mut scratch = Vec::new();
        for ((component, _), bytes) in &self.counted {
            if self.records[component].0 != group || bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            space.logical_bytes += 4096;
            if unique.insert(bytes) {
                space.unique_bytes += 4096;
                let is_compressed = compressed_length(bytes, &mut scratch) <= 2048;
                space.stored_bytes += if is_compressed { 2048 } else { 4096 };
                space.compressed_blocks += u64::from(is_compressed);
            }
        }
        space
    }

    fn check(&mut self, seed: u64) {
        for index in 0..self.groups.len() {
            let expected = self.expected(GroupId(index as u32));
            assert_eq!(self.groups[index].space(), expected, "seed {seed}, group {index}");
        }
        // What is not counted as it is now has a mark.
        for component in self.data.components().collect::<Vec<_>>() {
            let mut store = self.data.store(component).expect("it exists").clone();
            let changed = self.data.changed_mut(component).expect("it is tracked");
            for block in 0..store.len_bytes() / BLOCK as u64 {
                if changed.is_changed(block) {
                    continue;
                }
                let mut bytes = vec![0; BLOCK];
                store.read(block * BLOCK as u64, &mut bytes).expect("memory");
                match self.counted.get(&(component, block)) {
                    Some(counted) => assert_eq!(*counted, bytes, "seed {seed}, {component}"),
                    None => assert!(bytes.iter().all(|byte| *byte == 0), "seed {seed}"),
                }
            }
        }
    }

    /// The process ends, in order or not, and begins again with what it remembers.
    fn restart(&mut self, restart: Restart) {
        if restart == Restart::Clean {
            self.pass(Nanos::from_millis(100));
        }
        let state = self.cluster.state();
        let seed = RootSeed(self.random.next_u64());
        let restored = Cluster::restore(self.spec.clone(), seed, &state, restart);
        let stores: Vec<(ComponentId, MemoryStore)> = self
            .data
            .components()
            .filter_map(|component| Some((component, self.data.store(component)?.clone())))
            .collect();
        self.cluster = restored.expect("its own memory");
        self.data = DataPlane::new(MemoryStores);
        self.now = Nanos::ZERO;
        self.groups = vec![ReducedGroup::new(); self.spec.hosts.len()];
        self.counted.clear();
        self.sweep = Sweep::default();
        for (component, mut store) in stores {
            let Some((group, _, records)) = self.records.get_mut(&component) else { continue };
            let group = &mut self.groups[group.0 as usize];
            let next = |store: &MemoryStore, from: u64| {
                Ok(store.allocated_blocks().find(|block| *block >= from))
            };
            group.recall(&mut store, records, next).expect("memory");
            for block in store.allocated_blocks().collect::<Vec<_>>() {
                let mut bytes = vec![0; BLOCK];
                store.read(block * BLOCK as u64, &mut bytes).expect("memory");
                self.counted.insert((component, block), bytes);
            }
            self.data.attach(component, store, DurabilityPoint::OnWrite);
            self.data.track(component);
        }
        self.collect();
    }

    fn request(&mut self) {
        let volume = self.volumes[self.random.random_range(0..self.volumes.len())];
        let first = self.random.random_range(0..VOLUME_BLOCKS);
        let blocks = self.random.random_range(1..=24).min(VOLUME_BLOCKS - first);
        let (offset, length) = (first * BLOCK as u64, blocks as u32 * BLOCK as u32);
        let id = RequestId(self.next);
        self.next += 1;
        let request = match self.random.random_range(0..12) {
            0 => Request::discard(offset, length),
            1 => Request::flush(),
            _ => {
                let mut bytes = Vec::new();
                for _ in 0..blocks {
                    let kind = self.random.random_range(0..KINDS);
                    bytes.extend(&self.contents[usize::from(kind)]);
                }
                self.data.stage_write(id, bytes);
                Request::write(offset, length)
            }
        };
        self.cluster.submit(self.now, volume, &request, id);
    }

    fn disturb(&mut self) {
        let host = HostId(self.random.random_range(0..5));
        let device = DeviceId {
            group: GroupId(self.random.random_range(0..5)),
            member: self.random.random_range(0..3),
        };
        let content =
            [ReturnedContent::Kept, ReturnedContent::Blank][self.random.random_range(0..2)];
        let fault = match self.random.random_range(0..9) {
            0 => Fault::HostLost { host },
            1 | 2 => Fault::HostReturned { host },
            3 => Fault::DeviceLost { device },
            4 | 5 => Fault::DeviceReturned { device, content },
            6 => Fault::PowerCut,
            7 => Fault::PowerOn,
            _ => {
                let policy = policies()[self.random.random_range(0..4)];
                let volume = self.volumes[self.random.random_range(0..self.volumes.len())];
                // Refused while hosts are missing.
                drop(self.cluster.set_policy(self.now, volume, policy));
                return;
            }
        };
        // What does not apply now does nothing.
        drop(self.cluster.inject(self.now, fault));
    }

    fn heal(&mut self) {
        drop(self.cluster.inject(self.now, Fault::PowerOn));
        for host in 0..5 {
            drop(self.cluster.inject(self.now, Fault::HostReturned { host: HostId(host) }));
            for member in 0..3 {
                let device = DeviceId { group: GroupId(host), member };
                let fault = Fault::DeviceReturned { device, content: ReturnedContent::Kept };
                drop(self.cluster.inject(self.now, fault));
            }
        }
        self.pass(Nanos::from_secs(3));
    }
}

fn simulate(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let faultiness = [0, 10, 60][world.random.random_range(0..3)];
    for step in 0..400 {
        let gap = Nanos::from_micros(world.random.random_range(0..3_000));
        world.pass(gap);
        if world.random.random_range(0..1_000) < faultiness {
            world.disturb();
        } else {
            world.request();
        }
        if world.random.random_range(0..4) == 0 {
            world.count();
        }
        if step % 100 == 99 {
            world.check(seed);
        }
        if world.random.random_range(0..300) == 0 {
            let restart = [Restart::Clean, Restart::Unclean][world.random.random_range(0..2)];
            world.restart(restart);
            world.check(seed);
        }
    }
    world.heal();
    // The sweep finds everything that is not in a write buffer.
    (0..4).for_each(|_| world.count());
    world.check(seed);
    for component in world.data.components().collect::<Vec<_>>() {
        let Some(changed) = world.data.changed_mut(component) else { continue };
        let (mut from, mut left) = (0, Vec::new());
        while let Some((word, mask)) = changed.next_word(from) {
            left.push((word as u64 * 64, mask));
            from = word + 1;
        }
        for (first, mask) in left {
            let buffered = world.cluster.buffered(component, first);
            assert_eq!(mask & !buffered, 0, "seed {seed}: {component} is not counted at {first}");
        }
    }
    world.restart(Restart::Clean);
    world.check(seed);
    (world.destaged_blocks, world.copied)
}

#[test]
fn space_is_exact_whatever_happens() {
    if let Ok(seed) = std::env::var("UNDERLAY_SEED") {
        simulate(seed.parse().expect("a number"));
        return;
    }
    let (mut destaged, mut copied) = (0, 0);
    for seed in 0..60 {
        let (blocks, rows) = simulate(seed);
        (destaged, copied) = (destaged + blocks, copied + rows);
    }
    assert!(destaged > 10_000, "{destaged} blocks were counted: too few to mean anything");
    assert!(copied > 100, "{copied} slices were copied: too few to mean anything");
}
