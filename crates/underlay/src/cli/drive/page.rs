//! What is printed of a run of users: for people and as JSON. Jobs print what they did themselves.

use serde_json::{Map, Value, json};
use underlay_core::{Histogram, Nanos};
use underlay_database::load_report::LoadReport;
use underlay_driver::{
    Delivery, DeliveryVerdict, DriveSummary, ErrorSample, Found, Saturation, SaturationVerdict,
    StepTaken, TypeTick,
};
use underlay_record::{CheckOutcome, PhaseKind, Severity};
use underlay_study::{WorkloadKind, WorkloadPlan};

use super::options::{Mixes, UserLoad};
use super::{Command, External, recording, verdict_of_run};
use crate::lab::abort::Abort;
use crate::lab::event::{Event, Observer};
use crate::lab::external::{CountedSite, ExternalPlan, Finished, Reading, carry_out, reading};
use crate::lab::interrupt;
use crate::lab::ladder::{Window, denial};
use crate::lab::rate_search::{Searched, describe};
use crate::lab::workload::{Access, Checked};
use crate::stop::Stop;

/// What a workload adds to the page.
#[derive(Default)]
pub(super) struct Added {
    /// Lines after the headline.
    pub(super) said: Vec<String>,
    /// Lines at the end: checks, identity, size.
    pub(super) ended: Vec<String>,
    /// Members of the JSON object.
    pub(super) members: Map<String, Value>,
}

/// How the database counts what the headline counts, by a sequence of its own.
pub(super) type Counter<'a> = &'a dyn Fn() -> Result<Option<u64>, Stop>;

/// A run of users, as the page needs it.
struct Shown<'a> {
    users: &'a UserLoad,
    window: &'a Window,
    search: Option<&'a Searched>,
    readings: Option<(Reading, Reading)>,
    mixes: &'a Mixes,
    /// Of users who think: the transactions that had ended when the window began, where those were fewer than users.
    early: Option<u64>,
}

/// Says on standard error what happens meanwhile, a line per second.
pub(super) struct Console {
    /// Whether seconds are printed: those of a measured window of users.
    pub(super) prints_seconds: bool,
    /// A job's seconds are no headline.
    pub(super) is_job: bool,
}

impl Observer for Console {
    fn notice(&mut self, event: &Event<'_>) {
        match event {
            Event::PhaseBegan { kind, .. } => {
                self.prints_seconds = *kind == PhaseKind::Measure && !self.is_job;
            }
            Event::Second { .. } if !self.prints_seconds => {}
            Event::Second { headline, unit, response_p99, errors, .. } => errln!(
                "{headline:>8.0} {unit}  p99 {:>8}  {errors} errors",
                response_p99.map_or("-".to_string(), |p99| p99.to_string()),
            ),
            Event::Found { severity, text } if *severity != Severity::Invalid => errln!("{text}"),
            _ => {}
        }
    }
}

/// Runs users of `subject` and prints what came of it.
pub(super) fn run_users<S: External>(
    subject: &S,
    command: &Command<'_>,
    access: Access<'_>,
    kind: WorkloadKind,
    counter: Counter<'_>,
    conclude: impl FnOnce(&Finished<S>) -> Result<Added, Stop>,
) -> Result<(Value, Result<(), Stop>), Stop> {
    let Some(users) = command.users else { return Ok((Value::Null, Ok(()))) };
    let shape = kind.shape();
    let mixes = users.mixes(shape).map_err(|problems| Stop::bad_input(problems.join("\n")))?;
    let plan = ExternalPlan {
        workload: WorkloadPlan {
            kind,
            pacing: users.pacing(),
            seed: command.common.seed(),
            statement_timeout: Nanos::from_secs(60),
        },
        procedure: users.procedure(),
        mix: mixes.first.clone(),
        weights: mixes.later.clone(),
        connections: users.connections,
        threads: users.threads,
        ramp: users.ramp(),
        checks: true,
    };
    let ask = || {
        let read = counter().and_then(|counted| reading(access, counted));
        read.inspect_err(|stop| errln!("{stop}")).ok()
    };
    let mut site = CountedSite { ask: &ask, first: None, last: None };
    let recorder = recording::create(command, access, subject, &plan)?;
    let finished = carry_out(
        subject,
        access,
        &plan,
        recorder,
        &mut site,
        &mut Console { prints_seconds: false, is_job: false },
    )?;
    let readings = site.first.zip(site.last);
    let none = Window::default();
    let search = finished.measured.search.as_ref();
    let Some(window) = finished.measured.windows.last().or(search.map(|search| &search.last))
    else {
        return Err(match finished.ended {
            Err(Abort::Failed(reason)) => Stop::run_failed(reason),
            _ => Stop::interrupted("stopped by the user before anything was measured"),
        });
    };
    let window = if window.tick.types.is_empty() { &none } else { window };
    let early = (users.thinks() && shape.name != "sysbench" && search.is_none())
        .then_some(window.ended_before)
        .filter(|ended| *ended < u64::from(users.users()));
    let added = match &finished.checked_after {
        Ok(_) => interrupt::shielded(|| conclude(&finished)),
        Err(stop) => Err(stop.clone()),
    };
    let added = added.unwrap_or_else(unjudged);
    let shown = Shown { users, window, search, readings, mixes: &mixes, early };
    if !command.common.json {
        print(&shown, &finished.summary, &added);
    }
    let mut json = run_json(&shown, &finished.summary, &added);
    json["asked"] = users.asked();
    let verdict = verdict_of_run(&finished, "stopped by the user")
        .and(nothing_done(&shown, &finished.ended))
        .and(delivered(&shown));
    Ok((json, verdict))
}

/// Of a database that could not be asked any more: what the users saw is known all the same.
fn unjudged(stop: Stop) -> Added {
    let mut members = Map::new();
    members.insert("checks".to_string(), json!({ "could_not_be_made": stop.to_string() }));
    let text = format!("checks: could not be made, so nothing is known of the data: {stop}");
    Added { said: Vec::new(), ended: vec![text], members }
}

/// A run that was cut short, or in which nothing came to its end, is no result.
fn nothing_done(shown: &Shown<'_>, ended: &Result<(), Abort>) -> Result<(), Stop> {
    let tick = &shown.window.tick;
    if let Some(denied) = denial(tick) {
        return Err(Stop::denied(format!("the transactions are not allowed: {denied}")));
    }
    if let Err(Abort::Failed(reason)) = ended {
        return Err(Stop::run_failed(reason.clone()));
    }
    match tick.samples.iter().next() {
        Some(sample) if tick.completed() == 0 => Err(Stop::run_failed(format!(
            "no transaction was completed in the measured load: {}",
            sample.message
        ))),
        _ => Ok(()),
    }
}

/// Whether the load was delivered, or a rate found.
fn delivered(shown: &Shown<'_>) -> Result<(), Stop> {
    if let Some(search) = shown.search {
        return match search.rate() {
            Some(_) => Ok(()),
            None => Err(Stop::load_not_delivered(conclusion(search))),
        };
    }
    match Delivery::of(&shown.window.tick) {
        Some(delivery) if delivery.verdict == DeliveryVerdict::Missed => {
            Err(Stop::load_not_delivered(missed(&delivery)))
        }
        _ => Ok(()),
    }
}

/// What of a requested load was delivered.
fn missed(delivery: &Delivery) -> String {
    let Delivery { requested, completed, overflowed, queued, .. } = *delivery;
    let share = completed as f64 * 100.0 / requested.max(1) as f64;
    format!(
        "the requested rate was not delivered: {share:.1} % of the load was completed ({completed} of {requested} \
         transactions; {queued} still waited at the end, {overflowed} were dropped); latencies are those of a lower load"
    )
}

/// A check and what it found, in one line.
pub(super) fn check_line(check: &Checked) -> String {
    let text = match &check.outcome {
        CheckOutcome::Ok => "ok".to_string(),
        CheckOutcome::Violated { rows: 0, example } => format!("VIOLATED: {example}"),
        CheckOutcome::Violated { rows, example } => format!("VIOLATED by {rows} rows: {example}"),
        CheckOutcome::Failed { error } => format!("COULD NOT BE MADE: {error}"),
    };
    format!("{:7} {}: {text}", check.id, check.title)
}

/// The same as JSON.
pub(super) fn check_json(check: &Checked) -> Value {
    let (outcome, rows, detail) = match &check.outcome {
        CheckOutcome::Ok => ("ok", 0, None),
        CheckOutcome::Violated { rows, example } => ("violated", *rows, Some(example)),
        CheckOutcome::Failed { error } => ("failed", 0, Some(error)),
    };
    json!({ "id": check.id, "title": check.title, "outcome": outcome, "rows": rows, "detail": detail })
}

/// How long a load took, in all and by stages.
pub(super) fn load_stages(report: &LoadReport) -> String {
    format!(
        "{} (rows {}, keys {}, settling {})",
        Nanos::from(report.duration()),
        Nanos::from(report.rows_duration),
        Nanos::from(report.keys_duration),
        Nanos::from(report.settle_duration),
    )
}

/// The members of every load, after those of `own`, an object that says what was loaded.
pub(super) fn load_json(report: &LoadReport, mut own: Value) -> Value {
    own["rows"] = report.rows.into();
    own["bytes"] = report.bytes.into();
    own["rows_ns"] = Nanos::from(report.rows_duration).0.into();
    own["keys_ns"] = Nanos::from(report.keys_duration).0.into();
    own["settle_ns"] = Nanos::from(report.settle_duration).0.into();
    own
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Prints a run for people.
fn print<B>(shown: &Shown<'_>, summary: &DriveSummary<B>, after: &Added) {
    let measured = shown.window;
    let headline = &measured.tick.shape.headline;
    outln!();
    if let Some(search) = shown.search {
        print_search(search);
    }
    outln!(
        "{} {:.0} over {:.1} s (committed {}, counted by the client)",
        headline.unit,
        measured.tick.headline_rate(),
        measured.tick.length().as_secs_f64(),
        headline.counted,
    );
    if let Some(rate) = rate_with_rollbacks(measured) {
        outln!("{} {rate:.0} when intended rollbacks are counted too", headline.unit);
    }
    match database_rates(shown, summary) {
        Some(DatabaseRates { headline: counted, tpm, tpm_is }) => {
            if let Some(counted) = counted {
                outln!("{} {counted:.0} by the database's own sequence", headline.unit);
            }
            match tpm {
                Some(tpm) => outln!("TPM {tpm:.0} ({tpm_is})"),
                None => outln!(
                    "TPM unknown: connections were lost, and a server that restarts counts from 0 ({tpm_is})"
                ),
            }
        }
        None if shown.search.is_none() => {
            outln!("TPM unknown: the database could not be asked")
        }
        None => {}
    }
    if let Some(through) = shown.early {
        outln!(
            "warning: {through} transactions of {} users were through when the measured load began: users begin with \
             thinking and keying, so it shows less than they do later; make --warm-up longer",
            shown.users.users()
        );
    }
    after.said.iter().for_each(|line| outln!("{line}"));
    if let Some(text) = &shown.users.weights {
        outln!("weights, not the prescribed mix: {text}");
    }
    for change in &shown.mixes.later {
        outln!("weights from {} of the measured load on: {}", change.at, change.text);
    }
    print_types(measured);
    measured.tick.samples.iter().for_each(|sample| {
        outln!("{}", error_text(measured, sample));
    });
    print_generator(measured);
    for outage in &summary.outages {
        let begin = measured.tick.begin;
        let when = match outage.first_error >= begin {
            true => format!("{} into the measured load", outage.first_error.saturating_sub(begin)),
            false => "before the measured load".to_string(),
        };
        outln!(
            "outage: first error {when}, {} errors (failed attempts to connect are some), {} users, recovered {}",
            outage.errors,
            outage.users_affected,
            outage.recovered.map_or("never".to_string(), |at| format!(
                "after {}",
                at.saturating_sub(outage.first_error)
            ))
        );
    }
    after.ended.iter().for_each(|line| outln!("{line}"));
    outln!("{}", measured.tick.shape.notice);
}

fn print_search(search: &Searched) {
    outln!("search for the highest rate with {}:", search.objective);
    for step in &search.steps {
        outln!("  {}", describe(step, &search.objective));
    }
    outln!("{}", conclusion(search));
    match (search.rate(), search.steps.last()) {
        (Some(rate), _) => {
            outln!("what follows is the result, {rate:.1} transactions/s, measured once more:")
        }
        (None, Some(last)) => outln!(
            "what follows is of the last step, at {:.1} transactions/s, which is not a result:",
            last.step.rate_per_second
        ),
        (None, None) => outln!("no step was completed: what follows counts nothing"),
    }
}

fn conclusion(search: &Searched) -> String {
    let objective = search.objective;
    match search.found {
        Some(Found::Rate { holds, fails }) => {
            let is_guess = |rate: f64| {
                let at = |taken: &&StepTaken| taken.step.rate_per_second == rate;
                search.steps.iter().filter(at).any(|taken| taken.by_point_estimate)
            };
            let guessed = match (is_guess(holds), is_guess(fails)) {
                (false, false) => "",
                (true, true) => {
                    "; both by point estimates, their windows could not tell: a longer --duration may"
                }
                (true, false) => {
                    "; the former by its point estimate, its window could not tell: a longer --duration may"
                }
                (false, true) => {
                    "; the latter by its point estimate, its window could not tell: a longer --duration may"
                }
            };
            format!("{holds:.1} transactions/s meet {objective}, {fails:.1} do not{guessed}")
        }
        Some(Found::AtLeast { holds }) if holds > 0.0 => {
            let fails = lowest_failed(search);
            let fails = fails.map_or(String::new(), |fails| format!(", {fails:.1} do not"));
            format!(
                "at least {holds:.1} transactions/s meet {objective}{fails}; above that the load generator is the limit"
            )
        }
        Some(Found::AtLeast { .. }) => {
            "nothing is known: the load generator was the limit from the first rate on".to_string()
        }
        Some(Found::Nothing { fails }) => {
            format!(
                "no rate that was tried meets {objective}, down to {fails:.2} transactions/s; at much lower ones steps \
                 of this --duration have too few transactions to tell"
            )
        }
        None if search.is_away => {
            "the search ended without a result: the database does not answer any more".to_string()
        }
        None => "the search was stopped before it came to a result".to_string(),
    }
}

/// The lowest rate that was seen to fail, if any.
fn lowest_failed(search: &Searched) -> Option<f64> {
    let failed = search.steps.iter().filter(|taken| taken.holds == Some(false));
    failed.map(|taken| taken.step.rate_per_second).min_by(f64::total_cmp)
}

fn print_types(measured: &Window) {
    outln!(
        "{:16} {:>10} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "transaction",
        "committed",
        "rolled b",
        "errors",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max"
    );
    for (name, counts) in measured.tick.named().filter(|(_, counts)| counts.ended() > 0) {
        let latency: Vec<String> = QUANTILES
            .iter()
            .map(|(_, q)| {
                let value = counts.response.quantile(*q);
                format!("{:>9}", value.map_or("-".to_string(), |ns| Nanos(ns).to_string()))
            })
            .collect();
        outln!(
            "{:16} {:>10} {:>8} {:>7} {}",
            name,
            counts.committed,
            counts.rolled_back,
            counts.errors.total(),
            latency.join(" ")
        );
    }
}

/// How often users met errors of a class in the measured load, and what the first one said.
fn error_text(measured: &Window, sample: &ErrorSample) -> String {
    let tick = &measured.tick;
    let class = sample.class;
    let of_types: u64 = tick.types.iter().map(|counts| counts.errors.of(class)).sum();
    let connecting = tick.connects.errors.of(class);
    let connecting = match connecting {
        0 => String::new(),
        n => format!(" and {n} times when connecting"),
    };
    format!(
        "errors: {} {of_types} times in transactions{connecting}, first {} into the measured load: {}",
        class.as_str().replace('_', " "),
        sample.at.saturating_sub(tick.begin),
        sample.message
    )
}

fn print_generator(measured: &Window) {
    let saturation = Saturation::of(&measured.tick);
    outln!(
        "driver: {:.1} % of one CPU, busiest thread awake {:.0} %, dispatch lag p99 {}{}",
        measured.cpu_ns as f64 / measured.tick.length().0.max(1) as f64 * 100.0,
        saturation.awake_share * 100.0,
        saturation.lag_p99,
        match saturation.verdict {
            SaturationVerdict::Clear => "",
            SaturationVerdict::Saturated =>
                " - LOAD GENERATOR SATURATED: the result is the generator's",
            SaturationVerdict::Starved => " - LOAD GENERATOR STARVED: the host is overloaded",
        }
    );
}

/// The headline with what was rolled back as the workload intends it, where there was any: some peers count so.
fn rate_with_rollbacks(measured: &Window) -> Option<f64> {
    let headline = &measured.tick.shape.headline;
    let types = || headline.types.iter().filter_map(|kind| measured.tick.types.get(*kind));
    let rolled_back: u64 = types().map(|kind| kind.rolled_back).sum();
    let committed: u64 = types().map(|kind| kind.committed).sum();
    (rolled_back > 0).then(|| headline.rate(committed + rolled_back, measured.tick.length()))
}

/// What the database itself counted.
struct DatabaseRates {
    /// The headline by a sequence of its own.
    headline: Option<f64>,
    /// The engine's transactions per minute; none where its counters may have begun anew on the way.
    tpm: Option<f64>,
    /// What they are.
    tpm_is: &'static str,
}

/// None where it could not be asked at both ends.
fn database_rates<B>(shown: &Shown<'_>, summary: &DriveSummary<B>) -> Option<DatabaseRates> {
    let (first, last) = shown.readings.as_ref()?;
    let measured = shown.window;
    let length: Nanos = last.at.saturating_duration_since(first.at).into();
    let headline = &measured.tick.shape.headline;
    let counted = last
        .counted
        .zip(first.counted)
        .map(|(last, first)| headline.rate(last.saturating_sub(first), length));
    // Counters live in the server's memory: after a restart they begin anew, and may by now be above what they were.
    let transactions = last.engine.since(&first.engine).filter(|_| summary.outages.is_empty());
    let per_minute = |count: u64| count as f64 * 60.0 / length.as_secs_f64().max(f64::MIN_POSITIVE);
    Some(DatabaseRates {
        headline: counted,
        tpm: transactions.map(|(count, _)| per_minute(count)),
        tpm_is: transactions.map_or(last.engine.definition(), |(_, definition)| definition),
    })
}

/// The run as JSON.
fn run_json<B>(shown: &Shown<'_>, summary: &DriveSummary<B>, after: &Added) -> Value {
    let measured = shown.window;
    let shape = measured.tick.shape;
    let mut run = after.members.clone();
    let mut put = |name: &str, value: Value| run.insert(name.to_string(), value);
    put("workload", json!(shape.name));
    put("duration_ns", json!(measured.tick.length().0));
    put(&shape.headline.unit.to_lowercase(), json!(measured.tick.headline_rate()));
    if let Some(rate) = rate_with_rollbacks(measured) {
        let name = format!("{}_with_rollbacks", shape.headline.unit.to_lowercase());
        put(&name, json!(rate));
    }
    if let Some(rates) = database_rates(shown, summary) {
        let DatabaseRates { headline, tpm, tpm_is } = rates;
        put("by_the_database", json!({ "headline": headline, "tpm": tpm, "tpm_is": tpm_is }));
    }
    let seconds = measured.seconds.iter().map(|second| {
        json!({
            "end_ns": second.end.0,
            "rate": second.headline_rate,
            "response_p99_ns": second.response_p99.map(|p99| p99.0),
            "errors": second.errors,
        })
    });
    put("seconds", seconds.collect());
    put("transactions", types_json(measured));
    let errors = measured.tick.samples.iter().map(|sample| {
        json!({
            "class": sample.class.as_str(),
            "code": sample.sqlstate,
            "message": sample.message,
            "at_ns": sample.at.saturating_sub(measured.tick.begin).0,
        })
    });
    put("first_errors", errors.collect());
    // With what came before the window and after it.
    let completed = |counts: &TypeTick| counts.committed + counts.rolled_back;
    let whole_run: u64 = summary.totals.types.iter().map(completed).sum();
    put("transactions_of_the_whole_run", json!(whole_run));
    put("outages", outages_json(summary));
    // On the clock of the outages.
    put("measured_from_ns", json!(measured.tick.begin.0));
    put("warm_up_too_short", json!(shown.early.is_some()));
    let saturation = Saturation::of(&measured.tick);
    put(
        "driver",
        json!({
            "cpu_ns": measured.cpu_ns,
            "busiest_thread_share": saturation.awake_share,
            "dispatch_lag_p99_ns": saturation.lag_p99.0,
            "memory_bytes": measured.tick.memory.0,
        }),
    );
    let first = shown.users.weights.iter().map(|text| json!({ "after_ns": null, "weights": text }));
    let later = shown.mixes.later.iter();
    let later = later.map(|change| json!({ "after_ns": change.at.0, "weights": change.text }));
    let weights: Vec<Value> = first.chain(later).collect();
    if !weights.is_empty() {
        put("weights", json!(weights));
    }
    if let Some(search) = shown.search {
        put("search", search_json(search));
    }
    put("note", json!(shape.notice));
    Value::from(run)
}

fn types_json(measured: &Window) -> Value {
    let quantiles = |histogram: &Histogram| -> Map<String, Value> {
        QUANTILES
            .iter()
            .map(|(name, q)| ((*name).to_string(), json!(histogram.quantile(*q))))
            .collect()
    };
    let types: Map<String, Value> = measured
        .tick
        .named()
        .map(|(name, counts)| {
            let errors: Map<String, Value> = counts
                .errors
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(class, count)| (class.as_str().to_string(), json!(count)))
                .collect();
            let value = json!({
                "committed": counts.committed,
                "rolled_back": counts.rolled_back,
                "failed": counts.failed,
                "unknown": counts.unknown,
                "retries": counts.retries,
                "errors": errors,
                "response_ns": quantiles(&counts.response),
                "service_ns": quantiles(&counts.service),
            });
            (name.to_string(), value)
        })
        .collect();
    Value::from(types)
}

fn outages_json<B>(summary: &DriveSummary<B>) -> Value {
    summary
        .outages
        .iter()
        .map(|outage| {
            json!({
                "first_error_ns": outage.first_error.0,
                "last_error_ns": outage.last_error.0,
                "recovered_ns": outage.recovered.map(|at| at.0),
                "restored_ns": outage.restored.map(|at| at.0),
                "errors": outage.errors,
                "users_affected": outage.users_affected,
                "commits_unknown": outage.commits_unknown,
            })
        })
        .collect()
}

fn search_json(search: &Searched) -> Value {
    let step = |taken: &StepTaken| {
        let judgement = &taken.judgement;
        json!({
            "rate_per_second": taken.step.rate_per_second,
            "measured_ns": taken.step.measure.0,
            "delivered_per_second": judgement.delivered_per_second,
            "transactions": judgement.transactions,
            "observed_ns": judgement.observed.map(|observed| observed.0),
            "late_share": judgement.late_share,
            "late_share_bounds": [judgement.late_share_bounds.0, judgement.late_share_bounds.1],
            "verdict": judgement.verdict.as_str(),
            "connections_lost": judgement.connections_lost,
            "holds": taken.holds,
            "by_point_estimate": taken.by_point_estimate,
        })
    };
    let (holds, fails) = match search.found {
        Some(Found::Rate { holds, fails }) => (Some(holds), Some(fails)),
        Some(Found::AtLeast { holds }) => (Some(holds), None),
        Some(Found::Nothing { fails }) => (None, Some(fails)),
        None => (None, None),
    };
    json!({
        "quantile": search.objective.quantile,
        "limit_ns": search.objective.limit.0,
        "holds_per_second": holds,
        "fails_per_second": fails,
        "conclusion": conclusion(search),
        "steps": search.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use underlay_core::Nanos;
    use underlay_driver::{Delivery, DeliveryVerdict, Judgement, RateSearch, SearchSpec, Verdict};

    use super::{Searched, conclusion, missed};
    use crate::lab::ladder::Window;

    /// A search on a database that holds a little more than 100 per second, as its steps were judged.
    fn searched(verdict: impl Fn(f64) -> Verdict) -> Searched {
        let objective = "p99=10ms".parse().unwrap();
        let mut search = RateSearch::new(SearchSpec {
            objective,
            first_rate: 100.0,
            resolution: 1.05,
            settle: Nanos::ZERO,
            measure: Nanos::from_secs(10),
        });
        while let Some(step) = search.next() {
            let rate = step.rate_per_second;
            let judgement = Judgement {
                verdict: verdict(rate),
                transactions: 30,
                delivered_per_second: rate,
                observed: None,
                late_share: if rate < 101.0 { 0.0 } else { 1.0 },
                late_share_bounds: (0.0, 1.0),
                connections_lost: false,
            };
            search.observe(step, judgement);
        }
        Searched {
            objective,
            steps: search.taken().to_vec(),
            found: search.found(),
            is_away: false,
            last: Window::default(),
        }
    }

    #[test]
    fn a_conclusion_says_what_it_rests_on() {
        let decided = |rate: f64| if rate < 101.0 { Verdict::Met } else { Verdict::Exceeded };
        let said = conclusion(&searched(decided));
        assert!(
            said.starts_with("100.0 transactions/s meet") && said.ends_with("do not"),
            "{said}"
        );
        let said = conclusion(&searched(|_| Verdict::Exceeded));
        assert!(
            said.starts_with("no rate that was tried meets p99 <= 10 ms, down to 3.12"),
            "{said}"
        );
        let said = conclusion(&searched(|rate| match rate {
            105.0..150.0 => Verdict::GeneratorSaturated,
            rate => decided(rate),
        }));
        assert!(
            said.starts_with("at least 100.0 transactions/s meet p99 <= 10 ms, 200.0 do not;"),
            "{said}"
        );
        let said = conclusion(&searched(|_| Verdict::Undecided));
        assert!(said.contains("both by point estimates"), "{said}");
        let said = conclusion(&searched(|rate| match decided(rate) {
            Verdict::Met => Verdict::Undecided,
            verdict => verdict,
        }));
        assert!(said.contains("the former by its point estimate"), "{said}");
    }

    #[test]
    fn a_load_that_was_not_delivered_is_told_by_its_share() {
        let delivery = Delivery {
            requested: 2000,
            completed: 1500,
            overflowed: 100,
            queued: 380,
            shortfall: 0.25,
            verdict: DeliveryVerdict::Missed,
        };
        let said = missed(&delivery);
        assert!(said.contains("75.0 % of the load was completed (1500 of 2000"), "{said}");
        assert!(said.contains("380 still waited at the end, 100 were dropped"), "{said}");
    }

    #[test]
    fn a_search_without_a_rate_has_none() {
        assert_eq!(searched(|_| Verdict::Exceeded).rate(), None);
        assert_eq!(searched(|_| Verdict::GeneratorSaturated).rate(), None);
        let decided = |rate: f64| if rate < 101.0 { Verdict::Met } else { Verdict::Exceeded };
        assert_eq!(searched(decided).rate(), Some(100.0));
    }
}
