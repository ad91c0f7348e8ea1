//! Tests of what a disk group has stored: references, space, and what a restart trusts.

use super::{ReducedGroup, Space};
use crate::data_plane::{BlockStore, MemoryStore};
use crate::reduction::{
    BLOCK_BYTES, COMPRESSED_BYTES, MemoryPrints, Print, PrintRecord, PrintStore, compressed_length,
};
use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use underlay_core::RootSeed;

const NOTHING: Print = Print::NOTHING;

/// A block of a kind: even ones can be compressed, odd ones cannot; 0 is zeros.
fn block(kind: u8) -> Vec<u8> {
    let mut random = RootSeed(u64::from(kind)).stream("block", 0);
    let noise = match kind {
        0 => 0,
        kind if kind.is_multiple_of(2) => 512,
        _ => BLOCK_BYTES,
    };
    (0..BLOCK_BYTES).map(|at| if at < noise { random.next_u64() as u8 } else { kind }).collect()
}

#[test]
fn equal_blocks_are_stored_once_and_given_back_with_the_last() {
    let mut group = ReducedGroup::new();
    let two = [block(1), block(2)].concat();
    let (mut here, mut there) = ([NOTHING; 2], [NOTHING; 2]);
    let first = group.destage(&mut here, &two);
    assert_eq!((first.blocks, first.new_blocks, first.stored_bytes), (2, 2, 4096 + 2048));
    let second = group.destage(&mut there, &two);
    assert_eq!((second.new_blocks, second.stored_bytes), (0, 0));
    let space = group.space();
    assert_eq!((space.logical_bytes, space.unique_bytes, space.stored_bytes), (16_384, 8192, 6144));
    assert_eq!((space.dedupe_ratio(), space.reduction_ratio()), (2.0, 16_384.0 / 6144.0));
    // The same bytes once more change nothing; others free nothing that the other place still uses.
    assert_eq!(group.destage(&mut here, &two).freed_bytes, 0);
    assert_eq!(group.destage(&mut here[..1], &block(3)).freed_bytes, 0);
    assert_eq!(group.discard(&mut there[..1]), 4096);
    assert_eq!(group.discard(&mut there), 0);
    // Zeros are nothing.
    assert_eq!(group.destage(&mut here, &[block(0), block(0)].concat()).freed_bytes, 2048 + 4096);
    assert_eq!((here, there), ([NOTHING; 2], [NOTHING; 2]));
    assert_eq!(group.space(), Space::default());
    assert_eq!(group.space().reduction_ratio(), 1.0);
}

#[test]
fn recent_destages_are_observed() {
    let mut group = ReducedGroup::new();
    assert_eq!(group.observed(), None);
    group.destage(&mut [NOTHING; 4], &[block(4), block(4), block(4), block(1)].concat());
    let observed = group.observed().expect("four blocks");
    assert_eq!(observed.unique_share, 0.5);
    assert_eq!(observed.stored_bytes_per_destaged_byte, (2048.0 + 4096.0) / 16_384.0);
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        component: usize,
        block: u64,
        kinds: Vec<u8>,
    },
    Forget {
        component: usize,
    },
    /// Bytes change, and nobody counts them before the restart.
    Unnoticed {
        component: usize,
        block: u64,
        kind: u8,
    },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Around the boundary of two parts that are looked at together.
    let place = || (0..2usize, prop_oneof![0..8u64, 1020..1030u64, 2040..2044u64]);
    let step = prop_oneof![
        6 => (place(), proptest::collection::vec(0..12u8, 1..5)).prop_map(
            |((component, block), kinds)| Step::Write { component, block, kinds }
        ),
        1 => (0..2usize).prop_map(|component| Step::Forget { component }),
        2 => (place(), 0..12u8)
            .prop_map(|((component, block), kind)| Step::Unnoticed { component, block, kind }),
        1 => (0..1u8).prop_map(|_| Step::Restart),
    ];
    proptest::collection::vec(step, 1..30)
}

const BLOCKS: u64 = 2048;

struct Component {
    content: MemoryStore,
    records: MemoryPrints,
}

impl Component {
    fn new() -> Component {
        let content = MemoryStore::new(BLOCKS * BLOCK_BYTES as u64);
        Component { content, records: MemoryPrints::default() }
    }

    fn put(&mut self, at: u64, kind: u8) {
        self.content.write(at * BLOCK_BYTES as u64, &block(kind)).expect("memory");
        let sum = if kind == 0 { 0 } else { 1000 + u32::from(kind) };
        self.content.write_sums(at, &[sum]).expect("memory");
    }
}

fn next_content(content: &MemoryStore, from: u64) -> std::io::Result<Option<u64>> {
    Ok(content.allocated_blocks().find(|block| *block >= from))
}

proptest! {
    /// Against the bytes themselves: the space is that of the different blocks, after every step; a restart counts the
    /// same, and what nobody counted before.
    #[test]
    fn space_is_exact(steps in steps()) {
        let mut group = ReducedGroup::new();
        let mut components = [Component::new(), Component::new()];
        // What is counted, and what is there.
        let mut counted: BTreeMap<(usize, u64), u8> = BTreeMap::new();
        let mut content = counted.clone();
        let mut scratch = Vec::new();
        let sizes: Vec<u64> = (0..12u8)
            .map(|kind| match compressed_length(&block(kind), &mut scratch) {
                length if length <= COMPRESSED_BYTES => 2048,
                _ => 4096,
            })
            .collect();
        for step in steps {
            match step {
                Step::Write { component, block: first, kinds } => {
                    for (at, kind) in (first..).zip(&kinds) {
                        components[component].put(at, *kind);
                        counted.insert((component, at), *kind);
                        content.insert((component, at), *kind);
                    }
                    let Component { content, records } = &mut components[component];
                    let before = group.space().stored_bytes;
                    let done = group.update(content, records, first, kinds.len() as u64).expect("memory");
                    prop_assert_eq!(before + done.stored_bytes - done.freed_bytes, group.space().stored_bytes);
                }
                Step::Forget { component } => {
                    let before = group.space().stored_bytes;
                    let records = &mut components[component].records;
                    let freed = group.forget(records, BLOCKS * 4096).expect("memory");
                    prop_assert_eq!(before - freed, group.space().stored_bytes);
                    components[component] = Component::new();
                    counted.retain(|(of, _), _| *of != component);
                    content.retain(|(of, _), _| *of != component);
                }
                Step::Unnoticed { component, block, kind } => {
                    components[component].put(block, kind);
                    content.insert((component, block), kind);
                }
                Step::Restart => {
                    group = ReducedGroup::new();
                    for Component { content, records } in &mut components {
                        group.recall(content, records, next_content).expect("memory");
                    }
                    counted = content.clone();
                }
            }
            let kinds = || counted.values().copied().filter(|kind| *kind != 0);
            let unique: BTreeSet<u8> = kinds().collect();
            let stored: u64 = unique.iter().map(|kind| sizes[usize::from(*kind)]).sum();
            let space = group.space();
            prop_assert_eq!(space.logical_bytes, kinds().count() as u64 * 4096);
            prop_assert_eq!(space.unique_bytes, unique.len() as u64 * 4096);
            prop_assert_eq!(space.stored_bytes, stored);
        }
    }
}

/// Records are trusted where checksums agree: a restart reads no bytes that it need not.
#[test]
fn a_restart_trusts_the_records() {
    let mut component = Component::new();
    component.put(5, 3);
    let mut group = ReducedGroup::new();
    let Component { content, records } = &mut component;
    group.update(content, records, 5, 1).expect("memory");
    let mut record = [PrintRecord::default()];
    records.read(5, &mut record).expect("memory");
    assert_eq!(record[0].sum, 1003);
    // Bytes that changed behind the checksum's back: nobody looks.
    content.write(5 * 4096, &block(7)).expect("memory");
    let mut again = ReducedGroup::new();
    again.recall(content, records, next_content).expect("memory");
    assert_eq!(again.space(), group.space());
    let mut after = [PrintRecord::default()];
    records.read(5, &mut after).expect("memory");
    assert_eq!(after, record);
}
