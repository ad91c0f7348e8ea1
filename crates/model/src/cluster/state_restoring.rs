//! Restoring a cluster from its stored state, after a clean or an unclean shutdown.
//!
//! What is not here: the data. The driver attaches the stores of existing components.

use super::cluster::Cluster;
use super::data_command::DurabilityPoint;
use super::event::{ComponentState, ResyncReason};
use super::geometry::{Geometry, SetKind};
use super::ids::{ComponentId, DeviceId, GroupId, HostId, VolumeId};
use super::iops_limit::IopsLimit;
use super::object::{Component, Layout, Object, Slot};
use super::objects::Objects;
use super::policy::Policy;
use super::policy_change::Reshape;
use super::policy_record::policy_from;
use super::regions::RegionSet;
use super::spec::ClusterSpec;
use super::state::{
    ClusterState, ComponentRecord, LayoutRecord, Restart, RestoreProblem, VERSION, VolumeRecord,
    misfit,
};
use super::state_checking;
use super::storage::Storage;
use super::timers::Timer;
use super::volatile::Volatile;
use super::volume::Volume;
use super::volume_counters::VolumeCounters;
use crate::disk_group::MemberState;
use underlay_core::{Bytes, Nanos, RootSeed};

impl Objects {
    fn doubt_set(&mut self, volume: VolumeId, set: u32, restart: Restart) {
        let rows = self.rows_with_data(volume, set);
        let Some(object) = self.object(volume, Layout::Present) else { return };
        let needed = usize::from(object.geometry.kind.data_units());
        let active = |id: ComponentId| {
            self.component(id)
                .is_some_and(|component| component.announced == ComponentState::Active)
        };
        let current = object.set(set).iter().filter(|slot| active(slot.current)).count();
        let behind: Vec<ComponentId> = object
            .set(set)
            .iter()
            .flat_map(Slot::components)
            .filter(|id| current >= needed && !active(*id))
            .collect();
        for id in behind {
            if let Some(component) = self.component_mut(id) {
                component.stale.unite(&rows);
            }
            self.shape_changed();
        }
        if self.may_differ(volume, set, restart)
            && let Some(object) = self.object_mut(volume, Layout::Present)
        {
            object.in_doubt[set as usize].unite(&rows);
            self.shape_changed();
        }
    }

    /// Members of a mirror, and a single copy and the one that is to replace it: they are brought in line with one of them.
    ///
    /// A row with parity is whole as long as what was carried out is there: what was under way has been completed on all
    /// members, and who missed it is known as stale since before. Otherwise its parity is recomputed, if no data is
    /// missing: where some is, what the others hold is all there is of it, and stays the truth.
    fn may_differ(&self, volume: VolumeId, set: u32, restart: Restart) -> bool {
        let Some(object) = self.object(volume, Layout::Present) else { return false };
        let slots = object.set(set);
        let is_active = |id: ComponentId| {
            self.component(id).is_some_and(|it| it.announced == ComponentState::Active)
        };
        match object.geometry.kind {
            SetKind::Mirror { .. } => slots.iter().flat_map(Slot::components).count() > 1,
            SetKind::Parity { .. } => {
                restart == Restart::AfterHostCrash
                    && slots.iter().all(|slot| is_active(slot.current))
            }
        }
    }
}

impl Storage {
    fn restore_hosts(&mut self, state: &ClusterState) -> Result<(), RestoreProblem> {
        let restored = self.membership.restore(&state.hosts);
        restored.map_err(|host| misfit(format!("there is no host {host}")))?;
        self.inventory.power_cut(&self.membership.hosts_with_power(false), Nanos::ZERO);
        if !state.hosts.is_empty() {
            let at = self.settings.repair_delay;
            self.clock.schedule(at, Timer::RepairWitnesses);
        }
        for (group, member) in &state.failed_devices {
            let (group, member) = (GroupId(*group), *member);
            let found = self
                .inventory
                .find_group_mut(group)
                .and_then(|found| found.members.get_mut(usize::from(member)))
                .ok_or_else(|| {
                    misfit(format!("there is no device {member} in group {}", group.0))
                })?;
            found.failed = true;
            self.inventory.set_member(Nanos::ZERO, DeviceId { group, member }, MemberState::Lost);
        }
        Ok(())
    }

    fn restore_components(&mut self, state: &ClusterState) -> Result<(), RestoreProblem> {
        self.objects.reserve_numbers(state.next_component, state.next_volume);
        for record in &state.components {
            let component = self.component_from(record)?;
            let occupied = component.occupied_bytes(self.settings.stripe_unit.0 as u32);
            let (id, base, length) = (component.id, component.base, component.length);
            let (group, disk) = (component.group, usize::from(component.disk));
            if !self.objects.restore_component(component) {
                return Err(misfit(format!(
                    "component {} has a number that is used twice or out of range",
                    record.component
                )));
            }
            let disk = &mut self.inventory.group_mut(group).disks[disk];
            disk.restore_range(base, length, id);
            disk.used += occupied;
            self.inventory.count_on_host(self.inventory.host_of(group));
        }
        Ok(())
    }

    fn component_from(&self, record: &ComponentRecord) -> Result<Component, RestoreProblem> {
        let number = record.component;
        let group = self
            .inventory
            .groups()
            .get(record.group as usize)
            .filter(|group| usize::from(record.disk) < group.disks.len())
            .ok_or_else(|| {
                misfit(format!("component {number} is on a device that does not exist"))
            })?;
        let rows = record.length / self.settings.stripe_unit.0;
        let regions = |runs: &[(u64, u64)]| {
            RegionSet::from_runs(rows, runs)
                .ok_or_else(|| misfit(format!("regions of component {number} are beyond its end")))
        };
        let volatile = group.durability == DurabilityPoint::OnFlush;
        Ok(Component {
            id: ComponentId(number),
            // Filled in by its volume.
            volume: VolumeId(u32::MAX),
            layout: Layout::Present,
            set: 0,
            slot: 0,
            group: GroupId(record.group),
            disk: record.disk,
            base: record.base,
            length: record.length,
            stale: regions(&record.stale)?,
            written: regions(&record.written)?,
            unsure: match record.unsure.is_empty() {
                true => None,
                false => Some(Box::new(regions(&record.unsure)?)),
            },
            reserved: record.reserved,
            volatile: volatile.then(|| Volatile::new(rows)),
            reachable: true,
            announced: if record.active { ComponentState::Active } else { ComponentState::Stale },
            reason: ResyncReason::ALL
                .into_iter()
                .find(|reason| reason.as_str() == record.reason)
                .unwrap_or(ResyncReason::Stale),
            copy: None,
            absence: 0,
            repair_at: None,
        })
    }

    fn object_from(
        &mut self,
        volume: VolumeId,
        record: &VolumeRecord,
        stored: &LayoutRecord,
        layout: Layout,
    ) -> Result<(Policy, Object), RestoreProblem> {
        let policy = policy_from(stored.policy);
        if !policy.problems().is_empty() {
            return Err(misfit(format!("the policy of volume {} is invalid", record.volume)));
        }
        if u64::from(stored.unit_bytes) != self.settings.stripe_unit.0 || stored.sets == 0 {
            return Err(misfit(format!(
                "volume {} has invalid stripe units of {} bytes",
                record.volume, stored.unit_bytes
            )));
        }
        let geometry = Geometry {
            kind: policy.set_kind(),
            sets: stored.sets,
            unit_bytes: stored.unit_bytes,
            capacity_bytes: record.capacity,
        };
        let members = usize::from(geometry.kind.members());
        if stored.slots.len() != members * stored.sets as usize {
            return Err(misfit(format!("volume {} has too few slots", record.volume)));
        }
        let mut slots = Vec::new();
        for (index, (current, replacement)) in stored.slots.iter().enumerate() {
            let slot =
                Slot { current: ComponentId(*current), replacement: replacement.map(ComponentId) };
            for id in slot.components() {
                let component = self
                    .objects
                    .component_mut(id)
                    .filter(|component| component.length == geometry.component_bytes())
                    .ok_or_else(|| misfit(format!("component {id} is missing")))?;
                component.volume = volume;
                component.layout = layout;
                component.set = (index / members) as u32;
                component.slot = (index % members) as u8;
            }
            slots.push(slot);
        }
        let witnesses: Vec<HostId> = stored.witnesses.iter().map(|host| HostId(*host)).collect();
        for host in &witnesses {
            if host.0 as usize >= self.inventory.hosts().len() {
                return Err(misfit(format!("witness host {} is missing", host.0)));
            }
            self.inventory.count_on_host(*host);
        }
        let rows = geometry.rows_per_set();
        let in_doubt: Option<Vec<RegionSet>> =
            stored.in_doubt.iter().map(|runs| RegionSet::from_runs(rows, runs)).collect();
        let in_doubt =
            in_doubt.filter(|sets| sets.len() == stored.sets as usize).ok_or_else(|| {
                misfit(format!("rows in doubt of volume {} are beyond its end", record.volume))
            })?;
        let checksum = policy.checksum;
        let (side, cached_sets) = (None, Vec::new());
        let object = Object { geometry, checksum, slots, witnesses, side, in_doubt, cached_sets };
        Ok((policy, object))
    }

    /// What was left of the repair delay goes on.
    fn restore_repairs(&mut self, state: &ClusterState) {
        for record in &state.components {
            let id = ComponentId(record.component);
            let Some(left) = record.repair_in_ns else { continue };
            let Some(component) = self.objects.component_mut(id).filter(|c| !c.reachable) else {
                continue;
            };
            component.absence = component.absence.wrapping_add(1);
            component.repair_at = Some(Nanos(left));
            let absence = component.absence;
            self.clock.schedule(Nanos(left), Timer::Repair { component: id, absence });
        }
    }
}

impl Cluster {
    /// A cluster as it was; its clock starts at zero. No data command is emitted for components that existed: the owner of
    /// the data attaches their stores.
    ///
    /// # Errors
    /// When the specification has problems, or the state does not belong to it. Hosts and groups may have been added at the
    /// end of the specification since.
    pub fn restore(
        spec: ClusterSpec,
        seed: RootSeed,
        state: &ClusterState,
        restart: Restart,
    ) -> Result<Cluster, RestoreProblem> {
        if state.version != VERSION {
            return Err(RestoreProblem::Version { found: state.version });
        }
        let mut cluster = Cluster::new(spec, seed).map_err(RestoreProblem::Specification)?;
        state_checking::check(state, &cluster.storage.settings)?;
        cluster.storage.restore_hosts(state)?;
        cluster.storage.restore_components(state)?;
        cluster.restore_volumes(state)?;
        if restart != Restart::Clean {
            cluster.doubt_everything(restart);
        }
        cluster.repair.membership_changed(&mut cluster.storage, &mut cluster.requests);
        cluster.storage.restore_repairs(state);
        debug_assert!(
            cluster.space_is_exact(),
            "the space of a device is the sum over its components"
        );
        Ok(cluster)
    }

    fn restore_volumes(&mut self, state: &ClusterState) -> Result<(), RestoreProblem> {
        for record in &state.volumes {
            let id = VolumeId(record.volume);
            let (policy, object) =
                self.storage.object_from(id, record, &record.present, Layout::Present)?;
            let reshape = match &record.next {
                Some(next) => Some(self.reshape_from(id, record, next)?),
                None => None,
            };
            let owner =
                object.components().next().and_then(|id| self.storage.objects.component(id));
            let owner = owner
                .map_or(HostId(0), |component| self.storage.inventory.host_of(component.group));
            let is_free = self.storage.objects.restore_volume(Volume {
                id,
                name: record.name.clone(),
                capacity: Bytes(record.capacity),
                policy,
                object,
                layout: 0,
                reshape,
                wanted: record.wanted.map(policy_from),
                repair_blocked: None,
                owner,
                limit: policy.iops_limit.map(IopsLimit::new),
                available: true,
                losses: u32::from(record.unreported_loss),
                losses_reported: 0,
                counters: VolumeCounters::default(),
            });
            if !is_free {
                return Err(misfit(format!(
                    "volume {} has a number that is used twice or out of range",
                    record.volume
                )));
            }
        }
        if self.storage.objects.components().any(|component| component.volume.0 == u32::MAX) {
            return Err(misfit("a component belongs to no volume".to_string()));
        }
        Ok(())
    }

    fn reshape_from(
        &mut self,
        id: VolumeId,
        record: &VolumeRecord,
        next: &LayoutRecord,
    ) -> Result<Box<Reshape>, RestoreProblem> {
        let (policy, object) = self.storage.object_from(id, record, next, Layout::Next)?;
        let units = record.capacity.div_ceil(u64::from(next.unit_bytes));
        let pending = RegionSet::from_runs(units, &record.pending).ok_or_else(|| {
            misfit(format!("units of volume {} are beyond its end", record.volume))
        })?;
        Ok(Box::new(Reshape {
            object,
            policy,
            pending,
            units: Vec::new(),
            cursor: 0,
            in_flight: 0,
            epoch: self.repair.next_epoch(),
        }))
    }

    /// Components that were not active may have missed anything since, where enough others were; members that were active may
    /// differ in whatever was in flight.
    fn doubt_everything(&mut self, restart: Restart) {
        for volume in self.storage.objects.volume_ids() {
            self.repair.abandon_reshape(&mut self.storage, volume);
            let sets =
                self.storage.objects.object(volume, Layout::Present).map_or(0, |o| o.geometry.sets);
            for set in 0..sets {
                self.storage.objects.doubt_set(volume, set, restart);
            }
        }
    }
}
