//! Where InnoDB has the entries of an index that was built at once: its leaves are full.
//!
//! A leaf without room is split when an entry comes, and half of its entries go to a new leaf at the end
//! of the index (`btr_page_split_and_insert`). An entry that is purged leaves room for another one.
//!
//! Not here: leaves that are split twice, which takes hundreds of entries more, and merges of leaves.
//! PostgreSQL fills leaves to 90 %, and they have room for long.

use crate::hashing::NumberMap;
use crate::page::PageId;

/// The leaves of an index.
#[derive(Clone, Debug)]
pub(crate) struct LeafSplits {
    relation: u16,
    entries_per_leaf: u64,
    /// The block behind the last leaf.
    end: u32,
    /// Those that were loaded and have changed since, by their blocks.
    changed: NumberMap<Leaf>,
}

/// A leaf that was loaded.
#[derive(Clone, Copy, Debug, Default)]
struct Leaf {
    /// Entries for which there is room; of a leaf that was split, in its first half.
    room: u32,
    second: Option<Half>,
}

/// The second half of a leaf that was split.
#[derive(Clone, Copy, Debug)]
struct Half {
    block: u32,
    room: u32,
}

impl LeafSplits {
    /// An index with so many entries.
    pub(crate) fn new(relation: u16, entries: u64, entries_per_leaf: u64) -> LeafSplits {
        let end = entries.div_ceil(entries_per_leaf) as u32;
        LeafSplits { relation, entries_per_leaf, end, changed: NumberMap::default() }
    }

    fn leaf_of(&self, place: u64) -> (u64, bool) {
        let within = place % self.entries_per_leaf;
        (place / self.entries_per_leaf, within >= self.entries_per_leaf / 2)
    }

    /// The leaf of the entry at a place among those that were loaded.
    pub(crate) fn page(&self, place: u64) -> PageId {
        let (leaf, is_second) = self.leaf_of(place);
        let half = self.changed.get(&leaf).and_then(|leaf| leaf.second).filter(|_| is_second);
        PageId::new(self.relation, half.map_or(leaf as u32, |half| half.block))
    }

    /// An entry comes to a place: the new leaf, if one was split for it.
    pub(crate) fn insert(&mut self, place: u64) -> Option<PageId> {
        let (block, is_second) = self.leaf_of(place);
        let leaf = self.changed.entry(block).or_default();
        match &mut leaf.second {
            Some(half) if is_second => half.room = half.room.saturating_sub(1),
            None if leaf.room == 0 => {
                let room = (self.entries_per_leaf / 2) as u32;
                *leaf = Leaf { room, second: Some(Half { block: self.end, room }) };
                self.end += 1;
                return Some(PageId::new(self.relation, self.end - 1));
            }
            _ => leaf.room = leaf.room.saturating_sub(1),
        }
        None
    }

    /// The entry at a place is purged.
    pub(crate) fn remove(&mut self, place: u64) {
        let (block, is_second) = self.leaf_of(place);
        let leaf = self.changed.entry(block).or_default();
        match &mut leaf.second {
            Some(half) if is_second => half.room += 1,
            _ => leaf.room += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeafSplits;
    use crate::page::PageId;

    #[test]
    fn a_full_leaf_is_split_once_and_one_with_room_is_not() {
        let mut leaves = LeafSplits::new(2, 95, 10);
        let page = |block| PageId::new(2, block);
        assert_eq!((leaves.page(34), leaves.page(35)), (page(3), page(3)));
        leaves.remove(47);
        assert_eq!(leaves.insert(41), None, "it takes the place of the other");
        assert_eq!(leaves.insert(41), Some(page(10)), "behind the ten that were loaded");
        assert_eq!(leaves.insert(36), Some(page(11)));
        assert_eq!((leaves.page(34), leaves.page(35)), (page(3), page(11)));
        assert_eq!((leaves.page(44), leaves.page(45)), (page(4), page(10)));
        for place in [30, 39, 40, 49] {
            assert_eq!(leaves.insert(place), None, "halves have room");
        }
        assert_eq!(leaves.page(20), page(2));
    }
}
