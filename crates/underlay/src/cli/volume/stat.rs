//! `underlay volume stat`: performance of a running datastore's volumes.

use super::data_directory::{running, stop};
use super::show;
use super::stat_cluster::{ClusterView, happened};
use crate::output;
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use underlay_core::{Bytes, Nanos};
use underlay_datastore::persistent::{
    BackendLatencyStatus, Latency, OperationStatus, Status, TimingStatus, VolumeStatus,
};

/// Arguments of `underlay volume stat`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Only this volume.
    name: Option<String>,
    /// Interval of rates and latencies; `0s` = only the counters since the start.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    interval: Nanos,
    /// Number of intervals.
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
    /// A supervisor that an older program started does not tell.
    timing: Option<TimingStatus>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if arguments.count == 0 {
        return Err(Stop::bad_input("--count must be at least 1")
            .with_hint("for the counters since the start use --interval 0s"));
    }
    if arguments.count > 1 && arguments.interval == Nanos::ZERO {
        return Err(Stop::bad_input(
            "--interval 0s shows the counters since the start, so --count has no effect",
        )
        .with_hint("omit --count, or use an interval, such as --interval 1s"));
    }
    let connection = running(&arguments.directory)?;
    let ask = || connection.status().map_err(|error| stop(&error));
    let mut before = ask()?;
    if let Some(name) = &arguments.name
        && !before.volumes.iter().any(|volume| volume.name == *name)
    {
        return Err(Stop::bad_input(format!("there is no volume `{name}` in this datastore")));
    }
    if arguments.interval == Nanos::ZERO {
        return print_totals(&before, connection.timing_since_start().ok().as_ref(), arguments);
    }
    // Discard what was recorded before this interval.
    connection.latencies().map_err(|error| stop(&error))?;
    connection.backend_latencies().map_err(|error| stop(&error))?;
    let _ = connection.timing();
    for _ in 0..arguments.count {
        let begin = Instant::now();
        thread::sleep(Duration::from_nanos(arguments.interval.0));
        let latencies = connection.latencies().map_err(|error| stop(&error))?;
        let backend = connection.backend_latencies().map_err(|error| stop(&error))?;
        let timing = connection.timing().ok();
        let now = ask()?;
        let seconds = begin.elapsed().as_secs_f64();
        let observed = Observed { seconds, before, now, latencies, backend, timing };
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

/// The counters since the start.
fn print_totals(
    status: &Status,
    timing: Option<&TimingStatus>,
    arguments: &Arguments,
) -> Result<(), Stop> {
    if arguments.json {
        let mut status = json!(status);
        status["evidence"] = json!("emulated");
        status["timing"] = json!(timing);
        return show::json(&status);
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
        if volume.errors > 0 {
            outln!("  {:8}{:>12}", "errors", volume.errors);
        }
    }
    outln!("{LATENCIES_ARE}");
    outln!("{}", times("since the start", timing));
    print_cluster(status, None, &[], arguments);
    print_host(status);
    Ok(())
}

/// Hosts, disk groups, devices and the rest of a cluster, and what happened lately; nothing when only one volume was asked for.
fn print_cluster(
    status: &Status,
    before: Option<(&Status, f64)>,
    latencies: &[BackendLatencyStatus],
    arguments: &Arguments,
) {
    if arguments.name.is_some() {
        return;
    }
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ns = Nanos::from(since_1970).0;
    if status.cluster.is_empty() {
        happened(&status.notices, unix_ns).iter().for_each(|line| outln!("{line}"));
        return;
    }
    let view = ClusterView {
        devices: &status.devices,
        now: &status.cluster,
        before: before.map(|(before, seconds)| (&before.cluster, seconds)),
        latencies,
        notices: &status.notices,
        unix_ns,
    };
    outln!("{}", view.text());
}

fn mean(counted: &OperationStatus) -> Nanos {
    Nanos(counted.latency_ns.checked_div(counted.ios).unwrap_or(0))
}

fn print(observed: &Observed, arguments: &Arguments) -> Result<(), Stop> {
    if arguments.json {
        return show::json(&json!({
            "evidence": "emulated",
            "timing": observed.timing,
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
    for volume in wanted(&observed.now, arguments).filter(|volume| volume.errors > 0) {
        let earlier = observed.before.volumes.iter().find(|earlier| earlier.name == volume.name);
        let since = volume.errors.saturating_sub(earlier.map_or(0, |earlier| earlier.errors));
        outln!(
            "volume {}: {since} requests ended with an I/O error, {} since the start",
            volume.name,
            volume.errors
        );
    }
    let Observed { seconds, before, now, backend, timing, .. } = observed;
    outln!("{LATENCIES_ARE}");
    outln!("{}", times("", timing.as_ref()));
    if let Some(line) = timing.as_ref().and_then(block_layer) {
        outln!("{line}");
    }
    print_cluster(now, Some((before, *seconds)), backend, arguments);
    print_host(now);
    Ok(())
}

/// Meaning of the latencies shown.
const LATENCIES_ARE: &str = "latencies: emulated (modelled time plus the server's lateness); programs on a busy host wait \
                             longer";

/// Whether emulated timing was valid over a span, in the words of a study's report.
fn times(span: &str, timing: Option<&TimingStatus>) -> String {
    let named = if span.is_empty() { "timing".to_string() } else { format!("timing {span}") };
    let Some(timing) = timing else {
        return format!(
            "{named}: not reported by this datastore; stop and start it with this version"
        );
    };
    let verdict = match (&timing.reason, timing.lateness_p99_ns, timing.modelled_p50_ns) {
        _ if timing.valid && timing.delayed == 0 && timing.host_limited_share > 0.0 => {
            "not valid: this host was slower than the modelled device for every request".to_string()
        }
        (Some(reason), ..) => format!("not timing-valid: {reason}"),
        (None, Some(late), Some(modelled)) => format!(
            "timing-valid: lateness p99 {}, modelled latency p50 {}",
            Nanos(late),
            Nanos(modelled)
        ),
        (None, ..) => "no request had a modelled time".to_string(),
    };
    let limited = match timing.host_limited_share {
        share if share > 0.0 => format!(
            "; host-limited: {:.1} % of requests were completed without delay, because this host's own path takes longer \
             than the modelled device",
            100.0 * share
        ),
        _ => String::new(),
    };
    format!("{named}: {verdict}{limited}")
}

/// Latency seen by programs, from a request's entry into the kernel's queue: the server sees a request only later.
fn block_layer(timing: &TimingStatus) -> Option<String> {
    let (block, modelled) = (timing.block_mean_ns?, timing.modelled_mean_ns?);
    Some(format!(
        "block devices: mean latency of reads and writes from the kernel's queue {}, modelled {}",
        Nanos(block),
        Nanos(modelled)
    ))
}

/// Cost of the emulation on this host.
fn print_host(status: &Status) {
    let all = status.delayed + status.host_limited;
    let limited = if all == 0 { 0.0 } else { 100.0 * status.host_limited as f64 / all as f64 };
    outln!(
        "host: slower than the modelled device for {limited:.1} % of requests since the start; {} of CPU, {} of memory, \
         {} errors of its own storage",
        Nanos(status.cpu_ns),
        Bytes(status.memory_bytes),
        status.errors,
    );
}

#[cfg(test)]
mod tests {
    use super::{block_layer, times};
    use underlay_datastore::persistent::TimingStatus;

    fn kept() -> TimingStatus {
        TimingStatus {
            valid: true,
            reason: None,
            delayed: 900,
            lateness_p99_ns: Some(4_000),
            modelled_p50_ns: Some(90_000),
            host_limited_share: 0.0,
            block_mean_ns: None,
            modelled_mean_ns: None,
        }
    }

    #[test]
    fn what_the_kernel_saw_stands_beside_the_model() {
        assert_eq!(block_layer(&kept()), None);
        let seen = TimingStatus {
            block_mean_ns: Some(1_512_000),
            modelled_mean_ns: Some(230_000),
            ..kept()
        };
        let line = block_layer(&seen).unwrap();
        assert!(line.contains("kernel's queue 1.51 ms"), "{line}");
        assert!(line.ends_with("modelled 230 us"), "{line}");
    }

    #[test]
    fn the_verdict_on_times_uses_the_words_of_reports() {
        let text = times("", Some(&kept()));
        assert!(text.starts_with("timing: timing-valid: lateness p99 4 us"), "{text}");
        assert!(!text.contains("host-limited"), "{text}");
        let text = times("since the start", Some(&kept()));
        assert!(text.starts_with("timing since the start: timing-valid: lateness p99"), "{text}");
        assert!(times("", None).starts_with("timing: not reported"), "{text}");
        let reason = Some("the host was too busy".to_string());
        let late = TimingStatus { valid: false, reason, host_limited_share: 0.912, ..kept() };
        let text = times("", Some(&late));
        assert!(text.starts_with("timing: not timing-valid: the host was too busy"), "{text}");
        assert!(
            text.contains("host-limited: 91.2 % of requests were completed without delay"),
            "{text}"
        );
        let none =
            TimingStatus { delayed: 0, lateness_p99_ns: None, modelled_p50_ns: None, ..kept() };
        assert_eq!(times("", Some(&none)), "timing: no request had a modelled time");
        let text = times("", Some(&TimingStatus { host_limited_share: 1.0, ..none }));
        assert!(text.starts_with("timing: not valid"), "{text}");
    }
}
