//! Batch insertion on the database of the command: a job with an end, so it has no rate, no users and no mix.
//!
//! Running it makes the table anew, fills it, and compares row by row what is there with what was acknowledged. When
//! the server goes away on the way, it is waited for, and compared then.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::{Histogram, Nanos, RootSeed};
use underlay_database::batch::{
    BatchError, BatchOptions, BatchReport, SessionEnd, describe, drop_schema, insert,
    rows_by_server_clock, verify,
};
use underlay_database::place::Afterwards;
use underlay_database::{Engine, ErrorClass, Target};
use underlay_workload::batch::{Claim, MAX_ROWS, Mode, Parameters, STUDY_ROWS, Verdict};

use super::connection::Sessions;
use super::{
    Action, Arguments, MUST_FINISH, RETURN_LIMIT, foreign, given_up, job, may_begin, rights,
};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};

/// Sessions have a thread each.
const MAX_SESSIONS: u32 = 1024;
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Arguments of batch insertion.
#[derive(Debug, Args)]
pub(super) struct BatchArguments {
    /// Transactions of the rows: implicit (each row its own), explicit (one for all rows of a session) or bulk (COPY
    /// or LOAD DATA, in one) (batch).
    #[arg(long, value_name = "MODE", default_value = "implicit")]
    mode: Mode,
    /// Rows to insert (batch).
    #[arg(long, value_name = "N", default_value_t = STUDY_ROWS)]
    rows: u32,
    /// Sessions that insert side by side, each a part of the rows (batch).
    #[arg(long, value_name = "N", default_value_t = 1)]
    sessions: u32,
    /// Undo at the end instead of committing; not in implicit mode (batch).
    #[arg(long)]
    rollback: bool,
}

/// What the table holds after an insertion.
struct Compared {
    verdict: Verdict,
    /// Second since the first row's, rows.
    by_server_clock: Vec<(u32, u64)>,
}

/// Carries out the command.
pub(super) fn carry_out(arguments: &Arguments) -> Result<(), Stop> {
    let target = super::target(arguments)?;
    let done = carry_out_steps(arguments, &target, &options(arguments));
    done.map_err(|stop| rights::explain(arguments, &target, stop))
}

fn carry_out_steps(
    arguments: &Arguments,
    target: &Target,
    options: &BatchOptions,
) -> Result<(), Stop> {
    let mut result = Map::new();
    let sessions = Sessions::look(arguments, target)?;
    result.insert("sessions".to_string(), sessions.json());
    let mut verdict = Ok(());
    let is_run = arguments.runs();
    if is_run {
        if let Some(replaced) = foreign::replace(arguments, target, Afterwards::Load)? {
            result.insert("replaced".to_string(), replaced);
        }
        let (run, ended) = run(arguments, target, options)?;
        result.insert("run".to_string(), run);
        verdict = ended;
    }
    if arguments.check && may_begin(&mut verdict) {
        let described = describe(target).map_err(|error| stop(&error))?;
        let claims = described.claims();
        let found = verify(target, &described.options.parameters, claims)
            .map_err(|error| given_up(arguments, Action::Check, stop(&error)))?;
        let Parameters { rows, seed } = described.options.parameters;
        let ended = match (described.complete, described.options.rollback) {
            (true, false) => "complete",
            (true, true) => "complete, then undone as asked",
            (false, _) => "not complete",
        };
        arguments.say(&format!(
            "an insertion of {rows} rows of seed {}, {}, {ended}",
            seed.0, described.options.mode
        ));
        print_verdict(arguments, &found);
        result.insert("check".to_string(), verdict_json(&found));
        verdict = verdict.and(judge(&found));
    }
    if arguments.drop && may_begin(&mut verdict) {
        let replaced =
            if is_run { None } else { foreign::replace(arguments, target, Afterwards::Leave)? };
        match replaced {
            Some(replaced) => {
                result.insert("replaced".to_string(), replaced);
            }
            None => drop_schema(target)
                .map_err(|error| given_up(arguments, Action::Drop, stop(&error)))?,
        }
        arguments.say("dropped the table");
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if arguments.json {
        outln!("{:#}", Value::from(result));
    }
    verdict
}

/// All that is wrong with the arguments.
pub(super) fn problems(arguments: &Arguments) -> Vec<String> {
    let batch = &arguments.batch;
    let mut wrong = Vec::new();
    let mut refuse = |is_wrong: bool, text: String| {
        if is_wrong {
            wrong.push(text);
        }
    };
    refuse(
        !(1..=MAX_ROWS).contains(&batch.rows),
        format!("--rows {} is not between 1 and {MAX_ROWS}", batch.rows),
    );
    refuse(
        !(1..=MAX_SESSIONS).contains(&batch.sessions),
        format!("--sessions {} is not between 1 and {MAX_SESSIONS}", batch.sessions),
    );
    refuse(
        batch.rollback && batch.mode == Mode::Implicit,
        "--rollback needs a transaction to undo: add --mode explicit or --mode bulk".to_string(),
    );
    refuse(
        arguments.load,
        "--load is another word for running a batch insertion: use --run".to_string(),
    );
    wrong.extend(job::meaningless_options(arguments, "batch"));
    wrong
}

fn options(arguments: &Arguments) -> BatchOptions {
    let batch = &arguments.batch;
    BatchOptions {
        parameters: Parameters { rows: batch.rows, seed: RootSeed(arguments.seed) },
        mode: batch.mode,
        sessions: batch.sessions,
        rollback: batch.rollback,
    }
}

fn run(
    arguments: &Arguments,
    target: &Target,
    options: &BatchOptions,
) -> Result<(Value, Result<(), Stop>), Stop> {
    let report = insert(target, options, &interrupt::requested)
        .map_err(|error| given_up(arguments, Action::Load, stop(&error)))?;
    let failure = report.failure().cloned();
    if failure.as_ref().is_some_and(|error| error.class == ErrorClass::ConnectionLost) {
        arguments.say("the server went away; waiting for it to answer, to see what it kept");
    }
    // An insertion that was stopped is compared all the same; a comparison that is stopped leaves the insertion's figures.
    MUST_FINISH.store(interrupt::requested(), Ordering::Relaxed);
    let compared = verify_when_back(target, options, &report.claims()).and_then(|verdict| {
        let by_server_clock = rows_by_server_clock(target).map_err(|error| stop(&error))?;
        Ok(Compared { verdict, by_server_clock })
    });
    let compared = compared.map_err(|stop| given_up(arguments, Action::Check, stop));
    MUST_FINISH.store(false, Ordering::Relaxed);
    if !arguments.json {
        print_report(target.engine, &report);
        match &compared {
            Ok(compared) => print_verdict(arguments, &compared.verdict),
            Err(stop) => arguments.say(&format!(
                "contents: could not be compared, so nothing is said of them: {stop}"
            )),
        }
    }
    let json = report_json(&report, &compared);
    let judged = compared.and_then(|compared| judge(&compared.verdict));
    let failed = match failure {
        Some(error) => {
            let text = format!("the insertion ended early: {error}");
            Err(rights::session_failed(&error, text))
        }
        None => Ok(()),
    };
    let interrupted =
        if interrupt::requested() { Err(Stop::interrupted("stopped by the user")) } else { Ok(()) };
    Ok((json, judged.and(interrupted).and(failed)))
}

/// Compares what is there with what was acknowledged, once the server answers.
fn verify_when_back(
    target: &Target,
    options: &BatchOptions,
    claims: &[Claim],
) -> Result<Verdict, Stop> {
    let deadline = Instant::now() + RETURN_LIMIT;
    loop {
        match verify(target, &options.parameters, claims.to_vec()) {
            Err(BatchError::Session(error))
                if error.class == ErrorClass::ConnectionLost && Instant::now() < deadline =>
            {
                if !interrupt::sleep_until(Instant::now() + Duration::from_millis(500)) {
                    return Err(Stop::interrupted("stopped by the user"));
                }
            }
            verified => return verified.map_err(|error| stop(&error)),
        }
    }
}

fn stop(error: &BatchError) -> Stop {
    match error {
        BatchError::Session(session) => rights::session_failed(session, chain(error)),
        BatchError::Thread(_) => Stop::run_failed(chain(error)),
        _ => Stop::bad_input(chain(error)),
    }
}

fn judge(verdict: &Verdict) -> Result<(), Stop> {
    match verdict.violations.first() {
        None => Ok(()),
        Some(first) => Err(Stop::check_violated(format!(
            "the table is not what was inserted, in {} places: {first}",
            verdict.violation_count
        ))),
    }
}

fn print_report(engine: Engine, report: &BatchReport) {
    let BatchOptions { parameters, mode, sessions, rollback } = report.options;
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
    outln!(
        "{:8} {:>10} {}",
        "",
        "count",
        QUANTILES.map(|(name, _)| format!("{name:>9}")).join(" ")
    );
    for (name, histogram) in
        [("insert", &report.insert_latency_ns), ("commit", &report.commit_latency_ns)]
    {
        if !histogram.is_empty() {
            let cells = QUANTILES.map(|(_, q)| {
                format!("{:>9}", Nanos(histogram.quantile(q).unwrap_or(0)).to_string())
            });
            outln!("{name:8} {:>10} {}", histogram.count(), cells.join(" "));
        }
    }
    outln!("rows per second, by the second in which the server {}:", taken(mode, rollback));
    for (line, seconds) in report.rows_per_second.chunks(10).enumerate() {
        let numbers: Vec<String> = seconds.iter().map(|rows| format!("{rows:>8}")).collect();
        outln!("  {:>5} s {}", line * 10, numbers.join(" "));
    }
}

/// A rate is one of the whole insertion: of one that did not come to its end it is said how far it came, and why no further.
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

fn print_verdict(arguments: &Arguments, verdict: &Verdict) {
    arguments.say(&format!(
        "contents: {} rows, {}; SHA-256 {}",
        verdict.rows,
        match verdict.violation_count {
            0 => "each as it was generated, none missing, none too many".to_string(),
            n => format!("{n} VIOLATIONS"),
        },
        verdict.checksum
    ));
    for violation in &verdict.violations {
        arguments.say(&format!("  VIOLATED: {violation}"));
    }
}

fn report_json(report: &BatchReport, compared: &Result<Compared, Stop>) -> Value {
    let check = match compared {
        Ok(compared) => verdict_json(&compared.verdict),
        Err(stop) => json!({ "could_not_be_made": stop.to_string() }),
    };
    let server = compared.as_ref().ok().map(|compared| &compared.by_server_clock);
    let BatchOptions { parameters, mode, sessions, rollback } = report.options;
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
        "rows_by_server_clock": server,
        "insert_latency_ns": histogram_json(&report.insert_latency_ns),
        "commit_latency_ns": histogram_json(&report.commit_latency_ns),
        "session_count": sessions,
        "sessions": parts,
        "check": check,
    })
}

fn histogram_json(histogram: &Histogram) -> Value {
    let mut members = Map::new();
    members.insert("count".to_string(), histogram.count().into());
    for (name, q) in QUANTILES {
        members.insert(name.to_string(), histogram.quantile(q).into());
    }
    members.into()
}

fn verdict_json(verdict: &Verdict) -> Value {
    json!({
        "rows": verdict.rows,
        "sha256": verdict.checksum,
        "sha256_expected": verdict.expected_checksum,
        "violation_count": verdict.violation_count,
        "violations": verdict.violations,
    })
}
