//! `underlay drive`: the load generator alone, against any existing database.
//!
//! Up to four steps in this order: load, run (checked before and after), check, drop. Changes nothing in
//! the database but what Underlay made there. A run is planned here and carried out by the lab
//! ([`external`](crate::lab::external)), as a run of a study is.
//!
//! What is the same for all workloads is in [`command`] and [`options`], in [`steps`] (their order), in [`users`] and [`job`]
//! (a run) and in [`page`] (what is printed); each workload has a file with its options and what only an external database
//! needs of it ([`External`](external::External)).

mod batch;
mod command;
mod connection;
mod dvdstore;
mod external;
mod foreign;
mod job;
mod noop;
mod options;
mod page;
mod page_json;
mod recording;
mod rights;
mod shown;
mod steps;
mod sysbench;
mod tpcc;
mod users;
mod verdict;
mod warehouse;

use crate::lab::interrupt;
use crate::stop::Stop;
use clap::{Args, Subcommand};

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
