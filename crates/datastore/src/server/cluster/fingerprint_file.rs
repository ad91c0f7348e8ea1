//! What each block of a component was counted as, in a sparse file beside it.
//!
//! ```text
//! <directory>/g0-d1/c7.prints   16 bytes per block of 4 KiB; holes are blocks that are not counted
//! ```
//!
//! Only disk groups that deduplicate have such files. The counting thread owns them: it creates and removes them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::data_plane::BLOCK_BYTES;
use crate::reduction::{PRINT_RECORD_BYTES, PrintRecord, PrintStore};
use crate::server::sparse::next_data;
use rustix::fs::{FallocateFlags, fallocate};

const RECORD: u64 = PRINT_RECORD_BYTES as u64;

/// Where the prints of a component are.
pub(crate) fn prints_path(component: &Path) -> PathBuf {
    component.with_extension("prints")
}

/// The prints of one component.
#[derive(Debug)]
pub(crate) struct FingerprintFile {
    file: File,
}

impl FingerprintFile {
    /// Opens the prints of a component of that length; none yet if there was no file.
    pub(crate) fn open(path: &Path, component_bytes: u64) -> io::Result<FingerprintFile> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(component_bytes / BLOCK_BYTES as u64 * RECORD)?;
        Ok(FingerprintFile { file })
    }
}

impl PrintStore for FingerprintFile {
    fn read(&mut self, first: u64, records: &mut [PrintRecord]) -> io::Result<()> {
        let mut bytes = vec![0; records.len() * PRINT_RECORD_BYTES];
        self.file.read_exact_at(&mut bytes, first * RECORD)?;
        let (encoded, _) = bytes.as_chunks::<PRINT_RECORD_BYTES>();
        for (record, bytes) in records.iter_mut().zip(encoded) {
            *record = PrintRecord::from_bytes(bytes);
        }
        Ok(())
    }

    fn write(&mut self, first: u64, records: &[PrintRecord]) -> io::Result<()> {
        if records.iter().all(|record| *record == PrintRecord::default()) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, flags, first * RECORD, records.len() as u64 * RECORD)?;
            return Ok(());
        }
        let bytes: Vec<u8> = records.iter().flat_map(|record| record.to_bytes()).collect();
        self.file.write_all_at(&bytes, first * RECORD)
    }

    fn next_used(&mut self, from: u64) -> io::Result<Option<u64>> {
        next_data(&self.file, from * RECORD).map(|at| at.map(|at| at / RECORD))
    }
}

#[cfg(test)]
mod tests {
    use super::FingerprintFile;
    use crate::reduction::{MemoryPrints, Print, PrintRecord, PrintStore};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        /// Against records in memory; closing and opening changes nothing, and what is used is found.
        #[test]
        fn agrees_with_memory(
            steps in proptest::collection::vec((0..900u64, 1..100usize, 0..3u32), 1..20),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("c7.prints");
            let mut memory = MemoryPrints::default();
            for (first, count, what) in steps {
                // Opened each time: what was written by the last one is there.
                let mut file = FingerprintFile::open(&path, 1000 * 4096).unwrap();
                let record = PrintRecord { print: Print::from_raw(u64::from(what) * 7), sum: what };
                memory.write(first, &vec![record; count]).unwrap();
                file.write(first, &vec![record; count]).unwrap();
            }
            let mut file = FingerprintFile::open(&path, 1000 * 4096).unwrap();
            let (mut expected, mut found) = ([PrintRecord::default(); 1000], [PrintRecord::default(); 1000]);
            memory.read(0, &mut expected).unwrap();
            file.read(0, &mut found).unwrap();
            prop_assert_eq!(found, expected);
            let used = expected.iter().position(|record| !record.print.is_nothing());
            let next = file.next_used(0).unwrap();
            // A file knows its pages only.
            prop_assert_eq!(next.is_some() || used.is_none(), true);
            prop_assert!(used.is_none_or(|used| next.is_some_and(|next| next <= used as u64)));
        }
    }
}
