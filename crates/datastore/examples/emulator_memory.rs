//! How much memory the emulator needs for a volume that is written from end to end: a single device, a mirror, RAID-5.
//!
//! The volume is filled at full speed and at a great depth, then read and overwritten at random with the models in force, so that
//! everything that grows with bytes or with requests in flight has grown. What counts is the peak of the server's
//! resident memory (VmHWM); its files are on a disk and not part of it. Aim: 1 % of the volume + 100 MB.
//!
//! `cargo run --release -p underlay-datastore --example emulator_memory -- [--json FILE] [--gib N] [--directory DIR]
//! [--design NAME]`. DIR (default: the temporary directory) needs twice the volume's size, one design after the other.

mod support;

use std::path::PathBuf;

use serde_json::json;
use support::clusters::{mirrored, of_devices, profile, raid_5, storage};
use support::fio::{Job, is_installed, lay_out, measure};
use support::site::{Failure, Site, argument, on_one_device, serve_if_asked, write_json};
use underlay_core::{Bytes, Nanos};
use underlay_datastore::{DatastoreSpec, Timing};
use underlay_model::cluster::NetworkSpec;

/// Fixed part of the aim, and the part that may grow with the volume.
const FIXED: f64 = 100e6;
const SHARE: f64 = 0.01;

fn main() -> Result<(), Failure> {
    serve_if_asked();
    if !is_installed() {
        eprintln!("skip: fio is not installed");
        return Ok(());
    }
    let gib = argument("--gib").and_then(|text| text.parse().ok()).unwrap_or(4);
    let volume = Bytes::from_gib(gib);
    let base = argument("--directory").map_or_else(std::env::temp_dir, PathBuf::from);
    let aim = FIXED + SHARE * volume.0 as f64;
    let mut rows = Vec::new();
    for (name, spec) in designs() {
        if argument("--design").is_some_and(|only| only != name) {
            continue;
        }
        let site = Site::new()?;
        let directory = base.join(format!("underlay-memory-{}", std::process::id()));
        site.teardown.create_directory(&directory)?;
        let mut datastore = site.open("memory", &with_backing(spec, directory), volume)?;
        let server = datastore.processes()[0].1;
        let begin = memory(server)?;
        let file = datastore.volumes()[0].path.join("file");
        // ext4 keeps some for itself.
        let file_mib = volume.0 / (1 << 20) * 9 / 10;
        datastore.set_timing(Timing::Off)?;
        lay_out(&file, file_mib)?;
        datastore.set_timing(Timing::Modelled)?;
        let filled = memory(server)?;
        for pattern in ["randread", "randwrite"] {
            let job = Job {
                file: &file,
                size_mib: file_mib,
                pattern,
                queue_depth: 64,
                seconds: 5,
                servers: &[server],
            };
            measure(&job)?;
        }
        let end = memory(server)?;
        println!(
            "{name:<22} {gib} GiB: peak {:>6.1} MB of {:.0} MB; at start {:.1}, filled {:.1}, at the end {:.1} (of them files: {:.1})",
            end.peak / 1e6,
            aim / 1e6,
            begin.resident / 1e6,
            filled.resident / 1e6,
            end.resident / 1e6,
            end.of_files / 1e6,
        );
        rows.push(json!({
            "design": name,
            "volume_bytes": volume.0,
            "peak_bytes": end.peak,
            "aim_bytes": aim,
            "met": end.peak <= aim,
            "resident_bytes": { "start": begin.resident, "filled": filled.resident, "end": end.resident },
        }));
        datastore.close()?;
    }
    let met = rows.iter().filter(|row| row["met"] == true).count();
    println!("within 1 % + 100 MB: {met} of {}", rows.len());
    write_json(&json!({ "benchmark": "emulator-memory", "rows": rows }))
}

fn designs() -> Vec<(&'static str, DatastoreSpec)> {
    let network = NetworkSpec {
        latency: Nanos::from_micros(20),
        bytes_per_second: 3_125_000_000,
        divisor: 1,
    };
    let (cache, capacity) = (profile("dc1500m-960"), profile("dc500m-1920"));
    // Its write buffer loses its content with the power: what could be lost is remembered.
    let mut volatile = cache.clone();
    volatile.power_loss_protected = false;
    vec![
        ("single", on_one_device(&cache)),
        ("single, volatile", on_one_device(&volatile)),
        ("FTT=1", storage(of_devices(3, &cache, &capacity, network), mirrored(1))),
        ("FTT=1, volatile", storage(of_devices(3, &volatile, &capacity, network), mirrored(1))),
        ("RAID-5", storage(of_devices(4, &cache, &capacity, network), raid_5())),
        ("RAID-5, volatile", storage(of_devices(4, &volatile, &capacity, network), raid_5())),
    ]
}

fn with_backing(spec: DatastoreSpec, directory: PathBuf) -> DatastoreSpec {
    let backing_directory = Some(directory);
    match spec {
        DatastoreSpec::Emulated { devices, seed, durability, link, .. } => {
            DatastoreSpec::Emulated { devices, seed, durability, link, backing_directory }
        }
        DatastoreSpec::Cluster { storage, seed, .. } => {
            DatastoreSpec::Cluster { storage, seed, backing_directory }
        }
        other => other,
    }
}

/// Resident memory of a process, in bytes.
struct Memory {
    resident: f64,
    peak: f64,
    /// Pages of files: the program itself, and what it has mapped.
    of_files: f64,
}

fn memory(pid: u32) -> Result<Memory, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> Result<f64, Failure> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no such field")?;
        Ok(kib.parse::<f64>()? * 1024.0)
    };
    Ok(Memory {
        resident: field("VmRSS:")?,
        peak: field("VmHWM:")?,
        of_files: field("RssFile:")? + field("RssShmem:")?,
    })
}
