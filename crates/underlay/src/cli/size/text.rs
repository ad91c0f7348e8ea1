//! The designs of a family as a table, those of few devices first.

use super::sized::{Sized, margin};
use std::fmt::Write;
use underlay_simulation::databases::{Answer, Row};
use underlay_workload::judgement::Verdict;

pub fn render(sized: &Sized) -> String {
    let demand = &sized.demand;
    let target = &demand.target;
    let volumes: Vec<String> =
        sized.volumes.iter().map(|it| format!("{} {}", it.name, it.capacity)).collect();
    let mut text = format!(
        "{}: {}/s with {} of {}, in virtual time (simulated)\n\
         An open loop with {} sessions. Demands from {}. Hosts without a CPU limit: {} cores.\n\
         Volumes: {}. Capacity devices at most {:.0} % full, with copies.\n\n",
        sized.study,
        demand.rate_per_second,
        target.objective,
        sized.transactions,
        target.sessions,
        sized.demands,
        sized.cores,
        volumes.join(", "),
        demand.full_at_most_percent
    );
    let caches = width(sized, "cache", |row| &row.member.cache);
    let drives = width(sized, "capacity", |row| &row.member.capacity);
    let _ = writeln!(
        text,
        "{:>7} {:>5} {:>6} {:<caches$} {:>6} {:<drives$} {:>3} {:>6} {:>9} {:>7}  {:<7}  bottleneck",
        "devices",
        "hosts",
        "groups",
        "cache",
        "drives",
        "capacity",
        "FTT",
        "full",
        format!("{} ms", target.objective.name()),
        "margin",
        "target"
    );
    for row in &sized.rows {
        let member = &row.member;
        let _ = write!(
            text,
            "{:>7} {:>5} {:>6} {:<caches$} {:>6} {:<drives$} {:>3} {:>6} ",
            member.devices(),
            member.hosts,
            member.groups,
            member.cache,
            member.capacity_drives,
            member.capacity,
            member.failures,
            format!("{:.0} %", row.space.full_percent())
        );
        answer(&mut text, sized, row);
    }
    text.push_str(
        "\ngroups: disk groups per host; drives: capacity devices per disk group. A margin is how\n\
         far the quantile is below its limit. A bottleneck is where transactions spend most of\n\
         their time.\n",
    );
    if let Some((position, highest)) = &sized.smallest {
        let member = &sized.rows[*position].member;
        let _ = writeln!(text, "\nSmallest: {} devices, {}.", member.devices(), member.name());
        if let Some(rate) = highest.rate() {
            let bottleneck = highest.bottleneck.map_or_else(String::new, |it| it.name());
            let _ = writeln!(
                text,
                "It sustains {rate:.0}/s within the target, {:.2} times the requested rate. Bottleneck above that: \
                 {bottleneck}.",
                rate / demand.rate_per_second
            );
        }
    }
    if let Some(errors) = sized.errors {
        let _ = writeln!(
            text,
            "\nOn the recorded design the model is off by a factor of up to {:.2} in throughput and {:.2} in p95. \
             The table is not corrected for that.",
            errors.headline.exp(),
            errors.p95.exp()
        );
    }
    if let Some(left_out) = &sized.left_out {
        let _ = writeln!(text, "\n{left_out}");
    }
    text
}

fn answer(text: &mut String, sized: &Sized, row: &Row) {
    let at = match &row.answer {
        Answer::NoRoom(why) => {
            let _ = writeln!(text, "{:>9} {:>7}  {:<7}  {why}", "-", "-", "no room");
            return;
        }
        Answer::Contains(smaller) => {
            let smaller = sized.rows[*smaller].member.devices();
            let why = format!("contains a design of {smaller} devices that meets the target");
            let _ = writeln!(text, "{:>9} {:>7}  {:<7}  {why}", "-", "-", "-");
            return;
        }
        Answer::Simulated(at) => at,
    };
    let observed = at
        .judgement
        .observed
        .map_or_else(|| "-".to_string(), |time| format!("{:.2}", time.0 as f64 / 1e6));
    let margin = match (at.judgement.verdict, margin(sized, row)) {
        // The latencies of what came through are not those of the load that was asked for.
        (Verdict::NotDelivered, _) | (_, None) => "-".to_string(),
        (_, Some(share)) => format!("{:+.0} %", share * 100.0),
    };
    let met = if at.meets { "met" } else { "missed" };
    let mut bottleneck = at
        .bottleneck
        .map_or_else(String::new, |it| format!("{}, {:.0} %", it.name(), it.share * 100.0));
    if at.judgement.verdict == Verdict::NotDelivered {
        let done = at.judgement.delivered_per_second;
        bottleneck = format!("{bottleneck} ({done:.0}/s done)");
    }
    let _ = writeln!(text, "{observed:>9} {margin:>7}  {met:<7}  {bottleneck}");
}

fn width(sized: &Sized, title: &str, of: impl Fn(&Row) -> &String) -> usize {
    let widths = sized.rows.iter().map(|row| of(row).chars().count());
    widths.max().unwrap_or(0).max(title.len())
}
