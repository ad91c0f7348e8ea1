//! Time lines of the storage below the server: volumes as the host sees them, and what the datastore says itself.

use std::collections::BTreeMap;

use underlay_record::conventions::{histogram_scope, source};

use super::{Drawing, histogram_rows};
use crate::observed::ObservedRun;

/// What the block layer says of each volume that was used.
pub(super) fn draw_volumes(run: &ObservedRun, drawing: &mut Drawing) {
    let Some(ticks) = run.sources.get(source::BLOCK) else { return };
    let mut volumes: Vec<&str> =
        ticks.names().filter_map(|name| name.strip_prefix("volume.")?.split('.').next()).collect();
    volumes.dedup();
    let touched = |volume: &&str| {
        ["read", "write"].iter().any(|operation| {
            let ios = run.series(source::BLOCK, &format!("volume.{volume}.{operation}.ios"));
            ios.is_some_and(|ios| ios.steps().any(|(_, _, by)| by > 0.0))
        })
    };
    for volume in volumes.into_iter().filter(touched) {
        for operation in ["read", "write"] {
            draw_operation(run, drawing, volume, operation);
        }
        let name = format!("volume.{volume}.queue");
        let series = run.series(source::BLOCK, &format!("volume.{volume}.queue_time"));
        let title = format!("{volume}: outstanding");
        drawing.rate((&name, &title, "block", "requests", "volume queue"), series, 1e-3);
    }
}

fn draw_operation(run: &ObservedRun, drawing: &mut Drawing, volume: &str, operation: &str) {
    let field =
        |field: &str| run.series(source::BLOCK, &format!("volume.{volume}.{operation}.{field}"));
    let title = format!("{volume}: {operation}s");
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
        .filter_map(|(_, to, ios)| Some((to, times.get(&to.to_bits())? / ios)))
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
