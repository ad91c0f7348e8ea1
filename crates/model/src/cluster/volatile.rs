//! Rows of a component without power-loss protection that a power cut may revert: those changed since the last flush.
//!
//! A discarded row keeps its space until it is flushed: a power cut may bring its old content back.

use super::regions::RegionSet;

/// Rows that changed since the last flush.
#[derive(Clone, Debug)]
pub(super) struct Volatile {
    changed: RegionSet,
    /// Those of them that hold nothing any more, if they keep their power.
    discarded: RegionSet,
}

impl Volatile {
    /// Nothing, in a component of so many rows.
    pub(super) fn new(rows: u64) -> Volatile {
        Volatile { changed: RegionSet::new(rows), discarded: RegionSet::new(rows) }
    }

    /// Something was written to the row.
    pub(super) fn write(&mut self, row: u64) {
        self.changed.insert(row);
        self.discarded.remove(row);
    }

    /// The row holds data again, or is about to.
    pub(super) fn keep_space(&mut self, row: u64) {
        self.discarded.remove(row);
    }

    /// The whole row was discarded.
    pub(super) fn discard(&mut self, row: u64) {
        self.changed.insert(row);
        self.discarded.insert(row);
    }

    /// Whether a power cut may take something back from the row.
    pub(super) fn contains(&self, row: u64) -> bool {
        self.changed.contains(row)
    }

    /// The rows from which a power cut may take something back.
    pub(super) fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.changed.iter()
    }

    /// Everything is durable: hands out the rows that hold nothing any more.
    pub(super) fn flush(&mut self) -> Vec<u64> {
        let discarded = self.discarded.iter().collect();
        self.forget();
        discarded
    }

    /// What there was to take back is taken back.
    pub(super) fn forget(&mut self) {
        self.changed.clear();
        self.discarded.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Volatile;

    #[test]
    fn a_row_written_again_keeps_its_space() {
        let mut volatile = Volatile::new(8);
        volatile.discard(1);
        volatile.discard(2);
        volatile.write(2);
        volatile.write(3);
        assert_eq!(volatile.rows().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(volatile.flush(), [1]);
        assert!(!volatile.contains(1) && volatile.rows().next().is_none());
        volatile.discard(4);
        volatile.forget();
        assert!(volatile.flush().is_empty());
    }
}
