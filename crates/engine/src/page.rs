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

#[cfg(test)]
mod tests {
    use super::{NOWHERE, PageId, PageMap};

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
