//! What a thread knows about each of its users, and how a user waits.
//!
//! A user waits for one thing at a time: to be activated, for a due time, for an arrival, for a
//! permit, for an answer. All of these are one primitive: look at a condition, leave the waker in
//! the slot, look again when woken. Whoever changes a condition wakes the slot.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use underlay_core::Nanos;

/// What a user is doing, as far as others must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Waiting, or nothing.
    #[default]
    Waiting,
    /// Opening a session since this time.
    Connecting(Nanos),
    /// In an attempt of a transaction since this time.
    Transaction(Nanos),
}

/// The shared face of one virtual user. All of one thread, so plain cells do.
#[derive(Default)]
pub(crate) struct Slot {
    waker: RefCell<Option<Waker>>,
    /// What it is doing.
    pub(crate) doing: Cell<Doing>,
    /// Set to cut the current attempt off; its session is then given up.
    pub(crate) cut: Cell<bool>,
    /// Set by [`Permits`](crate::permits::Permits) when a permit was passed to it.
    pub(crate) granted: Cell<bool>,
    /// The arrival that was handed to it.
    pub(crate) handed: Cell<Option<Nanos>>,
    /// Whether it got its first session.
    pub(crate) ready: Cell<bool>,
    /// Whether it is part of an outage.
    pub(crate) affected: Cell<bool>,
}

impl Slot {
    /// Lets the user look at its condition again.
    pub(crate) fn wake(&self) {
        // Taken, not cloned: the user leaves its waker again when it goes on waiting.
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits until `condition` gives a value.
    pub(crate) fn until<T>(
        &self,
        mut condition: impl FnMut() -> Option<T>,
    ) -> impl Future<Output = T> {
        poll_fn(move |context| match condition() {
            Some(value) => Poll::Ready(value),
            None => {
                self.leave_waker(context);
                Poll::Pending
            }
        })
    }

    /// Runs `work` to its end, or until the slot is cut off: then none.
    pub(crate) async fn unless_cut<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if self.cut.get() {
                return Poll::Ready(None);
            }
            self.leave_waker(context);
            Poll::Pending
        })
        .await
    }

    fn leave_waker(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &*waker {
            Some(known) if known.will_wake(context.waker()) => {}
            _ => *waker = Some(context.waker().clone()),
        }
    }
}
