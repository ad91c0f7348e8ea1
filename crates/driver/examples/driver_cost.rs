//! What the load generator costs: CPU-seconds per 10,000 new orders, alone or against go-tpc.
//!
//! ```text
//! driver_cost --url postgres://user@127.0.0.1:5432/underlay|mysql://... [--load WAREHOUSES] [--mode procedures|statements]
//!             [--users 8] [--seconds 30] [--warm-up 5] [--threads N]
//!             [--go-tpc PATH --go-tpc-database NAME --go-tpc-warehouses W]
//! ```
//!
//! The database of the URL holds Underlay's population, or gets one with `--load`. With `--go-tpc`, both run in
//! turn, A B B A, on the same server; go-tpc's own tables must be prepared in its database:
//! `go-tpc tpcc --warehouses W prepare -d postgres -U user -H host -P port -D NAME --conn-params sslmode=disable`,
//! or `-d mysql` without parameters of a connection for MariaDB and MySQL.
//!
//! Underlay is charged the CPU time of this whole process within the measured window and its committed
//! new orders. go-tpc is charged the CPU time of its process and the advance of the districts' order
//! numbers, which roll back with the orders; its start-up is part of both.
//!
//! One JSON object goes to stdout, what is being done to stderr.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use underlay_core::{Nanos, RootSeed};
use underlay_database::tpcc::{
    LoadOptions, Mode, TableNames, TpccConnector, describe, load, order_numbers,
};
use underlay_database::{Address, Engine, Target};
use underlay_driver::{DriveSpec, Driver, Saturation};
use underlay_workload::tpcc::{Entropy, Parameters, TransactionType};

type Failure = Box<dyn std::error::Error>;

struct Options {
    target: Target,
    load_warehouses: Option<u32>,
    mode: Mode,
    users: u32,
    seconds: u64,
    warm_up_seconds: u64,
    threads: Option<usize>,
    go_tpc: Option<GoTpc>,
}

struct GoTpc {
    program: String,
    database: String,
    warehouses: u32,
}

/// What one run of one generator did and cost.
struct Cost {
    generator: &'static str,
    seconds: f64,
    new_orders: u64,
    cpu_seconds: f64,
    details: Value,
}

impl Cost {
    fn per_10_000(&self) -> f64 {
        self.cpu_seconds / self.new_orders.max(1) as f64 * 10_000.0
    }

    fn json(&self) -> Value {
        json!({
            "generator": self.generator,
            "seconds": self.seconds,
            "new_orders": self.new_orders,
            "new_orders_per_minute": self.new_orders as f64 * 60.0 / self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "cpu_seconds_per_10000_new_orders": self.per_10_000(),
            "details": self.details,
        })
    }
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    if let Some(warehouses) = options.load_warehouses {
        load_population(&options.target, warehouses)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let parameters = runtime.block_on(describe(&options.target))?.parameters;
    let Some(go_tpc) = &options.go_tpc else {
        println!("{:#}", drive(&options, parameters)?.json());
        return Ok(());
    };
    let runs = [
        drive(&options, parameters)?,
        drive_go_tpc(&options, go_tpc, &runtime)?,
        drive_go_tpc(&options, go_tpc, &runtime)?,
        drive(&options, parameters)?,
    ];
    let ratio = pooled(&runs, "underlay") / pooled(&runs, "go-tpc");
    println!(
        "{:#}",
        json!({
            "engine": options.target.engine.as_str(),
            "mode": options.mode.as_str(),
            "users": options.users,
            "runs": runs.iter().map(Cost::json).collect::<Vec<_>>(),
            "cost_ratio": ratio,
            "target": match options.mode { Mode::Procedures => 0.08, Mode::Statements => 0.5 },
        })
    );
    Ok(())
}

/// CPU-seconds per 10,000 new orders over all runs of a generator.
fn pooled(runs: &[Cost], generator: &str) -> f64 {
    let of = || runs.iter().filter(|run| run.generator == generator);
    let cpu_seconds: f64 = of().map(|run| run.cpu_seconds).sum();
    let new_orders: u64 = of().map(|run| run.new_orders).sum();
    cpu_seconds / new_orders.max(1) as f64 * 10_000.0
}

fn drive(options: &Options, parameters: Parameters) -> Result<Cost, Failure> {
    eprintln!("underlay: {} users, {} s, {}", options.users, options.seconds, options.mode);
    let spec =
        DriveSpec { threads: options.threads, ..DriveSpec::new(parameters.seed, options.users) };
    let connector = TpccConnector::new(options.target.clone(), parameters, options.mode);
    let driver = Driver::start(spec, connector, Instant::now())?;
    driver.set_users(options.users);
    std::thread::sleep(Duration::from_secs(options.warm_up_seconds));
    driver.tick();
    let cpu_before = process_cpu();
    let mut window = None;
    // One tick per second, as in a study: merging them is part of the cost.
    for _ in 0..options.seconds {
        std::thread::sleep(Duration::from_secs(1));
        let tick = driver.tick();
        match &mut window {
            None => window = Some(tick),
            Some(window) => window.append(&tick),
        }
    }
    let cpu_seconds = (process_cpu() - cpu_before).as_secs_f64();
    let window = window.ok_or("--seconds must be at least 1")?;
    let summary = driver.stop();
    let saturation = Saturation::of(&window);
    let quantile =
        |kind: TransactionType, q| window.of(kind).response.quantile(q).map(|ns| ns as f64 / 1e6);
    let latencies: Vec<Value> = TransactionType::ALL
        .into_iter()
        .map(|kind| {
            json!({
                "type": kind.as_str(),
                "count": window.of(kind).completed(),
                "p50_ms": quantile(kind, 0.5),
                "p99_ms": quantile(kind, 0.99),
            })
        })
        .collect();
    Ok(Cost {
        generator: "underlay",
        seconds: window.length().as_secs_f64(),
        new_orders: window.of(TransactionType::NewOrder).committed,
        cpu_seconds,
        details: json!({
            "errors": window.errors(),
            "unknown": summary.commits_unknown,
            "busiest_thread_cpu_share": saturation.cpu_share,
            "dispatch_lag_p99_us": saturation.lag_p99.0 as f64 / 1e3,
            "memory_mib": window.memory.as_mib_f64(),
            "response": latencies,
        }),
    })
}

fn drive_go_tpc(options: &Options, go_tpc: &GoTpc, runtime: &Runtime) -> Result<Cost, Failure> {
    eprintln!("go-tpc: {} threads, {} s", options.users, options.seconds);
    let target = options.target.with_database(&go_tpc.database);
    let Address::Tcp(host) = &target.address else {
        return Err("go-tpc needs TCP; give a host in --url".into());
    };
    let tables = TableNames::mapped(str::to_string);
    let orders = || runtime.block_on(order_numbers(&target, &tables)).map(|numbers| numbers.sum());
    let driver: &[&str] = match target.engine {
        Engine::Postgresql => &["-d", "postgres", "--conn-params", "sslmode=disable"],
        Engine::Mariadb => &["-d", "mysql"],
    };
    let before = orders()?;
    let cpu_before = children_cpu()?;
    let began = Instant::now();
    let status = Command::new(&go_tpc.program)
        .args(["tpcc", "run"])
        .args(driver)
        .args(["--warehouses", &go_tpc.warehouses.to_string()])
        .args(["--threads", &options.users.to_string()])
        .args(["--time", &format!("{}s", options.seconds + options.warm_up_seconds)])
        .args(["-H", host, "-P", &target.port.to_string(), "-U", &target.user])
        .args(["-p", target.password.as_ref().map_or("none", |password| password.reveal())])
        .args(["-D", &target.database])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("{} failed: {status}", go_tpc.program).into());
    }
    Ok(Cost {
        generator: "go-tpc",
        seconds: began.elapsed().as_secs_f64(),
        new_orders: orders()? - before,
        cpu_seconds: (children_cpu()? - cpu_before).as_secs_f64(),
        details: Value::Null,
    })
}

fn load_population(target: &Target, warehouses: u32) -> Result<(), Failure> {
    let parameters = Parameters::new(warehouses, RootSeed(1), Entropy::FULL)?;
    let report = load(target, &parameters, &LoadOptions { parallel: 2, progress: &|_| {} })?;
    eprintln!("loaded {warehouses} warehouses in {:.1} s", report.duration().as_secs_f64());
    Ok(())
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
    let (mut url, mut load_warehouses, mut mode, mut users) = (None, None, Mode::Procedures, 8);
    let (mut seconds, mut warm_up_seconds, mut threads) = (30, 5, None);
    let (mut program, mut database, mut warehouses) = (None, "gotpc".to_string(), 10);
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--url" => url = Some(Target::from_url(&value)?),
            "--load" => load_warehouses = Some(value.parse()?),
            "--mode" => mode = value.parse()?,
            "--users" => users = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--warm-up" => warm_up_seconds = value.parse()?,
            "--threads" => threads = Some(value.parse()?),
            "--go-tpc" => program = Some(value),
            "--go-tpc-database" => database = value,
            "--go-tpc-warehouses" => warehouses = value.parse()?,
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(Options {
        target: url.ok_or("--url is needed")?,
        load_warehouses,
        mode,
        users,
        seconds,
        warm_up_seconds,
        threads,
        go_tpc: program.map(|program| GoTpc { program, database, warehouses }),
    })
}
