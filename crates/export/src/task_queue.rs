//! What other threads want done by the serving thread, between its turns.
//!
//! An errand is a closure: only the sender knows what it does; the serving thread does not need to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

/// Something to be done with `S`.
type Errand<S> = Box<dyn FnOnce(&mut S) + Send>;

/// The serving thread's end. Becomes readable when an errand is waiting.
pub struct Errands<S> {
    bell: OwnedFd,
    sent: Receiver<Errand<S>>,
}

/// Another thread's end; clones share it.
pub struct ErrandSender<S> {
    bell: Arc<OwnedFd>,
    sent: Sender<Errand<S>>,
}

/// Both ends.
///
/// # Errors
/// When the system has no event for them.
pub fn errands<S>() -> io::Result<(ErrandSender<S>, Errands<S>)> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let (sender, receiver) = channel();
    let ring = Arc::new(bell.try_clone()?);
    Ok((ErrandSender { bell: ring, sent: sender }, Errands { bell, sent: receiver }))
}

impl<S> Clone for ErrandSender<S> {
    fn clone(&self) -> ErrandSender<S> {
        ErrandSender { bell: Arc::clone(&self.bell), sent: self.sent.clone() }
    }
}

impl<S> ErrandSender<S> {
    /// Has something done, soon.
    ///
    /// # Errors
    /// When the serving thread has ended, or could not be woken.
    pub fn send(&self, errand: impl FnOnce(&mut S) + Send + 'static) -> io::Result<()> {
        if self.sent.send(Box::new(errand)).is_err() {
            return Err(io::Error::other("the server is shutting down"));
        }
        // The counter of the bell overflows after 2^64 errands.
        rustix::io::write(&*self.bell, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

impl<S> Errands<S> {
    /// Lets the bell be rung again. An errand is waiting whenever it has been.
    pub(crate) fn quiet_bell(&self) -> io::Result<()> {
        match rustix::io::read(&self.bell, &mut [0u8; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Does what is waiting. Costs nearly nothing when nothing is.
    pub(crate) fn run_waiting(&self, server: &mut S) {
        for errand in self.sent.try_iter() {
            errand(server);
        }
    }
}

impl<S> AsFd for Errands<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
