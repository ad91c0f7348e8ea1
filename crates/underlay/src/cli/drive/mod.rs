//! `underlay drive`: only the load generator, against any existing database.
//!
//! Up to four things in this order: load, run (checked before and after), check, drop. Touches nothing in
//! the database but what Underlay made there.
//!
//! What is the same for all workloads is here and in [`offer`] (the load), [`page`] (what is printed); what
//! a workload does by itself is a [`Subject`], one file each.

mod batch;
mod connection;
mod dvdstore;
mod effect;
mod foreign;
mod job;
mod loaded;
mod offer;
mod options;
mod page;
mod rights;
mod sysbench;
mod tpcc;
mod warehouse;

use crate::cli::studies::Form;
use crate::cli::whole_number::whole_number;
use crate::exit_code;
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_core::{Nanos, RootSeed};
use underlay_database::Target;
use underlay_database::place::Afterwards;
use underlay_database::session::Connector;
use underlay_database::transaction_counter::{self, EngineCount};
use underlay_driver::{
    Arrivals, Delivery, DeliveryVerdict, DriveError, DriveSpec, DriveSummary, DriveTick, Driver,
    ErrorSample, Objective, Pacing, noop_ceiling,
};
use underlay_workload::transactional::{RunAccounting, Workload as WorkloadTrait};

use self::connection::{Sessions, target};
use self::offer::{Measured, WeightsAt};
pub(super) use self::options::Given;
use self::page::After;

/// Environment variable with the database's URL.
const URL_VARIABLE: &str = "UNDERLAY_URL";
/// Users of a closed loop, and those that an open loop may keep busy at once.
const USERS_CLOSED: u32 = 8;
const USERS_OPEN: u32 = 64;
/// A server that went away under load is waited for so long.
const RETURN_LIMIT: Duration = Duration::from_secs(60);
/// Arrivals that may wait during a search: the target, not the queue, shall end a step.
const SEARCH_QUEUE: u32 = 100_000;

/// What else than a broken database violates a check after a run.
const NOT_ALONE: &str = "the checks know only what this command was told: another program that wrote to these tables \
     during the run, such as a second `underlay drive`, looks the same";

/// What was run is being checked: a request to stop ends the load, not that.
static MUST_FINISH: AtomicBool = AtomicBool::new(false);

/// Arguments of `underlay drive`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The workload.
    #[arg(value_enum)]
    workload: Workload,
    /// The database: postgres://user@host:port/database or mysql://user@host:port/database (also
    /// mariadb://); TLS by sslmode, sslrootcert, sslcert and sslkey, or ssl-mode, ssl-ca, ssl-cert and ssl-key. The
    /// password comes from --password-file, PGPASSWORD, ~/.pgpass (or PGPASSFILE) or MYSQL_PWD: everybody on this
    /// host can read a command line.
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

    /// Replace tables that Underlay did not create. NAME repeats where they are: database.schema on PostgreSQL, the
    /// database on MariaDB. Tables (and functions) of the workload's names go, after they were named with their rows;
    /// everything else there stays. With --load; with --drop they go without anything in their place.
    #[arg(long, value_name = "NAME")]
    replace_foreign: Option<String>,
    /// Take tables that Underlay did not create as they are: sysbench runs on them (fewer by --tables and
    /// --table-size) and checks them, tpcc checks them (in the search path or the schema tpcc; on MariaDB in the URL's database).
    #[arg(long, conflicts_with_all = ["load", "drop", "replace_foreign"])]
    foreign_tables: bool,

    /// Seed of the population and of the transactions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number, allow_negative_numbers = true)]
    seed: u64,
    /// Loader threads; by default one per processor.
    #[arg(long, value_name = "N")]
    loaders: Option<usize>,

    /// Virtual users: 8 by default, in an open loop 64 (which bound what can be in progress at once).
    #[arg(long, value_name = "N")]
    users: Option<u32>,
    /// Length of the measured load; with --slo of each step.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    duration: Nanos,
    /// Unmeasured load before it; with --slo before each step.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    warm_up: Nanos,
    /// Open loop: this many transactions per second, whatever the database does. With --slo: the first rate.
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "key_think")]
    rate: Option<f64>,
    /// How the transactions of an open loop are spread.
    #[arg(long, value_enum, default_value = "poisson")]
    arrivals: ArrivalKind,
    /// The rate rises in a straight line over this time (open loop).
    #[arg(long, value_name = "TIME", default_value = "0s")]
    ramp: Nanos,
    /// Search for the highest rate that meets a latency target, such as p99=10ms.
    #[arg(long, value_name = "TARGET", conflicts_with = "key_think")]
    slo: Option<Objective>,
    /// Closed loop with this multiple of the workload's keying and think times; 0 = none.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    key_think: f64,
    /// Weights of the types of transactions instead of the prescribed mix: new_order=45,payment=43,...
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Change the weights while the load runs: 30s:new_order=10,payment=90 (from the begin of the measured
    /// load; may be repeated).
    #[arg(long, value_name = "TIME:WEIGHTS", conflicts_with = "slo")]
    weights_at: Vec<String>,
    /// At most this many connections, shared by the users.
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Driver threads; by default one per processor.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Drive nothing: the generator's own ceiling.
    #[arg(long, conflicts_with_all = ["load", "check", "drop", "replace_foreign"])]
    noop: bool,

    #[command(flatten)]
    tpcc: tpcc::TpccArguments,
    #[command(flatten)]
    sysbench: sysbench::SysbenchArguments,
    #[command(flatten)]
    dvdstore: dvdstore::DvdStoreArguments,
    #[command(flatten)]
    batch: batch::BatchArguments,
    #[command(flatten)]
    warehouse: warehouse::WarehouseArguments,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Order entry, derived from TPC-C.
    Tpcc,
    /// Transactions compatible with sysbench's OLTP scripts.
    Sysbench,
    /// A web shop after DVD Store 3.
    Dvdstore,
    /// Insertion of many rows into one table.
    Batch,
    /// Decision support, derived from TPC-H.
    Warehouse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalKind {
    Poisson,
    Uniform,
}

impl Workload {
    /// As it is written.
    fn name(self) -> &'static str {
        match self {
            Workload::Tpcc => "tpcc",
            Workload::Sysbench => "sysbench",
            Workload::Dvdstore => "dvdstore",
            Workload::Batch => "batch",
            Workload::Warehouse => "warehouse",
        }
    }

    /// Whether it has an end of its own, and neither users nor rates.
    fn is_job(self) -> bool {
        matches!(self, Workload::Batch | Workload::Warehouse)
    }
}

/// A workload on the database of the command.
trait Subject {
    /// Opens its sessions.
    type Connector: Connector<Workload: WorkloadTrait<Accounting = Self::Accounting>>;
    /// What it keeps of a run.
    type Accounting: RunAccounting;
    /// What is known before a run and needed after it.
    type Before;

    /// Where it is.
    fn target(&self) -> &Target;
    /// Loads the population.
    fn load(&self) -> Result<Value, Stop>;
    /// Drops the population; in words what was dropped.
    fn drop(&self) -> Result<String, Stop>;
    /// Drops what an earlier load made, also an incomplete one; nothing there is fine.
    fn drop_if_there(&self) -> Result<(), Stop>;
    /// Makes the checks alone.
    fn check(&self) -> Result<(Value, Result<(), Stop>), Stop>;
    /// Checks what is there, and remembers what the run will be compared with.
    fn before(&self) -> Result<Self::Before, Stop>;
    /// How sessions are opened.
    fn connector(&self, before: &Self::Before) -> Self::Connector;
    /// The database's own counts.
    fn reading(&self) -> Result<Reading, Stop>;
    /// Checks again, and says what follows.
    fn after(
        &self,
        before: Self::Before,
        summary: &DriveSummary<Self::Accounting>,
    ) -> Result<After, Stop>;
}

/// The database's own counts at an instant.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    /// How many of what the headline counts there have been, by a sequence of the database's own.
    counted: Option<u64>,
    /// Transactions as the engine counts them.
    engine: EngineCount,
}

/// Carries out the command; of the arguments `given` were written.
pub(super) fn run(arguments: &Arguments, given: &Given) -> Result<(), Stop> {
    interrupt::install_for_one();
    options::check(arguments, given)?;
    match arguments.workload {
        Workload::Tpcc if arguments.noop => {
            let workload = arguments.tpcc.workload(RootSeed(arguments.seed))?;
            run_noop(arguments, workload)
        }
        Workload::Tpcc => {
            let subject = tpcc::TpccSubject::new(arguments, target(arguments)?)?;
            carry_out(arguments, &subject)
        }
        Workload::Dvdstore if arguments.noop => {
            let workload = arguments.dvdstore.workload(RootSeed(arguments.seed))?;
            run_noop(arguments, workload)
        }
        Workload::Dvdstore => {
            let subject = dvdstore::DvdStoreSubject::new(arguments, target(arguments)?)?;
            carry_out(arguments, &subject)
        }
        Workload::Sysbench if arguments.noop => {
            let workload = arguments.sysbench.workload(RootSeed(arguments.seed))?;
            run_noop(arguments, workload)
        }
        Workload::Sysbench => {
            let subject = sysbench::SysbenchSubject::new(arguments, target(arguments)?)?;
            carry_out(arguments, &subject)
        }
        Workload::Batch => batch::carry_out(arguments),
        Workload::Warehouse => warehouse::carry_out(arguments),
    }
}

fn carry_out<S: Subject>(arguments: &Arguments, subject: &S) -> Result<(), Stop> {
    let done = carry_out_steps(arguments, subject);
    done.map_err(|stop| rights::explain(arguments, subject.target(), stop))
}

fn carry_out_steps<S: Subject>(arguments: &Arguments, subject: &S) -> Result<(), Stop> {
    let mut result = Map::new();
    let sessions = Sessions::look(arguments, subject.target())?;
    result.insert("sessions".to_string(), sessions.json());
    if arguments.runs() {
        connection::refuse_too_many(arguments, subject.target())?;
    }
    if arguments.load {
        if let Some(replaced) = foreign::replace(arguments, subject.target(), Afterwards::Load)? {
            result.insert("replaced".to_string(), replaced);
        } else if arguments.drop {
            subject.drop_if_there().map_err(|stop| given_up(arguments, Action::Drop, stop))?;
        }
        let loaded = subject.load().map_err(|stop| given_up(arguments, Action::Load, stop))?;
        result.insert("load".to_string(), loaded);
    }
    let mut verdict = Ok(());
    if arguments.runs() {
        let (run, checked) = run_load(arguments, subject)?;
        result.insert("run".to_string(), run);
        verdict = checked;
    }
    if arguments.check && may_begin(&mut verdict) {
        let checked = subject.check().map_err(|stop| given_up(arguments, Action::Check, stop));
        let (report, checked) = checked?;
        result.insert("check".to_string(), report);
        verdict = verdict.and(checked);
    }
    if arguments.drop && !arguments.load && may_begin(&mut verdict) {
        let mut dropped = "the population".to_string();
        match foreign::replace(arguments, subject.target(), Afterwards::Leave)? {
            Some(replaced) => {
                result.insert("replaced".to_string(), replaced);
            }
            None => {
                let done = subject.drop();
                dropped = done.map_err(|stop| given_up(arguments, Action::Drop, stop))?;
            }
        }
        arguments.say(&format!("dropped {dropped}"));
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if arguments.form() == Form::Json {
        outln!("{:#}", Value::from(result));
    }
    verdict
}

/// What a command does with a population, besides running the load.
#[derive(Clone, Copy)]
enum Action {
    Load,
    Check,
    Drop,
}

/// Whether another step may begin; what a user who asked to stop does not get is no success.
fn may_begin(verdict: &mut Result<(), Stop>) -> bool {
    let may_begin = !interrupt::requested();
    if !may_begin && verdict.is_ok() {
        *verdict = Err(Stop::interrupted("stopped by the user"));
    }
    may_begin
}

/// Whether a load of rows, a check or a removal shall end early.
fn shall_give_up() -> bool {
    interrupt::requested() && !MUST_FINISH.load(Ordering::Relaxed)
}

/// Why a step ended: what the user stopped did not fail.
fn given_up(arguments: &Arguments, action: Action, stop: Stop) -> Stop {
    if !shall_give_up() {
        return stop;
    }
    let stop = Stop::interrupted("stopped by the user");
    match action {
        Action::Load => stop.with_hint(format!(
            "a load that did not come to its end is removed by `underlay drive {} --drop`",
            arguments.workload.name()
        )),
        Action::Drop => stop.with_hint(
            "what the server had begun it may finish by itself; the same command again removes what is left",
        ),
        Action::Check => stop,
    }
}

fn run_load<S: Subject>(
    arguments: &Arguments,
    subject: &S,
) -> Result<(Value, Result<(), Stop>), Stop> {
    // What is wrong in the arguments must be said before anything is touched.
    let before = subject.before().map_err(|stop| given_up(arguments, Action::Check, stop))?;
    let connector = subject.connector(&before);
    let shape = connector.workload().shape();
    let changes =
        arguments.weights_at(shape).map_err(|problems| Stop::bad_input(problems.join("\n")))?;
    let spec = arguments.spec();
    let driver = Driver::start(spec, connector, Instant::now()).map_err(|error| {
        let text = chain(&error);
        match error {
            DriveError::Connect(error) => rights::session_failed(&error, text),
            _ => Stop::run_failed(text),
        }
    })?;
    if let Some(change) = changes.first().filter(|change| change.after.is_none()) {
        offer::set(&driver, change)?;
    }
    let measured = match &arguments.slo {
        Some(objective) => offer::search(arguments, *objective, &driver)?,
        None => offer::measure(arguments, &changes, subject, &driver)?,
    };
    let summary = driver.stop();
    // Without what is read and checked now, the run would be lost.
    MUST_FINISH.store(true, Ordering::Relaxed);
    wait_for_the_server(arguments, subject);
    let mut after = subject.after(before, &summary).unwrap_or_else(After::unjudged);
    after.verdict = after.verdict.map_err(|stop| match stop.code() {
        exit_code::CHECK_VIOLATED => stop.with_hint(NOT_ALONE),
        _ => stop,
    });
    MUST_FINISH.store(false, Ordering::Relaxed);
    if arguments.form() == Form::Text {
        page::print(arguments, &measured, &summary, &after, &changes);
    }
    let mut json = page::json(&measured, &summary, &after, &changes);
    json["asked"] = arguments.asked();
    let delivered = match Delivery::of(&measured.tick).map(|delivery| delivery.verdict) {
        Some(DeliveryVerdict::Missed) if measured.search.is_none() => {
            Err(Stop::load_not_delivered(
                "the requested rate was not delivered: latencies are those of a lower load",
            ))
        }
        _ => Ok(()),
    };
    let interrupted =
        if interrupt::requested() { Err(Stop::interrupted("stopped by the user")) } else { Ok(()) };
    let away = match &measured.search {
        Some(search) if search.is_away => {
            Err(Stop::run_failed("the search ended without a result: the database went away"))
        }
        _ => Ok(()),
    };
    let verdict =
        after.verdict.and(interrupted).and(nothing_done(&measured)).and(away).and(delivered);
    Ok((json, verdict))
}

/// A run that was cut short because the user may not do what it does, or in which nothing came to its end, is no result.
fn nothing_done(measured: &Measured) -> Result<(), Stop> {
    let tick = &measured.tick;
    if let Some(denied) = denial(tick) {
        return Err(Stop::denied(format!("the transactions are not allowed: {}", denied.message)));
    }
    match tick.samples.iter().next() {
        Some(sample) if tick.completed() == 0 => Err(Stop::run_failed(format!(
            "no transaction came to its end in the measured load: {}",
            sample.message
        ))),
        _ => Ok(()),
    }
}

/// What the users of a run have no right to, if anything.
fn denial(tick: &DriveTick) -> Option<&ErrorSample> {
    tick.samples.iter().find(|sample| sample.is_denial)
}

/// A server that went away under load may come back, and can then be judged.
fn wait_for_the_server<S: Subject>(arguments: &Arguments, subject: &S) {
    let deadline = Instant::now() + RETURN_LIMIT;
    let mut is_said = false;
    while subject.reading().is_err() && Instant::now() < deadline {
        if !std::mem::replace(&mut is_said, true) {
            arguments.say("the database does not answer; waiting for it, to see what it kept");
        }
        if !interrupt::sleep_until(Instant::now() + Duration::from_millis(500)) {
            return;
        }
    }
}

fn run_noop<W: WorkloadTrait>(arguments: &Arguments, workload: W) -> Result<(), Stop> {
    let shape = workload.shape();
    let seed = RootSeed(arguments.seed);
    let ceiling = noop_ceiling(workload, seed, arguments.users(), arguments.duration.into())
        .map_err(|error| Stop::bad_input(chain(&error)))?;
    if arguments.json {
        outln!(
            "{:#}",
            json!({
                "transactions_per_second": ceiling.transactions_per_second,
                shape.headline.unit.to_lowercase(): ceiling.headline_rate,
                "cpu_ns_per_transaction": ceiling.cpu_ns_per_transaction,
            })
        );
    } else {
        outln!(
            "the generator alone: {:.0} transactions/s ({:.0} {}), {} of CPU per transaction",
            ceiling.transactions_per_second,
            ceiling.headline_rate,
            shape.headline.unit,
            Nanos(ceiling.cpu_ns_per_transaction as u64)
        );
    }
    Ok(())
}

impl Arguments {
    fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Whether the load runs: also when nothing else is asked for.
    fn runs(&self) -> bool {
        self.run || !(self.load || self.check || self.drop)
    }

    fn is_open(&self) -> bool {
        self.rate.is_some() || self.slo.is_some()
    }

    fn users(&self) -> u32 {
        self.users.unwrap_or(if self.is_open() { USERS_OPEN } else { USERS_CLOSED })
    }

    fn loaders(&self) -> usize {
        self.loaders
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .max(1)
    }

    /// A line for people; nothing for programs.
    fn say(&self, text: &str) {
        if self.form() == Form::Text {
            outln!("{text}");
        }
    }

    fn arrivals(&self) -> Arrivals {
        match self.arrivals {
            ArrivalKind::Poisson => Arrivals::Poisson,
            ArrivalKind::Uniform => Arrivals::Uniform,
        }
    }

    /// What tells this run from another one of the same workload.
    fn asked(&self) -> Value {
        let arrivals = self.is_open().then_some(match self.arrivals {
            ArrivalKind::Poisson => "poisson",
            ArrivalKind::Uniform => "uniform",
        });
        json!({
            "users": self.users(),
            "connections": self.connections,
            "threads": self.threads,
            "duration_ns": self.duration.0,
            "warm_up_ns": self.warm_up.0,
            "rate_per_second": self.rate,
            "arrivals": arrivals,
            "ramp_ns": self.ramp.0,
            "key_think": (!self.is_open()).then_some(self.key_think),
        })
    }

    fn spec(&self) -> DriveSpec {
        let mut spec = DriveSpec::new(RootSeed(self.seed), self.users());
        spec.connections = self.connections;
        spec.threads = self.threads;
        spec.pacing = match (self.slo, self.rate) {
            (Some(_), _) => Pacing::Open {
                rate_per_second: self.first_rate(),
                arrivals: self.arrivals(),
                ramp: Nanos::ZERO,
                queue_limit: SEARCH_QUEUE,
            },
            (None, Some(rate)) => {
                let mut pacing = Pacing::open(rate, self.arrivals());
                if let Pacing::Open { ramp, .. } = &mut pacing {
                    *ramp = self.ramp;
                }
                pacing
            }
            (None, None) => Pacing::Closed { key_think: self.key_think },
        };
        spec
    }

    /// Where a search begins.
    fn first_rate(&self) -> f64 {
        self.rate.unwrap_or(100.0)
    }

    /// The weights to begin with, if any, and their changes in order; or all that is wrong with them.
    fn weights_at(
        &self,
        shape: &'static underlay_workload::transactional::Shape,
    ) -> Result<Vec<WeightsAt>, Vec<String>> {
        let first = self.weights.iter().map(|weights| WeightsAt::parse(None, weights, shape));
        let later = self.weights_at.iter().map(|text| {
            let (at, weights) = text.split_once(':').ok_or_else(|| {
                format!(
                    "`{text}` is no change of weights; write for example 30s:{}=10",
                    shape.types.first().unwrap_or(&"type")
                )
            })?;
            let at: Nanos =
                at.parse().map_err(|error| format!("`{at}` in `{text}` is no time: {error}"))?;
            WeightsAt::parse(Some(at), weights, shape)
        });
        let (mut changes, mut wrong) = (Vec::new(), Vec::new());
        for parsed in first.chain(later) {
            match parsed {
                Ok(change) => changes.push(change),
                Err(problem) => wrong.push(problem),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        changes.sort_by_key(|change| change.after);
        Ok(changes)
    }
}

/// The engine's count now, beside what the workload's own sequence says.
fn reading(runtime: &Runtime, target: &Target, counted: Option<u64>) -> Result<Reading, Stop> {
    let engine = runtime.block_on(transaction_counter::count(target)).map_err(|error| {
        rights::session_failed(&error, format!("could not read the transactions: {error}"))
    })?;
    Ok(Reading { at: Instant::now(), counted, engine })
}
