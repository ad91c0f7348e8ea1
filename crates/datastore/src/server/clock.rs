//! Wall time for the models: nanoseconds of CLOCK_MONOTONIC since the server started.

use rustix::time::{ClockId, Timespec, clock_gettime};
use underlay_core::Nanos;

/// The clock of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin_ns: monotonic_ns() }
    }

    /// Time since the start.
    pub(crate) fn now(self) -> Nanos {
        Nanos(monotonic_ns() - self.origin_ns)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A length of time as the kernel wants it.
pub(crate) fn timespec(length: Nanos) -> Timespec {
    Timespec {
        tv_sec: (length.0 / 1_000_000_000) as i64,
        tv_nsec: (length.0 % 1_000_000_000) as i64,
    }
}
