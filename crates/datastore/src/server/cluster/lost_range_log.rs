//! Blocks that a component's medium did not accept, and that could not even be marked as lost there, in a file that
//! outlives the server.
//!
//! ```text
//! <directory>/marks      magic, 8 bytes; nothing, 8 bytes; then places of 16 bytes each
//! a place                component, number of blocks (0: the place is free): 4 bytes each; first block, 8 bytes
//! ```
//!
//! The space is reserved when the datastore is created, so that entries can be written when the disk is full, which is when
//! they are needed. A file system that never overwrites in place may refuse even that. Then this is reported, and the
//! entries last as long as the server. Like the components they are not synchronised with the host's disk: a kill of the
//! process leaves them, see `persistent`.
//!
//! Changes are ordered so that a kill in between leaves one block too many in it, never one too few. If there are more
//! ranges than entries, the nearest ones are merged, including the blocks between them. Not here: what a mark means
//! ([`crate::data_plane`]).

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data_plane::MarkLog;
use underlay_model::cluster::ComponentId;

use crate::error::DatastoreError;

const NAME: &str = "marks";
const MAGIC: &[u8; 8] = b"UL-MARK1";
const HEAD_BYTES: usize = 16;
const PLACE_BYTES: usize = 16;
/// 256 KiB in all.
const PLACES: usize = (256 << 10) / PLACE_BYTES - HEAD_BYTES / PLACE_BYTES;

/// Blocks of one component that follow each other, and the place where that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    end: u64,
    place: usize,
}

/// The file, and what is in it.
#[derive(Debug)]
pub(crate) struct LostRangeLog {
    file: File,
    /// By component and first block; ranges of a component neither touch nor overlap.
    ranges: BTreeMap<(u32, u64), Kept>,
    free: Vec<usize>,
    /// Whether the last change could not be stored.
    is_failing: bool,
}

impl LostRangeLog {
    /// The one below a directory, with the marks that are in it.
    pub(crate) fn open(directory: &Path) -> Result<LostRangeLog, DatastoreError> {
        LostRangeLog::with_places(directory, PLACES)
    }

    fn with_places(directory: &Path, places: usize) -> Result<LostRangeLog, DatastoreError> {
        let path = directory.join(NAME);
        let length = HEAD_BYTES + places * PLACE_BYTES;
        let open = || -> io::Result<(File, Vec<u8>)> {
            let mut how = OpenOptions::new();
            let file = how.read(true).write(true).create(true).truncate(false).open(&path)?;
            // One that has not its length yet was cut short when it was made, and nothing was ever marked in it.
            if file.metadata()?.len() != length as u64 {
                let mut empty = vec![0; length];
                empty[..MAGIC.len()].copy_from_slice(MAGIC);
                file.set_len(0)?;
                file.write_all_at(&empty, 0)?;
            }
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, 0)?;
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(DatastoreError::file("set aside", &path))?;
        if !bytes.starts_with(MAGIC) {
            let reason = "this is not a lost-range log".to_string();
            return Err(DatastoreError::BadMemory { path, reason });
        }
        let mut marks =
            LostRangeLog { file, ranges: BTreeMap::new(), free: Vec::new(), is_failing: false };
        let (stored, _) = bytes[HEAD_BYTES..].as_chunks::<PLACE_BYTES>();
        for (place, (component, blocks)) in stored.iter().map(decode).enumerate() {
            marks.free.push(place);
            if blocks.is_empty() {
                continue;
            }
            marks.mark(ComponentId(component), blocks);
            if marks.free.contains(&place) {
                // It met another one: they were about to become one.
                marks.put(place, 0, &(0..0));
            }
        }
        Ok(marks)
    }

    /// All marks, by component and in order.
    pub(crate) fn marked(&self) -> Vec<(ComponentId, Range<u64>)> {
        let ranges = self.ranges.iter();
        ranges
            .map(|((component, first), kept)| (ComponentId(*component), *first..kept.end))
            .collect()
    }

    /// Stores what stands in a place.
    fn put(&mut self, place: usize, component: u32, blocks: &Range<u64>) {
        let at = HEAD_BYTES + place * PLACE_BYTES;
        debug_assert!(place < PLACES, "entry {place} is beyond the end of the file");
        // One call, so that it is there in whole or not at all.
        let stored = self.file.write_all_at(&encode(component, blocks), at as u64);
        if let Err(error) = &stored
            && !self.is_failing
        {
            tracing::error!("lost blocks will be forgotten when the server ends: {error}");
        }
        self.is_failing = stored.is_err();
    }

    /// Takes a range out of the list; its place still has it.
    fn take(&mut self, component: u32, first: u64) -> Option<(Range<u64>, usize)> {
        let Kept { end, place } = self.ranges.remove(&(component, first))?;
        Some((first..end, place))
    }

    /// Takes out a range of a component that is near to a block: the next one before it, or else behind it.
    fn take_nearest(&mut self, component: u32, block: u64) -> Option<(Range<u64>, usize)> {
        let before = self.ranges.range((component, 0)..(component, block)).next_back();
        let behind = || self.ranges.range((component, block)..=(component, u64::MAX)).next();
        let first = before.or_else(behind).map(|((_, first), _)| *first)?;
        self.take(component, first)
    }

    fn keep(&mut self, component: u32, blocks: Range<u64>, place: usize) {
        debug_assert!(!blocks.is_empty(), "an empty range says that its place is free");
        self.put(place, component, &blocks);
        let there = self.ranges.insert((component, blocks.start), Kept { end: blocks.end, place });
        debug_assert!(there.is_none(), "ranges of a component do not overlap");
    }

    fn release(&mut self, place: usize) {
        debug_assert!(!self.free.contains(&place), "a place is freed once");
        self.put(place, 0, &(0..0));
        self.free.push(place);
    }

    /// First blocks of the ranges of a component that touch these.
    fn touching(&self, component: u32, blocks: &Range<u64>) -> Vec<u64> {
        let up_to = self.ranges.range((component, 0)..=(component, blocks.end)).rev();
        // They ascend without overlap, so that those before the first that ends too early do as well.
        let touching = up_to.take_while(|(_, kept)| kept.end >= blocks.start);
        touching.map(|((_, first), _)| *first).collect()
    }

    /// Makes one of the two ranges of a component that are nearest to each other.
    fn merge_nearest(&mut self) {
        let pairs = self.ranges.iter().zip(self.ranges.iter().skip(1));
        let of_one = pairs.filter(|(one, next)| one.0.0 == next.0.0);
        let nearest = of_one.min_by_key(|(one, next)| next.0.1 - one.1.end);
        let Some((component, first, second)) =
            nearest.map(|(one, next)| (one.0.0, one.0.1, next.0.1))
        else {
            return;
        };
        let (Some((one, place)), Some((next, other))) =
            (self.take(component, first), self.take(component, second))
        else {
            return;
        };
        self.keep(component, one.start..next.end, place);
        self.release(other);
    }
}

impl MarkLog for LostRangeLog {
    fn mark(&mut self, component: ComponentId, blocks: Range<u64>) {
        let component = component.0;
        // Nothing is that long; one that were would be several.
        if blocks.is_empty() || blocks.end - blocks.start > u64::from(u32::MAX) {
            return;
        }
        if self.free.is_empty() && self.touching(component, &blocks).is_empty() {
            // What becomes one may touch these.
            self.merge_nearest();
        }
        let (mut all, mut places) = (blocks.clone(), Vec::new());
        for first in self.touching(component, &blocks) {
            let Some((range, place)) = self.take(component, first) else { continue };
            all = all.start.min(range.start)..all.end.max(range.end);
            places.push(place);
        }
        if places.is_empty()
            && self.free.is_empty()
            && let Some((range, place)) = self.take_nearest(component, all.start)
        {
            all = all.start.min(range.start)..all.end.max(range.end);
            places.push(place);
        }
        let Some(place) = places.pop().or_else(|| self.free.pop()) else {
            tracing::error!(
                "there are more lost blocks than the log can hold: some will be forgotten"
            );
            return;
        };
        self.keep(component, all, place);
        places.into_iter().for_each(|place| self.release(place));
    }

    fn clear(&mut self, component: ComponentId, blocks: Range<u64>) {
        let component = component.0;
        for first in self.touching(component, &blocks) {
            let Some((range, place)) = self.take(component, first) else { continue };
            let before = range.start..blocks.start.clamp(range.start, range.end);
            let after = blocks.end.clamp(range.start, range.end)..range.end;
            match (before.is_empty(), after.is_empty()) {
                (true, true) => self.release(place),
                (false, true) => self.keep(component, before, place),
                (true, false) => self.keep(component, after, place),
                (false, false) => match self.free.pop() {
                    Some(another) => {
                        self.keep(component, after, another);
                        self.keep(component, before, place);
                    }
                    // Rather a block too much.
                    None => self.keep(component, range, place),
                },
            }
        }
    }
}

fn encode(component: u32, blocks: &Range<u64>) -> [u8; PLACE_BYTES] {
    let count = u32::try_from(blocks.end - blocks.start).unwrap_or(u32::MAX);
    let mut place = [0; PLACE_BYTES];
    place[..4].copy_from_slice(&component.to_le_bytes());
    place[4..8].copy_from_slice(&count.to_le_bytes());
    place[8..].copy_from_slice(&blocks.start.to_le_bytes());
    place
}

fn decode(place: &[u8; PLACE_BYTES]) -> (u32, Range<u64>) {
    let [a, b, c, d, e, f, g, h, first @ ..] = *place;
    let first = u64::from_le_bytes(first);
    let count = u64::from(u32::from_le_bytes([e, f, g, h]));
    (u32::from_le_bytes([a, b, c, d]), first..first.saturating_add(count))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{ComponentId, LostRangeLog, MarkLog, NAME};

    type Blocks = BTreeSet<(u32, u64)>;

    fn all(marks: &LostRangeLog) -> Blocks {
        let one = |(component, blocks): (ComponentId, Range<u64>)| {
            blocks.map(move |block| (component.0, block))
        };
        marks.marked().into_iter().flat_map(one).collect()
    }

    proptest! {
        /// Whoever opens the file while the writer is still there, as after a kill, finds just what is marked; where places are
        /// short, more, and never less.
        #[test]
        fn what_is_marked_is_found(
            steps in proptest::collection::vec((any::<bool>(), 0..3u32, 0..60u64, 1..12u64), 1..60),
            places in 3..40usize,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut marks = LostRangeLog::with_places(directory.path(), places).unwrap();
            let mut expected = Blocks::new();
            let mut is_exact = true;
            for (marks_it, component, first, count) in steps {
                let blocks = first..first + count;
                is_exact &= marks.free.len() > 1;
                match marks_it {
                    true => {
                        expected.extend(blocks.clone().map(|block| (component, block)));
                        marks.mark(ComponentId(component), blocks);
                    }
                    false => {
                        let cleared = |(of, block): &(u32, u64)| *of == component && blocks.contains(block);
                        expected.retain(|mark| !cleared(mark));
                        marks.clear(ComponentId(component), blocks);
                    }
                }
                let found = all(&LostRangeLog::with_places(directory.path(), places).unwrap());
                prop_assert_eq!(&found, &all(&marks));
                prop_assert!(found.is_superset(&expected), "{:?} of {:?}", found, expected);
                if is_exact {
                    prop_assert_eq!(&found, &expected);
                }
                let touching = marks.marked().windows(2).any(|two| {
                    two[0].0 == two[1].0 && two[0].1.end >= two[1].1.start
                });
                prop_assert!(!touching);
            }
        }
    }

    #[test]
    fn half_a_file_is_made_anew_and_another_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(NAME), b"UL-M").unwrap();
        let mut marks = LostRangeLog::with_places(directory.path(), 4).unwrap();
        marks.mark(ComponentId(7), 3..5);
        drop(marks);
        let marks = LostRangeLog::with_places(directory.path(), 4).unwrap();
        assert_eq!(marks.marked(), [(ComponentId(7), 3..5)]);
        std::fs::write(directory.path().join(NAME), [7; 80]).unwrap();
        let refused = LostRangeLog::with_places(directory.path(), 4).unwrap_err().to_string();
        assert!(refused.contains(NAME), "{refused}");
    }
}
