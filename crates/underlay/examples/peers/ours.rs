//! `underlay drive` as a child, as a user calls it.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::compare::{Conditions, Generator, WARM_UP};
use crate::place::Place;
use crate::run::{QUANTILES, Run, Tpm, Unit, Verdict};

/// A workload of ours.
pub struct Ours {
    arguments: Vec<String>,
    unit: Unit,
}

impl Ours {
    /// The workload with its options, and what its work is counted in: orders are TPC-C's.
    pub fn new(arguments: &[&str], unit: Unit) -> Ours {
        Ours { arguments: arguments.iter().map(|text| (*text).to_string()).collect(), unit }
    }
}

/// Loads the population of a workload with its options on `parallel` connections, and says how long it took: keys
/// and start-up included.
pub fn load(place: &Place, arguments: &[&str], parallel: usize) -> Result<Duration, Failure> {
    let mut all = arguments.to_vec();
    let loaders = parallel.to_string();
    all.extend(["--load", "--drop", "--loaders", &loaders]);
    let began = Instant::now();
    let output = drive(place, &all)?;
    if !output.status.success() {
        return Err(
            format!("underlay drive {all:?}: {}", String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    Ok(began.elapsed())
}

/// The program beside the examples.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let folder = own.ancestors().nth(2).ok_or("examples lie below the programs")?;
    Ok(folder.join("underlay"))
}

fn drive(place: &Place, arguments: &[&str]) -> Result<Output, Failure> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.arg("drive").args(arguments).arg("--json").env("UNDERLAY_URL", place.url());
    command.output().map_err(|error| format!("{}: {error}", program.display()).into())
}

impl Generator for Ours {
    fn name(&self) -> &str {
        "underlay"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let users = conditions.users.to_string();
        let duration = format!("{}s", conditions.seconds);
        let warm_up = format!("{}s", WARM_UP.as_secs());
        let options = ["--run", "--users", &users, "--duration", &duration, "--warm-up", &warm_up];
        arguments.extend(options);
        let output = drive(place, &arguments)?;
        // A violated check ends with an error, after the result.
        let result: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
            format!("underlay drive {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))
        })?;
        let run = &result["run"];
        let types = run["transactions"].as_object().ok_or("no transactions in the result")?;
        let count = |counts: &Value| {
            let of = |name: &str| counts[name].as_u64().unwrap_or(0);
            of("committed") + of("rolled_back")
        };
        // Of New-Order where there is one, else of the only type that ran.
        let main = types
            .get("new_order")
            .or_else(|| types.values().max_by_key(|counts| count(counts)))
            .ok_or("no type of transaction in the result")?;
        let (units, whole_run) = match self.unit {
            Unit::Transaction => {
                (Some(types.values().map(count).sum()), &run["transactions_of_the_whole_run"])
            }
            Unit::Order => (main["committed"].as_u64(), &run["new_orders"]["by_order_numbers"]),
        };
        let units = units.ok_or("no count in the result")?;
        Ok(Run {
            seconds: run["duration_ns"].as_f64().ok_or("no duration")? / 1e9,
            units,
            whole_run: whole_run.as_u64().ok_or("no count of the whole run")?,
            cpu: Duration::from_nanos(run["driver"]["cpu_ns"].as_u64().ok_or("no CPU time")?),
            cpu_units: units,
            quantiles_ms: QUANTILES
                .map(|(name, _)| main["response_ns"][name].as_f64().map(|ns| ns / 1e6)),
            tpm: match self.unit {
                Unit::Transaction => None,
                Unit::Order => tpm(&run["by_the_database"]),
            },
            verdict: Some(verdict(&run["checks"])?),
        })
    }
}

fn tpm(by_the_database: &Value) -> Option<Tpm> {
    Some(Tpm {
        per_minute: by_the_database["tpm"].as_f64()?,
        definition: by_the_database["tpm_is"].as_str()?.to_string(),
    })
}

/// The checks of the end.
fn verdict(checks: &Value) -> Result<Verdict, Failure> {
    let results = checks.as_array().or_else(|| checks["after"]["results"].as_array());
    let results = results.ok_or("no checks in the result")?;
    let mut verdict = Verdict::default();
    for result in results {
        let of = |name: &str| result[name].as_str().unwrap_or("").to_string();
        match of("outcome").as_str() {
            "ok" => verdict.made += 1,
            "failed" => verdict.unmade.push((of("id"), of("detail"))),
            _ => {
                verdict.made += 1;
                verdict.violated.push((of("id"), of("detail")));
            }
        }
    }
    Ok(verdict)
}
