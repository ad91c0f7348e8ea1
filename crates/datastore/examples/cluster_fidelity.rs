//! How truly a cluster is emulated: fio through loop and ext4 against the same cluster in virtual time.
//!
//! For each design, workload and queue depth: p50, p99 and IOPS as the simulation says and as fio observes them. Both sides do
//! the same things in the same order (fill the file, then one workload after the other), so that write buffers and what
//! is destaged are alike. Aim: all three within 10 %.
//!
//! `cargo run --release -p underlay-datastore --example cluster_fidelity -- [--json FILE] [--seconds N] [--patience SECONDS]
//! [--design NAME]`

mod support;

use std::time::Duration;

use serde_json::json;
use support::clusters::{SEED, mirrored, of_devices, profile, raid_5, storage};
use support::fio::{Job, Outcome, Side, is_installed, lay_out};
use support::quiet::Patience;
use support::site::{Failure, Site, argument, seconds_per_cell, serve_if_asked, write_json};
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_datastore::{Datastore, Timing};
use underlay_model::DeviceProfile;
use underlay_model::cluster::{ClusterSpec, NetworkSpec, Policy};
use underlay_simulation::{
    ClientSpec, ClusterTarget, Latencies, RunSpec, SimulationResult, Stack, simulate,
};
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, Durability, Locality, Pace, Region, Runs, SizeShare,
};

const VOLUME: Bytes = Bytes::from_mib(1536);
const FILE: Bytes = Bytes::from_gib(1);
/// fio's warm-up.
const WARM_UP: Nanos = Nanos::from_secs(1);
/// Between two workloads; write buffers settle meanwhile.
const PAUSE: Duration = Duration::from_secs(1);
const ERROR_MAX: f64 = 0.10;

/// A cluster and what volumes ask of it.
struct Design {
    name: &'static str,
    cluster: ClusterSpec,
    policy: Policy,
}

/// What is asked: fio's word, the same for the simulation, requests in flight.
const WORKLOADS: [(&str, f64, u32); 6] = [
    ("randread", 1.0, 1),
    ("randread", 1.0, 8),
    ("randwrite", 0.0, 1),
    ("randwrite", 0.0, 8),
    ("randrw", 0.7, 1),
    ("randrw", 0.7, 8),
];

/// SATA drives as they are, as they are when others use them most of the time (which leaves this host room, but lets a
/// lone request take what it always takes), and the latter with hosts 1 ms apart, as between two sites: there a request
/// takes long enough that what the host adds does not matter. And disks throughout, slow enough for any host.
fn designs() -> Vec<Design> {
    let near = NetworkSpec { latency: Nanos::from_micros(50), bytes_per_second: 1_250_000_000 };
    let far = NetworkSpec { latency: Nanos::from_millis(1), bytes_per_second: 1_250_000_000 };
    let cluster = |hosts, divisor, network, buffer: Bytes| {
        let drive = |name| DeviceProfile { divisor, ..profile(name) };
        let mut spec = of_devices(hosts, &drive("s3610-400"), &drive("5200eco-1920"), network);
        for group in spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
            group.write_buffer.usable = buffer;
        }
        spec
    };
    let (large, small) = (Bytes::from_gib(1), Bytes::from_mib(256));
    let disks = |hosts| {
        let mut spec = of_devices(hosts, &profile("hdd-7200"), &profile("hdd-7200"), near);
        for group in spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
            group.write_buffer.usable = small;
        }
        spec
    };
    vec![
        Design { name: "sata/8, FTT=1", cluster: cluster(3, 8, near, small), policy: mirrored(1) },
        Design { name: "sata/8, RAID-5", cluster: cluster(4, 8, near, small), policy: raid_5() },
        Design { name: "sata, FTT=1", cluster: cluster(3, 1, near, large), policy: mirrored(1) },
        Design {
            name: "far sata/8, FTT=1",
            cluster: cluster(3, 8, far, small),
            policy: mirrored(1),
        },
        Design { name: "far sata/8, RAID-5", cluster: cluster(4, 8, far, small), policy: raid_5() },
        Design { name: "disks, FTT=1", cluster: disks(3), policy: mirrored(1) },
        Design { name: "disks, RAID-5", cluster: disks(4), policy: raid_5() },
    ]
}

fn main() -> Result<(), Failure> {
    serve_if_asked();
    if !is_installed() {
        eprintln!("skip: fio is not installed, nobody can judge");
        return Ok(());
    }
    let seconds = seconds_per_cell(5);
    let patience = Patience::from_arguments();
    let only = argument("--design");
    println!(
        "{:<19} {:<10} {:>3} {:>17} {:>17} {:>17} {:>24} {:>9}",
        "design",
        "workload",
        "QD",
        "simulated p50/p99",
        "fio p50/p99 us",
        "IOPS sim / fio",
        "errors p50, p99, IOPS",
        "unrelated"
    );
    let mut rows = Vec::new();
    for design in designs() {
        if only.as_ref().is_none_or(|only| design.name.starts_with(only.as_str())) {
            rows.extend(compare(&design, seconds, &patience)?);
        }
    }
    let met = rows.iter().filter(|row| row["within_aim"] == true).count();
    println!("p50, p99 and IOPS within {:.0} %: {met} of {}", 100.0 * ERROR_MAX, rows.len());
    write_json(&json!({
        "benchmark": "cluster-fidelity", "seconds_per_cell": seconds, "aim": ERROR_MAX, "rows": rows,
    }))
}

fn compare(
    design: &Design,
    seconds: u64,
    patience: &Patience,
) -> Result<Vec<serde_json::Value>, Failure> {
    let simulated = simulated(design, seconds)?;
    let site = Site::new()?;
    // Calibration happens at opening.
    patience.wait_for_quiet()?;
    let mut datastore =
        site.open("cluster", &storage(design.cluster.clone(), design.policy), VOLUME)?;
    let file = datastore.volumes()[0].path.join("file");
    datastore.set_timing(Timing::Off)?;
    lay_out(&file, FILE.0 >> 20)?;
    datastore.set_timing(Timing::Modelled)?;
    let servers: Vec<u32> = datastore.processes().iter().map(|(_, pid)| *pid).collect();
    let mut rows = Vec::new();
    for ((pattern, _, queue_depth), simulated) in WORKLOADS.into_iter().zip(&simulated) {
        let size_mib = FILE.0 >> 20;
        let job = Job { file: &file, size_mib, pattern, queue_depth, seconds, servers: &servers };
        let observed = patience.measure(&job, || {
            std::thread::sleep(PAUSE);
            datastore.timing().map(drop)
        })?;
        rows.extend(report(design, &job, simulated, &observed, datastore.as_mut())?);
    }
    datastore.close()?;
    Ok(rows)
}

fn report(
    design: &Design,
    job: &Job<'_>,
    simulated: &SimulationResult,
    observed: &Outcome,
    datastore: &mut dyn Datastore,
) -> Result<Vec<serde_json::Value>, Failure> {
    let timing = datastore.timing()?.ok_or("an emulated datastore reports its timing")?;
    let us = |mean: Option<Nanos>| mean.map_or(f64::NAN, |mean| mean.0 as f64 / 1e3);
    let sides = simulated.totals();
    let mut rows = Vec::new();
    for (access, simulated_side, observed_side) in
        [("reads", &sides[0], observed.reads), ("writes", &sides[1], observed.writes)]
    {
        if simulated_side.response.is_empty() {
            continue;
        }
        let expected = expected(simulated_side, simulated.duration());
        let error = |of: fn(&Side) -> f64| of(&observed_side) / of(&expected) - 1.0;
        let errors = [error(|s| s.p50_us), error(|s| s.p99_us), error(|s| s.iops)];
        let within = errors.iter().all(|error| error.abs() <= ERROR_MAX);
        println!(
            "{:<19} {:<10} {:>3} {:>8.0} /{:>7.0} {:>8.0} /{:>7.0} {:>8.0} /{:>7.0} {:>+6.1} {:>+6.1} {:>+6.1} % {} {:>6.0} %  {access}",
            design.name,
            job.pattern,
            job.queue_depth,
            expected.p50_us,
            expected.p99_us,
            observed_side.p50_us,
            observed_side.p99_us,
            expected.iops,
            observed_side.iops,
            100.0 * errors[0],
            100.0 * errors[1],
            100.0 * errors[2],
            if within { " " } else { "!" },
            100.0 * observed.unrelated,
        );
        rows.push(json!({
            "design": design.name,
            "workload": job.pattern,
            "side": access,
            "queue_depth": job.queue_depth,
            "simulated": { "p50_us": expected.p50_us, "p99_us": expected.p99_us, "mean_us": expected.mean_us, "iops": expected.iops },
            "observed": { "p50_us": observed_side.p50_us, "p99_us": observed_side.p99_us, "mean_us": observed_side.mean_us, "iops": observed_side.iops },
            "error": { "p50": errors[0], "p99": errors[1], "iops": errors[2] },
            "within_aim": within,
            "modelled_mean_us": us(timing.modelled_mean),
            "block_mean_us": us(timing.block_mean),
            "compensation_us": timing.compensation.0 as f64 / 1e3,
            "floor_us": timing.floor.0 as f64 / 1e3,
            "host_limited_share": timing.host_limited_share,
            "unrelated_cpu_share": observed.unrelated,
        }));
    }
    Ok(rows)
}

fn expected(side: &Latencies, duration: Nanos) -> Side {
    let histogram: &Histogram = &side.response;
    let quantile = |q: f64| histogram.quantile(q).map_or(f64::NAN, |ns| ns as f64 / 1e3);
    Side {
        iops: histogram.count() as f64 / duration.as_secs_f64(),
        mean_us: histogram.mean().map_or(f64::NAN, |ns| ns / 1e3),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
    }
}

/// The same in virtual time: the file is filled, then one workload after the other.
fn simulated(design: &Design, seconds: u64) -> Result<Vec<SimulationResult>, Failure> {
    let mut target =
        ClusterTarget::new(&design.cluster, design.policy, Stack::NONE, &[VOLUME], SEED)?;
    let fill = workload("fill", 0.0, 1 << 20, 0.0);
    let blocks = FILE.0 >> 20;
    let begin = Nanos::ZERO;
    let filled = run(
        &mut target,
        &fill,
        4,
        RunSpec {
            begin,
            warm_up: Nanos::ZERO,
            measure: Nanos::from_secs(3_600),
            requests_max: blocks,
        },
    );
    let mut begin = filled.end;
    let mut results = Vec::new();
    for (name, read_share, queue_depth) in WORKLOADS {
        begin += Nanos::from(PAUSE);
        let workload = workload(name, read_share, 4096, 1.0);
        let spec = RunSpec {
            begin,
            warm_up: WARM_UP,
            measure: Nanos::from_secs(seconds),
            requests_max: u64::MAX,
        };
        let result = run(&mut target, &workload, queue_depth, spec);
        begin = result.end;
        results.push(result);
    }
    Ok(results)
}

fn run(
    target: &mut ClusterTarget,
    workload: &BlockWorkload,
    queue_depth: u32,
    spec: RunSpec,
) -> SimulationResult {
    let client = ClientSpec {
        name: "fio".to_string(),
        volume: 0,
        workload,
        working_set: FILE,
        concurrency: Concurrency { threads: 1, queue_depth },
        pace: Pace::CLOSED,
    };
    simulate(target, &[client], &spec, RootSeed(2))
}

fn workload(name: &str, read_share: f64, bytes: u32, random_share: f64) -> BlockWorkload {
    let stream = BlockStream {
        name: "data".to_string(),
        weight: 1.0,
        read_share,
        sizes: vec![SizeShare { bytes, weight: 1.0 }],
        random_share,
        locality: Locality::Uniform,
        runs: Runs::PerThread,
        region: Region::WHOLE,
        durability: Durability::Cached,
    };
    BlockWorkload { name: name.to_string(), streams: vec![stream] }
}
