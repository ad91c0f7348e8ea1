//! Errors of a real MariaDB, classified, and what is known of the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use underlay_core::RootSeed;
use underlay_database::mariadb::connect;
use underlay_database::tpcc::{Mode, Session};
use underlay_database::{Engine, ErrorClass};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip, query, settings};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, Ledger, OrderStatus, Terminal, Transaction,
};

use super::tpcc::{order, payment};

const LINES: [(u32, u32, u32); 5] = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1)];

#[test]
fn waiting_too_long_for_a_lock_is_a_timeout_and_the_session_goes_on() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let limited = database.target.with_statement_timeout(Duration::from_millis(1_100));
    let runtime = &database.bed.runtime;
    runtime.block_on(async {
        let mut blocker = connect(&database.target).await.unwrap();
        for mode in Mode::ALL {
            blocker.query_drop("BEGIN").await.unwrap();
            blocker.query_drop("UPDATE district SET d_tax = d_tax WHERE d_id = 2").await.unwrap();
            let parameters = database.parameters();
            let mut session = Session::connect(&limited, &parameters, mode).await.unwrap();
            let paid = Transaction::Payment(payment(1, 2, CustomerSelector::ById(1)));
            let error = session.run(&paid).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Timeout, "{mode}: {error}");
            blocker.query_drop("ROLLBACK").await.unwrap();
            // What was done before the wait is undone, and the session is fit for more.
            session.run(&paid).await.unwrap();
        }
    });
    assert_eq!(database.number("SELECT count(*) FROM history WHERE h_amount = 12.34"), 2);
    database.assert_consistent(None);
}

#[test]
fn a_deadlock_is_one_and_nothing_was_committed() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    database.bed.runtime.block_on(async {
        for mode in Mode::ALL {
            // Item 5's stock is held by somebody who then wants the district that the order holds. He has
            // changed more rows: the order is the victim.
            let mut other = connect(&database.target).await.unwrap();
            other.query_drop("BEGIN").await.unwrap();
            other
                .query_drop(
                    "UPDATE customer SET c_credit = c_credit, c_middle = 'XX' WHERE c_d_id = 9",
                )
                .await
                .unwrap();
            other.query_drop("UPDATE stock SET s_data = 'x' WHERE s_i_id = 5").await.unwrap();
            let parameters = database.parameters();
            let mut session = Session::connect(&database.target, &parameters, mode).await.unwrap();
            let placed = order(1, 1, &LINES);
            let (ordered, _) = futures_util::future::join(session.run(&placed), async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                other.query_drop("UPDATE district SET d_tax = d_tax WHERE d_id = 1").await.unwrap();
                other.query_drop("ROLLBACK").await.unwrap();
            })
            .await;
            let error = ordered.unwrap_err();
            assert_eq!(error.class, ErrorClass::Deadlock, "{mode}: {error}");
            assert!(!error.commit_unknown && error.message.contains("1213"), "{error}");
            session.run(&placed).await.unwrap();
        }
    });
    database.assert_consistent(None);
}

#[test]
fn a_session_that_is_ended_while_idle_has_nothing_unknown() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        database.run(&mut session, &order(1, 1, &LINES)).unwrap();
        kill_others(&database);
        let error = database.run(&mut session, &order(1, 1, &LINES)).unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost, "{mode}: {error}");
        // Also a call, which commits by itself: it was never sent.
        assert!(!error.commit_unknown, "{mode}: {error}");
        let error = database.run(&mut session, &order(1, 1, &LINES)).unwrap_err();
        assert_eq!((error.class, error.commit_unknown), (ErrorClass::ConnectionLost, false));
    }
    let orders = "SELECT count(*) FROM orders WHERE o_d_id = 1 AND o_id > 3000";
    assert_eq!(database.number(orders), 2);
    database.assert_consistent(None);
}

#[test]
fn a_session_that_is_ended_at_work_leaves_the_commit_unknown_only_where_one_was_sent() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let runtime = &database.bed.runtime;
    for mode in Mode::ALL {
        let mut blocker = runtime.block_on(connect(&database.target)).unwrap();
        let lock = "UPDATE district SET d_tax = d_tax WHERE d_id = 3";
        for sql in ["BEGIN", lock] {
            runtime.block_on(blocker.query_drop(sql)).unwrap();
        }
        let mut session = database.session(mode);
        let placed = order(1, 3, &LINES);
        let (error, ()) = runtime.block_on(async {
            let ended = end_when(&mut blocker, "info LIKE 'UPDATE district%next%'");
            futures_util::future::join(session.run(&placed), ended).await
        });
        let error = error.unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost, "{mode}: {error}");
        // A call commits by itself.
        assert_eq!(error.commit_unknown, mode == Mode::Procedures, "{mode}: {error}");
        runtime.block_on(blocker.query_drop("ROLLBACK")).unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM orders WHERE o_id > 3000"), 0);
    database.assert_consistent(None);
}

/// Nothing has come by then.
#[test]
fn a_server_that_is_killed_in_a_commit_leaves_it_unknown() {
    let mut database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    if database.bed.install.product() != "mariadb" {
        underlay_host::skip!("MySQL has no BACKUP STAGE");
    }
    for mode in Mode::ALL {
        let mut blocker = database.bed.runtime.block_on(connect(&database.target)).unwrap();
        for stage in ["START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"] {
            let sql = format!("BACKUP STAGE {stage}");
            database.bed.runtime.block_on(blocker.query_drop(sql)).unwrap();
        }
        let mut session = database.session(mode);
        let placed = order(1, 1, &LINES);
        let Database { server, bed, .. } = &mut database;
        let (error, ()) = bed.runtime.block_on(async {
            let killed = async {
                wait_for(&mut blocker, "state = 'Waiting for backup lock'").await;
                server.kill().unwrap();
            };
            futures_util::future::join(session.run(&placed), killed).await
        });
        let error = error.unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost, "{mode}: {error}");
        assert!(error.commit_unknown, "{mode}: {error}");
        database.server.start().unwrap();
        assert_eq!(database.number("SELECT count(*) FROM orders WHERE o_id > 3000"), 0);
        database.assert_consistent(None);
    }
}

#[test]
fn a_caller_who_stops_waiting_leaves_a_usable_session() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let runtime = &database.bed.runtime;
    for mode in Mode::ALL {
        let mut blocker = runtime.block_on(connect(&database.target)).unwrap();
        let mut session = database.session(mode);
        let paid = Transaction::Payment(payment(1, 2, CustomerSelector::ById(1)));
        runtime.block_on(async {
            blocker.query_drop("BEGIN").await.unwrap();
            blocker.query_drop("UPDATE district SET d_tax = d_tax WHERE d_id = 2").await.unwrap();
            let waited = tokio::time::timeout(Duration::from_millis(100), session.run(&paid));
            assert!(waited.await.is_err());
            blocker.query_drop("ROLLBACK").await.unwrap();
        });
        // What was abandoned ends first: committed as a call, undone as statements.
        database.run(&mut session, &paid).unwrap();
        database.run(&mut session, &order(1, 1, &LINES)).unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM history WHERE h_amount = 12.34"), 3);
    database.assert_consistent(None);
}

/// Rows are changed by several at once; one that the server refuses is in the middle of them.
#[test]
fn a_line_that_is_refused_undoes_its_order_and_the_session_goes_on() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let held = database.number("SELECT s_quantity FROM stock WHERE s_i_id = 3");
    database.execute(&format!(
        "ALTER TABLE stock ADD CONSTRAINT held CHECK (s_i_id <> 3 OR s_quantity = {held})"
    ));
    for mode in Mode::ALL {
        let before = database.content();
        let mut session = database.session(mode);
        let error = database.run(&mut session, &order(1, 1, &LINES)).unwrap_err();
        assert_eq!((error.class, error.commit_unknown), (ErrorClass::Constraint, false), "{error}");
        let status = OrderStatus { warehouse: 1, district: 1, customer: CustomerSelector::ById(1) };
        database.run(&mut session, &Transaction::OrderStatus(status)).unwrap();
        assert_eq!(database.content(), before, "{mode}");
        database.run(&mut session, &order(1, 1, &[(1, 1, 1), (2, 1, 1)])).unwrap();
    }
    database.assert_consistent(None);
}

/// An order in the middle of the ten has lost its customer, or itself.
#[test]
fn a_delivery_that_misses_a_row_delivers_nothing() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let oldest = database.number("SELECT min(no_o_id) FROM new_order WHERE no_d_id = 6");
    let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier: 7 });
    for missing in [
        format!(
            "DELETE FROM customer WHERE c_d_id = 6 AND c_id = \
             (SELECT o_c_id FROM orders WHERE o_d_id = 6 AND o_id = {oldest})"
        ),
        format!("DELETE FROM orders WHERE o_d_id = 6 AND o_id = {oldest}"),
    ] {
        database.execute(&missing);
        let before = database.content();
        for mode in Mode::ALL {
            let mut session = database.session(mode);
            let error = database.run(&mut session, &delivery).unwrap_err();
            assert_eq!((error.class, error.commit_unknown), (ErrorClass::Other, false), "{error}");
            drop(session);
            assert_eq!(database.content(), before, "{mode}");
        }
    }
}

/// The server describes columns again when they have changed, and not before.
#[test]
fn tables_that_are_altered_are_read_as_they_are_then() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let mut session = database.session(Mode::Statements);
    for (district, column) in [(1, "bigint"), (2, "smallint unsigned"), (3, "int")] {
        for _ in 0..2 {
            let outcome = database.run(&mut session, &order(1, district, &LINES)).unwrap();
            assert!(outcome.committed);
        }
        database.execute(&format!("ALTER TABLE stock MODIFY s_quantity {column} NOT NULL"));
    }
    let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier: 1 });
    database.run(&mut session, &delivery).unwrap();
    database.execute("ALTER TABLE new_order MODIFY no_o_id bigint NOT NULL");
    database.run(&mut session, &delivery).unwrap();
    database.assert_consistent(None);
}

/// Waits for a connection of which the server says `what`, and gives its number.
async fn wait_for(client: &mut mysql_async::Conn, what: &str) -> u64 {
    let sql = format!(
        "SELECT id FROM information_schema.processlist \
          WHERE {what} AND id <> CONNECTION_ID() AND db = 'tpcc'"
    );
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(id) = client.query_first(&sql).await.unwrap() {
            return id;
        }
        assert!(Instant::now() < until, "no connection with {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Ends the connection of which the server says `what`.
async fn end_when(client: &mut mysql_async::Conn, what: &str) {
    let id = wait_for(client, what).await;
    client.query_drop(format!("KILL {id}")).await.unwrap();
}

/// Ends every connection but the one that asks, and waits until they have ended: the server answers a kill before
/// it is carried out, and shows a session as busy for a moment after its last answer.
fn kill_others(database: &Database) {
    const OTHERS: &str = "SELECT id FROM information_schema.processlist \
         WHERE db = 'tpcc' AND id <> CONNECTION_ID()";
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let ids = database.texts(OTHERS);
        // In the sessions' runtime, which only then sees that their connections have ended.
        let pause = async { tokio::time::sleep(Duration::from_millis(10)).await };
        database.bed.runtime.block_on(pause);
        if ids.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "connections {ids:?} do not end");
        for id in ids {
            // Connections of earlier questions may have ended meanwhile.
            let _ = query(&database.target, &format!("KILL {id}"));
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_server_killed_under_load() {
    let mut database = or_skip!(Database::loaded(Engine::Mariadb, TWO_WAREHOUSES));
    // As a study would run it: a commit is on the disk before it is acknowledged.
    database.server.stop(underlay_database::managed::StopMode::Fast).unwrap();
    database.server.set_settings(settings(&[("innodb_buffer_pool_size", "64M")]));
    database.server.start().unwrap();
    let before = database.order_numbers();
    let parameters = database.parameters();
    let mut ledger = Ledger::new();
    for round in 0..2 {
        let target = &database.target;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4u64)
            .map(|user| {
                let (target, acknowledged) = (target.clone(), acknowledged.clone());
                std::thread::spawn(move || {
                    let mode = Mode::ALL[user as usize % 2];
                    let runtime = underlay_testbed::runtime();
                    let seed = user + 10 * round;
                    let until_then = until_it_dies(target, parameters, mode, seed, &acknowledged);
                    runtime.block_on(until_then)
                })
            })
            .collect();
        // As many as show something, also where others leave little of the host.
        let until = Instant::now() + Duration::from_secs(60);
        while acknowledged.load(Ordering::Relaxed) < 100 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        database.server.kill().unwrap();
        for thread in threads {
            ledger.merge(&thread.join().unwrap());
        }
        assert!(database.server.start().unwrap().recovered);
        assert!(ledger.acknowledged_count() > 50, "{}", ledger.acknowledged_count());
        database.assert_consistent(Some((&ledger, &before)));
    }
}

/// Runs transactions until the connection is lost; returns what was acknowledged.
async fn until_it_dies(
    target: underlay_database::Target,
    parameters: underlay_workload::tpcc::Parameters,
    mode: Mode,
    user: u64,
    acknowledged: &AtomicU64,
) -> Ledger {
    let mut session = Session::connect(&target, &parameters, mode).await.unwrap();
    let mut terminal = Terminal::with_inputs(&parameters, user, RootSeed(5));
    let mut ledger = Ledger::new();
    loop {
        let transaction = terminal.next();
        let result = session.run(&transaction).await;
        match (&transaction, result) {
            (Transaction::NewOrder(order), Ok(outcome)) => {
                if let Some(id) = outcome.order_id {
                    ledger.acknowledge(order.warehouse, order.district, id);
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            }
            (_, Ok(_)) => {}
            (transaction, Err(error)) => {
                if let Transaction::NewOrder(order) = transaction
                    && error.commit_unknown
                {
                    ledger.unknown(order.warehouse, order.district);
                }
                if error.class == ErrorClass::ConnectionLost {
                    return ledger;
                }
            }
        }
    }
}
