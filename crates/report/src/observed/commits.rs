//! What the database counted of the load, beside what the client completed of the same.
//!
//! Engines count different things. PostgreSQL counts every transaction, also that of a single statement; MariaDB counts the
//! statements COMMIT and ROLLBACK. Those that commit by themselves stand only in `Handler_commit`, which counts each statement
//! within a transaction as well, and is deliberately not used here. Which of them a type of transaction brings about is
//! recorded by the load generator, whose sessions do it.

use serde_json::Value;
use underlay_record::TransactionTick;
use underlay_record::conventions::{commits_by, document, source};

use super::run::ObservedRun;
use super::window::MeasuredWindow;

const XACT_COMMIT: &str = "database.xact_commit";
/// Commits as MariaDB counts them.
const COM_COMMIT: &str = "status.com_commit";

/// The types that end with a COMMIT on MariaDB, as far as records go that do not say so themselves.
const TOLD_IN_OLD_RECORDS: [&str; 9] = [
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
    "purchase",
    "read_write",
    "read_only",
    "write_only",
];

/// Commits and rollbacks per second, counted from two sides over the same span.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedByBoth {
    /// By the engine's own counters.
    pub(super) database_per_second: f64,
    /// What the client completed of what these count.
    pub(super) client_per_second: f64,
}

/// None where there is no counter, it counts nothing that the load does, or it began anew on the way.
pub(super) fn of(window: &MeasuredWindow<'_>) -> Option<CountedByBoth> {
    if is_interrupted(window) {
        return None;
    }
    Some(CountedByBoth {
        client_per_second: completed_alongside(window)?,
        database_per_second: database_rate(window)?,
    })
}

/// Whether there is a counter of what the load does that began anew in the window, or may have.
pub(super) fn began_anew(window: &MeasuredWindow<'_>) -> bool {
    is_interrupted(window) && completed_alongside(window).is_some()
}

/// MariaDB's counters live in its memory, and those of PostgreSQL do not survive a crash. After a while they may be above what
/// they were, so that a loss of the database is enough.
fn is_interrupted(window: &MeasuredWindow<'_>) -> bool {
    let fell = |source, name| {
        window.run.series(source, name).is_some_and(|series| series.began_anew(window.span()))
    };
    window.lost_database()
        || fell(source::MARIADB, COM_COMMIT)
        || fell(source::POSTGRES, XACT_COMMIT)
}

/// Without the transactions of the collector, which reads the statistics in the same database.
///
/// On MariaDB these are COMMIT and ROLLBACK statements, of which the collector issues none.
fn database_rate(window: &MeasuredWindow<'_>) -> Option<f64> {
    let statements = |name| window.rate_throughout(source::MARIADB, name);
    if let Some(commits) = statements(COM_COMMIT) {
        return Some(commits + statements("status.com_rollback").unwrap_or(0.0));
    }
    let transactions = |name| window.rate_throughout(source::POSTGRES, name);
    let counted = transactions(XACT_COMMIT)? + transactions("database.xact_rollback")?;
    let own = transactions("observer.transactions").unwrap_or(0.0);
    Some((counted - own).max(0.0))
}

/// What the client completed per second over exactly the span of the database's counters in the
/// window, so that the two can be compared although their ticks are not aligned.
fn completed_alongside(window: &MeasuredWindow<'_>) -> Option<f64> {
    let run = window.run;
    let of_postgres = run.series(source::POSTGRES, XACT_COMMIT);
    let engine = if of_postgres.is_some() { Engine::Postgres } else { Engine::Mariadb };
    let series = of_postgres.or_else(|| run.series(source::MARIADB, COM_COMMIT))?;
    let (from, to) = series.span_within(window.span())?;
    let done = |tick: &TransactionTick| tick.committed + tick.rolled_back;
    // Types that never come have ticks too.
    let came = run.transactions.iter().filter(|tick| done(tick) > 0);
    let counted: Vec<(&TransactionTick, f64)> = came
        .clone()
        .map(|tick| (tick, each(run, engine, &tick.transaction)))
        .filter(|(_, each)| *each > 0.0)
        .collect();
    if counted.is_empty() && came.count() > 0 {
        return None;
    }
    let within = |tick: &TransactionTick| {
        let (begin, end) = (tick.interval.begin.as_secs_f64(), tick.interval.end.as_secs_f64());
        (end.min(to) - begin.max(from)).max(0.0) / (end - begin).max(f64::EPSILON)
    };
    let completed: f64 =
        counted.iter().map(|(tick, each)| done(tick) as f64 * each * within(tick)).sum();
    (to > from).then(|| completed / (to - from))
}

#[derive(Clone, Copy)]
enum Engine {
    Postgres,
    Mariadb,
}

/// How often the engine counts a transaction of this type.
fn each(run: &ObservedRun, engine: Engine, transaction: &str) -> f64 {
    let driver = run.documents.get(document::DRIVER).unwrap_or(&Value::Null);
    let commits = &driver["commits"][transaction];
    let count = commits["count"].as_f64();
    match (engine, commits["by"].as_str(), count) {
        (Engine::Postgres, _, Some(count)) => count,
        (Engine::Postgres, _, None) => 1.0,
        (Engine::Mariadb, Some(commits_by::TOLD), Some(count)) => count,
        (Engine::Mariadb, Some(_), _) => 0.0,
        (Engine::Mariadb, None, _) if TOLD_IN_OLD_RECORDS.contains(&transaction) => 1.0,
        (Engine::Mariadb, ..) => 0.0,
    }
}
