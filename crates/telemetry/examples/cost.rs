//! What observing costs, measured: run it with `cargo run --release -p underlay-telemetry --example
//! cost -- [seconds] [postgres-url] [process-name:pid]...`.
//!
//! Collects at 1 Hz for some seconds and prints CPU time per tier, the wall time of sweeps, resident
//! memory, series and items per second. With a URL the server is observed too, with pids the trees.

use std::error::Error;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_database::Target;
use underlay_telemetry::{CgroupTarget, Collector, Item, SourceInfo, Targets, VolumeTarget};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let (mut postgres, mut processes) = (None, Vec::new());
    for argument in arguments {
        match argument.split_once(':') {
            Some((name, pid)) if pid.parse::<u32>().is_ok() => {
                processes.push((name.to_string(), pid.parse()?));
            }
            _ => postgres = Some(Target::from_url(&argument)?),
        }
    }
    let group = |controller: &str| {
        let folder = std::path::Path::new("/sys/fs/cgroup").join(controller);
        folder.is_dir().then_some(folder)
    };
    let targets = Targets {
        databases: Vec::new(),
        origin: Instant::now(),
        database: postgres,
        processes,
        cgroup: Some(CgroupTarget {
            memory: group("memory"),
            cpu: group("cpu"),
            cpuacct: group("cpuacct"),
            blkio: group("blkio"),
            unified: group("unified"),
        }),
        volumes: vec![VolumeTarget {
            name: "data".to_string(),
            place: "/".to_string(),
            owns_device: false,
        }],
        extra: Vec::new(),
    };
    let (sink, items) = channel();
    let collector = Collector::start(targets, Duration::from_secs(1), sink);
    std::thread::sleep(Duration::from_secs(seconds));
    let report = collector.stop();
    let items: Vec<Item> = items.try_iter().collect();
    print_sources(&items);
    for tier in &report.tiers {
        let per_second = tier.cpu.as_secs_f64() / seconds as f64;
        println!(
            "tier {:10} {:5} ticks, {:3} missed, {:.3} % of a core",
            tier.name,
            tier.ticks,
            tier.missed,
            per_second * 100.0
        );
    }
    let share = report.cpu().as_secs_f64() / seconds as f64 * 100.0;
    println!("all tiers: {share:.3} % of a core; {} items", items.len());
    print_memory(&items);
    Ok(())
}

/// Per source: status, series, and the median width of its acquisition windows.
fn print_sources(items: &[Item]) {
    let mut sources: Vec<(usize, &SourceInfo)> = Vec::new();
    for item in items {
        if let Item::Source(number, info) = item {
            sources.retain(|(known, _)| known != number);
            sources.push((*number, info));
        }
    }
    for (number, info) in sources {
        let mut windows: Vec<Nanos> = items
            .iter()
            .filter_map(|item| match item {
                Item::Tick { source, begin, end, .. } if *source == number => Some(*end - *begin),
                _ => None,
            })
            .collect();
        windows.sort();
        println!(
            "source {:10} {:9} {:4} series, window p50 {} max {} {}",
            info.name,
            info.status.as_str(),
            info.series.len(),
            windows.get(windows.len() / 2).copied().unwrap_or(Nanos::ZERO),
            windows.last().copied().unwrap_or(Nanos::ZERO),
            info.status.reason().unwrap_or(""),
        );
    }
}

/// Resident memory in the latest tick of source `underlay`.
fn print_memory(items: &[Item]) {
    let place = items.iter().find_map(|item| match item {
        Item::Source(number, info) if info.name == "underlay" => {
            let index = info.series.iter().position(|series| series.name == "process.rss")?;
            Some((*number, index))
        }
        _ => None,
    });
    let rss = items.iter().rev().find_map(|item| match (item, place) {
        (Item::Tick { source, values, .. }, Some((number, index))) if *source == number => {
            values.get(index).copied()
        }
        _ => None,
    });
    println!("resident memory: {:.1} MiB", rss.unwrap_or(f64::NAN) / 1048576.0);
}
