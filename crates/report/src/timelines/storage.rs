//! Time lines of the storage below the server: volumes as the host sees them, and what the datastore says itself.

use std::collections::BTreeMap;

use underlay_record::conventions::{histogram_scope, source};

use super::{Drawing, histogram_rows};
use crate::observed::{CountedDevice, ObservedRun, counted_devices};

/// What the block layer says of each volume that was used, and of devices that volumes share.
pub(super) fn draw_volumes(run: &ObservedRun, drawing: &mut Drawing) {
    for device in counted_devices(run) {
        let touched = ["read", "write"].iter().any(|operation| {
            let ios = run.series(source::BLOCK, &format!("{}.{operation}.ios", device.prefix));
            ios.is_some_and(|ios| ios.steps().any(|(_, _, by)| by > 0.0))
        });
        if !touched {
            continue;
        }
        for operation in ["read", "write"] {
            draw_operation(run, drawing, &device, operation);
        }
        let name = format!("volume.{}.queue", key(&device));
        let series = run.series(source::BLOCK, &format!("{}.queue_time", device.prefix));
        let title = format!("{}: outstanding", device.name);
        drawing.rate((&name, &title, "block", "requests", "volume queue"), series, 1e-3);
    }
}

/// The device's name within the names of series.
fn key(device: &CountedDevice) -> String {
    device.name.replace(", ", "-").replace(' ', "-")
}

fn draw_operation(
    run: &ObservedRun,
    drawing: &mut Drawing,
    device: &CountedDevice,
    operation: &str,
) {
    let field =
        |field: &str| run.series(source::BLOCK, &format!("{}.{operation}.{field}", device.prefix));
    let volume = key(device);
    let title = format!("{}: {operation}s", device.name);
    let name = format!("volume.{volume}.{operation}_iops");
    drawing.rate((&name, &title, "block", "1/s", "volume IOPS"), field("ios"), 1.0);
    let name = format!("volume.{volume}.{operation}_bytes");
    drawing.rate((&name, &title, "block", "bytes/s", "volume bytes"), field("sectors"), 512.0);
    let (Some(time), Some(ios)) = (field("time"), field("ios")) else { return };
    let times: BTreeMap<u64, f64> =
        time.steps().map(|(_, to, ms)| (to.to_bits(), ms * 1e6)).collect();
    let points: Vec<(f64, f64)> = ios
        .steps()
        .filter(|(_, _, ios)| *ios > 0.0)
        .filter_map(|(from, to, ios)| Some(((from + to) / 2.0, times.get(&to.to_bits())? / ios)))
        .collect();
    let name = format!("volume.{volume}.{operation}_latency");
    drawing.points((&name, &title, "block", "ns", "volume latency"), &points);
}

/// What the datastore says of its own latencies.
pub(super) fn draw_datastore(run: &ObservedRun, drawing: &mut Drawing) {
    let mut names: Vec<&str> = run
        .histograms
        .iter()
        .filter(|row| row.scope == histogram_scope::DATASTORE)
        .map(|row| row.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let series = ["p50", "p99"].map(|word| format!("datastore.{name}.{word}"));
        let titles = ["p50", "p99"].map(|word| format!("{} {word}", name.replace('.', ": ")));
        let label = |i: usize| (&*series[i], &*titles[i], "datastore", "ns", "datastore latency");
        let rows = histogram_rows(run, histogram_scope::DATASTORE, name);
        drawing.quantiles(&[(label(0), 0.5), (label(1), 0.99)], rows);
    }
}
