//! Time lines of the storage below the server: volumes as the host sees them, and what the datastore says itself.

use std::collections::BTreeMap;

use underlay_record::conventions::{histogram_scope, source};

use super::drawing::{Drawing, histogram_rows};
use crate::observed::{CountedDevice, ObservedRun, counted_devices};

const OPERATIONS: [&str; 2] = ["read", "write"];

/// What the block layer says of each volume that was used, and of devices that volumes share.
pub(super) fn draw_volumes(run: &ObservedRun, drawing: &mut Drawing) {
    let mut used = [Vec::new(), Vec::new()];
    for device in counted_devices(run) {
        let counted = OPERATIONS.map(|operation| seconds(run, &device, operation));
        if counted.iter().flatten().all(|second| second.ios == 0.0) {
            continue;
        }
        for (operation, counted) in OPERATIONS.iter().zip(&counted) {
            let name = format!("volume.{}.{operation}", key(&device));
            let title = format!("{}: {operation}s", device.name);
            draw_seconds(&name, &title, "volume", counted, drawing);
        }
        for (used, counted) in used.iter_mut().zip(counted) {
            used.extend((!counted.is_empty()).then_some(counted));
        }
        let name = format!("volume.{}.queue", key(&device));
        let series = run.series(source::BLOCK, &format!("{}.queue_time", device.prefix));
        let title = format!("{}: outstanding", device.name);
        drawing.rate((&name, &title, "block", "requests", "volume queue"), series, 1e-3);
    }
    // Of one device the total is the device.
    for (operation, used) in OPERATIONS.iter().zip(&used).filter(|(_, used)| used.len() > 1) {
        let (name, title) = (format!("volumes.{operation}"), format!("all volumes: {operation}s"));
        draw_seconds(&name, &title, "all volumes", &total(used), drawing);
    }
}

/// The device's name within the names of series.
fn key(device: &CountedDevice) -> String {
    device.name.replace(", ", "-").replace(' ', "-")
}

/// What requests of one kind did in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Second {
    from: f64,
    to: f64,
    ios: f64,
    bytes: f64,
    /// Of all requests together, nanoseconds.
    time_ns: f64,
}

/// The seconds in which all three counters were read.
fn seconds(run: &ObservedRun, device: &CountedDevice, operation: &str) -> Vec<Second> {
    let field = |field: &str| {
        let series = run.series(source::BLOCK, &format!("{}.{operation}.{field}", device.prefix));
        let steps = series.into_iter().flat_map(|series| series.steps().collect::<Vec<_>>());
        steps.map(|(from, to, by)| (to.to_bits(), (from, by))).collect::<BTreeMap<_, _>>()
    };
    let (ios, sectors, time) = (field("ios"), field("sectors"), field("time"));
    let second = |(to, (from, ios)): (&u64, &(f64, f64))| {
        let (bytes, time_ns) = (sectors.get(to)?.1 * 512.0, time.get(to)?.1 * 1e6);
        Some(Second { from: *from, to: f64::from_bits(*to), ios: *ios, bytes, time_ns })
    };
    ios.iter().filter_map(second).collect()
}

/// The sum over devices, of the seconds that all of them have.
fn total(of_devices: &[Vec<Second>]) -> Vec<Second> {
    let mut sums: BTreeMap<u64, (usize, Second)> = BTreeMap::new();
    for second in of_devices.iter().flatten() {
        let (devices, sum) = sums.entry(second.to.to_bits()).or_default();
        *devices += 1;
        *sum = Second {
            ios: sum.ios + second.ios,
            bytes: sum.bytes + second.bytes,
            time_ns: sum.time_ns + second.time_ns,
            ..*second
        };
    }
    let of_all = sums.into_values().filter(|(devices, _)| *devices == of_devices.len());
    of_all.map(|(_, sum)| sum).collect()
}

/// Requests, bytes, latency and size of requests: `NAME_iops`, `NAME_bytes`, `NAME_latency` and `NAME_size`.
fn draw_seconds(name: &str, title: &str, group: &str, counted: &[Second], drawing: &mut Drawing) {
    let mut draw = |what: &str, unit: &str, value: &dyn Fn(&Second) -> f64| {
        let points: Vec<(f64, f64)> =
            counted.iter().map(|it| ((it.from + it.to) / 2.0, value(it))).collect();
        let group = format!("{group} {}", if what == "iops" { "IOPS" } else { what });
        drawing.points((&format!("{name}_{what}"), title, "block", unit, &group), &points);
    };
    draw("iops", "1/s", &|it| it.ios / (it.to - it.from));
    draw("bytes", "bytes/s", &|it| it.bytes / (it.to - it.from));
    // A second without a request has neither; what is not finite is not drawn.
    draw("latency", "ns", &|it| it.time_ns / it.ios);
    draw("size", "bytes", &|it| it.bytes / it.ios);
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

#[cfg(test)]
mod tests {
    use super::{Second, total};

    #[test]
    fn a_total_has_the_seconds_that_all_devices_have() {
        let second = |to: f64, ios: f64| Second {
            from: to - 1.0,
            to,
            ios,
            bytes: 8192.0 * ios,
            time_ns: 1e5 * ios,
        };
        let data = vec![second(1.0, 10.0), second(2.0, 20.0), second(3.0, 30.0)];
        let log = vec![second(2.0, 1.0), second(3.0, 0.0), second(4.0, 3.0)];
        assert_eq!(total(&[data, log]), [second(2.0, 21.0), second(3.0, 30.0)]);
    }
}
