//! How threads are scheduled: with real-time priority, or giving way.

use std::io;

use rustix::process::setpriority_process;

/// Of a thread that lets others finish. What its work wakes on the same CPU, by the hundred thousand per second, is not due before
/// it then. Of a CPU that others want as well it may have most while it has work, as with real-time priority.
const NICENESS: i32 = -15;

/// Gives the calling thread a real-time priority: 1 (lowest) to 99.
pub(crate) fn prioritise_thread(priority: i32) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// The calling thread never interrupts another one by waking up; once it has its turn it is hardly interrupted by others.
pub(crate) fn let_others_finish() -> io::Result<()> {
    // May be refused to those who were granted a real-time priority; then it is interrupted more often.
    let _stays_as_it_is = setpriority_process(None, NICENESS);
    set_policy(libc::SCHED_BATCH, 0)
}

fn set_policy(policy: libc::c_int, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a valid sched_param that outlives the call; thread 0 is the caller.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
