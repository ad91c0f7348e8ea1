//! What is wrong with the options of the command, all of it at once and before anything is touched: numbers out of their
//! range, and options that would have no effect.
//!
//! What a number may be follows the study format, where it has the same one.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use clap::ArgMatches;
use clap::parser::ValueSource;
use underlay_core::Nanos;

use super::{Arguments, Workload, batch, effect, foreign, job, warehouse};
use crate::stop::Stop;

const USERS: RangeInclusive<u32> = 1..=100_000;
const THREADS: RangeInclusive<usize> = 1..=1024;
const RATE_PER_SECOND: RangeInclusive<f64> = 0.001..=10_000_000.0;
const KEY_THINK: RangeInclusive<f64> = 0.0..=100.0;
const LONGEST: Nanos = Nanos::from_secs(7 * 86_400);
const DURATION: RangeInclusive<Nanos> = Nanos::from_secs(1)..=LONGEST;
const UNMEASURED: RangeInclusive<Nanos> = Nanos::ZERO..=LONGEST;

/// Options of one workload, by their names in [`Arguments`].
const TPCC: [&str; 4] = ["warehouses", "entropy", "profile", "statements"];
const SYSBENCH: [&str; 5] = ["script", "tables", "table_size", "rand_type", "range_size"];
const DVDSTORE: [&str; 11] = [
    "db_size",
    "pct_newcustomers",
    "pct_newmember",
    "n_searches",
    "search_batch_size",
    "search_depth",
    "n_reviews",
    "pct_newreviews",
    "pct_newhelpfulness",
    "n_line_items",
    "ds2_mode",
];
const BATCH: [&str; 4] = ["mode", "rows", "sessions", "rollback"];
const WAREHOUSE: [&str; 3] = ["scale", "streams", "power_runs"];

/// What only a load of the population heeds; what is there has its own.
const OF_LOAD: [&str; 6] = ["warehouses", "entropy", "db_size", "tables", "table_size", "scale"];
/// What only a run heeds, besides options of the shop's visits.
const OF_RUN: [&str; 17] = [
    "users",
    "duration",
    "warm_up",
    "rate",
    "arrivals",
    "ramp",
    "slo",
    "key_think",
    "weights",
    "weights_at",
    "connections",
    "threads",
    "profile",
    "statements",
    "script",
    "range_size",
    "power_runs",
];
/// What a generator that drives nothing does not heed.
const NOT_OF_NOOP: [&str; 15] = [
    "warm_up",
    "rate",
    "arrivals",
    "ramp",
    "slo",
    "key_think",
    "weights",
    "weights_at",
    "connections",
    "threads",
    "statements",
    "loaders",
    "password_file",
    "foreign_tables",
    "entropy",
];

/// The options that were written, by their names in [`Arguments`]; defaults are not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(BTreeSet<String>);

impl Given {
    /// Those of the command's part of the command line.
    pub(crate) fn of(matches: &ArgMatches) -> Given {
        let is_written =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Given(matches.ids().filter(is_written).map(|id| id.as_str().to_string()).collect())
    }

    /// Whether this one was written.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Those of `names` that were written.
    pub(super) fn among<'a>(&self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        names.iter().copied().filter(|name| self.0.contains(*name))
    }
}

/// Refuses what cannot be, and what would have no effect.
pub(super) fn check(arguments: &Arguments, given: &Given) -> Result<(), Stop> {
    let mut wrong = out_of_range(arguments);
    let (others, given) = of_others(arguments.workload, given);
    wrong.extend(others);
    wrong.extend(foreign::meaningless_options(arguments));
    if !arguments.workload.is_job() {
        wrong.extend(without_effect(arguments, &given));
        wrong.extend(effect::of_users(arguments, &given));
    } else {
        wrong.extend(match arguments.workload {
            Workload::Batch => batch::problems(arguments),
            _ => warehouse::problems(arguments),
        });
        wrong.extend(effect::of_jobs(arguments, &given));
        let of_runs = given.among(&["duration", "warm_up", "arrivals", "ramp"]);
        wrong.extend(
            of_runs.map(|name| job::meaningless(&written(name), arguments.workload.name())),
        );
        if arguments.workload == Workload::Warehouse && !arguments.load {
            wrong.extend(given.among(&["scale"]).map(not_loaded));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Stop::bad_input(wrong.join("\n"))) }
}

fn out_of_range(arguments: &Arguments) -> Vec<String> {
    let durations = [
        ("--duration", arguments.duration, DURATION),
        ("--warm-up", arguments.warm_up, UNMEASURED),
        ("--ramp", arguments.ramp, UNMEASURED),
    ];
    [
        outside("--users", arguments.users, USERS),
        outside("--connections", arguments.connections, USERS),
        outside("--threads", arguments.threads, THREADS),
        outside("--loaders", arguments.loaders, THREADS),
        outside("--rate", arguments.rate, RATE_PER_SECOND),
        outside("--key-think", Some(arguments.key_think), KEY_THINK),
    ]
    .into_iter()
    .chain(durations.map(|(name, value, range)| outside(name, Some(value), range)))
    .flatten()
    .collect()
}

/// What is wrong with a number that is not in its range; what is no number is in none.
fn outside<T: PartialOrd + Display>(
    option: &str,
    value: Option<T>,
    range: RangeInclusive<T>,
) -> Option<String> {
    let value = value.filter(|value| !range.contains(value))?;
    Some(format!("{option} {value} is not between {} and {}", range.start(), range.end()))
}

/// What is wrong with the options of other workloads, and the options without them.
fn of_others(workload: Workload, given: &Given) -> (Vec<String>, Given) {
    let mut own = given.clone();
    let mut wrong = Vec::new();
    for (whose, names) in [
        (Workload::Tpcc, &TPCC[..]),
        (Workload::Sysbench, &SYSBENCH),
        (Workload::Dvdstore, &DVDSTORE),
        (Workload::Batch, &BATCH),
        (Workload::Warehouse, &WAREHOUSE),
    ] {
        if whose == workload {
            continue;
        }
        for name in given.among(names) {
            own.0.remove(name);
            wrong.push(format!(
                "{} has no meaning for {}: it is an option of {}",
                written(name),
                workload.name(),
                whose.name()
            ));
        }
    }
    (wrong, own)
}

fn without_effect(arguments: &Arguments, given: &Given) -> Vec<String> {
    if arguments.noop {
        let said =
            |name| format!("{} has no meaning with --noop, which drives nothing", written(name));
        return given.among(&NOT_OF_NOOP).map(said).collect();
    }
    let mut wrong = Vec::new();
    if !arguments.load && !arguments.foreign_tables {
        wrong.extend(given.among(&OF_LOAD).map(not_loaded));
    }
    if !arguments.runs() {
        let of_run = given.among(&OF_RUN).chain(given.among(&DVDSTORE[1..]));
        wrong.extend(of_run.map(|name| {
            format!(
                "{} says how the load runs, and none is run: add --run, or leave it out",
                written(name)
            )
        }));
        return wrong;
    }
    if given.0.contains("arrivals") && !arguments.is_open() {
        wrong.push("--arrivals is about an open loop: add --rate, or leave it out".to_string());
    }
    if given.0.contains("ramp") && (arguments.rate.is_none() || arguments.slo.is_some()) {
        wrong
            .push("--ramp leads to a --rate (without --slo): add one, or leave it out".to_string());
    }
    // What is no time is refused where it is read.
    let late = |text: &&String| {
        let at = text.split_once(':').and_then(|(at, _)| at.parse::<Nanos>().ok());
        at.is_some_and(|at| at >= arguments.duration)
    };
    wrong.extend(arguments.weights_at.iter().filter(late).map(|text| {
        format!(
            "--weights-at {text} comes after the measured load of {}: make --duration longer than {}",
            arguments.duration,
            text.split_once(':').map_or("that", |(at, _)| at)
        )
    }));
    wrong
}

fn not_loaded(name: &str) -> String {
    format!(
        "{} says what --load makes, and what is there already has its own: add --load, or leave it out",
        written(name)
    )
}

/// An option as it is written.
pub(super) fn written(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::{Given, check};
    use crate::cli::drive::Arguments;

    /// What is wrong with a command line, a line per problem.
    fn wrong(line: &str) -> Vec<String> {
        let command = Arguments::augment_args(clap::Command::new("drive"));
        let words = ["drive"].into_iter().chain(line.split(' '));
        let matches = command.get_matches_from(words.chain(["--url", "postgres://a@h/x"]));
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        match check(&arguments, &Given::of(&matches)) {
            Ok(()) => Vec::new(),
            Err(stop) => {
                assert_eq!(stop.code(), crate::exit_code::BAD_INPUT);
                stop.to_string().lines().map(str::to_string).collect()
            }
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
            "--key-think=-1",
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
        let both = "tpcc --users 0 --connections 0 --duration 1ms";
        assert_eq!(wrong(both).len(), 3);
        for fine in ["--rate 0.001", "--rate 1e7", "--key-think 0.5", "--duration 1s --warm-up 0s"]
        {
            assert_eq!(wrong(&format!("tpcc {fine}")), Vec::<String>::new());
        }
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (line, named) in [
            ("tpcc --table-size 5 --script insert", &["--script", "--table-size"][..]),
            ("sysbench --rows 5", &["--rows"]),
            ("warehouse --warehouses 3", &["--warehouses"]),
            ("tpcc --ramp 3s --arrivals uniform", &["--arrivals", "--ramp"]),
            ("tpcc --slo p99=10ms --ramp 3s", &["--ramp"]),
            ("tpcc --run --warehouses 5", &["--warehouses"]),
            ("sysbench --run --table-size 5", &["--table-size"]),
            ("dvdstore --check --db-size 1GB --n-searches 4", &["--db-size", "--n-searches"]),
            ("warehouse --run --scale 1", &["--scale"]),
            ("warehouse --load --scale 1 --streams 2", &["--streams"]),
            ("warehouse --streams 0 --power-runs 0", &["--power-runs"]),
            ("warehouse --run --seed 5 --loaders 3", &["--seed", "--loaders"]),
            ("batch --check --rows 5 --seed 3", &["--rows", "--seed"]),
            ("batch --loaders 2 --rows 0", &["--rows", "--loaders"]),
            ("tpcc --drop --seed 3 --loaders 2", &["--seed", "--loaders"]),
            ("sysbench --check --loaders 2 --rand-type pareto", &["--rand-type", "--loaders"]),
            ("sysbench --key-think 1", &["--key-think"]),
            ("sysbench --script insert --range-size 5", &["--range-size"]),
            ("sysbench --script insert --weights insert=1", &["--script"]),
            ("sysbench --script bulk_insert --rand-type pareto", &["--rand-type"]),
            ("tpcc --noop --entropy 5", &["--entropy"]),
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
            // What cannot be is said together with what has no effect.
            (
                "dvdstore --check --db-size 1GB --pct-newmember 101",
                &["--db-size", "--pct-newmember", "pct_newmember"],
            ),
            (
                "tpcc --weights a=1 --weights-at 2s:b=1 --weights-at soon:payment=1 --ramp 1s",
                &["--ramp", "`a`", "`b`", "`soon`"],
            ),
            ("tpcc --foreign-tables --run --users 0", &["--users", "--foreign-tables"]),
            ("tpcc --load --users 4", &["--users"]),
            ("tpcc --duration 2s --weights-at 30s:payment=1", &["--weights-at"]),
            ("tpcc --noop --rate 10", &["--rate"]),
            ("batch --duration 5s", &["--duration"]),
        ] {
            let said = wrong(line);
            assert_eq!(said.len(), named.len(), "{line}: {said:?}");
            for (said, named) in said.iter().zip(named) {
                assert!(said.starts_with(named), "{line}: {said}");
            }
        }
        for fine in [
            "tpcc --load --run --warehouses 5 --users 4 --rate 10 --ramp 1s --arrivals uniform",
            "tpcc --noop --users 3 --warehouses 4 --duration 2s",
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
