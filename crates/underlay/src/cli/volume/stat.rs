//! `underlay volume stat`: what the volumes of a running datastore do.

use super::stat_cluster::ClusterView;
use super::{running, show, stop};
use crate::output;
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use underlay_core::{Bytes, Nanos};
use underlay_datastore::persistent::{
    BackendLatencyStatus, Latency, OperationStatus, Status, VolumeStatus,
};

/// Arguments of `underlay volume stat`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Only this volume.
    name: Option<String>,
    /// Over how long rates and latencies are taken; `0s` = only what was counted since the start.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    interval: Nanos,
    /// How many intervals.
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: u32,
    /// Print as JSON, one document per interval.
    #[arg(long)]
    json: bool,
}

/// What happened in one interval.
struct Observed {
    seconds: f64,
    before: Status,
    now: Status,
    latencies: Vec<Latency>,
    backend: Vec<BackendLatencyStatus>,
}

/// Carries out the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let connection = running(&arguments.directory)?;
    let ask = || connection.status().map_err(|error| stop(&error));
    let mut before = ask()?;
    if let Some(name) = &arguments.name
        && !before.volumes.iter().any(|volume| volume.name == *name)
    {
        return Err(Stop::bad_input(format!("there is no volume `{name}` in this datastore")));
    }
    if arguments.interval == Nanos::ZERO {
        return print_totals(&before, arguments);
    }
    // What was recorded before this interval is nobody's.
    connection.latencies().map_err(|error| stop(&error))?;
    connection.backend_latencies().map_err(|error| stop(&error))?;
    for _ in 0..arguments.count {
        let begin = Instant::now();
        thread::sleep(Duration::from_nanos(arguments.interval.0));
        let latencies = connection.latencies().map_err(|error| stop(&error))?;
        let backend = connection.backend_latencies().map_err(|error| stop(&error))?;
        let now = ask()?;
        let seconds = begin.elapsed().as_secs_f64();
        let observed = Observed { seconds, before, now, latencies, backend };
        print(&observed, arguments)?;
        if output::is_lost() {
            break;
        }
        before = observed.now;
    }
    Ok(())
}

fn wanted<'a>(
    status: &'a Status,
    arguments: &'a Arguments,
) -> impl Iterator<Item = &'a VolumeStatus> {
    status
        .volumes
        .iter()
        .filter(|volume| arguments.name.as_ref().is_none_or(|name| *name == volume.name))
}

fn print_totals(status: &Status, arguments: &Arguments) -> Result<(), Stop> {
    if arguments.json {
        return show::json(status);
    }
    for volume in wanted(status, arguments) {
        outln!("{}", volume.name);
        for counted in volume.operations.iter().filter(|counted| counted.ios > 0) {
            outln!(
                "  {:8}{:>12} I/Os  {:>10}  mean {}",
                counted.operation,
                counted.ios,
                Bytes(counted.bytes).to_string(),
                mean(counted),
            );
        }
    }
    print_cluster(status, None, &[], arguments);
    print_host(status);
    Ok(())
}

/// Hosts, disk groups, devices and the rest of a cluster; nothing when only one volume was asked for.
fn print_cluster(
    status: &Status,
    before: Option<(&Status, f64)>,
    latencies: &[BackendLatencyStatus],
    arguments: &Arguments,
) {
    if status.cluster.is_empty() || arguments.name.is_some() {
        return;
    }
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let view = ClusterView {
        now: &status.cluster,
        before: before.map(|(before, seconds)| (&before.cluster, seconds)),
        latencies,
        notices: &status.notices,
        unix_ns: Nanos::from(since_1970).0,
    };
    outln!("{}", view.text());
}

fn mean(counted: &OperationStatus) -> Nanos {
    Nanos(counted.latency_ns.checked_div(counted.ios).unwrap_or(0))
}

fn print(observed: &Observed, arguments: &Arguments) -> Result<(), Stop> {
    if arguments.json {
        return show::json(&json!({
            "interval-seconds": observed.seconds,
            "latencies": observed.latencies,
            "backend-latencies": observed.backend,
            "before": observed.before,
            "now": observed.now,
        }));
    }
    outln!(
        "{:16}{:10}{:>10}{:>10}{:>12}{:>12}{:>12}{:>6}",
        "volume",
        "operation",
        "IOPS",
        "MB/s",
        "p50",
        "p99",
        "longest",
        "open"
    );
    for volume in wanted(&observed.now, arguments) {
        let earlier = observed.before.volumes.iter().find(|earlier| earlier.name == volume.name);
        for counted in &volume.operations {
            let of = |volume: &VolumeStatus| {
                volume.operations.iter().find(|it| it.operation == counted.operation).cloned()
            };
            let earlier = earlier.and_then(of);
            let since = |now: u64, of: fn(&OperationStatus) -> u64| {
                (now - earlier.as_ref().map_or(0, of)) as f64 / observed.seconds
            };
            let latency = observed.latencies.iter().find(|latency| {
                latency.volume == volume.name && latency.operation == counted.operation
            });
            let Some(latency) = latency else { continue };
            outln!(
                "{:16}{:10}{:>10.0}{:>10.1}{:>12}{:>12}{:>12}{:>6}",
                volume.name,
                counted.operation,
                since(counted.ios, |it| it.ios),
                since(counted.bytes, |it| it.bytes) / 1e6,
                Nanos(latency.p50_ns).to_string(),
                Nanos(latency.p99_ns).to_string(),
                Nanos(latency.max_ns).to_string(),
                volume.in_flight,
            );
        }
    }
    let Observed { seconds, before, now, backend, .. } = observed;
    print_cluster(now, Some((before, *seconds)), backend, arguments);
    print_host(now);
    Ok(())
}

/// What emulating cost this host.
fn print_host(status: &Status) {
    let all = status.delayed + status.host_limited;
    let limited = if all == 0 { 0.0 } else { 100.0 * status.host_limited as f64 / all as f64 };
    outln!(
        "host: {limited:.1} % of requests faster than it, {} of CPU, {} of memory, {} errors",
        Nanos(status.cpu_ns),
        Bytes(status.memory_bytes),
        status.errors,
    );
}
