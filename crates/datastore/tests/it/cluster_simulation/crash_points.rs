//! Components whose program can be killed in the midst of a command: what it had stored until then stays, the rest does not happen.

use std::sync::{Arc, Mutex};
use underlay_datastore::data_plane::{
    BLOCK_BYTES, BlockStore, Intent, IntentLog, MemoryStore, MemoryStores, StoreError, StoreMaker,
};
use underlay_model::cluster::{ComponentId, DeviceId};

/// When the program dies: after so many changes of stores. Shared by all that dies with it.
#[derive(Clone, Debug, Default)]
pub struct CrashPoint {
    /// Changes of stores until it is reached; none if it never is.
    left: Arc<Mutex<Option<u32>>>,
}

impl CrashPoint {
    /// It is reached after so many more changes of stores.
    pub fn set_after(&self, changes: u32) {
        *self.left.lock().expect("one thread") = Some(changes);
    }

    /// Whether the program is dead.
    pub fn is_reached(&self) -> bool {
        *self.left.lock().expect("one thread") == Some(0)
    }

    /// A new program starts, which nothing kills.
    pub fn clear(&self) {
        *self.left.lock().expect("one thread") = None;
    }

    /// Whether a change still happens.
    fn changes(&self) -> bool {
        let mut left = self.left.lock().expect("one thread");
        match &mut *left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

/// Makes components that stop at the crash point.
#[derive(Clone, Debug)]
pub struct CrashingStores {
    pub crash_point: CrashPoint,
}

/// A component in memory.
#[derive(Clone, Debug)]
pub struct CrashingStore {
    crash_point: CrashPoint,
    pub inner: MemoryStore,
}

impl StoreMaker for CrashingStores {
    type Store = CrashingStore;

    fn create(
        &mut self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<CrashingStore, StoreError> {
        let inner = MemoryStores.create(component, device, length)?;
        Ok(CrashingStore { crash_point: self.crash_point.clone(), inner })
    }

    fn remove(&mut self, _component: ComponentId, _store: CrashingStore) {}
}

impl BlockStore for CrashingStore {
    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.inner.read(offset, buffer)
    }

    /// Block by block: the host's page cache takes pages one after the other.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        for (at, block) in (offset..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES)) {
            if self.crash_point.changes() {
                self.inner.write(at, block)?;
            }
        }
        Ok(())
    }

    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        // First the bytes, then the checksums, as files do it.
        if self.crash_point.changes() {
            let block = BLOCK_BYTES as u64;
            for at in (offset..offset + length).step_by(BLOCK_BYTES) {
                if self.inner.allocated_blocks().any(|held| held == at / block) {
                    self.inner.write(at, &[0; BLOCK_BYTES])?;
                }
            }
        }
        if self.crash_point.changes() { self.inner.discard(offset, length) } else { Ok(()) }
    }

    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
        self.inner.read_sums(first, sums)
    }

    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
        if self.crash_point.changes() { self.inner.write_sums(first, sums) } else { Ok(()) }
    }
}

/// Notes that outlive the program.
#[derive(Clone, Debug)]
pub struct CrashingIntents {
    pub crash_point: CrashPoint,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    begun: bool,
    intents: Vec<Intent>,
}

impl CrashingIntents {
    pub fn new(crash_point: CrashPoint) -> CrashingIntents {
        CrashingIntents { crash_point, notes: Arc::default() }
    }

    /// What is to be completed.
    pub fn take(&self) -> Vec<Intent> {
        let notes = std::mem::take(&mut *self.notes.lock().expect("one thread"));
        if notes.begun { notes.intents } else { Vec::new() }
    }

    fn note(&self, intent: Intent) {
        if !self.crash_point.is_reached() {
            self.notes.lock().expect("one thread").intents.push(intent);
        }
    }
}

impl IntentLog for CrashingIntents {
    fn store(&mut self, component: ComponentId, offset_bytes: u64, bytes: &[u8], sums: &[u32]) {
        let (bytes, sums) = (bytes.to_vec(), sums.to_vec());
        self.note(Intent::Store { component, offset_bytes, bytes, sums });
    }

    fn sums(&mut self, component: ComponentId, offset_bytes: u64, sums: &[u32]) {
        self.note(Intent::Sums { component, offset_bytes, sums: sums.to_vec() });
    }

    fn discard(&mut self, component: ComponentId, offset_bytes: u64, length_bytes: u64) {
        self.note(Intent::Discard { component, offset_bytes, length_bytes });
    }

    fn begin(&mut self) {
        if !self.crash_point.is_reached() {
            self.notes.lock().expect("one thread").begun = true;
        }
    }

    fn end(&mut self) {
        if !self.crash_point.is_reached() {
            *self.notes.lock().expect("one thread") = Notes::default();
        }
    }
}
