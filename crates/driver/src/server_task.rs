//! The process or thread of a server that works for a session: what the kernel counts of its processor time.
//!
//! It deliberately knows no dilation and no workload.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use underlay_core::Nanos;

/// Shortest time between two transactions of a thread whose processor time is measured. A measurement reads two accounts, about
/// 5 us in all; so it uses at most a 200th of a processor.
const BETWEEN_MEASUREMENTS: Nanos = Nanos::from_millis(1);

/// What the kernel counts for a process or thread, wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// On a processor.
    pub(crate) ran_ns: u64,
    /// Runnable without one.
    pub(crate) queued_ns: u64,
}

/// Follows one process or thread of this host.
#[derive(Debug)]
pub(crate) struct ServerTask {
    schedstat: File,
}

impl ServerTask {
    /// Opens its account.
    ///
    /// # Errors
    /// Where the kernel keeps no accounts (`CONFIG_SCHED_INFO`), or there is no such process.
    pub(crate) fn open(task: u32) -> io::Result<ServerTask> {
        let task = ServerTask { schedstat: File::open(format!("/proc/{task}/schedstat"))? };
        task.account().map(|_| task)
    }

    /// What it used since its start. A process that runs at this moment may have used up to a tick of the kernel more.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn account(&self) -> io::Result<Account> {
        let mut text = [0u8; 96];
        let length = self.schedstat.read_at(&mut text, 0)?;
        Account::parse(&text[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Account {
    /// Reads `<time on a processor> <time on a run queue> <time slices>`; see sched-stats in the kernel's documentation.
    fn parse(text: &[u8]) -> Option<Account> {
        let mut words = std::str::from_utf8(text).ok()?.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        Some(Account { ran_ns: number()?, queued_ns: number()? })
    }

    pub(crate) fn since(self, before: Account) -> Account {
        Account {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
        }
    }
}

/// Which transactions of a thread are measured: one from time to time, whatever its type.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    due: Cell<Nanos>,
}

impl Measurements {
    /// Whether one that begins now is measured; the next ones are not for a while.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        let is_due = now >= self.due.get();
        if is_due {
            self.due.set(now + BETWEEN_MEASUREMENTS);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, BETWEEN_MEASUREMENTS, Measurements, ServerTask};
    use underlay_core::Nanos;

    #[test]
    fn accounts_of_the_kernel_are_read() {
        let account = Account { ran_ns: 12, queued_ns: 34 };
        assert_eq!(Account::parse(b"12 34 5\n"), Some(account));
        assert_eq!(Account::parse(b"12"), None);
        assert_eq!(Account::parse(b""), None);
        assert!(ServerTask::open(u32::MAX).is_err());
    }

    #[test]
    fn measurements_are_a_while_apart() {
        let measurements = Measurements::default();
        let now = Nanos::from_secs(1);
        assert!(measurements.is_due(now));
        assert!(!measurements.is_due(now + Nanos(BETWEEN_MEASUREMENTS.0 - 1)));
        assert!(measurements.is_due(now + BETWEEN_MEASUREMENTS));
        assert!(!measurements.is_due(now + BETWEEN_MEASUREMENTS));
    }
}
