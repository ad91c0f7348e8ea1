//! Volumes on devices as a target.
//!
//! What is not here: faults; whatever a store says of a request counts as done.

use super::target::{Target, TargetFinished, TargetOutcome};
use crate::{Finished, Request, RequestId, Store};
use underlay_core::Nanos;

/// Volumes on devices as a target.
#[derive(Clone, Debug)]
pub struct StoreTarget {
    store: Store,
    finished: Vec<Finished>,
}

impl StoreTarget {
    /// Drives that store.
    pub fn new(store: Store) -> StoreTarget {
        StoreTarget { store, finished: Vec::new() }
    }

    /// The store, for its counters.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Target for StoreTarget {
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32) {
        self.store.submit(now, volume, request, RequestId(u64::from(slot)));
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.store.next_wakeup()
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>) {
        self.store.advance(now, &mut self.finished);
        finished.extend(self.finished.drain(..).map(|done| TargetFinished {
            // Slots are 32 bits wide, and were widened by `submit`.
            slot: done.request.0 as u32,
            at: done.at,
            queue: done.queue,
            outcome: TargetOutcome::Ok,
        }));
    }
}
