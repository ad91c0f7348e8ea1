//! The processor speed of a dilated session: the time that its server process saved by running at full
//! speed is waited for afterwards.
//!
//! Under a time dilation of N a session is to have an Nth of a processor's speed. Its process runs at full speed,
//! in bursts far below the millisecond that a control group's limit or the scheduler's deadlines can tell apart. So
//! the load generator takes an answer only after the time that the slower processor would still have needed: (N - 1)
//! times what the process ran. What the process waited for a processor of the host counts towards that, because the
//! dilated machine has N times as many.
//!
//! Exact in the sum for latencies and for throughput. Not for what other sessions see: locks that a transaction holds
//! are released before its debt is paid, and its requests for storage follow each other more closely. Work that other
//! processes do for the session (parallel workers, a checkpoint) is not slowed.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use underlay_core::{Dilation, Nanos};
use underlay_database::SessionError;
use underlay_database::session::{Connector, Session};

use crate::cpu_cost::thread_cpu_ns;

/// A session and what it owes.
pub(crate) struct PacedSession<S> {
    pub(crate) session: S,
    /// None in real time, and where no server is behind the session.
    debt: Option<CpuDebt>,
}

impl<S: Session> PacedSession<S> {
    /// Opens a session.
    pub(crate) async fn open<C: Connector<Session = S>>(
        connector: &C,
        dilation: Dilation,
    ) -> Result<PacedSession<S>, SessionError> {
        let mut session = connector.connect().await?;
        let task = match dilation.is_dilated() {
            true => session.server_task().await?,
            false => None,
        };
        // A process that cannot be followed has ended, which the first request will show.
        let debt = task.and_then(|task| CpuDebt::of(task, dilation).ok());
        Ok(PacedSession { session, debt })
    }

    /// How long its last answer is to be held back, in design time.
    pub(crate) fn owed(&mut self) -> Nanos {
        self.debt.as_mut().map_or(Nanos::ZERO, CpuDebt::owed)
    }
}

/// Follows one process or thread of a server on this host.
#[derive(Debug)]
pub(crate) struct CpuDebt {
    account: File,
    dilation: Dilation,
    seen: Account,
}

/// What a thread of the load generator owes for its own work, where it shares the dilated server's processors.
///
/// A thread serves many users: what it ran since the last transaction of any of them is held against the one whose answer
/// has come. Exact in the sum, like the rest.
#[derive(Debug)]
pub(crate) struct OwnDebt {
    /// None where the load generator's speed is its own.
    dilation: Option<Dilation>,
    seen_ns: Cell<u64>,
}

impl OwnDebt {
    /// Of the calling thread.
    pub(crate) fn new(shares_server_cpu: bool, dilation: Dilation) -> OwnDebt {
        let dilation = Some(dilation).filter(|it| shares_server_cpu && it.is_dilated());
        OwnDebt { dilation, seen_ns: Cell::new(thread_cpu_ns()) }
    }

    /// What is owed for the work since the last call, in design time. Called on the thread.
    pub(crate) fn owed(&self) -> Nanos {
        let Some(dilation) = self.dilation else { return Nanos::ZERO };
        let now_ns = thread_cpu_ns();
        let ran_ns = now_ns.saturating_sub(self.seen_ns.replace(now_ns));
        Account { ran_ns, queued_ns: 0 }.debt(dilation)
    }
}

/// What the kernel counts for a process or thread, wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    /// On a processor.
    ran_ns: u64,
    /// Runnable without one.
    queued_ns: u64,
}

impl CpuDebt {
    /// Begins to follow a process or thread.
    ///
    /// # Errors
    /// Where the kernel keeps no accounts (`CONFIG_SCHED_INFO`), or there is no such process.
    pub(crate) fn of(task: u32, dilation: Dilation) -> io::Result<CpuDebt> {
        let account = File::open(format!("/proc/{task}/schedstat"))?;
        let seen = Account::read(&account)?;
        Ok(CpuDebt { account, dilation, seen })
    }

    /// What is owed for the work since the last call, in design time. Nothing once the process has ended.
    pub(crate) fn owed(&mut self) -> Nanos {
        let Ok(now) = Account::read(&self.account) else { return Nanos::ZERO };
        let before = std::mem::replace(&mut self.seen, now);
        now.since(before).debt(self.dilation)
    }
}

impl Account {
    /// Reads `<time on a processor> <time on a run queue> <time slices>`; see sched-stats in the kernel's documentation.
    fn read(file: &File) -> io::Result<Account> {
        let mut text = [0u8; 96];
        let length = file.read_at(&mut text, 0)?;
        Account::parse(&text[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &[u8]) -> Option<Account> {
        let mut words = std::str::from_utf8(text).ok()?.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        Some(Account { ran_ns: number()?, queued_ns: number()? })
    }

    fn since(self, before: Account) -> Account {
        Account {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
        }
    }

    fn debt(self, dilation: Dilation) -> Nanos {
        let slower_by = u64::from(dilation.factor()) - 1;
        let wall_ns = self.ran_ns.saturating_mul(slower_by).saturating_sub(self.queued_ns);
        dilation.design(Nanos(wall_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, CpuDebt, OwnDebt};
    use underlay_core::{Dilation, Nanos};

    fn debt(ran_us: u64, queued_us: u64, factor: u32) -> Nanos {
        let account = Account { ran_ns: ran_us * 1_000, queued_ns: queued_us * 1_000 };
        account.debt(Dilation::new(factor).unwrap())
    }

    #[test]
    fn a_slower_processor_takes_as_much_longer() {
        // 800 us took 800 us of wall time, 100 us of design time: 700 us are missing.
        assert_eq!(debt(800, 0, 8), Nanos::from_micros(700));
        assert_eq!(debt(800, 1_600, 8), Nanos::from_micros(500));
        assert_eq!(debt(800, 100_000, 8), Nanos::ZERO);
        assert_eq!(debt(800, 0, 1), Nanos::ZERO);
    }

    #[test]
    fn a_thread_owes_for_its_own_work_where_it_shares_the_servers_processors() {
        let dilation = Dilation::new(4).unwrap();
        let work = || {
            let began = std::time::Instant::now();
            while began.elapsed() < std::time::Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        };
        let shared = OwnDebt::new(true, dilation);
        work();
        // Three quarters of at most the time that went by.
        let owed = shared.owed();
        assert!(owed > Nanos::ZERO && owed <= Nanos::from_millis(60), "{owed}");
        assert!(shared.owed() < owed);
        for of in [OwnDebt::new(false, dilation), OwnDebt::new(true, Dilation::NONE)] {
            work();
            assert_eq!(of.owed(), Nanos::ZERO);
        }
    }

    #[test]
    fn accounts_of_the_kernel_are_read() {
        let account = Account { ran_ns: 12, queued_ns: 34 };
        assert_eq!(Account::parse(b"12 34 5\n"), Some(account));
        assert_eq!(Account::parse(b"12"), None);
        assert_eq!(Account::parse(b""), None);
    }

    #[test]
    fn a_process_owes_for_what_it_ran_and_is_not_asked_twice() {
        let dilation = Dilation::new(4).unwrap();
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let mut debt = CpuDebt::of(thread, dilation).unwrap();
        let mut owed_for_work = || {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let began = std::time::Instant::now();
            while began.elapsed() < std::time::Duration::from_millis(10) {
                std::hint::spin_loop();
            }
            debt.owed()
        };
        // Who waits three times as long for a processor as it runs owes nothing: a crowded host is that slow. But who has
        // slept runs for a few milliseconds before it waits.
        let owed = (0..300).map(|_| owed_for_work()).find(|owed| *owed > Nanos::ZERO);
        let owed = owed.expect("it ran for more than a quarter of the time, once");
        assert!(owed <= Nanos::from_millis(30), "{owed}");
        assert!(debt.owed() < owed);
        assert!(CpuDebt::of(u32::MAX, dilation).is_err());
    }
}
