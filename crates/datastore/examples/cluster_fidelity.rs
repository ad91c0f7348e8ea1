//! How truly a cluster is emulated: fio through loop and ext4 against the same cluster in virtual time.
//!
//! For each design, workload and queue depth: p50, p99 and IOPS as the simulation says and as fio observes them. Aim: all three
//! within 10 %.
//!
//! **Both begin a row in the same state.** How fast a cluster writes depends on what its write buffers hold: how much, and
//! whether it lies side by side. So before each row the file is overwritten from end to end, and then nothing is done until
//! no buffer destages any more. From then on time changes nothing, so that it does not matter how long fio takes to start. What
//! the fullest buffer holds at the start and at the end of a row, and what was destaged in between, is printed for both.
//!
//! **Chance.** A row is simulated several times with other requests. The expected figures are those of all of them together,
//! and how far a single one is from them is printed as chance: what is within it is no error.
//!
//! `cargo run --release -p underlay-datastore --example cluster_fidelity -- [--json FILE] [--seconds N] [--patience SECONDS]
//! [--design NAME] [--workload NAME]`

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::buffers::Buffers;
use support::clusters::{mirrored, of_devices, profile, raid_5, storage};
use support::fio::{Job, Outcome, Side, is_installed, lay_out};
use support::quiet::Patience;
use support::site::{Failure, Site, argument, seconds_per_cell, serve_if_asked, write_json};
use support::virtual_cluster::VirtualCluster;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_datastore::{Datastore, Timing};
use underlay_model::DeviceProfile;
use underlay_model::cluster::{ClusterSpec, NetworkSpec, Policy};
use underlay_simulation::SimulationResult;

const VOLUME: Bytes = Bytes::from_mib(1536);
const FILE: Bytes = Bytes::from_gib(1);
/// fio's warm-up.
const WARM_UP: Nanos = Nanos::from_secs(1);
/// How often it is looked whether write buffers destage.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Buffers that destage for longer than this never settle.
const LOOKS_MAX: u32 = 1_200;
/// How often each row is simulated.
const DRAWS: u64 = 5;
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
    let near = NetworkSpec {
        latency: Nanos::from_micros(50),
        bytes_per_second: 1_250_000_000,
        divisor: 1,
    };
    let far =
        NetworkSpec { latency: Nanos::from_millis(1), bytes_per_second: 1_250_000_000, divisor: 1 };
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
        eprintln!("skip: fio is not installed");
        return Ok(());
    }
    let seconds = seconds_per_cell(5);
    let patience = Patience::from_arguments();
    let only = argument("--design");
    println!(
        "{:<19} {:<10} {:>3} {:>17} {:>17} {:>17} {:>24} {:>22} {:>31} {:>9}",
        "design",
        "workload",
        "QD",
        "simulated p50/p99",
        "fio p50/p99 us",
        "IOPS sim / fio",
        "errors p50, p99, IOPS",
        "chance p50, p99, IOPS",
        "buffer, destaged MiB, sim / fio",
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

fn compare(design: &Design, seconds: u64, patience: &Patience) -> Result<Vec<Value>, Failure> {
    let site = Site::new()?;
    // Calibration happens at opening.
    patience.wait_for_quiet()?;
    let mut datastore =
        site.open("cluster", &storage(design.cluster.clone(), design.policy), VOLUME)?;
    let file = datastore.volumes()[0].path.join("file");
    let servers: Vec<u32> = datastore.processes().iter().map(|(_, pid)| *pid).collect();
    let only = argument("--workload");
    let mut rows = Vec::new();
    for (pattern, read_share, queue_depth) in WORKLOADS {
        if only.as_ref().is_some_and(|only| only != pattern) {
            continue;
        }
        let simulated = simulated(design, read_share, queue_depth, seconds)?;
        let size_mib = FILE.0 >> 20;
        let job = Job { file: &file, size_mib, pattern, queue_depth, seconds, servers: &servers };
        let mut before = Buffers::default();
        let outcome = patience.measure(&job, || {
            before = prepare(datastore.as_mut(), &job)?;
            datastore.timing().map(drop).map_err(Failure::from)
        })?;
        let after = Buffers::of_emulated(datastore.as_mut())?;
        let observed = Observed { outcome, before, after };
        rows.extend(report(design, &job, &simulated, &observed, datastore.as_mut())?);
    }
    datastore.close()?;
    Ok(rows)
}

/// What fio saw of the emulated cluster.
struct Observed {
    outcome: Outcome,
    before: Buffers,
    after: Buffers,
}

/// Overwrites the file at full speed and lets the write buffers settle; returns what they then hold.
fn prepare(datastore: &mut dyn Datastore, job: &Job<'_>) -> Result<Buffers, Failure> {
    datastore.set_timing(Timing::Off)?;
    lay_out(job.file, job.size_mib)?;
    datastore.set_timing(Timing::Modelled)?;
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK_EVERY);
        let buffers = Buffers::of_emulated(datastore)?;
        if !buffers.are_destaging() {
            return Ok(buffers);
        }
    }
    Err("write buffers of the emulated cluster do not settle".into())
}

/// The same in virtual time.
fn prepare_virtual(cluster: &mut VirtualCluster) -> Result<Buffers, Failure> {
    cluster.overwrite();
    for _ in 0..LOOKS_MAX {
        cluster.pass(LOOK_EVERY);
        let buffers = cluster.buffers();
        if !buffers.are_destaging() {
            return Ok(buffers);
        }
    }
    Err("write buffers of the simulated cluster do not settle".into())
}

/// One row in virtual time, as often as it is drawn.
struct Simulated {
    draws: Vec<SimulationResult>,
    /// Of the first draw.
    before: Buffers,
    after: Buffers,
}

fn simulated(
    design: &Design,
    read_share: f64,
    queue_depth: u32,
    seconds: u64,
) -> Result<Simulated, Failure> {
    let mut row =
        Simulated { draws: Vec::new(), before: Buffers::default(), after: Buffers::default() };
    for draw in 0..DRAWS {
        let seed = RootSeed(2 + draw);
        let mut cluster = VirtualCluster::new(&design.cluster, design.policy, VOLUME, FILE, seed)?;
        let before = prepare_virtual(&mut cluster)?;
        let measure = Nanos::from_secs(seconds);
        row.draws.push(cluster.use_at_random(read_share, queue_depth, WARM_UP, measure));
        if draw == 0 {
            (row.before, row.after) = (before, cluster.buffers());
        }
    }
    Ok(row)
}

impl Simulated {
    /// Reads (0) or writes (1), all draws together; then each alone.
    fn sides(&self, access: usize) -> (Side, Vec<Side>) {
        let mut all = Histogram::new();
        let mut seconds = 0.0;
        let each = self.draws.iter().map(|draw| {
            let [reads, writes] = draw.totals();
            let histogram = if access == 0 { reads.response } else { writes.response };
            all.merge(&histogram);
            seconds += draw.duration().as_secs_f64();
            side_of(&histogram, draw.duration().as_secs_f64())
        });
        let each = each.collect();
        (side_of(&all, seconds), each)
    }
}

fn side_of(histogram: &Histogram, seconds: f64) -> Side {
    let quantile = |q: f64| histogram.quantile(q).map_or(f64::NAN, |ns| ns as f64 / 1e3);
    Side {
        iops: histogram.count() as f64 / seconds,
        mean_us: histogram.mean().map_or(f64::NAN, |ns| ns / 1e3),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
    }
}

/// p50, p99 and IOPS, as shares above or below what is expected.
fn errors(side: &Side, expected: &Side) -> [f64; 3] {
    let error = |of: fn(&Side) -> f64| of(side) / of(expected) - 1.0;
    [error(|s| s.p50_us), error(|s| s.p99_us), error(|s| s.iops)]
}

/// The largest errors of single draws.
fn chance(draws: &[Side], expected: &Side) -> [f64; 3] {
    let each = draws.iter().map(|draw| errors(draw, expected));
    each.fold([0.0; 3], |worst, one| std::array::from_fn(|i| worst[i].max(f64::abs(one[i]))))
}

fn report(
    design: &Design,
    job: &Job<'_>,
    simulated: &Simulated,
    observed: &Observed,
    datastore: &mut dyn Datastore,
) -> Result<Vec<Value>, Failure> {
    let timing = datastore.timing()?.ok_or("an emulated datastore reports its timing")?;
    let us = |mean: Option<Nanos>| mean.map_or(f64::NAN, |mean| mean.0 as f64 / 1e3);
    let outcome = &observed.outcome;
    let mut rows = Vec::new();
    for (access, number, seen) in [("reads", 0, outcome.reads), ("writes", 1, outcome.writes)] {
        let (expected, draws) = simulated.sides(number);
        if expected.iops == 0.0 {
            continue;
        }
        let errors = errors(&seen, &expected);
        let chance = chance(&draws, &expected);
        let within = errors.iter().all(|error| error.abs() <= ERROR_MAX);
        println!(
            "{:<19} {:<10} {:>3} {:>8.0} /{:>7.0} {:>8.0} /{:>7.0} {:>8.0} /{:>7.0} {} % {} {} % {} / {} {:>6.0} %  {access}",
            design.name,
            job.pattern,
            job.queue_depth,
            expected.p50_us,
            expected.p99_us,
            seen.p50_us,
            seen.p99_us,
            expected.iops,
            seen.iops,
            percents(errors, true),
            if within { " " } else { "!" },
            percents(chance, false),
            course(&simulated.before, &simulated.after),
            course(&observed.before, &observed.after),
            100.0 * outcome.unrelated,
        );
        rows.push(json!({
            "design": design.name,
            "workload": job.pattern,
            "side": access,
            "queue_depth": job.queue_depth,
            "simulated": figures(&expected),
            "simulated_draws": draws.iter().map(figures).collect::<Vec<_>>(),
            "observed": figures(&seen),
            "error": triple(errors),
            "chance": triple(chance),
            "within_aim": within,
            "buffers": {
                "simulated": [simulated.before.to_json(), simulated.after.to_json()],
                "emulated": [observed.before.to_json(), observed.after.to_json()],
                "destaged_mib": {
                    "simulated": simulated.after.destaged_mib(&simulated.before),
                    "emulated": observed.after.destaged_mib(&observed.before),
                },
            },
            "modelled_mean_us": us(timing.modelled_mean),
            "block_mean_us": us(timing.block_mean),
            "compensation_us": timing.compensation.0 as f64 / 1e3,
            "floor_us": timing.floor.0 as f64 / 1e3,
            "host_limited_share": timing.host_limited_share,
            "unrelated_cpu_share": outcome.unrelated,
        }));
    }
    Ok(rows)
}

fn figures(side: &Side) -> Value {
    let Side { p50_us, p99_us, mean_us, iops, .. } = side;
    json!({ "p50_us": p50_us, "p99_us": p99_us, "mean_us": mean_us, "iops": iops })
}

fn triple([p50, p99, iops]: [f64; 3]) -> Value {
    json!({ "p50": p50, "p99": p99, "iops": iops })
}

fn percents(shares: [f64; 3], signed: bool) -> String {
    let [p50, p99, iops] = shares.map(|share| 100.0 * share);
    match signed {
        true => format!("{p50:>+6.1} {p99:>+6.1} {iops:>+6.1}"),
        false => format!("{p50:>6.1} {p99:>6.1} {iops:>6.1}"),
    }
}

/// What the fullest buffer held before and after, and what all of them destaged in between.
fn course(before: &Buffers, after: &Buffers) -> String {
    let destaged = after.destaged_mib(before);
    format!("{:.1}>{:.1} {destaged:.1}", before.fullest_mib(), after.fullest_mib())
}
