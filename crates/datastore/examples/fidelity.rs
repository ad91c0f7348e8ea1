//! How truly modelled latencies arrive: fio through loop and ext4 against the model in virtual time.
//!
//! For each built-in profile and queue depth: p50 and p99 of random 4 KiB reads as the model says (a closed
//! loop in virtual time at the same depth), as fio observes them, and the server's own lateness.
//!
//! `cargo run --release -p underlay-datastore --example fidelity -- [--json FILE] [--seconds N] [--patience SECONDS]
//! [--profile NAME]`

mod support;

use serde_json::json;
use support::fio::{Job, is_installed, lay_out};
use support::quiet::Patience;
use support::site::{Failure, Site, argument, seconds_per_cell, serve_if_asked, write_json};
use underlay_core::{Bytes, RootSeed};
use underlay_datastore::{Datastore, Timing};
use underlay_model::closed_loop::{ClosedLoop, Pattern, run};
use underlay_model::{Device, DeviceProfile, builtin};

const VOLUME: Bytes = Bytes::from_mib(1536);
const FILE_MIB: u64 = 1024;
const DEPTHS: [u32; 3] = [1, 8, 32];
/// A p50 error is acceptable when either holds.
const P50_SHARE_MAX: f64 = 0.05;
const P50_DIFFERENCE_US_MAX: f64 = 15.0;

fn main() -> Result<(), Failure> {
    serve_if_asked();
    if !is_installed() {
        eprintln!("skip: fio is not installed");
        return Ok(());
    }
    let seconds = seconds_per_cell(4);
    let only = argument("--profile");
    let patience = Patience::from_arguments();
    let mut rows = Vec::new();
    println!(
        "{:<14} {:>4} {:>20} {:>20} {:>16} {:>18} {:>7} {:>6} {:>10}",
        "profile",
        "QD",
        "model p50/p99 us",
        "fio p50/p99 us",
        "p50 error",
        "late p50/p99 us",
        "IOPS",
        "valid",
        "unrelated"
    );
    for profile in builtin::all().iter().filter(|profile| !profile.is_instant()) {
        if only.as_ref().is_some_and(|only| *only != profile.name) {
            continue;
        }
        let site = Site::new()?;
        // Calibration happens at opening.
        patience.wait_for_quiet()?;
        let mut datastore = site.emulate(profile, VOLUME)?;
        let file = datastore.volumes()[0].path.join("file");
        datastore.set_timing(Timing::Off)?;
        lay_out(&file, FILE_MIB)?;
        datastore.set_timing(Timing::Modelled)?;
        let servers: Vec<u32> = datastore.processes().iter().map(|(_, pid)| *pid).collect();
        for queue_depth in DEPTHS {
            let job = Job {
                file: &file,
                size_mib: FILE_MIB,
                pattern: "randread",
                queue_depth,
                seconds,
                servers: &servers,
            };
            rows.push(cell(profile, &job, datastore.as_mut(), &patience)?);
        }
        datastore.close()?;
    }
    let met = rows.iter().filter(|row| row["p50_within_aim"] == true).count();
    println!("p50 within 5 % or 15 us: {met} of {}", rows.len());
    write_json(&json!({ "benchmark": "fidelity", "seconds_per_cell": seconds, "rows": rows }))
}

fn cell(
    profile: &DeviceProfile,
    job: &Job<'_>,
    datastore: &mut dyn Datastore,
    patience: &Patience,
) -> Result<serde_json::Value, Failure> {
    let (model_p50, model_p99) = modelled(profile, job.queue_depth);
    let observed = patience.measure(job, || datastore.timing().map(drop))?;
    let report = datastore.timing()?.ok_or("an emulated datastore reports its timing")?;
    let late = |q: f64| report.lateness.quantile(q).unwrap_or(0) as f64 / 1e3;
    let difference = observed.p50_us - model_p50;
    let within = difference.abs() <= P50_DIFFERENCE_US_MAX
        || (difference / model_p50).abs() <= P50_SHARE_MAX;
    println!(
        "{:<14} {:>4} {:>9.0} /{:>9.0} {:>9.0} /{:>9.0} {:>6.1} us {:>4.0} % {:>8.1} /{:>8.1} {:>7.0} {:>6} {:>8.0} %",
        profile.name,
        job.queue_depth,
        model_p50,
        model_p99,
        observed.p50_us,
        observed.p99_us,
        difference,
        100.0 * difference / model_p50,
        late(0.5),
        late(0.99),
        observed.iops,
        report.valid,
        100.0 * observed.unrelated,
    );
    Ok(json!({
        "profile": profile.name,
        "queue_depth": job.queue_depth,
        "model_p50_us": model_p50,
        "model_p99_us": model_p99,
        "observed_p50_us": observed.p50_us,
        "observed_p99_us": observed.p99_us,
        "observed_p999_us": observed.p999_us,
        "observed_mean_us": observed.mean_us,
        "observed_iops": observed.iops,
        "cpu_us_per_io": observed.cpu_us,
        "unrelated_cpu_share": observed.unrelated,
        "steal": observed.steal,
        "p50_within_aim": within,
        "lateness_p50_us": late(0.5),
        "lateness_p99_us": late(0.99),
        "host_limited_share": report.host_limited_share,
        "host_cost_share": report.host_cost_share(),
        "floor_us": report.floor.0 as f64 / 1e3,
        "compensation_us": report.compensation.0 as f64 / 1e3,
        "valid": report.valid,
        "reason": report.reason,
    }))
}

/// The same device in virtual time, over an extent of the same size.
fn modelled(profile: &DeviceProfile, queue_depth: u32) -> (f64, f64) {
    let seed = RootSeed(2);
    let mut device = Device::with_extent(profile, VOLUME, seed, "device");
    let spec = ClosedLoop {
        queue_depth,
        block_bytes: 4096,
        read_share: 1.0,
        pattern: Pattern::Random,
        extent: Bytes::from_mib(FILE_MIB),
        warm_up: 1_000,
        measured: 100_000,
    };
    let read = run(&mut device, &spec, seed).read;
    let micros = |q: f64| read.quantile(q).expect("measured") as f64 / 1e3;
    (micros(0.5), micros(0.99))
}
