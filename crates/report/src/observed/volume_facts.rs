//! What the volumes did in a measured window, as the kernel's block layer and as the datastore saw it.
//!
//! Absent sources give `None`, never zero.

use std::collections::{BTreeMap, BTreeSet};

use underlay_core::Histogram;
use underlay_record::conventions::{histogram_scope, source};

use super::devices::{CountedDevice, SharedDevice, counted_devices};
use super::window::{MeasuredWindow, per};

/// Bytes of a sector in the kernel's statistics, whatever the device's sector is.
const SECTOR_BYTES: f64 = 512.0;

const NS_PER_MS: f64 = 1e6;

/// One volume, as the kernel's block layer and as the datastore saw it; or a device that volumes share.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeFacts {
    /// Metric name -> number.
    pub(crate) metrics: BTreeMap<&'static str, Option<f64>>,
    /// Whose the numbers of the block layer are, if not the volume's.
    pub(crate) shared: Option<SharedDevice>,
}

/// The volumes of a window, by name, and the devices that volumes share.
pub(super) fn volumes(window: &MeasuredWindow<'_>) -> BTreeMap<String, VolumeFacts> {
    let devices = counted_devices(window.run);
    let of_datastore = window.histograms().filter(|row| row.scope == histogram_scope::DATASTORE);
    let mut names: BTreeSet<String> =
        of_datastore.filter_map(|row| Some(row.name.split_once('.')?.0.to_string())).collect();
    names.extend(devices.iter().map(|device| device.name.clone()));
    names
        .into_iter()
        .map(|name| {
            let device = devices.iter().find(|device| device.name == name);
            let facts = volume(window, &name, device);
            (name, facts)
        })
        .collect()
}

/// Requests per second of an operation (`read`, `write`) of a volume, or of the device that it shares, and their mean time in
/// nanoseconds.
pub(super) fn requests_of_volume(
    window: &MeasuredWindow<'_>,
    name: &str,
    operation: &str,
) -> Option<(f64, f64)> {
    let devices = counted_devices(window.run);
    let shares = |device: &&CountedDevice| {
        device.shared.as_ref().is_some_and(|shared| shared.volumes.iter().any(|on| on == name))
    };
    let device =
        devices.iter().find(|device| device.name == name).or_else(|| devices.iter().find(shares));
    let metrics = volume(window, name, device).metrics;
    let of =
        |metric: &str| metrics.get(format!("{operation}_{metric}").as_str()).copied().flatten();
    let of_block_layer = of("iops").zip(of("latency_ns"));
    of_block_layer.or_else(|| {
        let seen =
            window.merged_histogram(histogram_scope::DATASTORE, &format!("{name}.{operation}"));
        Some((per(seen.count() as f64, window.interval.seconds())?, seen.mean()?))
    })
}

fn volume(
    window: &MeasuredWindow<'_>,
    volume: &str,
    device: Option<&CountedDevice>,
) -> VolumeFacts {
    let rate = |field: &str| window.rate(source::BLOCK, &format!("{}.{field}", device?.prefix));
    let latency = |operation: &str| {
        let ios = rate(&format!("{operation}.ios"))?;
        per(rate(&format!("{operation}.time"))? * NS_PER_MS, ios)
    };
    let bytes = |operation: &str| Some(rate(&format!("{operation}.sectors"))? * SECTOR_BYTES);
    let datastore = |operation: &str| {
        window.merged_histogram(histogram_scope::DATASTORE, &format!("{volume}.{operation}"))
    };
    let (reads, writes, flushes) = (datastore("read"), datastore("write"), datastore("flush"));
    let quantile = |histogram: &Histogram, q| histogram.quantile(q).map(|ns| ns as f64);
    let metrics = BTreeMap::from([
        ("read_iops", rate("read.ios")),
        ("write_iops", rate("write.ios")),
        ("flush_iops", rate("flush.ios")),
        ("read_bytes_per_second", bytes("read")),
        ("write_bytes_per_second", bytes("write")),
        ("read_latency_ns", latency("read")),
        ("write_latency_ns", latency("write")),
        ("flush_latency_ns", latency("flush")),
        // Milliseconds of waiting per second, over 1000, are requests outstanding.
        ("queue_length", rate("queue_time").map(|ms| ms / 1e3)),
        ("datastore_read_mean_ns", reads.mean()),
        ("datastore_read_p50_ns", quantile(&reads, 0.5)),
        ("datastore_read_p99_ns", quantile(&reads, 0.99)),
        ("datastore_write_mean_ns", writes.mean()),
        ("datastore_write_p50_ns", quantile(&writes, 0.5)),
        ("datastore_write_p99_ns", quantile(&writes, 0.99)),
        ("datastore_flush_p50_ns", quantile(&flushes, 0.5)),
        ("datastore_flush_p99_ns", quantile(&flushes, 0.99)),
    ]);
    VolumeFacts { metrics, shared: device.and_then(|device| device.shared.clone()) }
}
