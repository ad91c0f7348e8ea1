//! What the server asks of the kernel so that it keeps time and cannot deadlock with its own clients.
//!
//! Every request may be refused (containers, no root): the server then works, with worse timing, and says so.

use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;
use rustix::thread::set_current_timer_slack;
use tracing::warn;

use crate::scheduling::prioritise_thread;

/// Prepares the whole process. Call before threads start: they inherit.
pub(crate) fn prepare_process() {
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

/// Gives the calling thread a real-time priority. Returns whether it was granted.
pub(crate) fn prioritise(priority: i32) -> bool {
    let outcome = prioritise_thread(priority);
    if let Err(error) = &outcome {
        warn!("no real-time priority: {error}; answers will be late when the CPUs are busy");
    }
    outcome.is_ok()
}
