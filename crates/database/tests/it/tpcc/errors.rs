//! What goes wrong, and what a session says about it: the class, and whether the transaction may have been committed.

use std::time::Duration;

use tokio_postgres::Client;
use underlay_database::tpcc::{Mode, Session};
use underlay_database::{Address, Engine, ErrorClass, SessionError, Target};
use underlay_testbed::{Database, ONE_WAREHOUSE, or_skip};
use underlay_workload::tpcc::{
    CustomerSelector, NewOrder, OrderLineInput, Payment, StockLevel, Transaction,
};

fn payment() -> Transaction {
    Transaction::Payment(Payment {
        warehouse: 1,
        district: 1,
        customer_warehouse: 1,
        customer_district: 1,
        customer: CustomerSelector::ById(1),
        amount_cents: 100,
    })
}

fn new_order() -> Transaction {
    let line = |item| OrderLineInput { item, supply_warehouse: 1, quantity: 1 };
    let lines = (1..=5).map(line).collect();
    Transaction::NewOrder(NewOrder { warehouse: 1, district: 1, customer: 1, lines })
}

fn harmless() -> Transaction {
    Transaction::StockLevel(StockLevel { warehouse: 1, district: 1, threshold: 10 })
}

/// Class, code and whether the commit's outcome is unknown.
fn facts(error: &SessionError) -> (ErrorClass, Option<&str>, bool) {
    (error.class, error.sqlstate.as_deref(), error.commit_unknown)
}

/// What holds a lock that transactions wait for, until it is dropped.
struct Blocker(Client);

impl Blocker {
    fn hold(database: &Database, lock: &str) -> Blocker {
        database.bed.runtime.block_on(async {
            let client = database.target.connect().await.unwrap();
            client.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
            Blocker(client)
        })
    }

    fn release(&self, database: &Database) {
        database.bed.runtime.block_on(self.0.batch_execute("ROLLBACK")).unwrap();
    }
}

const CUSTOMER_LOCK: &str = "SELECT 1 FROM tpcc.customer WHERE c_d_id = 1 AND c_id = 1 FOR UPDATE";
/// Ends the sessions under test.
const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE datname = current_database() AND application_name = 'victim'";

/// A session that `TERMINATE` ends.
fn victim(database: &Database, mode: Mode) -> Session {
    let target = database.target.with_application_name("victim");
    let parameters = database.parameters();
    let session = Session::connect(&target, &parameters, mode);
    database.bed.runtime.block_on(session).unwrap()
}

/// Runs a transaction, and meanwhile, once it waits, a statement.
fn run_and_meanwhile(
    database: &Database,
    session: &mut Session,
    transaction: &Transaction,
    wait_event: &str,
    statement: &str,
) -> Result<(), SessionError> {
    let meanwhile = async {
        let client = database.target.connect().await.unwrap();
        let waiting = format!(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'victim' \
                AND wait_event = '{wait_event}'"
        );
        while client.query_opt(&waiting, &[]).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.batch_execute(statement).await.unwrap();
    };
    database.bed.runtime.block_on(async {
        let (outcome, ()) = tokio::join!(session.run(transaction), meanwhile);
        outcome.map(|_| ())
    })
}

#[test]
fn what_takes_too_long_is_a_timeout() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let name = &database.target.database;
    for (setting, code) in [("statement_timeout", "57014"), ("lock_timeout", "55P03")] {
        database.execute(&format!("ALTER DATABASE {name} SET {setting} = '100ms'"));
        let blocker = Blocker::hold(&database, CUSTOMER_LOCK);
        for mode in Mode::ALL {
            let mut session = database.session(mode);
            let error = database.run(&mut session, &payment()).unwrap_err();
            assert_eq!(facts(&error), (ErrorClass::Timeout, Some(code), false), "{mode}: {error}");
            // The same session goes on, and holds no lock of what it could not finish.
            database.run(&mut session, &harmless()).unwrap();
        }
        blocker.release(&database);
        database.execute(&format!("ALTER DATABASE {name} RESET {setting}"));
    }
    for mode in Mode::ALL {
        database.run(&mut database.session(mode), &payment()).unwrap();
    }
    database.assert_consistent(None);
}

#[test]
fn a_server_that_takes_no_writes_is_read_only() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let name = &database.target.database;
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        for transaction in [new_order(), payment()] {
            let error = database.run(&mut session, &transaction).unwrap_err();
            assert_eq!(facts(&error), (ErrorClass::ReadOnly, Some("25006"), false), "{mode}");
        }
        database.run(&mut session, &harmless()).unwrap();
    }
    // The checks only read, and can be made nevertheless.
    database.assert_consistent(None);
}

#[test]
fn the_victim_of_a_deadlock_can_go_on() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    for mode in Mode::ALL {
        // The other side locks in the wrong order, and is patient: the session is the victim.
        let other = Blocker::hold(
            &database,
            "SET LOCAL deadlock_timeout = '60s'; SELECT 1 FROM tpcc.stock WHERE s_i_id = 5 FOR UPDATE",
        );
        let mut session = victim(&database, mode);
        let error = database.bed.runtime.block_on(async {
            let locked =
                other.0.batch_execute("SELECT 1 FROM tpcc.stock WHERE s_i_id = 1 FOR UPDATE");
            let locked = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                locked.await.unwrap();
            };
            let order = new_order();
            tokio::join!(session.run(&order), locked).0.unwrap_err()
        });
        assert_eq!(facts(&error), (ErrorClass::Deadlock, Some("40P01"), false), "{mode}: {error}");
        other.release(&database);
        assert!(database.run(&mut session, &new_order()).unwrap().committed, "{mode}");
    }
    database.assert_consistent(None);
}

#[test]
fn a_session_that_is_ended_at_work_is_lost() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    // A call of a function commits by itself: it may have. Statements before COMMIT commit nothing.
    for (mode, unknown) in [(Mode::Procedures, true), (Mode::Statements, false)] {
        let blocker = Blocker::hold(&database, CUSTOMER_LOCK);
        let mut session = victim(&database, mode);
        let error =
            run_and_meanwhile(&database, &mut session, &payment(), "transactionid", TERMINATE)
                .unwrap_err();
        let expected = (ErrorClass::ConnectionLost, Some("57P01"), unknown);
        assert_eq!(facts(&error), expected, "{mode}: {error}");
        blocker.release(&database);
        // A lost session stays lost, and says so.
        let again = database.run(&mut session, &payment()).unwrap_err();
        assert_eq!(facts(&again), (ErrorClass::ConnectionLost, None, false), "{mode}: {again}");
    }
    database.assert_consistent(None);
}

#[test]
fn a_session_that_is_ended_while_idle_has_nothing_unknown() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    for mode in Mode::ALL {
        let mut session = victim(&database, mode);
        database.run(&mut session, &payment()).unwrap();
        database.execute(TERMINATE);
        let gone = "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'victim'";
        while database.number(gone) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // In the session's runtime, which only now sees that its connection has ended.
        let pause = async { tokio::time::sleep(Duration::from_millis(10)).await };
        database.bed.runtime.block_on(pause);
        let error = database.run(&mut session, &payment()).unwrap_err();
        let expected = (ErrorClass::ConnectionLost, Some("57P01"), false);
        assert_eq!(facts(&error), expected, "{mode}: {error}");
    }
}

/// Makes commits of payments wait for the lock of the first item, or fail.
fn at_commit(database: &Database, action: &str) {
    database.execute(&format!(
        "CREATE OR REPLACE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS \
           'BEGIN {action}; RETURN NULL; END'; \
         DROP TRIGGER IF EXISTS at_commit ON tpcc.history; \
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON tpcc.history \
           DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()"
    ));
}

#[test]
fn a_session_that_is_ended_during_its_commit_knows_nothing() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    at_commit(&database, "PERFORM 1 FROM tpcc.item WHERE i_id = 1 FOR UPDATE");
    for mode in Mode::ALL {
        let lock = "SELECT 1 FROM tpcc.item WHERE i_id = 1 FOR UPDATE";
        let blocker = Blocker::hold(&database, lock);
        let mut session = victim(&database, mode);
        let error =
            run_and_meanwhile(&database, &mut session, &payment(), "transactionid", TERMINATE)
                .unwrap_err();
        let expected = (ErrorClass::ConnectionLost, Some("57P01"), true);
        assert_eq!(facts(&error), expected, "{mode}: {error}");
        blocker.release(&database);
    }
    database.assert_consistent(None);
}

#[test]
fn a_commit_that_the_server_refuses_is_no_commit() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    at_commit(&database, "RAISE EXCEPTION ''refused'' USING ERRCODE = ''40001''");
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        let error = database.run(&mut session, &payment()).unwrap_err();
        let expected = (ErrorClass::Serialization, Some("40001"), false);
        assert_eq!(facts(&error), expected, "{mode}: {error}");
        database.run(&mut session, &harmless()).unwrap();
    }
    database.assert_consistent(None);
}

#[test]
fn damaged_data_is_a_constraint() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    // The next number exists already.
    database.execute("UPDATE tpcc.district SET d_next_o_id = 3000 WHERE d_id = 1");
    for mode in Mode::ALL {
        let error = database.run(&mut database.session(mode), &new_order()).unwrap_err();
        assert_eq!(facts(&error), (ErrorClass::Constraint, Some("23505"), false), "{mode}");
    }
}

#[test]
fn a_caller_who_stops_waiting_leaves_a_usable_session() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    for mode in Mode::ALL {
        let blocker = Blocker::hold(&database, CUSTOMER_LOCK);
        let mut session = database.session(mode);
        let transaction = payment();
        database.bed.runtime.block_on(async {
            let limit = Duration::from_millis(100);
            assert!(tokio::time::timeout(limit, session.run(&transaction)).await.is_err());
        });
        blocker.release(&database);
        // What was abandoned ends first: committed as a call, undone as statements.
        database.run(&mut session, &payment()).unwrap();
        database.run(&mut session, &new_order()).unwrap();
    }
    let payments = "SELECT count(*) FROM tpcc.history WHERE h_amount = 1";
    assert_eq!(database.number(payments), 3);
    database.assert_consistent(None);
}

#[test]
fn a_server_that_is_not_there_is_a_lost_connection() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let nowhere = Target {
        address: Address::Tcp("127.0.0.1".to_string()),
        // Privileged, and unused on any sane host.
        port: 1,
        ..database.target.clone()
    };
    let parameters = database.parameters();
    let error = database
        .bed
        .runtime
        .block_on(Session::connect(&nowhere, &parameters, Mode::Procedures))
        .err()
        .unwrap();
    assert_eq!(facts(&error), (ErrorClass::ConnectionLost, None, false), "{error}");
    let missing = database.target.with_database("missing");
    let error = database
        .bed
        .runtime
        .block_on(Session::connect(&missing, &parameters, Mode::Procedures))
        .err()
        .unwrap();
    assert_eq!(facts(&error), (ErrorClass::Other, Some("3D000"), false), "{error}");
}
