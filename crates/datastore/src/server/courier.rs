//! A second thread that sends answers to the kernel's FUSE, while requests come densely and no time is kept.
//!
//! Half of what the server does for a request is sending its answer: in that call the kernel ends the client's request and wakes
//! whoever waits for it, and what the block layer has put off is completed behind it. While there are more requests to be served
//! already, another processor can do that meanwhile. Nothing else is shared: requests are received and served, and answers are
//! decided, by one thread, in one order, without a lock, and what the courier is handed no longer changes.
//!
//! It is handed several answers at a time, so that waking it costs little per answer. When nothing else is to be done, the
//! serving thread sends what it has itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use tracing::{error, info, warn};

use super::completions::Completions;
use super::fuse_device::FuseDevice;
use super::outbox::Outbox;
use crate::scheduling::let_others_finish;

/// Answers that are handed over together: enough to share the wake-up, few enough that the first does not wait long for the last.
const TOGETHER: usize = 4;
/// With so many answers waiting for a processor, it is handed no more.
const BACKLOG_MAX: usize = 16;

/// The serving thread's end of it. Dropped, it ends when everything was sent.
pub(crate) struct Courier {
    bag: Arc<Bag>,
    thread: Option<JoinHandle<()>>,
}

/// How the thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Like the one that starts it.
    Inherited,
    /// As a thread that lets others finish.
    GivesWay,
}

/// What both threads reach into, for as long as it takes to move a few answers.
struct Bag {
    contents: Mutex<Contents>,
    filled: Condvar,
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Contents {
    /// To be sent.
    outbox: Outbox,
    /// With buffers that are not needed any more.
    returned: Outbox,
    is_waiting: bool,
    is_ending: bool,
}

impl Courier {
    /// Starts the thread. `bell` is rung should it fail.
    pub(crate) fn start(
        device: Arc<FuseDevice>,
        standing: Standing,
        bell: OwnedFd,
    ) -> io::Result<Courier> {
        Courier::start_with(move |outbox| outbox.send(&device), standing, bell)
    }

    /// With another way to send: `send` empties the outbox and returns how many answers there were.
    fn start_with(
        send: impl FnMut(&mut Outbox) -> usize + Send + 'static,
        standing: Standing,
        bell: OwnedFd,
    ) -> io::Result<Courier> {
        let bag = Arc::new(Bag {
            contents: Mutex::default(),
            filled: Condvar::new(),
            has_failed: AtomicBool::new(false),
        });
        let inside = Arc::clone(&bag);
        let thread = thread::Builder::new().name("courier".to_string()).spawn(move || {
            let _rings = RingsOnPanic(&inside, bell);
            if standing == Standing::GivesWay
                && let Err(error) = let_others_finish()
            {
                warn!("the courier stays as it is scheduled: {error}");
            }
            carry(&inside, send);
        })?;
        info!("a second thread sends answers while requests are dense and no time is kept");
        Ok(Courier { bag, thread: Some(thread) })
    }

    /// Hands over the answers of `outbox` if there are some and the courier keeps up, and takes back the buffers of earlier
    /// ones. An error: it has failed, and answers that it had are lost.
    pub(crate) fn hand_over(&self, outbox: &mut Outbox) -> io::Result<()> {
        if outbox.len() < TOGETHER {
            return Ok(());
        }
        let mut contents = self.bag.open()?;
        outbox.append_spent(&mut contents.returned);
        if contents.outbox.len() >= BACKLOG_MAX {
            return Ok(());
        }
        contents.outbox.append_answers(outbox);
        let is_waiting = std::mem::take(&mut contents.is_waiting);
        drop(contents);
        if is_waiting {
            self.bag.filled.notify_one();
        }
        Ok(())
    }

    /// An error if it has failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.bag.has_failed.load(Ordering::Acquire) { Err(failed()) } else { Ok(()) }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        match self.bag.open() {
            Ok(mut contents) => contents.is_ending = true,
            Err(_) => return,
        }
        self.bag.filled.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!("the courier has failed");
        }
    }
}

impl Bag {
    fn open(&self) -> io::Result<MutexGuard<'_, Contents>> {
        self.contents.lock().map_err(|_poisoned| failed())
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that sends answers has failed")
}

/// Makes sure that the serving thread sees it when the courier fails: somebody would wait for its answers for ever.
struct RingsOnPanic<'a>(&'a Bag, OwnedFd);

impl Drop for RingsOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.store(true, Ordering::Release);
            if let Err(error) = rustix::io::write(&self.1, &1u64.to_ne_bytes()) {
                error!("the end of the courier goes unnoticed: {error}");
            }
        }
    }
}

/// Has everything sent that comes, until the end.
fn carry(bag: &Bag, mut send: impl FnMut(&mut Outbox) -> usize) {
    let mut outbox = Outbox::default();
    let mut completions = Completions::new();
    // Who panicked with the bag open is the serving thread, and the server ends.
    while let Ok(mut contents) = bag.open() {
        contents.returned.append_spent(&mut outbox);
        if contents.outbox.len() == 0 && completions.are_waiting() {
            drop(contents);
            // Whoever gets these answers may have more to ask for already.
            completions.carry_out();
            continue;
        }
        while contents.outbox.len() == 0 {
            if contents.is_ending {
                return;
            }
            contents.is_waiting = true;
            let Ok(woken) = bag.filled.wait(contents) else { return };
            contents = woken;
        }
        outbox.append_answers(&mut contents.outbox);
        drop(contents);
        completions.note(send(&mut outbox));
        completions.carry_out_some();
    }
}

#[cfg(test)]
mod tests {
    use super::{BACKLOG_MAX, Courier, Outbox, Standing, TOGETHER};
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    fn held(answers: usize) -> Outbox {
        let mut outbox = Outbox::default();
        (0..answers as u64).for_each(|unique| outbox.answer(unique, &[]));
        outbox
    }

    #[test]
    fn everything_is_sent_before_the_end() {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let send = move |outbox: &mut Outbox| {
            let answers = std::mem::take(outbox).len();
            count.fetch_add(answers, Ordering::SeqCst);
            answers
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let courier = Courier::start_with(send, Standing::Inherited, bell).unwrap();
        let mut kept = 0;
        for round in 0..1_000 {
            let mut outbox = held(TOGETHER + round % 3);
            courier.hand_over(&mut outbox).unwrap();
            kept += outbox.len();
        }
        courier.check().unwrap();
        drop(courier);
        let handed_over = (0..1_000).map(|round| TOGETHER + round % 3).sum::<usize>() - kept;
        assert_eq!(sent.load(Ordering::SeqCst), handed_over);
    }

    #[test]
    fn few_answers_are_not_worth_it_and_too_many_are_not_taken() {
        let (go_on, may_go_on) = channel::<()>();
        let send = move |outbox: &mut Outbox| {
            // Until the other end is gone.
            let _ = may_go_on.recv();
            std::mem::take(outbox).len()
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let courier = Courier::start_with(send, Standing::Inherited, bell).unwrap();
        let mut few = held(TOGETHER - 1);
        courier.hand_over(&mut few).unwrap();
        assert_eq!(few.len(), TOGETHER - 1);
        // What it has taken to send is no backlog; how soon it does so is not known.
        let refused = (0..10).filter(|_| {
            let mut outbox = held(BACKLOG_MAX);
            courier.hand_over(&mut outbox).unwrap();
            outbox.len() == BACKLOG_MAX
        });
        assert!(refused.count() >= 8);
        drop(go_on);
    }

    #[test]
    fn its_failure_is_seen() {
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let send = |_: &mut Outbox| -> usize { panic!("for this test") };
        let rung = bell.try_clone().unwrap();
        let courier = Courier::start_with(send, Standing::Inherited, bell).unwrap();
        courier.hand_over(&mut held(TOGETHER)).unwrap();
        poll(&mut [PollFd::new(&rung, PollFlags::IN)], None).unwrap();
        assert!(courier.check().is_err());
    }
}
