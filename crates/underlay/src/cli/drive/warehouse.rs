//! The data warehouse on a database of the user's: a power run, a throughput run, and answers that are verified.

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::Nanos;
use underlay_database::schema_ownership::WorkloadTables;
use underlay_database::warehouse::{Measured, Step, WarehouseError, describe, drop_schema};
use underlay_record::CheckMoment;
use underlay_study::{WarehousePlan, WorkloadKind};
use underlay_workload::warehouse::{NOTICE, Population, Scale};

use super::command::Command;
use super::external::{Dropped, External};
use super::job::run_job;
use super::options::{Common, Loading, NOT_LOADED, NOT_RUN, Problems};
use super::steps::carry_out;
use super::verdict::verdict_of_run;
use crate::lab::external::Checks;
use crate::lab::workload::{Access, Asked, Loaded, Subject, WarehouseSubject, stopped};
use crate::stop::Stop;

/// Streams have a thread and a connection each.
const MAX_STREAMS: u32 = 100;
/// Power runs, one after the other.
const MAX_POWER_RUNS: u32 = 1000;

/// Arguments of `underlay drive warehouse`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    loading: Loading,
    /// Scale factor to load, a multiple of 0.01; 1 is about 1 GB of rows [default: 1].
    #[arg(long, value_name = "FACTOR")]
    scale: Option<Scale>,
    /// Query streams of the throughput run; 0 makes none. By default the specification's minimum for the scale
    /// factor.
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Power runs, one after the other; 0 makes none [default: 1].
    #[arg(long, value_name = "N")]
    power_runs: Option<u32>,
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    let command = Command {
        common: &arguments.common,
        loading: &arguments.loading,
        users: None,
        name: "warehouse",
        tables: WorkloadTables::Warehouse,
        foreign_tables: false,
        foreign_size: (None, None),
        inserts_in_bulk: false,
    };
    let Arguments { scale, streams, power_runs, .. } = arguments;
    let mut problems = Problems::default();
    problems.outside("--streams", *streams, 0..=MAX_STREAMS);
    problems.outside("--power-runs", *power_runs, 0..=MAX_POWER_RUNS);
    if !arguments.loading.load {
        problems.refuse(&[("--scale", scale.is_some())], NOT_LOADED);
    }
    if !command.runs() {
        let of_run = [("--streams", streams.is_some()), ("--power-runs", power_runs.is_some())];
        problems.refuse(&of_run, NOT_RUN);
    }
    let nothing = *power_runs == Some(0) && *streams == Some(0) && command.runs();
    problems.refuse(&[("--power-runs 0", nothing)], "and --streams 0 leave nothing to run");
    Command::refuse(problems, &command)?;
    let scale = match scale {
        Some(scale) => *scale,
        None => "1".parse().map_err(|error| Stop::bad_input(format!("{error}")))?,
    };
    let population = Population { scale, seed: command.common.seed() };
    let power_runs = power_runs.unwrap_or(1);
    carry_out(&command, WarehouseSubject { population, power_runs, streams: *streams })
}

impl External for WarehouseSubject {
    fn adopt(&mut self, _: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
        let described = describe(access.target)
            .map_err(|error| stopped("read what the warehouse holds", error))?;
        self.population = described.population;
        Ok(())
    }

    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop> {
        match drop_schema(access.target) {
            Ok(()) => Ok(Dropped::Done("the warehouse".to_string())),
            Err(error) => {
                let is_absent = matches!(error, WarehouseError::NotLoaded);
                let stop = stopped("drop the warehouse", error);
                if is_absent { Ok(Dropped::Nothing(stop)) } else { Err(stop) }
            }
        }
    }

    fn describe_load(&self, loaded: &Loaded) -> (String, Value) {
        let Population { scale, seed } = self.population;
        let text = format!("scale factor {scale}: {} rows", loaded.report.rows);
        (text, json!({ "scale": scale.factor(), "seed": seed.0 }))
    }

    fn check_alone(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let results = self.check(access, CheckMoment::After, None)?;
        let checks = Checks { results, ..Checks::default() };
        for check in checks.failed() {
            command.say(&format!("  {}", check.describe()));
        }
        command.say(&format!(
            "checks: {} made, including the answers to all 22 queries against those computed from the rows; {} failed",
            checks.results.len(),
            checks.failed().count()
        ));
        Ok((json!({ "results": self.checks_json(&checks) }), checks.verdict("")))
    }

    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let Population { scale, seed } = self.population;
        let streams = self.streams();
        command.say(&format!("scale factor {scale}, seed {}, {}", seed.0, access.target.engine));
        let kind = WorkloadKind::Warehouse(WarehousePlan { scale, streams });
        // Its checks take far longer than a run; --check makes them.
        let finished = run_job(self, command, access, kind, false)?;
        let verdict = verdict_of_run(&finished, "stopped by the user");
        let Asked { power, throughput } = match finished.summary.accounting {
            Some(Ok(asked)) => asked,
            Some(Err(error)) => return Err(stopped("run the queries", error)),
            None => return Err(Stop::interrupted("stopped by the user before anything was run")),
        };
        for (number, measured) in (1..).zip(&power) {
            command.say(&power_text(number, measured));
        }
        if let Some(measured) = &throughput {
            command.say(&format!(
                "throughput run: {} queries of {streams} streams in {:.2} s, {:.0} queries/h",
                measured.queries(),
                measured.duration.as_secs_f64(),
                queries_per_hour(measured)
            ));
        }
        let all: Vec<&Measured> = power.iter().chain(&throughput).collect();
        if !command.common.json {
            print_steps("power", &power.iter().collect::<Vec<_>>());
            print_steps("throughput", &throughput.iter().collect::<Vec<_>>());
            outln!("{NOTICE}");
        }
        let json = json!({
            "scale": scale.factor(),
            "seed": seed.0,
            "power": power.iter().map(power_json).collect::<Vec<_>>(),
            "throughput": throughput.as_ref().map(|measured| json!({
                "streams": streams,
                "duration_ns": Nanos::from(measured.duration).0,
                "queries": measured.queries(),
                "queries_per_hour": queries_per_hour(measured),
                "steps": steps_json(measured),
            })),
            "latency_ns": latency_json(&all),
        });
        Ok((json, verdict))
    }
}

fn queries_per_hour(measured: &Measured) -> f64 {
    measured.queries() as f64 * 3600.0 / measured.duration.as_secs_f64().max(1e-9)
}

fn power_text(number: u32, measured: &Measured) -> String {
    let mean =
        measured.geometric_mean().map_or("-".to_string(), |mean| Nanos::from(mean).to_string());
    format!(
        "power run {number}: 22 queries and 2 refreshes in {:.2} s, geometric mean {mean}",
        measured.duration.as_secs_f64()
    )
}

fn print_steps(name: &str, runs: &[&Measured]) {
    if runs.is_empty() {
        return;
    }
    outln!("{name:12} {:>7} {:>9} {:>9} {:>9} {:>9}", "count", "min", "p50", "p95", "max");
    for step in Step::all() {
        let latency = merged(runs, step);
        if latency.is_empty() {
            continue;
        }
        let at = |q: f64| Nanos(latency.quantile(q).unwrap_or(0)).to_string();
        let least = Nanos(latency.min().unwrap_or(0)).to_string();
        outln!(
            "{:12} {:>7} {least:>9} {:>9} {:>9} {:>9}",
            step.to_string(),
            latency.count(),
            at(0.5),
            at(0.95),
            at(1.0)
        );
    }
}

fn merged(runs: &[&Measured], step: Step) -> underlay_core::Histogram {
    let mut latency = underlay_core::Histogram::new();
    for run in runs {
        latency.merge(&run.latency_ns(step));
    }
    latency
}

fn power_json(measured: &Measured) -> Value {
    json!({
        "duration_ns": Nanos::from(measured.duration).0,
        "geometric_mean_ns": measured.geometric_mean().map(|mean| Nanos::from(mean).0),
        "steps": steps_json(measured),
    })
}

fn steps_json(measured: &Measured) -> Vec<Value> {
    let step = |(stream, step, time, rows): &(u32, Step, std::time::Duration, usize)| {
        json!({
            "stream": stream,
            "step": step.to_string(),
            "duration_ns": Nanos::from(*time).0,
            "rows": rows,
        })
    };
    measured.steps.iter().map(step).collect()
}

/// Distributions over all runs of the command.
fn latency_json(runs: &[&Measured]) -> Value {
    let mut steps = Map::new();
    for step in Step::all() {
        let latency = merged(runs, step);
        steps.insert(
            step.to_string(),
            json!({
                "count": latency.count(),
                "min": latency.min(),
                "p50": latency.quantile(0.5),
                "p95": latency.quantile(0.95),
                "max": latency.max(),
            }),
        );
    }
    steps.into()
}
