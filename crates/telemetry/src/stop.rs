//! The signal that ends all threads of a collector, and the sleep that hears it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Set once, heard by every sleeping thread.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// The time has come.
    Due,
    /// The collector stops.
    Stopped,
}

impl StopSignal {
    /// Ends all present and future sleeps.
    pub(crate) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps until `deadline` or the stop, whichever is first.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Wakeup {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *stopped {
                return Wakeup::Stopped;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Wakeup::Due;
            }
            let (guard, _) =
                self.changed.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner);
            stopped = guard;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{StopSignal, Wakeup};
    use std::time::{Duration, Instant};

    #[test]
    fn a_sleep_ends_when_due_or_at_once_when_stopped() {
        let signal = StopSignal::default();
        let due = Instant::now() + Duration::from_millis(5);
        assert_eq!(signal.sleep_until(due), Wakeup::Due);
        assert!(Instant::now() >= due);
        signal.stop();
        assert_eq!(signal.sleep_until(due + Duration::from_secs(3600)), Wakeup::Stopped);
    }
}
