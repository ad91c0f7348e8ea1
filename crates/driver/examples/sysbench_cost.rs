//! What the load generator costs per sysbench transaction, and how fast it loads, against Debian's sysbench on the
//! same server and, for the transactions, the same tables.
//!
//! ```text
//! sysbench_cost --url postgres://user:password@127.0.0.1:5432/database [--script read_write] [--tables 4]
//!               [--table-size 100000] [--users 8] [--seconds 20] [--load] [--prepare]
//! ```
//!
//! The URL may be of MariaDB (`mysql://`). `--load` makes the tables first. `--prepare`
//! measures loads instead of transactions: ours and `sysbench prepare` in turn, A B B A, each into an empty database with
//! as many connections as tables or processors allow, secondary keys included; ours also gathers statistics.
//!
//! Both run in turn, A B B A, on the same tables with uniform ids. Each is charged the CPU time of its process
//! and its committed transactions: Underlay within a measured window after a warm-up of 3 s, sysbench over its whole
//! life, whose start-up is a few milliseconds. Without sysbench on PATH the cost is measured alone.
//!
//! One JSON object goes to stdout, what is being done to stderr.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use underlay_core::{Nanos, RootSeed};
use underlay_database::sysbench::{SysbenchConnector, drop_tables, load};
use underlay_database::{Address, Engine, Target};
use underlay_driver::{DriveSpec, DriveTick, Driver};
use underlay_workload::sysbench::{Distribution, Parameters, Script};

type Failure = Box<dyn std::error::Error>;

const WARM_UP: Duration = Duration::from_secs(3);
/// Connections of a load, of either program.
const LOADERS: usize = 2;

struct Options {
    target: Target,
    parameters: Parameters,
    users: u32,
    seconds: u64,
    load: bool,
    prepare: bool,
}

/// What one run of one generator did and cost.
struct Cost {
    generator: &'static str,
    seconds: f64,
    transactions: u64,
    cpu: Duration,
    p95_ms: Option<f64>,
}

impl Cost {
    fn json(&self) -> Value {
        json!({
            "generator": self.generator,
            "transactions_per_second": self.transactions as f64 / self.seconds,
            "cpu_us_per_transaction": self.cpu.as_secs_f64() * 1e6 / self.transactions.max(1) as f64,
            "p95_ms": self.p95_ms,
        })
    }
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    if options.prepare {
        return compare_loads(&options);
    }
    if options.load {
        let report = load(&options.target, &options.parameters, LOADERS)?;
        eprintln!("loaded {} rows in {:.1} s", report.rows, report.duration().as_secs_f64());
    }
    let first = drive(&options)?;
    let Some(peer) = drive_sysbench(&options)? else {
        eprintln!("skip: no sysbench on PATH, the cost is measured alone");
        println!("{:#}", first.json());
        return Ok(());
    };
    let runs =
        [first, peer, drive_sysbench(&options)?.ok_or("sysbench went away")?, drive(&options)?];
    println!(
        "{:#}",
        json!({
            "script": options.parameters.script.as_str(),
            "users": options.users,
            "runs": runs.iter().map(Cost::json).collect::<Vec<_>>(),
            "cost_ratio": pooled(&runs, "underlay") / pooled(&runs, "sysbench"),
            "target": 1.0,
        })
    );
    Ok(())
}

/// CPU-seconds per transaction over all runs of a generator.
fn pooled(runs: &[Cost], generator: &str) -> f64 {
    let of = || runs.iter().filter(|run| run.generator == generator);
    let cpu: f64 = of().map(|run| run.cpu.as_secs_f64()).sum();
    cpu / of().map(|run| run.transactions).sum::<u64>().max(1) as f64
}

fn drive(options: &Options) -> Result<Cost, Failure> {
    eprintln!("underlay: {} users, {} s", options.users, options.seconds);
    let connector = SysbenchConnector::new(options.target.clone(), options.parameters);
    // Inputs differ from run to run, as sysbench's do.
    let inputs = RootSeed(u64::from(process_cpu().subsec_nanos()));
    let driver = Driver::start(DriveSpec::new(inputs, options.users), connector, Instant::now())?;
    driver.set_users(options.users);
    std::thread::sleep(WARM_UP);
    let before = process_cpu();
    let mut window = DriveTick { begin: driver.tick().end, ..DriveTick::default() };
    for _ in 0..options.seconds {
        std::thread::sleep(Duration::from_secs(1));
        window.append(&driver.tick());
    }
    let cpu = process_cpu() - before;
    driver.stop();
    Ok(Cost {
        generator: "underlay",
        seconds: window.length().as_secs_f64(),
        transactions: window.headline_count(),
        cpu,
        p95_ms: window.headline_response().quantile(0.95).map(|ns| ns as f64 / 1e6),
    })
}

/// Loads in turn, into an empty database each time.
fn compare_loads(options: &Options) -> Result<(), Failure> {
    let ours = || -> Result<f64, Failure> {
        let report = load(&options.target, &options.parameters, LOADERS)?;
        on_runtime(drop_tables(&options.target))??;
        eprintln!("underlay: loaded in {:.2} s", report.duration().as_secs_f64());
        Ok(report.duration().as_secs_f64())
    };
    let theirs = || -> Result<Option<f64>, Failure> {
        let began = Instant::now();
        let threads = format!("--threads={LOADERS}");
        let made = sysbench(options, &[threads.as_str(), "prepare"]);
        let duration = began.elapsed().as_secs_f64();
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            output => succeeded(output?)?,
        };
        succeeded(sysbench(options, &["cleanup"])?)?;
        eprintln!("sysbench: prepared in {duration:.2} s");
        Ok(Some(duration))
    };
    if options.target.engine == Engine::Mariadb {
        // Sysbench wants a database that is there, and a load that makes one also removes it.
        on_runtime(create_database(&options.target))??;
    }
    let first = ours()?;
    let Some(peer) = theirs()? else {
        eprintln!("skip: no sysbench on PATH, the load is measured alone");
        println!("{:#}", json!({ "load_s": [first] }));
        return Ok(());
    };
    let (theirs, ours) = ([peer, theirs()?.ok_or("sysbench went away")?], [first, ours()?]);
    println!(
        "{:#}",
        json!({
            "tables": options.parameters.tables,
            "table_size": options.parameters.table_size,
            "connections": LOADERS,
            "load_s": ours,
            "sysbench_prepare_s": theirs,
            "ratio": theirs.iter().sum::<f64>() / ours.iter().sum::<f64>(),
            "target": 3.0,
        })
    );
    Ok(())
}

fn on_runtime<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

async fn create_database(target: &Target) -> Result<(), Failure> {
    let mut conn = underlay_database::mariadb::connect(&target.with_database("")).await?;
    let name = database_of(target).replace('`', "``");
    Ok(conn.query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`")).await?)
}

/// Underlay's tables are in `sbtest` when a URL names no database.
fn database_of(target: &Target) -> &str {
    if target.database.is_empty() { "sbtest" } else { &target.database }
}

/// Runs sysbench with what says which server and tables, and `more`.
fn sysbench(options: &Options, more: &[&str]) -> std::io::Result<Output> {
    let (target, parameters) = (&options.target, &options.parameters);
    let Address::Tcp(host) = &target.address else {
        return Err(std::io::Error::other("sysbench needs TCP; give a host in --url"));
    };
    let driver = match target.engine {
        Engine::Postgresql => "pgsql",
        Engine::Mariadb => "mysql",
    };
    let password = target.password.as_ref().map_or("", |password| password.reveal());
    Command::new("sysbench")
        .arg(format!("oltp_{}", parameters.script))
        .arg(format!("--db-driver={driver}"))
        .arg("--rand-type=uniform")
        .arg(format!("--tables={}", parameters.tables))
        .arg(format!("--table-size={}", parameters.table_size))
        .arg(format!("--{driver}-host={host}"))
        .arg(format!("--{driver}-port={}", target.port))
        .arg(format!("--{driver}-user={}", target.user))
        .arg(format!("--{driver}-password={password}"))
        .arg(format!("--{driver}-db={}", database_of(target)))
        .args(more)
        .output()
}

fn succeeded(output: Output) -> Result<String, Failure> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("sysbench failed: {text}").into()) }
}

/// None where there is no sysbench.
fn drive_sysbench(options: &Options) -> Result<Option<Cost>, Failure> {
    eprintln!("sysbench: {} threads, {} s", options.users, options.seconds);
    let before = children_cpu()?;
    let (threads, time) =
        (format!("--threads={}", options.users), format!("--time={}", options.seconds));
    let output = sysbench(options, &[threads.as_str(), time.as_str(), "run"]);
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output?,
    };
    let text = succeeded(output)?;
    let number_after = |label: &str| -> Option<f64> {
        let rest = text.split_once(label)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
    };
    Ok(Some(Cost {
        generator: "sysbench",
        seconds: number_after("total time:").ok_or("no total time in sysbench's answer")?,
        transactions: number_after("transactions:").ok_or("no transactions in sysbench's answer")?
            as u64,
        cpu: children_cpu()? - before,
        p95_ms: number_after("95th percentile:"),
    }))
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// CPU time of all children that have ended: fields 16 and 17 of proc(5) stat.
fn children_cpu() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field, the program's name, may hold anything up to the last parenthesis.
    let fields = stat.rsplit_once(')').ok_or("no program name in /proc/self/stat")?.1;
    let mut ticks = fields.split_whitespace().skip(13).map(str::parse::<u64>);
    let (user, system) = (ticks.next().ok_or("cut")??, ticks.next().ok_or("cut")??);
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Nanos((user + system) * 1_000_000_000 / per_second).into())
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let (mut url, mut script, mut tables, mut table_size) = (None, Script::ReadWrite, 4, 100_000);
    let (mut users, mut seconds, mut load, mut prepare) = (8, 20, false, false);
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        if name == "--load" {
            load = true;
            continue;
        }
        if name == "--prepare" {
            prepare = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--url" => url = Some(Target::from_url(&value)?),
            "--script" => script = value.parse()?,
            "--tables" => tables = value.parse()?,
            "--table-size" => table_size = value.parse()?,
            "--users" => users = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    let parameters =
        Parameters::new(tables, table_size, RootSeed(1), Distribution::Uniform, script)?;
    Ok(Options { target: url.ok_or("--url is needed")?, parameters, users, seconds, load, prepare })
}
