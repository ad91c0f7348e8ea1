//! What is printed of a run of users for people. Jobs print what they did themselves.
//!
//! Progress, the search, checks and the delivered load have the words of the lab, as in every other command.

use serde_json::{Map, Value, json};
use underlay_core::{Histogram, Nanos};
use underlay_database::load_report::LoadReport;
use underlay_driver::{DriveSummary, ErrorSample, Saturation, SaturationVerdict};

use super::shown::{Added, DatabaseRates, Shown, database_rates, rate_with_rollbacks};
use crate::lab::ladder::Window;
use crate::lab::searched::{Searched, describe};

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

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The headings of [`latencies`].
pub(super) fn latency_headings() -> String {
    QUANTILES.map(|(name, _)| format!("{name:>9}")).join(" ")
}

/// A distribution as a part of a line.
pub(super) fn latencies(histogram: &Histogram) -> String {
    let cell = |value: Option<u64>| value.map_or("-".to_string(), |ns| Nanos(ns).to_string());
    QUANTILES.map(|(_, q)| format!("{:>9}", cell(histogram.quantile(q)))).join(" ")
}

/// The same as JSON, in nanoseconds.
pub(super) fn latencies_json(histogram: &Histogram) -> Map<String, Value> {
    let member = |(name, q): (&str, f64)| (name.to_string(), json!(histogram.quantile(q)));
    QUANTILES.into_iter().map(member).collect()
}

/// Prints a run for people.
pub(super) fn print<B>(shown: &Shown<'_>, summary: &DriveSummary<B>, after: &Added) {
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
            outln!("TPM unknown: the database did not answer")
        }
        None => {}
    }
    if let Some(through) = shown.early {
        outln!(
            "warning: only {through} transactions of {} users had completed when the measured load began: users begin with \
             think and keying times, so throughput is lower than later; make --warm-up longer",
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
            "outage: first error {when}, {} errors (including failed attempts to connect), {} users, recovered {}",
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
    outln!("{}", search.conclusion());
    match (search.rate(), search.steps.last()) {
        (Some(rate), _) => {
            outln!("below is the result, {rate:.1} transactions/s, measured once more:")
        }
        (None, Some(last)) => outln!(
            "below is the last step, at {:.1} transactions/s, which is not a result:",
            last.step.rate_per_second
        ),
        (None, None) => outln!("no step was completed: the numbers below are not a result"),
    }
}

fn print_types(measured: &Window) {
    outln!(
        "{:16} {:>10} {:>8} {:>7} {}",
        "transaction",
        "committed",
        "rolled b",
        "errors",
        latency_headings()
    );
    for (name, counts) in measured.tick.named().filter(|(_, counts)| counts.ended() > 0) {
        outln!(
            "{:16} {:>10} {:>8} {:>7} {}",
            name,
            counts.committed,
            counts.rolled_back,
            counts.errors.total(),
            latencies(&counts.response)
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
