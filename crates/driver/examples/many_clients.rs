//! Many terminals with keying and think times over few connections: how late the driver is, and what a
//! terminal costs.
//!
//! ```text
//! many_clients [--url postgres://user@host/database] [--clients 15000] [--connections 32] [--key-think 1]
//!              [--seconds 30] [--warm-up 10] [--service-ms 1]
//! ```
//!
//! Without a URL a stand-in answers after the service time: the generator with nothing in its way. With one, the
//! database holds Underlay's population of TPC-C (`driver_cost --load` makes one). Terminals begin spread over
//! one mean cycle of the workload, so the warm-up may be shorter than that only at the price of a lower rate.
//!
//! One JSON object goes to stdout. The promise is a p99 of the dispatch lag below 5 ms with 15,000 clients on two
//! processors, as long as neither the server nor a thread of the driver is saturated.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use underlay_core::{Nanos, RootSeed};
use underlay_database::session::{Commits, Connector, Session};
use underlay_database::tpcc::{Mode, TpccConnector, describe};
use underlay_database::{SessionError, Target};
use underlay_driver::{DriveSpec, DriveTick, Driver, Pacing, Saturation};
use underlay_workload::tpcc::{Entropy, Outcome, Parameters, Tpcc, Transaction};
use underlay_workload::transactional::{RunAccounting, Workload};

type Failure = Box<dyn std::error::Error>;

/// The promised p99 of the dispatch lag.
const LAG_P99_MAX: Nanos = Nanos::from_millis(5);

struct Options {
    target: Option<Target>,
    clients: u32,
    connections: u32,
    key_think: f64,
    seconds: u64,
    warm_up_seconds: u64,
    service: Duration,
}

/// Answers after a time.
#[derive(Clone)]
struct StandIn {
    workload: Tpcc,
    service: Duration,
}

impl Connector for StandIn {
    type Workload = Tpcc;
    type Session = StandIn;

    fn workload(&self) -> &Tpcc {
        &self.workload
    }

    fn commits(&self, _: usize) -> Commits {
        Commits::Automatically(1)
    }

    fn limit_statements(&mut self, _: Duration) {}

    async fn connect(&self) -> Result<StandIn, SessionError> {
        Ok(self.clone())
    }
}

impl Session for StandIn {
    type Workload = Tpcc;

    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        tokio::time::sleep(self.service).await;
        Ok(Tpcc::imagined(transaction))
    }
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let result = match &options.target {
        None => {
            // Ten terminals per warehouse, as the workload has it.
            let parameters =
                Parameters::new(options.clients.div_ceil(10), RootSeed(1), Entropy::FULL)?;
            let workload = Tpcc::new(parameters);
            drive(&options, StandIn { workload, service: options.service })?
        }
        Some(target) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let parameters =
                runtime.block_on(async { Ok::<_, Failure>(describe(target).await?) })?.parameters;
            drive(&options, TpccConnector::new(target.clone(), parameters, Mode::Procedures))?
        }
    };
    println!("{result:#}");
    Ok(())
}

fn drive<C, B>(options: &Options, connector: C) -> Result<Value, Failure>
where
    C: Connector,
    C::Workload: Workload<Accounting = B>,
    B: RunAccounting,
{
    let spec = DriveSpec {
        pacing: Pacing::Closed { key_think: options.key_think },
        connections: Some(options.connections),
        ..DriveSpec::new(RootSeed(1), options.clients)
    };
    let memory_before = resident_bytes()?;
    let driver = Driver::start(spec, connector, Instant::now())?;
    driver.set_users(options.clients);
    std::thread::sleep(Duration::from_secs(options.warm_up_seconds));
    let cpu_before = driver.tick().cpu_ns;
    let mut window = DriveTick::default();
    for _ in 0..options.seconds {
        std::thread::sleep(Duration::from_secs(1));
        let tick = driver.tick();
        if window.types.is_empty() {
            window.begin = tick.begin;
        }
        window.append(&tick);
    }
    driver.stop();
    Ok(report(options, memory_before, cpu_before, &window))
}

fn report(options: &Options, memory_before: u64, cpu_before: u64, window: &DriveTick) -> Value {
    let saturation = Saturation::of(window);
    let completed: u64 = window.types.iter().map(|kind| kind.completed()).sum();
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let mut pool_wait = underlay_core::Histogram::default();
    window.types.iter().for_each(|kind| pool_wait.merge(&kind.pool_wait));
    let lag = |q| ms(window.dispatch_lag.quantile(q));
    json!({
        "clients": options.clients,
        "connections": options.connections,
        "sessions": window.users.sessions,
        "key_think": options.key_think,
        "transactions_per_second": completed as f64 / window.length().as_secs_f64(),
        "errors": window.errors(),
        "dispatch_lag_ms": { "p50": lag(0.5), "p99": lag(0.99), "p99.9": lag(0.999), "max": lag(1.0) },
        "dispatch_lag_p99_below_5_ms": saturation.lag_p99 < LAG_P99_MAX,
        "response_ms": {
            "p50": ms(window.headline_response().quantile(0.5)),
            "p99": ms(window.headline_response().quantile(0.99)),
        },
        "pool_waits": pool_wait.count(),
        "busiest_thread_cpu_share": saturation.cpu_share,
        "busiest_thread_awake_share": saturation.awake_share,
        "generator": format!("{:?}", saturation.verdict),
        "cpu_us_per_transaction":
            (window.cpu_ns - cpu_before) as f64 / 1e3 / completed.max(1) as f64,
        "bytes_per_client":
            window.memory.0.saturating_sub(memory_before) as f64 / f64::from(options.clients),
    })
}

/// Memory of this process now.
fn resident_bytes() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split_whitespace().nth(1).ok_or("cut")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options {
        target: None,
        clients: 15_000,
        connections: 32,
        key_think: 1.0,
        seconds: 30,
        warm_up_seconds: 10,
        service: Duration::from_millis(1),
    };
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--url" => options.target = Some(Target::from_url(&value)?),
            "--clients" => options.clients = value.parse()?,
            "--connections" => options.connections = value.parse()?,
            "--key-think" => options.key_think = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--warm-up" => options.warm_up_seconds = value.parse()?,
            "--service-ms" => options.service = Duration::from_millis(value.parse()?),
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(options)
}
