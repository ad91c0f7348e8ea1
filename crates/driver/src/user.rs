//! One virtual user: waits until it shall, draws its next transaction, carries it out, notes what happened.
//!
//! A user draws from its own random streams, so its k-th transaction is the same whatever the others do. A transaction that it has drawn but not begun when
//! it is deactivated is the first one it carries out when it is activated again.

use std::rc::Rc;

use rand_pcg::Pcg64;
use underlay_core::Nanos;
use underlay_database::session::{Connector, Session as _};
use underlay_database::{CommitState, SessionError};
use underlay_workload::transactional::{User, Workload};

use crate::followed_session::FollowedSession;
use crate::outage::{Restoration, UnknownCommit};
use crate::permits::Grant;
use crate::reaction::{Backoff, Reaction, is_outage, reaction};
use crate::server_task::Account;
use crate::slot::{Doing, Slot};
use crate::spec::Pacing;
use crate::thread_tick::{Loss, Times};
use crate::timers::Token;
use crate::worker::{OutcomeOf, TransactionOf, UserOf, Worker};

/// Times that a transaction is repeated after it lost against others, before it is given up.
const CONTENTION_RETRIES_MAX: u32 = 50;

/// Runs the user in slot `index` until the thread stops.
pub(crate) async fn virtual_user<C: Connector>(worker: Rc<Worker<C>>, index: u32) {
    let slot = &worker.slots[index as usize];
    let mut user = VirtualUser::new(&worker, index);
    while slot.until(|| user.may_begin()).await == Begin::Go {
        if user.make_ready().await {
            user.work().await;
        }
        user.leave_outage();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    Go,
    Stop,
}

/// How an attempt ended.
enum Attempt<O> {
    Completed(O),
    Failed(SessionError, Phase),
    /// The thread stopped before it ended.
    Halted,
}

/// Where an attempt failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before there was a session.
    Connecting,
    /// The session reported an error.
    Running,
    /// The session did not answer in time.
    CutOff,
}

struct VirtualUser<'a, C: Connector> {
    worker: &'a Worker<C>,
    slot: &'a Slot,
    index: u32,
    number: u32,
    source: UserOf<C>,
    random: Pcg64,
    session: Option<FollowedSession<C::Session>>,
    /// Drawn, but not begun.
    drawn: Option<TransactionOf<C>>,
    /// The type of the transaction before.
    previous: Option<usize>,
    /// Errors since the last completed transaction.
    failures: u32,
    /// The clock as this user last read it.
    now: Nanos,
    /// When the current attempt began, without opening its session.
    attempt_began: Nanos,
}

impl<'a, C: Connector> VirtualUser<'a, C> {
    fn new(worker: &'a Worker<C>, index: u32) -> VirtualUser<'a, C> {
        let number = worker.user_number(index);
        VirtualUser {
            worker,
            slot: &worker.slots[index as usize],
            index,
            number,
            source: worker.connector.workload().user(u64::from(number), worker.inputs),
            random: worker.inputs.stream("driver.backoff", u64::from(number)),
            session: None,
            drawn: None,
            previous: None,
            failures: 0,
            now: Nanos::ZERO,
            attempt_began: Nanos::ZERO,
        }
    }

    fn may_begin(&self) -> Option<Begin> {
        if !self.worker.is_running() {
            Some(Begin::Stop)
        } else {
            self.worker.is_active(self.index).then_some(Begin::Go)
        }
    }

    fn read_clock(&mut self) -> Nanos {
        self.now = self.worker.timers.clock().now();
        self.now
    }

    /// Opens the user's own session, however many attempts it takes; false when it shall not work any more.
    /// Users of a pool connect when they hold one of its connections.
    async fn make_ready(&mut self) -> bool {
        self.read_clock();
        while self.worker.pool.is_none() && self.session.is_none() {
            if !self.worker.is_active(self.index) {
                return false;
            }
            match self.connect().await {
                Ok(()) => {}
                Err(Attempt::Failed(error, phase)) => {
                    self.failures += 1;
                    self.note_error(None, &error, phase, UnknownCommit::No);
                    self.pause(Backoff::OUTAGE, self.failures).await;
                }
                Err(_) => return false,
            }
        }
        self.slot.ready.set(true);
        true
    }

    /// Carries out transactions for as long as the user is active.
    async fn work(&mut self) {
        while self.worker.is_active(self.index) {
            let completed = self.now;
            if self.failures > 0 && !self.pause(Backoff::OUTAGE, self.failures).await {
                return;
            }
            let Some(intended) = self.next_intended(completed).await else { return };
            let transaction = self.draw();
            self.previous = Some(kind_of::<C>(&transaction));
            self.carry_out(&transaction, intended).await;
            self.worker.cpu_cost.pay();
            // A session that answers at once must not keep the others of the thread from working.
            tokio::task::coop::consume_budget().await;
        }
    }

    fn draw(&mut self) -> TransactionOf<C> {
        self.drawn.take().unwrap_or_else(|| self.source.next(&self.worker.mix.borrow()))
    }

    /// Waits until the next transaction shall begin; gives its intended start, and leaves in `now` when
    /// the user took it up.
    async fn next_intended(&mut self, completed: Nanos) -> Option<Nanos> {
        match self.worker.pacing {
            Pacing::Closed { key_think: 0.0 } => Some(completed),
            Pacing::Closed { key_think } => self.keyed(completed, key_think).await,
            Pacing::Open { .. } => self.next_arrival().await,
        }
    }

    /// Thinks about the previous transaction and keys in the next one.
    async fn keyed(&mut self, completed: Nanos, factor: f64) -> Option<Nanos> {
        let transaction = self.draw();
        let kind = kind_of::<C>(&transaction);
        self.drawn = Some(transaction);
        // The first time there is nothing to think about; thinking all the same spreads users who
        // were activated together.
        let think = self.source.think_time(self.previous.unwrap_or(kind));
        let rest = think + self.source.keying_time(kind);
        let due = completed + Nanos((rest.0 as f64 * factor) as u64);
        let (worker, index) = (self.worker, self.index);
        worker.timers.set(due, Token::User(index));
        let reached = || worker.timers.reached(due).then_some(true);
        let left = || (!worker.is_active(index)).then_some(false);
        let reached = self.slot.until(|| reached().or_else(left)).await;
        self.read_clock();
        reached.then_some(due)
    }

    async fn next_arrival(&mut self) -> Option<Nanos> {
        let worker = self.worker;
        if let Some(due) = worker.backlog.take() {
            worker.counts.borrow_mut().arrivals.taken += 1;
            return Some(due);
        }
        let left = || !worker.is_active(self.index);
        let due = worker.backlog.wait(&worker.slots, self.index, left).await;
        self.read_clock();
        due
    }

    /// Carries one transaction to its end, and leaves in `now` when that was.
    async fn carry_out(&mut self, transaction: &TransactionOf<C>, intended: Nanos) {
        let taken = self.now;
        if !self.take_connection().await {
            self.lose(transaction, Loss::Abandoned);
            return C::Workload::on_outcome(&mut self.source, transaction, None);
        }
        let connection_since = self.now;
        let mut contention = 0;
        let ended = loop {
            match self.attempt(transaction).await {
                Attempt::Completed(outcome) => break Ok(outcome),
                Attempt::Halted => break Err(self.halted(transaction)),
                Attempt::Failed(error, phase) => {
                    let repeat = self.after_error(transaction, &error, phase, &mut contention);
                    if let Err(loss) = repeat.await {
                        break Err(loss);
                    }
                }
            }
        };
        match ended {
            Ok(outcome) => {
                let times = Times {
                    intended,
                    taken,
                    first_attempt: connection_since,
                    last_attempt: self.attempt_began,
                    completed: self.now,
                };
                self.complete(transaction, &outcome, &times);
                C::Workload::on_outcome(&mut self.source, transaction, Some(&outcome));
            }
            Err(loss) => {
                self.lose(transaction, loss);
                C::Workload::on_outcome(&mut self.source, transaction, None);
            }
        }
        self.give_back_connection(connection_since).await;
    }

    /// One attempt, opening a session first if there is none.
    async fn attempt(&mut self, transaction: &TransactionOf<C>) -> Attempt<OutcomeOf<C>> {
        if self.session.is_none()
            && let Err(attempt) = self.connect().await
        {
            return attempt;
        }
        let session = self.session.as_mut().expect("connect leaves a session or an error");
        self.attempt_began = self.now;
        self.slot.cut.set(false);
        self.slot.doing.set(Doing::Transaction(self.now));
        let is_measured = self.worker.measurements.is_due(self.now);
        let before = if is_measured { session.account() } else { None };
        let answer = self.slot.unless_cut(session.session.run(transaction)).await;
        if answer.is_some() {
            let (server, own) = (session.owed(), self.worker.own_debt.owed());
            let waited = self.hold_back(server + own).await;
            self.worker.counts.borrow_mut().held_back_ns += waited.min(server).0;
        }
        self.slot.doing.set(Doing::Waiting);
        self.read_clock();
        match answer {
            Some(Ok(outcome)) => {
                if let Some(before) = before {
                    self.note_server_cpu(kind_of::<C>(transaction), before);
                }
                Attempt::Completed(outcome)
            }
            Some(Err(error)) => Attempt::Failed(error, Phase::Running),
            None => self.cut_off("the transaction", CommitState::InFlight, Phase::CutOff),
        }
    }

    /// Counts what the server's processor did for a transaction that has just been answered.
    fn note_server_cpu(&self, kind: usize, before: Account) {
        let after = self.session.as_ref().and_then(FollowedSession::account);
        if let Some(after) = after {
            let used = after.since(before);
            self.worker.counts.borrow_mut().types[kind].server_cpu.add(used.ran_ns);
        }
    }

    /// Lets an answer wait for so long, or until the attempt is cut off. Returns how long it waited.
    async fn hold_back(&mut self, owed: Nanos) -> Nanos {
        if owed == Nanos::ZERO {
            return owed;
        }
        let began = self.read_clock();
        let due = began + owed;
        let (timers, slot) = (&self.worker.timers, self.slot);
        timers.set(due, Token::User(self.index));
        slot.until(|| (timers.reached(due) || slot.cut.get()).then_some(())).await;
        self.read_clock().saturating_sub(began)
    }

    async fn connect(&mut self) -> Result<(), Attempt<OutcomeOf<C>>> {
        let worker = self.worker;
        let stopping = || !worker.is_running();
        let grant = worker.connecting.acquire(&worker.slots, self.index, stopping).await;
        if grant == Grant::GaveUp {
            return Err(Attempt::Halted);
        }
        let since = self.read_clock();
        self.slot.cut.set(false);
        self.slot.doing.set(Doing::Connecting(since));
        let dilation = worker.timers.clock().dilation();
        let opened = FollowedSession::open(&worker.connector, dilation, worker.server_is_here);
        let answer = self.slot.unless_cut(opened).await;
        self.slot.doing.set(Doing::Waiting);
        worker.connecting.release(&worker.slots);
        self.read_clock();
        match answer {
            Some(Ok(session)) => {
                self.session = Some(session);
                worker.session_opened();
                Ok(())
            }
            Some(Err(error)) => Err(Attempt::Failed(error, Phase::Connecting)),
            None => Err(self.cut_off("the connection", CommitState::NotSent, Phase::Connecting)),
        }
    }

    fn cut_off(&self, what: &str, commit: CommitState, phase: Phase) -> Attempt<OutcomeOf<C>> {
        if !self.worker.is_running() && (phase == Phase::Connecting || self.worker.is_halted()) {
            return Attempt::Halted;
        }
        let limit = self.worker.attempt_limit();
        Attempt::Failed(SessionError::client_timeout(what, limit, commit), phase)
    }

    /// Decides what follows an error. After the wait that this needs, the transaction may be tried
    /// again; otherwise it is lost.
    async fn after_error(
        &mut self,
        transaction: &TransactionOf<C>,
        error: &SessionError,
        phase: Phase,
        contention: &mut u32,
    ) -> Result<(), Loss> {
        self.failures += 1;
        let running = phase != Phase::Connecting;
        let unknown = running && error.commit_unknown && C::Workload::may_commit(transaction);
        let kind = kind_of::<C>(transaction);
        let noted = if unknown { UnknownCommit::Yes } else { UnknownCommit::No };
        self.note_error(running.then_some(kind), error, phase, noted);
        let reaction = match phase {
            Phase::Running => reaction(error.class),
            Phase::Connecting | Phase::CutOff => Reaction::Reconnect,
        };
        if reaction == Reaction::Reconnect {
            self.drop_session();
        }
        if unknown {
            return Err(Loss::Unknown);
        }
        let repeat = match reaction {
            Reaction::GiveUp => return Err(Loss::Failed),
            Reaction::Retry if *contention >= CONTENTION_RETRIES_MAX => return Err(Loss::Failed),
            Reaction::Retry => {
                *contention += 1;
                self.pause(Backoff::CONTENTION, *contention).await
            }
            Reaction::RetryLater | Reaction::Reconnect => {
                self.pause(Backoff::OUTAGE, self.failures).await
            }
        };
        if !repeat {
            return Err(Loss::Abandoned);
        }
        self.worker.counts.borrow_mut().types[kind].retries += 1;
        Ok(())
    }

    /// What becomes of a transaction that was under way when the thread was halted.
    fn halted(&mut self, transaction: &TransactionOf<C>) -> Loss {
        let under_way = self.session.is_some();
        self.drop_session();
        if under_way && C::Workload::may_commit(transaction) {
            Loss::Unknown
        } else {
            Loss::Abandoned
        }
    }

    /// Waits between attempts; false when the thread is stopping.
    async fn pause(&mut self, backoff: Backoff, failures: u32) -> bool {
        let due = self.now + backoff.wait(failures, &mut self.random);
        let worker = self.worker;
        worker.timers.set(due, Token::User(self.index));
        let reached = || worker.timers.reached(due).then_some(true);
        let stopping = || (!worker.is_running()).then_some(false);
        let go_on = self.slot.until(|| stopping().or_else(reached)).await;
        self.read_clock();
        go_on
    }

    /// Waits for a connection of the pool, where there is one; false when the thread is stopping.
    async fn take_connection(&mut self) -> bool {
        let worker = self.worker;
        let Some(pool) = &worker.pool else { return true };
        match pool.acquire(&worker.slots, self.index, || !worker.is_running()).await {
            Grant::GaveUp => return false,
            Grant::AtOnce => {}
            Grant::Waited => {
                self.read_clock();
            }
        }
        self.session = worker.idle_sessions.borrow_mut().pop();
        true
    }

    /// Under a slowdown it is kept unused for a while first.
    async fn give_back_connection(&mut self, since: Nanos) {
        let worker = self.worker;
        let Some(pool) = &worker.pool else { return };
        let surcharge = worker.connection_surcharge.get();
        if surcharge > 0.0 {
            let due = self.now + Nanos(((self.now - since).0 as f64 * surcharge) as u64);
            worker.timers.set(due, Token::User(self.index));
            let over = || worker.timers.reached(due) || !worker.is_running();
            self.slot.until(|| over().then_some(())).await;
            self.read_clock();
        }
        self.worker.idle_sessions.borrow_mut().extend(self.session.take());
        pool.release(&worker.slots);
    }

    fn drop_session(&mut self) {
        if self.session.take().is_some() {
            self.worker.session_lost();
        }
    }

    fn complete(&mut self, transaction: &TransactionOf<C>, outcome: &OutcomeOf<C>, times: &Times) {
        self.failures = 0;
        let mut counts = self.worker.counts.borrow_mut();
        counts.completed(kind_of::<C>(transaction), C::Workload::committed(outcome), times);
        counts.restored(self.slot, self.number, times.completed, Restoration::Completed);
        drop(counts);
        self.worker.note_outcome(transaction, outcome);
    }

    fn lose(&mut self, transaction: &TransactionOf<C>, loss: Loss) {
        self.worker.counts.borrow_mut().lost(kind_of::<C>(transaction), loss);
        if loss == Loss::Unknown {
            self.worker.note_unknown(transaction);
        }
    }

    fn note_error(
        &mut self,
        kind: Option<usize>,
        error: &SessionError,
        phase: Phase,
        unknown: UnknownCommit,
    ) {
        let mut counts = self.worker.counts.borrow_mut();
        counts.error(kind, self.now, error);
        if phase != Phase::Running || is_outage(error.class) || unknown == UnknownCommit::Yes {
            counts.outage_error(self.slot, self.number, self.now, unknown);
        }
    }

    fn leave_outage(&mut self) {
        let at = self.now;
        self.worker.counts.borrow_mut().restored(self.slot, self.number, at, Restoration::Left);
    }
}

fn kind_of<C: Connector>(transaction: &TransactionOf<C>) -> usize {
    C::Workload::kind(transaction)
}
