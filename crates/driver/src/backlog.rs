//! Where arrivals meet users: a bounded queue of due times, and the users that wait for one.
//!
//! The user that has waited longest takes the next arrival, so that the load spreads over users and
//! their warehouses. When the queue is full the newest arrival is dropped and counted: the
//! requested load was then not delivered.

use std::cell::RefCell;
use std::collections::VecDeque;

use underlay_core::Nanos;

use crate::slot::Slot;

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// A user took it.
    Taken,
    /// It waits for a user.
    Queued,
    /// It was dropped.
    Overflowed,
}

/// The arrivals of one thread that no user has taken yet, and the users that have none.
pub(crate) struct Backlog {
    limit: usize,
    queue: RefCell<VecDeque<Nanos>>,
    idle: RefCell<VecDeque<u32>>,
}

impl Backlog {
    pub(crate) fn new(limit: usize) -> Backlog {
        Backlog { limit, queue: RefCell::default(), idle: RefCell::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.queue.borrow().len() as u64
    }

    /// An arrival falls due.
    pub(crate) fn offer(&self, due: Nanos, slots: &[Slot]) -> Offered {
        if let Some(index) = self.idle.borrow_mut().pop_front() {
            let slot = &slots[index as usize];
            slot.handed.set(Some(due));
            slot.wake();
            return Offered::Taken;
        }
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= self.limit {
            return Offered::Overflowed;
        }
        queue.push_back(due);
        Offered::Queued
    }

    /// The oldest arrival of the queue.
    pub(crate) fn take(&self) -> Option<Nanos> {
        self.queue.borrow_mut().pop_front()
    }

    /// Waits for an arrival for the user `index`, unless `give_up` says so. An arrival that was
    /// handed over is always taken.
    pub(crate) async fn wait(
        &self,
        slots: &[Slot],
        index: u32,
        give_up: impl Fn() -> bool,
    ) -> Option<Nanos> {
        self.idle.borrow_mut().push_back(index);
        let slot = &slots[index as usize];
        slot.until(|| {
            if let Some(due) = slot.handed.take() {
                Some(Some(due))
            } else if give_up() {
                self.idle.borrow_mut().retain(|idle| *idle != index);
                Some(None)
            } else {
                None
            }
        })
        .await
    }
}
