//! What one worker thread has: its users, its backlog, its counts. Its run loop is in [`crate::worker_thread`].
//!
//! Everything here belongs to the thread, so it is shared between its tasks by plain cells; the only
//! way in from other threads is the channel of commands.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use underlay_core::{Nanos, RootSeed};
use underlay_database::session::Connector;
use underlay_workload::transactional::{Mix, Workload};

use crate::arrivals::{ArrivalSchedule, Share};
use crate::backlog::{Backlog, Offered};
use crate::cpu_cost::{CpuCost, thread_cpu_ns};
use crate::cpu_debt::OwnDebt;
use crate::followed_session::FollowedSession;
use crate::permits::Permits;
use crate::server_task::Measurements;
use crate::slot::{Doing, Slot};
use crate::spec::{DriveSpec, Pacing};
use crate::thread_tick::ThreadTick;
use crate::tick::{ThreadLoad, Users};
use crate::timers::{Timers, Token};

/// The regular round of a thread; how late it comes is the lag of the thread's run loop. Each wakes the thread, which costs as
/// much as a short transaction does: one every 10 ms was a twelfth of all wake-ups at 2,300 transactions per second.
pub(super) const HEARTBEAT: Nanos = Nanos::from_millis(50);
/// Heartbeats between two looks for attempts that take too long.
const ROUNDS_PER_SCAN: u64 = 2;
/// An attempt older than this makes its user count as stalled.
const STALLED: Nanos = Nanos::from_secs(1);
/// The server's word that it cancelled a statement may take this long.
const ANSWER_GRACE: Nanos = Nanos::from_secs(1);
/// Arrivals handed out in one go: less than a tenth of a millisecond. Where they fall due faster than that, commands and
/// users must still have their turn.
const ARRIVALS_AT_ONCE: u32 = 1_000;
/// Sessions being opened at the same time, over all threads.
const CONNECTING_MAX: u32 = 16;

/// The transaction, the answer and the accounting of a connector's workload.
pub(crate) type TransactionOf<C> = <<C as Connector>::Workload as Workload>::Transaction;
pub(crate) type OutcomeOf<C> = <<C as Connector>::Workload as Workload>::Outcome;
pub(crate) type UserOf<C> = <<C as Connector>::Workload as Workload>::User;
pub(crate) type AccountingOf<C> = <<C as Connector>::Workload as Workload>::Accounting;

/// How far the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// At work.
    Running,
    /// Transactions in progress are finished, none is begun or repeated.
    Stopping {
        /// When the rest is cut off.
        until: Nanos,
    },
    /// What is still in progress is cut off.
    Halted,
}

/// A thread's view of the whole.
pub(crate) struct Worker<C: Connector> {
    pub(crate) connector: C,
    pub(crate) inputs: RootSeed,
    pub(crate) pacing: Pacing,
    pub(crate) mix: RefCell<Mix>,
    pub(crate) timers: Timers,
    pub(crate) slots: Vec<Slot>,
    pub(crate) backlog: Backlog,
    /// Connections of the pool, where users share them, and the idle ones among them.
    pub(crate) pool: Option<Permits>,
    pub(crate) idle_sessions: RefCell<Vec<FollowedSession<C::Session>>>,
    /// How much longer a shared connection is kept than it is needed, as a share of that time.
    pub(crate) connection_surcharge: Cell<f64>,
    pub(crate) connecting: Permits,
    pub(crate) stage: Cell<Stage>,
    pub(crate) counts: RefCell<ThreadTick>,
    pub(crate) accounting: RefCell<AccountingOf<C>>,
    pub(crate) open_sessions: Cell<u32>,
    pub(crate) cpu_cost: CpuCost,
    pub(crate) own_debt: OwnDebt,
    pub(crate) server_is_here: bool,
    pub(crate) measurements: Measurements,
    pub(super) share: Share,
    attempt_limit: Nanos,
    active_users: Cell<u32>,
    schedule: RefCell<Option<ArrivalSchedule>>,
    /// The rate that the schedule shall have while there are users, and its ramp.
    rate: Cell<(f64, Nanos)>,
    arrival_set: Cell<Option<Nanos>>,
    rounds: Cell<u64>,
}

impl<C: Connector> Worker<C> {
    pub(crate) fn new(spec: &DriveSpec, connector: C, share: Share, timers: Timers) -> Worker<C> {
        let users = share_of(spec.max_users, share);
        let types = connector.workload().shape().types.len();
        let (schedule, rate, queue_limit) = match spec.pacing {
            Pacing::Closed { .. } => (None, (0.0, Nanos::ZERO), 0),
            Pacing::Open { rate_per_second, arrivals, ramp, queue_limit } => (
                Some(ArrivalSchedule::new(arrivals, spec.inputs, share)),
                (rate_per_second, ramp),
                share_of(queue_limit, share),
            ),
        };
        let pool = spec.connections.filter(|connections| *connections < spec.max_users);
        Worker {
            connector,
            inputs: spec.inputs,
            pacing: spec.pacing,
            mix: RefCell::default(),
            timers,
            slots: (0..users).map(|_| Slot::default()).collect(),
            backlog: Backlog::new(queue_limit as usize),
            pool: pool.map(|connections| Permits::new(share_of(connections, share))),
            idle_sessions: RefCell::default(),
            connection_surcharge: Cell::new(0.0),
            connecting: Permits::new(share_of(CONNECTING_MAX, share).max(1)),
            stage: Cell::new(Stage::Running),
            counts: RefCell::new(ThreadTick::new(types)),
            accounting: RefCell::default(),
            open_sessions: Cell::new(0),
            cpu_cost: CpuCost::default(),
            own_debt: OwnDebt::new(spec.shares_server_cpu, spec.dilation),
            server_is_here: spec.server_is_here,
            measurements: Measurements::default(),
            share,
            attempt_limit: Nanos::from(spec.statement_timeout) + ANSWER_GRACE,
            active_users: Cell::new(0),
            schedule: RefCell::new(schedule),
            rate: Cell::new(rate),
            arrival_set: Cell::new(None),
            rounds: Cell::new(0),
        }
    }

    /// The number of the user in a slot, over all threads.
    pub(crate) fn user_number(&self, index: u32) -> u32 {
        index * self.share.of + self.share.index
    }

    /// Whether the user in a slot shall begin transactions.
    pub(crate) fn is_active(&self, index: u32) -> bool {
        self.is_running() && self.user_number(index) < self.active_users.get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stage.get() == Stage::Running
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.stage.get() == Stage::Halted
    }

    pub(crate) fn session_opened(&self) {
        self.open_sessions.set(self.open_sessions.get() + 1);
        self.counts.borrow_mut().connects.opened += 1;
    }

    pub(crate) fn session_lost(&self) {
        self.open_sessions.set(self.open_sessions.get() - 1);
        self.counts.borrow_mut().connects.lost += 1;
    }

    /// Notes what was asked and what the database acknowledged.
    pub(crate) fn note_outcome(&self, transaction: &TransactionOf<C>, outcome: &OutcomeOf<C>) {
        self.connector.workload().book(&mut self.accounting.borrow_mut(), transaction, outcome);
    }

    /// Notes what the database may have committed without acknowledging it.
    pub(crate) fn note_unknown(&self, transaction: &TransactionOf<C>) {
        self.connector.workload().book_unknown(&mut self.accounting.borrow_mut(), transaction);
    }

    pub(crate) fn attempt_limit(&self) -> Duration {
        self.attempt_limit.into()
    }

    pub(super) fn set_users(&self, users: u32, at: Nanos) {
        let before = self.active_users.replace(users);
        if (before == 0) != (users == 0)
            && let Some(schedule) = &mut *self.schedule.borrow_mut()
        {
            let (rate, ramp) = if users == 0 { (0.0, Nanos::ZERO) } else { self.rate.get() };
            schedule.set_rate(at, rate, ramp);
        }
        let (low, high) = (before.min(users), before.max(users));
        for (index, slot) in self.slots.iter().enumerate() {
            if (low..high).contains(&self.user_number(index as u32)) {
                slot.wake();
            }
        }
        self.dispatch_arrivals(self.timers.clock().now());
    }

    pub(super) fn set_rate(&self, rate_per_second: f64, ramp: Nanos, at: Nanos) {
        self.rate.set((rate_per_second, ramp));
        if self.active_users.get() > 0
            && let Some(schedule) = &mut *self.schedule.borrow_mut()
        {
            schedule.set_rate(at, rate_per_second, ramp);
        }
        self.dispatch_arrivals(self.timers.clock().now());
    }

    /// Offers arrivals that are due to the users, and sets the timer to the next one; when there are many, to as soon as
    /// all others have had a turn.
    fn dispatch_arrivals(&self, now: Nanos) {
        let mut schedule = self.schedule.borrow_mut();
        let Some(schedule) = schedule.as_mut().filter(|_| self.is_running()) else { return };
        let mut counts = self.counts.borrow_mut();
        let mut left = ARRIVALS_AT_ONCE;
        while left > 0
            && let Some(due) = schedule.take_due(now)
        {
            left -= 1;
            counts.dispatch_lag.record((now - due).0);
            counts.arrivals.due += 1;
            match self.backlog.offer(due, &self.slots) {
                Offered::Taken => counts.arrivals.taken += 1,
                Offered::Overflowed => counts.arrivals.overflowed += 1,
                Offered::Queued => {}
            }
        }
        // After `now`, or the timer would be handed out in the same round.
        let next = schedule.next_due().map(|due| due.max(now + Nanos(1)));
        if next != self.arrival_set.replace(next)
            && let Some(due) = next
        {
            self.timers.set(due, Token::Arrival);
        }
    }

    pub(super) fn stop(&self, grace: Nanos) {
        if !self.is_running() {
            return;
        }
        let now = self.timers.clock().now();
        self.stage.set(Stage::Stopping { until: now + grace });
        if let Some(schedule) = &mut *self.schedule.borrow_mut() {
            // Nothing falls due any more.
            schedule.set_rate(now, 0.0, Nanos::ZERO);
        }
        for slot in &self.slots {
            if matches!(slot.doing.get(), Doing::Connecting(_)) {
                slot.cut.set(true);
            }
            slot.wake();
        }
    }

    /// Cuts off attempts that took too long, or all that are left when the time to stop is over.
    fn scan(&self, now: Nanos) {
        if let Stage::Stopping { until } = self.stage.get()
            && now >= until
        {
            self.stage.set(Stage::Halted);
        }
        let halted = self.stage.get() == Stage::Halted;
        for slot in &self.slots {
            if let Doing::Connecting(since) | Doing::Transaction(since) = slot.doing.get()
                && (halted || now.saturating_sub(since) > self.attempt_limit)
            {
                slot.cut.set(true);
                slot.wake();
            }
        }
    }

    pub(super) fn fire(&self, now: Nanos, due: Nanos, token: Token) {
        match token {
            Token::User(index) => {
                self.counts.borrow_mut().dispatch_lag.record((now - due).0);
                self.slots[index as usize].wake();
            }
            Token::Arrival if self.arrival_set.get() == Some(due) => {
                self.arrival_set.set(None);
                self.dispatch_arrivals(now);
            }
            // The rate was changed since this timer was set.
            Token::Arrival => {}
            Token::Heartbeat => {
                self.counts.borrow_mut().dispatch_lag.record((now - due).0);
                self.rounds.set(self.rounds.get() + 1);
                if self.rounds.get().is_multiple_of(ROUNDS_PER_SCAN) {
                    self.scan(now);
                }
                self.timers.set(now + HEARTBEAT, Token::Heartbeat);
            }
        }
    }

    pub(super) fn take_tick(&self) -> ThreadTick {
        let types = self.connector.workload().shape().types.len();
        let mut tick = self.counts.replace(ThreadTick::new(types));
        tick.users = self.users();
        tick.arrivals.queued = self.backlog.len();
        if let Some(schedule) = &*self.schedule.borrow() {
            tick.arrivals.overdue = schedule.overdue(self.timers.clock().now());
        }
        tick.load = thread_load();
        tick
    }

    fn users(&self) -> Users {
        let now = self.timers.clock().now();
        let mut users = Users { sessions: self.open_sessions.get(), ..Users::default() };
        for (index, slot) in self.slots.iter().enumerate() {
            let active = self.is_active(index as u32);
            users.active += u32::from(active);
            users.ready += u32::from(active && slot.ready.get());
            if let Doing::Transaction(since) = slot.doing.get() {
                let age = now.saturating_sub(since);
                users.in_transaction += 1;
                users.stalled += u32::from(age > STALLED);
                users.oldest_attempt = users.oldest_attempt.max(age);
            }
        }
        users
    }
}

/// The part of `total` that falls to one thread when shared out in turn.
fn share_of(total: u32, share: Share) -> u32 {
    total / share.of + u32::from(share.index < total % share.of)
}

/// What the calling thread did since its start.
fn thread_load() -> ThreadLoad {
    // The second number is the time on a run queue; see sched-stats in the kernel's documentation.
    let queue_ns = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
    ThreadLoad { cpu_ns: thread_cpu_ns(), queue_ns: queue_ns.unwrap_or(0) }
}
