//! Functions and single statements do the same work, and both find rows by their keys.

use std::time::Duration;

use underlay_database::Engine;
use underlay_database::tpcc::{Mode, Outcome};
use underlay_database::transaction_counter::count;
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip};
use underlay_workload::tpcc::Terminal;

const TERMINALS: usize = 4;
const TRANSACTIONS: usize = 600;

#[test]
fn both_modes_leave_the_same_rows() {
    let mut results = Vec::new();
    for mode in Mode::ALL {
        let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
        let mut session = database.session(mode);
        let parameters = database.parameters();
        let mut terminals: Vec<Terminal> =
            (0..TERMINALS as u64).map(|user| Terminal::new(&parameters, user)).collect();
        let outcomes: Vec<Outcome> = (0..TRANSACTIONS)
            .map(|number| {
                let transaction = terminals[number % TERMINALS].next();
                database.run(&mut session, &transaction).unwrap()
            })
            .collect();
        database.assert_consistent(None);
        results.push((outcomes, database.content()));
    }
    let (statements, procedures) = (results.pop().unwrap(), results.pop().unwrap());
    assert_eq!(procedures.0, statements.0);
    assert_eq!(procedures.1, statements.1);
    assert!(procedures.0.iter().any(|outcome| !outcome.committed), "no order was undone");
}

#[test]
fn every_access_is_by_a_key() {
    for mode in Mode::ALL {
        let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
        // The load counts too, and a template keeps that.
        database.execute("SELECT pg_stat_reset()");
        // Directly after the load, when plans are made that stay for the whole run.
        let mut session = database.session(mode);
        let mut terminal = Terminal::new(&database.parameters(), 0);
        for _ in 0..100 {
            database.run(&mut session, &terminal.next()).unwrap();
        }
        drop(session);
        // The server's processes report what they did when they end, with some delay.
        let reported =
            "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = 'tpcc' AND idx_scan > 0";
        while database.number(reported) < 8 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let whole = "SELECT relname FROM pg_stat_user_tables \
             WHERE schemaname = 'tpcc' AND seq_scan > 0 AND relname <> 'underlay_population'";
        assert!(database.texts(whole).is_empty(), "{mode}: {:?}", database.texts(whole));
    }
}

/// What sessions did to get ready is no part of what is counted while they are driven.
#[test]
fn setting_up_is_counted_before_the_first_transaction() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    if database.number("SELECT current_setting('server_version_num')::bigint") < 150_000 {
        underlay_host::skip!("before 15 sessions cannot be told to hand in what they counted");
    }
    let counted = || database.bed.runtime.block_on(count(&database.target)).unwrap();
    let mut sessions: Vec<_> = (0..10).map(|_| database.session(Mode::Procedures)).collect();
    let ready = counted();
    // A session hands in with the first transaction that ends a second after the last time.
    std::thread::sleep(Duration::from_millis(1_500));
    let mut terminal = Terminal::new(&database.parameters(), 0);
    for session in &mut sessions {
        database.run(session, &terminal.next()).unwrap();
    }
    // Ten, and what counting took; getting ready takes eight each.
    let (driven, _) = counted().since(&ready).unwrap();
    assert!((10..50).contains(&driven), "{driven}");
}
