//! A pair of generators in turn, and what is printed and kept of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::place::Place;
use crate::wire::Wire;

/// Unmeasured load of ours before the measured; peers have none.
pub const WARM_UP: Duration = Duration::from_secs(1);
/// How long the round trips are counted.
const WIRE_SECONDS: u64 = 2;

/// The percentiles, as they are named and as shares.
pub const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// What is equal for both.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    pub seconds: u64,
    pub users: u32,
}

/// What one run of one generator did.
#[derive(Clone, Debug)]
pub struct Run {
    pub seconds: f64,
    /// Of all types, committed or rolled back as intended.
    pub transactions: u64,
    /// The same with what came before and after the measured seconds.
    pub whole_run: u64,
    /// CPU time of the generator's processes.
    pub cpu: Duration,
    /// In the order of [`QUANTILES`], of what the comparison says they are of.
    pub quantiles_ms: [Option<f64>; 3],
    /// Checks that did not hold afterwards; none where there is nothing that could be violated.
    pub violations: Option<u64>,
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
    pub ours: &'a dyn Generator,
    pub peer: &'a dyn Generator,
}

impl Comparison<'_> {
    /// Runs both in turn, prints, and returns everything as JSON.
    pub fn carry_out(&self, conditions: &Conditions, place: &Place) -> Result<Value, Failure> {
        let (ours, peer) = (self.ours, self.peer);
        println!("\n{}\n  {}", self.title, self.same);
        let trips = [round_trips(ours, place)?, round_trips(peer, place)?];
        println!(
            "  {:10} {:>14} {:>9} {:>9} {:>9} {:>14} {:>11} {:>10}",
            "",
            "transactions/s",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "CPU us/transn",
            "round trips",
            "violations"
        );
        let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
        for turn in [0, 1, 1, 0] {
            let generator = [ours, peer][turn];
            let run = generator.run(place, conditions)?;
            println!("  {}", line(generator.name(), &run, trips[turn]));
            runs[turn].push(run);
        }
        let ratio = |of: fn(&[Run]) -> f64| of(&runs[0]) / of(&runs[1]);
        let (throughput, cpu) = (ratio(pooled_throughput), ratio(pooled_cpu));
        println!(
            "  {} to {}: throughput {throughput:.3} x, CPU per transaction {cpu:.3} x",
            ours.name(),
            peer.name()
        );
        let of = |generator: &dyn Generator, runs: &[Run], trips: f64| {
            json!({
                "generator": generator.name(),
                "round_trips_per_transaction": trips,
                "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
            })
        };
        Ok(json!({
            "title": self.title,
            "same": self.same,
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

fn line(name: &str, run: &Run, trips: f64) -> String {
    let [p50, p95, p99] =
        run.quantiles_ms.map(|value| value.map_or("-".to_string(), |value| format!("{value:.2}")));
    let violations = run.violations.map_or("-".to_string(), |number| number.to_string());
    format!(
        "{name:10} {:>14.0} {p50:>9} {p95:>9} {p99:>9} {:>14.0} {trips:>11.1} {violations:>10}",
        run.transactions as f64 / run.seconds,
        cpu_us(run),
    )
}

fn cpu_us(run: &Run) -> f64 {
    run.cpu.as_secs_f64() * 1e6 / run.transactions.max(1) as f64
}

fn pooled_throughput(runs: &[Run]) -> f64 {
    let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
    runs.iter().map(|run| run.transactions).sum::<u64>() as f64 / seconds
}

fn pooled_cpu(runs: &[Run]) -> f64 {
    let cpu: f64 = runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
    cpu / runs.iter().map(|run| run.transactions).sum::<u64>().max(1) as f64
}

fn run_json(run: &Run) -> Value {
    let quantiles: serde_json::Map<String, Value> = QUANTILES
        .iter()
        .zip(run.quantiles_ms)
        .map(|((name, _), value)| (format!("{name}_ms"), json!(value)))
        .collect();
    json!({
        "seconds": run.seconds,
        "transactions": run.transactions,
        "transactions_per_second": run.transactions as f64 / run.seconds,
        "quantiles": quantiles,
        "cpu_us_per_transaction": cpu_us(run),
        "violations": run.violations,
    })
}

/// CPU time of all children that have ended and were waited for, and of theirs.
pub fn children_cpu() -> Duration {
    // SAFETY: a rusage is plain numbers, for which zero is a value; getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let of = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}
