//! Where the sessions' time goes, as shares of what is not think time.

use crate::analysis::TimeClass;
use crate::verdict::situation::Situation;
use crate::verdict::time_budget::TimeBudget;

/// Shares of the session time without think time.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) client: f64,
    pub(super) driver: f64,
    pub(super) cpu: f64,
    pub(super) run_queue: f64,
    pub(super) log: f64,
    pub(super) read: f64,
    pub(super) write: f64,
    pub(super) lock: f64,
    pub(super) latch: f64,
    /// Of all session time, think time included: what clients spend outside the server.
    pub(super) thinking: f64,
    /// Running and runnable, of the time not spent at the client.
    pub(super) cpu_of_busy: f64,
    /// Largest class of the holders of locks.
    pub(super) holder: Option<(TimeClass, f64)>,
}

impl Shares {
    pub(super) fn of(budget: &TimeBudget, situation: &Situation) -> Shares {
        let total = budget.total();
        let thinking = situation.thinking_users().min(budget.of_class(TimeClass::Client));
        let active = (total - thinking).max(f64::MIN_POSITIVE);
        let share = |class| budget.of_class(class) / active;
        let client = (budget.of_class(TimeClass::Client) - thinking) / active;
        let driver = share(TimeClass::Driver);
        let (cpu, run_queue) = (share(TimeClass::Cpu), share(TimeClass::RunQueue));
        let busy = (1.0 - client - driver).max(f64::MIN_POSITIVE);
        Shares {
            client,
            driver,
            cpu,
            run_queue,
            log: share(TimeClass::Log),
            read: share(TimeClass::DataRead),
            write: share(TimeClass::DataWrite),
            lock: share(TimeClass::Lock),
            latch: share(TimeClass::Latch),
            thinking: budget.of_class(TimeClass::Client) / total.max(f64::MIN_POSITIVE),
            cpu_of_busy: (cpu + run_queue) / busy,
            holder: budget
                .holders
                .iter()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map(|(class, share)| (*class, *share)),
        }
    }

    /// The classes among which the largest decides, largest first.
    pub(super) fn candidates(&self) -> Vec<(&'static str, &'static str, f64)> {
        let mut classes = vec![
            ("log", "waiting for the log", self.log),
            ("data-read", "waiting for data reads", self.read),
            ("data-write", "waiting for data writes", self.write),
            ("lock", "waiting for locks of other transactions", self.lock),
            ("latch", "waiting for latches", self.latch),
            ("cpu", "running or waiting for a processor", self.cpu + self.run_queue),
        ];
        classes.sort_by(|a, b| b.2.total_cmp(&a.2));
        classes
    }

    pub(super) fn largest_server_share(&self) -> f64 {
        self.candidates().first().map_or(0.0, |class| class.2)
    }
}
