//! Backups and restores of a run, as its outcome lists them, with what the storage did meanwhile.
//!
//! Nothing in here fails: what the document does not say is absent.

use serde_json::{Value, json};
use underlay_core::Nanos;
use underlay_record::conventions::{document, event};
use underlay_record::{Event, Interval};

use super::run::ObservedRun;
use super::volume_facts::requests_of_volume;
use super::window::MeasuredWindow;
use crate::wording::amount;

/// One backup or restore.
#[derive(Clone, Debug)]
pub(crate) struct ObservedOperation {
    /// Position of the run.
    pub(crate) run: usize,
    pub(crate) design: usize,
    /// `backup` or `restore`.
    pub(crate) kind: String,
    /// From 1.
    pub(crate) cycle: u32,
    pub(crate) interval: Interval,
    /// What it wrote.
    pub(crate) bytes: u64,
    /// Mean time of a read of the volume that it read, nanoseconds.
    pub(crate) read_latency_ns: Option<f64>,
    /// Mean time of a write to the volume that it wrote, nanoseconds.
    pub(crate) write_latency_ns: Option<f64>,
    /// Mean time of all these reads and writes, nanoseconds.
    io_latency_ns: Option<f64>,
}

impl ObservedOperation {
    pub(crate) fn seconds(&self) -> f64 {
        self.interval.seconds()
    }

    /// `None` of what took no time.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.bytes as f64 / seconds)
    }
}

/// All of a run, in their order; none of a run without.
pub(crate) fn operations(run: &ObservedRun) -> Vec<ObservedOperation> {
    let said = run.documents.get(document::OUTCOME).map(|said| &said["operations"]);
    let list = said.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|said| operation(run, said)).collect()
}

fn operation(run: &ObservedRun, said: &Value) -> Option<ObservedOperation> {
    let kind = said["kind"].as_str()?.to_string();
    let interval =
        Interval { begin: Nanos(said["begin_ns"].as_u64()?), end: Nanos(said["end_ns"].as_u64()?) };
    let (read, written) = if kind == "restore" { ("backup", "data") } else { ("data", "backup") };
    let window = MeasuredWindow { run, users: 1, interval };
    let reads = requests_of_volume(&window, read, "read");
    let writes = requests_of_volume(&window, written, "write");
    Some(ObservedOperation {
        run: run.position,
        design: run.run.design as usize,
        cycle: u32::try_from(said["cycle"].as_u64()?).ok()?,
        bytes: said["bytes"].as_u64()?,
        read_latency_ns: reads.map(|(_, latency)| latency),
        write_latency_ns: writes.map(|(_, latency)| latency),
        io_latency_ns: weighted_mean(reads.into_iter().chain(writes)),
        kind,
        interval,
    })
}

/// Mean of values with their weights.
fn weighted_mean(weighted: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut weights, mut sum) = (0.0, 0.0);
    for (weight, value) in weighted {
        weights += weight;
        sum += weight * value;
    }
    (weights > 0.0).then(|| sum / weights)
}

/// Mean time of an I/O of all operations of a kind: each operation counts by the time that it took.
pub(super) fn latency_of_operations(run: &ObservedRun, kind: &str) -> Option<f64> {
    let of_kind = operations(run).into_iter().filter(|operation| operation.kind == kind);
    weighted_mean(of_kind.filter_map(|one| Some((one.seconds(), one.io_latency_ns?))))
}

/// The same as events of the run, for its time line: `backup 1: 265 s, 593 MB/s`.
pub(crate) fn operation_events(run: &ObservedRun) -> Vec<Event> {
    let event = |operation: ObservedOperation| Event {
        run: Some(run.run.id),
        at: operation.interval.begin,
        kind: event::OPERATION.to_string(),
        text: format!(
            "{} {}: {} s{}",
            operation.kind,
            operation.cycle,
            amount(operation.seconds()),
            operation
                .bytes_per_second()
                .map_or_else(String::new, |rate| format!(", {} MB/s", amount(rate / 1e6)))
        ),
        data: json!({ "until_ns": operation.interval.end.0 }),
    };
    operations(run).into_iter().map(event).collect()
}
