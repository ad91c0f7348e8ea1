//! What is kept of a run: the changes that the database acknowledged, for comparison with its tables.

use crate::transactional::RunAccounting;

/// Changes of the tables `sbtest<n>`; those of bulk inserts apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SysbenchAccounting {
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// Rows whose `k` was raised by 1.
    pub index_updates: u64,
    /// Transactions that may have changed `k` in another way: deletes and inserts.
    pub replaced: u64,
    /// Rows of bulk inserts.
    pub bulk_rows: u64,
    /// Rows that transactions of unknown outcome may have inserted.
    pub perhaps_inserted: u64,
    /// Rows that transactions of unknown outcome may have deleted.
    pub perhaps_deleted: u64,
    /// Rows whose `k` transactions of unknown outcome may have raised.
    pub perhaps_updated: u64,
}

impl SysbenchAccounting {
    /// The smallest and the largest number of rows that may have been added to all tables together.
    pub fn rows_added(&self) -> (i64, i64) {
        let added = self.inserted.cast_signed() - self.deleted.cast_signed();
        (added - self.perhaps_deleted.cast_signed(), added + self.perhaps_inserted.cast_signed())
    }

    /// The smallest and the largest increase of the sum of all `k`; none when rows came or went.
    pub fn k_added(&self) -> Option<(u64, u64)> {
        let others = self.inserted
            + self.deleted
            + self.replaced
            + self.perhaps_inserted
            + self.perhaps_deleted;
        (others == 0).then_some((self.index_updates, self.index_updates + self.perhaps_updated))
    }
}

impl RunAccounting for SysbenchAccounting {
    fn merge(&mut self, other: &SysbenchAccounting) {
        self.inserted += other.inserted;
        self.deleted += other.deleted;
        self.index_updates += other.index_updates;
        self.replaced += other.replaced;
        self.bulk_rows += other.bulk_rows;
        self.perhaps_inserted += other.perhaps_inserted;
        self.perhaps_deleted += other.perhaps_deleted;
        self.perhaps_updated += other.perhaps_updated;
    }
}
