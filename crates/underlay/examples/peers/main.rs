//! Peers side by side: Underlay and the load generators that are found on this host, on one server, with equal data
//! size, users and time, in turn (A B B A).
//!
//! ```text
//! with_server [--engine mariadb] -- peers [--seconds 10] [--users 8] [--tables 4] [--table-size 100000]
//!     [--warehouses 4] [--scripts read_write,point_select] [--only sysbench,pgbench,go-tpc,hammerdb,benchbase]
//!     [--json FILE]
//! ```
//!
//! The server is that of `BENCH_URL` and its parts, as the example `with_server` names them. Peers that are not
//! found (on PATH, `HAMMERDB_HOME`, `BENCHBASE_HOME`) are named and left out. For each run: throughput,
//! percentiles, CPU time of the generator's process tree per transaction or order, violated consistency checks; for
//! each generator once, with one user: round trips, counted on the wire; how long each took to load. What is and
//! is not the same in a pair is printed above it.
//!
//! What is deliberately not here: blocks (the example `io_cost` compares with fio), and verdicts: a pair of
//! generators on one busy host says which costs more, not which database is better.

mod benchbase;
mod benchbase_output;
mod child;
mod compare;
mod go_tpc;
mod hammerdb;
mod hammerdb_output;
mod ours;
mod pgbench;
mod place;
mod population;
mod run;
#[cfg(test)]
mod stand;
mod sysbench;
mod warehouses;
mod wire;

use std::path::Path;

use serde_json::json;
use underlay_database::Engine;
use underlay_workload::sysbench::Script;

use compare::{Comparison, Conditions};
use ours::Ours;
use place::Place;
use run::Unit;

/// Why a comparison could not be made.
pub type Failure = Box<dyn std::error::Error>;

/// What the command line says.
pub struct Options {
    conditions: Conditions,
    tables: u32,
    table_size: u32,
    warehouses: u32,
    scripts: Vec<Script>,
    /// The peers to run beside; all where it is empty.
    only: Vec<String>,
    json: Option<String>,
}

impl Options {
    fn wants(&self, peer: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == peer)
    }
}

/// What has been done, and what could not be.
#[derive(Default)]
pub struct Findings {
    comparisons: Vec<serde_json::Value>,
    /// Why a peer was left out.
    skipped: Vec<String>,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let place = Place::from_environment()?;
    let mut findings = Findings::default();
    on_sysbenchs_tables(&options, &place, &mut findings)?;
    warehouses::compare(&options, &place, &mut findings)?;
    println!();
    for reason in &findings.skipped {
        println!("skip: {reason}");
    }
    println!("{} comparisons, {} skipped", findings.comparisons.len(), findings.skipped.len());
    if let Some(path) = &options.json {
        let result = json!({
            "engine": place.engine.as_str(),
            "load_average": std::fs::read_to_string("/proc/loadavg")?.trim(),
            "comparisons": findings.comparisons,
            "skipped": findings.skipped,
        });
        std::fs::write(path, format!("{result:#}\n"))?;
    }
    Ok(())
}

/// Sysbench and pgbench against the scripts that are compatible with sysbench's.
fn on_sysbenchs_tables(
    options: &Options,
    place: &Place,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let mut found = |name: &str, engine: bool| {
        let wanted = engine && options.wants(name);
        if wanted && !is_installed(name) {
            findings.skipped.push(format!("no {name} on PATH"));
        }
        wanted && is_installed(name)
    };
    let has_sysbench = found("sysbench", true);
    let has_pgbench = found("pgbench", place.engine == Engine::Postgresql);
    if !has_sysbench && !has_pgbench {
        return Ok(());
    }
    let place = place.with_database(match place.engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "sbtest",
    });
    let size = format!("--tables={} --table-size={}", options.tables, options.table_size);
    let size: Vec<&str> = size.split(' ').collect();
    ours::load(&place, &[&["sysbench"], &size[..]].concat(), processors()?)?;
    if has_sysbench {
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
                unit: Unit::Transaction,
                ours: &Ours::new(&["sysbench", "--script", script.as_str()], Unit::Transaction),
                peer: &sysbench::Sysbench {
                    script: *script,
                    tables: options.tables,
                    table_size: options.table_size,
                },
            };
            findings.comparisons.push(comparison.carry_out(&options.conditions, &place)?);
        }
    }
    if has_pgbench {
        let pgbench = pgbench::Pgbench::prepare(&place, options.tables * options.table_size)?;
        let comparison = Comparison {
            title: "pgbench -S and point_select on PostgreSQL".to_string(),
            same: format!(
                "one prepared SELECT of a column by primary key, uniform over about {} rows; not the same rows: pgbench \
                 returns an integer of one table, ours a text of 120 characters of {} tables",
                options.tables * options.table_size,
                options.tables
            ),
            unit: Unit::Transaction,
            ours: &Ours::new(&["sysbench", "--script", "point_select"], Unit::Transaction),
            peer: &pgbench,
        };
        findings.comparisons.push(comparison.carry_out(&options.conditions, &place)?);
    }
    Ok(())
}

/// How many connections load at the same time, ours and a peer's.
fn processors() -> Result<usize, Failure> {
    Ok(std::thread::available_parallelism()?.get())
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
        only: Vec::new(),
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
            "--only" => options.only = value.split(',').map(str::to_string).collect(),
            "--json" => options.json = Some(value),
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(options)
}
