//! Wall time for the models: nanoseconds of CLOCK_MONOTONIC since the server started.

use rustix::time::{ClockId, Timespec, clock_gettime};
use underlay_core::Nanos;

const SECOND_NS: u64 = 1_000_000_000;

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

    /// The moment `at` as CLOCK_MONOTONIC shows it.
    pub(crate) fn monotonic(self, at: Nanos) -> Timespec {
        let ns = self.origin_ns.saturating_add(at.0);
        Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}
