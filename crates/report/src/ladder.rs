//! The rungs of the designs: every metric at every number of users, over all counted runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{DriverLoad, Estimate, Peak, Rung, VolumeRow, Window};
use crate::busy_parts;
use crate::digest::Digest;
use crate::estimates::{by_run, over_runs};
use crate::latencies;
use crate::metrics::{LATENCY_AT_PEAK, RATE_AT_LIMIT, RESTORED};
use crate::observed::{WindowFacts, merged, of_server};
use crate::verdict::steady;
use crate::working_set;
use crate::workload_view::WorkloadView;

/// A driver thread busy for this share, or later than this, was in the way.
const SATURATED: f64 = 0.9;

/// All windows of one design at one number of users, in the order of execution.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) design: usize,
    pub(crate) users: u32,
    pub(crate) windows: Vec<&'a WindowFacts>,
}

/// The windows by design and users, ascending.
pub(crate) fn groups(windows: &[WindowFacts]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(usize, u32), Vec<&WindowFacts>> = BTreeMap::new();
    for window in windows {
        groups.entry((window.design, window.users)).or_default().push(window);
    }
    groups.into_iter().map(|((design, users), windows)| Group { design, users, windows }).collect()
}

/// d ln(throughput) / d ln(users) around each group: to the former rung, and to the next one where there is no
/// former one. `None` for a ladder of one rung, and between rungs whose users touch different parts of the database:
/// what then changes is not the load alone.
pub(crate) fn slopes(groups: &[Group<'_>], rungs: &[Rung]) -> Vec<Option<f64>> {
    debug_assert_eq!(groups.len(), rungs.len(), "one rung per group");
    let touched = |rung: &Rung| rung.working_set.as_ref().map(|set| set.share);
    let throughput = |group: &Group<'_>| {
        let per_second: f64 =
            group.windows.iter().map(|window| window.load.completed_per_second).sum();
        per_second / group.windows.len() as f64
    };
    let slope = |low: &Group<'_>, high: &Group<'_>| {
        let (x_low, x_high) = (throughput(low), throughput(high));
        (low.design == high.design && x_low > 0.0 && x_high > 0.0)
            .then(|| (x_high / x_low).ln() / (f64::from(high.users) / f64::from(low.users)).ln())
    };
    (0..groups.len())
        .map(|i| {
            let comparable = |low: usize, high: usize| {
                let same = touched(rungs.get(low)?) == touched(rungs.get(high)?);
                let slope = slope(&groups[low], groups.get(high)?)?;
                same.then_some(slope)
            };
            let has_former = i > 0 && groups[i - 1].design == groups[i].design;
            if has_former { comparable(i - 1, i) } else { comparable(i, i + 1) }
        })
        .collect()
}

/// One rung.
pub(crate) fn rung(group: &Group<'_>, digest: &Digest, workload: &WorkloadView) -> Rung {
    let seed = digest.manifest.seed;
    let windows = &group.windows;
    let names: BTreeSet<String> =
        windows.iter().flat_map(|window| metrics(window).into_keys()).collect();
    let metrics = names.into_iter().map(|name| (name.clone(), metric(windows, &name))).collect();
    let volumes: BTreeSet<&String> =
        windows.iter().flat_map(|window| window.volumes.keys()).collect();
    Rung {
        design: group.design,
        users: group.users,
        metrics,
        latencies: latencies::rows(windows, workload, seed),
        volumes: volumes.into_iter().filter_map(|volume| volume_row(windows, volume)).collect(),
        working_set: working_set::of(digest, group.design, group.users),
        busy_parts: busy_parts::of(windows),
    }
}

fn metric(windows: &[&WindowFacts], name: &str) -> Estimate {
    let runs = by_run(windows, |window| metrics(window).get(name).copied().flatten());
    let within = match (runs.len(), name) {
        (1, "headline") => WindowFacts::headline_within(windows),
        _ => None,
    };
    over_runs(runs, within)
}

/// The metrics of a window; those without a value are left out unless they are results.
pub(crate) fn metrics(window: &WindowFacts) -> BTreeMap<String, Option<f64>> {
    let process = |tree: &str| window.cpu.on_cpu.get(tree).copied();
    let is_counted = window.load.transactions_per_second.is_some();
    let mut metrics = BTreeMap::from([
        ("tpm", window.load.tpm),
        // Neither of a job, which has no users.
        (
            "tpm_per_user",
            window.load.tpm.filter(|_| is_counted).map(|tpm| tpm / window.all_users()),
        ),
        ("transactions_per_second", window.load.transactions_per_second),
        ("error_share", Some(window.load.error_share)),
        ("cpu_idle", window.cpu.idle_share),
        ("server_cpu_idle", window.cpu.server_idle_share),
        ("cpu_iowait", window.cpu.iowait_share),
        ("cpu_steal", window.cpu.steal_share),
        ("server_cores", of_server(&window.cpu.on_cpu)),
        ("server_cpu_use", window.cpu.server_use_share),
        ("driver_cores", window.driver.cores),
        ("client_network_ns", window.network_per_transaction_ns()),
        ("client_round_trips", window.client.round_trips),
        ("connection_wait_ns", window.client.connection_wait_s.map(|s| s * 1e9)),
        ("datastore_cores", process("datastore")),
        ("interference_cores", window.cpu.interference_cores()),
        ("server_run_queue", of_server(&window.cpu.run_queue)),
        ("log_bytes_per_second", window.load.log_bytes_per_second),
        ("cache_hit_share", window.load.cache_hit_share),
        ("bytes_per_second", window.load.bytes_per_second),
        (RATE_AT_LIMIT, window.load.rate_at_limit),
        (LATENCY_AT_PEAK, window.load.latency_at_peak_ns),
        ("job_s", window.load.job_s),
        ("backup_s", window.load.backup_s),
        ("restore_s", window.load.restore_s),
        (RESTORED, window.load.restore_bytes_per_second),
        ("backup_latency_ns", window.load.backup_latency_ns),
        ("restore_latency_ns", window.load.restore_latency_ns),
        ("resync_iops", window.resync.measured),
        ("resync_alone_iops", window.resync.alone),
    ]);
    if window.databases > 1 {
        metrics.extend(datastore_totals(window));
    }
    metrics.retain(|_, value| value.is_some());
    metrics.insert("headline", window.load.headline);
    metrics.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// What the volumes of all databases came to together: rates added up, latencies weighted by them.
fn datastore_totals(window: &WindowFacts) -> [(&'static str, Option<f64>); 4] {
    // A device that several volumes share would count several times.
    let own: Vec<_> = window.volumes.values().filter(|volume| volume.shared.is_none()).collect();
    let of = |rate: &str, latency: &str| {
        let mut total: Option<(f64, f64)> = None;
        for volume in &own {
            let value = |name: &str| volume.metrics.get(name).copied().flatten();
            let Some(rate) = value(rate) else { continue };
            let (rates, times) = total.unwrap_or_default();
            total = Some((rates + rate, times + rate * value(latency).unwrap_or(0.0)));
        }
        let mean = total.filter(|(rates, _)| *rates > 0.0).map(|(rates, times)| times / rates);
        (total.map(|(rates, _)| rates), mean)
    };
    let (reads, read) = of("read_iops", "read_latency_ns");
    let (writes, write) = of("write_iops", "write_latency_ns");
    [
        ("datastore_read_iops", reads),
        ("datastore_write_iops", writes),
        ("datastore_read_latency_ns", read),
        ("datastore_write_latency_ns", write),
    ]
}

fn volume_row(windows: &[&WindowFacts], volume: &str) -> Option<VolumeRow> {
    let of = |window: &WindowFacts, name: &str| {
        window.volumes.get(volume)?.metrics.get(name).copied().flatten()
    };
    let names: BTreeSet<&str> = windows
        .iter()
        .filter_map(|window| window.volumes.get(volume))
        .flat_map(|facts| facts.metrics.iter())
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| *name)
        .collect();
    let shared = windows.iter().find_map(|window| window.volumes.get(volume)?.shared.as_ref());
    (!names.is_empty()).then(|| VolumeRow {
        volume: volume.to_string(),
        shared_by: shared.map_or_else(Vec::new, |shared| shared.volumes.clone()),
        metrics: names
            .into_iter()
            .map(|name| {
                (name.to_string(), over_runs(by_run(windows, |window| of(window, name)), None))
            })
            .collect(),
    })
}

/// The best rung of each design by its mean throughput.
pub(crate) fn peaks(groups: &[Group<'_>], rungs: &[Rung]) -> Vec<Peak> {
    let mut peaks: BTreeMap<usize, (f64, Peak)> = BTreeMap::new();
    for (group, rung) in groups.iter().zip(rungs) {
        let Some(headline) = rung.metrics.get("headline") else { continue };
        let Some(value) = headline.value else { continue };
        if peaks.get(&group.design).is_some_and(|(best, _)| *best >= value) {
            continue;
        }
        let peak = Peak {
            design: group.design,
            users: group.users,
            headline: headline.clone(),
            exceeds_limit: latencies::exceeds_limit(&group.windows),
        };
        peaks.insert(group.design, (value, peak));
    }
    peaks.into_values().map(|(_, peak)| peak).collect()
}

/// One measured window.
pub(crate) fn window(facts: &WindowFacts) -> Window {
    let begin_s = facts.interval.begin.as_secs_f64() - facts.run_begin_s;
    Window {
        run: facts.run,
        design: facts.design,
        users: facts.users,
        begin_s,
        end_s: facts.interval.end.as_secs_f64() - facts.run_begin_s,
        headline: over_runs(vec![facts.load.headline], WindowFacts::headline_within(&[facts])),
        metrics: metrics(facts),
        steady: steady::judge(&facts.headline_ticks, facts.load.seconds, begin_s),
    }
}

/// What the load generator cost at one rung.
pub(crate) fn driver_load(group: &Group<'_>) -> DriverLoad {
    let pooled = |of: &dyn Fn(&WindowFacts) -> Option<f64>| {
        over_runs(by_run(&group.windows, of), None).value
    };
    let cores = pooled(&|window| window.driver.cores);
    let host = pooled(&|window| window.cpu.host_cores);
    let counted_per_second = pooled(&|window| window.load.counted_per_second);
    let lag = merged(group.windows.iter().map(|window| &window.driver.lag));
    DriverLoad {
        design: group.design,
        users: group.users,
        cores,
        share_of_host: cores.zip(host).map(|(cores, host)| cores / host),
        cpu_seconds_per_10000: cores
            .zip(counted_per_second.filter(|rate| *rate > 0.0))
            .map(|(cores, rate)| cores / rate * 10_000.0),
        dispatch_lag_p99_ns: lag.quantile(0.99),
        // Within the server's limits it is part of what is measured.
        saturated: pooled(&|window| {
            window.driver.busiest_share.filter(|_| !window.client.is_local)
        })
        .map(|share| share >= SATURATED),
    }
}
