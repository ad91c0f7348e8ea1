//! Capacity devices join a cluster in the midst of load, faults and kills, and rebalancing moves components to them.
//!
//! When they join is drawn from a stream of its own: what else happens in a seed is the same without them, up to then.

use super::topology::{Power, device};
use super::world::World;
use rand::RngExt;
use underlay_core::{Bytes, RootSeed};

/// One step of so many brings a device.
const STEPS_PER_DEVICE: u32 = 60;

impl World {
    /// The world of a seed, whose disk groups get further devices.
    pub fn growing(seed: u64) -> World {
        let mut world = World::new(seed);
        world.growth = Some(RootSeed(seed).stream("growth", 0));
        world
    }

    /// Now and then, a device joins a disk group that has room for it.
    pub fn grow(&mut self) {
        let Some(random) = &mut self.growth else { return };
        if random.random_range(0..STEPS_PER_DEVICE) != 0 {
            return;
        }
        let groups: Vec<_> = self.cluster.groups().map(|(group, _, _)| group).collect();
        let number = random.random_range(0..groups.len());
        let capacity = Bytes::from_mib(random.random_range(4..=32));
        let profile = device(random, capacity, Power::Protected);
        let joined = self.cluster.add_device(self.now, groups[number], &profile);
        if self.trace {
            println!("{}: a device for group {number}: {joined:?}", self.now);
        }
        if let Ok(device) = joined {
            // What a program that is started again is told of.
            let mut specs = self.spec.hosts.iter_mut().flat_map(|host| &mut host.groups);
            let spec = specs.nth(number).expect("as many as there are");
            spec.capacity.push(profile);
            assert_eq!(usize::from(device.member), spec.capacity.len());
            self.joined += 1;
        }
        self.collect();
    }
}
