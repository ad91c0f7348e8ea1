//! Parallel units: which unit holds an address, and when it is free.
//!
//! Units serve in order of arrival. Reading the block that a unit read last costs only the wait for that
//! read, because the block is still in the unit's register. A program operation clears the register.
//!
//! A divided device (see [`crate::DeviceProfile::divisor`]) has that many times fewer units, rounded up; the
//! excess from rounding is compensated by occupying each unit longer. Blocks of one request wait for each other
//! only if they would in the whole device.

use crate::profile::Flash;
use crate::service_factor::ServiceFactor;
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
    /// The last request that came, and when the unit was free before it. Divided devices only.
    request: u64,
    free_before_request: Nanos,
}

/// What the units of the whole device, of which a divided one is a part, do for the request at hand.
#[derive(Clone, Debug)]
struct WholeUnits {
    divisor: u64,
    /// Per unit of the whole device: the last request that came, and when its last block was done.
    last: Vec<(u64, Nanos)>,
}

/// The units of one device.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    units: Vec<Unit>,
    /// The length of a block, as a power of two.
    unit_shift: u32,
    hash_key: u64,
    read_service: ServiceTime,
    program: Nanos,
    next_programmed: usize,
    random: Pcg64,
    /// None in an undivided device.
    whole: Option<WholeUnits>,
    request: u64,
    /// Of the request at hand.
    factor: ServiceFactor,
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
    pub(crate) fn new(flash: &Flash, divisor: u32, hash_key: u64, random: Pcg64) -> Units {
        let idle = Unit {
            free: Nanos::ZERO,
            register_block: NO_BLOCK,
            register_ready: Nanos::ZERO,
            request: 0,
            free_before_request: Nanos::ZERO,
        };
        let whole = WholeUnits {
            divisor: u64::from(divisor),
            last: vec![(0, Nanos::ZERO); flash.units as usize],
        };
        Units {
            units: vec![idle; flash.units.div_ceil(divisor) as usize],
            unit_shift: flash.unit_bytes.trailing_zeros(),
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
            whole: (divisor > 1).then_some(whole),
            request: 0,
            factor: ServiceFactor::ONE,
        }
    }

    /// Uses what can be used together with other units of the same kind.
    pub(crate) fn share(&mut self, other: &Units) {
        self.read_service.share(&other.read_service);
    }

    /// Reads every block that the range touches, from `start` on.
    pub(crate) fn read(
        &mut self,
        start: Nanos,
        offset: u64,
        bytes: u64,
        factor: ServiceFactor,
    ) -> UnitService {
        self.factor = factor;
        self.each_block(start, offset, bytes, Units::read_block)
    }

    /// Programs every block that the range touches, from `start` on: a device without write buffer.
    pub(crate) fn write(
        &mut self,
        start: Nanos,
        offset: u64,
        bytes: u64,
        factor: ServiceFactor,
    ) -> UnitService {
        self.factor = factor;
        self.each_block(start, offset, bytes, Units::write_block)
    }

    /// Occupies the unit that is free first with a program operation of a draining buffer, from `start` on. Returns how much
    /// longer than one such operation it waits for it: so much is due to reads, and not to how writes came.
    pub(crate) fn drain_program(&mut self, start: Nanos) -> Nanos {
        let occupied = self.occupation(self.program);
        // Round-robin: the next unit is usually free, so the others need not be checked.
        let turn = self.next_programmed;
        let (index, begin) = if self.units[turn].free <= start {
            (turn, start)
        } else {
            let (before, from) = self.units.split_at(turn);
            let in_turn = from.iter().chain(before).map(|unit| unit.free.max(start)).enumerate();
            let (ahead, begin) = in_turn.min_by_key(|(_, free)| *free).expect("it has units");
            ((turn + ahead) % self.units.len(), begin)
        };
        let unit = &mut self.units[index];
        unit.free = begin + occupied;
        unit.register_block = NO_BLOCK;
        self.next_programmed = (index + 1) % self.units.len();
        (begin - start).saturating_sub(occupied)
    }

    #[inline]
    fn each_block(
        &mut self,
        start: Nanos,
        offset: u64,
        bytes: u64,
        serve: fn(&mut Units, Nanos, u64) -> (Nanos, Nanos),
    ) -> UnitService {
        let first = offset >> self.unit_shift;
        let last = (offset + bytes.max(1) - 1) >> self.unit_shift;
        self.request += 1;
        if first == last {
            // The usual case, apart from the loop.
            let (done, service) = serve(self, start, first);
            return UnitService { first_done: done, last_done: start.max(done), service };
        }
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
        let hash = self.hash(block);
        let index = reduce(hash, self.units.len());
        if self.units[index].register_block == block {
            return (start.max(self.units[index].register_ready), Nanos::ZERO);
        }
        let service = self.factor.of(self.read_service.sample(&mut self.random));
        let done = self.occupy(hash, start, service);
        let unit = &mut self.units[index];
        (unit.register_block, unit.register_ready) = (block, done);
        (done, service)
    }

    fn write_block(&mut self, start: Nanos, block: u64) -> (Nanos, Nanos) {
        let hash = self.hash(block);
        let service = self.factor.of(self.program);
        let done = self.occupy(hash, start, service);
        let index = reduce(hash, self.units.len());
        self.units[index].register_block = NO_BLOCK;
        (done, service)
    }

    /// Serves a block in the unit that its hash selects; returns when it is done.
    fn occupy(&mut self, hash: u64, start: Nanos, service: Nanos) -> Nanos {
        let index = reduce(hash, self.units.len());
        let occupied = self.occupation(service);
        let unit = &mut self.units[index];
        let Some(whole) = &mut self.whole else {
            unit.free = unit.free.max(start) + service;
            return unit.free;
        };
        if unit.request != self.request {
            (unit.request, unit.free_before_request) = (self.request, unit.free);
        }
        unit.free = unit.free.max(start) + occupied;
        // The other requests are met in the unit, the blocks of the same request as in the whole device.
        let whole_index = reduce(hash, whole.last.len());
        let (request, own_done) = whole.last[whole_index];
        let own_done = if request == self.request { own_done } else { Nanos::ZERO };
        let done = start.max(unit.free_before_request).max(own_done) + service;
        whole.last[whole_index] = (self.request, done);
        done
    }

    /// How long a service occupies a unit: longer where a divided device has more units than its part.
    fn occupation(&self, service: Nanos) -> Nanos {
        self.whole.as_ref().map_or(service, |whole| {
            let share = whole.divisor * self.units.len() as u64;
            Nanos(service.0 * share / whole.last.len() as u64)
        })
    }

    /// A mixing hash: the finaliser of splitmix64.
    fn hash(&self, block: u64) -> u64 {
        let mut x = block ^ self.hash_key;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// A hash reduced to `0..count`, without division.
fn reduce(hash: u64, count: usize) -> usize {
    debug_assert!(count > 0, "a device has units");
    ((u128::from(hash) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::{Units, reduce};
    use crate::profile::{Flash, FlashDatasheet};
    use crate::service_factor::ServiceFactor;
    use underlay_core::{Nanos, RootSeed};

    const ONE: ServiceFactor = ServiceFactor::ONE;

    fn units(count: u32) -> Units {
        divided_units(count, 1)
    }

    fn divided_units(count: u32, divisor: u32) -> Units {
        let mut flash = Flash::from_datasheet(&FlashDatasheet {
            read_iops: 100_000.0,
            read_latency: Nanos::from_micros(100),
            service_share: 0.6,
            units_min: 1,
            program: Nanos::from_micros(200),
            write_bytes_per_second: 1_000_000_000,
        });
        flash.units = count;
        flash.read_service_cv = 0.0;
        flash.slow_probability = 0.0;
        Units::new(&flash, divisor, 1, RootSeed(1).stream("test", 0))
    }

    #[test]
    fn one_unit_serves_one_block_at_a_time() {
        let mut units = units(1);
        assert_eq!(units.read(Nanos(0), 0, 4096, ONE).last_done, Nanos(60_000));
        let second = units.read(Nanos(10_000), 1 << 30, 4096, ONE);
        assert_eq!((second.last_done, second.service), (Nanos(120_000), Nanos(60_000)));
    }

    #[test]
    fn the_block_in_the_register_is_not_read_again() {
        let mut units = units(1);
        units.read(Nanos(0), 0, 4096, ONE);
        assert_eq!(
            units.read(Nanos(1), 4096, 4096, ONE).last_done,
            Nanos(60_000),
            "same 16 KiB block"
        );
        units.drain_program(Nanos(60_000));
        assert_eq!(
            units.read(Nanos(60_000), 0, 4096, ONE).last_done,
            Nanos(60_000 + 260_000 - 60_000 + 60_000)
        );
    }

    #[test]
    fn large_requests_use_many_units() {
        let mut units = units(64);
        let service = units.read(Nanos(0), 0, 256 << 10, ONE); // 16 blocks.
        assert_eq!(service.first_done, Nanos(60_000));
        assert!(service.last_done <= Nanos(4 * 60_000), "{service:?}");
    }

    #[test]
    fn a_part_of_a_unit_serves_as_fast_and_is_occupied_longer() {
        // One sixteenth of four units is one unit for a quarter of the time.
        let mut units = divided_units(4, 16);
        assert_eq!(units.read(Nanos(0), 0, 4096, ONE).last_done, Nanos(60_000));
        assert_eq!(units.read(Nanos(0), 1 << 30, 4096, ONE).last_done, Nanos(4 * 60_000 + 60_000));
    }

    #[test]
    fn blocks_of_one_request_meet_as_in_the_whole_device() {
        for (count, divisor) in [(64, 8), (64, 128), (12, 5)] {
            let whole = units(count).read(Nanos(0), 0, 1 << 20, ONE);
            assert_eq!(divided_units(count, divisor).read(Nanos(0), 0, 1 << 20, ONE), whole);
        }
    }

    #[test]
    fn hashing_spreads_evenly() {
        let units = units(44);
        let mut counts = [0u32; 44];
        (0..44_000u64).for_each(|block| counts[reduce(units.hash(block), 44)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
