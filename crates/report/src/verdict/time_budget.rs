//! The time budget: where the sessions' time goes, in session-seconds per second.
//!
//! The engine's session samples name what sessions wait for, but two things they cannot see: whether an active
//! session is on a processor or only runnable, and that an "idle" session may long have work that its
//! process gets no processor for (three of eight induced bottlenecks look the same in the samples). Both
//! come from the scheduler's counters of the server's and the driver's processes.

use std::collections::BTreeMap;

use crate::analysis::{BudgetPart, TimeClass};
use crate::observed::{CpuFacts, DriverFacts, WaitSummary};

/// Names of the server's process tree, one per engine.
pub(crate) const SERVERS: [&str; 2] = ["postgres", "mariadb"];
/// Name of the load generator's process tree.
const DRIVER: &str = "driver";

/// The figure of the server's process tree.
pub(crate) fn of_server(figures: &BTreeMap<String, f64>) -> Option<f64> {
    SERVERS.iter().find_map(|name| figures.get(*name).copied())
}

/// Mean number of sessions per class. The classes are exclusive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimeBudget {
    pub(crate) sessions: BTreeMap<TimeClass, f64>,
    /// Share of each class among the holders of locks.
    pub(crate) holders: BTreeMap<TimeClass, f64>,
}

impl TimeBudget {
    /// The budget of a window of `users` from its samples and the scheduler's counters.
    ///
    /// Without the latter, `Cpu` includes runnable sessions and `Client` everything idle. Sessions of users
    /// that are not active do not belong to it.
    pub(crate) fn of(
        waits: &WaitSummary,
        cpu: &CpuFacts,
        driver: &DriverFacts,
        users: u32,
    ) -> TimeBudget {
        let mut sessions = waits.sessions.clone();
        let unused = driver.sessions.map_or(0.0, |open| (open - f64::from(users)).max(0.0));
        if let Some(idle) = sessions.get_mut(&TimeClass::Client) {
            *idle = (*idle - unused).max(0.0);
        }
        if let (Some(on_cpu), Some(run_queue)) = (of_server(&cpu.on_cpu), of_server(&cpu.run_queue))
        {
            split_server_time(&mut sessions, on_cpu, run_queue);
        }
        let running = driver.cores.or_else(|| cpu.on_cpu.get(DRIVER).copied());
        if let Some(running) = running {
            let runnable = cpu.run_queue.get(DRIVER).copied().unwrap_or(0.0);
            move_part(&mut sessions, TimeClass::Client, TimeClass::Driver, running + runnable);
        }
        TimeBudget { sessions, holders: waits.holders.clone() }
    }

    /// The mean of the budgets of several windows.
    pub(crate) fn mean(budgets: &[TimeBudget]) -> Option<TimeBudget> {
        let n = budgets.len() as f64;
        let mut mean = TimeBudget::default();
        for budget in budgets {
            for (class, sessions) in &budget.sessions {
                *mean.sessions.entry(*class).or_default() += sessions / n;
            }
            for (class, share) in &budget.holders {
                *mean.holders.entry(*class).or_default() += share / n;
            }
        }
        (!budgets.is_empty()).then_some(mean)
    }

    /// Sessions in a class.
    pub(crate) fn of_class(&self, class: TimeClass) -> f64 {
        self.sessions.get(&class).copied().unwrap_or(0.0)
    }

    /// All sessions.
    pub(crate) fn total(&self) -> f64 {
        self.sessions.values().sum()
    }

    /// The parts, largest first, with what they are of a transaction (Little: sessions / throughput).
    pub(crate) fn parts(&self, completed_per_second: f64) -> Vec<BudgetPart> {
        let total = self.total();
        let mut parts: Vec<BudgetPart> = self
            .sessions
            .iter()
            .filter(|(_, sessions)| **sessions > 0.0)
            .map(|(class, sessions)| BudgetPart {
                class: *class,
                sessions: *sessions,
                share: sessions / total,
                per_transaction_ns: (completed_per_second > 0.0)
                    .then(|| sessions / completed_per_second * 1e9),
            })
            .collect();
        parts.sort_by(|a, b| b.sessions.total_cmp(&a.sessions));
        parts
    }

    /// What the holders of locks were doing, as parts of the sessions that waited for them.
    pub(crate) fn holder_parts(&self) -> Vec<BudgetPart> {
        let waiting = self.of_class(TimeClass::Lock);
        let mut parts: Vec<BudgetPart> = self
            .holders
            .iter()
            .map(|(class, share)| BudgetPart {
                class: *class,
                sessions: waiting * share,
                share: *share,
                per_transaction_ns: None,
            })
            .collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        parts
    }
}

/// Divides the sessions that the samples call "on CPU" and, as far as the server's processes ran or
/// wanted to run longer than that, takes the rest from those they call idle.
fn split_server_time(sessions: &mut BTreeMap<TimeClass, f64>, on_cpu: f64, run_queue: f64) {
    let sampled = sessions.remove(&TimeClass::Cpu).unwrap_or(0.0);
    let idle = sessions.get(&TimeClass::Client).copied().unwrap_or(0.0);
    let hidden = (on_cpu + run_queue - sampled).clamp(0.0, idle);
    if hidden > 0.0 {
        sessions.insert(TimeClass::Client, idle - hidden);
    }
    // Sampled but neither running nor runnable: asleep in the kernel without a name, for example in
    // page faults.
    let asleep = (sampled - on_cpu - run_queue).max(0.0);
    let awake = sampled + hidden - asleep;
    let running = if on_cpu + run_queue > 0.0 { on_cpu / (on_cpu + run_queue) } else { 1.0 };
    sessions.insert(TimeClass::Cpu, awake * running);
    sessions.insert(TimeClass::RunQueue, awake * (1.0 - running));
    *sessions.entry(TimeClass::Other).or_default() += asleep;
}

fn move_part(sessions: &mut BTreeMap<TimeClass, f64>, from: TimeClass, to: TimeClass, most: f64) {
    let available = sessions.get(&from).copied().unwrap_or(0.0);
    let moved = most.clamp(0.0, available);
    if moved > 0.0 {
        sessions.insert(from, available - moved);
        *sessions.entry(to).or_default() += moved;
    }
}

#[cfg(test)]
mod tests {
    use super::TimeBudget;
    use crate::analysis::TimeClass;
    use crate::observed::{CpuFacts, DriverFacts, WaitSummary};
    use std::collections::BTreeMap;
    use underlay_core::Histogram;

    fn budget(sampled: &[(TimeClass, f64)], server: (f64, f64), driver: (f64, f64)) -> TimeBudget {
        let waits = WaitSummary {
            sessions: sampled.iter().copied().collect(),
            samples: 100,
            holders: BTreeMap::new(),
        };
        let trees = |server, driver| {
            BTreeMap::from([("postgres".to_string(), server), ("driver".to_string(), driver)])
        };
        let cpu = CpuFacts {
            on_cpu: trees(server.0, driver.0),
            run_queue: trees(server.1, driver.1),
            ..CpuFacts::default()
        };
        let driver = DriverFacts {
            cores: None,
            sessions: None,
            busiest_share: None,
            lag: (&Histogram::new()).into(),
        };
        TimeBudget::of(&waits, &cpu, &driver, 8)
    }

    /// The select-only case of a measured series: the samples call 7.23 of 8 sessions idle.
    #[test]
    fn idle_sessions_without_a_processor_are_found() {
        let sampled =
            [(TimeClass::Client, 7.23), (TimeClass::DataRead, 0.38), (TimeClass::Cpu, 0.18)];
        let found = budget(&sampled, (0.992, 3.006), (0.368, 1.187));
        assert!((found.of_class(TimeClass::Cpu) - 0.992).abs() < 1e-9);
        assert!((found.of_class(TimeClass::RunQueue) - 3.006).abs() < 1e-9);
        assert!((found.of_class(TimeClass::Driver) - 1.555).abs() < 1e-9);
        assert!((found.total() - 7.79).abs() < 1e-9, "nothing is lost or invented");
    }

    #[test]
    fn sessions_of_users_that_are_not_active_do_not_count() {
        let waits = WaitSummary {
            sessions: [(TimeClass::Client, 14.2), (TimeClass::Log, 1.8)].into(),
            samples: 100,
            holders: BTreeMap::new(),
        };
        let driver = DriverFacts {
            cores: None,
            sessions: Some(16.0),
            busiest_share: None,
            lag: (&Histogram::new()).into(),
        };
        let found = TimeBudget::of(&waits, &CpuFacts::default(), &driver, 2);
        assert!((found.total() - 2.0).abs() < 1e-9);
        assert!((found.of_class(TimeClass::Client) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn sessions_asleep_in_the_kernel_are_not_called_cpu() {
        let found = budget(&[(TimeClass::Cpu, 4.0)], (0.5, 0.5), (0.0, 0.0));
        assert_eq!(found.of_class(TimeClass::Cpu), 0.5);
        assert_eq!(found.of_class(TimeClass::RunQueue), 0.5);
        assert_eq!(found.of_class(TimeClass::Other), 3.0);
    }

    #[test]
    fn parts_are_sorted_and_follow_little() {
        let found =
            budget(&[(TimeClass::Log, 6.0), (TimeClass::Client, 2.0)], (0.0, 0.0), (0.0, 0.0));
        let parts = found.parts(1000.0);
        assert_eq!(parts[0].class, TimeClass::Log);
        assert_eq!(parts[0].share, 0.75);
        assert_eq!(parts[0].per_transaction_ns, Some(6e6));
    }
}
