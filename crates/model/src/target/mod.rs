//! What a simulation drives: volumes that take requests and give completions, by a virtual clock.
//!
//! Devices of a [`Store`], or a cluster. What asks (block loads, a database engine) and the loop
//! over virtual time are the simulations' own.

mod cluster;

pub use cluster::{ClusterTarget, ClusterTargetError, WriteBuffers};

use crate::{Finished, Request, RequestId, Store};
use underlay_core::Nanos;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetOutcome {
    /// Done.
    Ok,
    /// Refused with an I/O error.
    Failed,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetFinished {
    /// The name it was submitted under.
    pub slot: u32,
    /// When it completed.
    pub at: Nanos,
    /// Time it waited for others inside the target.
    pub queue: Nanos,
    /// How it ended.
    pub outcome: TargetOutcome,
}

/// Volumes in virtual time.
///
/// Time never goes back: `submit` and `advance` are called with the same or a later `now` than before.
pub trait Target {
    /// Accepts a request to a volume. It comes back from [`Target::advance`] under `slot`.
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32);

    /// When something will happen next inside the target; none when it is idle.
    fn next_wakeup(&self) -> Option<Nanos>;

    /// Moves the target to `now` and appends what completed by then, in order of time.
    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>);

    /// Moves the target until something has completed, though not beyond `limit`; appends everything that completed at that
    /// moment, and returns when that was.
    fn advance_to_finish(&mut self, limit: Nanos, finished: &mut Vec<TargetFinished>) -> Nanos {
        while let Some(now) = self.next_wakeup().filter(|now| *now <= limit) {
            self.advance(now, finished);
            if !finished.is_empty() {
                return now;
            }
        }
        limit
    }
}

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
