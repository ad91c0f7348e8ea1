//! A pair of generators in turn, and what is printed and kept of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::place::Place;
use crate::run::{Run, Unit, Verdict};
use crate::wire::Wire;

/// Unmeasured load of ours before the measured; peers have none.
pub const WARM_UP: Duration = Duration::from_secs(1);
/// How long the round trips are counted, where a peer can run for so short.
const WIRE_SECONDS: u64 = 2;

/// What is equal for both.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    pub seconds: u64,
    pub users: u32,
}

/// Something that puts load on a database.
pub trait Generator {
    /// Its name.
    fn name(&self) -> &str;
    /// One run.
    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure>;
}

/// Two generators and what is the same for both.
pub struct Comparison<'a> {
    pub title: String,
    pub same: String,
    pub unit: Unit,
    pub ours: &'a dyn Generator,
    pub peer: &'a dyn Generator,
}

impl Comparison<'_> {
    /// Runs both in turn, prints, and returns everything as JSON.
    pub fn carry_out(&self, conditions: &Conditions, place: &Place) -> Result<Value, Failure> {
        let (ours, peer, unit) = (self.ours, self.peer, self.unit);
        println!("\n{}\n  {}", self.title, self.same);
        let trips = [round_trips(ours, place)?, round_trips(peer, place)?];
        println!(
            "  {:10} {:>14} {:>9} {:>9} {:>9} {:>9} {:>14} {:>11} {:>10}",
            "",
            unit.rate_name(),
            "TPM",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            format!("CPU us/{}", unit.short()),
            "round trips",
            "violations"
        );
        let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
        for turn in [0, 1, 1, 0] {
            let generator = [ours, peer][turn];
            let run = generator.run(place, conditions)?;
            println!("  {}", line(generator.name(), unit, &run, trips[turn]));
            runs[turn].push(run);
        }
        for (generator, runs) in [ours, peer].into_iter().zip(&runs) {
            remarks(generator.name(), runs).iter().for_each(|remark| println!("  {remark}"));
        }
        let ratio = |of: fn(&[Run]) -> f64| of(&runs[0]) / of(&runs[1]);
        let (throughput, cpu) = (ratio(pooled_throughput), ratio(pooled_cpu));
        println!(
            "  {} to {}: throughput {throughput:.3} x, CPU per {} {cpu:.3} x",
            ours.name(),
            peer.name(),
            unit.name()
        );
        let of = |generator: &dyn Generator, runs: &[Run], trips: f64| {
            json!({
                "generator": generator.name(),
                "round_trips_per_unit": trips,
                "runs": runs.iter().map(|run| run.json(unit)).collect::<Vec<_>>(),
            })
        };
        Ok(json!({
            "title": self.title,
            "same": self.same,
            "unit": unit.name(),
            "seconds": conditions.seconds,
            "users": conditions.users,
            "order": "A B B A",
            "generators": [of(ours, &runs[0], trips[0]), of(peer, &runs[1], trips[1])],
            "throughput_ratio": throughput,
            "cpu_ratio": cpu,
            "round_trips_are": "turns of the busiest connection in a run of one user through a counting relay",
        }))
    }
}

/// Of one user, on the wire; start-up included, which is a few trips in hundreds or thousands.
fn round_trips(generator: &dyn Generator, place: &Place) -> Result<f64, Failure> {
    let wire = Wire::start(&place.host, place.port)?;
    let conditions = Conditions { seconds: WIRE_SECONDS, users: 1 };
    let run = generator.run(&place.through(wire.port()), &conditions)?;
    Ok(wire.turns_of_the_busiest() as f64 / run.whole_run.max(1) as f64)
}

fn line(name: &str, unit: Unit, run: &Run, trips: f64) -> String {
    let [p50, p95, p99] =
        run.quantiles_ms.map(|value| value.map_or("-".to_string(), |value| format!("{value:.2}")));
    let tpm = run.tpm.as_ref().map_or("-".to_string(), |tpm| format!("{:.0}", tpm.per_minute));
    let violations =
        run.verdict.as_ref().map_or("-".to_string(), |verdict| verdict.failures().to_string());
    format!(
        "{name:10} {:>14.0} {tpm:>9} {p50:>9} {p95:>9} {p99:>9} {:>14.0} {trips:>11.1} {violations:>10}",
        unit.rate(run),
        run.cpu_us_per_unit(),
    )
}

/// What does not fit in a column: what its TPM are, and which checks did not hold after the last run.
fn remarks(name: &str, runs: &[Run]) -> Vec<String> {
    let tpm = runs.iter().find_map(|run| run.tpm.as_ref());
    let last = runs.last().and_then(|run| run.verdict.as_ref());
    tpm.map(|tpm| format!("{name}: TPM are {}", tpm.definition))
        .into_iter()
        .chain(last.filter(|last| last.failures() > 0).map(|last| in_words(name, last)))
        .collect()
}

/// All checks of a verdict in one line.
pub fn in_words(name: &str, verdict: &Verdict) -> String {
    let Verdict { made, violated, unmade } = verdict;
    let list = |of: &[(String, String)]| {
        let all: Vec<String> = of.iter().map(|(id, what)| format!("{id} ({what})")).collect();
        all.join(", ")
    };
    let mut text = format!("{name}: {made} checks made, {} violated", violated.len());
    if !violated.is_empty() {
        text += &format!(": {}", list(violated));
    }
    if !unmade.is_empty() {
        text += &format!("; could not be made: {}", list(unmade));
    }
    text
}

fn pooled_throughput(runs: &[Run]) -> f64 {
    let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
    runs.iter().map(|run| run.units).sum::<u64>() as f64 / seconds
}

fn pooled_cpu(runs: &[Run]) -> f64 {
    let cpu: f64 = runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
    cpu / runs.iter().map(|run| run.cpu_units).sum::<u64>().max(1) as f64
}
