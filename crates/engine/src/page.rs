//! Pages by number: a relation (a table or an index) and a block of it.
//!
//! Not here: what a page holds.

/// A page of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(u64);

impl PageId {
    /// Block `block` of relation number `relation`.
    pub const fn new(relation: u16, block: u32) -> PageId {
        PageId((relation as u64) << 32 | block as u64)
    }

    /// The number of the relation.
    pub const fn relation(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// The block within the relation.
    pub const fn block(self) -> u32 {
        self.0 as u32
    }
}

/// No place.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A number per page, found without hashing: one array per relation, as long as the highest block
/// that was used.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageMap {
    relations: Vec<Vec<u32>>,
}

impl PageMap {
    /// The number of a page; [`NOWHERE`] where none was set.
    #[inline]
    pub(crate) fn get(&self, page: PageId) -> u32 {
        let blocks = self.relations.get(usize::from(page.relation()));
        blocks.and_then(|blocks| blocks.get(page.block() as usize)).copied().unwrap_or(NOWHERE)
    }

    /// Looks at the numbers of pages, for the speed of what comes: looks do not depend on each other and wait for memory
    /// together.
    pub(crate) fn look_ahead(&self, pages: impl Iterator<Item = PageId>) {
        std::hint::black_box(pages.fold(0, |seen, page| seen ^ self.get(page)));
    }

    /// Sets the number of a page.
    #[inline]
    pub(crate) fn set(&mut self, page: PageId, number: u32) {
        let relation = usize::from(page.relation());
        if relation >= self.relations.len() {
            self.relations.resize_with(relation + 1, Vec::new);
        }
        let blocks = &mut self.relations[relation];
        let block = page.block() as usize;
        if block >= blocks.len() {
            blocks.resize(block + 1, NOWHERE);
        }
        blocks[block] = number;
    }
}

/// A set of blocks of a relation: one bit per block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSet {
    words: Vec<u64>,
}

impl BlockSet {
    /// Whether a block is in the set.
    #[inline]
    pub(crate) fn contains(&self, block: u32) -> bool {
        self.words.get(block as usize / 64).is_some_and(|word| word & (1 << (block % 64)) != 0)
    }

    /// Adds a block. Whether it was there already.
    #[inline]
    pub(crate) fn insert(&mut self, block: u32) -> bool {
        let (word, bit) = (block as usize / 64, 1_u64 << (block % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let was_there = self.words[word] & bit != 0;
        self.words[word] |= bit;
        was_there
    }

    /// Takes a block out.
    #[inline]
    pub(crate) fn remove(&mut self, block: u32) {
        if let Some(word) = self.words.get_mut(block as usize / 64) {
            *word &= !(1 << (block % 64));
        }
    }
}

/// A set of pages, found without hashing.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSet {
    relations: Vec<BlockSet>,
}

impl PageSet {
    /// Whether a page is in the set.
    #[inline]
    pub(crate) fn contains(&self, page: PageId) -> bool {
        let blocks = self.relations.get(usize::from(page.relation()));
        blocks.is_some_and(|blocks| blocks.contains(page.block()))
    }

    /// Adds a page.
    #[inline]
    pub(crate) fn insert(&mut self, page: PageId) {
        let relation = usize::from(page.relation());
        if relation >= self.relations.len() {
            self.relations.resize_with(relation + 1, BlockSet::default);
        }
        self.relations[relation].insert(page.block());
    }

    /// Takes a page out.
    #[inline]
    pub(crate) fn remove(&mut self, page: PageId) {
        if let Some(blocks) = self.relations.get_mut(usize::from(page.relation())) {
            blocks.remove(page.block());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NOWHERE, PageId, PageMap, PageSet};

    #[test]
    fn a_set_has_the_pages_that_were_added_and_not_taken_out() {
        let mut set = PageSet::default();
        let pages = [PageId::new(2, 63), PageId::new(2, 64), PageId::new(0, 63)];
        assert!(!set.contains(pages[0]));
        set.remove(pages[0]);
        set.insert(pages[0]);
        set.insert(pages[1]);
        assert_eq!(pages.map(|page| set.contains(page)), [true, true, false]);
        set.remove(pages[0]);
        assert_eq!(pages.map(|page| set.contains(page)), [false, true, false]);
    }

    #[test]
    fn pages_keep_their_parts_and_their_numbers() {
        let page = PageId::new(7, 123_456);
        assert_eq!((page.relation(), page.block()), (7, 123_456));
        let mut map = PageMap::default();
        assert_eq!(map.get(page), NOWHERE);
        map.set(page, 5);
        assert_eq!((map.get(page), map.get(PageId::new(7, 1))), (5, NOWHERE));
        assert_eq!(map.get(PageId::new(6, 123_456)), NOWHERE);
    }
}
