//! Adding hosts, disk groups and capacity devices, at the start and to a running cluster.
//!
//! What is not here: moving components to them; rebalancing does that.

use super::cluster::Cluster;
use super::ids::{DeviceId, GroupId, HostId};
use super::spec::{ClusterProblem, HostSpec};
use crate::disk_group::DiskGroupSpec;
use crate::profile::DeviceProfile;
use underlay_core::Nanos;

/// Clients of a durable cluster have learnt that they need not flush.
const VOLATILE_AMONG_DURABLE: &str = "a cache device that may lose acknowledged data cannot join a cluster whose \
     cache devices never do, because such a cluster receives no flushes; use one with power_loss_protected";

impl Cluster {
    /// Adds a host with its disk groups; components are moved there by rebalancing.
    ///
    /// # Errors
    /// Every rule the host violates.
    pub fn add_host(&mut self, now: Nanos, spec: &HostSpec) -> Result<HostId, Vec<ClusterProblem>> {
        let mut problems = spec.problems();
        if self.storage.inventory.hosts().iter().any(|host| host.name == spec.name) {
            problems.push(ClusterProblem {
                place: format!("host \"{}\"", spec.name),
                rule: "an earlier host has the same name".to_string(),
            });
        }
        if self.is_durable() && !spec.groups.iter().all(|group| group.cache.is_durable()) {
            problems.push(ClusterProblem {
                place: format!("host \"{}\"", spec.name),
                rule: VOLATILE_AMONG_DURABLE.to_string(),
            });
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.run_until(now);
        let host = self.storage.push_host(spec);
        self.cluster_grew();
        Ok(host)
    }

    /// Adds a disk group to a host.
    ///
    /// # Errors
    /// Every rule the host would violate with it.
    pub fn add_group(
        &mut self,
        now: Nanos,
        host: HostId,
        spec: &DiskGroupSpec,
    ) -> Result<GroupId, Vec<ClusterProblem>> {
        let place = format!("disk group \"{}\"", spec.name);
        let problem =
            |rule: &str| vec![ClusterProblem { place: place.clone(), rule: rule.to_string() }];
        if host.0 as usize >= self.storage.inventory.hosts().len() {
            return Err(problem("the host does not exist"));
        }
        if self.storage.inventory.groups().iter().filter(|group| group.host == host).count() >= 5 {
            return Err(problem("a host has up to 5 disk groups"));
        }
        if !(1..=7).contains(&spec.capacity.len()) {
            return Err(problem("a disk group has 1 to 7 capacity devices"));
        }
        if self.is_durable() && !spec.cache.is_durable() {
            return Err(problem(VOLATILE_AMONG_DURABLE));
        }
        self.run_until(now);
        let group = self.storage.inventory.push_group(host, spec);
        self.cluster_grew();
        Ok(group)
    }

    /// Adds an empty capacity device to a disk group, as its last one; components are moved there by rebalancing.
    ///
    /// # Errors
    /// Every rule the group would violate with it.
    pub fn add_device(
        &mut self,
        now: Nanos,
        group: GroupId,
        profile: &DeviceProfile,
    ) -> Result<DeviceId, Vec<ClusterProblem>> {
        let problem = |place: String, rule: String| ClusterProblem { place, rule };
        let Some(found) = self.storage.inventory.groups().get(group.0 as usize) else {
            let rule = "the disk group does not exist".to_string();
            return Err(vec![problem(format!("disk group {}", group.0), rule)]);
        };
        let place = format!("disk group \"{}\"", self.storage.inventory.group_name(group));
        let of_profile = profile.problems().into_iter();
        let mut problems: Vec<ClusterProblem> =
            of_profile.map(|found| problem(place.clone(), found.to_string())).collect();
        let most = DiskGroupSpec::CAPACITY_DEVICES_MAX;
        if found.disks.len() >= most {
            let rule = format!("a disk group has up to {most} capacity devices");
            problems.push(problem(place, rule));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.run_until(now);
        let device = self.storage.inventory.push_device(now, group, profile);
        self.cluster_grew();
        Ok(device)
    }

    /// What was blocked may now be possible.
    fn cluster_grew(&mut self) {
        self.repair.membership_changed(&mut self.storage, &mut self.requests);
        self.repair.rebalance_now(&mut self.storage, &mut self.requests);
    }
}
