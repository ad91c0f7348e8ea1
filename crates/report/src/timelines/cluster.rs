//! Time lines of an emulated cluster: what its disk groups, hosts and devices did, how full and how congested they were, and
//! what was copied.
//!
//! Each chart shows one measure; its lines are the parts of the cluster. Devices have a chart per host, because they are many.
//! Latencies of a host are those of its disk groups merged; no percentile is averaged.

use std::collections::{BTreeMap, BTreeSet};

use underlay_record::StoredHistogram;
use underlay_record::conventions::{histogram_scope, source};

use super::drawing::{Drawing, Label, histogram_rows};
use crate::observed::{ObservedRun, Series, middle};

/// The queues in front of the devices, and what they are called.
const QUEUES: [(&str, &str); 5] = [
    ("vm", "Volumes"),
    ("resync", "Resynchronisation"),
    ("destage", "Destaging"),
    ("metadata", "Metadata"),
    ("namespace", "Namespace"),
];
const LAYER: &str = "datastore";

/// Draws a cluster, if the run was on one.
pub(super) fn draw(run: &ObservedRun, drawing: &mut Drawing) {
    let parts = Parts::of(run);
    if parts.groups.is_empty() {
        return draw_server(run, drawing);
    }
    draw_classes(run, drawing, &parts);
    draw_resync(run, drawing);
    for group in &parts.groups {
        drawing.entity = Some(group.clone());
        draw_group(run, drawing, group);
    }
    for host in &parts.hosts {
        drawing.entity = Some(host.clone());
        draw_host(run, drawing, host);
    }
    for device in &parts.devices {
        drawing.entity = Some(device.clone());
        draw_device(run, drawing, device);
    }
    drawing.entity = None;
    draw_volumes(run, drawing);
    draw_server(run, drawing);
}

/// The names of a cluster's parts, as its series say.
#[derive(Default)]
struct Parts {
    hosts: BTreeSet<String>,
    groups: BTreeSet<String>,
    devices: BTreeSet<String>,
}

impl Parts {
    fn of(run: &ObservedRun) -> Parts {
        let mut parts = Parts::default();
        let Some(ticks) = run.sources.get(source::DATASTORE) else { return parts };
        for name in ticks.names() {
            let part = |prefix: &str, suffix: &str| {
                name.strip_prefix(prefix)?.strip_suffix(suffix).map(str::to_string)
            };
            parts.hosts.extend(part("cluster.host.", ".reachable"));
            parts.groups.extend(part("cluster.group.", ".buffer.free"));
            parts.devices.extend(part("cluster.device.", ".service"));
        }
        parts
    }
}

fn series<'a>(run: &'a ObservedRun, name: &str) -> Option<Series<'a>> {
    run.series(source::DATASTORE, name)
}

/// The sum of several counters' rates: (time, per second).
fn summed(run: &ObservedRun, names: impl Iterator<Item = String>) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for name in names {
        for (time, rate) in series(run, &name).into_iter().flat_map(|series| series.rates()) {
            sums.entry(time.to_bits()).or_insert((time, 0.0)).1 += rate;
        }
    }
    sums.into_values().collect()
}

/// Time per request of a counter of times: (time, ns).
fn per_request(run: &ObservedRun, time: &str, requests: &[String]) -> Vec<(f64, f64)> {
    let ios: BTreeMap<u64, f64> = summed(run, requests.iter().cloned())
        .into_iter()
        .map(|(time, rate)| (time.to_bits(), rate))
        .collect();
    let times = series(run, time).into_iter().flat_map(|series| series.rates());
    times
        .filter_map(|(time, ns)| {
            let ios = ios.get(&time.to_bits()).filter(|ios| **ios > 0.0)?;
            Some((time, ns / ios))
        })
        .collect()
}

fn any(points: &[(f64, f64)]) -> bool {
    points.iter().any(|(_, value)| *value > 0.0)
}

/// What the queues in front of the devices let through: the shares of volumes and copying.
fn draw_classes(run: &ObservedRun, drawing: &mut Drawing, parts: &Parts) {
    for (word, title) in QUEUES {
        let of = |what: &'static str| {
            let groups = parts.groups.iter();
            summed(run, groups.map(move |it| format!("cluster.group.{it}.queue.{word}.{what}")))
        };
        let (bytes, ios) = (of("bytes"), of("ios"));
        if any(&ios) {
            let name = format!("cluster.queue.{word}");
            drawing.points((&name, title, LAYER, "bytes/s", "cluster bandwidth"), &bytes);
            drawing.entity = Some(title.to_string());
            let name = format!("cluster.queue.{word}.ios");
            let label = (&*name, title, LAYER, "1/s", "I/Os of the devices per queue");
            drawing.points(label, &ios);
            drawing.entity = None;
        }
    }
}

fn draw_resync(run: &ObservedRun, drawing: &mut Drawing) {
    const REASONS: [&str; 4] = ["repair", "stale", "policy", "rebalance"];
    let named = |what: &'static str| {
        REASONS.into_iter().map(move |reason| format!("cluster.resync.{reason}.{what}"))
    };
    let mut left: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for name in named("left") {
        for (time, bytes) in series(run, &name).into_iter().flat_map(|series| series.values()) {
            left.entry(time.to_bits()).or_insert((time, 0.0)).1 += bytes;
        }
    }
    let left: Vec<(f64, f64)> = left.into_values().collect();
    let ios = summed(run, named("ios"));
    if any(&left) || any(&ios) {
        let label = ("cluster.resync.left", "Left to copy", LAYER, "bytes", "resync");
        drawing.points(label, &left);
        let label = ("cluster.resync.ios", "Slices copied", LAYER, "1/s", "resync");
        drawing.points(label, &ios);
        let bytes = summed(run, named("bytes"));
        let label = ("cluster.resync.bytes", "Copied", LAYER, "bytes/s", "resync");
        drawing.points(label, &bytes);
    }
}

fn draw_group(run: &ObservedRun, drawing: &mut Drawing, group: &str) {
    let chart = format!("{group} bandwidth by queue");
    for (word, title) in QUEUES {
        let name = format!("cluster.group.{group}.queue.{word}");
        let points = summed(run, std::iter::once(format!("{name}.bytes")));
        if any(&points) {
            drawing.points((&name, title, LAYER, "bytes/s", &chart), &points);
        }
    }
    let of = |what: &str| series(run, &format!("cluster.group.{group}.{what}"));
    let name = |what: &str| format!("cluster.group.{group}.{what}");
    let mut gauge = |what: &str, unit: &str, chart: &str, factor: f64| {
        let points: Vec<(f64, f64)> = of(what)
            .into_iter()
            .flat_map(|series| series.values())
            .map(|(time, value)| (time, value * factor))
            .collect();
        drawing.points((&name(what), group, LAYER, unit, chart), &points);
    };
    gauge("buffer.free", "share", "write buffer free", 0.01);
    gauge("congestion", "of 255", "congestion", 1.0);
    gauge("vm.outstanding", "requests", "outstanding requests of volumes", 1.0);
    gauge("resync.outstanding", "requests", "outstanding requests of copies", 1.0);
    gauge("reduction.dedupe-ratio", "to 1", "deduplication ratio", 1.0);
    gauge("reduction.compression-ratio", "to 1", "compression ratio", 1.0);
    gauge("reduction.stored", "bytes", "stored after reduction", 1.0);
    let mut rate = |what: &str, unit: &str, chart: &str| {
        drawing.rate((&name(what), group, LAYER, unit, chart), of(what), 1.0);
    };
    rate("buffer.destaged", "bytes/s", "destage rate");
    rate("buffer.admitted", "bytes/s", "written into the buffer");
    for (operation, chart) in [("read", "disk group reads"), ("write", "disk group writes")] {
        let what = format!("vm.{operation}.ios");
        rate(&what, "1/s", chart);
    }
    for (operation, chart) in
        [("read", "disk group read latency p99"), ("write", "disk group write latency p99")]
    {
        let histogram = format!("group.{group}.vm.{operation}");
        let label = (&*name(&format!("{operation}.p99")), group, LAYER, "ns", chart);
        let rows = histogram_rows(run, histogram_scope::CLUSTER, &histogram);
        drawing.quantiles(&[(label, 0.99)], rows);
    }
}

fn draw_host(run: &ObservedRun, drawing: &mut Drawing, host: &str) {
    let sum = |what: [&str; 2]| {
        summed(run, what.into_iter().map(|what| format!("cluster.host.{host}.vm.{what}")))
    };
    let name = |what: &str| format!("cluster.host.{host}.{what}");
    let ios = sum(["read.ios", "write.ios"]);
    drawing.points((&name("ios"), host, LAYER, "1/s", "host I/Os for volumes"), &ios);
    let bytes = sum(["read.bytes", "write.bytes"]);
    drawing.points((&name("bytes"), host, LAYER, "bytes/s", "host bandwidth for volumes"), &bytes);
    // Both operations of all its groups, merged.
    let prefix = format!("group.{host}/");
    let rows = run.histograms.iter().filter(|row| {
        row.scope == histogram_scope::CLUSTER
            && row.name.starts_with(&prefix)
            && row.name.contains(".vm.")
    });
    let rows = rows.map(|row| (middle(row.interval), &row.histogram));
    let label = (&*name("p99"), host, LAYER, "ns", "host latency p99");
    drawing.quantiles(&[(label, 0.99)], rows);
}

fn draw_device(run: &ObservedRun, drawing: &mut Drawing, device: &str) {
    let Some((host, short)) = device.split_once('/') else { return };
    let full = |what: &str| format!("cluster.device.{device}.{what}");
    let chart = |what: &str| format!("{host} {what}");
    let ios = [full("read.ios"), full("write.ios")];
    let label_ios = chart("device I/Os");
    let points = summed(run, ios.iter().cloned());
    drawing.points((&full("ios"), short, LAYER, "1/s", &label_ios), &points);
    let bytes = summed(run, ["read.bytes", "write.bytes"].into_iter().map(full));
    drawing.points((&full("bytes"), short, LAYER, "bytes/s", &chart("device bandwidth")), &bytes);
    for (what, title) in [("queue", "device queue time"), ("service", "device service time")] {
        let points = per_request(run, &full(what), &ios);
        drawing.points((&full(what), short, LAYER, "ns", &chart(title)), &points);
    }
    let names = ["read", "write"].map(|operation| format!("device.{device}.{operation}"));
    let rows = run
        .histograms
        .iter()
        .filter(|row| row.scope == histogram_scope::CLUSTER && names.contains(&row.name));
    let rows: Vec<(f64, &StoredHistogram)> =
        rows.map(|row| (middle(row.interval), &row.histogram)).collect();
    let title = chart("device latency p99");
    let label: Label<'_> = (&full("p99"), short, LAYER, "ns", &title);
    drawing.quantiles(&[(label, 0.99)], rows.into_iter());
}

fn draw_volumes(run: &ObservedRun, drawing: &mut Drawing) {
    let Some(ticks) = run.sources.get(source::DATASTORE) else { return };
    let volumes: Vec<String> = ticks
        .names()
        .filter_map(|name| name.strip_prefix("cluster.volume.")?.strip_suffix(".available"))
        .map(str::to_string)
        .collect();
    for volume in volumes {
        let of = |what: &str| series(run, &format!("cluster.volume.{volume}.{what}"));
        for (what, unit, factor, title) in [
            ("errors", "1/s", 1.0, "I/O errors"),
            ("congestion.delay", "share", 1e-9, "congestion delay"),
        ] {
            let Some(series) = of(what).filter(|series| any(&series.rates())) else { continue };
            let name = format!("cluster.volume.{volume}.{what}");
            let title = format!("{volume}: {title}");
            drawing.rate((&name, &title, LAYER, unit, "volume"), Some(series), factor);
        }
    }
}

/// What emulating cost the host.
fn draw_server(run: &ObservedRun, drawing: &mut Drawing) {
    let label = ("datastore.cpu", "Emulation, whole process", LAYER, "cores", "cost of emulation");
    drawing.rate(label, series(run, "server.cpu"), 1e-9);
}
