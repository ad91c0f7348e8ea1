//! What is kept of a run: the changes that the database acknowledged, for comparison with its tables.

use crate::transactional::{RunAccounting, decode_numbers, encode_numbers};

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

    fn encode(&self) -> Vec<u8> {
        encode_numbers([
            self.inserted,
            self.deleted,
            self.index_updates,
            self.replaced,
            self.bulk_rows,
            self.perhaps_inserted,
            self.perhaps_deleted,
            self.perhaps_updated,
        ])
    }

    fn decode(bytes: &[u8]) -> Option<SysbenchAccounting> {
        let (numbers, rest): ([u64; 8], _) = decode_numbers(bytes)?;
        let [inserted, deleted, index_updates, replaced, bulk_rows, perhaps @ ..] = numbers;
        let [perhaps_inserted, perhaps_deleted, perhaps_updated] = perhaps;
        rest.is_empty().then_some(SysbenchAccounting {
            inserted,
            deleted,
            index_updates,
            replaced,
            bulk_rows,
            perhaps_inserted,
            perhaps_deleted,
            perhaps_updated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SysbenchAccounting;
    use crate::transactional::RunAccounting;

    #[test]
    fn it_survives_as_bytes() {
        let accounting = SysbenchAccounting {
            inserted: 1,
            deleted: 2,
            index_updates: 3,
            replaced: 4,
            bulk_rows: 5,
            perhaps_inserted: 6,
            perhaps_deleted: 7,
            perhaps_updated: u64::MAX,
        };
        let bytes = accounting.encode();
        assert_eq!(SysbenchAccounting::decode(&bytes), Some(accounting));
        assert_eq!(SysbenchAccounting::decode(&bytes[1..]), None);
    }
}
