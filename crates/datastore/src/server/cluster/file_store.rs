//! Components of a cluster as files: one for the bytes, one for the checksums, both sparse.
//!
//! ```text
//! <directory>/g0-d1/c7        bytes of component 7 on capacity device 1 of disk group 0
//! <directory>/g0-d1/c7.sums   four bytes per block of 4 KiB
//! ```
//!
//! A lost device is a folder that is no longer read; a rebuild really fills another one. Nothing is copied to memory, so
//! the emulator's memory does not grow with the volumes. For access to checksums see [`super::sums_file`].

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data_plane::{BLOCK_BYTES, BlockStore, StoreError, StoreMaker};
use crate::server::sparse::next_data;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use underlay_model::cluster::{ComponentId, ComponentRecord, DeviceId, GroupId};

use super::sums_file::{SUM_BYTES, SUMS_AT_ONCE, SumsFile};

/// A component and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) component: ComponentId,
    pub(crate) device: DeviceId,
    pub(crate) length: u64,
}

impl Place {
    /// As it is remembered.
    pub(crate) fn of(record: &ComponentRecord) -> Place {
        Place {
            component: ComponentId(record.component),
            // Member 0 is the cache device.
            device: DeviceId { group: GroupId(record.group), member: record.disk + 1 },
            length: record.length,
        }
    }
}

/// Makes components below a directory.
#[derive(Debug)]
pub(crate) struct FileStores {
    directory: PathBuf,
    errors: Arc<AtomicU64>,
}

/// One component.
#[derive(Debug)]
pub(crate) struct FileStore {
    component: ComponentId,
    bytes: File,
    sums: SumsFile,
    path: PathBuf,
    length: u64,
    errors: Arc<AtomicU64>,
}

impl FileStores {
    /// Components go below an existing directory.
    pub(crate) fn new(directory: &Path) -> FileStores {
        FileStores { directory: directory.to_path_buf(), errors: Arc::default() }
    }

    /// Calls to this host's storage that failed, of all components together.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Whether both files of a component are there.
    pub(crate) fn exists(&self, component: ComponentId, device: DeviceId) -> bool {
        let path = self.folder(device).join(component.to_string());
        path.is_file() && sums_path(&path).is_file()
    }

    /// Removes components that are not among these: no volume has them, because the server was killed between making
    /// or forgetting them and the next step.
    pub(crate) fn keep_only(&self, places: &[Place]) {
        let known: HashSet<PathBuf> = places
            .iter()
            .map(|place| component_path(&self.directory, place.device, place.component))
            .collect();
        let folders = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten();
        for path in files.flatten().map(|file| file.path()) {
            if is_of_a_component(&path) && !known.contains(&path.with_extension("")) {
                // It is not used any more; removal is tried again at the next start.
                let _tried_again_at_the_next_start = fs::remove_file(&path);
            }
        }
    }

    fn folder(&self, device: DeviceId) -> PathBuf {
        self.directory.join(device_folder(device))
    }

    /// Opens a component for looking at it; none if it is gone.
    pub(crate) fn look(
        &self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> io::Result<Option<FileStore>> {
        let path = component_path(&self.directory, device, component);
        let open = || -> io::Result<(File, File)> {
            Ok((File::open(&path)?, File::open(sums_path(&path))?))
        };
        match open() {
            Ok((bytes, sums)) => {
                let sums = SumsFile::to_look_at(sums);
                let errors = Arc::clone(&self.errors);
                Ok(Some(FileStore { component, bytes, sums, path, length, errors }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn store(
        &self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
        how: &OpenOptions,
    ) -> Result<FileStore, StoreError> {
        let folder = self.folder(device);
        let path = component_path(&self.directory, device, component);
        let open = || -> io::Result<(File, File)> {
            fs::create_dir_all(&folder)?;
            let (bytes, sums) = (how.open(&path)?, how.open(sums_path(&path))?);
            bytes.set_len(length)?;
            sums.set_len(length / BLOCK_BYTES as u64 * SUM_BYTES)?;
            Ok((bytes, sums))
        };
        let (bytes, sums) = open().map_err(|error| {
            self.errors.fetch_add(1, Ordering::Relaxed);
            failed(component, "open", 0, length, &error)
        })?;
        let errors = Arc::clone(&self.errors);
        Ok(FileStore { component, bytes, sums: SumsFile::of(sums), path, length, errors })
    }
}

/// Where the bytes of a component are.
pub(crate) fn component_path(
    directory: &Path,
    device: DeviceId,
    component: ComponentId,
) -> PathBuf {
    directory.join(device_folder(device)).join(component.to_string())
}

/// Whether a path is that of a component's bytes or checksums.
fn is_of_a_component(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    let number = path.file_stem().and_then(OsStr::to_str).and_then(|name| name.strip_prefix('c'));
    matches!(extension, None | Some("sums")) && number.is_some_and(|it| it.parse::<u32>().is_ok())
}

fn device_folder(device: DeviceId) -> String {
    format!("g{}-d{}", device.group.0, device.member)
}

/// The ranges of a file that are not holes.
fn data_of(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let length = file.metadata()?.len();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < length {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // There is no data from here to the end.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(file, SeekFrom::Hole(start))?;
        ranges.push((start, end - start));
        at = end;
    }
    Ok(ranges)
}

fn sums_path(path: &Path) -> PathBuf {
    path.with_extension("sums")
}

fn failed(
    component: ComponentId,
    operation: &'static str,
    offset: u64,
    length: u64,
    error: &io::Error,
) -> StoreError {
    tracing::error!("{component}: could not {operation} {length} bytes at {offset}: {error}");
    StoreError { component, operation, offset, length, cause: error.to_string() }
}

impl StoreMaker for FileStores {
    type Store = FileStore;

    fn create(
        &mut self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<FileStore, StoreError> {
        let mut how = OpenOptions::new();
        // Data that a component of that name held before a crash of this program is stale.
        how.read(true).write(true).create(true).truncate(true);
        self.store(component, device, length, &how)
    }

    fn remove(&mut self, component: ComponentId, store: FileStore) {
        for path in [store.path.clone(), sums_path(&store.path)] {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!("{component}: could not remove {}: {error}", path.display());
            }
        }
    }
}

impl FileStore {
    /// The bytes in which the component holds something, ascending: first byte, number of bytes. As exact as the file
    /// system's knowledge of holes; where it has none, everything.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub(crate) fn holds(&mut self) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut ranges = data_of(&self.bytes)
            .map_err(|error| failed(self.component, "survey", 0, self.length, &error))?;
        // A block that is known to be lost may hold no bytes, but has a checksum.
        let summed = data_of(self.sums.file())
            .map_err(|error| failed(self.component, "survey", 0, self.length, &error))?;
        let block = BLOCK_BYTES as u64;
        for (offset, length) in summed {
            let (mut first, end) = (offset / SUM_BYTES, (offset + length).div_ceil(SUM_BYTES));
            let end = end.min(self.length / block);
            while first < end {
                let mut sums = [0; SUMS_AT_ONCE];
                let count = (end - first).min(SUMS_AT_ONCE as u64);
                let sums = &mut sums[..count as usize];
                self.read_sums(first, sums)?;
                let held = (first..).zip(&*sums).filter(|(_, sum)| **sum != 0);
                ranges.extend(held.map(|(number, _)| (number * block, block)));
                first += count;
            }
        }
        ranges.sort_unstable();
        Ok(ranges)
    }

    /// The first block from `from` on that may hold something.
    pub(crate) fn next_content(&self, from: u64) -> io::Result<Option<u64>> {
        let block = BLOCK_BYTES as u64;
        Ok(next_data(&self.bytes, from * block)?.map(|at| at / block))
    }

    /// Punches a hole for whole blocks. The first half of a discard: until the second one, their checksums stay.
    pub(super) fn discard_bytes(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        if length == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let block = BLOCK_BYTES as u64;
        self.check_range(offset, length);
        // A hole in a part of a block would leave the rest of it with a checksum that is wrong.
        debug_assert!(offset.is_multiple_of(block) && length.is_multiple_of(block), "whole blocks");
        let outcome = fallocate(&self.bytes, flags, offset, length).map_err(io::Error::from);
        self.report("discard", offset, length, outcome)
    }

    /// Clears the checksums of whole blocks whose bytes are gone. The second half of a discard.
    pub(super) fn discard_sums(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        if length == 0 {
            return Ok(());
        }
        let block = BLOCK_BYTES as u64;
        let outcome = self.sums.discard(offset / block, length / block);
        self.report("discard the checksums of", offset, length, outcome)
    }

    /// The cluster addresses a component within its length, or the file would grow.
    fn check_range(&self, offset: u64, length: u64) {
        debug_assert!(
            offset.checked_add(length).is_some_and(|end| end <= self.length),
            "{length} bytes at {offset} of a component of {}",
            self.length
        );
    }

    fn report(
        &self,
        operation: &'static str,
        offset: u64,
        length: u64,
        outcome: io::Result<()>,
    ) -> Result<(), StoreError> {
        outcome.map_err(|error| {
            self.errors.fetch_add(1, Ordering::Relaxed);
            failed(self.component, operation, offset, length, &error)
        })
    }
}

impl BlockStore for FileStore {
    fn len_bytes(&self) -> u64 {
        self.length
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.check_range(offset, buffer.len() as u64);
        let outcome = self.bytes.read_exact_at(buffer, offset);
        self.report("read", offset, buffer.len() as u64, outcome)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.check_range(offset, bytes.len() as u64);
        let outcome = self.bytes.write_all_at(bytes, offset);
        self.report("write", offset, bytes.len() as u64, outcome)
    }

    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        self.discard_bytes(offset, length)?;
        self.discard_sums(offset, length)
    }

    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
        let outcome = self.sums.read(first, sums);
        self.report("read the checksums of", first, sums.len() as u64, outcome)
    }

    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
        let outcome = self.sums.write(first, sums);
        self.report("write the checksums of", first, sums.len() as u64, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileStore, FileStores};
    use crate::data_plane::{BlockStore, MemoryStore, StoreMaker};
    use crate::server::cluster::stores::Stores;
    use crate::server::cluster::test_directory::on_disk_and_in_memory;
    use proptest::prelude::{
        Just, Strategy, TestCaseError, any, prop_assert_eq, prop_oneof, proptest,
    };
    use std::path::Path;
    use underlay_model::cluster::{ComponentId, DeviceId, GroupId};

    /// Their checksums take two pages and a part of a third one.
    const BLOCKS: u64 = 2_600;
    const DEVICE: DeviceId = DeviceId { group: GroupId(2), member: 1 };

    #[derive(Clone, Debug)]
    enum Step {
        Write { sector: u64, sectors: usize, value: u8 },
        Discard { block: u64, blocks: u64 },
        Sums { first: u64, sums: Vec<u32> },
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..BLOCKS * 8 - 40, 1..40usize, any::<u8>())
                .prop_map(|(sector, sectors, value)| Step::Write { sector, sectors, value }),
            (0..BLOCKS - 20, 0..20u64).prop_map(|(block, blocks)| Step::Discard { block, blocks }),
            (0..BLOCKS - 300, proptest::collection::vec(any::<u32>(), 1..300))
                .prop_map(|(first, sums)| Step::Sums { first, sums }),
            (0..BLOCKS, 1..BLOCKS).prop_map(|(block, blocks)| Step::Discard {
                block,
                blocks: blocks.min(BLOCKS - block)
            }),
            Just(Step::Reopen),
        ]
    }

    fn apply<S: BlockStore>(store: &mut S, step: &Step) {
        match step {
            Step::Write { sector, sectors, value } => {
                store.write(sector * 512, &vec![*value; sectors * 512]).unwrap();
            }
            Step::Discard { block, blocks } => store.discard(block * 4096, blocks * 4096).unwrap(),
            Step::Sums { first, sums } => store.write_sums(*first, sums).unwrap(),
            Step::Reopen => {}
        }
    }

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        /// A file behaves like memory, also after it was closed and opened again.
        #[test]
        fn files_behave_like_memory(steps in proptest::collection::vec(step(), 1..40)) {
            for directory in on_disk_and_in_memory() {
                behaves_like_memory(directory.path(), &steps)?;
            }
        }
    }

    fn behaves_like_memory(directory: &Path, steps: &[Step]) -> Result<(), TestCaseError> {
        let mut stores = FileStores::new(directory);
        let mut memory = MemoryStore::new(BLOCKS * 4096);
        let mut file = stores.create(ComponentId(7), DEVICE, BLOCKS * 4096).unwrap();
        for step in steps {
            apply(&mut memory, step);
            apply(&mut file, step);
            if let Step::Reopen = step {
                file = stores.open(ComponentId(7), DEVICE, BLOCKS * 4096).unwrap();
            }
            same_sums(&mut file, &mut memory)?;
        }
        let mut looker = stores.look(ComponentId(7), DEVICE, BLOCKS * 4096).unwrap().unwrap();
        same_sums(&mut looker, &mut memory)?;
        drop(file);
        let mut file = stores.open(ComponentId(7), DEVICE, BLOCKS * 4096).unwrap();
        prop_assert_eq!(file.len_bytes(), memory.len_bytes());
        let (mut expected, mut found) = (vec![0; 4096], vec![1; 4096]);
        for block in 0..BLOCKS {
            memory.read(block * 4096, &mut expected).unwrap();
            file.read(block * 4096, &mut found).unwrap();
            prop_assert_eq!(&found, &expected);
        }
        same_sums(&mut file, &mut memory)?;
        stores.remove(ComponentId(7), file);
        prop_assert_eq!(std::fs::read_dir(directory.join("g2-d1")).unwrap().count(), 0);
        Ok(())
    }

    fn same_sums(file: &mut FileStore, memory: &mut MemoryStore) -> Result<(), TestCaseError> {
        let (mut expected, mut found) = (vec![0; BLOCKS as usize], vec![1; BLOCKS as usize]);
        memory.read_sums(0, &mut expected).unwrap();
        file.read_sums(0, &mut found).unwrap();
        prop_assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn a_survey_finds_what_is_held_and_what_is_known_to_be_lost() {
        let directory = tempfile::tempdir().unwrap();
        let mut stores = FileStores::new(directory.path());
        let mut file = stores.create(ComponentId(7), DEVICE, BLOCKS * 4096).unwrap();
        assert!(file.holds().unwrap().is_empty());
        file.write(20 * 4096, &[1; 4096]).unwrap();
        file.write_sums(500, &[9]).unwrap();
        let held = file.holds().unwrap();
        let covers = |block: u64| {
            let byte = block * 4096;
            held.iter().any(|(offset, length)| (*offset..offset + length).contains(&byte))
        };
        assert!(covers(20) && covers(500), "{held:?}");
        assert!(!covers(300), "{held:?}");
        assert!(stores.exists(ComponentId(7), DEVICE) && !stores.exists(ComponentId(8), DEVICE));
        std::fs::remove_file(directory.path().join("g2-d1").join("c7.sums")).unwrap();
        assert!(!stores.exists(ComponentId(7), DEVICE), "half of it is gone");
    }
}
