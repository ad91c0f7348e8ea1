//! Batch insertion on a database of the user's: a job with an end.
//!
//! Running it creates the table, fills it, and compares its rows one by one with what was acknowledged. When
//! the server goes away meanwhile, it is waited for, and compared then.

use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;
use underlay_core::{Histogram, Nanos};
use underlay_database::Engine;
use underlay_database::batch::{
    BatchError, BatchOptions, BatchReport, SessionEnd, describe, drop_schema, rows_by_server_clock,
    verify,
};
use underlay_database::schema_ownership::WorkloadTables;
use underlay_study::{BatchPlan, WorkloadKind};
use underlay_workload::batch::{Loop, MAX_ROWS, Mode, Parameters, STUDY_ROWS};

use super::command::{Action, Command, given_up};
use super::external::{Dropped, External};
use super::job::run_job;
use super::options::{Common, Loading, NOT_RUN, Problems};
use super::page::{latencies, latencies_json, latency_headings};
use super::steps::carry_out;
use super::verdict::verdict_of_run;
use crate::lab::external::Checks;
use crate::lab::interrupt;
use crate::lab::workload::{Access, BatchSubject, Loaded, session_failed, stopped};
use crate::stop::Stop;

/// Sessions have a thread each.
const MAX_SESSIONS: u32 = 1024;

/// Arguments of `underlay drive batch`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Transactions of the rows: implicit (each row its own), explicit (one for all rows of a session) or bulk (COPY
    /// or LOAD DATA, in one) [default: implicit].
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Rows to insert [default: 1000000].
    #[arg(long, value_name = "N")]
    rows: Option<u32>,
    /// Parallel sessions, each of which inserts a part of the rows [default: 1].
    #[arg(long, value_name = "N")]
    sessions: Option<u32>,
    /// Undo at the end instead of committing; not in implicit mode.
    #[arg(long)]
    rollback: bool,
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    let command = Command {
        common: &arguments.common,
        loading: &Loading::default(),
        users: None,
        name: "batch",
        tables: WorkloadTables::Batch,
        foreign_tables: false,
        foreign_size: (None, None),
        inserts_in_bulk: false,
    };
    let Arguments { mode, rows, sessions, rollback, .. } = arguments;
    let mut problems = Problems::default();
    problems.outside("--rows", *rows, 1..=MAX_ROWS);
    problems.outside("--sessions", *sessions, 1..=MAX_SESSIONS);
    let options = BatchOptions {
        parameters: Parameters { rows: rows.unwrap_or(STUDY_ROWS), seed: command.common.seed() },
        mode: mode.unwrap_or(Mode::Implicit),
        place: Loop::Client,
        sessions: sessions.unwrap_or(1),
        rollback: *rollback,
    };
    let has_no_transaction = *rollback && options.mode == Mode::Implicit;
    problems.refuse(
        &[("--rollback", has_no_transaction)],
        "needs a transaction to undo: add --mode explicit or --mode bulk",
    );
    if !command.runs() {
        let of_run = [
            ("--mode", mode.is_some()),
            ("--rows", rows.is_some()),
            ("--sessions", sessions.is_some()),
            ("--rollback", *rollback),
        ];
        problems.refuse(&of_run, NOT_RUN);
    }
    Command::refuse(problems, &command)?;
    carry_out(&command, BatchSubject { options })
}

impl External for BatchSubject {
    fn adopt(&mut self, _: &Command<'_>, _: Access<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop> {
        match drop_schema(access.target) {
            Ok(()) => Ok(Dropped::Done("the table".to_string())),
            Err(error) => {
                let is_absent = matches!(error, BatchError::NotThere);
                let stop = stopped("drop the table", error);
                if is_absent { Ok(Dropped::Nothing(stop)) } else { Err(stop) }
            }
        }
    }

    fn describe_load(&self, _: &Loaded) -> (String, Value) {
        (String::new(), json!({}))
    }

    fn check_alone(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let began = Instant::now();
        let described =
            describe(access.target).map_err(|error| stopped("read what was inserted", error))?;
        let BatchOptions { parameters, mode, rollback, .. } = described.options;
        let found = verify(access.target, &parameters, described.claims())
            .map_err(|error| stopped("compare the table with what was inserted", error))?;
        let ended = match (described.complete, rollback) {
            (true, false) => "complete",
            (true, true) => "complete, then undone as asked",
            (false, _) => "not complete",
        };
        command.say(&format!(
            "an insertion of {} rows of seed {}, {mode}, {ended}",
            parameters.rows, parameters.seed.0
        ));
        let checks =
            Checks { results: vec![BatchSubject::checked(&found)], duration: began.elapsed() };
        print_contents(command, &checks);
        Ok((contents_json(&checks), checks.verdict("")))
    }

    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let BatchOptions { parameters, mode, place, sessions, .. } = self.options;
        let kind = WorkloadKind::Batch(BatchPlan { rows: parameters.rows, mode, place, sessions });
        let finished = run_job(self, command, access, kind, true)?;
        let verdict = verdict_of_run(&finished, "stopped by the user");
        let report = match finished.summary.accounting {
            Some(Ok(report)) => report,
            Some(Err(error)) => {
                return Err(given_up(command, Action::Load, stopped("insert", error)));
            }
            None => {
                return Err(Stop::interrupted("stopped by the user before anything was inserted"));
            }
        };
        let by_server_clock = interrupt::shielded(|| rows_by_server_clock(access.target)).ok();
        if !command.common.json {
            print_report(access.target.engine, &report);
            match &finished.checked_after {
                Ok(checks) => print_contents(command, checks),
                Err(stop) => command.say(&format!(
                    "contents: could not be compared, so their state is unknown: {stop}"
                )),
            }
        }
        let check = match &finished.checked_after {
            Ok(checks) => contents_json(checks),
            Err(stop) => json!({ "could_not_be_made": stop.to_string() }),
        };
        let failed = match report.failure() {
            Some(error) => {
                Err(session_failed(error, format!("the insertion ended early: {error}")))
            }
            None => Ok(()),
        };
        Ok((report_json(&report, by_server_clock, check), verdict.and(failed)))
    }
}

fn contents_json(checks: &Checks) -> Value {
    checks.results.first().map_or(Value::Null, |check| check.detail.clone())
}

fn print_contents(command: &Command<'_>, checks: &Checks) {
    let Some(check) = checks.results.first() else { return };
    let Value::Object(found) = &check.detail else { return };
    let text = match found["violation_count"].as_u64() {
        Some(0) | None => "each as it was generated, none missing, none too many".to_string(),
        Some(count) => format!("{count} VIOLATIONS"),
    };
    let checksum = found["sha256"].as_str().unwrap_or_default();
    command.say(&format!("contents: {} rows, {text}; SHA-256 {checksum}", found["rows"]));
    for violation in found["violations"].as_array().into_iter().flatten() {
        command.say(&format!("  VIOLATED: {}", violation.as_str().unwrap_or_default()));
    }
}

fn print_report(engine: Engine, report: &BatchReport) {
    let BatchOptions { parameters, mode, sessions, rollback, .. } = report.options;
    outln!(
        "{} ({mode}, {sessions} sessions, {engine}, seed {})",
        headline(report),
        parameters.seed.0
    );
    outln!(
        "of {} rows {} acknowledged as committed{}",
        parameters.rows,
        report.rows_acknowledged(),
        if rollback { ", the others undone as asked" } else { "" }
    );
    outln!("{:8} {:>10} {}", "", "count", latency_headings());
    for (name, histogram) in
        [("insert", &report.insert_latency_ns), ("commit", &report.commit_latency_ns)]
    {
        if !histogram.is_empty() {
            outln!("{name:8} {:>10} {}", histogram.count(), latencies(histogram));
        }
    }
    outln!("rows per second, by the second in which the server {}:", taken(mode, rollback));
    for (line, seconds) in report.rows_per_second.chunks(10).enumerate() {
        let numbers: Vec<String> = seconds.iter().map(|rows| format!("{rows:>8}")).collect();
        outln!("  {:>5} s {}", line * 10, numbers.join(" "));
    }
}

/// A rate is one of the whole insertion: of an incomplete one it says how far it came, and why it ended.
fn headline(report: &BatchReport) -> String {
    let seconds = report.duration.as_secs_f64();
    if report.is_complete() {
        return format!(
            "{} rows in {seconds:.3} s: {:.0} rows/s",
            report.rows(),
            report.rate_per_second()
        );
    }
    let why = report.failure().map_or("stopped by the user".to_string(), ToString::to_string);
    format!(
        "INCOMPLETE after {seconds:.3} s: the server took {} of {} rows, {:.0} rows/s until then; {why}",
        report.rows(),
        report.options.parameters.rows,
        report.rate_per_second()
    )
}

fn taken(mode: Mode, rollback: bool) -> &'static str {
    match (mode, rollback) {
        (Mode::Implicit, _) => "acknowledged their commit",
        (Mode::Explicit, false) => "answered their statement (they are committed at the end)",
        (Mode::Explicit, true) => "answered their statement (they are undone at the end)",
        (Mode::Bulk, false) => "took them from the stream (they are committed at the end)",
        (Mode::Bulk, true) => "took them from the stream (they are undone at the end)",
    }
}

fn report_json(
    report: &BatchReport,
    by_server_clock: Option<Vec<(u32, u64)>>,
    check: Value,
) -> Value {
    let BatchOptions { parameters, mode, sessions, rollback, .. } = report.options;
    let parts: Vec<Value> = report
        .sessions
        .iter()
        .map(|session| {
            json!({
                "first": session.claim.slice.first,
                "last": session.claim.slice.last,
                "rows": session.rows,
                "rows_acknowledged": session.claim.least,
                "rows_possible": session.claim.most,
                "ended": match &session.end {
                    SessionEnd::Finished => "finished".to_string(),
                    SessionEnd::Stopped => "stopped".to_string(),
                    SessionEnd::Failed(error) => error.to_string(),
                },
            })
        })
        .collect();
    json!({
        "mode": mode.as_str(),
        "rows_wanted": parameters.rows,
        "seed": parameters.seed.0,
        "rollback": rollback,
        "complete": report.is_complete(),
        "failure": report.failure().map(ToString::to_string),
        "rows": report.rows(),
        "rows_acknowledged": report.rows_acknowledged(),
        "duration_ns": Nanos::from(report.duration).0,
        "rows_per_second_mean": report.rate_per_second(),
        "rows_per_second": report.rows_per_second,
        "rows_by_server_clock": by_server_clock,
        "insert_latency_ns": histogram_json(&report.insert_latency_ns),
        "commit_latency_ns": histogram_json(&report.commit_latency_ns),
        "session_count": sessions,
        "sessions": parts,
        "check": check,
    })
}

fn histogram_json(histogram: &Histogram) -> Value {
    let mut members = latencies_json(histogram);
    members.insert("count".to_string(), histogram.count().into());
    members.into()
}
