//! How threads are scheduled: with real-time priority, or giving way.

use std::io;

/// Gives the calling thread a real-time priority: 1 (lowest) to 99.
pub(crate) fn prioritise_thread(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// The calling thread takes its turn like any other, and never interrupts another one by waking up.
pub(crate) fn let_others_finish() -> io::Result<()> {
    set_policy(libc::SCHED_BATCH, 0)
}

fn set_policy(policy: libc::c_int, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a valid sched_param that outlives the call; thread 0 is the caller.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
