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

/// A set of pages: one bit per block, found without hashing.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSet {
    relations: Vec<Vec<u64>>,
}

impl PageSet {
    /// Whether a page is in the set.
    #[inline]
    pub(crate) fn contains(&self, page: PageId) -> bool {
        let words = self.relations.get(usize::from(page.relation()));
        let word = words.and_then(|words| words.get(page.block() as usize / 64));
        word.is_some_and(|word| word & (1 << (page.block() % 64)) != 0)
    }

    /// Adds a page.
    #[inline]
    pub(crate) fn insert(&mut self, page: PageId) {
        let (relation, word) = (usize::from(page.relation()), page.block() as usize / 64);
        if relation >= self.relations.len() {
            self.relations.resize_with(relation + 1, Vec::new);
        }
        let words = &mut self.relations[relation];
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (page.block() % 64);
    }

    /// Takes a page out.
    #[inline]
    pub(crate) fn remove(&mut self, page: PageId) {
        let words = self.relations.get_mut(usize::from(page.relation()));
        if let Some(word) = words.and_then(|words| words.get_mut(page.block() as usize / 64)) {
            *word &= !(1 << (page.block() % 64));
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
