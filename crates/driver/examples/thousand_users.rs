//! A thousand virtual users with a real PostgreSQL: memory of the driver, and latency from the
//! intended start.
//!
//! ```text
//! thousand_users --url postgres://user@host/database [--users 1000] [--seconds 30] [--key-think 0.01]
//! ```
//!
//! The database holds Underlay's population (`driver_cost --load` makes one) and allows that many connections. One
//! JSON object goes to stdout.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use underlay_database::Target;
use underlay_database::tpcc::{Mode, TpccConnector, describe};
use underlay_driver::{DriveSpec, DriveTick, Driver, Pacing, Saturation};
use underlay_workload::tpcc::{Parameters, TransactionType};

type Failure = Box<dyn std::error::Error>;

struct Options {
    target: Target,
    users: u32,
    seconds: u64,
    key_think: f64,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let parameters =
        runtime.block_on(async { Ok::<_, Failure>(describe(&options.target).await?) })?.parameters;
    println!("{:#}", drive(&options, parameters)?);
    Ok(())
}

fn drive(options: &Options, parameters: Parameters) -> Result<Value, Failure> {
    let spec = DriveSpec {
        pacing: Pacing::Closed { key_think: options.key_think },
        ..DriveSpec::new(parameters.seed, options.users)
    };
    let connector = TpccConnector::new(options.target.clone(), parameters, Mode::Procedures);
    let driver = Driver::start(spec, connector, Instant::now())?;
    driver.set_users(options.users);
    let began = Instant::now();
    while driver.tick().users.ready < options.users {
        if began.elapsed() > Duration::from_secs(60) {
            let samples = driver.stop().totals.samples;
            return Err(format!("not all users could connect within 60 s: {samples:?}").into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let connected = began.elapsed();
    std::thread::sleep(Duration::from_secs(options.seconds));
    let tick = driver.tick();
    driver.stop();
    Ok(report(options, connected, &tick))
}

fn report(options: &Options, connected: Duration, tick: &DriveTick) -> Value {
    let saturation = Saturation::of(tick);
    let order = tick.of(TransactionType::NewOrder);
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    json!({
        "users": options.users,
        "sessions": tick.users.sessions,
        "seconds_to_connect": connected.as_secs_f64(),
        "memory_mb": tick.memory.0 as f64 / 1e6,
        "nopm": tick.headline_rate(),
        "new_order_response_ms": {
            "p50": ms(order.response.quantile(0.5)), "p99": ms(order.response.quantile(0.99)),
        },
        "new_order_service_ms": {
            "p50": ms(order.service.quantile(0.5)), "p99": ms(order.service.quantile(0.99)),
        },
        "dispatch_lag_p99_ms": ms(Some(saturation.lag_p99.0)),
        "busiest_thread_cpu_share": saturation.cpu_share,
        "errors": tick.errors(),
    })
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let (mut url, mut users, mut seconds, mut key_think) = (None, 1_000, 30, 0.01);
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--url" => url = Some(Target::from_url(&value)?),
            "--users" => users = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--key-think" => key_think = value.parse()?,
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(Options { target: url.ok_or("--url is needed")?, users, seconds, key_think })
}
