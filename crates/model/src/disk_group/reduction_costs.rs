//! What deduplication and compression cost in time and metadata I/O.
//!
//! Shares of blocks become whole I/Os by carrying the fraction over, not by chance: over many blocks the
//! number of I/Os is exact.

use super::counters::ReductionCounters;
use super::spec::{Reduction, ReductionCosts};
use underlay_core::Nanos;

/// A compressed block takes half a block: the granularity of what is stored.
const STORED_UNIT_BYTES: f64 = 2048.0;

#[derive(Clone, Debug)]
pub(crate) struct Reducer {
    costs: ReductionCosts,
    processor_free: Nanos,
    hash_map_misses: Fraction,
    address_map_misses: Fraction,
    metadata_writes: Fraction,
    stored_units: Fraction,
    addresses: u64,
    pub(crate) counters: ReductionCounters,
}

/// Counts events that happen a fraction of a time.
#[derive(Clone, Copy, Debug, Default)]
struct Fraction(f64);

impl Fraction {
    fn add(&mut self, expected: f64) -> u32 {
        self.0 += expected;
        let whole = self.0.floor();
        self.0 -= whole;
        whole as u32
    }
}

impl Reducer {
    /// None where nothing is reduced.
    pub(crate) fn new(reduction: &Reduction) -> Option<Reducer> {
        let Reduction::DedupeCompress(costs) = reduction else { return None };
        Some(Reducer {
            costs: *costs,
            processor_free: Nanos::ZERO,
            hash_map_misses: Fraction::default(),
            address_map_misses: Fraction::default(),
            metadata_writes: Fraction::default(),
            stored_units: Fraction::default(),
            addresses: 0,
            counters: ReductionCounters::default(),
        })
    }

    pub(crate) fn observe(&mut self, stored_bytes_per_destaged_byte: f64, unique_share: f64) {
        self.costs.stored_bytes_per_destaged_byte = stored_bytes_per_destaged_byte.clamp(0.0, 1.0);
        self.costs.unique_share = unique_share.clamp(0.0, 1.0);
    }

    /// When the group's processor has fingerprinted these blocks and compressed those that are new.
    pub(crate) fn compute(&mut self, now: Nanos, blocks: u64) -> Nanos {
        self.counters.blocks += blocks;
        let ReductionCosts { fingerprint, compress, unique_share, .. } = self.costs;
        debug_assert!((0.0..=1.0).contains(&unique_share), "a share of {unique_share}");
        let block = fingerprint.0 as f64 + compress.0 as f64 * unique_share;
        let cost = Nanos((block * blocks as f64) as u64);
        self.processor_free = self.processor_free.max(now) + cost;
        self.processor_free
    }

    /// Metadata reads to look these blocks' fingerprints up.
    pub(crate) fn fingerprint_reads(&mut self, blocks: u64) -> u32 {
        let reads = self.hash_map_misses.add(blocks as f64 * (1.0 - self.costs.hash_map_hit));
        self.counters.hash_map_reads += u64::from(reads);
        reads
    }

    /// Bytes and metadata writes that store these blocks.
    pub(crate) fn store(&mut self, blocks: u64) -> (u32, u32) {
        let bytes = blocks as f64 * 4096.0 * self.costs.stored_bytes_per_destaged_byte;
        let stored_bytes =
            self.stored_units.add(bytes / STORED_UNIT_BYTES) * STORED_UNIT_BYTES as u32;
        let writes = self.metadata_writes.add(blocks as f64 * self.costs.metadata_writes_per_block);
        self.counters.stored_bytes += u64::from(stored_bytes);
        self.counters.metadata_writes += u64::from(writes);
        (stored_bytes, writes)
    }

    /// Whether a read must look its address up on the device first. Neighbouring addresses stand in one
    /// block of the map.
    pub(crate) fn reads_address_map(&mut self) -> bool {
        let misses = self.address_map_misses.add(1.0 - self.costs.address_map_hit);
        self.counters.address_map_reads += u64::from(misses);
        misses > 0
    }

    /// Bytes on the device that correspond to these bytes of a read.
    pub(crate) fn stored_read_bytes(&self, bytes: u32) -> u32 {
        let unique = self.costs.unique_share.max(1e-9);
        let compressed = (self.costs.stored_bytes_per_destaged_byte / unique).clamp(0.5, 1.0);
        ((f64::from(bytes) * compressed).ceil() as u32).clamp(1, bytes.max(1))
    }

    /// A place for the next metadata I/O: scattered over the used part of the device.
    pub(crate) fn scatter(&mut self, extent_bytes: u64) -> u64 {
        self.addresses += 1;
        let mixed = self.addresses.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let blocks = (extent_bytes / 4096).max(1);
        ((u128::from(mixed) * u128::from(blocks)) >> 64) as u64 * 4096
    }
}

#[cfg(test)]
mod tests {
    use super::Reducer;
    use crate::disk_group::{Reduction, ReductionCosts};
    use underlay_core::Nanos;

    #[test]
    fn shares_become_whole_numbers_without_loss() {
        let costs = ReductionCosts {
            hash_map_hit: 0.7,
            address_map_hit: 0.75,
            metadata_writes_per_block: 1.5,
            stored_bytes_per_destaged_byte: 0.3,
            ..ReductionCosts::DEFAULT
        };
        let mut reducer = Reducer::new(&Reduction::DedupeCompress(costs)).expect("on");
        let (mut reads, mut writes, mut stored) = (0, 0, 0);
        for _ in 0..1000 {
            reads += reducer.fingerprint_reads(3);
            let (bytes, metadata) = reducer.store(3);
            (stored, writes) = (stored + u64::from(bytes), writes + metadata);
        }
        assert!((899..=900).contains(&reads), "{reads}");
        assert!((4499..=4500).contains(&writes), "{writes}");
        assert!(stored.abs_diff(3_686_400) <= 2048, "{stored}");
        let looked_up = (0..1000).filter(|_| reducer.reads_address_map()).count();
        assert!((249..=250).contains(&looked_up), "{looked_up}");
        assert!(Reducer::new(&Reduction::Off).is_none());
    }

    #[test]
    fn one_block_is_computed_at_a_time() {
        let costs = ReductionCosts {
            fingerprint: Nanos(1_000),
            compress: Nanos(4_000),
            unique_share: 0.75,
            ..ReductionCosts::DEFAULT
        };
        let mut reducer = Reducer::new(&Reduction::DedupeCompress(costs)).expect("on");
        assert_eq!(reducer.compute(Nanos(0), 2), Nanos(8_000));
        assert_eq!(reducer.compute(Nanos(1_000), 1), Nanos(12_000));
        assert_eq!(reducer.compute(Nanos(50_000), 1), Nanos(54_000));
    }
}
