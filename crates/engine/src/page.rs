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

    /// A number of its own for each page.
    pub(crate) const fn number(self) -> u64 {
        self.0
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

    /// Takes all blocks out.
    fn clear(&mut self) {
        self.words.clear();
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

    /// Adds a page. Whether it was there already.
    #[inline]
    pub(crate) fn insert(&mut self, page: PageId) -> bool {
        let relation = usize::from(page.relation());
        if relation >= self.relations.len() {
            self.relations.resize_with(relation + 1, BlockSet::default);
        }
        self.relations[relation].insert(page.block())
    }

    /// Takes all pages out.
    pub(crate) fn clear(&mut self) {
        self.relations.iter_mut().for_each(BlockSet::clear);
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
    use super::{PageId, PageSet};

    #[test]
    fn a_set_has_the_pages_that_were_added_and_not_taken_out() {
        let mut set = PageSet::default();
        let pages = [PageId::new(2, 63), PageId::new(2, 64), PageId::new(0, 63)];
        assert!(!set.contains(pages[0]));
        set.remove(pages[0]);
        assert_eq!(pages.map(|page| set.insert(page)), [false, false, false]);
        assert!(set.insert(pages[1]));
        set.remove(pages[2]);
        assert_eq!(pages.map(|page| set.contains(page)), [true, true, false]);
        set.remove(pages[0]);
        assert_eq!(pages.map(|page| set.contains(page)), [false, true, false]);
        set.clear();
        assert_eq!(pages.map(|page| set.contains(page)), [false; 3]);
    }

    #[test]
    fn pages_keep_their_parts() {
        let page = PageId::new(7, 123_456);
        assert_eq!((page.relation(), page.block()), (7, 123_456));
    }
}
