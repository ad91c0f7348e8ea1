//! A prediction as text: measured next to simulated results, the predictions, and the what-if
//! results.

use super::answer::{Answer, Row};
use crate::cli::own_row::{OwnRow, p95_ns, range};
use std::fmt::Write;
use underlay_simulation::databases::{NoMeaning, Prediction};

pub fn render(answer: &Answer) -> String {
    let Answer { study, own, evidence, unit, demands, cores, .. } = answer;
    let modelled = match &answer.measured_as {
        Some(storage) => format!("{storage} in the model"),
        None => "the same in the model".to_string(),
    };
    let mut text = format!(
        "{study}: the recorded workload in virtual time (simulated)\nDemands from {demands}. Hosts without a CPU \
         limit: {cores} cores.\n\n{own} ({evidence}), and {modelled}:\n{:>7} {:>11} {:>23} {:>11} {:>7} \
         {:>10} {:>10} {:>7}\n",
        "users", unit, "lowest to highest", "simulated", "error", "p95 ms", "simulated", "error"
    );
    answer.own_rows.iter().for_each(|row| own_row(&mut text, row));
    for design in &answer.designs {
        let _ = write!(
            text,
            "\n{}, predicted:\n{:>7} {:>11} {:>23} {:>8} {:>10} {:>19}  bottleneck\n",
            design.name, "users", unit, "interval", "ratio", "p95 ms", "interval"
        );
        for (row, own) in design.rows.iter().zip(&answer.own_rows) {
            predicted_row(&mut text, row, own);
        }
    }
    if !answer.designs.is_empty() {
        text.push_str(
            "\nA prediction is the simulated time per transaction, plus what the simulation of the\n\
             recorded design lacks; on faster designs in proportion. Its interval includes the\n\
             largest error of the model on that design, and the spread of what was measured.\n",
        );
    }
    text.push_str("\nWhat if, at the most users, with full caches (simulated):\n");
    let width = answer.what_ifs.iter().map(|it| it.design.chars().count()).max().unwrap_or(0);
    for it in &answer.what_ifs {
        let (design, change) = (&it.design, it.change.as_str());
        let effect = match &it.ratios {
            Ok((throughput, p99)) => {
                let p99 = p99.map_or(String::new(), |ratio| format!(", p99 {ratio:.2}x"));
                format!("{throughput:>5.2}x the {unit}{p99}")
            }
            Err(NoMeaning(why)) => format!("    - ({why})"),
        };
        let _ = writeln!(text, "  {design:<width$}  {change:<20} {effect}");
    }
    if let Some(highest_rates) = &answer.highest_rates {
        highest_rates.render(&mut text, unit);
    }
    if let Some(left_out) = &answer.left_out {
        let _ = writeln!(text, "\n{left_out}");
    }
    text
}

fn ms(ns: f64) -> String {
    format!("{:.2}", ns / 1e6)
}

/// The first over the second, less one, in percent.
fn error(value: f64, of: f64) -> String {
    format!("{:+.0} %", (value / of - 1.0) * 100.0)
}

fn own_row(text: &mut String, row: &OwnRow) {
    let Some([value, low, high]) = range(row, |it| Some(it.headline)) else { return };
    let simulated = row.simulated.headline;
    let (p95, p95_simulated) = (range(row, p95_ns).map(|it| it[0]), p95_ns(&row.simulated));
    let shown = |ns: Option<f64>| ns.map_or("-".to_string(), ms);
    let p95_error = p95.zip(p95_simulated).map_or("-".to_string(), |(a, b)| error(b, a));
    let _ = writeln!(
        text,
        "{:>7} {value:>11.0} {:>23} {simulated:>11.0} {:>7} {:>10} {:>10} {p95_error:>7}",
        row.users,
        format!("{low:.0} to {high:.0}"),
        error(simulated, value),
        shown(p95),
        shown(p95_simulated)
    );
}

fn predicted_row(text: &mut String, row: &Row, own: &OwnRow) {
    let interval = |it: Prediction, show: &dyn Fn(f64) -> String| {
        format!("{} to {}", show(it.low), show(it.high))
    };
    let Some(headline) = row.headline else { return };
    let measured = range(own, |it| Some(it.headline)).map_or(f64::NAN, |it| it[0]);
    let p95 = row.p95;
    let _ = writeln!(
        text,
        "{:>7} {:>11.0} {:>23} {:>7.2}x {:>10} {:>19}  {}",
        row.users,
        headline.value,
        interval(headline, &|value| format!("{value:.0}")),
        headline.value / measured,
        p95.map_or("-".to_string(), |it| ms(it.value)),
        p95.map_or("-".to_string(), |it| interval(it, &ms)),
        row.simulated.bottleneck.map_or_else(String::new, |it| it.name())
    );
}
