//! `underlay drive`: only the load generator, against any existing database.
//!
//! Up to four things in this order: load the population, run (checked before and after), check, drop.
//! Touches nothing in the database but the schema `tpcc`, and that only when Underlay made it.

use crate::cli::studies::Form;
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_core::{Nanos, RootSeed};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, LoadOptions, Mode, OrderNumbers,
    TableNames, TpccConnector, TpccError, check, describe, drop_schema, identity, load,
    order_numbers,
};
use underlay_database::{Engine, Secret, Target};
use underlay_driver::{
    Arrivals, Delivery, DeliveryVerdict, DriveSpec, DriveSummary, DriveTick, Driver, Pacing,
    Saturation, SaturationVerdict, noop_ceiling,
};
use underlay_workload::tpcc::{Entropy, Ledger, Parameters, SHAPE, Tpcc, TpccBooks};

/// Environment variable with the database's URL.
const URL_VARIABLE: &str = "UNDERLAY_URL";

/// Arguments of `underlay drive`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The workload.
    #[arg(value_enum)]
    workload: Workload,
    /// The database: postgres://user@host:port/database or mysql://user@host:port/database (also
    /// mariadb://). The password comes from PGPASSWORD, MYSQL_PWD or --password-file, never from the
    /// command line.
    #[arg(long, env = URL_VARIABLE, hide_env_values = true, required_unless_present = "noop")]
    url: Option<String>,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Load the population first.
    #[arg(long)]
    load: bool,
    /// Run the load (the default when nothing else is asked for).
    #[arg(long)]
    run: bool,
    /// Verify the consistency conditions and invariants.
    #[arg(long)]
    check: bool,
    /// Drop the population at the end (with --load: an earlier one first).
    #[arg(long)]
    drop: bool,

    /// Warehouses to load.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "load")]
    warehouses: u32,
    /// Seed of the population and of the transactions.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Random share of generated text in percent; 100 does not compress.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    entropy: u8,
    /// Loader threads; by default one per processor.
    #[arg(long, value_name = "N")]
    loaders: Option<usize>,

    /// Virtual users.
    #[arg(long, value_name = "N", default_value_t = 8)]
    users: u32,
    /// Length of the measured load.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    duration: Nanos,
    /// Unmeasured load before it.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    warm_up: Nanos,
    /// Open loop: this many transactions per second, whatever the database does.
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "key_think")]
    rate: Option<f64>,
    /// How the transactions of an open loop are spread.
    #[arg(long, value_enum, default_value = "poisson", requires = "rate")]
    arrivals: ArrivalKind,
    /// Closed loop with this multiple of the standard's keying and think times; 0 = none.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    key_think: f64,
    /// Issue statements one by one instead of calling functions.
    #[arg(long)]
    statements: bool,
    /// At most this many connections, shared by the users.
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Driver threads; by default one per processor.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Drive nothing: the generator's own ceiling.
    #[arg(long, conflicts_with_all = ["load", "check", "drop"])]
    noop: bool,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Order entry, derived from TPC-C.
    Tpcc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalKind {
    Poisson,
    Uniform,
}

/// Carries out the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let Workload::Tpcc = arguments.workload;
    interrupt::install();
    if arguments.noop {
        return run_noop(arguments);
    }
    let target = target(arguments)?;
    let runtime =
        Runtime::new().map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
    let session = Session { arguments, target, runtime };
    let mut result = Map::new();
    if arguments.load {
        if arguments.drop {
            session.drop_if_there()?;
        }
        result.insert("load".to_string(), session.load()?);
    }
    let nothing_else = !arguments.load && !arguments.check && !arguments.drop;
    let mut verdict = Ok(());
    if arguments.run || nothing_else {
        let (run, checked) = session.run()?;
        result.insert("run".to_string(), run);
        verdict = checked;
    }
    if arguments.check {
        let (report, checked) = session.check_alone()?;
        result.insert("check".to_string(), report);
        verdict = verdict.and(checked);
    }
    if arguments.drop && !arguments.load {
        session.drop()?;
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if arguments.form() == Form::Json {
        println!("{:#}", Value::from(result));
    }
    verdict
}

impl Arguments {
    fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    fn mode(&self) -> Mode {
        if self.statements { Mode::Statements } else { Mode::Procedures }
    }

    fn parameters(&self) -> Result<Parameters, Stop> {
        Entropy::new(self.entropy)
            .and_then(|entropy| Parameters::new(self.warehouses, RootSeed(self.seed), entropy))
            .map_err(|error| Stop::bad_input(error.to_string()))
    }

    /// A line for people; nothing for programs.
    fn say(&self, text: &str) {
        if self.form() == Form::Text {
            println!("{text}");
        }
    }
}

fn target(arguments: &Arguments) -> Result<Target, Stop> {
    let url = arguments.url.as_deref().unwrap_or_default();
    let mut target = Target::from_url(url).map_err(|error| Stop::bad_input(error.to_string()))?;
    if let Some(path) = &arguments.password_file {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Stop::bad_input(format!("could not read {}: {error}", path.display()))
        })?;
        target.password = Some(Secret::new(text.lines().next().unwrap_or_default()));
    } else if target.password.is_none()
        && let Ok(password) = std::env::var(match target.engine {
            Engine::Postgresql => "PGPASSWORD",
            Engine::Mariadb => "MYSQL_PWD",
        })
    {
        target.password = Some(Secret::new(password));
    }
    Ok(target)
}

fn run_noop(arguments: &Arguments) -> Result<(), Stop> {
    let parameters = arguments.parameters()?;
    let ceiling = noop_ceiling(
        Tpcc::new(parameters),
        parameters.seed,
        arguments.users,
        arguments.duration.into(),
    )
    .map_err(|error| Stop::bad_input(chain(&error)))?;
    if arguments.json {
        println!(
            "{:#}",
            json!({
                "transactions_per_second": ceiling.transactions_per_second,
                "nopm": ceiling.headline_rate,
                "cpu_ns_per_transaction": ceiling.cpu_ns_per_transaction,
            })
        );
    } else {
        println!(
            "the generator alone: {:.0} transactions/s ({:.0} NOPM), {} of CPU per transaction",
            ceiling.transactions_per_second,
            ceiling.headline_rate,
            Nanos(ceiling.cpu_ns_per_transaction as u64)
        );
    }
    Ok(())
}

/// What the user can mend is bad input; a database that does not answer is not.
fn refusal(what: &str, error: TpccError) -> Stop {
    match error {
        TpccError::Session(error) => Stop::run_failed(format!("{what}: {error}")),
        error => Stop::bad_input(chain(&error)),
    }
}

/// A command in progress.
struct Session<'a> {
    arguments: &'a Arguments,
    target: Target,
    runtime: Runtime,
}

impl Session<'_> {
    fn loaders(&self) -> usize {
        self.arguments
            .loaders
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn load(&self) -> Result<Value, Stop> {
        let parameters = self.arguments.parameters()?;
        let report = load(
            &self.target,
            &parameters,
            &LoadOptions { parallel: self.loaders().max(1), progress: &|_| {} },
        )
        .map_err(|error| Stop::run_failed(chain(&error)))?;
        self.arguments.say(&format!(
            "loaded {} warehouses: {} rows in {} (rows {}, keys {}, settling {})",
            parameters.warehouses,
            report.rows,
            Nanos::from(report.duration()),
            Nanos::from(report.rows_duration),
            Nanos::from(report.keys_duration),
            Nanos::from(report.settle_duration),
        ));
        Ok(json!({
            "warehouses": parameters.warehouses,
            "rows": report.rows,
            "bytes": report.bytes,
            "rows_ns": Nanos::from(report.rows_duration).0,
            "keys_ns": Nanos::from(report.keys_duration).0,
            "settle_ns": Nanos::from(report.settle_duration).0,
        }))
    }

    fn described(&self) -> Result<Parameters, Stop> {
        let described = self
            .runtime
            .block_on(describe(&self.target))
            .map_err(|error| refusal("could not connect", error))?;
        Ok(described.parameters)
    }

    fn drop(&self) -> Result<(), Stop> {
        self.runtime
            .block_on(drop_schema(&self.target))
            .map_err(|error| refusal("could not drop the population", error))?;
        self.arguments.say("dropped the population");
        Ok(())
    }

    /// Drops what an earlier load made, also an incomplete one; nothing there is fine.
    fn drop_if_there(&self) -> Result<(), Stop> {
        match self.runtime.block_on(drop_schema(&self.target)) {
            Ok(()) | Err(TpccError::NotLoaded) => Ok(()),
            Err(error) => Err(refusal("could not drop the population", error)),
        }
    }

    fn numbers(&self) -> Result<OrderNumbers, Stop> {
        let tables = TableNames::of(self.target.engine);
        self.runtime
            .block_on(order_numbers(&self.target, &tables))
            .map_err(|error| Stop::run_failed(format!("could not read the order numbers: {error}")))
    }

    fn verify(
        &self,
        parameters: &Parameters,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> Result<CheckReport, Stop> {
        let tables = TableNames::of(self.target.engine);
        let options = CheckOptions {
            warehouses: parameters.warehouses,
            parallel: self.loaders(),
            moment: CheckMoment::AfterRun,
            ledger,
            tables: &tables,
        };
        self.runtime
            .block_on(check(&self.target, options))
            .map_err(|error| Stop::run_failed(format!("could not make the checks: {error}")))
    }

    fn check_alone(&self) -> Result<(Value, Result<(), Stop>), Stop> {
        let parameters = self.described()?;
        let report = self.verify(&parameters, None)?;
        for result in &report.results {
            let text = match &result.outcome {
                CheckOutcome::Ok => "ok".to_string(),
                CheckOutcome::Violated { rows, example } => {
                    format!("VIOLATED by {rows} rows: {example}")
                }
                CheckOutcome::Failed { error } => format!("COULD NOT BE MADE: {error}"),
            };
            self.arguments.say(&format!("  {:7} {}: {text}", result.id, result.title));
        }
        self.arguments.say(&format!(
            "{} checks in {}, {} failed",
            report.results.len(),
            Nanos::from(report.duration),
            report.failures().count()
        ));
        Ok((report_json(&report), verdict_of("", &report)))
    }

    fn run(&self) -> Result<(Value, Result<(), Stop>), Stop> {
        let arguments = self.arguments;
        let parameters = self.described()?;
        let before = self.verify(&parameters, None)?;
        // What is wrong already cannot be told apart from what the run breaks.
        verdict_of(" before the run", &before)?;
        let numbers = self.numbers()?;
        let driver =
            Driver::start(self.spec(&parameters), self.connector(&parameters), Instant::now())
                .map_err(|error| Stop::run_failed(chain(&error)))?;
        let measured = self.drive(&driver);
        let summary = driver.stop();
        let after_numbers = self.numbers()?;
        let after = self.verify(&parameters, Some((&summary.books.ledger, &numbers)))?;
        let database_orders = after_numbers.sum().saturating_sub(numbers.sum());
        let identity = identity(self.target.engine, &parameters, arguments.mode()).to_string();
        if arguments.form() == Form::Text {
            print_run(&measured, &summary, database_orders, &parameters, &identity, &after);
        }
        let json =
            run_json(&measured, &summary, database_orders, &parameters, &identity, &before, &after);
        let delivered = match Delivery::of(&measured.tick).map(|delivery| delivery.verdict) {
            Some(DeliveryVerdict::Missed) => Err(Stop::load_not_delivered(
                "the requested rate was not delivered: latencies are those of a lower load",
            )),
            _ => Ok(()),
        };
        let interrupted = if interrupt::requested() {
            Err(Stop::interrupted("stopped by the user"))
        } else {
            Ok(())
        };
        Ok((json, verdict_of(" after the run", &after).and(interrupted).and(delivered)))
    }

    fn connector(&self, parameters: &Parameters) -> TpccConnector {
        let target = self.target.with_application_name("underlay-drive");
        TpccConnector::new(target, *parameters, self.arguments.mode())
    }

    fn spec(&self, parameters: &Parameters) -> DriveSpec {
        let arguments = self.arguments;
        let mut spec = DriveSpec::new(parameters.seed, arguments.users);
        spec.connections = arguments.connections;
        spec.threads = arguments.threads;
        spec.pacing = match arguments.rate {
            Some(rate) => Pacing::open(
                rate,
                match arguments.arrivals {
                    ArrivalKind::Poisson => Arrivals::Poisson,
                    ArrivalKind::Uniform => Arrivals::Uniform,
                },
            ),
            None => Pacing::Closed { key_think: arguments.key_think },
        };
        spec
    }

    /// Warms up, then measures; returns one tick over the measured time, and what CPU time that took.
    fn drive(&self, driver: &Driver<TpccBooks>) -> Measured {
        driver.set_users(self.arguments.users);
        interrupt::sleep_until(Instant::now() + Duration::from(self.arguments.warm_up));
        let cpu_ns_before = driver.tick().cpu_ns;
        let end = Instant::now() + Duration::from(self.arguments.duration);
        let mut measured: Option<DriveTick> = None;
        loop {
            let next = end.min(Instant::now() + Duration::from_secs(1));
            let go_on = interrupt::sleep_until(next);
            let tick = driver.tick();
            let p99 = tick.headline_response().quantile(0.99).unwrap_or(0);
            eprintln!(
                "{:>8.0} {}  p99 {:>8}  {} errors",
                tick.headline_rate(),
                tick.shape.headline.unit,
                Nanos(p99).to_string(),
                tick.errors()
            );
            match &mut measured {
                None => measured = Some(tick),
                Some(measured) => measured.append(&tick),
            }
            if !go_on || Instant::now() >= end {
                let tick = measured.unwrap_or_default();
                return Measured { cpu_ns: tick.cpu_ns.saturating_sub(cpu_ns_before), tick };
            }
        }
    }
}

/// The measured part of a run.
struct Measured {
    tick: DriveTick,
    /// CPU time of the driver's threads within it.
    cpu_ns: u64,
}

fn verdict_of(when: &str, report: &CheckReport) -> Result<(), Stop> {
    match report.failures().next() {
        None => Ok(()),
        Some(result) => Err(Stop::check_violated(format!(
            "consistency{when}: {}",
            crate::lab::describe_check(result.id, result.title, &result.outcome)
        ))),
    }
}

fn report_json(report: &CheckReport) -> Value {
    let results: Vec<Value> = report
        .results
        .iter()
        .map(|result| {
            let (outcome, rows, detail) = match &result.outcome {
                CheckOutcome::Ok => ("ok", 0, String::new()),
                CheckOutcome::Violated { rows, example } => ("violated", *rows, example.clone()),
                CheckOutcome::Failed { error } => ("failed", 0, error.clone()),
            };
            json!({ "id": result.id, "title": result.title, "outcome": outcome, "rows": rows, "detail": detail })
        })
        .collect();
    json!({ "duration_ns": Nanos::from(report.duration).0, "results": results })
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

fn print_run(
    measured: &Measured,
    summary: &DriveSummary<TpccBooks>,
    database_orders: u64,
    parameters: &Parameters,
    identity: &str,
    after: &CheckReport,
) {
    let seconds = measured.tick.length().as_secs_f64();
    println!();
    println!(
        "NOPM {:.0} over {seconds:.1} s (committed new orders per minute, counted by the client)",
        measured.tick.headline_rate()
    );
    println!(
        "new orders of the whole run: {} acknowledged, {} by the database's order numbers, {} of unknown outcome",
        summary.books.ledger.acknowledged_count(),
        database_orders,
        summary.books.ledger.unknown_count()
    );
    println!(
        "{:13} {:>10} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "transaction", "committed", "rolled b", "errors", "p50", "p95", "p99", "p99.9", "max"
    );
    for (name, counts) in measured.tick.named() {
        let latency: Vec<String> = QUANTILES
            .iter()
            .map(|(_, q)| {
                format!(
                    "{:>9}",
                    counts
                        .response
                        .quantile(*q)
                        .map_or("-".to_string(), |ns| Nanos(ns).to_string())
                )
            })
            .collect();
        println!(
            "{:13} {:>10} {:>8} {:>7} {}",
            name,
            counts.committed,
            counts.rolled_back,
            counts.errors.total(),
            latency.join(" ")
        );
    }
    let saturation = Saturation::of(&measured.tick);
    println!(
        "driver: {:.1} % of one CPU, busiest thread awake {:.0} %, dispatch lag p99 {}{}",
        measured.cpu_ns as f64 / measured.tick.length().0.max(1) as f64 * 100.0,
        saturation.awake_share * 100.0,
        saturation.lag_p99,
        match saturation.verdict {
            SaturationVerdict::Clear => "",
            SaturationVerdict::Saturated =>
                " - LOAD GENERATOR SATURATED: the result is the generator's",
            SaturationVerdict::Starved => " - LOAD GENERATOR STARVED: the host is overloaded",
        }
    );
    for outage in &summary.outages {
        println!(
            "outage: first error after {}, {} errors, {} users, recovered {}",
            outage.first_error,
            outage.errors,
            outage.users_affected,
            outage.recovered.map_or("never".to_string(), |at| format!(
                "after {}",
                at.saturating_sub(outage.first_error)
            ))
        );
    }
    println!(
        "checks: {} made, {} failed; workload {identity}, {} warehouses, seed {}",
        after.results.len(),
        after.failures().count(),
        parameters.warehouses,
        parameters.seed.0
    );
    println!("{}", SHAPE.notice);
}

fn run_json(
    measured: &Measured,
    summary: &DriveSummary<TpccBooks>,
    database_orders: u64,
    parameters: &Parameters,
    identity: &str,
    before: &CheckReport,
    after: &CheckReport,
) -> Value {
    let types: Map<String, Value> = measured
        .tick
        .named()
        .map(|(name, counts)| {
            let quantiles = |histogram: &underlay_core::Histogram| -> Map<String, Value> {
                QUANTILES
                    .iter()
                    .map(|(name, q)| ((*name).to_string(), json!(histogram.quantile(*q))))
                    .collect()
            };
            let errors: Map<String, Value> = counts
                .errors
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(class, count)| (class.as_str().to_string(), json!(count)))
                .collect();
            let value = json!({
                "committed": counts.committed,
                "rolled_back": counts.rolled_back,
                "failed": counts.failed,
                "unknown": counts.unknown,
                "retries": counts.retries,
                "errors": errors,
                "response_ns": quantiles(&counts.response),
                "service_ns": quantiles(&counts.service),
            });
            (name.to_string(), value)
        })
        .collect();
    let outages: Vec<Value> = summary
        .outages
        .iter()
        .map(|outage| {
            json!({
                "first_error_ns": outage.first_error.0,
                "last_error_ns": outage.last_error.0,
                "recovered_ns": outage.recovered.map(|at| at.0),
                "restored_ns": outage.restored.map(|at| at.0),
                "errors": outage.errors,
                "users_affected": outage.users_affected,
                "commits_unknown": outage.commits_unknown,
            })
        })
        .collect();
    let saturation = Saturation::of(&measured.tick);
    json!({
        "identity": identity,
        "warehouses": parameters.warehouses,
        "seed": parameters.seed.0,
        "duration_ns": measured.tick.length().0,
        "nopm": measured.tick.headline_rate(),
        "new_orders": {
            "acknowledged": summary.books.ledger.acknowledged_count(),
            "by_order_numbers": database_orders,
            "unknown": summary.books.ledger.unknown_count(),
        },
        "transactions": types,
        "outages": outages,
        "driver": {
            "cpu_ns": measured.cpu_ns,
            "busiest_thread_share": saturation.awake_share,
            "dispatch_lag_p99_ns": saturation.lag_p99.0,
            "memory_bytes": measured.tick.memory.0,
        },
        "checks": { "before": report_json(before), "after": report_json(after) },
        "note": SHAPE.notice,
    })
}
