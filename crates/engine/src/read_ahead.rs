//! The kernel's read-ahead: what it reads with a page that is not in its cache, and what it reads before anybody asks
//! (`mm/readahead.c` of Linux 6.17 and later, `page_cache_sync_ra` and `page_cache_async_ra`).
//!
//! A server process has a file of its own for each relation, and the kernel remembers what was read last through it.
//! Reads that follow each other get a window that doubles; so does a read behind a run of cached pages, which looks like
//! the rest of such a stream. All other reads get what they ask for.
//!
//! Not here: which pages are cached, and files of 1 GB, of which a larger relation has several.

/// Bytes of a page of the kernel.
const PAGE_BYTES: u32 = 4096;
/// Pages of a window at most: `read_ahead_kb` of a block device is 128.
const WINDOW_MAX: u32 = 32;

/// What one process has read of one relation, in pages of the kernel.
#[derive(Clone, Copy, Debug)]
struct Stream {
    relation: u16,
    /// The last page that was read.
    previous: Option<u32>,
    /// The window: its first page, its pages, and how many of them are ahead.
    start: u32,
    size: u32,
    ahead: u32,
    /// Of the folios of the window: they have 2^order pages at most.
    order: u32,
}

/// What one process has read of each relation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Vec<Stream>);

/// Blocks that the kernel reads at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) blocks: u32,
    /// The block whose read lets the kernel read further.
    pub(crate) marked: Option<u32>,
}

impl Streams {
    /// A process reads a block of so many bytes: the run that the kernel reads; `None` where it reads nothing. The run
    /// begins with the block if that is not cached, and otherwise behind it.
    pub(crate) fn read(
        &mut self,
        (relation, block): (u16, u32),
        block_bytes: u32,
        is_marked: bool,
        is_cached: impl Fn(u32) -> bool,
    ) -> Option<Run> {
        let asked = (block_bytes / PAGE_BYTES).max(1);
        let index = block * asked;
        let stream = self.stream(relation);
        let previous = stream.previous.replace(index + asked - 1);
        let is_in_cache = is_cached(block);
        if is_in_cache && !is_marked {
            return None;
        }
        if is_in_cache {
            let expected = (stream.start + stream.size).saturating_sub(stream.ahead) / asked;
            if stream.size > 0 && expected == block {
                stream.start += stream.size;
            } else {
                // The mark of another stream: behind what is cached.
                let next = (1..=WINDOW_MAX / asked).find(|next| !is_cached(block + next))?;
                stream.start = index + next * asked;
                stream.size = next * asked + asked;
            }
            stream.size = next_size(stream.size);
            stream.end_with_a_folio();
            stream.ahead = stream.size;
        } else if index == 0 || previous.is_some_and(|previous| index.wrapping_sub(previous) <= 1) {
            stream.start = index;
            stream.order = 0;
            stream.size = first_size(asked);
            stream.ahead = match stream.size > asked {
                true => stream.size - asked,
                false => stream.size / 2,
            };
        } else {
            let before = (0..block).rev().take((WINDOW_MAX / asked) as usize);
            let run = before.take_while(|block| is_cached(*block)).count() as u32;
            if run <= 1 {
                return Some(Run { first: block, blocks: 1, marked: None });
            }
            // Cached from the beginning of the file.
            let times = if run == block { 2 } else { 1 };
            stream.start = index;
            stream.order = 0;
            stream.size = (run * asked * times + asked).min(WINDOW_MAX);
            stream.ahead = 1;
        }
        let marked = (stream.start + stream.size - stream.ahead) / asked;
        let (first, blocks) = (stream.start / asked, stream.size.div_ceil(asked));
        Some(Run { first, blocks, marked: Some(marked) })
    }

    fn stream(&mut self, relation: u16) -> &mut Stream {
        let found = self.0.iter().position(|stream| stream.relation == relation);
        let place = found.unwrap_or_else(|| {
            self.0.push(Stream { relation, previous: None, start: 0, size: 0, ahead: 0, order: 0 });
            self.0.len() - 1
        });
        &mut self.0[place]
    }
}

impl Stream {
    /// Cuts the window at the last boundary of a folio in it. Folios become larger from window to window, but not larger
    /// than one.
    fn end_with_a_folio(&mut self) {
        self.order += 2;
        let end = self.start + self.size;
        let folio = 1 << self.order.min(WINDOW_MAX.ilog2());
        let boundary = end / folio * folio;
        if boundary > self.start {
            self.size = boundary - self.start;
        }
        self.order = self.order.min(self.size.ilog2());
    }
}

/// The first window of a stream (`get_init_ra_size`).
fn first_size(asked: u32) -> u32 {
    let size = asked.next_power_of_two();
    if size <= WINDOW_MAX / 32 {
        size * 4
    } else if size <= WINDOW_MAX / 4 {
        size * 2
    } else {
        WINDOW_MAX
    }
}

/// The window after one of this size (`get_next_ra_size`).
fn next_size(size: u32) -> u32 {
    if size < WINDOW_MAX / 16 {
        size * 4
    } else if size <= WINDOW_MAX / 2 {
        size * 2
    } else {
        WINDOW_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Streams};
    use std::collections::BTreeSet;

    /// A relation of blocks of 8 KiB behind a cache that never evicts.
    #[derive(Default)]
    struct Kernel {
        streams: Streams,
        cached: BTreeSet<u32>,
        marked: BTreeSet<u32>,
    }

    impl Kernel {
        fn read(&mut self, block: u32) -> Option<Run> {
            let is_marked = self.marked.remove(&block);
            let cached = &self.cached;
            let run = self.streams.read((0, block), 8192, is_marked, |it| cached.contains(&it));
            self.cached.insert(block);
            if let Some(run) = run {
                self.cached.extend(run.first..run.first + run.blocks);
                self.marked.extend(run.marked);
            }
            run
        }
    }

    fn run(first: u32, blocks: u32, marked: u32) -> Option<Run> {
        Some(Run { first, blocks, marked: Some(marked) })
    }

    #[test]
    fn windows_of_a_stream_double_up_to_128_kib() {
        let mut kernel = Kernel::default();
        assert_eq!(kernel.read(100), Some(Run { first: 100, blocks: 1, marked: None }));
        assert_eq!(kernel.read(101), run(101, 2, 102));
        // 4 blocks are due, and end between two folios of 16 KiB; then 6, and 12 of which none would be left.
        assert_eq!(kernel.read(102), run(103, 3, 103), "ahead of need");
        assert_eq!(kernel.read(103), run(106, 6, 106));
        assert_eq!((104..106).find_map(|block| kernel.read(block)), None, "they are there");
        assert_eq!(kernel.read(106), run(112, 12, 112));
        (107..112).for_each(|block| assert_eq!(kernel.read(block), None));
        // 16 are due, but not more than 128 KiB from its boundary on.
        assert_eq!(kernel.read(112), run(124, 4, 124));
    }

    #[test]
    fn single_reads_get_what_they_ask_for() {
        let mut kernel = Kernel::default();
        for block in [700, 100, 500, 300, 502] {
            assert_eq!(kernel.read(block), Some(Run { first: block, blocks: 1, marked: None }));
        }
    }

    #[test]
    fn a_read_behind_cached_blocks_looks_like_the_rest_of_a_stream() {
        let mut kernel = Kernel { cached: (200..205).collect(), ..Kernel::default() };
        assert_eq!(kernel.read(205), run(205, 6, 210));
        // From the beginning of the file: twice as much.
        let mut kernel = Kernel { cached: (0..3).collect(), ..Kernel::default() };
        assert_eq!(kernel.read(3), run(3, 7, 9));
        assert_eq!(Kernel::default().read(0), run(0, 2, 1));
    }

    #[test]
    fn a_mark_of_another_stream_is_gone_on_from() {
        let mut kernel = Kernel { cached: (50..54).collect(), ..Kernel::default() };
        kernel.marked.insert(51);
        // Two more are there, and one was asked for: 8 blocks are due, less those behind the last boundary of 16 KiB.
        assert_eq!(kernel.read(51), run(54, 8, 54));
        assert_eq!(kernel.read(51), None, "it is no longer marked");
    }
}
