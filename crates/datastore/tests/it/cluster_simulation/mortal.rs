//! Components whose program can be killed in the midst of a command: what it had stored until then stays, the rest does not happen.

use std::sync::{Arc, Mutex};
use underlay_datastore::data_plane::{
    BLOCK_BYTES, BlockStore, Intent, IntentLog, MemoryStore, MemoryStores, StoreError, StoreMaker,
};
use underlay_model::cluster::{ComponentId, DeviceId};

/// The program's life, shared by all that dies with it.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// Changes of stores until it ends; none if it does not.
    left: Arc<Mutex<Option<u32>>>,
}

impl Life {
    /// It ends after so many more changes of stores.
    pub fn ends_after(&self, changes: u32) {
        *self.left.lock().expect("one thread") = Some(changes);
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        *self.left.lock().expect("one thread") == Some(0)
    }

    /// Another one begins.
    pub fn begin(&self) {
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

/// Makes mortal components.
#[derive(Clone, Debug)]
pub struct MortalStores {
    pub life: Life,
}

/// A component in memory.
#[derive(Clone, Debug)]
pub struct MortalStore {
    life: Life,
    pub inner: MemoryStore,
}

impl StoreMaker for MortalStores {
    type Store = MortalStore;

    fn create(
        &mut self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<MortalStore, StoreError> {
        let inner = MemoryStores.create(component, device, length)?;
        Ok(MortalStore { life: self.life.clone(), inner })
    }

    fn remove(&mut self, _component: ComponentId, _store: MortalStore) {}
}

impl BlockStore for MortalStore {
    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.inner.read(offset, buffer)
    }

    /// Block by block: the host's page cache takes pages one after the other.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        for (at, block) in (offset..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES)) {
            if self.life.changes() {
                self.inner.write(at, block)?;
            }
        }
        Ok(())
    }

    fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
        // First the bytes, then the checksums, as files do it.
        if self.life.changes() {
            let block = BLOCK_BYTES as u64;
            for at in (offset..offset + length).step_by(BLOCK_BYTES) {
                if self.inner.allocated_blocks().any(|held| held == at / block) {
                    self.inner.write(at, &[0; BLOCK_BYTES])?;
                }
            }
        }
        if self.life.changes() { self.inner.discard(offset, length) } else { Ok(()) }
    }

    fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
        self.inner.read_sums(first, sums)
    }

    fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
        if self.life.changes() { self.inner.write_sums(first, sums) } else { Ok(()) }
    }
}

/// Notes that outlive the program.
#[derive(Clone, Debug)]
pub struct MortalIntents {
    pub life: Life,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    begun: bool,
    intents: Vec<Intent>,
}

impl MortalIntents {
    pub fn new(life: Life) -> MortalIntents {
        MortalIntents { life, notes: Arc::default() }
    }

    /// What is to be completed.
    pub fn take(&self) -> Vec<Intent> {
        let notes = std::mem::take(&mut *self.notes.lock().expect("one thread"));
        if notes.begun { notes.intents } else { Vec::new() }
    }

    fn note(&self, intent: Intent) {
        if !self.life.is_over() {
            self.notes.lock().expect("one thread").intents.push(intent);
        }
    }
}

impl IntentLog for MortalIntents {
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
        if !self.life.is_over() {
            self.notes.lock().expect("one thread").begun = true;
        }
    }

    fn end(&mut self) {
        if !self.life.is_over() {
            *self.notes.lock().expect("one thread") = Notes::default();
        }
    }
}
