//! Wall time for the models: nanoseconds of CLOCK_MONOTONIC since the server started, and a timer on it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
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

/// A timer that one thread waits on and any thread sets. Setting it wakes nobody before it expires,
/// which is why it is used instead of a condition variable with a timeout.
#[derive(Debug)]
pub(crate) struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
}

impl Timer {
    pub(crate) fn new(clock: Clock) -> io::Result<Timer> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Timer { descriptor, clock })
    }

    /// Lets the timer expire at `at`, in place of any earlier setting. In the past means now.
    pub(crate) fn set(&self, at: Nanos) -> io::Result<()> {
        // Absolute zero would disarm the timer; the clock is never that early.
        let monotonic_ns = (self.clock.origin_ns + at.0).max(1);
        let value = Timespec {
            tv_sec: (monotonic_ns / 1_000_000_000) as i64,
            tv_nsec: (monotonic_ns % 1_000_000_000) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    /// Waits for the timer to expire.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut expirations = [0u8; 8];
        loop {
            match rustix::io::read(&self.descriptor, &mut expirations) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Timer};
    use underlay_core::Nanos;

    #[test]
    fn the_timer_never_expires_early() {
        let clock = Clock::start();
        let timer = Timer::new(clock).unwrap();
        for delay_us in [0, 100, 2_000] {
            let at = clock.now() + Nanos::from_micros(delay_us);
            timer.set(at).unwrap();
            timer.wait().unwrap();
            assert!(clock.now() >= at);
        }
    }
}
