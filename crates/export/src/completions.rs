//! Completions of block requests that the kernel has put off, carried out at a moment of our choice.
//!
//! An answer to the kernel's FUSE ends a request of the loop device, and the block layer leaves what is to be done about
//! that (ending the client's I/O, waking it) to a soft interrupt. Raised by a system call of a thread, it is carried out by
//! the thread `ksoftirqd` of this CPU, unless an earlier moment comes at which the kernel looks for soft interrupts: the
//! end of any section that keeps them off (`local_bh_enable` in `kernel/softirq.c`). Left to `ksoftirqd`, either every
//! answer costs two switches, or, where it may not interrupt, the client waits for the last answer of many, and all others
//! wait for the client.
//!
//! The cheapest such section within reach is a socket's lock. It is a habit of the kernel, not a promise: without it this costs
//! a system call for several answers and changes nothing.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// Answers that are given before their completions are carried out: enough to share the call, few enough that a client with
/// 32 requests in flight has something to do meanwhile.
const TOGETHER: usize = 8;

/// What was answered and may wait for its completion.
#[derive(Debug)]
pub(crate) struct Completions {
    /// Connected to nothing; none where there may be no sockets.
    socket: Option<UnixDatagram>,
    waiting: usize,
}

impl Completions {
    pub(crate) fn new() -> Completions {
        let socket = UnixDatagram::unbound();
        let socket = socket.inspect_err(|error| tracing::warn!("completions will wait: {error}"));
        Completions { socket: socket.ok(), waiting: 0 }
    }

    /// Notes answers given.
    pub(crate) fn note(&mut self, answers: usize) {
        self.waiting += answers;
    }

    /// Has the completions carried out of what was answered since the last time, once there are some.
    pub(crate) fn carry_out_some(&mut self) {
        if self.waiting >= TOGETHER {
            self.carry_out();
        }
    }

    /// Has them carried out if there are any. Returns whether there were.
    pub(crate) fn carry_out(&mut self) -> bool {
        if std::mem::take(&mut self.waiting) == 0 {
            return false;
        }
        let Some(socket) = &self.socket else { return false };
        if let Err(error) = pass_through_lock(socket) {
            tracing::warn!("completions will wait: {error}");
            self.socket = None;
        }
        true
    }
}

/// Sets a property to what it is, for which the kernel takes the socket's lock and releases it.
fn pass_through_lock(socket: &UnixDatagram) -> io::Result<()> {
    let least_bytes: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the value lives across the call and has the length that is given.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const least_bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::{Completions, TOGETHER};

    #[test]
    fn completions_are_carried_out_once() {
        let mut completions = Completions::new();
        assert!(!completions.carry_out(), "nothing was answered");
        completions.note(TOGETHER - 1);
        completions.carry_out_some();
        assert!(completions.carry_out(), "too few to be carried out before");
        completions.note(1);
        completions.note(TOGETHER - 1);
        completions.carry_out_some();
        assert!(!completions.carry_out(), "there were enough");
        assert!(completions.socket.is_some(), "the kernel took the call");
    }
}
