//! The data warehouse on the database of the command: a power run, a throughput run, and answers that are verified.

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::{Nanos, RootSeed};
use underlay_database::Target;
use underlay_database::place::Afterwards;
use underlay_database::warehouse::{
    Checked, Measured, Step, WarehouseError, check, describe, drop_schema, load, power_run,
    throughput_run,
};
use underlay_workload::warehouse::{NOTICE, Population, Scale};

use super::connection::Sessions;
use super::{Action, Arguments, foreign, given_up, job, loaded, may_begin, rights};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};

/// Streams have a thread and a connection each.
const MAX_STREAMS: u32 = 100;

/// Arguments of the warehouse.
#[derive(Debug, Args)]
pub(super) struct WarehouseArguments {
    /// Scale factor to load, a multiple of 0.01; 1 is about 1 GB of rows (warehouse).
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    scale: Scale,
    /// Query streams of the throughput run; 0 makes none. By default as many as the specification wants for the scale
    /// factor (warehouse).
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Power runs, one after the other; 0 makes none (warehouse).
    #[arg(long, value_name = "N", default_value_t = 1)]
    power_runs: u32,
}

impl WarehouseArguments {
    /// Whether a run would have neither part.
    pub(super) fn does_nothing(&self) -> bool {
        self.power_runs == 0 && self.streams == Some(0)
    }
}

/// All that is wrong with the arguments.
pub(super) fn problems(arguments: &Arguments) -> Vec<String> {
    let mut wrong = job::meaningless_options(arguments, "warehouse");
    if arguments.warehouse.streams.is_some_and(|streams| streams > MAX_STREAMS) {
        wrong.push(format!("--streams may be {MAX_STREAMS} at most"));
    }
    wrong
}

/// Carries out the command.
pub(super) fn carry_out(arguments: &Arguments) -> Result<(), Stop> {
    let target = super::target(arguments)?;
    let done = carry_out_steps(arguments, &target);
    done.map_err(|stop| rights::explain(arguments, &target, stop))
}

fn carry_out_steps(arguments: &Arguments, target: &Target) -> Result<(), Stop> {
    let mut result = Map::new();
    let sessions = Sessions::look(arguments, target)?;
    result.insert("sessions".to_string(), sessions.json());
    let mut verdict = Ok(());
    if arguments.load {
        if let Some(replaced) = foreign::replace(arguments, target, Afterwards::Load)? {
            result.insert("replaced".to_string(), replaced);
        } else if arguments.drop {
            match drop_schema(target) {
                Ok(()) | Err(WarehouseError::NotLoaded) => {}
                Err(error) => return Err(given_up(arguments, Action::Drop, stop(&error))),
            }
        }
        result.insert("load".to_string(), load_population(arguments, target)?);
    }
    if arguments.runs() {
        let (run, ended) = run(arguments, target)?;
        result.insert("run".to_string(), run);
        verdict = ended;
    }
    if arguments.check && may_begin(&mut verdict) {
        let described = describe(target).map_err(|error| stop(&error))?;
        let checked = check(target, &described)
            .map_err(|error| given_up(arguments, Action::Check, stop(&error)))?;
        print_checks(arguments, &checked);
        result.insert("check".to_string(), checks_json(&checked));
        verdict = verdict.and(judge(&checked));
    }
    if arguments.drop && !arguments.load && may_begin(&mut verdict) {
        match foreign::replace(arguments, target, Afterwards::Leave)? {
            Some(replaced) => {
                result.insert("replaced".to_string(), replaced);
            }
            None => drop_schema(target)
                .map_err(|error| given_up(arguments, Action::Drop, stop(&error)))?,
        }
        arguments.say("dropped the warehouse");
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if arguments.json {
        result.insert("notice".to_string(), NOTICE.into());
        outln!("{:#}", Value::from(result));
    }
    verdict
}

fn stop(error: &WarehouseError) -> Stop {
    match error {
        WarehouseError::Session { error: session, .. } => {
            rights::session_failed(session, chain(error))
        }
        WarehouseError::Thread(_) => Stop::run_failed(chain(error)),
        _ => Stop::bad_input(chain(error)),
    }
}

fn load_population(arguments: &Arguments, target: &Target) -> Result<Value, Stop> {
    let population =
        Population { scale: arguments.warehouse.scale, seed: RootSeed(arguments.seed) };
    let report = load(target, &population, arguments.loaders())
        .map_err(|error| given_up(arguments, Action::Load, stop(&error)))?;
    arguments.say(&format!(
        "loaded scale factor {}: {} rows in {}",
        population.scale,
        report.rows,
        loaded::in_words(&report),
    ));
    let own = json!({ "scale": population.scale.factor(), "seed": population.seed.0 });
    Ok(loaded::json(&report, own))
}

fn run(arguments: &Arguments, target: &Target) -> Result<(Value, Result<(), Stop>), Stop> {
    let population = describe(target).map_err(|error| stop(&error))?.population;
    let scale = population.scale;
    let streams = arguments.warehouse.streams.unwrap_or(scale.least_streams());
    arguments.say(&format!("scale factor {scale}, seed {}, {}", population.seed.0, target.engine));
    let mut power = Vec::new();
    let mut is_stopped = false;
    for number in 1..=arguments.warehouse.power_runs {
        let measured = power_run(target, &population, &interrupt::requested);
        let measured = measured.map_err(|error| stop(&error))?;
        is_stopped |= measured.is_stopped;
        arguments.say(&power_text(number, &measured));
        power.push(measured);
    }
    let throughput = match streams {
        0 => None,
        _ if is_stopped => None,
        streams => {
            let measured = throughput_run(target, &population, streams, &interrupt::requested);
            let measured = measured.map_err(|error| stop(&error))?;
            is_stopped |= measured.is_stopped;
            arguments.say(&format!(
                "throughput run: {} queries of {streams} streams in {:.2} s, {:.0} queries/h",
                measured.queries(),
                measured.duration.as_secs_f64(),
                queries_per_hour(&measured)
            ));
            Some(measured)
        }
    };
    let all: Vec<&Measured> = power.iter().chain(&throughput).collect();
    if !arguments.json {
        print_steps("power", &power.iter().collect::<Vec<_>>());
        print_steps("throughput", &throughput.iter().collect::<Vec<_>>());
        outln!("{NOTICE}");
    }
    let json = json!({
        "scale": scale.factor(),
        "seed": population.seed.0,
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
    let verdict = if is_stopped { Err(Stop::interrupted("stopped by the user")) } else { Ok(()) };
    Ok((json, verdict))
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

fn print_checks(arguments: &Arguments, checked: &[Checked]) {
    for result in checked {
        if let Some(violation) = &result.violation {
            arguments.say(&format!("  VIOLATED: {}: {violation}", result.title));
        }
    }
    let failed = checked.iter().filter(|result| result.violation.is_some()).count();
    arguments.say(&format!(
        "checks: {} made, among them the answers to all 22 queries against those computed from the rows; {failed} failed",
        checked.len()
    ));
}

fn checks_json(checked: &[Checked]) -> Value {
    let result = |result: &Checked| {
        json!({
            "title": result.title,
            "outcome": if result.violation.is_none() { "ok" } else { "violated" },
            "detail": result.violation,
        })
    };
    json!({ "results": checked.iter().map(result).collect::<Vec<_>>() })
}

fn judge(checked: &[Checked]) -> Result<(), Stop> {
    let violated = checked.iter().find_map(|result| {
        result.violation.as_ref().map(|violation| format!("{}: {violation}", result.title))
    });
    match violated {
        None => Ok(()),
        Some(violation) => Err(Stop::check_violated(violation)),
    }
}
