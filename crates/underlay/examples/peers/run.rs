//! What one run of one generator did, in figures that are the same for all of them.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The percentiles, as they are named and as shares.
pub const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// What the work of a pair is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Transactions of all types, committed or rolled back as intended.
    Transaction,
    /// Committed new orders, by the database's own sequence where the generator does not know better.
    Order,
}

impl Unit {
    /// In full.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Transaction => "transaction",
            Unit::Order => "order",
        }
    }

    /// For the head of a column.
    pub fn short(self) -> &'static str {
        match self {
            Unit::Transaction => "transn",
            Unit::Order => "order",
        }
    }

    /// What a rate of it is called.
    pub fn rate_name(self) -> &'static str {
        match self {
            Unit::Transaction => "transactions/s",
            Unit::Order => "NOPM",
        }
    }

    /// The rate of a run, as it is called.
    pub fn rate(self, run: &Run) -> f64 {
        let per_second = run.units as f64 / run.seconds;
        match self {
            Unit::Transaction => per_second,
            Unit::Order => per_second * 60.0,
        }
    }
}

/// Transactions per minute as an engine counts them.
#[derive(Clone, Debug)]
pub struct Tpm {
    pub per_minute: f64,
    /// What is counted: it differs by engine.
    pub definition: String,
}

/// What Underlay's checks found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Checks whose outcome is known.
    pub made: usize,
    /// Those that do not hold: identity, and how many rows violate it.
    pub violated: Vec<(String, String)>,
    /// Those that the schema does not allow: identity, and why.
    pub unmade: Vec<(String, String)>,
}

impl Verdict {
    /// Checks that do not hold or could not be made.
    pub fn failures(&self) -> usize {
        self.violated.len() + self.unmade.len()
    }
}

/// What one run of one generator did.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of the measured load.
    pub seconds: f64,
    /// Within the measured seconds.
    pub units: u64,
    /// The same with what came before and after the measured seconds.
    pub whole_run: u64,
    /// CPU time of the generator: of ours within the measured seconds, of a peer's whole process tree from its
    /// start to its end.
    pub cpu: Duration,
    /// What that time was spent on.
    pub cpu_units: u64,
    /// In the order of [`QUANTILES`], of what the comparison says they are of.
    pub quantiles_ms: [Option<f64>; 3],
    /// As the generator says, where it says so.
    pub tpm: Option<Tpm>,
    /// None where there is nothing that could be violated.
    pub verdict: Option<Verdict>,
}

impl Run {
    /// What the generator spends on a unit.
    pub fn cpu_us_per_unit(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.cpu_units.max(1) as f64
    }

    /// Everything, for programs.
    pub fn json(&self, unit: Unit) -> Value {
        let quantiles: Map<String, Value> = QUANTILES
            .iter()
            .zip(self.quantiles_ms)
            .map(|((name, _), value)| (format!("{name}_ms"), json!(value)))
            .collect();
        json!({
            "seconds": self.seconds,
            "units": self.units,
            unit.rate_name(): unit.rate(self),
            "tpm": self.tpm.as_ref().map(|tpm| json!({ "per_minute": tpm.per_minute, "is": tpm.definition })),
            "quantiles": quantiles,
            "cpu_s": self.cpu.as_secs_f64(),
            "cpu_us_per_unit": self.cpu_us_per_unit(),
            "checks": self.verdict.as_ref().map(|verdict| json!({
                "made": verdict.made,
                "violated": verdict.violated,
                "could_not_be_made": verdict.unmade,
            })),
        })
    }
}
