//! Random histories of writes, flushes, discards and power cuts against a reference that keeps, for
//! each sector, the set of values that the fault model allows.

use std::collections::BTreeSet;

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof, proptest};
use underlay_core::RootSeed;

use super::undo_log::{BLOCK_BYTES, Block, Generation, SECTOR_BYTES, UndoLog};

const BLOCKS: usize = 16;
const SECTORS: usize = BLOCKS * BLOCK_BYTES / SECTOR_BYTES;
const SECTORS_PER_BLOCK: usize = BLOCK_BYTES / SECTOR_BYTES;

#[derive(Clone, Debug)]
enum Step {
    Write { sector: usize, sectors: usize },
    FlushArrives,
    OldestFlushCompletes,
    NewestFlushCompletes,
    Discard { block: usize },
    PowerCut { seed: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..SECTORS - 32, 1..32usize)
            .prop_map(|(sector, sectors)| Step::Write { sector, sectors }),
        2 => Just(Step::FlushArrives),
        1 => Just(Step::OldestFlushCompletes),
        1 => Just(Step::NewestFlushCompletes),
        1 => (0..BLOCKS).prop_map(|block| Step::Discard { block }),
        1 => any::<u64>().prop_map(|seed| Step::PowerCut { seed }),
    ]
}

/// A medium of bytes where each sector holds copies of one value, and what each sector may hold
/// after a power cut.
struct World {
    log: UndoLog,
    medium: Vec<u8>,
    value: u8,
    /// Per sector: (arrival, value) of the writes since and including the last certainly durable one.
    versions: Vec<Vec<(u64, u8)>>,
    arrivals: u64,
    /// Flushes under way: (arrival, generation).
    flushes: Vec<(u64, Generation)>,
}

impl World {
    fn new(limit_bytes: u64) -> World {
        World {
            log: UndoLog::new(limit_bytes),
            medium: vec![0; BLOCKS * BLOCK_BYTES],
            value: 0,
            versions: vec![vec![(0, 0)]; SECTORS],
            arrivals: 0,
            flushes: Vec::new(),
        }
    }

    fn apply(&mut self, step: &Step) {
        self.arrivals += 1;
        match step {
            Step::Write { sector, sectors } => self.write(*sector, *sectors),
            Step::FlushArrives => {
                let generation = self.log.seal();
                self.flushes.push((self.arrivals, generation));
            }
            Step::OldestFlushCompletes if !self.flushes.is_empty() => {
                let flush = self.flushes.remove(0);
                self.complete(flush);
            }
            Step::NewestFlushCompletes => {
                if let Some(flush) = self.flushes.pop() {
                    self.complete(flush);
                }
            }
            Step::OldestFlushCompletes => {}
            Step::Discard { block } => self.discard(*block),
            Step::PowerCut { seed } => self.power_cut(*seed),
        }
    }

    fn write(&mut self, sector: usize, sectors: usize) {
        self.value = self.value.wrapping_add(1);
        let (from, to) = (sector * SECTOR_BYTES, (sector + sectors) * SECTOR_BYTES);
        let medium = &self.medium;
        self.log
            .before_write(from as u64, (to - from) as u64, |block, old| {
                old.copy_from_slice(block_of(medium, block));
                Ok(())
            })
            .expect("memory does not fail");
        self.medium[from..to].fill(self.value);
        for versions in &mut self.versions[sector..sector + sectors] {
            versions.push((self.arrivals, self.value));
        }
    }

    fn complete(&mut self, (arrival, generation): (u64, Generation)) {
        self.log.durable(generation);
        for versions in &mut self.versions {
            // The newest write that arrived before the flush is certainly durable; older values are gone.
            let durable = versions.iter().rposition(|(at, _)| *at < arrival).unwrap_or(0);
            versions.drain(..durable);
        }
    }

    fn discard(&mut self, block: usize) {
        let (from, to) = (block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
        self.medium[from..to].fill(0);
        self.log.forget(from as u64, BLOCK_BYTES as u64);
        let sectors = block * SECTORS_PER_BLOCK..(block + 1) * SECTORS_PER_BLOCK;
        self.versions[sectors].fill(vec![(self.arrivals, 0)]);
    }

    fn power_cut(&mut self, seed: u64) {
        let mut random = RootSeed(seed).stream("power", 0);
        let medium = std::cell::RefCell::new(&mut self.medium);
        self.log
            .power_cut(
                &mut random,
                |block, out| {
                    out.copy_from_slice(block_of(&medium.borrow(), block));
                    Ok(())
                },
                |block, contents| {
                    let from = block as usize * BLOCK_BYTES;
                    medium.borrow_mut()[from..from + BLOCK_BYTES].copy_from_slice(contents);
                    Ok(())
                },
            )
            .expect("memory does not fail");
        self.flushes.clear();
    }

    /// After a power cut each sector holds one whole allowed value, which is durable from then on.
    fn check_and_settle(&mut self) -> Result<(), String> {
        for (sector, versions) in self.versions.iter_mut().enumerate() {
            let bytes = &self.medium[sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES];
            let found: BTreeSet<u8> = bytes.iter().copied().collect();
            let allowed: BTreeSet<u8> = versions.iter().map(|(_, value)| *value).collect();
            if found.len() != 1 || !found.is_subset(&allowed) {
                return Err(format!("sector {sector} holds {found:?}, allowed {allowed:?}"));
            }
            *versions = vec![(self.arrivals, bytes[0])];
        }
        Ok(())
    }
}

fn block_of(medium: &[u8], block: u64) -> &Block {
    let from = block as usize * BLOCK_BYTES;
    medium[from..from + BLOCK_BYTES].try_into().expect("a whole block")
}

proptest! {
    /// Flushed data always survives; the rest is old, new or torn at sectors, never anything else.
    #[test]
    fn a_power_cut_leaves_only_allowed_values(
        steps in proptest::collection::vec(step(), 1..120),
        limit_blocks in 1..24u64,
        seed in any::<u64>(),
    ) {
        let mut world = World::new(limit_blocks * BLOCK_BYTES as u64);
        for step in steps.iter().chain([&Step::PowerCut { seed }]) {
            world.apply(step);
            prop_assert!(world.log.volatile_bytes() <= limit_blocks * BLOCK_BYTES as u64);
            if matches!(step, Step::PowerCut { .. }) {
                let settled = world.check_and_settle();
                prop_assert!(settled.is_ok(), "{}", settled.unwrap_err());
            }
        }
    }
}

/// One block written and not flushed, over many seeds: all three fates occur, and tearing mixes.
#[test]
fn all_fates_occur() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..300 {
        let mut world = World::new(1 << 20);
        world.apply(&Step::Write { sector: 0, sectors: SECTORS_PER_BLOCK });
        world.apply(&Step::PowerCut { seed });
        let new = world.medium[..BLOCK_BYTES].iter().filter(|byte| **byte == 1).count();
        match new {
            BLOCK_BYTES => kept += 1,
            0 => lost += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 70 && lost > 70 && torn > 70, "kept {kept}, lost {lost}, torn {torn}");
}

/// Blocks beyond the buffer's size have drained: the oldest writes survive without a flush.
#[test]
fn the_oldest_blocks_drain() {
    for seed in 0..50 {
        let mut world = World::new(4 * BLOCK_BYTES as u64);
        for block in 0..8 {
            world.apply(&Step::Write {
                sector: block * SECTORS_PER_BLOCK,
                sectors: SECTORS_PER_BLOCK,
            });
        }
        world.apply(&Step::PowerCut { seed });
        for block in 0..4 {
            let contents = block_of(&world.medium, block);
            assert!(contents.iter().all(|byte| u64::from(*byte) == block + 1), "block {block}");
        }
    }
}

#[test]
fn equal_seeds_decide_alike() {
    let outcome = |seed| {
        let mut world = World::new(1 << 20);
        for block in 0..12 {
            world.apply(&Step::Write { sector: block * SECTORS_PER_BLOCK, sectors: 9 });
        }
        world.apply(&Step::PowerCut { seed });
        world.medium
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}
