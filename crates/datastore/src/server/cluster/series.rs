//! Counters of a cluster under stable names: volumes, hosts, disk groups, capacity devices, copying.
//!
//! Names follow the published performance service where it has one (congestion, normalised I/O, resync by reason). The list is
//! fixed at the start of a server: volumes that come later have counters of their own at the export, not here.

use underlay_model::cluster::{Cluster, ComponentRole, ComponentState, ResyncReason, VolumeId};

use super::journal::Journal;
use crate::control::SeriesEntry;

/// What is counted, and of what.
#[derive(Debug)]
pub(crate) struct ClusterSeries {
    volumes: Vec<(String, VolumeId)>,
    devices: Vec<String>,
}

impl ClusterSeries {
    /// The series of a cluster as it is now.
    pub(crate) fn of(cluster: &Cluster) -> ClusterSeries {
        let volume = |id| cluster.volume_status(id).map(|status| (status.name, id));
        ClusterSeries {
            volumes: cluster.volumes().filter_map(volume).collect(),
            devices: cluster.devices().map(|it| cluster.device_name(it.device)).collect(),
        }
    }

    /// Names and units.
    pub(crate) fn declare(&self) -> Vec<SeriesEntry> {
        let mut series = Vec::new();
        let mut counter = |name: String, unit: &str| series.push(SeriesEntry::counter(name, unit));
        for (name, _) in &self.volumes {
            let prefix = format!("cluster.volume.{name}");
            counter(format!("{prefix}.errors"), "ios");
            counter(format!("{prefix}.congestion.ios"), "ios");
            counter(format!("{prefix}.congestion.delay"), "ns");
            counter(format!("{prefix}.limit.normalised"), "ios");
            counter(format!("{prefix}.limit.delayed"), "ios");
        }
        for reason in ResyncReason::ALL {
            counter(format!("cluster.resync.{}.bytes", reason.as_str()), "bytes");
            counter(format!("cluster.resync.{}.ios", reason.as_str()), "ios");
        }
        counter("cluster.data.repaired".to_string(), "blocks");
        counter("cluster.data.lost".to_string(), "blocks");
        let mut gauge = |name: String, unit: &str| series.push(SeriesEntry::gauge(name, unit));
        for (name, _) in &self.volumes {
            gauge(format!("cluster.volume.{name}.outstanding"), "ios");
            gauge(format!("cluster.volume.{name}.available"), "yes-no");
        }
        for name in &self.devices {
            gauge(format!("cluster.device.{name}.used"), "bytes");
            gauge(format!("cluster.device.{name}.failed"), "yes-no");
        }
        for reason in ResyncReason::ALL {
            gauge(format!("cluster.resync.{}.left", reason.as_str()), "bytes");
        }
        gauge("cluster.components.impaired".to_string(), "components");
        gauge("cluster.resync.active".to_string(), "components");
        gauge("cluster.resync.waiting".to_string(), "components");
        gauge("cluster.resync.time-left".to_string(), "ns");
        series
    }

    /// Values in the order of [`ClusterSeries::declare`].
    pub(crate) fn values(&self, cluster: &Cluster, journal: &Journal) -> Vec<f64> {
        let mut values = Vec::new();
        for (_, id) in &self.volumes {
            let counted = cluster.volume_counters(*id).map_or([0; 5], |it| {
                [it.errors, it.congested, it.congestion_ns, it.normalised, it.normalised_delayed]
            });
            values.extend(counted.map(|value| value as f64));
        }
        let resync = cluster.resync_status();
        for (bytes, slices) in resync.copied_bytes.iter().zip(resync.slices) {
            values.extend([*bytes as f64, slices as f64]);
        }
        values.extend([journal.repaired as f64, journal.lost as f64]);
        for (_, id) in &self.volumes {
            let outstanding = cluster.volume_counters(*id).map_or(0, |it| it.outstanding);
            let available = cluster.volume_status(*id).is_some_and(|status| status.available);
            values.extend([f64::from(outstanding), f64::from(u8::from(available))]);
        }
        let devices = cluster.devices().take(self.devices.len());
        for device in devices {
            values.extend([device.used.0 as f64, f64::from(u8::from(device.failed))]);
        }
        values.extend(resync.bytes_left.map(|bytes| bytes as f64));
        values.push(impaired(cluster) as f64);
        let time_left = resync.time_left.map_or(0.0, |left| left.0 as f64);
        values.extend([f64::from(resync.active), f64::from(resync.suspended), time_left]);
        values
    }
}

/// Components that are not what their volumes count on: not reachable, failed, old, or being filled.
fn impaired(cluster: &Cluster) -> usize {
    let volumes = cluster.volumes().filter_map(|id| cluster.volume_status(id));
    volumes
        .flat_map(|volume| volume.components)
        .filter(|component| {
            component.role == ComponentRole::Current && component.state != ComponentState::Active
        })
        .count()
}
