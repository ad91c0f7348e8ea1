//! The fingerprints under which the blocks of a component were counted: stored next to the component,
//! like its checksums.
//!
//! A record holds the fingerprint, and the checksum that the block had at that time. The checksum is read before the
//! bytes, so a record is never valid for bytes that were written later: after a restart, blocks with a different checksum
//! are counted again.

use super::fingerprint::Print;
use std::io;

/// Bytes of a record where it is kept.
pub const PRINT_RECORD_BYTES: usize = 16;

/// What a block was counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintRecord {
    /// Its print.
    pub print: Print,
    /// Its checksum then; 0 where blocks have none.
    pub sum: u32,
}

impl PrintRecord {
    /// As bytes.
    pub fn to_bytes(self) -> [u8; PRINT_RECORD_BYTES] {
        let mut bytes = [0; PRINT_RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.print.to_raw().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    /// From [`PrintRecord::to_bytes`].
    pub fn from_bytes(bytes: &[u8; PRINT_RECORD_BYTES]) -> PrintRecord {
        let (print, rest) = bytes.split_first_chunk::<8>().expect("16 bytes");
        let (sum, _) = rest.split_first_chunk::<4>().expect("8 bytes");
        PrintRecord {
            print: Print::from_raw(u64::from_le_bytes(*print)),
            sum: u32::from_le_bytes(*sum),
        }
    }
}

/// The records of one component's blocks. What was never written is [`Print::NOTHING`].
pub trait PrintStore {
    /// The records from a block on.
    ///
    /// # Errors
    /// When the medium fails.
    fn read(&mut self, first: u64, records: &mut [PrintRecord]) -> io::Result<()>;

    /// Stores records from a block on.
    ///
    /// # Errors
    /// When the medium fails.
    fn write(&mut self, first: u64, records: &[PrintRecord]) -> io::Result<()>;

    /// The first block from `from` on that may have a record; none if there is none.
    ///
    /// # Errors
    /// When the medium fails.
    fn next_used(&mut self, from: u64) -> io::Result<Option<u64>>;
}

/// Records in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryPrints(Vec<PrintRecord>);

impl PrintStore for MemoryPrints {
    fn read(&mut self, first: u64, records: &mut [PrintRecord]) -> io::Result<()> {
        for (at, record) in (first as usize..).zip(records) {
            *record = self.0.get(at).copied().unwrap_or_default();
        }
        Ok(())
    }

    fn write(&mut self, first: u64, records: &[PrintRecord]) -> io::Result<()> {
        let end = first as usize + records.len();
        if self.0.len() < end {
            self.0.resize(end, PrintRecord::default());
        }
        self.0[first as usize..end].copy_from_slice(records);
        Ok(())
    }

    fn next_used(&mut self, from: u64) -> io::Result<Option<u64>> {
        let rest = self.0.get(from as usize..).unwrap_or_default();
        Ok(rest.iter().position(|record| !record.print.is_nothing()).map(|at| from + at as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::{Print, PrintRecord};

    #[test]
    fn records_survive_as_bytes() {
        let record = PrintRecord { print: Print::from_raw(0x0123_4567_89AB_CDEF), sum: 77 };
        assert_eq!(PrintRecord::from_bytes(&record.to_bytes()), record);
        assert_eq!(PrintRecord::default().to_bytes(), [0; 16]);
    }
}
