//! Where the sessions' time goes, as shares of what is not think time.

use crate::analysis::TimeClass;
use crate::verdict::situation::Situation;
use crate::verdict::time_budget::TimeBudget;

/// Shares of the session time without think time.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) client: f64,
    /// On the modelled network of a remote client.
    pub(super) network: f64,
    /// Nothing of a load generator within the server's limits: its work is the server's use of processors.
    pub(super) driver: f64,
    pub(super) driver_limit: f64,
    pub(super) cpu: f64,
    pub(super) run_queue: f64,
    pub(super) cpu_limit: f64,
    pub(super) host_io: f64,
    /// Waiting for the log, behind data writes or not.
    pub(super) log: f64,
    /// The part of it behind data writes.
    pub(super) log_behind_data: f64,
    pub(super) read: f64,
    pub(super) write: f64,
    pub(super) lock: f64,
    pub(super) latch: f64,
    /// Of all session time, think time included: what clients spend outside the server.
    pub(super) thinking: f64,
    /// Running, runnable and stopped by the server's limit, of the time not spent at the client.
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
        let network = share(TimeClass::ClientNetwork);
        let driver_limit = share(TimeClass::DriverLimit);
        let (driver, within) = match situation.client_is_local {
            true => (0.0, share(TimeClass::Driver)),
            false => (share(TimeClass::Driver), 0.0),
        };
        let (cpu, run_queue) = (share(TimeClass::Cpu) + within, share(TimeClass::RunQueue));
        let (cpu_limit, log_behind_data) =
            (share(TimeClass::CpuLimit), share(TimeClass::LogBehindData));
        let busy = (1.0 - client - network - driver - driver_limit).max(f64::MIN_POSITIVE);
        Shares {
            client,
            network,
            driver,
            driver_limit,
            cpu,
            run_queue,
            cpu_limit,
            host_io: share(TimeClass::HostIo),
            log: share(TimeClass::Log) + log_behind_data,
            log_behind_data,
            read: share(TimeClass::DataRead),
            write: share(TimeClass::DataWrite),
            lock: share(TimeClass::Lock),
            latch: share(TimeClass::Latch),
            thinking: budget.of_class(TimeClass::Client) / total.max(f64::MIN_POSITIVE),
            cpu_of_busy: (cpu + run_queue + cpu_limit) / busy,
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
            self.log_candidate(),
            ("data-read", "waiting for data reads", self.read),
            ("data-write", "waiting for data writes", self.write),
            ("lock", "waiting for locks of other transactions", self.lock),
            ("latch", "waiting for latches", self.latch),
            self.cpu_candidate(),
            ("host-io", "in I/O of this host beyond the modelled device's", self.host_io),
        ];
        classes.sort_by(|a, b| b.2.total_cmp(&a.2));
        classes
    }

    /// The log, named by what its I/O waits for.
    fn log_candidate(&self) -> (&'static str, &'static str, f64) {
        match self.log_behind_data > 0.5 * self.log {
            true => ("log-behind-data", "waiting for the log", self.log),
            false => ("log", "waiting for the log", self.log),
        }
    }

    /// Processors, named by what keeps sessions from them.
    pub(super) fn cpu_candidate(&self) -> (&'static str, &'static str, f64) {
        let share = self.cpu + self.run_queue + self.cpu_limit;
        match self.cpu_limit > self.run_queue {
            true => ("cpu-limit", "running or stopped by the server's CPU limit", share),
            false => ("cpu", "running or waiting for a processor", share),
        }
    }

    pub(super) fn largest_server_share(&self) -> f64 {
        self.candidates().first().map_or(0.0, |class| class.2)
    }
}
