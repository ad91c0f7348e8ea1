//! Tasks of other threads for the serving thread, carried out between its turns.
//!
//! A task is a closure: only the sender knows what it does; the serving thread does not need to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

/// What is to be done with `S`.
type Task<S> = Box<dyn FnOnce(&mut S) + Send>;

/// The serving thread's end. Becomes readable when a task is waiting.
pub struct TaskQueue<S> {
    event: OwnedFd,
    sent: Receiver<Task<S>>,
}

/// Another thread's end; clones share it.
pub struct TaskSender<S> {
    event: Arc<OwnedFd>,
    sent: Sender<Task<S>>,
}

/// Both ends.
///
/// # Errors
/// When the system has no event for them.
pub fn task_queue<S>() -> io::Result<(TaskSender<S>, TaskQueue<S>)> {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let (sender, receiver) = channel();
    let shared = Arc::new(event.try_clone()?);
    Ok((TaskSender { event: shared, sent: sender }, TaskQueue { event, sent: receiver }))
}

impl<S> Clone for TaskSender<S> {
    fn clone(&self) -> TaskSender<S> {
        TaskSender { event: Arc::clone(&self.event), sent: self.sent.clone() }
    }
}

impl<S> TaskSender<S> {
    /// Has something done, soon.
    ///
    /// # Errors
    /// When the serving thread has ended, or could not be woken.
    pub fn send(&self, task: impl FnOnce(&mut S) + Send + 'static) -> io::Result<()> {
        if self.sent.send(Box::new(task)).is_err() {
            return Err(io::Error::other("the server is shutting down"));
        }
        // The counter of the event overflows after 2^64 tasks.
        rustix::io::write(&*self.event, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

impl<S> TaskQueue<S> {
    /// Resets the event, so that it can be signalled again. A task is waiting whenever it was.
    pub(crate) fn clear_event(&self) -> io::Result<()> {
        match rustix::io::read(&self.event, &mut [0u8; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Does what is waiting. Costs nearly nothing when nothing is.
    pub(crate) fn run_waiting(&self, server: &mut S) {
        for task in self.sent.try_iter() {
            task(server);
        }
    }
}

impl<S> AsFd for TaskQueue<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
