//! `underlay drive`: the load generator alone, against any existing database.
//!
//! Up to four steps in this order: load, run (checked before and after), check, drop. Changes nothing in
//! the database but what Underlay made there. A run is planned here and carried out by the lab
//! ([`external`](crate::lab::external)), as a run of a study is.
//!
//! What is the same for all workloads is here, in [`options`], in [`users`] (a run) and in [`page`] (what is printed); each
//! workload has a file
//! with its options and what only an external database needs of it ([`External`]).

mod batch;
mod connection;
mod dvdstore;
mod foreign;
mod options;
mod page;
mod page_json;
mod recording;
mod rights;
mod sysbench;
mod tpcc;
mod users;
mod warehouse;

use crate::cli::drive::connection::Sessions;
use crate::cli::drive::options::{Common, Loading, NOT_LOADED, Problems, THREADS, UserLoad};
use crate::exit_code;
use crate::lab::external::{self, Checks, CountedSite, ExternalPlan, Finished};
use crate::lab::interrupt;
use crate::lab::progress::Progress;
use crate::lab::workload::{Access, Checked, Loaded, Subject, stopped};
use crate::stop::{Stop, chain};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::time::Instant;
use tokio::runtime::Runtime;
use underlay_core::Nanos;
use underlay_database::run_lock;
use underlay_database::schema_ownership::{Afterwards, WorkloadTables};
use underlay_driver::noop_ceiling;
use underlay_record::CheckMoment;
use underlay_study::{Pacing, ProcedurePlan, WorkloadKind, WorkloadPlan};
use underlay_workload::transactional::Workload as WorkloadTrait;

/// Environment variable with the database's URL.
const URL_VARIABLE: &str = "UNDERLAY_URL";
/// A job may take so long.
const LONGEST_JOB: Nanos = Nanos::from_secs(30 * 86_400);

/// What else than a broken database violates a check after a run.
const NOT_ALONE: &str = "the checks know only the transactions of this command: if another program wrote to these \
     tables during the run, such as a second `underlay drive`, that looks like a violation";

/// Arguments of `underlay drive`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Order entry, derived from TPC-C.
    Tpcc(Box<tpcc::Arguments>),
    /// Transactions compatible with sysbench's OLTP scripts.
    Sysbench(Box<sysbench::Arguments>),
    /// A web shop after DVD Store 3.
    Dvdstore(Box<dvdstore::Arguments>),
    /// Insertion of many rows into one table.
    Batch(Box<batch::Arguments>),
    /// Decision support, derived from TPC-H.
    Warehouse(Box<warehouse::Arguments>),
}

/// A command, as far as all workloads have it.
struct Command<'a> {
    common: &'a Common,
    loading: &'a Loading,
    /// None of a job with an end.
    users: Option<&'a UserLoad>,
    name: &'static str,
    tables: WorkloadTables,
    /// Tables that Underlay did not create are taken as they are.
    foreign_tables: bool,
    /// Of those so many tables and ids of each; none = all.
    foreign_size: (Option<u32>, Option<u32>),
    /// Users may insert in bulk, for which they need tables of their own.
    inserts_in_bulk: bool,
}

/// What a workload's database needs that Underlay does not manage.
trait External: Subject {
    /// Takes over size and seed of what is there.
    fn adopt(&mut self, command: &Command<'_>, access: Access<'_>) -> Result<(), Stop>;

    /// Drops the population, also an incomplete one; in words what was dropped.
    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop>;

    /// What was loaded, in words and as members of the JSON object.
    fn describe_load(&self, loaded: &Loaded) -> (String, Value);

    /// Runs, and reports what came of it.
    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop>;

    /// Makes the checks alone.
    fn check_alone(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let check = |access| self.check(access, CheckMoment::After, None);
        check_alone(self, command, check, access)
    }

    /// Checks as JSON.
    fn checks_json(&self, checks: &Checks) -> Value {
        checks.results.iter().map(page_json::check).collect()
    }
}

/// Makes checks and prints what each found.
fn check_alone<'a, S: External + ?Sized>(
    subject: &S,
    command: &Command<'_>,
    check: impl FnOnce(Access<'a>) -> Result<Vec<Checked>, Stop>,
    access: Access<'a>,
) -> Result<(Value, Result<(), Stop>), Stop> {
    let began = Instant::now();
    let results = check(access)?;
    let checks = Checks { results, duration: began.elapsed() };
    for check in &checks.results {
        command.say(&format!("  {}", check.describe()));
    }
    command.say(&format!(
        "{} checks in {}, {} failed",
        checks.results.len(),
        Nanos::from(checks.duration),
        checks.failed().count()
    ));
    Ok((subject.checks_json(&checks), checks.verdict("")))
}

/// What a removal found.
enum Dropped {
    /// This was dropped.
    Done(String),
    /// There was nothing, which is an error where it was the only thing asked for.
    Nothing(Stop),
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    interrupt::install_for_one();
    match &arguments.workload {
        Workload::Tpcc(arguments) => tpcc::run(arguments),
        Workload::Sysbench(arguments) => sysbench::run(arguments),
        Workload::Dvdstore(arguments) => dvdstore::run(arguments),
        Workload::Batch(arguments) => batch::run(arguments),
        Workload::Warehouse(arguments) => warehouse::run(arguments),
    }
}

fn carry_out<S: External>(command: &Command<'_>, mut subject: S) -> Result<(), Stop> {
    let target = connection::target(command)?;
    let runtime =
        Runtime::new().map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
    let access = Access { runtime: &runtime, target: &target, parallel: command.loaders() };
    let done = carry_out_steps(command, access, &mut subject);
    done.map_err(|stop| rights::explain(command, access, stop))
}

fn carry_out_steps<S: External>(
    command: &Command<'_>,
    access: Access<'_>,
    subject: &mut S,
) -> Result<(), Stop> {
    let mut result = Map::new();
    let sessions = Sessions::look(command, access)?;
    result.insert("sessions".to_string(), sessions.json());
    if command.runs() {
        connection::refuse_too_many(command, access)?;
        recording::refuse_existing(command)?;
    }
    // Running a job that makes its table replaces an earlier one.
    let is_made_by_run = command.is_made_by_run();
    if command.common.drop
        || command.common.replace_foreign.is_some()
        || (is_made_by_run && command.runs())
    {
        refuse_while_running(command, access)?;
    }
    let replaces = command.loading.load || (is_made_by_run && command.runs());
    let mut replaced = None;
    if replaces {
        replaced = foreign::replace(command, access, Afterwards::Load)?;
    }
    if command.loading.load {
        if command.common.drop && replaced.is_none() {
            subject
                .drop_population(access)
                .map_err(|stop| given_up(command, Action::Drop, stop))?;
        }
        let loaded =
            subject.load(access, &|_| {}).map_err(|stop| given_up(command, Action::Load, stop))?;
        let (text, members) = subject.describe_load(&loaded);
        command.say(&format!("loaded {text} in {}", page::load_stages(&loaded.report)));
        result.insert("load".to_string(), page_json::load(&loaded.report, members));
    }
    let mut verdict = Ok(());
    if command.runs() {
        if !is_made_by_run {
            adopt(command, access, subject)?;
        }
        let lock = access.runtime.block_on(run_lock::hold(access.target, command.name));
        let _lock = match lock {
            Ok(lock) => Some(lock),
            // A database that does not exist before the run cannot be locked, and need not be.
            Err(_) if is_made_by_run => None,
            Err(error) => return Err(stopped("lock the tables against removal", error)),
        };
        let (run, ended) = subject.run(command, access)?;
        result.insert("run".to_string(), run);
        verdict = ended;
    }
    if command.common.check && may_begin(&mut verdict) {
        adopt(command, access, subject)?;
        let checked = subject.check_alone(command, access);
        let (report, checked) = checked.map_err(|stop| given_up(command, Action::Check, stop))?;
        result.insert("check".to_string(), report);
        verdict = verdict.and(checked);
    }
    if command.common.drop && !command.loading.load && may_begin(&mut verdict) {
        refuse_while_running(command, access)?;
        let mut dropped = "the population".to_string();
        let cleared = match replaced {
            Some(_) => None,
            None => foreign::replace(command, access, Afterwards::Leave)?,
        };
        if cleared.is_some() {
            replaced = cleared;
        } else {
            match subject.drop_population(access) {
                Ok(Dropped::Done(what)) => dropped = what,
                Ok(Dropped::Nothing(stop)) => return Err(stop),
                Err(stop) => return Err(given_up(command, Action::Drop, stop)),
            }
        }
        command.say(&format!("dropped {dropped}"));
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if let Some(replaced) = replaced {
        result.insert("replaced".to_string(), replaced);
    }
    if command.common.json {
        if command.tables == WorkloadTables::Warehouse {
            result.insert("notice".to_string(), underlay_workload::warehouse::NOTICE.into());
        }
        outln!("{:#}", Value::from(result));
    }
    verdict
}

fn adopt<S: External>(
    command: &Command<'_>,
    access: Access<'_>,
    subject: &mut S,
) -> Result<(), Stop> {
    subject.adopt(command, access).map_err(|stop| given_up(command, Action::Check, stop))
}

/// Refuses to remove tables that another command is driving.
fn refuse_while_running(command: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
    match access.runtime.block_on(run_lock::is_held(access.target, command.name)) {
        Ok(true) => Err(Stop::bad_input(format!(
            "another `underlay drive {}` is running on these tables: wait until it ends, or stop it, before removing \
             them",
            command.name
        ))),
        Ok(false) => Ok(()),
        // What keeps sessions from being opened is reported by what follows.
        Err(_) => Ok(()),
    }
}

/// What a command does with a population, besides running the load.
#[derive(Clone, Copy)]
enum Action {
    Load,
    Check,
    Drop,
}

/// Whether another step may begin; a user who asked to stop gets no success for what was left out.
fn may_begin(verdict: &mut Result<(), Stop>) -> bool {
    let may_begin = !interrupt::requested();
    if !may_begin && verdict.is_ok() {
        *verdict = Err(Stop::interrupted("stopped by the user"));
    }
    may_begin
}

/// Why a step ended: what the user stopped did not fail.
fn given_up(command: &Command<'_>, action: Action, stop: Stop) -> Stop {
    if !interrupt::gives_up() {
        return stop;
    }
    let stop = Stop::interrupted("stopped by the user");
    match action {
        Action::Load => stop.with_hint(format!(
            "an incomplete load is removed by `underlay drive {} --drop`",
            command.name
        )),
        Action::Drop => stop.with_hint(
            "the server may still complete a statement that it has begun; repeat the command to remove the rest",
        ),
        Action::Check => stop,
    }
}

/// Runs a job: a workload with an end of its own, and neither users nor rates.
fn run_job<S: External>(
    subject: &S,
    command: &Command<'_>,
    access: Access<'_>,
    kind: WorkloadKind,
    checks: bool,
) -> Result<Finished<S>, Stop> {
    let sessions = kind.job_sessions().unwrap_or(1);
    let plan = ExternalPlan {
        workload: WorkloadPlan {
            kind,
            pacing: Pacing::Job,
            seed: command.common.seed(),
            statement_timeout: Nanos::ZERO,
        },
        procedure: ProcedurePlan {
            users: vec![sessions],
            measure: LONGEST_JOB,
            ..ProcedurePlan::empty()
        },
        mix: None,
        weights: Vec::new(),
        connections: None,
        threads: None,
        ramp: Nanos::ZERO,
        checks,
    };
    let recorder = recording::create(command, access, subject, &plan)?;
    let mut site = CountedSite { ask: &|| None, first: None, last: None };
    let mut progress = Progress::of_one_run(command.name, Nanos::ZERO, true);
    external::carry_out(subject, access, &plan, recorder, &mut site, &mut progress)
}

/// The verdict of a run, from the first reason that makes it no result to the last.
fn verdict_of_run<S: Subject>(finished: &Finished<S>, interrupted: &str) -> Result<(), Stop> {
    let checked = match &finished.checked_after {
        Ok(checks) => checks.verdict(" after the run").map_err(|stop| match stop.code() {
            exit_code::CHECK_VIOLATED => stop.with_hint(NOT_ALONE),
            _ => stop,
        }),
        Err(stop) => Err(stop.clone()),
    };
    let interrupted =
        if interrupt::requested() { Err(Stop::interrupted(interrupted)) } else { Ok(()) };
    checked.and(interrupted)
}

fn run_noop<W: WorkloadTrait>(command: &Command<'_>, workload: W) -> Result<(), Stop> {
    let Some(users) = command.users else { return Ok(()) };
    let shape = workload.shape();
    let seed = command.common.seed();
    let ceiling = noop_ceiling(workload, seed, users.users(), users.duration().into())
        .map_err(|error| Stop::bad_input(chain(&error)))?;
    if command.common.json {
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

impl Command<'_> {
    /// Whether the load runs: also when nothing else is asked for.
    fn runs(&self) -> bool {
        let Common { run, check, drop, .. } = *self.common;
        run || !(self.loading.load || check || drop)
    }

    fn is_noop(&self) -> bool {
        self.users.is_some_and(|users| users.noop)
    }

    /// Whether a run makes what it needs, instead of a load.
    fn is_made_by_run(&self) -> bool {
        self.tables == WorkloadTables::Batch
    }

    fn loaders(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.loading.loaders.unwrap_or_else(all).max(1)
    }

    /// A line for people; nothing for programs.
    fn say(&self, text: &str) {
        if !self.common.json {
            outln!("{text}");
        }
    }

    /// Notes what is wrong with the options that it knows.
    fn problems(&self, problems: &mut Problems) {
        problems.outside("--loaders", self.loading.loaders, THREADS);
        if let Some(users) = self.users {
            users.problems(self.runs(), problems);
        }
        let of_run = [("--record", self.common.record.is_some())];
        let of_connections = [
            ("--loaders", self.loading.loaders.is_some()),
            ("--password-file", self.common.password_file.is_some()),
            ("--foreign-tables", self.foreign_tables),
        ];
        if self.is_noop() {
            let why = "has no effect with --noop, which drives nothing";
            problems.refuse(&of_connections, why);
            problems.refuse(&of_run, why);
            return;
        }
        if !self.runs() {
            problems.refuse(&of_run, options::NOT_RUN);
        }
        let replaces =
            self.loading.load || self.common.drop || (self.is_made_by_run() && self.runs());
        let replace = [("--replace-foreign", self.common.replace_foreign.is_some() && !replaces)];
        problems.refuse(&replace, "has no effect without --load or --drop (for batch: a run)");
        // What a warehouse's queries ask follows from the seed that it was loaded with.
        let draws = self.loading.load || (self.runs() && self.tables != WorkloadTables::Warehouse);
        let seed = [("--seed", self.common.seed.is_some() && !draws)];
        problems
            .refuse(&seed, "has no effect if nothing is generated: the existing data has its own");
        // TPC-C's checks are made in parallel too.
        let checks = self.tables == WorkloadTables::Tpcc && (self.runs() || self.common.check);
        let loaders = self.loading.loaders.is_some() && !(self.loading.load || checks);
        problems.refuse(&[("--loaders", loaders)], NOT_LOADED);
    }

    /// Refuses what cannot be, and what would have no effect.
    fn refuse(mut problems: Problems, command: &Command<'_>) -> Result<(), Stop> {
        command.problems(&mut problems);
        let wrong = problems.0;
        if wrong.is_empty() { Ok(()) } else { Err(Stop::bad_input(wrong.join("\n"))) }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::{Arguments, run};
    use crate::exit_code;

    /// What is wrong with a command line, a line per problem. Nothing listens at the port: what is right ends there.
    fn wrong(line: &str) -> Vec<String> {
        let command = Arguments::augment_args(clap::Command::new("drive"));
        let words = ["drive"].into_iter().chain(line.split(' '));
        let matches =
            command.get_matches_from(words.chain(["--url", "postgres://a@127.0.0.1:1/x"]));
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        match run(&arguments) {
            Err(stop) if stop.code() == exit_code::BAD_INPUT => {
                stop.to_string().lines().map(str::to_string).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn numbers_have_their_ranges() {
        for option in [
            "--users=0",
            "--users=100001",
            "--connections=0",
            "--threads=0",
            "--loaders=0",
            "--rate=0",
            "--rate=-5",
            "--rate=nan",
            "--rate=inf",
            "--rate=1e9",
            "--key-think=nan",
            "--duration=0s",
            "--warm-up=169h",
        ] {
            let (name, _) = option.split_once('=').unwrap();
            for workload in ["tpcc", "sysbench", "dvdstore"] {
                let said = wrong(&format!("{workload} --load --run {option}"));
                assert_eq!(said.len(), 1, "{option}: {said:?}");
                assert!(said[0].starts_with(name) && said[0].contains(" and "), "{said:?}");
            }
        }
        assert_eq!(wrong("tpcc --users 0 --connections 0 --duration 1ms").len(), 3);
        for fine in ["--rate 0.001", "--rate 1e7", "--key-think 0.5", "--duration 1s --warm-up 0s"]
        {
            assert_eq!(wrong(&format!("tpcc {fine}")), Vec::<String>::new());
        }
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (line, named) in [
            ("tpcc --ramp 3s --arrivals uniform", &["--arrivals", "--ramp"][..]),
            ("tpcc --slo p99=10ms --ramp 3s", &["--ramp"]),
            ("tpcc --rate 5 --ramp 61s", &["--ramp 61 s is longer"]),
            ("tpcc --run --warehouses 5", &["--warehouses"]),
            ("sysbench --run --table-size 5", &["--table-size"]),
            ("dvdstore --check --db-size 1GB --n-searches 4", &["--db-size", "--n-searches"]),
            ("warehouse --run --scale 1", &["--scale"]),
            ("warehouse --load --scale 1 --streams 2", &["--streams"]),
            ("warehouse --streams 0 --power-runs 0", &["--power-runs"]),
            ("warehouse --run --seed 5 --loaders 3", &["--seed", "--loaders"]),
            ("batch --check --rows 5 --seed 3", &["--rows", "--seed"]),
            ("batch --rows 0", &["--rows"]),
            ("tpcc --drop --seed 3 --loaders 2", &["--seed", "--loaders"]),
            ("tpcc --drop --record x.sqlite", &["--record"]),
            ("sysbench --check --loaders 2 --rand-type pareto", &["--rand-type", "--loaders"]),
            ("sysbench --key-think 1", &["--key-think"]),
            ("sysbench --script insert --range-size 5", &["--range-size"]),
            ("sysbench --script insert --weights insert=1", &["--script"]),
            ("sysbench --script bulk_insert --rand-type pareto", &["--rand-type"]),
            ("tpcc --noop --entropy 5", &["--entropy"]),
            ("tpcc --noop --rate 10", &["--rate"]),
            (
                "dvdstore --ds2-mode --n-reviews 4 --pct-newmember 3 --pct-newreviews 1 --pct-newhelpfulness 1 \
                 --search-depth 9",
                &[
                    "--pct-newmember",
                    "--n-reviews",
                    "--pct-newreviews",
                    "--pct-newhelpfulness",
                    "--search-depth",
                ],
            ),
            (
                "dvdstore --weights login=1 --n-searches 4 --ds2-mode --n-line-items 5 --search-batch-size 2",
                &["--n-searches", "--ds2-mode", "--search-batch-size", "--n-line-items"],
            ),
            (
                "dvdstore --check --db-size 1GB --pct-newmember 101",
                &["pct_newmember", "--db-size", "--pct-newmember"],
            ),
            (
                "tpcc --weights a=1 --weights-at 2s:b=1 --weights-at soon:payment=1 --ramp 1s",
                &["`a`", "`b`", "`soon`", "--ramp"],
            ),
            ("tpcc --foreign-tables --run --users 0", &["--foreign-tables", "--users"]),
            ("tpcc --load --users 4", &["--users"]),
            ("tpcc --duration 2s --weights-at 30s:payment=1", &["--weights-at"]),
        ] {
            let said = wrong(line);
            assert_eq!(said.len(), named.len(), "{line}: {said:?}");
            for (said, named) in said.iter().zip(named) {
                assert!(said.starts_with(named), "{line}: {said}");
            }
        }
        for fine in [
            "tpcc --load --run --warehouses 5 --users 4 --rate 10 --ramp 1s --arrivals uniform",
            "tpcc --rate 5 --ramp 60s",
            "tpcc --noop --users 3 --warehouses 4 --duration 1s",
            "sysbench --foreign-tables --tables 2 --table-size 5 --script insert",
            "tpcc --slo p99=10ms --rate 5 --arrivals uniform",
            "tpcc --duration 31s --weights-at 30s:payment=1",
            "dvdstore --load --db-size 1GB --loaders 2",
            "warehouse --load --run --scale 1 --streams 2 --seed 3 --loaders 2",
            "warehouse --streams 0",
            "batch --run --rows 5 --seed 3",
            "tpcc --check --loaders 2",
            "tpcc --seed 4 --weights new_order=1",
            "sysbench --load --rand-type pareto",
            "sysbench --script read_only --range-size 5 --rand-type pareto",
            "sysbench --weights point_select=1 --weights-at 3s:read_only=1 --range-size 5",
            "dvdstore --ds2-mode --n-searches 4 --n-line-items 2 --search-batch-size 3",
            "dvdstore --ds2-mode --weights-at 3s:reviews_by_title=1 --search-depth 5",
            "dvdstore --weights reviews_by_title=1,purchase=1 --search-depth 5 --n-line-items 2",
        ] {
            assert_eq!(wrong(fine), Vec::<String>::new(), "{fine}");
        }
    }
}
