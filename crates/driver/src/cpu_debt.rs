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

use underlay_core::{Dilation, Nanos};

use crate::cpu_cost::thread_cpu_ns;
use crate::server_task::{Account, ServerTask};

/// What a session owes.
#[derive(Debug)]
pub(crate) struct CpuDebt {
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
        debt(Account { ran_ns, queued_ns: 0 }, dilation)
    }
}

impl CpuDebt {
    /// From now on.
    pub(crate) fn of(task: &ServerTask, dilation: Dilation) -> CpuDebt {
        CpuDebt { dilation, seen: task.account().unwrap_or_default() }
    }

    /// What is owed for the work since the last call, in design time. Nothing once the process has ended.
    pub(crate) fn owed(&mut self, task: &ServerTask) -> Nanos {
        let Ok(now) = task.account() else { return Nanos::ZERO };
        let before = std::mem::replace(&mut self.seen, now);
        debt(now.since(before), self.dilation)
    }
}

fn debt(used: Account, dilation: Dilation) -> Nanos {
    let slower_by = u64::from(dilation.factor()) - 1;
    let wall_ns = used.ran_ns.saturating_mul(slower_by).saturating_sub(used.queued_ns);
    dilation.design(Nanos(wall_ns))
}

#[cfg(test)]
mod tests {
    use super::{Account, CpuDebt, OwnDebt};
    use crate::server_task::ServerTask;
    use underlay_core::{Dilation, Nanos};

    fn debt(ran_us: u64, queued_us: u64, factor: u32) -> Nanos {
        let account = Account { ran_ns: ran_us * 1_000, queued_ns: queued_us * 1_000 };
        super::debt(account, Dilation::new(factor).unwrap())
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
    fn a_process_owes_for_what_it_ran_and_is_not_asked_twice() {
        let dilation = Dilation::new(4).unwrap();
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let task = ServerTask::open(thread).unwrap();
        let mut debt = CpuDebt::of(&task, dilation);
        let mut owed_for_work = || {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let began = std::time::Instant::now();
            while began.elapsed() < std::time::Duration::from_millis(10) {
                std::hint::spin_loop();
            }
            debt.owed(&task)
        };
        // Who waits three times as long for a processor as it runs owes nothing: a crowded host is that slow. But who has
        // slept runs for a few milliseconds before it waits.
        let owed = (0..300).map(|_| owed_for_work()).find(|owed| *owed > Nanos::ZERO);
        let owed = owed.expect("it ran for more than a quarter of the time, once");
        assert!(owed <= Nanos::from_millis(30), "{owed}");
        assert!(debt.owed(&task) < owed);
    }
}
