//! Stores of a server that is killed on demand, for tests: what it had stored until then stays, nothing after it happens.
//!
//! They stand between the server and its files ([`super::stores::Stores`]) and count two points for every change of them, just
//! before and just after it: of bytes, checksums and either half of a discard, of components that are made and removed, of
//! what is noted to begin and to end, and of the file of the memory. A kill unwinds from its point to [`killed`], past
//! whatever the server would have done next.
//!
//! What is not here: a kill within a single write, of which the page cache keeps all or nothing that matters.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::data_plane::{BlockStore, IntentLog, StoreError, StoreMaker};
use underlay_model::cluster::{ComponentId, DeviceId};

use super::file_store::{FileStore, FileStores};
use super::stores::Stores;
use crate::error::DatastoreError;

/// What unwinds when the server is killed.
struct Killed;

/// How many more points the server lives for; shared with its stores.
#[derive(Clone, Debug, Default)]
pub(super) struct Fuse(Arc<Mutex<Option<u32>>>);

impl Fuse {
    /// The server is killed at the point after so many more of them.
    pub(super) fn light(&self, points: u32) {
        *self.0.lock().expect("no holder of this lock panics") = Some(points);
    }

    /// A change is about to happen, or has just happened.
    fn burn(&self) {
        let before = {
            let mut left = self.0.lock().expect("no holder of this lock panics");
            let before = *left;
            *left = before.map(|left| left.saturating_sub(1));
            before
        };
        if before == Some(0) {
            // Past the panic hook: it is no failure.
            resume_unwind(Box::new(Killed));
        }
    }

    /// Makes a change, unless the server is killed before it.
    fn around<T>(&self, change: impl FnOnce() -> T) -> T {
        self.burn();
        let outcome = change();
        self.burn();
        outcome
    }
}

/// Lets the server live; tells whether it was killed. Other panics go on.
pub(super) fn killed(live: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(live)) {
        Ok(()) => false,
        Err(cause) if cause.is::<Killed>() => true,
        Err(cause) => resume_unwind(cause),
    }
}

/// Files below a directory, until the fuse has burnt down.
#[derive(Debug)]
pub(super) struct CrashingStores {
    files: FileStores,
    fuse: Fuse,
}

impl CrashingStores {
    pub(super) fn new(directory: &Path, fuse: &Fuse) -> CrashingStores {
        CrashingStores { files: FileStores::new(directory), fuse: fuse.clone() }
    }
}

/// One component.
#[derive(Debug)]
pub(super) struct CrashingStore {
    file: FileStore,
    fuse: Fuse,
}

impl StoreMaker for CrashingStores {
    type Store = CrashingStore;

    fn create(
        &mut self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<CrashingStore, StoreError> {
        let file = self.fuse.around(|| self.files.create(component, device, length))?;
        Ok(CrashingStore { file, fuse: self.fuse.clone() })
    }

    fn remove(&mut self, component: ComponentId, store: CrashingStore) {
        self.fuse.around(|| self.files.remove(component, store.file));
    }
}

impl Stores for CrashingStores {
    fn open(
        &self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<CrashingStore, StoreError> {
        let file = self.files.open(component, device, length)?;
        Ok(CrashingStore { file, fuse: self.fuse.clone() })
    }

    fn files(&self) -> &FileStores {
        &self.files
    }

    fn intent_log(
        &self,
        directory: &Path,
        unit_bytes: u64,
    ) -> Result<Box<dyn IntentLog>, DatastoreError> {
        let log = self.files.intent_log(directory, unit_bytes)?;
        Ok(Box::new(CrashingLog { log, fuse: self.fuse.clone() }))
    }

    fn replace_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.fuse.around(|| self.files.replace_file(path, content))
    }
}

impl BlockStore for CrashingStore {
    fn len_bytes(&self) -> u64 {
        self.file.len_bytes()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.file.read(offset, buffer)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.fuse.around(|| self.file.write(offset, bytes))
    }

    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        self.fuse.around(|| self.file.discard_bytes(offset, length))?;
        self.fuse.around(|| self.file.discard_sums(offset, length))
    }

    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
        self.file.read_sums(first, sums)
    }

    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
        self.fuse.around(|| self.file.write_sums(first, sums))
    }
}

/// What is noted of a command; only its beginning and its end count.
#[derive(Debug)]
struct CrashingLog {
    log: Box<dyn IntentLog>,
    fuse: Fuse,
}

impl IntentLog for CrashingLog {
    fn store(&mut self, component: ComponentId, offset_bytes: u64, bytes: &[u8], sums: &[u32]) {
        self.log.store(component, offset_bytes, bytes, sums);
    }

    fn sums(&mut self, component: ComponentId, offset_bytes: u64, sums: &[u32]) {
        self.log.sums(component, offset_bytes, sums);
    }

    fn discard(&mut self, component: ComponentId, offset_bytes: u64, length_bytes: u64) {
        self.log.discard(component, offset_bytes, length_bytes);
    }

    fn begin(&mut self) {
        self.fuse.around(|| self.log.begin());
    }

    fn end(&mut self) {
        self.fuse.around(|| self.log.end());
    }
}
