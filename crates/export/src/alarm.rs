//! The timer that wakes the server for the next answer.
//!
//! Setting a timer makes a virtual machine leave to its hypervisor, which costs as much as serving a request. So it is
//! set only when the next answer comes before what it is set to, and never taken back: waking for
//! nothing now and then is cheaper. A timeout of `poll` would set and cancel one for every request.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use underlay_core::Nanos;

use super::clock::Clock;

/// A timer that becomes readable when it expires.
pub(crate) struct Alarm {
    descriptor: OwnedFd,
    clock: Clock,
    set_to: Option<Nanos>,
}

impl Alarm {
    pub(crate) fn new(clock: Clock) -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Alarm { descriptor, clock, set_to: None })
    }

    /// Makes sure that the timer expires at `at` or before.
    pub(crate) fn by(&mut self, at: Nanos) -> io::Result<()> {
        if self.set_to.is_some_and(|set_to| set_to <= at) {
            return Ok(());
        }
        let monotonic = self.clock.monotonic(at);
        let once =
            Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: monotonic };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once)?;
        self.set_to = Some(at);
        Ok(())
    }

    /// After it became readable: what it had been set to. It is not set any more.
    pub(crate) fn expired(&mut self) -> io::Result<Option<Nanos>> {
        match rustix::io::read(&self.descriptor, &mut [0u8; 8]) {
            Ok(_) => {
                debug_assert!(self.set_to.is_some(), "only a timer that was set expires");
                Ok(self.set_to.take())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Alarm, Clock};
    use rustix::event::{PollFd, PollFlags, poll};
    use underlay_core::{Dilation, Nanos};

    fn wait(alarm: &Alarm) {
        poll(&mut [PollFd::new(alarm, PollFlags::IN)], None).unwrap();
    }

    #[test]
    fn never_expires_early() {
        let clock = Clock::start(Dilation::NONE);
        let mut alarm = Alarm::new(clock).unwrap();
        for delay_us in [0, 100, 2_000] {
            let at = clock.now() + Nanos::from_micros(delay_us);
            alarm.by(at).unwrap();
            wait(&alarm);
            assert!(clock.now() >= at);
            assert_eq!(alarm.expired().unwrap(), Some(at));
            assert_eq!(alarm.expired().unwrap(), None);
        }
    }

    #[test]
    fn only_ever_moves_forward() {
        let clock = Clock::start(Dilation::NONE);
        let mut alarm = Alarm::new(clock).unwrap();
        let soon = clock.now() + Nanos::from_millis(1);
        alarm.by(soon).unwrap();
        alarm.by(clock.now() + Nanos::from_secs(60)).unwrap();
        wait(&alarm);
        assert_eq!(alarm.expired().unwrap(), Some(soon));
    }
}
