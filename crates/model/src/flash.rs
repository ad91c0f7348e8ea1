//! Parallel units: which unit holds an address, and when it is free.
//!
//! Units serve in order of arrival. Reading the block that a unit read last costs nothing more than waiting
//! for that read: it still stands in the unit's register. A program operation clears the register.

use crate::profile::Flash;
use crate::service_time::ServiceTime;
use rand_pcg::Pcg64;
use underlay_core::Nanos;

/// A block number that no address has.
const NO_BLOCK: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Unit {
    free: Nanos,
    register_block: u64,
    register_ready: Nanos,
}

/// The units of one device.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    units: Vec<Unit>,
    unit_bytes: u64,
    hash_key: u64,
    read_service: ServiceTime,
    program: Nanos,
    next_programmed: usize,
    random: Pcg64,
}

/// What the blocks of one request got from the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitService {
    /// When the first block is done.
    pub(crate) first_done: Nanos,
    /// When the last block is done.
    pub(crate) last_done: Nanos,
    /// The longest service of a block, waiting excluded.
    pub(crate) service: Nanos,
}

impl Units {
    pub(crate) fn new(flash: &Flash, hash_key: u64, random: Pcg64) -> Units {
        let idle =
            Unit { free: Nanos::ZERO, register_block: NO_BLOCK, register_ready: Nanos::ZERO };
        Units {
            units: vec![idle; flash.units as usize],
            unit_bytes: u64::from(flash.unit_bytes),
            hash_key,
            read_service: ServiceTime::new(
                flash.read_service,
                flash.read_service_cv,
                flash.slow_probability,
                flash.slow,
            ),
            program: flash.program,
            next_programmed: 0,
            random,
        }
    }

    /// Reads every block that the range touches, from `start` on.
    pub(crate) fn read(&mut self, start: Nanos, offset: u64, bytes: u64) -> UnitService {
        self.each_block(start, offset, bytes, Units::read_block)
    }

    /// Programs every block that the range touches, from `start` on: a device without write buffer.
    pub(crate) fn write(&mut self, start: Nanos, offset: u64, bytes: u64) -> UnitService {
        self.each_block(start, offset, bytes, Units::write_block)
    }

    /// Occupies the next unit in turn with a program operation of a draining buffer.
    pub(crate) fn drain_program(&mut self, start: Nanos) {
        let unit = &mut self.units[self.next_programmed];
        unit.free = unit.free.max(start) + self.program;
        unit.register_block = NO_BLOCK;
        self.next_programmed = (self.next_programmed + 1) % self.units.len();
    }

    fn each_block(
        &mut self,
        start: Nanos,
        offset: u64,
        bytes: u64,
        serve: fn(&mut Units, Nanos, u64) -> (Nanos, Nanos),
    ) -> UnitService {
        let first = offset / self.unit_bytes;
        let last = (offset + bytes.max(1) - 1) / self.unit_bytes;
        let mut total =
            UnitService { first_done: Nanos(u64::MAX), last_done: start, service: Nanos::ZERO };
        for block in first..=last {
            let (done, service) = serve(self, start, block);
            total.first_done = total.first_done.min(done);
            total.last_done = total.last_done.max(done);
            total.service = total.service.max(service);
        }
        total
    }

    fn read_block(&mut self, start: Nanos, block: u64) -> (Nanos, Nanos) {
        let index = self.unit_of(block);
        if self.units[index].register_block == block {
            return (start.max(self.units[index].register_ready), Nanos::ZERO);
        }
        let service = self.read_service.sample(&mut self.random);
        let unit = &mut self.units[index];
        let done = unit.free.max(start) + service;
        *unit = Unit { free: done, register_block: block, register_ready: done };
        (done, service)
    }

    fn write_block(&mut self, start: Nanos, block: u64) -> (Nanos, Nanos) {
        let index = self.unit_of(block);
        let unit = &mut self.units[index];
        unit.free = unit.free.max(start) + self.program;
        unit.register_block = NO_BLOCK;
        (unit.free, self.program)
    }

    /// A mixing hash (the finaliser of splitmix64), reduced to the number of units without division.
    fn unit_of(&self, block: u64) -> usize {
        let mut x = block ^ self.hash_key;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((u128::from(x) * self.units.len() as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Units;
    use crate::profile::{Flash, FlashDatasheet};
    use underlay_core::{Nanos, RootSeed};

    fn units(count: u32) -> Units {
        let mut flash = Flash::from_datasheet(&FlashDatasheet {
            read_iops: 100_000.0,
            read_latency: Nanos::from_micros(100),
            service_share: 0.6,
            units_min: 1,
            program: Nanos::from_micros(200),
        });
        flash.units = count;
        flash.read_service_cv = 0.0;
        flash.slow_probability = 0.0;
        Units::new(&flash, 1, RootSeed(1).stream("test", 0))
    }

    #[test]
    fn one_unit_serves_one_block_at_a_time() {
        let mut units = units(1);
        assert_eq!(units.read(Nanos(0), 0, 4096).last_done, Nanos(60_000));
        let second = units.read(Nanos(10_000), 1 << 30, 4096);
        assert_eq!((second.last_done, second.service), (Nanos(120_000), Nanos(60_000)));
    }

    #[test]
    fn the_block_in_the_register_is_not_read_again() {
        let mut units = units(1);
        units.read(Nanos(0), 0, 4096);
        assert_eq!(units.read(Nanos(1), 4096, 4096).last_done, Nanos(60_000), "same 16 KiB block");
        units.drain_program(Nanos(60_000));
        assert_eq!(
            units.read(Nanos(60_000), 0, 4096).last_done,
            Nanos(60_000 + 260_000 - 60_000 + 60_000)
        );
    }

    #[test]
    fn large_requests_use_many_units() {
        let mut units = units(64);
        let service = units.read(Nanos(0), 0, 256 << 10); // 16 blocks.
        assert_eq!(service.first_done, Nanos(60_000));
        assert!(service.last_done <= Nanos(4 * 60_000), "{service:?}");
    }

    #[test]
    fn hashing_spreads_evenly() {
        let units = units(44);
        let mut counts = [0u32; 44];
        (0..44_000u64).for_each(|block| counts[units.unit_of(block)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
