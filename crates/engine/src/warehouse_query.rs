//! A query of a warehouse under way: pages that are asked for ahead of need, and the processes that
//! work on them.
//!
//! Only the accounting, as in [`crate::transfer`]: the caller looks for pages in memory, reads,
//! computes, and reports what is done. The tables of a query are read one after the other. All its
//! processes work on the same one, and each takes the next pages that are there. Not here: rows,
//! sorts, and files for what does not fit into memory.

use crate::draw::below;
use crate::page::PageId;
use crate::warehouse_spec::Access;
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use underlay_core::Nanos;

/// Pages of a chunk of a scan: the kernel's read-ahead (`read_ahead_kb`) of 128 KiB.
const CHUNK_PAGES: u32 = 16;
/// Chunks of a scan for each process: the one that it works on, and the next one.
const CHUNKS_PER_PROCESS: usize = 2;

/// Pages of a relation that are asked for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) first: PageId,
    pub(crate) pages: u32,
    /// Whether shared buffers keep its pages.
    pub(crate) is_kept: bool,
}

/// What the queries of a database share.
pub(crate) struct Tables {
    /// Pages of each relation.
    blocks: Vec<u32>,
    /// Where a scan of each was last: the next one begins there (`synchronize_seqscans`).
    positions: Vec<u32>,
    /// Scans of relations with at most so many pages are kept in shared buffers.
    kept_at_most: u32,
    random: Pcg64,
}

impl Tables {
    /// Relations of so many pages, and a database with so many shared buffers.
    pub(crate) fn new(blocks: Vec<u32>, buffers: u32, random: Pcg64) -> Tables {
        let positions = vec![0; blocks.len()];
        // Scans of larger ones have a ring of buffers of their own.
        Tables { blocks, positions, kept_at_most: buffers / 4, random }
    }

    /// Where a scan begins.
    fn begin_of_scan(&self, relation: u16) -> u32 {
        match self.is_kept(relation) {
            true => 0,
            false => self.positions[usize::from(relation)],
        }
    }

    fn is_kept(&self, relation: u16) -> bool {
        self.blocks[usize::from(relation)] <= self.kept_at_most
    }

    /// The next chunk of a scan that is at `block`.
    fn scan(&mut self, relation: u16, block: u32) -> Chunk {
        self.positions[usize::from(relation)] = block;
        let end = (block / CHUNK_PAGES + 1) * CHUNK_PAGES;
        let pages = end.min(self.blocks[usize::from(relation)]) - block;
        Chunk { first: PageId::new(relation, block), pages, is_kept: self.is_kept(relation) }
    }

    /// Any page.
    fn pick(&mut self, relation: u16) -> Chunk {
        let blocks = u64::from(self.blocks[usize::from(relation)]);
        let block = below(&mut self.random, blocks) as u32;
        Chunk { first: PageId::new(relation, block), pages: 1, is_kept: true }
    }
}

/// What is read of one relation.
#[derive(Clone, Copy, Debug)]
struct Part {
    access: Access,
    /// Pages that were not asked for.
    left: u64,
    /// Where its scan is; `None` before it begins.
    at: Option<u32>,
}

/// A query.
pub(crate) struct Query {
    parts: VecDeque<Part>,
    processes: usize,
    cpu_per_page: Nanos,
    /// Chunks that are being read.
    asked: usize,
    /// Processor time of chunks that are there.
    ready: VecDeque<Nanos>,
    busy: usize,
    /// Single pages that were in memory and are worked on with the next one.
    carried: u32,
}

/// Single pages that are worked on together at most: fewer events for the same work.
const CARRIED_MAX: u32 = 15;

impl Query {
    /// A query that reads so many pages, for so much processor time in all.
    pub(crate) fn new(accesses: &[(Access, u64)], processes: usize, cpu: Nanos) -> Query {
        let part = |&(access, left): &(Access, u64)| Part { access, left, at: None };
        let pages: u64 = accesses.iter().map(|(_, pages)| pages).sum();
        Query {
            parts: accesses.iter().map(part).collect(),
            processes,
            cpu_per_page: Nanos(cpu.0 / pages.max(1)),
            asked: 0,
            ready: VecDeque::new(),
            busy: 0,
            carried: 0,
        }
    }

    /// Processes that work on it.
    pub(crate) fn processes(&self) -> usize {
        self.processes
    }

    fn outstanding(&self) -> usize {
        self.asked + self.ready.len() + self.busy
    }

    /// The next pages to ask for; none until something is done.
    pub(crate) fn next_chunk(&mut self, tables: &mut Tables) -> Option<Chunk> {
        let outstanding = self.outstanding();
        // The next table is read when the work on the last one is done.
        if outstanding == 0 {
            self.parts.pop_front_if(|part| part.left == 0);
        }
        let part = self.parts.front_mut().filter(|part| part.left > 0)?;
        let chunk = match part.access {
            Access::Scan(table) if outstanding < CHUNKS_PER_PROCESS * self.processes => {
                let relation = table as u16;
                let block = part.at.unwrap_or_else(|| tables.begin_of_scan(relation));
                let chunk = tables.scan(relation, block);
                // A scan that began inside goes on at the beginning, to where it began.
                let pages = u64::from(chunk.pages).min(part.left) as u32;
                part.at = Some((block + pages) % tables.blocks[usize::from(relation)]);
                Chunk { pages, ..chunk }
            }
            Access::Pick(table, _) if outstanding < self.processes => tables.pick(table as u16),
            Access::Scan(_) | Access::Pick(..) => return None,
        };
        part.left -= u64::from(chunk.pages);
        self.asked += 1;
        Some(chunk)
    }

    /// So many pages that were asked for are in memory.
    pub(crate) fn found(&mut self, pages: u32) {
        let goes_on = self.parts.front().is_some_and(|part| part.left > 0);
        if pages == 1 && goes_on && self.carried < CARRIED_MAX {
            self.asked -= 1;
            self.carried += 1;
        } else {
            self.read(pages, Nanos::ZERO);
        }
    }

    /// So many pages that were asked for are there; to read them took so much processor time.
    pub(crate) fn read(&mut self, pages: u32, cpu: Nanos) {
        self.asked -= 1;
        let pages = pages + std::mem::take(&mut self.carried);
        self.ready.push_back(Nanos(self.cpu_per_page.0 * u64::from(pages) + cpu.0));
    }

    /// The next work for a processor; none while all processes are at work.
    pub(crate) fn next_work(&mut self) -> Option<Nanos> {
        if self.busy == self.processes {
            return None;
        }
        let work = self.ready.pop_front()?;
        self.busy += 1;
        Some(work)
    }

    /// A process has done its work.
    pub(crate) fn worked(&mut self) {
        self.busy -= 1;
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.outstanding() == 0 && self.parts.iter().all(|part| part.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Chunk, Query, Tables};
    use crate::layout::warehouse::Table;
    use std::collections::BTreeSet;
    use underlay_core::{Nanos, RootSeed};

    const SMALL: Table = Table::Supplier;
    const LARGE: Table = Table::Part;

    /// A table of 20 pages and one of 100, with 80 shared buffers.
    fn tables() -> Tables {
        Tables::new(vec![20, 100], 80, RootSeed(1).stream("test", 0))
    }

    /// Lets a query work alone: chunks and processor time.
    fn carry_out(query: &mut Query, tables: &mut Tables) -> (Vec<Chunk>, u64) {
        let (mut chunks, mut work) = (Vec::new(), 0);
        while !query.is_done() {
            let before = chunks.len();
            while let Some(chunk) = query.next_chunk(tables) {
                assert!(query.asked <= 2 * query.processes, "no further ahead");
                chunks.push(chunk);
            }
            for chunk in &chunks[before..] {
                query.read(chunk.pages, Nanos::ZERO);
            }
            let mut busy = 0;
            while let Some(burst) = query.next_work() {
                (work, busy) = (work + burst.0, busy + 1);
            }
            assert!((1..=query.processes).contains(&busy), "{busy}");
            (0..busy).for_each(|_| query.worked());
        }
        (chunks, work)
    }

    #[test]
    fn a_scan_reads_every_page_once_wherever_it_begins() {
        let mut tables = tables();
        let reads = [(Access::Scan(SMALL), 20), (Access::Scan(LARGE), 100)];
        for (begin, processes) in [(0, 1), (37, 3)] {
            tables.positions[1] = begin;
            let mut query = Query::new(&reads, processes, Nanos(12_000));
            let (chunks, work) = carry_out(&mut query, &mut tables);
            let pages = chunks.iter().flat_map(|chunk| {
                let block = chunk.first.block();
                (block..block + chunk.pages).map(|block| (chunk.first.relation(), block))
            });
            let pages: Vec<(u16, u32)> = pages.collect();
            assert_eq!((pages.len(), work), (120, 12_000));
            assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), 120);
            assert_eq!((pages[0], pages[20]), ((0, 0), (1, begin)));
            assert!(chunks.iter().all(|chunk| chunk.is_kept == (chunk.first.relation() == 0)));
        }
    }

    #[test]
    fn a_scan_begins_where_another_one_is() {
        let mut tables = tables();
        let reads = [(Access::Scan(LARGE), 100)];
        let mut first = Query::new(&reads, 1, Nanos(100));
        let [_, second] = [first.next_chunk(&mut tables), first.next_chunk(&mut tables)];
        assert_eq!(first.next_chunk(&mut tables), None, "two chunks for one process");
        let mut other = Query::new(&reads, 1, Nanos(100));
        assert_eq!(other.next_chunk(&mut tables), second);
    }

    #[test]
    fn single_pages_are_read_one_by_one_by_each_process() {
        let mut tables = tables();
        let mut query = Query::new(&[(Access::Pick(LARGE, 0), 5)], 2, Nanos(500));
        let asked: Vec<Chunk> = std::iter::from_fn(|| query.next_chunk(&mut tables)).collect();
        assert!(asked.len() == 2 && asked.iter().all(|chunk| chunk.pages == 1), "{asked:?}");
        query.read(1, Nanos(7));
        assert_eq!(query.next_work(), Some(Nanos(107)));
        assert_eq!(query.next_chunk(&mut tables), None, "each has its page");
        query.worked();
        assert!(query.next_chunk(&mut tables).is_some() && !query.is_done());
    }

    #[test]
    fn work_on_single_pages_in_memory_is_done_together() {
        let mut tables = tables();
        let mut query = Query::new(&[(Access::Pick(LARGE, 0), 40)], 1, Nanos(4_000));
        let mut bursts = Vec::new();
        while !query.is_done() {
            while query.next_chunk(&mut tables).is_some() {
                query.found(1);
            }
            bursts.push(query.next_work().expect("work").0);
            query.worked();
        }
        assert_eq!(bursts, [1_600, 1_600, 800]);
    }
}
