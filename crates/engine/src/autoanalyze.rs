//! Autoanalyze: what an autovacuum worker of PostgreSQL reads for the planner's statistics.
//!
//! Once in `autovacuum_naptime` it looks for tables of which a tenth has changed since it looked at them last, and
//! reads a sample of the pages of each, in their order and some ahead (`acquire_sample_rows`). It sleeps for what
//! that has cost (`vacuum_cost_limit`). A page whose changes nobody has read before is dirty afterwards. Pages enter
//! the kernel's page cache and not the shared buffers, as those of a ring give way to each other.
//!
//! Not here: vacuum, which comes when a fifth of a table is dead and pruning takes away what dies by changes; and
//! the pages that a table got since it was loaded.

use std::collections::VecDeque;

/// `autovacuum_analyze_threshold`.
const THRESHOLD_ROWS: u64 = 50;
/// Pages of a sample at most: 300 rows for each of the 100 entries of `default_statistics_target`.
const SAMPLE_PAGES_MAX: u32 = 30_000;
/// Pages that are read at once (`maintenance_io_concurrency`).
const AHEAD_PAGES: u32 = 10;

/// What is known of the tables, and the sample under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Autoanalyze {
    /// Per relation: rows that changed since the last look.
    changed: Vec<u64>,
    /// Tables that wait in this round: relation and pages.
    due: VecDeque<(u16, u32)>,
    pub(crate) sample: Option<Sample>,
}

/// The pages of a table that are read.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    relation: u16,
    /// Pages of the table, pages to read, and how many were asked for.
    blocks: u32,
    pages: u32,
    next: u32,
    /// Of those that were asked for last: requests under way, pages, and what they cost.
    pub(crate) reading: u32,
    pub(crate) batch: u64,
    pub(crate) cost: u64,
}

impl Autoanalyze {
    /// So many rows of a table changed.
    #[inline]
    pub(crate) fn count(&mut self, relation: u16, rows: u32) {
        if relation as usize >= self.changed.len() {
            self.changed.resize(relation as usize + 1, 0);
        }
        self.changed[relation as usize] += u64::from(rows);
    }

    /// A worker looks at the tables, given by their numbers with pages and rows: due are those of which more than a
    /// share has changed (`autovacuum_analyze_scale_factor`).
    pub(crate) fn look(&mut self, share: f64, tables: impl Iterator<Item = (u16, u32, u64)>) {
        for (relation, blocks, rows) in tables {
            let changed = self.changed.get(usize::from(relation)).copied().unwrap_or(0);
            if changed as f64 > THRESHOLD_ROWS as f64 + share * rows as f64 {
                self.due.push_back((relation, blocks));
            }
        }
    }

    /// The blocks to read next, of a relation; `None` where nothing is due.
    pub(crate) fn next_blocks(&mut self) -> Option<(u16, Vec<u32>)> {
        if let Some(ended) = self.sample.take_if(|sample| sample.next == sample.pages) {
            self.changed[usize::from(ended.relation)] = 0;
        }
        if self.sample.is_none() {
            let (relation, blocks) = self.due.pop_front()?;
            let pages = blocks.min(SAMPLE_PAGES_MAX);
            let sample = Sample { relation, blocks, pages, next: 0, reading: 0, batch: 0, cost: 0 };
            self.sample = Some(sample);
        }
        let sample = self.sample.as_mut()?;
        let until = (sample.next + AHEAD_PAGES).min(sample.pages);
        let block =
            |number: u32| u64::from(number) * u64::from(sample.blocks) / u64::from(sample.pages);
        let blocks = (sample.next..until).map(|number| block(number) as u32).collect();
        sample.batch = u64::from(until - sample.next);
        sample.next = until;
        Some((sample.relation, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::{AHEAD_PAGES, Autoanalyze, SAMPLE_PAGES_MAX};

    #[test]
    fn a_table_is_due_when_a_tenth_has_changed_and_is_sampled_once() {
        let mut of = Autoanalyze::default();
        let tables = [(0, 40_000, 1_000), (1, 3, 1_000)];
        of.count(0, 151);
        of.count(1, 150);
        of.look(0.1, tables.into_iter());
        let mut blocks = Vec::new();
        while let Some((relation, next)) = of.next_blocks() {
            assert!(relation == 0 && next.len() <= AHEAD_PAGES as usize, "table 1 is not due");
            blocks.extend(next);
        }
        assert_eq!(blocks.len(), SAMPLE_PAGES_MAX as usize);
        assert!(blocks.is_sorted_by(|a, b| a < b) && blocks.last() == Some(&39_998), "{blocks:?}");
        of.look(0.1, tables.into_iter());
        assert_eq!(of.next_blocks(), None, "nothing has changed since");
        of.count(1, 1);
        of.look(0.1, tables.into_iter());
        assert_eq!(of.next_blocks(), Some((1, vec![0, 1, 2])));
        assert_eq!(of.next_blocks(), None);
    }
}
