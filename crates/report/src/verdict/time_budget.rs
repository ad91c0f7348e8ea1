//! The time budget: where the sessions' time goes, in session-seconds per second.
//!
//! The engine's session samples name what sessions wait for, and that is not what holds them up when the wait has
//! ended and the session gets no processor, when it waits for another session that gets none, or when I/O takes longer
//! than the device that is emulated. So each wait is followed to its root:
//!
//! 1. A session whose thread runs or could is running, stopped by the server's CPU limit, or waiting for a processor.
//!    The states of threads tell; of a server elsewhere the scheduler's counters, for idle sessions alone. So is one whose
//!    answer is held back, because the slower processor of a dilated design would still be at work.
//! 2. A session that waits for the writer of the log, the reader of a page or the holder of a lock or latch is where
//!    that one is, if that one runs or could.
//! 3. Waits for I/O that exceed what the modelled devices took are this host's. What they exceed all requests by is
//!    data writes' while those never cease: the kernel lets readers and writers wait until it has written pages back.
//! 4. What the log's requests waited for data writes of the same modelled device is named so.
//! 5. What the network of a remote client held up is the network's, not the client's.
//! 6. While the load generator is stopped by a CPU limit, nothing but that limit counts.

use std::collections::BTreeMap;

use underlay_core::IoClass;

use crate::analysis::{BudgetPart, TimeClass};
use crate::observed::{CpuFacts, DRIVER, DriverFacts, IoFacts, WaitSummary, of_server};

/// Data writes in progress on average from which on the device is taken to have no time without any.
const NEVER_CEASE: f64 = 1.0;
/// Sessions that wait this many times as long as all requests took wait for something else as well; below it may be
/// chance.
const CLEARLY_MORE: f64 = 1.25;

/// Mean number of sessions per class. The classes are exclusive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimeBudget {
    pub(crate) sessions: BTreeMap<TimeClass, f64>,
    /// Share of each class among the holders of locks.
    pub(crate) holders: BTreeMap<TimeClass, f64>,
}

/// What was observed of the sessions in one window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled<'a> {
    pub(crate) waits: &'a WaitSummary,
    pub(crate) cpu: &'a CpuFacts,
    pub(crate) driver: &'a DriverFacts,
    /// What modelled I/O took; empty of real devices.
    pub(crate) io: &'a BTreeMap<IoClass, IoFacts>,
    /// Share of the log's time in which it waited for data writes of the modelled device that both lie on.
    pub(crate) log_behind_data: Option<f64>,
    /// Connections that the network of a remote client held up.
    pub(crate) network: Option<f64>,
    /// Of all databases.
    pub(crate) users: f64,
}

impl TimeBudget {
    /// The budget of a window from its samples, the scheduler's counters and the times of modelled I/O.
    ///
    /// Without the scheduler's counters, `Cpu` includes runnable sessions and `Client` everything idle. Sessions of
    /// users that are not active do not belong to it.
    pub(crate) fn of(seen: &Sampled<'_>) -> TimeBudget {
        let Sampled { waits, cpu, driver, io, .. } = *seen;
        let mut sessions = waits.sessions.clone();
        let unused = driver.sessions.map_or(0.0, |open| (open - seen.users).max(0.0));
        if let Some(idle) = sessions.get_mut(&TimeClass::Client) {
            *idle = (*idle - unused).max(0.0);
        }
        let held_back = driver.held_back.unwrap_or(0.0);
        if let Some(awake) = Awake::of(&mut sessions, (waits, held_back), cpu) {
            awake.add(&mut sessions);
            let waiting = follow(&mut sessions, waits, &awake);
            take_out_host(&mut sessions, io, &waiting);
        } else {
            take_out_host(&mut sessions, io, &BTreeMap::new());
        }
        if let Some(behind) = seen.log_behind_data {
            let log = sessions.get(&TimeClass::Log).copied().unwrap_or(0.0);
            move_part(&mut sessions, TimeClass::Log, TimeClass::LogBehindData, log * behind);
        }
        // First what is known of each connection. Threads of the load generator may be runnable meanwhile.
        if let Some(held_up) = seen.network {
            move_part(&mut sessions, TimeClass::Client, TimeClass::ClientNetwork, held_up);
        }
        let running = driver.cores.or_else(|| cpu.on_cpu.get(DRIVER).copied());
        if let Some(running) = running {
            let runnable = cpu.run_queue.get(DRIVER).copied().unwrap_or(0.0);
            move_part(&mut sessions, TimeClass::Client, TimeClass::Driver, running + runnable);
        }
        if let Some(stopped) = cpu.driver_throttled.filter(|share| *share > 0.0) {
            // The samplers are stopped together with the load generator: what they see is the rest of the time.
            let all: f64 = sessions.values().sum();
            sessions.values_mut().for_each(|count| *count *= 1.0 - stopped);
            sessions.insert(TimeClass::DriverLimit, all * stopped);
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

/// The sessions that run or could, whatever the samples call them.
#[derive(Clone, Copy, Debug)]
struct Awake {
    sessions: f64,
    /// Of them running, stopped by the server's CPU limit, and waiting for a processor; together 1.
    running: f64,
    stopped: f64,
    runnable: f64,
    /// Share of the waits with a thread that runs or could which had ended. The rest only looks so: the thread is looked
    /// at a moment after the wait.
    ended: f64,
}

impl Awake {
    /// Takes them out of the classes in which the samples see them; `None` without any counter.
    fn of(
        sessions: &mut BTreeMap<TimeClass, f64>,
        (waits, held_back): (&WaitSummary, f64),
        cpu: &CpuFacts,
    ) -> Option<Awake> {
        let on_cpu = of_server(&cpu.on_cpu);
        let (awake, running, ended) = match &waits.awake {
            Some(awake) => {
                let (awake, ended) = by_threads(sessions, awake);
                // Their threads sleep, and the samples call them idle.
                let idle = sessions.entry(TimeClass::Client).or_default();
                let held_back = held_back.min(*idle);
                *idle -= held_back;
                let awake = awake + held_back;
                let running = cpu.sessions_on_cpu.or(on_cpu).map_or(1.0, |cores| cores / awake);
                (awake, if awake > 0.0 { running.min(1.0) } else { 1.0 }, ended)
            }
            None => {
                let (on_cpu, run_queue) = (on_cpu?, of_server(&cpu.run_queue)?);
                let wanted = on_cpu + run_queue;
                let awake = by_scheduler(sessions, wanted);
                (awake, if wanted > 0.0 { on_cpu / wanted } else { 1.0 }, 0.0)
            }
        };
        let stopped = cpu.server_throttled.unwrap_or(0.0).min(1.0 - running);
        let runnable = 1.0 - running - stopped;
        Some(Awake { sessions: awake, running, stopped, runnable, ended })
    }

    fn add(&self, sessions: &mut BTreeMap<TimeClass, f64>) {
        let parts = [
            (TimeClass::Cpu, self.running),
            (TimeClass::CpuLimit, self.stopped),
            (TimeClass::RunQueue, self.runnable),
        ];
        for (class, share) in parts.into_iter().filter(|(_, share)| *share > 0.0) {
            *sessions.entry(class).or_default() += self.sessions * share;
        }
    }

    /// Moves sessions to where those are that they wait for; such a one runs or could.
    fn hand_over(&self, sessions: &mut BTreeMap<TimeClass, f64>, from: TimeClass, count: f64) {
        for (to, share) in [
            (TimeClass::Cpu, self.running),
            (TimeClass::CpuLimit, self.stopped),
            (TimeClass::RunQueue, self.runnable),
        ] {
            // A lock that is held by somebody who runs is waited for as a lock.
            let is_lock = matches!(from, TimeClass::Lock | TimeClass::Latch);
            if !(is_lock && to == TimeClass::Cpu) {
                move_part(sessions, from, to, count * share);
            }
        }
    }
}

/// By the states of threads: all that the samples call running, and of the others as many as run or could beyond
/// that. Returns their number, and the share of the others that were taken.
fn by_threads(
    sessions: &mut BTreeMap<TimeClass, f64>,
    awake: &BTreeMap<TimeClass, f64>,
) -> (f64, f64) {
    let sampled = sessions.remove(&TimeClass::Cpu).unwrap_or(0.0);
    let all: f64 = awake.values().sum();
    let in_waits = all - awake.get(&TimeClass::Cpu).copied().unwrap_or(0.0);
    let hidden = (all - sampled).clamp(0.0, in_waits.max(0.0));
    let ended = if in_waits > 0.0 { hidden / in_waits } else { 0.0 };
    let mut taken = 0.0;
    for (class, count) in awake.iter().filter(|(class, _)| **class != TimeClass::Cpu) {
        if let Some(waiting) = sessions.get_mut(class) {
            let part = (count * ended).min(*waiting);
            *waiting -= part;
            taken += part;
        }
    }
    // Sampled but neither running nor runnable: asleep in the kernel without a name, for example in page faults.
    let asleep = (sampled - all).max(0.0);
    if asleep > 0.0 {
        *sessions.entry(TimeClass::Other).or_default() += asleep;
    }
    (sampled - asleep + taken, ended)
}

/// By the scheduler's counters alone: all that the samples call running and, as far as the server's processes
/// ran or wanted to run longer than that, the rest from those they call idle.
fn by_scheduler(sessions: &mut BTreeMap<TimeClass, f64>, wanted: f64) -> f64 {
    let sampled = sessions.remove(&TimeClass::Cpu).unwrap_or(0.0);
    let idle = sessions.get(&TimeClass::Client).copied().unwrap_or(0.0);
    let hidden = (wanted - sampled).clamp(0.0, idle);
    if hidden > 0.0 {
        sessions.insert(TimeClass::Client, idle - hidden);
    }
    let asleep = (sampled - wanted).max(0.0);
    *sessions.entry(TimeClass::Other).or_default() += asleep;
    sampled + hidden - asleep
}

/// Follows waits for other sessions to what those do. Returns how many are left that wait for another session's I/O.
fn follow(
    sessions: &mut BTreeMap<TimeClass, f64>,
    waits: &WaitSummary,
    awake: &Awake,
) -> BTreeMap<TimeClass, f64> {
    let mut waiting = BTreeMap::new();
    for (class, roots) in
        [(TimeClass::Log, &waits.log_holders), (TimeClass::DataRead, &waits.page_holders)]
    {
        let on_awake = roots.running + awake.ended * roots.awake;
        awake.hand_over(sessions, class, on_awake);
        waiting.insert(class, roots.all - on_awake);
    }
    let locked = sessions.get(&TimeClass::Lock).copied().unwrap_or(0.0);
    let holders = &waits.lock_holders;
    awake.hand_over(
        sessions,
        TimeClass::Lock,
        locked * (holders.running + awake.ended * holders.awake),
    );
    // Nobody sleeps with a latch, with few exceptions.
    let latched = sessions.get(&TimeClass::Latch).copied().unwrap_or(0.0);
    awake.hand_over(sessions, TimeClass::Latch, latched);
    waiting
}

/// Leaves in the classes of I/O what the modelled devices account for; the rest is this host's.
///
/// `waiting`: of the sessions in a class those that wait for the I/O of another one.
fn take_out_host(
    sessions: &mut BTreeMap<TimeClass, f64>,
    io: &BTreeMap<IoClass, IoFacts>,
    waiting: &BTreeMap<TimeClass, f64>,
) {
    let classes = [
        (TimeClass::Log, IoClass::Log),
        (TimeClass::DataRead, IoClass::Read),
        (TimeClass::DataWrite, IoClass::DataWrite),
    ];
    let writes = io.get(&IoClass::DataWrite).map_or(0.0, |time| time.modelled);
    for (class, io_class) in classes {
        let Some(time) = io.get(&io_class) else { continue };
        let mut all = sessions.get(&class).copied().unwrap_or(0.0);
        let mut own = all - waiting.get(&class).copied().unwrap_or(0.0);
        if io_class == IoClass::Log {
            // Both engines write and flush the log one session at a time: more than one wait for that one.
            own = own.min(1.0);
        }
        let mut storage = if time.actual > 0.0 { time.modelled / time.actual } else { 0.0 };
        // What sessions wait beyond the time of all requests, the file system's work for instance. Of data writes the
        // requests are those of processes that no session waits for.
        if io_class == IoClass::Read && writes >= NEVER_CEASE && own > CLEARLY_MORE * time.actual {
            let beyond = own - time.actual;
            move_part(sessions, class, TimeClass::DataWrite, beyond);
            (all, own) = (all - beyond, time.actual);
        }
        if io_class != IoClass::DataWrite && own > CLEARLY_MORE * time.actual {
            storage = storage.min(time.modelled / own);
        }
        move_part(sessions, class, TimeClass::HostIo, all * (1.0 - storage.min(1.0)));
    }
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
    use super::{Sampled, TimeBudget};
    use crate::analysis::TimeClass;
    use crate::observed::{CpuFacts, DriverFacts, IoFacts, Roots, WaitSummary};
    use std::collections::BTreeMap;
    use underlay_core::{Histogram, IoClass};

    fn waits(sampled: &[(TimeClass, f64)]) -> WaitSummary {
        WaitSummary {
            sessions: sampled.iter().copied().collect(),
            samples: 100,
            ..WaitSummary::default()
        }
    }

    fn of(
        waits: &WaitSummary,
        cpu: &CpuFacts,
        driver: &DriverFacts,
        (io, log_behind_data): (&Io, Option<f64>),
        users: u32,
    ) -> TimeBudget {
        let (network, users) = (None, f64::from(users));
        TimeBudget::of(&Sampled { waits, cpu, driver, io, log_behind_data, network, users })
    }

    type Io = BTreeMap<IoClass, IoFacts>;

    fn quiet_driver() -> DriverFacts {
        DriverFacts {
            cores: None,
            sessions: None,
            busiest_share: None,
            held_back: None,
            lag: (&Histogram::new()).into(),
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    /// Half a processor for 8 sessions over a device without any delay: 5 wait for a log writer that is stopped, and the
    /// flushes and reads of 2.4 have ended.
    fn capped() -> (WaitSummary, CpuFacts) {
        let mut seen = waits(&[
            (TimeClass::Log, 5.0),
            (TimeClass::DataRead, 2.0),
            (TimeClass::Cpu, 0.6),
            (TimeClass::Client, 0.4),
        ]);
        seen.awake =
            Some([(TimeClass::Log, 0.8), (TimeClass::DataRead, 1.6), (TimeClass::Cpu, 0.6)].into());
        seen.log_holders = Roots { all: 4.0, running: 1.0, awake: 3.0 };
        let cpu = CpuFacts {
            sessions_on_cpu: Some(0.45),
            server_throttled: Some(0.75),
            ..CpuFacts::default()
        };
        (seen, cpu)
    }

    /// Four sessions that do nothing but compute, at a dilation of four: each runs a quarter of the time, and three quarters the
    /// client leaves its answer untaken. In design time a quarter of the host's processor is one of the design's.
    #[test]
    fn an_answer_that_is_held_back_is_time_on_a_slower_processor() {
        let mut seen = waits(&[(TimeClass::Cpu, 1.2), (TimeClass::Client, 2.8)]);
        seen.awake = Some([(TimeClass::Cpu, 1.0), (TimeClass::Client, 0.0)].into());
        let cpu = CpuFacts { sessions_on_cpu: Some(3.6), ..CpuFacts::default() };
        let held_back = |held_back| {
            let driver = DriverFacts { held_back, ..quiet_driver() };
            of(&seen, &cpu, &driver, (&Io::new(), None), 4)
        };
        let known = held_back(Some(2.6));
        near(known.of_class(TimeClass::Cpu), 3.6);
        near(known.of_class(TimeClass::Client), 0.2);
        near(known.total(), 4.0);
        // More than was idle cannot have been.
        near(held_back(Some(9.0)).of_class(TimeClass::Client), 0.0);
        near(held_back(None).of_class(TimeClass::Client), 2.8);
    }

    #[test]
    fn a_network_holds_connections_up_also_where_processors_are_scarce() {
        let seen = waits(&[(TimeClass::Client, 2.0)]);
        let cpu = CpuFacts {
            run_queue: BTreeMap::from([("driver".to_string(), 3.0)]),
            ..CpuFacts::default()
        };
        let found = TimeBudget::of(&Sampled {
            waits: &seen,
            cpu: &cpu,
            driver: &DriverFacts { cores: Some(0.2), ..quiet_driver() },
            io: &Io::new(),
            log_behind_data: None,
            network: Some(1.5),
            users: 2.0,
        });
        near(found.of_class(TimeClass::ClientNetwork), 1.5);
        near(found.of_class(TimeClass::Driver), 0.5);
        near(found.total(), 2.0);
    }

    #[test]
    fn what_a_network_holds_up_is_not_the_clients() {
        let seen = waits(&[(TimeClass::Client, 3.0), (TimeClass::Log, 5.0)]);
        let found = TimeBudget::of(&Sampled {
            waits: &seen,
            cpu: &CpuFacts::default(),
            driver: &quiet_driver(),
            io: &Io::new(),
            log_behind_data: None,
            network: Some(2.5),
            users: 8.0,
        });
        near(found.of_class(TimeClass::ClientNetwork), 2.5);
        near(found.of_class(TimeClass::Client), 0.5);
        near(found.total(), 8.0);
    }

    #[test]
    fn waits_for_a_session_that_its_limit_stops_are_the_limits() {
        let (seen, cpu) = capped();
        let found = of(&seen, &cpu, &quiet_driver(), (&Io::new(), None), 8);
        // 3 awake, 0.45 of them running; 4 wait for such.
        near(found.of_class(TimeClass::Cpu), 7.0 * 0.15);
        near(found.of_class(TimeClass::CpuLimit), 7.0 * 0.75);
        near(found.of_class(TimeClass::RunQueue), 7.0 * 0.10);
        near(found.of_class(TimeClass::Log), 5.0 - 0.8 - 4.0);
        near(found.of_class(TimeClass::DataRead), 0.4);
        near(found.total(), 8.0);
    }

    #[test]
    fn a_device_that_takes_no_time_is_waited_for_by_nobody() {
        let (mut seen, cpu) = capped();
        seen.awake = Some([(TimeClass::Cpu, 0.6)].into());
        seen.log_holders = Roots { all: 4.0, running: 0.0, awake: 0.0 };
        let time = |modelled, actual| IoFacts { per_second: 500.0, modelled, actual };
        let null = Io::from([(IoClass::Log, time(0.0, 0.5)), (IoClass::Read, time(0.0, 1.8))]);
        let found = of(&seen, &cpu, &quiet_driver(), (&null, None), 8);
        near(found.of_class(TimeClass::Log), 0.0);
        near(found.of_class(TimeClass::DataRead), 0.0);
        near(found.of_class(TimeClass::HostIo), 7.0);
        // A device that takes 0.4 of a second per second for the log, which one writer waits for all the time.
        let slow = Io::from([(IoClass::Log, time(0.4, 0.5)), (IoClass::Read, time(1.8, 1.8))]);
        let found = of(&seen, &cpu, &quiet_driver(), (&slow, Some(0.25)), 8);
        near(found.of_class(TimeClass::HostIo), 5.0 * 0.6);
        near(found.of_class(TimeClass::Log), 5.0 * 0.4 * 0.75);
        near(found.of_class(TimeClass::LogBehindData), 5.0 * 0.4 * 0.25);
        near(found.of_class(TimeClass::DataRead), 2.0);
    }

    #[test]
    fn readers_that_wait_for_room_wait_for_data_writes_that_never_cease() {
        let mut seen = waits(&[(TimeClass::DataRead, 2.6), (TimeClass::DataWrite, 0.8)]);
        seen.awake = Some(BTreeMap::new());
        let cpu = CpuFacts { sessions_on_cpu: Some(0.0), ..CpuFacts::default() };
        let time = |modelled, actual| IoFacts { per_second: 500.0, modelled, actual };
        let of_device = |writes| {
            let writes = time(writes, writes);
            let io = Io::from([(IoClass::Read, time(0.3, 0.6)), (IoClass::DataWrite, writes)]);
            of(&seen, &cpu, &quiet_driver(), (&io, None), 4)
        };
        let busy = of_device(15.0);
        near(busy.of_class(TimeClass::DataWrite), 0.8 + 2.0);
        near(busy.of_class(TimeClass::DataRead), 0.3);
        near(busy.of_class(TimeClass::HostIo), 0.3);
        // A device with time to spare holds nobody up so long.
        let idle = of_device(0.2);
        near(idle.of_class(TimeClass::DataWrite), 0.8);
        near(idle.of_class(TimeClass::DataRead), 0.3);
        near(idle.of_class(TimeClass::HostIo), 2.3);
    }

    #[test]
    fn a_thread_that_is_seen_a_moment_later_takes_nothing_from_the_log() {
        // As many are called running as threads run: the states of the others only came later.
        let mut seen =
            waits(&[(TimeClass::Log, 6.0), (TimeClass::Cpu, 1.0), (TimeClass::Client, 1.0)]);
        seen.awake = Some([(TimeClass::Log, 0.6), (TimeClass::Cpu, 0.4)].into());
        seen.log_holders = Roots { all: 5.0, running: 0.0, awake: 1.0 };
        let cpu = CpuFacts { sessions_on_cpu: Some(0.9), ..CpuFacts::default() };
        let found = of(&seen, &cpu, &quiet_driver(), (&Io::new(), None), 8);
        near(found.of_class(TimeClass::Log), 6.0);
        near(found.of_class(TimeClass::Cpu), 0.9);
        near(found.of_class(TimeClass::RunQueue), 0.1);
    }

    #[test]
    fn locks_and_latches_of_stopped_sessions_are_the_limits() {
        let mut seen =
            waits(&[(TimeClass::Lock, 4.0), (TimeClass::Latch, 2.0), (TimeClass::Cpu, 2.0)]);
        seen.awake = Some([(TimeClass::Cpu, 2.0)].into());
        seen.lock_holders = Roots { all: 1.0, running: 0.5, awake: 0.0 };
        let cpu = CpuFacts {
            sessions_on_cpu: Some(0.4),
            server_throttled: Some(0.6),
            ..CpuFacts::default()
        };
        let found = of(&seen, &cpu, &quiet_driver(), (&Io::new(), None), 8);
        // Half of the holders run or could: 20 % of that time running.
        near(found.of_class(TimeClass::Lock), 2.0 + 2.0 * 0.2);
        near(found.of_class(TimeClass::Latch), 2.0 * 0.2);
        near(found.of_class(TimeClass::CpuLimit), 6.0 * 0.6);
        near(found.of_class(TimeClass::RunQueue), 6.0 * 0.2);
    }

    #[test]
    fn what_is_seen_between_the_stops_of_the_load_generator_is_the_rest_of_the_time() {
        let seen = waits(&[(TimeClass::Log, 4.0), (TimeClass::Client, 4.0)]);
        let cpu = CpuFacts { driver_throttled: Some(0.9), ..CpuFacts::default() };
        let found = of(&seen, &cpu, &quiet_driver(), (&Io::new(), None), 8);
        near(found.of_class(TimeClass::DriverLimit), 7.2);
        near(found.of_class(TimeClass::Log), 0.4);
        near(found.total(), 8.0);
    }

    fn budget(sampled: &[(TimeClass, f64)], server: (f64, f64), driver: (f64, f64)) -> TimeBudget {
        let waits = waits(sampled);
        let trees = |server, driver| {
            BTreeMap::from([("postgres".to_string(), server), ("driver".to_string(), driver)])
        };
        let cpu = CpuFacts {
            on_cpu: trees(server.0, driver.0),
            run_queue: trees(server.1, driver.1),
            ..CpuFacts::default()
        };
        let driver = quiet_driver();
        of(&waits, &cpu, &driver, (&Io::new(), None), 8)
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
        let waits = waits(&[(TimeClass::Client, 14.2), (TimeClass::Log, 1.8)]);
        let driver = DriverFacts { sessions: Some(16.0), ..quiet_driver() };
        let found = of(&waits, &CpuFacts::default(), &driver, (&Io::new(), None), 2);
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
