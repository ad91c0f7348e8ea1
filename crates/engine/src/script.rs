//! A transaction as the engine carries it out: steps with locks, pages, processor time and log
//! bytes.
//!
//! A step first takes its locks in order, then touches its pages while it uses the processor, then
//! writes its log records. Buffers are reused from transaction to transaction.

use crate::page::PageId;
use underlay_core::Nanos;

/// A page that a step reads or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) page: PageId,
    pub(crate) writes: bool,
    /// Rows that it changes; one for an index.
    pub(crate) rows: u16,
    /// Whether the page does not exist before although it has its place among those that were loaded.
    pub(crate) is_new: bool,
}

/// A step: its locks and touches end where the next one's begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) locks_end: u32,
    pub(crate) touches_end: u32,
    pub(crate) cpu: Nanos,
    pub(crate) log_bytes: u32,
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) kind: usize,
    /// Whether it commits something: otherwise nothing waits for the log.
    pub(crate) commits: bool,
    /// Whether it ends as the workload wants it to; false for an intended rollback.
    pub(crate) succeeds: bool,
    /// What it counts as: rows of a batch, otherwise 1.
    pub(crate) count: u32,
    pub(crate) steps: Vec<Step>,
    pub(crate) touches: Vec<Touch>,
    pub(crate) locks: Vec<u64>,
}

impl Script {
    /// Begins a transaction of a type.
    pub(crate) fn begin(&mut self, kind: usize) {
        self.kind = kind;
        self.commits = false;
        self.succeeds = true;
        self.count = 1;
        self.steps.clear();
        self.touches.clear();
        self.locks.clear();
    }

    /// The current step reads a page.
    pub(crate) fn read(&mut self, page: PageId) {
        self.touch(Touch { page, writes: false, rows: 0, is_new: false });
    }

    /// The current step changes a page: one row of it.
    pub(crate) fn write(&mut self, page: PageId) {
        self.write_rows(page, 1);
    }

    /// The current step changes so many rows of a page.
    pub(crate) fn write_rows(&mut self, page: PageId, rows: u16) {
        self.touch(Touch { page, writes: true, rows, is_new: false });
    }

    /// The current step appends a page to its relation, and changes it.
    pub(crate) fn create(&mut self, page: PageId) {
        self.touch(Touch { page, writes: true, rows: 1, is_new: true });
    }

    /// The current step reads pages.
    pub(crate) fn read_all<const N: usize>(&mut self, pages: [PageId; N]) {
        pages.into_iter().for_each(|page| self.read(page));
    }

    /// The current step changes pages.
    pub(crate) fn write_all<const N: usize>(&mut self, pages: [PageId; N]) {
        pages.into_iter().for_each(|page| self.write(page));
    }

    /// The current step changes a row that it finds by an index. A version on another page gets
    /// entries in all indexes of the table.
    pub(crate) fn change_row<const N: usize>(
        &mut self,
        indexes: [PageId; N],
        page: PageId,
        moved: Option<PageId>,
    ) {
        self.change_rows(1, indexes, page, moved);
    }

    /// The same of so many rows of a page that move together.
    pub(crate) fn change_rows<const N: usize>(
        &mut self,
        rows: u16,
        indexes: [PageId; N],
        page: PageId,
        moved: Option<PageId>,
    ) {
        match moved {
            Some(moved) => {
                self.write_all(indexes);
                self.write_rows(page, rows);
                // Its new version is the same row.
                self.write_rows(moved, 0);
            }
            None => {
                self.read(indexes[0]);
                self.write_rows(page, rows);
            }
        }
    }

    /// Rows of the same page one after the other are one touch.
    #[inline]
    fn touch(&mut self, touch: Touch) {
        let begin = self.steps.last().map_or(0, |step| step.touches_end as usize);
        match self.touches[begin..].last_mut() {
            Some(last) if last.page == touch.page => {
                last.writes |= touch.writes;
                last.rows += touch.rows;
            }
            _ => self.touches.push(touch),
        }
    }

    /// The last step, which has ended, changes one more page.
    pub(crate) fn append_write(&mut self, page: PageId) {
        self.touches.push(Touch { page, writes: true, rows: 1, is_new: false });
        if let Some(last) = self.steps.last_mut() {
            last.touches_end += 1;
        }
    }

    /// The current step locks a row.
    pub(crate) fn lock(&mut self, row: u64) {
        self.locks.push(row);
    }

    /// Ends the current step.
    pub(crate) fn end_step(&mut self, cpu: Nanos, log_bytes: u64) {
        self.steps.push(Step {
            locks_end: self.locks.len() as u32,
            touches_end: self.touches.len() as u32,
            cpu,
            log_bytes: log_bytes as u32,
        });
    }
}
