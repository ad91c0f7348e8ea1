//! What the server asks of the kernel so that it keeps time and cannot deadlock with its own clients.
//!
//! Every request may be refused (containers, no root): the server then works, with worse timing, and says so.

use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;
use rustix::thread::set_current_timer_slack;
use tracing::warn;

use crate::scheduling::{let_others_finish, prioritise_thread};

/// Prepares the whole process. Call before threads start: they inherit.
pub fn prepare_process() {
    // Memory reclaim on behalf of the server must not wait for write-back that needs the server.
    if let Err(error) = configure_io_flusher_behavior(true) {
        warn!("not exempt from write-back throttling: {error}; heavy memory pressure may stall it");
    }
    // Pages stay once they are there; those never touched (thread stacks) are not brought in.
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    if let Err(error) = mlockall(flags) {
        warn!("memory is not locked: {error}; page faults may delay answers");
    }
    // The default of 50 us would be added to every wait.
    if let Err(error) = set_current_timer_slack(NonZeroU64::new(1)) {
        warn!("timer slack not reduced: {error}; answers will be up to 50 us late");
    }
}

/// How the serving thread stands to all others.
///
/// With real-time priority it runs as soon as it has something to do, which keeps time. But the loop device's worker is
/// interrupted by each request that it brings, if both run on one CPU: they take turns request by request, and switching costs
/// as much as serving. So while there is no time to keep and requests follow each other closely, the thread lets others finish
/// what they do, finds more to serve at once, and completes more at once. Once it runs it is not interrupted in turn by the
/// kernel's thread for what its answers complete: it has that done itself ([`super::completions`]), several at a time.
#[derive(Debug, Default)]
pub(crate) struct Precedence {
    /// `None` while no priority was granted.
    priority: Option<i32>,
    gives_way: bool,
}

impl Precedence {
    /// Asks for a real-time priority for the calling thread, which must be the one that uses this.
    pub(crate) fn ask(priority: i32) -> Precedence {
        match prioritise_thread(priority) {
            Ok(()) => Precedence { priority: Some(priority), gives_way: false },
            Err(error) => {
                warn!(
                    "no real-time priority: {error}; answers will be late when the CPUs are busy"
                );
                Precedence::default()
            }
        }
    }

    /// Whether the priority was granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.priority.is_some()
    }

    /// Whether the thread gives way at present.
    pub(crate) fn gives_way(&self) -> bool {
        self.gives_way
    }

    /// Gives way from now on, or no longer. Costs a system call when that changes, else nothing.
    pub(crate) fn give_way(&mut self, gives_way: bool) {
        let Some(priority) = self.priority.filter(|_| self.gives_way != gives_way) else { return };
        let outcome = match gives_way {
            true => let_others_finish(),
            false => prioritise_thread(priority),
        };
        match outcome {
            Ok(()) => self.gives_way = gives_way,
            Err(error) => {
                warn!("could not change the scheduling of the serving thread: {error}");
                self.priority = None;
            }
        }
    }
}
