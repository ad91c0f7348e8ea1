//! Sysbench's tables on a real MariaDB: the database they are in, what is refused, errors by class.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use underlay_core::RootSeed;
use underlay_database::managed::StopMode;
use underlay_database::mariadb::connect;
use underlay_database::sysbench::{
    Session, SysbenchError, check, describe, drop_tables, identity, load, tally,
};
use underlay_database::{Engine, ErrorClass, Target};
use underlay_testbed::{Bed, TestServer, or_skip, query, text};
use underlay_workload::sysbench::{Distribution, Operation, Parameters, Script, Transaction};

fn parameters() -> Parameters {
    Parameters::new(2, 500, RootSeed(5), Distribution::Special, Script::ReadWrite).unwrap()
}

/// One server for all scenes: starting it costs more than most of them.
#[test]
fn tables_are_made_used_and_removed() {
    let mut host = or_skip!(TestServer::start(Engine::Mariadb, &[]));
    // No database is named: there is one for it.
    let (bed, target) = (&host.bed, host.target());
    a_load_makes_what_sysbench_makes(bed, &target);
    equal_seeds_make_equal_rows(bed, &target);
    two_writers_of_a_row_meet(bed, &target);
    a_lock_is_waited_for_no_longer_than_allowed(bed, &target);
    a_killed_connection_is_lost(bed, &target);
    only_what_underlay_made_is_removed(bed, &target);
    host.server.stop(StopMode::Fast).unwrap();
}

fn a_load_makes_what_sysbench_makes(bed: &Bed, target: &Target) {
    let wait = |work| bed.runtime.block_on(work);
    let absent = bed.runtime.block_on(describe(target));
    assert!(matches!(absent, Err(SysbenchError::NotLoaded)), "{absent:?}");
    let report = load(target, &parameters(), 2).unwrap();
    assert_eq!((report.rows, report.bytes > 1_000 * 180), (1_000, true));
    let again = load(target, &parameters(), 1);
    assert!(matches!(again, Err(SysbenchError::AlreadyLoaded)), "{again:?}");
    assert_eq!(bed.runtime.block_on(describe(target)).unwrap().parameters, parameters());
    let columns = "SELECT group_concat(concat_ws(' ', column_name, column_type, is_nullable, extra) \
                          ORDER BY ordinal_position SEPARATOR ', ') \
                     FROM information_schema.columns WHERE table_schema = 'sbtest' AND table_name = 'sbtest2'";
    let columns = text(target, columns).replace("int(11)", "int");
    assert_eq!(columns, "id int NO auto_increment, k int NO , c char(120) NO , pad char(60) NO ");
    let keys = "SELECT group_concat(concat(index_name, '=', column_name) ORDER BY index_name) \
                  FROM information_schema.statistics WHERE table_schema = 'sbtest' AND table_name = 'sbtest2'";
    assert_eq!(text(target, keys), "k_2=k,PRIMARY=id");
    // The next inserted row gets the id after the last loaded one.
    let next = "SELECT auto_increment FROM information_schema.tables \
                 WHERE table_schema = 'sbtest' AND table_name = 'sbtest1'";
    assert_eq!(text(target, next), "501");
    let results = wait(check(target, &parameters(), None)).unwrap();
    assert_eq!(results.iter().filter(|result| result.violation.is_some()).count(), 0);
    // Equal parameters, another engine: not to be compared.
    assert_ne!(
        identity(Engine::Mariadb, &parameters()),
        identity(Engine::Postgresql, &parameters())
    );
}

fn equal_seeds_make_equal_rows(bed: &Bed, target: &Target) {
    let other = target.with_database("another");
    load(&other, &parameters(), 1).unwrap();
    let content = |database: &str| {
        let sql = format!(
            "SELECT concat(count(*), ' ', sum(crc32(concat_ws('|', id, k, c, pad)))) FROM {database}.sbtest2"
        );
        text(target, &sql)
    };
    assert_eq!(content("another"), content("sbtest"));
    assert!(content("sbtest").starts_with("500 "));
    bed.runtime.block_on(drop_tables(&other)).unwrap();
    // It made the database, so it removed it.
    let left = query(target, "SHOW DATABASES LIKE 'another'").unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// Another writer holds the row: it is waited for, unless each wants what the other holds.
fn two_writers_of_a_row_meet(bed: &Bed, target: &Target) {
    let before = bed.runtime.block_on(tally(target, &parameters())).unwrap();
    bed.runtime.block_on(async {
        let mut other = connect(&target.with_database("sbtest")).await.unwrap();
        other
            .query_drop("INSERT INTO sbtest1 (id, k, c, pad) VALUES (901, 1, '', '')")
            .await
            .unwrap();
        let mut session = Session::connect(target, 2).await.unwrap();
        let replace = Operation::DeleteInsert { table: 1, id: 901, k: 7, text: 1 };
        other.query_drop("BEGIN").await.unwrap();
        other.query_drop("UPDATE sbtest1 SET k = 3 WHERE id = 901").await.unwrap();
        let transaction =
            Transaction { script: Script::WriteOnly, operations: vec![replace, replace] };
        let (outcome, ()) = futures_util::future::join(session.run(&transaction), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            other.query_drop("COMMIT").await.unwrap();
        })
        .await;
        let outcome = outcome.unwrap();
        assert_eq!((outcome.inserted, outcome.deleted), (2, 2));
        // Each holds what the other wants: one of them is the victim, and nothing of it remains.
        other.query_drop("BEGIN").await.unwrap();
        other.query_drop("UPDATE sbtest2 SET k = k + 1 WHERE id <= 300").await.unwrap();
        let transaction = Transaction {
            script: Script::WriteOnly,
            operations: vec![
                Operation::IndexUpdate { table: 1, id: 901 },
                Operation::IndexUpdate { table: 2, id: 9 },
            ],
        };
        let (outcome, ()) = futures_util::future::join(session.run(&transaction), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            other.query_drop("UPDATE sbtest1 SET k = 5 WHERE id = 901").await.unwrap();
            other.query_drop("ROLLBACK").await.unwrap();
        })
        .await;
        let error = outcome.unwrap_err();
        assert_eq!(error.class, ErrorClass::Deadlock, "{error}");
        assert!(!error.commit_unknown);
        assert_eq!(session.run(&transaction).await.unwrap().index_updates, 2);
        other.query_drop("DELETE FROM sbtest1 WHERE id = 901").await.unwrap();
    });
    let after = bed.runtime.block_on(tally(target, &parameters())).unwrap();
    assert_eq!((after.rows, after.k), (before.rows, before.k + 1));
}

fn a_lock_is_waited_for_no_longer_than_allowed(bed: &Bed, target: &Target) {
    let limited = target.with_statement_timeout(Duration::from_millis(1_000));
    bed.runtime.block_on(async {
        let mut blocker = connect(&target.with_database("sbtest")).await.unwrap();
        blocker.query_drop("BEGIN").await.unwrap();
        blocker.query_drop("UPDATE sbtest1 SET k = k WHERE id = 3").await.unwrap();
        let mut session = Session::connect(&limited, 2).await.unwrap();
        let update = Transaction {
            script: Script::UpdateIndex,
            operations: vec![Operation::IndexUpdate { table: 1, id: 3 }],
        };
        let error = session.run(&update).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Timeout, "{error}");
        blocker.query_drop("ROLLBACK").await.unwrap();
        assert_eq!(session.run(&update).await.unwrap().index_updates, 1);
    });
}

fn a_killed_connection_is_lost(bed: &Bed, target: &Target) {
    bed.runtime.block_on(async {
        let mut other = connect(&target.with_database("sbtest")).await.unwrap();
        let mut session =
            Session::connect(&target.with_application_name("victim"), 2).await.unwrap();
        // A kill is answered before it is carried out.
        loop {
            let ids: Vec<u64> = other
                .query("SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND db = 'sbtest'")
                .await
                .unwrap();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                match other.query_drop(format!("KILL {id}")).await {
                    // Sessions of before may still have been on their way out.
                    Err(mysql_async::Error::Server(error)) if error.code == 1094 => {}
                    killed => killed.unwrap(),
                }
            }
        }
        let write = Transaction {
            script: Script::Delete,
            operations: vec![Operation::Delete { table: 1, id: 4 }],
        };
        let error = session.run(&write).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::ConnectionLost, "{error}");
        assert!(!error.commit_unknown, "it was never sent: {error}");
        let error = session.run(&write).await.unwrap_err();
        assert!(error.message.contains("already lost its connection"), "{error}");
        assert!(!error.commit_unknown);
    });
}

fn only_what_underlay_made_is_removed(bed: &Bed, target: &Target) {
    query(target, "CREATE TABLE sbtest.mine (id int)").unwrap();
    bed.runtime.block_on(drop_tables(target)).unwrap();
    let left = query(target, "SHOW TABLES FROM sbtest").unwrap();
    assert_eq!(left, ["mine"]);
    query(target, "CREATE TABLE sbtest.sbtest1 (id int)").unwrap();
    for refused in [load(target, &parameters(), 1).unwrap_err(), {
        bed.runtime.block_on(drop_tables(target)).unwrap_err()
    }] {
        assert!(
            matches!(&refused, SysbenchError::Foreign { table } if table.starts_with("sbtest")),
            "{refused:?}"
        );
    }
}
