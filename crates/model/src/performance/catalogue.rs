//! All measured objects of a cluster, in an order that never changes: new ones are added at the end, and removed ones keep
//! their position without values.

use super::emulator_status::EmulatorStatus;
use super::measures::{self, Measure};
use crate::cluster::{Cluster, DeviceId, GroupId, HostId, VolumeId};
use crate::disk_group::GroupCounters;
use std::collections::HashMap;
use underlay_core::series::SeriesSpec;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Cluster,
    Host(HostId),
    Group(GroupId),
    Reduction(GroupId),
    Reductions,
    Device(DeviceId),
    Volume(VolumeId),
}

/// The things, and the names of their measures.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    subjects: Vec<(Subject, usize)>,
    series: Vec<SeriesSpec>,
}

/// What is read once for all subjects.
struct Readings {
    groups: Vec<GroupCounters>,
    used: HashMap<DeviceId, u64>,
}

impl Catalogue {
    /// Everything of a cluster as it is now.
    pub fn of(cluster: &Cluster) -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue.update(cluster);
        catalogue
    }

    /// Adds what is new.
    pub fn update(&mut self, cluster: &Cluster) {
        self.add(Subject::Cluster, "cluster", measures::cluster);
        for host in cluster.hosts() {
            let name = format!("cluster.host.{}", cluster.host_name(host).unwrap_or("?"));
            self.add(Subject::Host(host), &name, measures::host);
        }
        let groups: Vec<GroupId> = cluster.groups().map(|(group, _, _)| group).collect();
        for group in groups {
            let name = format!("cluster.group.{}", cluster.group_name(group));
            self.add(Subject::Group(group), &name, measures::group);
            if cluster.reduces(group) {
                self.add(Subject::Reduction(group), &name, measures::reduction);
                self.add(Subject::Reductions, "cluster", || {
                    [measures::reduction(), measures::counting()].concat()
                });
            }
            for device in cluster.devices_of(group) {
                let name = format!("cluster.device.{}", cluster.device_name(device));
                self.add(Subject::Device(device), &name, || measures::device(device));
            }
        }
        for volume in cluster.volumes() {
            let name = format!("cluster.volume.{}", cluster.volume_name(volume).unwrap_or("?"));
            self.add(Subject::Volume(volume), &name, measures::volume);
        }
    }

    fn add(&mut self, subject: Subject, prefix: &str, measures: impl FnOnce() -> Vec<Measure>) {
        if self.subjects.iter().any(|(known, _)| *known == subject) {
            return;
        }
        let measures = measures();
        self.subjects.push((subject, measures.len()));
        let series = measures.into_iter().map(|(name, unit, kind)| SeriesSpec {
            name: format!("{prefix}.{name}"),
            unit: unit.to_string(),
            kind,
        });
        self.series.extend(series);
    }

    /// Names and units. A volume that was removed and made again has its name twice; the later one has the values.
    pub fn series(&self) -> &[SeriesSpec] {
        &self.series
    }

    /// One value per series, at the moment that the cluster has reached; NaN = there is none.
    pub fn values(&self, cluster: &mut Cluster, status: &EmulatorStatus) -> Vec<f64> {
        let groups: Vec<GroupId> = cluster.groups().map(|(group, _, _)| group).collect();
        let readings = Readings {
            groups: groups.iter().filter_map(|group| cluster.group_counters(*group)).collect(),
            used: cluster.devices().map(|device| (device.device, device.used.0)).collect(),
        };
        let mut values = Vec::with_capacity(self.series.len());
        for (subject, count) in &self.subjects {
            let of = value_of(subject, cluster, &readings, status);
            debug_assert!(of.as_ref().is_none_or(|of| of.len() == *count), "{subject:?}");
            values.extend(of.unwrap_or_else(|| vec![f64::NAN; *count]));
        }
        values
    }
}

fn value_of(
    subject: &Subject,
    cluster: &Cluster,
    readings: &Readings,
    status: &EmulatorStatus,
) -> Option<Vec<f64>> {
    Some(match subject {
        Subject::Cluster => measures::cluster_values(
            &cluster.resync_status(),
            cluster.impaired_components(),
            status,
        ),
        Subject::Host(host) => {
            let all = cluster.groups().zip(&readings.groups);
            let own = all.filter(|((_, of, _), _)| of == host).map(|(_, counters)| counters);
            let used = cluster.host_use(*host)?;
            measures::host_values(&own.collect::<Vec<_>>(), cluster.is_reachable(*host), used)
        }
        Subject::Group(group) => measures::group_values(readings.groups.get(group.0 as usize)?),
        Subject::Reduction(group) => {
            let reduced = status.reduction.as_ref()?;
            let (_, space) = reduced.groups.iter().find(|(of, _)| of == group)?;
            measures::reduction_values(space).to_vec()
        }
        Subject::Reductions => {
            let reduced = status.reduction.as_ref()?;
            let mut values = measures::reduction_values(&reduced.total()).to_vec();
            values.extend([reduced.uncounted_blocks as f64, reduced.recalling as f64]);
            values
        }
        Subject::Device(device) => {
            let group = readings.groups.get(device.group.0 as usize)?;
            let member = group.members.get(usize::from(device.member))?;
            let used = readings.used.get(device).copied();
            measures::device_values(member, cluster.has_failed(*device), used)
        }
        Subject::Volume(volume) => measures::volume_values(cluster, *volume)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Catalogue, EmulatorStatus};
    use crate::cluster::{
        Cluster, ClusterSettings, ClusterSpec, GroupId, HostSpec, NetworkSpec, Policy, Stack,
        VolumeId,
    };
    use crate::disk_group::{DiskGroupSpec, Reduction, ReductionCosts};
    use crate::performance::Reduced;
    use crate::reduction::Space;
    use crate::{Request, RequestId, builtin};
    use std::collections::BTreeMap;
    use underlay_core::{Bytes, Nanos, RootSeed};

    fn cluster() -> Cluster {
        let device = |name: &str| builtin::find(name).expect("built in");
        let host = |index: usize| {
            let capacity = vec![device("dc500m-1920"), device("dc500m-1920")];
            let mut group = DiskGroupSpec::new("g", device("dc1500m-960"), capacity);
            if index == 0 {
                group.reduction = Reduction::DedupeCompress(ReductionCosts::DEFAULT);
            }
            HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
        };
        let spec = ClusterSpec {
            hosts: (0..3).map(host).collect(),
            network: NetworkSpec {
                latency: Nanos::from_micros(50),
                bytes_per_second: 1_250_000_000,
                divisor: 1,
            },
            settings: ClusterSettings {
                stack: Stack { per_io: Nanos::from_micros(7), ..Stack::NONE },
                ..ClusterSettings::default()
            },
        };
        Cluster::new(spec, RootSeed(1)).expect("valid")
    }

    fn read(catalogue: &Catalogue, cluster: &mut Cluster) -> BTreeMap<String, f64> {
        let reduction = Reduced {
            groups: vec![(
                GroupId(0),
                Space {
                    logical_bytes: 8192,
                    unique_bytes: 4096,
                    stored_bytes: 2048,
                    ..Space::default()
                },
            )],
            ..Reduced::default()
        };
        let status = EmulatorStatus {
            lost_blocks: 3,
            reduction: Some(reduction),
            ..EmulatorStatus::default()
        };
        let values = catalogue.values(cluster, &status);
        assert_eq!(values.len(), catalogue.series().len());
        catalogue.series().iter().map(|series| series.name.clone()).zip(values).collect()
    }

    fn create(cluster: &mut Cluster, name: &str) -> VolumeId {
        let volume = cluster.create_volume(Nanos::ZERO, name, Bytes::from_mib(64), Policy::DEFAULT);
        volume.expect("there is room")
    }

    #[test]
    fn what_was_done_is_counted_where_it_was_done() {
        let mut cluster = cluster();
        let volume = create(&mut cluster, "data");
        let catalogue = Catalogue::of(&cluster);
        for at in 0..10u64 {
            let request = Request::write(at * 8192, 8192);
            cluster.submit(Nanos::ZERO, volume, &request, RequestId(at));
        }
        let mut events = Vec::new();
        cluster.advance(Nanos::from_secs(1), &mut events);
        let values = read(&catalogue, &mut cluster);
        let sum = |suffix: &str, prefix: &str| -> f64 {
            let matching =
                |(name, _): &(&String, &f64)| name.starts_with(prefix) && name.ends_with(suffix);
            values.iter().filter(matching).map(|(_, value)| *value).sum()
        };
        // Ten writes on two replicas.
        assert_eq!(sum(".vm.write.ios", "cluster.group."), 20.0);
        assert_eq!(sum(".vm.write.bytes", "cluster.host."), 20.0 * 8192.0);
        assert_eq!(sum("/cache.write.ios", "cluster.device."), 20.0);
        assert_eq!(sum(".queue.vm.ios", "cluster.group."), 20.0);
        assert_eq!(sum(".buffer.admitted", "cluster.group."), 20.0 * 8192.0);
        assert!(sum("/cache.service", "cluster.device.") > 0.0);
        assert_eq!(values["cluster.volume.data.available"], 1.0);
        assert_eq!(values["cluster.host.h1.reachable"], 1.0);
        assert_eq!(values["cluster.data.lost"], 3.0);
        // One copy of each write crosses the network, all of them pass the stack of the host that uses the volume.
        let wire = 10.0 * (8192.0_f64 / 1.25).floor();
        assert_eq!(
            (sum(".send.busy", "cluster.host."), sum(".receive.busy", "cluster.host.")),
            (wire, wire)
        );
        assert_eq!(values["cluster.host.h0.stack.busy"], 10.0 * 2.0 * 7_000.0);
        assert_eq!(values["cluster.host.h1.stack.busy"], 0.0);
        assert_eq!(values["cluster.group.h0/g.reduction.dedupe-ratio"], 2.0);
        assert_eq!(values["cluster.reduction.compression-ratio"], 2.0);
        assert!(!values.contains_key("cluster.group.h1/g.reduction.stored"));
        // Latencies: of both groups' writes, and of their cache devices; once.
        let taken = cluster.take_latencies();
        let count = |prefix: &str| -> u64 {
            let of = taken.iter().filter(|(name, _, _)| name.starts_with(prefix));
            of.map(|(_, _, histogram)| histogram.count()).sum()
        };
        assert_eq!((count("group.h"), count("device.h")), (20, 20));
        assert!(cluster.take_latencies().is_empty());
    }

    /// The order never changes: a record that began earlier goes on.
    #[test]
    fn later_volumes_are_added_and_removed_ones_keep_their_place() {
        let mut cluster = cluster();
        let first = create(&mut cluster, "first");
        let mut catalogue = Catalogue::of(&cluster);
        let before: Vec<_> = catalogue.series().to_vec();
        create(&mut cluster, "second");
        cluster.remove_volume(Nanos::ZERO, first).expect("it is idle");
        catalogue.update(&cluster);
        catalogue.update(&cluster);
        assert_eq!(catalogue.series()[..before.len()], before);
        let added = catalogue.series()[before.len()..].iter();
        assert!(added.clone().all(|series| series.name.starts_with("cluster.volume.second.")));
        assert_eq!(added.count(), 7);
        let values = read(&catalogue, &mut cluster);
        assert!(values["cluster.volume.first.errors"].is_nan());
        assert_eq!(values["cluster.volume.second.errors"], 0.0);
    }
}
