//! What is measured of a volume, a host, a disk group, a device, and the cluster as a whole.
//!
//! Each list of names is followed by the function that gives the values in the same order; [`super::Catalogue`] checks
//! that they are as many.

use super::emulator_status::EmulatorStatus;
use crate::cluster::{Cluster, DeviceId, HostUse, ResyncReason, ResyncStatus, VolumeId};
use crate::disk_group::{ClassCounters, GroupCounters, MemberCounters, QueueCounters};
use crate::reduction::Space;
use crate::scheduler::IoClass;
use underlay_core::series::SeriesKind::{self, Counter, Gauge};

/// Last part of a name, unit, kind.
pub(super) type Measure = (String, &'static str, SeriesKind);

fn named(measures: &[(&str, &'static str, SeriesKind)]) -> Vec<Measure> {
    measures.iter().map(|(name, unit, kind)| (name.to_string(), *unit, *kind)).collect()
}

/// Of a volume, in addition to what its clients see.
pub(super) fn volume() -> Vec<Measure> {
    named(&[
        ("errors", "ios", Counter),
        ("congestion.ios", "ios", Counter),
        ("congestion.delay", "ns", Counter),
        ("limit.normalised", "ios", Counter),
        ("limit.delayed", "ios", Counter),
        ("outstanding", "ios", Gauge),
        ("available", "yes-no", Gauge),
    ])
}

pub(super) fn volume_values(cluster: &Cluster, volume: VolumeId) -> Option<Vec<f64>> {
    let it = cluster.volume_counters(volume)?;
    let counted = [it.errors, it.congested, it.congestion_ns, it.normalised, it.normalised_delayed];
    let mut values: Vec<f64> = counted.iter().map(|value| *value as f64).collect();
    values.extend([f64::from(it.outstanding), yes_no(cluster.is_available(volume))]);
    Some(values)
}

/// Of the requests of one class.
const REQUESTS: [(&str, &str, SeriesKind); 10] = [
    ("read.ios", "ios", Counter),
    ("read.bytes", "bytes", Counter),
    ("write.ios", "ios", Counter),
    ("write.bytes", "bytes", Counter),
    ("errors", "ios", Counter),
    ("delayed", "ios", Counter),
    ("queue", "ns", Counter),
    ("service", "ns", Counter),
    ("outstanding", "ios", Gauge),
    ("outstanding-bytes", "bytes", Gauge),
];

fn request_values(it: &ClassCounters) -> [f64; 10] {
    [
        it.reads,
        it.read_bytes,
        it.writes,
        it.written_bytes,
        it.errors,
        it.delayed,
        it.queue_ns,
        it.service_ns,
        it.outstanding,
        it.outstanding_bytes,
    ]
    .map(|value| value as f64)
}

/// The classes whose requests a cluster gives to its groups; metadata and namespace are known at the devices only.
const REQUESTING: [IoClass; 2] = [IoClass::Vm, IoClass::Resync];

fn requests() -> Vec<Measure> {
    let of = |class: IoClass| {
        REQUESTS.map(|(name, unit, kind)| (format!("{}.{name}", class.as_str()), unit, kind))
    };
    REQUESTING.into_iter().flat_map(of).collect()
}

/// Of a host: the requests to all its disk groups.
pub(super) fn host() -> Vec<Measure> {
    let mut measures = requests();
    measures.extend(named(&[
        ("reachable", "yes-no", Gauge),
        ("stack.busy", "ns", Counter),
        ("send.busy", "ns", Counter),
        ("receive.busy", "ns", Counter),
    ]));
    measures
}

pub(super) fn host_values(groups: &[&GroupCounters], reachable: bool, used: HostUse) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for class in REQUESTING {
        let mut total = [0.0; 10];
        for group in groups {
            let more = request_values(&group.classes[class.index()]);
            total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
        }
        values.extend(total);
    }
    values.push(yes_no(reachable));
    let busy = [used.stack_busy, used.send_busy, used.receive_busy];
    values.extend(busy.map(|busy| busy.0 as f64));
    values
}

/// Of a disk group.
pub(super) fn group() -> Vec<Measure> {
    let mut measures = requests();
    for word in QueueCounters::WORDS {
        for (name, unit, kind) in [
            ("ios", "ios", Counter),
            ("bytes", "bytes", Counter),
            ("wait", "ns", Counter),
            ("service", "ns", Counter),
            ("waiting", "ios", Gauge),
        ] {
            measures.push((format!("queue.{word}.{name}"), unit, kind));
        }
    }
    measures.extend(named(&[
        ("congestion", "of-255", Gauge),
        ("buffer.free", "percent", Gauge),
        ("buffer.fill", "bytes", Gauge),
        ("buffer.admitted", "bytes", Counter),
        ("buffer.destaged", "bytes", Counter),
        ("buffer.overwritten", "bytes", Counter),
        ("buffer.discarded", "bytes", Counter),
        ("buffer.reads.hit", "ios", Counter),
        ("buffer.reads.partly-hit", "ios", Counter),
        ("buffer.reads.missed", "ios", Counter),
        ("elevator.running", "yes-no", Gauge),
        ("elevator.runs", "ios", Counter),
        ("elevator.failures", "ios", Counter),
    ]));
    measures
}

pub(super) fn group_values(it: &GroupCounters) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for class in REQUESTING {
        values.extend(request_values(&it.classes[class.index()]));
    }
    for queue in 0..QueueCounters::WORDS.len() {
        let mut total = [0u64; 5];
        for member in &it.members {
            let queue = &member.queues[queue];
            let more = [queue.ios, queue.bytes, queue.queue_ns, queue.service_ns, queue.waiting];
            total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
        }
        values.extend(total.map(|value| value as f64));
    }
    let buffer = &it.write_buffer;
    let account = &buffer.account;
    values.extend([f64::from(it.congestion), buffer.free_percent]);
    let counted = [
        account.buffered_bytes,
        account.admitted_bytes,
        account.destaged_bytes,
        account.overwritten_bytes,
        account.discarded_bytes,
        buffer.read_hits,
        buffer.read_partial_hits,
        buffer.read_misses,
        u64::from(buffer.elevator_is_running),
        buffer.elevator_runs,
        buffer.elevator_failures,
    ];
    values.extend(counted.map(|value| value as f64));
    values
}

/// Of deduplication and compression, of a group or of all of them.
pub(super) fn reduction() -> Vec<Measure> {
    named(&[
        ("reduction.logical", "bytes", Gauge),
        ("reduction.unique", "bytes", Gauge),
        ("reduction.stored", "bytes", Gauge),
        ("reduction.dedupe-ratio", "ratio", Gauge),
        ("reduction.compression-ratio", "ratio", Gauge),
    ])
}

pub(super) fn reduction_values(space: &Space) -> [f64; 5] {
    [
        space.logical_bytes as f64,
        space.unique_bytes as f64,
        space.stored_bytes as f64,
        space.dedupe_ratio(),
        space.compression_ratio(),
    ]
}

/// Of a device; the last one only of capacity devices.
pub(super) fn device(device: DeviceId) -> Vec<Measure> {
    let mut measures = named(&[
        ("read.ios", "ios", Counter),
        ("read.bytes", "bytes", Counter),
        ("write.ios", "ios", Counter),
        ("write.bytes", "bytes", Counter),
        ("queue", "ns", Counter),
        ("service", "ns", Counter),
        ("errors", "ios", Counter),
        ("outstanding", "ios", Gauge),
        ("failed", "yes-no", Gauge),
    ]);
    if device.member > 0 {
        measures.extend(named(&[("used", "bytes", Gauge)]));
    }
    measures
}

pub(super) fn device_values(
    it: &MemberCounters,
    has_failed: bool,
    used_bytes: Option<u64>,
) -> Vec<f64> {
    let waiting: u64 = it.queues.iter().map(|queue| queue.waiting).sum();
    let counted = [
        it.reads,
        it.read_bytes,
        it.writes,
        it.written_bytes,
        it.queue_ns,
        it.service_ns,
        it.errors,
        waiting + u64::from(it.under_way),
    ];
    let mut values: Vec<f64> = counted.iter().map(|value| *value as f64).collect();
    values.push(yes_no(has_failed));
    values.extend(used_bytes.map(|bytes| bytes as f64));
    values
}

/// Of the cluster: what is copied, and what was found broken.
pub(super) fn cluster() -> Vec<Measure> {
    let mut measures = Vec::new();
    for reason in ResyncReason::ALL {
        let word = reason.as_str();
        measures.push((format!("resync.{word}.bytes"), "bytes", Counter));
        measures.push((format!("resync.{word}.ios"), "ios", Counter));
        measures.push((format!("resync.{word}.left"), "bytes", Gauge));
    }
    measures.extend(named(&[
        ("components.impaired", "components", Gauge),
        ("resync.active", "components", Gauge),
        ("resync.waiting", "components", Gauge),
        ("resync.time-left", "ns", Gauge),
        ("resync.slowdown", "ratio", Gauge),
        ("resync.repair-in", "ns", Gauge),
        ("clock.behind", "ns", Counter),
        ("data.repaired", "blocks", Counter),
        ("data.lost", "blocks", Counter),
    ]));
    measures
}

pub(super) fn cluster_values(
    resync: &ResyncStatus,
    impaired: usize,
    status: &EmulatorStatus,
) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for reason in 0..ResyncReason::ALL.len() {
        let of = [resync.copied_bytes[reason], resync.slices[reason], resync.bytes_left[reason]];
        values.extend(of.map(|value| value as f64));
    }
    // The cluster's clock differs from the clock of the user who waits for the end.
    let slowdown = status.slowdown.unwrap_or(1.0);
    let time_left = resync.time_left.map_or(0.0, |left| left.0 as f64 * slowdown);
    let repair_in = resync.repair_in.map_or(0.0, |left| left.0 as f64);
    values.push(impaired as f64);
    values.extend([f64::from(resync.active), f64::from(resync.suspended), time_left]);
    values.extend([slowdown, repair_in, status.behind.0 as f64]);
    values.extend([status.repaired_blocks as f64, status.lost_blocks as f64]);
    values
}

/// Of the counting of reduced blocks itself.
pub(super) fn counting() -> Vec<Measure> {
    named(&[("reduction.uncounted", "blocks", Gauge), ("reduction.recalling", "components", Gauge)])
}

pub(super) const fn yes_no(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{cluster, cluster_values};
    use crate::cluster::ResyncStatus;
    use crate::performance::EmulatorStatus;
    use underlay_core::Nanos;

    #[test]
    fn the_end_of_copying_is_told_by_the_clock_of_whoever_waits() {
        let resync =
            ResyncStatus { time_left: Some(Nanos::from_secs(10)), ..ResyncStatus::default() };
        let told = |slowdown| {
            let status = EmulatorStatus { slowdown, behind: Nanos(7), ..EmulatorStatus::default() };
            let values = cluster_values(&resync, 0, &status);
            let names = cluster();
            assert_eq!(names.len(), values.len());
            let of = |wanted: &str| {
                let place = names.iter().position(|(name, ..)| name == wanted);
                values[place.expect("it is measured")]
            };
            (of("resync.time-left"), of("resync.slowdown"), of("clock.behind"))
        };
        assert_eq!(told(None), (10e9, 1.0, 7.0));
        assert_eq!(told(Some(2.5)), (25e9, 2.5, 7.0));
    }
}
