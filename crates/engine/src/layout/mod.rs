//! Where rows lie: relations, their pages, and the places of the pages on the data volume.
//!
//! Sizes follow from the row formats of the engines and were checked against loaded databases
//! (about 100 MB per warehouse of TPC-C on PostgreSQL). Only leaf pages of indexes are modelled:
//! their upper levels are in memory wherever the leaves are worth a cache at all.

pub mod dvdstore;
pub(crate) mod leaf_splits;
pub(crate) mod row_versions;
pub mod sysbench;
pub mod tpcc;
pub mod warehouse;

use crate::page::PageId;
use underlay_core::Bytes;

/// A table or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// Pages when the database is loaded.
    pub blocks: u32,
    /// Rows of a table when the database is loaded; 0 of an index.
    pub rows: u64,
    /// Bytes of the log that a full image of one of its pages takes: the page without its unused
    /// middle.
    pub image_bytes: u32,
    /// Whether it is a heap: its rows have versions, and pages note which of them are committed.
    pub is_heap: bool,
    /// Whether it grows while users work.
    pub grows: bool,
}

impl Relation {
    /// InnoDB's undo log.
    pub(crate) const fn undo(blocks: u32) -> Relation {
        Relation { name: "undo", blocks, rows: 0, image_bytes: 0, is_heap: false, grows: false }
    }
}

/// The relations of a database on its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    page_bytes: u32,
    relations: Vec<Relation>,
    /// Per relation: its first byte on the volume, and how many pages have a place of their own.
    places: Vec<(u64, u32)>,
    doublewrite: u64,
}

impl Layout {
    /// Lays relations out one after the other in `offset .. offset + length` of a volume. What is
    /// left over is for those that grow, in proportion to their sizes; one that outgrows it starts
    /// again at its beginning, which changes where a page is read from and nothing else. Behind
    /// them lies a doublewrite buffer.
    ///
    /// Returns what they need where they do not fit.
    pub fn new(
        page_bytes: u32,
        relations: Vec<Relation>,
        offset: Bytes,
        length: Bytes,
        doublewrite: Bytes,
    ) -> Result<Layout, Bytes> {
        let page = u64::from(page_bytes);
        let needed: u64 = relations.iter().map(|relation| u64::from(relation.blocks) * page).sum();
        if needed + doublewrite.0 > length.0 {
            return Err(Bytes(needed + doublewrite.0));
        }
        let growing: u64 = relations
            .iter()
            .filter(|relation| relation.grows)
            .map(|relation| u64::from(relation.blocks))
            .sum();
        let spare = (length.0 - doublewrite.0 - needed) / page;
        let mut next = offset.0;
        let place = |relation: &Relation| {
            let blocks = u64::from(relation.blocks);
            let more = if relation.grows {
                u128::from(spare) * u128::from(blocks) / u128::from(growing.max(1))
            } else {
                0
            };
            let own = (blocks + more as u64).min(u64::from(u32::MAX)).max(1);
            let at = next;
            next += own * page;
            (at, own as u32)
        };
        let places = relations.iter().map(place).collect();
        let doublewrite = offset.0 + length.0 - doublewrite.0;
        Ok(Layout { page_bytes, relations, places, doublewrite })
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// The relations, by their numbers.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The relation of a page.
    pub fn relation(&self, page: PageId) -> &Relation {
        &self.relations[usize::from(page.relation())]
    }

    /// Bytes of all relations when they are loaded.
    pub fn loaded_bytes(&self) -> Bytes {
        let blocks: u64 = self.relations.iter().map(|relation| u64::from(relation.blocks)).sum();
        Bytes(blocks * u64::from(self.page_bytes))
    }

    /// The first byte of a page on the volume.
    pub fn offset(&self, page: PageId) -> u64 {
        let (base, own) = self.places[usize::from(page.relation())];
        base + u64::from(page.block() % own) * u64::from(self.page_bytes)
    }

    /// The first byte of the doublewrite buffer.
    pub(crate) fn doublewrite(&self) -> u64 {
        self.doublewrite
    }

    /// The first byte of a run of pages, moved back where it would pass the end of the relation's
    /// place.
    pub(crate) fn offset_of_run(&self, first: PageId, pages: u32) -> u64 {
        let (base, own) = self.places[usize::from(first.relation())];
        let block = (first.block() % own).min(own.saturating_sub(pages));
        base + u64::from(block) * u64::from(self.page_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Relation};
    use crate::page::PageId;
    use underlay_core::Bytes;

    #[test]
    fn relations_get_places_of_their_own_and_room_to_grow() {
        let relation = |name, blocks, grows| Relation {
            name,
            blocks,
            rows: 0,
            image_bytes: 8_000,
            is_heap: true,
            grows,
        };
        let relations =
            vec![relation("a", 2, false), relation("b", 3, true), relation("c", 1, true)];
        let layout =
            Layout::new(8192, relations.clone(), Bytes(8192), Bytes(14 * 8192), Bytes::ZERO)
                .unwrap();
        let block = |relation, block| layout.offset(PageId::new(relation, block)) / 8192;
        // 8 spare pages: 6 to b, 2 to c.
        assert_eq!(
            (block(0, 0), block(0, 1), block(1, 0), block(1, 8), block(2, 0)),
            (1, 2, 3, 11, 12)
        );
        assert_eq!((block(1, 9), block(2, 2), block(2, 3)), (3, 14, 12));
        assert_eq!(layout.loaded_bytes(), Bytes(6 * 8192));
        let refused = Layout::new(8192, relations, Bytes::ZERO, Bytes(5 * 8192), Bytes::ZERO);
        assert_eq!(refused, Err(Bytes(6 * 8192)));
    }
}
