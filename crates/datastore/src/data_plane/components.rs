//! The components that exist, and what they share: the memory for undo data, the logs, and the first failure of a store.
//!
//! What is not here: what is done with their bytes.

use super::block_store::{BlockStore, StoreError};
use super::held::Held;
use super::intent::IntentLog;
use super::unmarked::SharedLog;
use underlay_model::cluster::ComponentId;

/// Volatile bytes remembered of all components together, evenly shared: memory must not grow with the number of volumes.
const VOLATILE_BYTES_MAX: usize = 64 << 20;

/// The components that exist, by number.
#[derive(Debug)]
pub(super) struct Components<S> {
    pub(super) held: Vec<Option<Held<S>>>,
    /// Commands carried out so far.
    pub(super) moment: u64,
    /// How many there are, those whose writes can be lost, and by how many what is remembered of them is divided.
    pub(super) count: usize,
    pub(super) volatile: usize,
    pub(super) sharers: usize,
    /// Notes what is about to happen; none where nothing outlives the process.
    pub(super) intents: Option<Box<dyn IntentLog>>,
    /// Keeps what could not be marked on the components themselves; none where nothing outlives the process.
    pub(super) marks: Option<SharedLog>,
    /// Writes that a store did not accept, and the first of them that has not been reported yet.
    pub(super) failures: u64,
    pub(super) failure: Option<StoreError>,
}

impl<S: BlockStore> Components<S> {
    pub(super) fn get_mut(&mut self, id: ComponentId) -> Option<&mut Held<S>> {
        let held = self.held.get_mut(id.0 as usize)?.as_mut()?;
        held.be_at(self.moment);
        Some(held)
    }

    /// Takes into account whether a store took what it was given; returns that.
    pub(super) fn note(&mut self, stored: Result<(), StoreError>) -> bool {
        let Err(error) = stored else { return true };
        self.failures += 1;
        self.failure.get_or_insert(error);
        false
    }

    /// Where what is about to happen is noted.
    pub(super) fn intents(&mut self) -> Option<&mut (dyn IntentLog + 'static)> {
        self.intents.as_deref_mut()
    }

    pub(super) fn put(&mut self, id: ComponentId, mut held: Held<S>) {
        let index = id.0 as usize;
        if self.held.len() <= index {
            self.held.resize_with(index + 1, || None);
        }
        held.limit_undo(VOLATILE_BYTES_MAX / self.sharers);
        if let Some(log) = &self.marks {
            held.keep_marks(id, log);
        }
        self.volatile += usize::from(held.is_volatile());
        self.count += 1;
        let before = self.held[index].replace(held);
        self.count -= usize::from(before.is_some());
        self.volatile -= usize::from(before.is_some_and(|before| before.is_volatile()));
        self.share_undo();
    }

    pub(super) fn take(&mut self, id: ComponentId) -> Option<Held<S>> {
        let held = self.held.get_mut(id.0 as usize)?.take()?;
        debug_assert!(self.volatile >= usize::from(held.is_volatile()), "taken out twice");
        self.volatile -= usize::from(held.is_volatile());
        self.count -= 1;
        self.share_undo();
        Some(held)
    }

    /// Divides the memory for undo data among the components, and again only when their number has
    /// doubled or halved.
    fn share_undo(&mut self) {
        debug_assert!(self.volatile <= self.count, "more volatile components than all");
        debug_assert!(self.count <= self.held.len(), "more components than places");
        // Next to volatile components, others may have to remember as well.
        let sharers = if self.volatile > 0 { self.count.next_power_of_two() } else { 1 };
        if sharers != self.sharers {
            self.sharers = sharers;
            let share = VOLATILE_BYTES_MAX / sharers;
            self.held.iter_mut().flatten().for_each(|held| held.limit_undo(share));
        }
    }
}
