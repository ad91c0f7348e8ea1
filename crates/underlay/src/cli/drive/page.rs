//! What is printed of a run: for people and as JSON.

use serde_json::{Map, Value, json};
use underlay_core::{Histogram, Nanos};
use underlay_driver::{
    DriveSummary, ErrorSample, Found, Saturation, SaturationVerdict, StepTaken, TypeTick,
};

use super::Arguments;
use super::offer::{Measured, Search, WeightsAt, too_early};
use crate::lab::rate_search::describe;
use crate::stop::Stop;

/// What a workload adds to the page.
pub(super) struct After {
    /// Lines after the headline.
    pub(super) said: Vec<String>,
    /// Lines at the end: checks, identity, size.
    pub(super) ended: Vec<String>,
    /// Members of the JSON object.
    pub(super) members: Map<String, Value>,
    /// Whether the data is right.
    pub(super) verdict: Result<(), Stop>,
}

impl After {
    /// Of a database that could not be asked any more: what the users saw is known all the same.
    pub(super) fn unjudged(stop: Stop) -> After {
        let mut members = Map::new();
        members.insert("checks".to_string(), json!({ "could_not_be_made": stop.to_string() }));
        After {
            said: Vec::new(),
            ended: vec![format!(
                "checks: could not be made, so nothing is said of the data: {stop}"
            )],
            members,
            verdict: Err(stop),
        }
    }
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Prints a run for people.
pub(super) fn print<B>(
    arguments: &Arguments,
    measured: &Measured,
    summary: &DriveSummary<B>,
    after: &After,
    changes: &[WeightsAt],
) {
    let headline = &measured.tick.shape.headline;
    outln!();
    if let Some(search) = &measured.search {
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
    match database_rates(measured, summary) {
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
        None if measured.search.is_none() => {
            outln!("TPM unknown: the database could not be asked")
        }
        None => {}
    }
    if let Some(through) = measured.early {
        outln!("{}", too_early(through, arguments.users()));
    }
    after.said.iter().for_each(|line| outln!("{line}"));
    for change in changes {
        match change.after {
            None => outln!("weights, not the prescribed mix: {}", change.text),
            Some(at) => outln!("weights from {at} of the measured load on: {}", change.text),
        }
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

fn print_search(search: &Search) {
    outln!("search for the highest rate with {}:", search.objective);
    for step in &search.steps {
        outln!("  {}", describe(step, &search.objective));
    }
    outln!("{}", conclusion(search));
    match search.steps.last() {
        Some(last) => outln!("{}", about_the_last(search, last)),
        None => outln!("no step was completed: what follows counts nothing"),
    }
}

/// What the figures after a search are of: nearly always its result, seen once more, for longer.
fn about_the_last(search: &Search, last: &StepTaken) -> String {
    let rate = last.step.rate_per_second;
    let is_result = match search.found {
        Some(Found::Rate { holds, .. } | Found::AtLeast { holds }) => holds == rate,
        Some(Found::Nothing { .. }) | None => false,
    };
    let which = if is_result { "the result" } else { "which is not the result" };
    format!("what follows is of the last step, at {rate:.1} transactions/s, {which}:")
}

fn conclusion(search: &Search) -> String {
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
fn lowest_failed(search: &Search) -> Option<f64> {
    let failed = search.steps.iter().filter(|taken| taken.holds == Some(false));
    failed.map(|taken| taken.step.rate_per_second).min_by(f64::total_cmp)
}

fn print_types(measured: &Measured) {
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
fn error_text(measured: &Measured, sample: &ErrorSample) -> String {
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

fn print_generator(measured: &Measured) {
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
fn rate_with_rollbacks(measured: &Measured) -> Option<f64> {
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
fn database_rates<B>(measured: &Measured, summary: &DriveSummary<B>) -> Option<DatabaseRates> {
    let (first, last) = measured.readings.as_ref()?;
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
pub(super) fn json<B>(
    measured: &Measured,
    summary: &DriveSummary<B>,
    after: &After,
    changes: &[WeightsAt],
) -> Value {
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
    if let Some(rates) = database_rates(measured, summary) {
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
    put("warm_up_too_short", json!(measured.early.is_some()));
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
    if !changes.is_empty() {
        let changes: Vec<Value> = changes
            .iter()
            .map(
                |change| json!({ "after_ns": change.after.map(|at| at.0), "weights": change.text }),
            )
            .collect();
        put("weights", json!(changes));
    }
    if let Some(search) = &measured.search {
        put("search", search_json(search));
    }
    put("note", json!(shape.notice));
    Value::from(run)
}

fn types_json(measured: &Measured) -> Value {
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

fn search_json(search: &Search) -> Value {
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
    use underlay_driver::{Judgement, RateSearch, SearchSpec, Verdict};

    use super::{Search, about_the_last, conclusion};

    /// A search on a database that holds a little more than 100 per second, as its steps were judged.
    fn searched(verdict: impl Fn(f64) -> Verdict) -> Search {
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
        Search { objective, steps: search.taken().to_vec(), found: search.found(), is_away: false }
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
    fn what_follows_a_search_is_said_to_be_what_it_is() {
        let mut search =
            searched(|rate| if rate < 101.0 { Verdict::Met } else { Verdict::Exceeded });
        let last = *search.steps.last().unwrap();
        let said = about_the_last(&search, &last);
        assert!(said.contains("at 100.0 transactions/s, the result:"), "{said}");
        search.found = None;
        assert!(about_the_last(&search, &last).contains("not the result"));
    }
}
