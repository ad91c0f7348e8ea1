//! Transactions counted by the database, and those completed by the client in the same span.
//!
//! Engines count different things. PostgreSQL counts every transaction, also that of a single statement; MariaDB counts the
//! statements COMMIT and ROLLBACK. Those that commit by themselves stand only in `Handler_commit`, which counts each statement
//! within a transaction as well, and the commits of a binary log: it is used where the load has none but such statements, nobody
//! said BEGIN, COMMIT or ROLLBACK meanwhile, and no binary log is written. `underlay drive` takes its TPM by the same rule
//! (`underlay_database::transaction_counter`). Which of them a type of transaction brings about is recorded by the load generator,
//! whose sessions do it.

use serde_json::Value;
use underlay_record::TransactionTick;
use underlay_record::conventions::{commits_by, document, source};

use super::run::ObservedRun;
use super::window::MeasuredWindow;
use crate::engine_settings::engine_settings;

const XACT_COMMIT: &str = "database.xact_commit";
/// Commits as MariaDB counts them, and what else is said to it of transactions.
const COM_COMMIT: &str = "status.com_commit";
const COM_ROLLBACK: &str = "status.com_rollback";
const COM_BEGIN: &str = "status.com_begin";
/// MariaDB's own commits.
const HANDLER_COMMIT: &str = "status.handler_commit";

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

/// What counts a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    /// PostgreSQL's transactions.
    Transactions,
    /// What MariaDB was told at the ends of transactions.
    Ends,
    /// MariaDB's own commits, of a load of statements that commit by themselves.
    Statements,
}

impl Counter {
    /// None where nothing counts what came in the run.
    fn of(run: &ObservedRun) -> Option<Counter> {
        if run.series(source::POSTGRES, XACT_COMMIT).is_some() {
            return Some(Counter::Transactions);
        }
        run.series(source::MARIADB, COM_COMMIT)?;
        let types = || run.transactions.iter().filter(|tick| done(tick) > 0);
        let counts =
            |counter: Counter, tick: &TransactionTick| each(run, counter, &tick.transaction) > 0.0;
        // A job has no types at all.
        if types().next().is_none() || types().any(|tick| counts(Counter::Ends, tick)) {
            return Some(Counter::Ends);
        }
        let are_statements = types().all(|tick| counts(Counter::Statements, tick));
        (are_statements && is_without_binary_log(run)).then_some(Counter::Statements)
    }

    /// The series of it, whose span is what is compared.
    fn series(self) -> (&'static str, &'static str) {
        match self {
            Counter::Transactions => (source::POSTGRES, XACT_COMMIT),
            Counter::Ends => (source::MARIADB, COM_COMMIT),
            Counter::Statements => (source::MARIADB, HANDLER_COMMIT),
        }
    }
}

/// `None` if there is no counter, it counts nothing of the load, or it was reset in between.
pub(super) fn of(window: &MeasuredWindow<'_>) -> Option<CountedByBoth> {
    let counter = Counter::of(window.run)?;
    if is_interrupted(window, counter) {
        return None;
    }
    Some(CountedByBoth {
        client_per_second: completed_alongside(window, counter)?,
        database_per_second: database_rate(window, counter)?,
    })
}

/// Whether a counter of the load was, or may have been, reset in the window.
pub(super) fn was_reset(window: &MeasuredWindow<'_>) -> bool {
    Counter::of(window.run).is_some_and(|counter| {
        is_interrupted(window, counter) && completed_alongside(window, counter).is_some()
    })
}

/// MariaDB's counters live in its memory, and those of PostgreSQL do not survive a crash. After a while they may be above what
/// they were, so that a loss of the database is enough.
fn is_interrupted(window: &MeasuredWindow<'_>, counter: Counter) -> bool {
    let (source, name) = counter.series();
    let series = window.run.series(source, name);
    window.lost_database() || series.is_some_and(|series| series.was_reset(window.span()))
}

/// Without the transactions of the collector, which reads the statistics in the same database.
///
/// What it asks MariaDB uses no table of an engine, and ends no transaction.
fn database_rate(window: &MeasuredWindow<'_>, counter: Counter) -> Option<f64> {
    let (source, name) = counter.series();
    let rate = |name| window.rate_throughout(source, name);
    let counted = rate(name)?;
    match counter {
        Counter::Transactions => {
            let own = rate("observer.transactions").unwrap_or(0.0);
            Some((counted + rate("database.xact_rollback")? - own).max(0.0))
        }
        Counter::Ends => Some(counted + rate(COM_ROLLBACK).unwrap_or(0.0)),
        Counter::Statements => {
            let said = rate(COM_BEGIN)? + rate(COM_COMMIT)? + rate(COM_ROLLBACK)?;
            (said == 0.0).then_some(counted)
        }
    }
}

/// Whether the binary log is off. Its commits would be counted in addition to those of the load.
fn is_without_binary_log(run: &ObservedRun) -> bool {
    let settings = run.documents.get(document::ENGINE_SETTINGS).map(engine_settings);
    let off = |(name, value): &(String, String)| {
        name == "log_bin" && (value.eq_ignore_ascii_case("off") || value == "0")
    };
    settings.is_some_and(|settings| settings.iter().any(off))
}

/// Completed transactions.
fn done(tick: &TransactionTick) -> u64 {
    tick.committed + tick.rolled_back
}

/// What the client completed per second over exactly the span of the database's counters in the
/// window, so that the two can be compared although their ticks are not aligned.
fn completed_alongside(window: &MeasuredWindow<'_>, counter: Counter) -> Option<f64> {
    let run = window.run;
    let (source, name) = counter.series();
    let (from, to) = run.series(source, name)?.span_within(window.span())?;
    // Types that never come have ticks too.
    let came = run.transactions.iter().filter(|tick| done(tick) > 0);
    let counted: Vec<(&TransactionTick, f64)> = came
        .clone()
        .map(|tick| (tick, each(run, counter, &tick.transaction)))
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

/// How often a transaction of this type is counted.
fn each(run: &ObservedRun, counter: Counter, transaction: &str) -> f64 {
    let driver = run.documents.get(document::DRIVER).unwrap_or(&Value::Null);
    let commits = &driver["commits"][transaction];
    let count = commits["count"].as_f64();
    match (counter, commits["by"].as_str(), count) {
        (Counter::Transactions, _, Some(count)) => count,
        (Counter::Transactions, _, None) => 1.0,
        (Counter::Ends, Some(commits_by::EXPLICIT), Some(count)) => count,
        (Counter::Ends, None, _) if TOLD_IN_OLD_RECORDS.contains(&transaction) => 1.0,
        (Counter::Statements, Some(commits_by::AUTOCOMMIT), Some(count)) => count,
        (Counter::Ends | Counter::Statements, ..) => 0.0,
    }
}
