//! The clock and the timers of one thread: a heap of due times over a single kernel timer.
//!
//! The runtime's own timers round up to whole milliseconds, which is as much as a whole transaction; a
//! timerfd fires within microseconds. A timer wakes a user of the thread by number, so it needs
//! neither an allocation nor a cancellation: a user that no longer waits looks around and
//! waits again.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::Instant;
use underlay_core::{Dilation, Nanos};

/// Design time since the origin of the run. The runtime's clock, so that tests can pause it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    dilation: Dilation,
}

impl Clock {
    pub(crate) fn new(origin: std::time::Instant, dilation: Dilation) -> Clock {
        Clock { origin: Instant::from_std(origin), dilation }
    }

    #[cfg(test)]
    pub(crate) fn paused(dilation: Dilation) -> Clock {
        Clock { origin: Instant::now(), dilation }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.dilation.design(Instant::now().duration_since(self.origin).into())
    }

    /// How design time translates into that of the host.
    pub(crate) fn dilation(&self) -> Dilation {
        self.dilation
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.origin + Duration::from(self.dilation.wall(at))
    }
}

/// Whom a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Token {
    /// The thread's regular round.
    Heartbeat,
    /// The arrival schedule.
    Arrival,
    /// The user in this slot of the thread.
    User(u32),
}

/// The source of wake-ups.
pub(crate) enum Alarm {
    /// A timer of the kernel.
    Kernel(AsyncFd<OwnedFd>),
    /// The runtime's timer, which follows its clock when that is paused. Tests only: it rounds
    /// up to milliseconds.
    #[cfg_attr(not(test), expect(dead_code, reason = "the paused clock of tests"))]
    Runtime { changed: Notify, due: Cell<Nanos> },
}

impl Alarm {
    /// A kernel timer on the current runtime.
    pub(crate) fn kernel() -> std::io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the registration owns the descriptor, and nothing else knows it or can close it.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        Ok(Alarm::Kernel(timer))
    }

    #[cfg(test)]
    pub(crate) fn runtime() -> Alarm {
        Alarm::Runtime { changed: Notify::new(), due: Cell::new(Nanos(u64::MAX)) }
    }

    fn arm(&self, due: Nanos, clock: &Clock) {
        match self {
            Alarm::Kernel(timer) => {
                // Zero would disarm it.
                let wait = due.saturating_sub(clock.now());
                let wait = clock.dilation.wall(wait).0.max(1);
                let value = Itimerspec {
                    it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                    it_value: Timespec {
                        tv_sec: (wait / 1_000_000_000) as i64,
                        tv_nsec: (wait % 1_000_000_000) as i64,
                    },
                };
                timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &value)
                    .expect("the timer is open and the time is in range");
            }
            Alarm::Runtime { changed, due: armed } => {
                armed.set(due);
                changed.notify_one();
            }
        }
    }

    async fn fired(&self, clock: &Clock) {
        match self {
            Alarm::Kernel(timer) => {
                // Reading the timer is not needed: each expiry is an edge of its own.
                let mut guard = timer.readable().await.expect("the runtime outlives its tasks");
                guard.clear_ready();
            }
            Alarm::Runtime { changed, due } => loop {
                let far = Nanos(due.get().0.min(clock.now().0 + 3_600_000_000_000));
                tokio::select! {
                    () = tokio::time::sleep_until(clock.instant(far)) => return,
                    () = changed.notified() => {}
                }
            },
        }
    }
}

/// The timers of one thread.
pub(crate) struct Timers {
    clock: Clock,
    alarm: Alarm,
    heap: RefCell<BinaryHeap<Reverse<(Nanos, Token)>>>,
    /// What the alarm is set to; zero while due timers are being handed out.
    armed: Cell<Nanos>,
    /// The clock when timers were last handed out.
    reached: Cell<Nanos>,
}

impl Timers {
    pub(crate) fn new(clock: Clock, alarm: Alarm) -> Timers {
        Timers {
            clock,
            alarm,
            heap: RefCell::default(),
            armed: Cell::new(Nanos(u64::MAX)),
            reached: Cell::new(clock.now()),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether timers due at `due` have been handed out: a clock reading less than asking the clock.
    pub(crate) fn reached(&self, due: Nanos) -> bool {
        due <= self.reached.get()
    }

    /// Wakes `token` once `due` is reached.
    pub(crate) fn set(&self, due: Nanos, token: Token) {
        self.heap.borrow_mut().push(Reverse((due, token)));
        if due < self.armed.get() {
            self.armed.set(due);
            self.alarm.arm(due, &self.clock);
        }
    }

    /// Waits until at least one timer is due; gives the time that it then is.
    pub(crate) async fn wait(&self) -> Nanos {
        let top = self.heap.borrow().peek().map(|Reverse((due, _))| *due);
        match top {
            Some(due) => {
                self.armed.set(due);
                self.alarm.arm(due, &self.clock);
            }
            None => self.armed.set(Nanos(u64::MAX)),
        }
        self.alarm.fired(&self.clock).await;
        // New timers are looked at before the next wait anyway.
        self.armed.set(Nanos::ZERO);
        let now = self.clock.now();
        self.reached.set(now);
        now
    }

    /// Takes one timer that is due at `now`.
    pub(crate) fn take_due(&self, now: Nanos) -> Option<(Nanos, Token)> {
        let mut heap = self.heap.borrow_mut();
        let Reverse((due, _)) = heap.peek()?;
        if *due > now {
            return None;
        }
        heap.pop().map(|Reverse(timer)| timer)
    }
}
