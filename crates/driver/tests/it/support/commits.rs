//! What a server counts of a load, beside what the sessions say of how they have transactions committed.

use std::time::{Duration, Instant};

use underlay_database::session::Commits;
use underlay_database::{Engine, transaction_counter};
use underlay_driver::DriveSummary;
use underlay_testbed::TestServer;

/// What sessions of PostgreSQL do beside the load at most, on both sides of it: their own set-up, which a server may hand in
/// late, and ours.
const ASIDE: u64 = 200;

/// The engine's counter so far.
pub fn counted(host: &TestServer) -> u64 {
    host.bed.runtime.block_on(transaction_counter::count(&host.target())).unwrap().transactions()
}

/// The counter has grown since `before` by what the types' commits come to.
pub fn assert_said_truly<B>(host: &TestServer, before: u64, summary: &DriveSummary<B>) {
    let engine = host.target().engine;
    let each = |commits: Commits| match (engine, commits) {
        (_, Commits::Explicitly) => 1,
        (Engine::Postgresql, Commits::Automatically(statements)) => u64::from(statements),
        // In none of its counters of commits.
        (Engine::Mariadb, Commits::Automatically(_)) => 0,
    };
    let mut expected = 0;
    // What was given up half-way: a ROLLBACK each.
    let mut perhaps = 0;
    for (kind, (_, commits)) in summary.commits.iter().enumerate() {
        let counts = summary.totals.of(kind);
        expected += counts.completed() * each(*commits);
        perhaps += counts.retries + counts.failed + counts.unknown + counts.abandoned;
    }
    assert!(!summary.commits.is_empty());
    let aside = if engine == Engine::Postgresql { ASIDE } else { 0 };
    // Sessions of PostgreSQL hand in what they counted when they end, which their client does not wait for.
    let end = Instant::now() + Duration::from_secs(30);
    let mut grown = counted(host) - before;
    while grown < expected && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        grown = counted(host) - before;
    }
    assert!(
        (expected..=expected + perhaps + aside).contains(&grown),
        "{engine} counted {grown}, {expected} and at most {perhaps} more were expected: {:?}",
        summary.commits
    );
}
