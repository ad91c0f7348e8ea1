//! Peers side by side: Underlay and the load generators that are found on this host, on one server, with equal data
//! size, users and time, in turn (A B B A).
//!
//! ```text
//! with_server [--engine mariadb] -- peers [--seconds 10] [--users 8] [--tables 4] [--table-size 100000]
//!     [--warehouses 4] [--scripts read_write,point_select] [--json FILE]
//! ```
//!
//! The server is that of `BENCH_URL` and its parts, as the example `with_server` names them. Peers that are not
//! on PATH are named and left out. For each run: throughput, percentiles, CPU time of the generator's process per
//! transaction, violated consistency checks; for each generator once, with one user: round trips per transaction,
//! counted on the wire. What is and is not the same in a pair is printed above it.
//!
//! What is deliberately not here: blocks (the example `io_cost` compares with fio), and verdicts: a pair of
//! generators on one busy host says which costs more, not which database is better.

mod compare;
mod go_tpc;
mod ours;
mod pgbench;
mod place;
mod sysbench;
mod wire;

use std::path::Path;

use serde_json::json;
use underlay_database::Engine;
use underlay_workload::sysbench::Script;

use compare::{Comparison, Conditions};
use ours::Ours;
use place::Place;

/// Why a comparison could not be made.
pub type Failure = Box<dyn std::error::Error>;

/// What the command line says.
pub struct Options {
    conditions: Conditions,
    tables: u32,
    table_size: u32,
    warehouses: u32,
    scripts: Vec<Script>,
    json: Option<String>,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let place = Place::from_environment()?;
    let mut done = Vec::new();
    let mut skipped = Vec::new();
    if !is_installed("sysbench") {
        skipped.push("sysbench");
    }
    if place.engine == Engine::Postgresql && !is_installed("pgbench") {
        skipped.push("pgbench");
    }
    if skipped.len() < 2 {
        on_sysbenchs_tables(&options, &place, &mut done)?;
    }
    if is_installed("go-tpc") {
        on_warehouses(&options, &place, &mut done)?;
    } else {
        skipped.push("go-tpc");
    }
    for name in &skipped {
        println!("skip: no {name} on PATH");
    }
    if let Some(path) = &options.json {
        let result = json!({
            "engine": place.engine.as_str(),
            "users": options.conditions.users,
            "seconds": options.conditions.seconds,
            "load_average": std::fs::read_to_string("/proc/loadavg")?.trim(),
            "comparisons": done,
            "not_installed": skipped,
        });
        std::fs::write(path, format!("{result:#}\n"))?;
    }
    Ok(())
}

/// Sysbench and pgbench against the scripts that are compatible with sysbench's.
fn on_sysbenchs_tables(
    options: &Options,
    place: &Place,
    done: &mut Vec<serde_json::Value>,
) -> Result<(), Failure> {
    let place = place.with_database(match place.engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "sbtest",
    });
    let size = format!("--tables={} --table-size={}", options.tables, options.table_size);
    let size: Vec<&str> = size.split(' ').collect();
    ours::load(&place, &[&["sysbench"], &size[..]].concat())?;
    if is_installed("sysbench") {
        for script in &options.scripts {
            let comparison = Comparison {
                title: format!("sysbench oltp_{script} on {}", place.engine),
                same: format!(
                    "the same {} tables of {} rows, statements, uniform ids, users and seconds; ours warms up for {} s \
                     first and checks the tables before and after",
                    options.tables,
                    options.table_size,
                    compare::WARM_UP.as_secs()
                ),
                ours: &Ours::new(&["sysbench", "--script", script.as_str()]),
                peer: &sysbench::Sysbench {
                    script: *script,
                    tables: options.tables,
                    table_size: options.table_size,
                },
            };
            done.push(comparison.carry_out(&options.conditions, &place)?);
        }
    }
    if place.engine == Engine::Postgresql && is_installed("pgbench") {
        let pgbench = pgbench::Pgbench::prepare(&place, options.tables * options.table_size)?;
        let comparison = Comparison {
            title: "pgbench -S beside point_select on PostgreSQL".to_string(),
            same: format!(
                "one prepared SELECT of a column by primary key, uniform over about {} rows; not the same rows: pgbench \
                 returns an integer of one table, ours a text of 120 characters of {} tables",
                options.tables * options.table_size,
                options.tables
            ),
            ours: &Ours::new(&["sysbench", "--script", "point_select"]),
            peer: &pgbench,
        };
        done.push(comparison.carry_out(&options.conditions, &place)?);
    }
    Ok(())
}

/// go-tpc against both ways of running the order entry.
fn on_warehouses(
    options: &Options,
    place: &Place,
    done: &mut Vec<serde_json::Value>,
) -> Result<(), Failure> {
    let warehouses = options.warehouses;
    let place = place.with_database(match place.engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "tpcc",
    });
    ours::load(&place, &["tpcc", "--warehouses", &warehouses.to_string()])?;
    let peer = go_tpc::GoTpc::prepare(&place, warehouses)?;
    for (mode, arguments) in
        [("procedures", &["tpcc"][..]), ("statements", &["tpcc", "--statements"])]
    {
        let comparison = Comparison {
            title: format!("go-tpc beside tpcc by {mode} on {}", place.engine),
            same: format!(
                "{warehouses} warehouses each in a database of its own, the standard mix, no think times, users and seconds; \
                 percentiles are those of New-Order; not the same: go-tpc sends statements and draws a warehouse per \
                 transaction, ours sends {mode} and has a home warehouse per user"
            ),
            ours: &Ours::new(arguments),
            peer: &peer,
        };
        done.push(comparison.carry_out(&options.conditions, &place)?);
    }
    Ok(())
}

/// Whether a program of this name is on PATH.
fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options {
        conditions: Conditions { seconds: 10, users: 8 },
        tables: 4,
        table_size: 100_000,
        warehouses: 4,
        scripts: vec![Script::ReadWrite, Script::PointSelect],
        json: None,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--seconds" => options.conditions.seconds = value.parse()?,
            "--users" => options.conditions.users = value.parse()?,
            "--tables" => options.tables = value.parse()?,
            "--table-size" => options.table_size = value.parse()?,
            "--warehouses" => options.warehouses = value.parse()?,
            "--scripts" => {
                options.scripts = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--json" => options.json = Some(value),
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(options)
}
