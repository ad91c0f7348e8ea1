//! Where the pages of a pool are: the frame of each page that has one.
//!
//! Not here: the frames, which know their pages.

use crate::draw::scatter;
use crate::page::{NOWHERE, PageId};
use hashbrown::HashTable;

/// Frames by page.
pub trait Places: Default {
    /// The frame of a page; [`NOWHERE`] if it has none. `page_of` says the page of a frame.
    fn get(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> u32;

    /// A page that has no frame gets one, and is its page already.
    fn insert(&mut self, page: PageId, frame: u32, page_of: impl Fn(u32) -> PageId);

    /// A page leaves its frame.
    fn remove(&mut self, page: PageId, frame: u32);
}

/// An entry per page of the database, for pools that are asked at each touch: a look costs one
/// access to memory, and the entries four bytes for each page, in the pool or not.
#[derive(Clone, Debug, Default)]
pub struct EntryPerPage {
    /// By relation and block, as long as the highest block that was used.
    relations: Vec<Vec<u32>>,
}

impl EntryPerPage {
    #[inline]
    fn set(&mut self, page: PageId, frame: u32) {
        let relation = usize::from(page.relation());
        if relation >= self.relations.len() {
            self.relations.resize_with(relation + 1, Vec::new);
        }
        let blocks = &mut self.relations[relation];
        let block = page.block() as usize;
        if block >= blocks.len() {
            blocks.resize(block + 1, NOWHERE);
        }
        blocks[block] = frame;
    }
}

impl Places for EntryPerPage {
    #[inline]
    fn get(&self, page: PageId, _: impl Fn(u32) -> PageId) -> u32 {
        let blocks = self.relations.get(usize::from(page.relation()));
        blocks.and_then(|blocks| blocks.get(page.block() as usize)).copied().unwrap_or(NOWHERE)
    }

    #[inline]
    fn insert(&mut self, page: PageId, frame: u32, _: impl Fn(u32) -> PageId) {
        self.set(page, frame);
    }

    #[inline]
    fn remove(&mut self, page: PageId, _: u32) {
        self.set(page, NOWHERE);
    }
}

/// An entry per frame, for pools that are asked only about the misses of another one: as large as
/// the pool, not as the database, which may be a hundred times larger. A look costs two to three
/// accesses to memory.
#[derive(Clone, Debug, Default)]
pub struct EntryPerFrame {
    frames: HashTable<u32>,
}

fn hash(page: PageId) -> u64 {
    scatter(page.number())
}

impl Places for EntryPerFrame {
    #[inline]
    fn get(&self, page: PageId, page_of: impl Fn(u32) -> PageId) -> u32 {
        let found = self.frames.find(hash(page), |frame| page_of(*frame) == page);
        found.copied().unwrap_or(NOWHERE)
    }

    #[inline]
    fn insert(&mut self, page: PageId, frame: u32, page_of: impl Fn(u32) -> PageId) {
        self.frames.insert_unique(hash(page), frame, |frame| hash(page_of(*frame)));
    }

    #[inline]
    fn remove(&mut self, page: PageId, frame: u32) {
        let found = self.frames.find_entry(hash(page), |other| *other == frame);
        debug_assert!(found.is_ok(), "frame {frame} has a page");
        if let Ok(found) = found {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryPerFrame, EntryPerPage, Places};
    use crate::page::{NOWHERE, PageId};

    fn pages_are_found_in_their_frames(mut places: impl Places) {
        let mut frames: Vec<PageId> = (0..5_000).map(|block| PageId::new(1, block)).collect();
        for frame in 0..frames.len() as u32 {
            places.insert(frames[frame as usize], frame, |frame| frames[frame as usize]);
        }
        // Each frame gets a page of another relation.
        for frame in 0..frames.len() as u32 {
            let old = frames[frame as usize];
            places.remove(old, frame);
            let page = PageId::new(2, old.block());
            frames[frame as usize] = page;
            places.insert(page, frame, |frame| frames[frame as usize]);
        }
        for frame in 0..frames.len() as u32 {
            let found = |relation: u16| {
                places.get(PageId::new(relation, frame), |frame| frames[frame as usize])
            };
            assert_eq!([found(1), found(2)], [NOWHERE, frame]);
        }
    }

    #[test]
    fn pages_are_found_in_the_frames_that_they_were_given_and_have_not_left() {
        pages_are_found_in_their_frames(EntryPerPage::default());
        pages_are_found_in_their_frames(EntryPerFrame::default());
    }
}
