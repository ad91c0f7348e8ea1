//! A fixed number of permits among the users of one thread, first come, first served.
//!
//! Used twice: for the connections of a pool, and for the number of sessions that are opened at the
//! same time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::slot::Slot;

/// Permits and the queue for them.
pub(crate) struct Permits {
    free: Cell<u32>,
    waiting: RefCell<VecDeque<u32>>,
}

/// Whether a permit was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Without waiting.
    AtOnce,
    /// After waiting.
    Waited,
    /// No: the user gave up.
    GaveUp,
}

impl Permits {
    pub(crate) fn new(permits: u32) -> Permits {
        Permits { free: Cell::new(permits), waiting: RefCell::default() }
    }

    /// Waits for a permit for the user `index`, unless `give_up` says so.
    pub(crate) async fn acquire(
        &self,
        slots: &[Slot],
        index: u32,
        give_up: impl Fn() -> bool,
    ) -> Grant {
        if self.free.get() > 0 {
            self.free.set(self.free.get() - 1);
            return Grant::AtOnce;
        }
        self.waiting.borrow_mut().push_back(index);
        let slot = &slots[index as usize];
        slot.until(|| {
            if slot.granted.take() {
                Some(Grant::Waited)
            } else if give_up() {
                self.waiting.borrow_mut().retain(|waiting| *waiting != index);
                Some(Grant::GaveUp)
            } else {
                None
            }
        })
        .await
    }

    /// Gives a permit back: to the user who has waited longest, if any.
    pub(crate) fn release(&self, slots: &[Slot]) {
        match self.waiting.borrow_mut().pop_front() {
            Some(next) => {
                let slot = &slots[next as usize];
                slot.granted.set(true);
                slot.wake();
            }
            None => self.free.set(self.free.get() + 1),
        }
    }
}
