//! A database that is slow, frozen, away or stubborn on demand, and knows what it committed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use underlay_core::Nanos;
use underlay_database::session::{Commits, Connector, Session};
use underlay_database::{ErrorClass, SessionError};
use underlay_workload::tpcc::{NewOrder, Outcome, Tpcc, Transaction};

use crate::activity::Span;
use crate::timers::Clock;

/// How the database behaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    /// Time that each transaction takes.
    pub(super) service: Duration,
    /// Nothing is answered within; all is afterwards.
    pub(super) frozen: Option<Span>,
    /// The server is away within: sessions break, new ones are refused. Whatever is in progress at its beginning
    /// is committed and never answered for odd warehouses, undone for even ones.
    pub(super) away: Option<Span>,
    /// Every n-th attempt fails so, before anything is done.
    pub(super) every: Option<(u64, ErrorClass)>,
    /// The n-th attempt is never answered.
    pub(super) stuck: Option<u64>,
}

/// What really happened.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Attempts, connections, and the most transactions and connects that were going on at once.
    pub(super) attempts: u64,
    pub(super) connects: u64,
    pub(super) running: u32,
    pub(super) running_max: u32,
    pub(super) connecting: u32,
    pub(super) connecting_max: u32,
    /// Transactions by home warehouse in the order of their first success.
    pub(super) completed: BTreeMap<u32, Vec<Transaction>>,
    /// Attempts that failed on purpose, in order.
    pub(super) refused: Vec<Transaction>,
    /// Order numbers by home warehouse and district: committed.
    pub(super) orders: BTreeMap<(u32, u32), Vec<u32>>,
    /// Transactions committed, answered or not; and new orders among the unanswered.
    pub(super) committed: u64,
    pub(super) unanswered_orders: u64,
}

/// Opens sessions with it.
#[derive(Clone)]
pub(super) struct FakeConnector {
    database: FakeDatabase,
    workload: Tpcc,
}

#[derive(Clone)]
pub(super) struct FakeDatabase {
    behaviour: Behaviour,
    clock: Arc<Mutex<Option<Clock>>>,
    truth: Arc<Mutex<Truth>>,
}

pub(super) struct FakeSession {
    database: FakeDatabase,
    opened: Nanos,
}

impl FakeDatabase {
    pub(super) fn new(behaviour: Behaviour) -> FakeDatabase {
        FakeDatabase { behaviour, clock: Arc::default(), truth: Arc::default() }
    }

    pub(super) fn of(&self, workload: Tpcc) -> FakeConnector {
        FakeConnector { database: self.clone(), workload }
    }

    pub(super) fn start(&self, clock: Clock) {
        *self.clock.lock().unwrap() = Some(clock);
    }

    pub(super) fn truth<T>(&self, look: impl FnOnce(&mut Truth) -> T) -> T {
        look(&mut self.truth.lock().unwrap())
    }

    fn now(&self) -> Nanos {
        self.clock.lock().unwrap().unwrap().now()
    }

    fn away_at(&self, at: Nanos) -> bool {
        self.behaviour.away.is_some_and(|away| away.begin <= at && at < away.end)
    }

    /// Waits for `length`, and longer if the database is frozen meanwhile.
    async fn work(&self, length: Duration) {
        tokio::time::sleep(length).await;
        if let Some(frozen) = self.behaviour.frozen
            && (frozen.begin..frozen.end).contains(&self.now())
        {
            tokio::time::sleep((frozen.end - self.now()).into()).await;
        }
    }
}

/// Counts something for as long as it goes on, even if it is cut off.
struct Going<'a>(&'a FakeDatabase, fn(&mut Truth) -> &mut u32);

impl<'a> Going<'a> {
    fn on(
        database: &'a FakeDatabase,
        now: fn(&mut Truth) -> &mut u32,
        most: fn(&mut Truth) -> &mut u32,
    ) -> Going<'a> {
        database.truth(|truth| {
            *now(truth) += 1;
            *most(truth) = (*most(truth)).max(*now(truth));
        });
        Going(database, now)
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.0.truth(|truth| *self.1(truth) -= 1);
    }
}

impl Connector for FakeConnector {
    type Workload = Tpcc;
    type Session = FakeSession;

    fn workload(&self) -> &Tpcc {
        &self.workload
    }

    fn commits(&self, _: usize) -> Commits {
        Commits::Explicitly
    }

    fn limit_statements(&mut self, _: Duration) {}

    async fn connect(&self) -> Result<FakeSession, SessionError> {
        let database = &self.database;
        let _going =
            Going::on(database, |truth| &mut truth.connecting, |truth| &mut truth.connecting_max);
        database.work(Duration::from_millis(5)).await;
        if database.away_at(database.now()) {
            return Err(error(ErrorClass::ConnectionLost, Sent::No));
        }
        database.truth(|truth| truth.connects += 1);
        Ok(FakeSession { database: database.clone(), opened: database.now() })
    }
}

impl Session for FakeSession {
    type Workload = Tpcc;

    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        let database = &self.database;
        let _going =
            Going::on(database, |truth| &mut truth.running, |truth| &mut truth.running_max);
        let began = database.now();
        let attempt = database.truth(|truth| {
            truth.attempts += 1;
            truth.attempts
        });
        if database.behaviour.stuck == Some(attempt) {
            std::future::pending::<()>().await;
        }
        if let Some((n, class)) = database.behaviour.every
            && attempt.is_multiple_of(n)
        {
            database.truth(|truth| truth.refused.push(transaction.clone()));
            return Err(error(class, Sent::No));
        }
        // A session that was open when the server went away is of no use even afterwards.
        if database
            .behaviour
            .away
            .is_some_and(|away| self.opened < away.begin && away.begin <= began)
        {
            return Err(error(ErrorClass::ConnectionLost, Sent::No));
        }
        database.work(database.behaviour.service).await;
        let lost = database
            .behaviour
            .away
            .is_some_and(|away| began < away.begin && away.begin <= database.now());
        if lost {
            database.truth(|truth| truth.commit_unanswered(transaction));
            return Err(error(ErrorClass::ConnectionLost, Sent::Yes));
        }
        Ok(database.truth(|truth| truth.commit(transaction)))
    }
}

impl Truth {
    fn commit(&mut self, transaction: &Transaction) -> Outcome {
        self.completed.entry(home(transaction)).or_default().push(transaction.clone());
        let order_id = match transaction {
            Transaction::NewOrder(order) => self.enter(order),
            _ => None,
        };
        let rolled_back = matches!(transaction, Transaction::NewOrder(order) if order.rolls_back());
        self.committed += u64::from(!rolled_back);
        Outcome { committed: !rolled_back, order_id, skipped_deliveries: 0 }
    }

    fn enter(&mut self, order: &NewOrder) -> Option<u32> {
        if order.rolls_back() {
            return None;
        }
        let orders = self.orders.entry((order.warehouse, order.district)).or_default();
        let id = 3_001 + orders.len() as u32;
        orders.push(id);
        Some(id)
    }

    fn commit_unanswered(&mut self, transaction: &Transaction) {
        let nothing_to_commit = match transaction {
            Transaction::NewOrder(order) => order.rolls_back(),
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => true,
            Transaction::Payment(_) | Transaction::Delivery(_) => false,
        };
        if home(transaction) % 2 == 1 && !nothing_to_commit {
            let outcome = self.commit(transaction);
            self.unanswered_orders += u64::from(outcome.order_id.is_some());
        }
    }
}

#[derive(PartialEq)]
enum Sent {
    No,
    Yes,
}

fn error(class: ErrorClass, commit: Sent) -> SessionError {
    let message = format!("rehearsed {}", class.as_str());
    SessionError { class, sqlstate: None, message, commit_unknown: commit == Sent::Yes }
}

/// The user's home warehouse.
pub(super) fn home(transaction: &Transaction) -> u32 {
    match transaction {
        Transaction::NewOrder(order) => order.warehouse,
        Transaction::Payment(payment) => payment.warehouse,
        Transaction::OrderStatus(status) => status.warehouse,
        Transaction::Delivery(delivery) => delivery.warehouse,
        Transaction::StockLevel(level) => level.warehouse,
    }
}
