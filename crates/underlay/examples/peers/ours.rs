//! `underlay drive` as a child, as a user calls it.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::compare::{Conditions, Generator, QUANTILES, Run, WARM_UP};
use crate::place::Place;

/// A workload of ours.
pub struct Ours {
    arguments: Vec<String>,
}

impl Ours {
    /// The workload with its options.
    pub fn new(arguments: &[&str]) -> Ours {
        Ours { arguments: arguments.iter().map(|text| (*text).to_string()).collect() }
    }
}

/// Loads the population of a workload with its options.
pub fn load(place: &Place, arguments: &[&str]) -> Result<(), Failure> {
    let mut all = arguments.to_vec();
    all.extend(["--load", "--drop"]);
    let output = drive(place, &all)?;
    if !output.status.success() {
        return Err(
            format!("underlay drive {all:?}: {}", String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    Ok(())
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
        Ok(Run {
            seconds: run["duration_ns"].as_f64().ok_or("no duration")? / 1e9,
            transactions: types.values().map(count).sum(),
            whole_run: run["transactions_of_the_whole_run"].as_u64().ok_or("no whole run")?,
            cpu: Duration::from_nanos(run["driver"]["cpu_ns"].as_u64().ok_or("no CPU time")?),
            quantiles_ms: QUANTILES
                .map(|(name, _)| main["response_ns"][name].as_f64().map(|ns| ns / 1e6)),
            violations: Some(violations(&run["checks"])?),
        })
    }
}

/// The checks of the end that do not hold.
fn violations(checks: &Value) -> Result<u64, Failure> {
    let results = checks.as_array().or_else(|| checks["after"]["results"].as_array());
    let results = results.ok_or("no checks in the result")?;
    Ok(results.iter().filter(|result| result["outcome"] != "ok").count() as u64)
}
