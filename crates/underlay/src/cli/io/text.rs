//! The outcome of a load as text.

use super::options::LoadArguments;
use crate::lab::block::{LastLook, Medium, Outcome};
use std::fmt::Write;
use underlay_blockio::TargetKind;
use underlay_blockio::load::{KindKey, KindResult, LoadResult, Operation};
use underlay_core::{Histogram, Nanos};
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{IoProfile, Pace, Provenance};

/// The percentiles shown.
const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// The whole text.
pub fn outcome(options: &LoadArguments, profile: &IoProfile, outcome: &Outcome) -> String {
    let mut text = head(options, profile, outcome);
    let Some(result) = outcome.merged() else {
        text.push_str("interrupted before the load began\n");
        return text;
    };
    if options.curve {
        text.push_str(&curve(outcome));
        text.push_str(&curve_end(outcome));
    } else {
        text.push_str(&table(&result, outcome.targets.len()));
        text.push_str(&end(outcome, &result));
        text.push_str(&delivery(&result));
    }
    text.push_str(&remarks(options, outcome, &result));
    text.push_str(&steady(options, outcome));
    if let Some(look) = &outcome.last_look {
        text.push_str(&last_look(outcome, look));
    }
    text
}

fn head(options: &LoadArguments, profile: &IoProfile, outcome: &Outcome) -> String {
    let model = match profile.provenance {
        Provenance::Model => " (a model, not a published definition)",
        Provenance::Published => "",
    };
    let mut text = format!("{}: {}{model}\n", profile.name, profile.title);
    for target in &outcome.targets {
        let kind = match (target.kind, target.created) {
            (TargetKind::BlockDevice, _) => "block device",
            (TargetKind::File, true) => "file created for the run",
            (TargetKind::File, false) => "file",
        };
        let medium = match target.medium {
            Medium::Storage => "",
            Medium::Emulated => ", EMULATED storage",
            Medium::Memory => ", in MEMORY: this does not measure storage",
        };
        writeln!(
            text,
            "  on {} ({kind}, {} of {} used{medium})",
            target.path.display(),
            target.working_set,
            target.size
        )
        .expect("writing to a String cannot fail");
    }
    for job in &profile.jobs {
        let pace = match job.pace {
            _ if options.curve => "maximum first, then an open loop".to_string(),
            Pace::Closed { .. } => "closed loop".to_string(),
            Pace::Open { rate_per_second, arrivals } => {
                format!("open loop, {rate_per_second} per second ({arrivals:?})").to_lowercase()
            }
        };
        let name =
            if profile.jobs.len() > 1 { format!("{}: ", job.workload.name) } else { String::new() };
        writeln!(
            text,
            "  {name}{} x queue depth {}, {pace}",
            count(job.concurrency.threads.into(), "thread"),
            job.concurrency.queue_depth
        )
        .expect("writing to a String cannot fail");
    }
    let io = if options.buffered { "page cache" } else { "direct I/O" };
    let rounds = outcome.counted().count();
    let length = Nanos(outcome.counted().map(|phase| phase.result.duration.0).sum());
    let measured = match (options.curve, rounds) {
        (true, _) => format!("{} per point", options.duration),
        (false, 0 | 1) => format!("{length} measured"),
        (false, rounds) => format!("{length} measured in {rounds} rounds"),
    };
    writeln!(text, "  io_uring, {io}, {measured} after {} of warm-up\n", options.warm_up)
        .expect("writing to a String cannot fail");
    text
}

fn count(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A row per kind, target by target if there are several, and what they are together.
fn table(result: &LoadResult, targets: usize) -> String {
    let mut rows: Vec<(String, KindResult)> = Vec::new();
    let many_jobs = result.kinds.iter().any(|(key, _)| key.job != result.kinds[0].0.job);
    for (key, kind) in &result.kinds {
        rows.push((kind_name(key, many_jobs, targets), kind.clone()));
    }
    let all = result.total(|key| key.operation != Operation::Flush);
    if rows.len() > 1 {
        rows.push(("reads and writes".to_string(), all));
    }
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(12);
    let mut text =
        format!("{:widest$}  {:>9}  {:>9}            {:>8}", "", "per s", "MB/s", "mean");
    QUANTILES.iter().for_each(|(name, _)| write!(text, "  {name:>8}").expect("a String"));
    writeln!(text, "  {:>8}", "max").expect("a String");
    for (name, kind) in rows {
        let megabytes = megabytes(result.per_second(kind.bytes_in_window));
        writeln!(
            text,
            "{name:widest$}  {:>9}  {megabytes:>9}  response  {}",
            thousands(result.per_second(kind.in_window)),
            times(&kind.response)
        )
        .expect("a String");
        if kind.service != kind.response {
            writeln!(
                text,
                "{:widest$}  {:>9}  {:>9}  service   {}",
                "",
                "",
                "",
                times(&kind.service)
            )
            .expect("a String");
        }
    }
    text.push('\n');
    text
}

/// `data.write`, with what tells it from others.
fn kind_name(key: &KindKey, many_jobs: bool, targets: usize) -> String {
    let target = if targets > 1 { format!("{}: ", key.target + 1) } else { String::new() };
    let job = if many_jobs { format!("{}.", key.job) } else { String::new() };
    let stream = if key.stream == "all" { String::new() } else { format!("{}.", key.stream) };
    format!("{target}{job}{stream}{}", key.operation.as_str())
}

fn times(histogram: &Histogram) -> String {
    let time = |ns: Option<u64>| ns.map_or("-".to_string(), |ns| Nanos(ns).to_string());
    let mean = histogram.sum().checked_div(u128::from(histogram.count())).map(|ns| ns as u64);
    let mut text = format!("{:>8}", time(mean));
    for (_, quantile) in QUANTILES {
        write!(text, "  {:>8}", time(histogram.quantile(quantile))).expect("a String");
    }
    write!(text, "  {:>8}", time(histogram.max())).expect("a String");
    text
}

/// Why a load ended before its time.
fn end(outcome: &Outcome, result: &LoadResult) -> String {
    let mut text = String::new();
    if outcome.interrupted {
        text.push_str(&format!("interrupted after {} of measurement\n", result.duration));
    }
    if let Some(failure) = outcome.failure() {
        text.push_str(&format!("ended early: {failure}\n"));
    }
    text
}

/// Why a curve has fewer points than it should.
fn curve_end(outcome: &Outcome) -> String {
    let whole = outcome.phases.iter().filter(|phase| phase.is_saturated().is_some()).count();
    let planned = 1 + PERCENTS.len();
    let mut text = String::new();
    if outcome.interrupted {
        text.push_str(&format!("interrupted: {whole} of {planned} loads completed\n"));
    }
    if let Some(failure) = outcome.failure() {
        text.push_str(&format!("ended early after {whole} of {planned} loads: {failure}\n"));
    }
    text
}

/// How many requests of an open loop were delivered.
fn delivery(result: &LoadResult) -> String {
    if result.due == 0 {
        return String::new();
    }
    let share = 100.0 * (1.0 - result.undelivered as f64 / result.due as f64);
    let waited = match result.undelivered {
        0 => String::new(),
        _ => format!("; the oldest undelivered request had waited {}", result.oldest_undelivered),
    };
    let mut text =
        format!("delivered: {share:.2} % of {} requests that were due{waited}\n", result.due);
    if let Some(p99) = result.dispatch_lag.quantile(0.99) {
        text.push_str(&format!(
            "dispatch lag of the generator: p99 {}; it is part of the response time\n",
            Nanos(p99)
        ));
    }
    text
}

/// Notes on the table: errors, verification, processor time.
fn remarks(options: &LoadArguments, outcome: &Outcome, result: &LoadResult) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for (key, kind) in &result.kinds {
        for (number, count) in &kind.errors {
            let error = std::io::Error::from_raw_os_error(*number);
            let name = kind_name(key, true, outcome.targets.len());
            say(format!("errors: {count} of {name}: {error}"));
        }
    }
    if result.verified_units > 0 || result.conflicts > 0 {
        say(format!(
            "verified while reading: {} blocks, {} wrong; {} requests waited for another request to the same blocks",
            result.verified_units, result.violation_count, result.conflicts
        ));
    }
    let requests = result.total(|_| true).in_window;
    if let Some(processor_ns) = result.cost.processor.0.checked_div(requests) {
        say(format!(
            "processor: {} per request in {}",
            Nanos(processor_ns),
            count(result.cost.workers.into(), "worker"),
        ));
    }
    if outcome.is_generator_busy(options.spin) {
        say("a worker used a whole processor: the host, not the storage, may be the bottleneck"
            .to_string());
    }
    text
}

/// A line per point.
fn curve(outcome: &Outcome) -> String {
    let mut text =
        format!("{:>8}  {:>10}  {:>10}  {:>9}  {:>8}", "", "offered/s", "per s", "MB/s", "mean");
    QUANTILES.iter().for_each(|(name, _)| write!(text, "  {name:>8}").expect("a String"));
    writeln!(text, "  {:>8}", "max").expect("a String");
    for phase in &outcome.phases {
        let all = phase.result.total(|key| key.operation != Operation::Flush);
        let offered = phase.offered.map_or("-".to_string(), thousands);
        let megabytes = megabytes(phase.result.bytes_per_second());
        let remark = match phase.is_saturated() {
            Some(true) => "  saturated".to_string(),
            Some(false) => String::new(),
            None => format!("  ended early, {} measured", phase.result.duration),
        };
        writeln!(
            text,
            "{:>8}  {offered:>10}  {:>10}  {megabytes:>9}  {}{remark}",
            phase.label,
            thousands(phase.result.iops()),
            times(&all.response),
        )
        .expect("a String");
    }
    text.push_str(
        "\nresponse times of reads and writes from the intended start; saturated: less than 98 % of the offered rate\n",
    );
    text
}

fn steady(options: &LoadArguments, outcome: &Outcome) -> String {
    if !options.steady_state {
        return String::new();
    }
    let rounds = outcome.phases.len();
    match outcome.steady {
        None => format!("steady state: not judged, {rounds} of at least 5 rounds\n"),
        Some(state) => format!(
            "steady state: {} after {rounds} rounds (last five rounds: range {:.1} % of the mean, limit 20 %; trend {:.1} %, \
             limit 10 %)\n",
            if state.is_steady() { "reached" } else { "NOT reached" },
            state.range_share * 100.0,
            state.excursion_share * 100.0
        ),
    }
}

fn last_look(outcome: &Outcome, look: &LastLook) -> String {
    let mut text =
        format!("verified at the end: {} blocks, {} wrong\n", look.units, look.violation_count);
    for violation in &look.violations {
        let path = &outcome.targets[violation.target as usize].path;
        writeln!(
            text,
            "  {} at byte {}: {} (expected write {})",
            path.display(),
            violation.offset_bytes,
            violation.finding.as_str(),
            violation.expected_write
        )
        .expect("a String");
    }
    text
}

fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1}", bytes_per_second / 1e6)
}

fn thousands(rate: f64) -> String {
    if rate < 100.0 {
        return format!("{rate:.1}");
    }
    let digits = format!("{rate:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn rates_are_readable() {
        assert_eq!(thousands(12.34), "12.3");
        assert_eq!(thousands(123.4), "123");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
