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
    /// Whether the page does not exist before, so that it need not be read.
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
        self.touch(page, false, false);
    }

    /// The current step changes a page.
    pub(crate) fn write(&mut self, page: PageId) {
        self.touch(page, true, false);
    }

    /// The current step appends a page to its relation, and changes it.
    pub(crate) fn create(&mut self, page: PageId) {
        self.touch(page, true, true);
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
        match moved {
            Some(moved) => {
                self.write_all(indexes);
                self.write(page);
                self.write(moved);
            }
            None => {
                self.read(indexes[0]);
                self.write(page);
            }
        }
    }

    /// Rows of the same page one after the other are one touch.
    #[inline]
    fn touch(&mut self, page: PageId, writes: bool, is_new: bool) {
        let begin = self.steps.last().map_or(0, |step| step.touches_end as usize);
        match self.touches[begin..].last_mut() {
            Some(last) if last.page == page => last.writes |= writes,
            _ => self.touches.push(Touch { page, writes, is_new }),
        }
    }

    /// The last step, which has ended, changes one more page.
    pub(crate) fn append_write(&mut self, page: PageId) {
        self.touches.push(Touch { page, writes: true, is_new: false });
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
