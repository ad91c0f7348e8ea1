//! `underlay predict --slo`: the highest rate of each design within a latency target.
//!
//! As the rest of a prediction, a rate is the simulated one, corrected by what was measured on the
//! recorded design at the most users.

use crate::cli::designs::Named;
use crate::cli::own_row::{ModelErrors, OwnRow};
use crate::cli::target_options::main_transactions;
use crate::stop::Stop;
use serde_json::{Value, json};
use std::fmt::Write;
use underlay_core::RootSeed;
use underlay_simulation::databases::{
    Assumptions, Bed, HighestRate, Prediction, SinglePlan, Target, predicted_rate,
};
use underlay_workload::rate_search::Found;

/// The rates of all designs.
pub struct HighestRates {
    target: Target,
    /// The model's largest error of p95 on the recorded design, as the logarithm of a factor.
    p95_error: f64,
    transactions: String,
    designs: Vec<(String, HighestRate, Option<Prediction>)>,
}

/// What the search of all designs depends on.
pub struct Searching<'a> {
    single: SinglePlan<'a>,
    own: &'a Named,
    row: &'a OwnRow,
    errors: &'a ModelErrors,
    assumed: &'a Assumptions,
    seed: RootSeed,
}

/// The recorded design, with its windows at the most users.
pub fn of<'a>(
    single: SinglePlan<'a>,
    (own, row, errors): (&'a Named, &'a OwnRow, &'a ModelErrors),
    assumed: &'a Assumptions,
    seed: RootSeed,
) -> Searching<'a> {
    Searching { single, own, row, errors, assumed, seed }
}

impl Searching<'_> {
    /// The highest rate of the recorded design, and of each other one.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn search(&self, designs: &[Named], target: Target) -> Result<HighestRates, Stop> {
        // The rate that the recorded users had; from there it is doubled or halved.
        let first_rate = self.row.simulated.transactions_per_second.max(1.0);
        // Rates are of all transactions, and headlines of some of them per minute.
        let own = self.row.simulated.transactions_per_second;
        let of_all = own / self.row.simulated.headline.max(f64::MIN_POSITIVE);
        let measured: Vec<f64> = self.row.headlines().iter().map(|it| it * of_all).collect();
        let error = self.errors.headline;
        let mut found = Vec::new();
        for Named { name, design } in std::iter::once(self.own).chain(designs) {
            errln!("simulating: {name}, the highest rate with {}", target.objective);
            let bed = Bed { plan: self.single, design, assumed: self.assumed, seed: self.seed };
            let highest = bed.highest_rate(&target, first_rate).map_err(Stop::bad_input)?;
            let rate = highest.rate().and_then(|rate| predicted_rate(rate, own, &measured, error));
            found.push((name.clone(), highest, rate));
        }
        let shape = self.single.plan().workload.kind.shape();
        Ok(HighestRates {
            target,
            p95_error: self.errors.p95,
            transactions: main_transactions(shape),
            designs: found,
        })
    }
}

impl HighestRates {
    /// As a table.
    pub fn render(&self, text: &mut String, unit: &str) {
        let Target { objective, sessions, resolution, .. } = self.target;
        let name = objective.name();
        let width = self.designs.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let _ = write!(
            text,
            "\nHighest rate with {objective} of {} (an open loop, {sessions} sessions, found within \
             {:.1} %):\n  {:<width$} {:>10} {:>19} {:>10} {:>9} {:>9}  bottleneck\n",
            self.transactions,
            resolution * 100.0,
            "",
            "rate/s",
            "interval",
            "simulated",
            unit,
            format!("{name} ms")
        );
        for (design, highest, rate) in &self.designs {
            let bottleneck = highest.bottleneck.map_or_else(String::new, |it| it.name());
            let (Some(holding), Some(rate)) = (&highest.holding, rate) else {
                let fails = match highest.found {
                    Found::Nothing { fails } => format!("none: not even {fails:.2}/s"),
                    Found::AtLeast { .. } | Found::Rate { .. } => "none".to_string(),
                };
                let _ = writeln!(text, "  {design:<width$} {fails}  {bottleneck}");
                continue;
            };
            let observed = holding
                .judgement
                .observed
                .map_or_else(|| "-".to_string(), |time| format!("{:.2}", time.0 as f64 / 1e6));
            let more = matches!(highest.found, Found::AtLeast { .. });
            let _ = writeln!(
                text,
                "  {design:<width$} {:>10} {:>19} {:>10.0} {:>9.0} {observed:>9}  {bottleneck}",
                format!("{}{:.0}", if more { ">= " } else { "" }, rate.value),
                format!("{:.0} to {:.0}", rate.low, rate.high),
                holding.rate_per_second,
                holding.observation.headline,
            );
        }
        let _ = writeln!(
            text,
            "The rate is that of all transactions together. Whether it is within the target is judged by\n\
             simulated latency. Its p95 is up to {:.2} times too long or too short on the recorded design,\n\
             which the interval does not include. A bottleneck is where transactions spend most of their\n\
             time at the lowest rate that fails.",
            self.p95_error.exp()
        );
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let Target { objective, sessions, settle, measure, resolution, .. } = self.target;
        let design = |(name, highest, rate): &(String, HighestRate, Option<Prediction>)| {
            let (kind, fails) = match highest.found {
                Found::Rate { fails, .. } => ("rate", Some(fails)),
                Found::AtLeast { .. } => ("at-least", None),
                Found::Nothing { fails } => ("nothing", Some(fails)),
            };
            json!({
                "design": name,
                "kind": kind,
                "predicted_rate_per_second":
                    rate.map(|it| json!({ "value": it.value, "low": it.low, "high": it.high })),
                "holds_per_second": highest.rate(),
                "fails_per_second": fails,
                "headline": highest.holding.as_ref().map(|it| it.observation.headline),
                "observed_ns":
                    highest.holding.as_ref().and_then(|it| it.judgement.observed).map(|it| it.0),
                "bottleneck": highest.bottleneck.map(|it| it.name()),
                "bottleneck_share": highest.bottleneck.map(|it| it.share),
                "cpu_busy": highest.bottleneck.map(|it| it.cpu_busy),
                "steps": highest.steps.len(),
            })
        };
        json!({
            "target": objective.to_string(),
            "quantile": objective.quantile,
            "limit_ns": objective.limit.0,
            "transactions": self.transactions,
            "sessions": sessions,
            "settle_ns": settle.0,
            "measure_ns": measure.0,
            "resolution": resolution,
            "p95_factor": self.p95_error.exp(),
            "designs": self.designs.iter().map(design).collect::<Vec<_>>(),
        })
    }
}
