//! What sessions cost: processor time of the client and of the server's processes for the mix of transactions.
//!
//! On a database that is loaded already; users without think time, all on one thread. The client's time is that of this
//! process (user and system), the server's that of the sessions' own processes, if they are on this host. Neither
//! depends much on what else the host does, so that it can be measured on a busy one.
//!
//! ```text
//! cargo run --release -p underlay-database --example session_cost -- --url postgres://u@h/db --mode procedures
//! ```

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;
use underlay_database::Target;
use underlay_database::tpcc::{Mode, Session, describe};
use underlay_workload::tpcc::{Parameters, Terminal, Transaction, TransactionType};

type Failure = Box<dyn Error + Send + Sync>;

/// Tells the sessions' processes from others.
const APPLICATION_NAME: &str = "session-cost";

struct Options {
    target: Target,
    mode: Mode,
    users: u64,
    seconds: u64,
    /// Only this type of transaction.
    only: Option<TransactionType>,
}

/// What one user did.
#[derive(Clone, Copy, Default)]
struct Done {
    new_orders: u64,
    transactions: u64,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<(), Failure> {
    let client = options.target.connect().await?;
    let parameters = describe(&options.target).await?.parameters;
    let target = options.target.with_application_name(APPLICATION_NAME);
    let mut sessions = Vec::new();
    for _ in 0..options.users {
        sessions.push(Session::connect(&target, &parameters, options.mode).await?);
    }
    let rows = client
        .query("SELECT pid FROM pg_stat_activity WHERE application_name = $1", &[&APPLICATION_NAME])
        .await?;
    let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();

    // The first second plans the statements and fills caches.
    drive(&mut sessions, &parameters, options, Duration::from_secs(1)).await?;
    let (client_before, server_before) = (own_cpu(), cpu_of(&pids));
    let began = Instant::now();
    let limit = Duration::from_secs(options.seconds);
    let done = drive(&mut sessions, &parameters, options, limit).await?;
    let seconds = began.elapsed().as_secs_f64();
    let client_cpu = own_cpu() - client_before;
    let server_cpu = cpu_of(&pids).zip(server_before).map(|(after, before)| after - before);
    let per_10_000 = |cpu: f64| cpu / done.new_orders as f64 * 10_000.0;
    let us_per_transaction = |cpu: f64| cpu / done.transactions as f64 * 1e6;
    println!(
        "{:#}",
        json!({
            "mode": options.mode.as_str(),
            "users": options.users,
            "seconds": seconds,
            "transactions_per_second": done.transactions as f64 / seconds,
            "new_orders_per_minute": done.new_orders as f64 * 60.0 / seconds,
            "client_cpu_seconds_per_10000_new_orders": per_10_000(client_cpu),
            "client_cpu_us_per_transaction": us_per_transaction(client_cpu),
            "server_cpu_seconds_per_10000_new_orders": server_cpu.map(per_10_000),
            "server_cpu_us_per_transaction": server_cpu.map(us_per_transaction),
        })
    );
    Ok(())
}

/// Lets all users work until the time is over.
async fn drive(
    sessions: &mut [Session],
    parameters: &Parameters,
    options: &Options,
    limit: Duration,
) -> Result<Done, Failure> {
    let end = Instant::now() + limit;
    let users = sessions.iter_mut().zip(0..).map(|(session, user)| async move {
        let mut terminal = Terminal::new(parameters, user);
        let mut done = Done::default();
        while Instant::now() < end {
            let transaction = terminal.next();
            if options.only.is_some_and(|only| only != transaction.transaction_type()) {
                continue;
            }
            let outcome = session.run(&transaction).await?;
            done.transactions += 1;
            if matches!(transaction, Transaction::NewOrder(_)) && outcome.committed {
                done.new_orders += 1;
            }
        }
        Ok::<Done, Failure>(done)
    });
    let add = |sum: Done, one: &Done| Done {
        new_orders: sum.new_orders + one.new_orders,
        transactions: sum.transactions + one.transactions,
    };
    Ok(try_join_all(users).await?.iter().fold(Done::default(), add))
}

/// Processor time of this process, user and system, in seconds.
fn own_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processor time of other processes in seconds; `None` if they are not on this host.
fn cpu_of(pids: &[i32]) -> Option<f64> {
    let nanos = |pid: &i32| -> Option<f64> {
        // proc(5): time on the processor in nanoseconds, time waiting for one, slices.
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    };
    pids.iter().map(nanos).sum::<Option<f64>>().map(|sum| sum / 1e9)
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let (mut url, mut mode, mut users, mut seconds) = (None, Mode::Procedures, 4, 10);
    let mut only = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--url" => url = Some(Target::from_url(&value)?),
            "--mode" => mode = value.parse()?,
            "--users" => users = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--only" => {
                let kind = TransactionType::ALL.into_iter().find(|kind| kind.as_str() == value);
                only = Some(kind.ok_or_else(|| format!("{value} is not a type of transaction"))?);
            }
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    Ok(Options { target: url.ok_or("--url is needed")?, mode, users, seconds, only })
}
