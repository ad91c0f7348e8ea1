//! Ctrl-C and SIGTERM as a flag that the lab looks at between steps.
//!
//! The handler only sets a flag: the lab finishes what must be finished (stop the load, stop the
//! server, unwind the teardown stack) and ends with its own exit code. A second signal ends the
//! waiting inside a step sooner, never the removal.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static SIGNALS: AtomicUsize = AtomicUsize::new(0);
/// Work is being done that a request to stop does not end.
static SHIELDED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Takes over SIGINT and SIGTERM for this process.
pub fn install() {
    take_over(0);
}

/// Takes over one SIGINT and one SIGTERM; a second one ends the process at once. For commands that leave nothing on the
/// host.
pub fn install_for_one() {
    take_over(libc::SA_RESETHAND);
}

fn take_over(flags: libc::c_int) {
    // SAFETY: `on_signal` only increments an atomic, which is async-signal-safe, and the action
    // struct is fully initialised (zeroed, then its handler, flags and mask are set).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    SIGNALS.load(Ordering::Relaxed) > 0
}

/// Whether work in progress is to be given up: the user asked to stop, and it is not [`shielded`].
pub fn gives_up() -> bool {
    requested() && !SHIELDED.load(Ordering::Relaxed)
}

/// Does work that a request to stop does not end: without it, what was done before would be lost.
pub fn shielded<T>(work: impl FnOnce() -> T) -> T {
    SHIELDED.store(true, Ordering::Relaxed);
    let done = work();
    SHIELDED.store(false, Ordering::Relaxed);
    done
}

/// Sleeps until `deadline`, or until the user asks to stop. Returns whether it may go on.
pub fn sleep_until(deadline: Instant) -> bool {
    loop {
        if requested() {
            return false;
        }
        let now = Instant::now();
        if now >= deadline {
            return true;
        }
        // A signal interrupts the sleep of only one thread, so look again soon.
        std::thread::sleep((deadline - now).min(Duration::from_millis(50)));
    }
}
