//! The model of a cluster driven by the wall clock, and its data commands carried out in the order in which they come.
//!
//! Unlike a single device, a cluster decides only while time passes what a request reads and where a write goes. So a
//! request's bytes wait in the data plane until the model says that they move; an answer leaves when the model has finished
//! the request, and never before its bytes have moved.
//!
//! **Time.** The cluster lives by its own clock, which goes with the wall's and may be ahead of it: while timing is off,
//! each request is carried through at once by letting the cluster's time jump to its end. The clock never goes back, so what
//! was skipped stays skipped. It falls behind the wall's where this host copies more slowly than the modelled devices (`clock_skew`).
//!
//! **Blocks.** The cluster knows blocks of 4 KiB. A smaller write is widened; what surrounds it is filled in at the moment its
//! command is carried out, which no other request can come between.

use std::path::{Path, PathBuf};

use crate::data_plane::{BLOCK_BYTES, DataPlane};
use underlay_core::series::SeriesSpec;
use underlay_core::{Bytes, Nanos};
use underlay_export::{Answer, Extent};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterProblem, ComponentId, DataCommand, DeviceId, Fault, GroupId,
    HostCondition, HostId, OwnerProblem, PlacementRefusal, Policy, VolumeId,
};
use underlay_model::performance::{Catalogue, EmulatorStatus, Reduced};
use underlay_model::{DeviceProfile, DiskGroupSpec, Operation, Request, RequestId, ServiceFactor};

use super::clock_skew::{ClockSkew, STRIDE};
use super::fault_refusal::{FaultRefusal, destroys_bytes};
use super::file_store::{FileStores, component_path};
use super::in_flight::InFlight;
use super::journal::Journal;
use super::memory::Memory;
use super::reduction::Reduction;
use super::stores::Stores;
use crate::server::slab::Slab;

/// While timing is off: a request that needs more of the cluster's time than this waits like any other (something is
/// stuck, and only a repair will bring it back).
const JUMP_MAX: Nanos = Nanos::from_secs(60);

/// What no client waits for (destaging, copying) is carried out together, this much after its time at most: it happens at its
/// own moment all the same, and waking for each step would take more of the host than the requests do.
const PATIENCE: Nanos = Nanos::from_micros(500);

/// A cluster with its data. `C` names the client that waits for a request, and `S` stores the data.
pub(crate) struct ClusterPlane<C, S: Stores = FileStores> {
    pub(crate) cluster: Cluster,
    pub(crate) data: DataPlane<S>,
    pub(crate) journal: Journal,
    /// None while no disk group deduplicates.
    pub(super) reduction: Option<Reduction>,
    catalogue: Catalogue,
    pub(super) memory: Option<Memory>,
    /// Removals of components that the last state that could be stored may still count on.
    pub(super) withheld: Vec<DataCommand>,
    /// Where its components are.
    directory: PathBuf,
    /// By the server's number of a volume.
    volumes: Vec<Option<VolumeId>>,
    pub(super) pending: Slab<InFlight<C>>,
    /// Tells requests apart that had the same place in `pending`.
    sequence: u32,
    pub(super) events: Vec<ClusterEvent>,
    /// Requests that are done, by how the cluster knew them.
    pub(super) finished: Vec<(RequestId, Answer<C>)>,
    pub(super) skew: ClockSkew,
    /// When it was last told that this host's storage refuses writes, on the wall's clock.
    pub(super) refusal_reported: Option<Nanos>,
    /// What the cluster's clock shows.
    pub(super) now: Nanos,
    /// Whether nothing takes time.
    pub(crate) is_instant: bool,
}

impl<C, S: Stores> ClusterPlane<C, S> {
    /// A plane of this cluster and its data, with nothing in flight.
    pub(super) fn of(
        cluster: Cluster,
        data: DataPlane<S>,
        memory: Option<Memory>,
        directory: &Path,
        reduction: Option<Reduction>,
        is_instant: bool,
    ) -> ClusterPlane<C, S> {
        let mut plane = ClusterPlane {
            catalogue: Catalogue::of(&cluster),
            cluster,
            data,
            journal: Journal::default(),
            reduction,
            memory,
            withheld: Vec::new(),
            directory: directory.to_path_buf(),
            volumes: Vec::new(),
            pending: Slab::with_capacity(1024),
            sequence: 0,
            events: Vec::new(),
            finished: Vec::new(),
            skew: ClockSkew::default(),
            refusal_reported: None,
            now: Nanos::ZERO,
            is_instant,
        };
        if plane.memory.is_some() {
            plane.cluster.remember_changes();
        }
        // What the restart itself decided. From here on the last end counts as disorderly, until the next one is in order.
        plane.pass(Nanos::ZERO);
        plane
    }

    /// Places a volume and gives it the next number.
    pub(crate) fn add_volume(
        &mut self,
        now: Nanos,
        name: &str,
        capacity_bytes: u64,
        policy: Policy,
    ) -> Result<usize, PlacementRefusal> {
        let at = self.at(now);
        let volume = match self.cluster.find_volume(name) {
            // It was there before the server started.
            Some(volume) => volume,
            None => self.cluster.create_volume(at, name, Bytes(capacity_bytes), policy)?,
        };
        assert!(!self.volumes.contains(&Some(volume)), "a volume has one number");
        self.volumes.push(Some(volume));
        self.pass(at);
        Ok(self.volumes.len() - 1)
    }

    /// Whether a power cut takes nothing that was answered.
    pub(crate) fn is_durable(&self) -> bool {
        self.cluster.is_durable()
    }

    /// Lets a volume's requests start at that host.
    pub(crate) fn use_from(
        &mut self,
        now: Nanos,
        number: usize,
        host: HostId,
    ) -> Result<(), OwnerProblem> {
        let volume = self.volume(number).ok_or(OwnerProblem::NoVolume)?;
        let at = self.at(now);
        let outcome = self.cluster.set_owner(at, volume, host);
        self.pass(at);
        outcome
    }

    /// Removes a volume with its data.
    pub(crate) fn remove_volume(&mut self, now: Nanos, number: usize) {
        let Some(volume) = self.volumes.get_mut(number).and_then(Option::take) else { return };
        let at = self.at(now);
        if let Err(refusal) = self.cluster.remove_volume(at, volume) {
            tracing::error!("volume {number} could not be removed: {refusal}");
        }
        self.pass(at);
    }

    /// Values of the performance service's series, in the order of [`ClusterPlane::series`].
    pub(crate) fn performance(&mut self, now: Nanos) -> Vec<f64> {
        // What happened up to now counts.
        let at = self.at(now);
        self.pass(at);
        let status = EmulatorStatus {
            repaired_blocks: self.journal.repaired,
            lost_blocks: self.journal.lost,
            reduction: self.reduced(),
            behind: self.skew.behind(),
            slowdown: Some(self.skew.slowdown()),
        };
        self.catalogue.values(&mut self.cluster, &status)
    }

    /// How often this host's own storage did not do what was asked of it.
    pub(crate) fn storage_errors(&mut self) -> u64 {
        let unstored = self.memory.as_ref().map_or(0, |memory| memory.failures);
        self.data.maker().files().errors() + unstored
    }

    /// What deduplication and compression made of the bytes; none where nothing is reduced.
    pub(crate) fn reduced(&self) -> Option<Reduced> {
        self.reduction.as_ref().map(|reduction| reduction.report(&self.data))
    }

    /// What the performance service counts now: volumes that came later are at the end.
    pub(crate) fn series(&mut self) -> Vec<SeriesSpec> {
        self.catalogue.update(&self.cluster);
        self.catalogue.series().to_vec()
    }

    /// The cluster's name of a volume.
    pub(crate) fn volume(&self, number: usize) -> Option<VolumeId> {
        self.volumes.get(number).copied().flatten()
    }

    /// Where a range of a volume holds data, by whole rows of stripes; none if it cannot be used.
    pub(crate) fn extents(&self, number: usize, offset: u64, length: u32) -> Option<Vec<Extent>> {
        let runs = self.cluster.data_runs(self.volume(number)?, offset, length)?;
        let extent = |(length_bytes, holds_data)| Extent { length_bytes, holds_data };
        Some(runs.into_iter().map(extent).collect())
    }

    /// Accepts a request of whole blocks; `buffer` is what a write gives, or where a read is to put what it finds. It comes back
    /// from [`ClusterPlane::advance`], up to `head_start` before its time.
    ///
    /// # Panics
    /// If the volume does not exist, or the request is not of whole blocks within it.
    pub(crate) fn submit(
        &mut self,
        request: &Request,
        buffer: Vec<u8>,
        mut in_flight: InFlight<C>,
        head_start: Nanos,
    ) -> RequestId {
        let volume = self.volume(in_flight.volume).expect("the caller has looked");
        let (at, behind) =
            self.skew.arrival(self.now, in_flight.arrived, || self.cluster.next_wakeup());
        let (block, length) = (BLOCK_BYTES as u64, request.length_bytes as usize);
        debug_assert!(request.offset_bytes.is_multiple_of(block), "not at a block's beginning");
        debug_assert!(u64::from(request.length_bytes).is_multiple_of(block), "not of whole blocks");
        debug_assert!(in_flight.wanted.end <= length, "gives or wants more than it asks for");
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = u64::from(self.sequence) << 32;
        in_flight.behind = behind;
        let key = self.pending.insert(in_flight);
        debug_assert_eq!(key >> 32, 0, "the key fits below the sequence number");
        // The highest bit is left to the names of this file's own reads.
        let id = RequestId((sequence | key) & (u64::MAX >> 1));
        if let Some(in_flight) = self.pending.get_mut(key) {
            in_flight.id = id;
        }
        match request.operation {
            Operation::Write => {
                debug_assert!(buffer.len() >= length, "a buffer too short");
                self.data.stage_write(id, buffer);
            }
            Operation::Read => {
                debug_assert!(buffer.len() >= length, "a buffer too short");
                self.data.stage_read(id, buffer);
            }
            Operation::Flush | Operation::Discard => {
                debug_assert!(buffer.is_empty(), "a buffer that nothing is done with");
            }
        }
        self.cluster.submit_early(at, volume, request, id, head_start);
        id
    }

    /// Lets time pass up to `until` on the wall's clock, and appends what is done.
    pub(crate) fn advance(&mut self, until: Nanos, finished: &mut Vec<Answer<C>>) {
        let at = self.skew.turn(self.now, until, || self.cluster.next_wakeup());
        self.pass(at);
        finished.extend(self.finished.drain(..).map(|(_, answer)| answer));
    }

    /// When [`ClusterPlane::advance`] is to be called next, on the wall's clock.
    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        if !self.finished.is_empty() {
            return Some(Nanos::ZERO);
        }
        let internal = self.cluster.next_wakeup().map(|at| at + PATIENCE);
        let counting = self.reduction.as_ref().and_then(Reduction::wakeup);
        let next = [self.cluster.next_answer(), internal, counting].into_iter().flatten().min();
        next.map(|at| self.skew.wakeup(self.now, self.skew.on_wall(at)))
    }

    /// Carries a request through at once, if nothing keeps it: the cluster's time jumps to its end.
    pub(crate) fn complete_now(&mut self, id: RequestId) -> Option<Answer<C>> {
        let limit = self.now + JUMP_MAX;
        loop {
            if let Some(place) = self.finished.iter().position(|(done, _)| *done == id) {
                return Some(self.finished.remove(place).1);
            }
            let next = self.cluster.next_wakeup().filter(|next| *next <= limit)?;
            let next = next.max(self.now);
            self.skew.skip(next - self.now);
            self.pass(next);
        }
    }

    /// Lets a fault, or a repair, happen. One that destroys bytes is refused while what the cluster knows cannot be stored:
    /// were the server killed then, the next one would count on what is gone.
    pub(crate) fn inject(&mut self, now: Nanos, fault: Fault) -> Result<(), FaultRefusal> {
        let at = self.at(now);
        if destroys_bytes(&fault) {
            self.pass(at);
            self.make_sure_of_memory()?;
        }
        let outcome = self.cluster.inject(at, fault);
        self.pass(at);
        outcome.map_err(FaultRefusal::Problem)
    }

    /// Messages between hosts take longer by this factor from now on.
    pub(crate) fn set_network_factor(&mut self, now: Nanos, factor: ServiceFactor) {
        let at = self.at(now);
        self.pass(at);
        self.cluster.set_network_factor(factor);
    }

    /// Gives a volume another policy; what that needs is copied while the volume serves.
    pub(crate) fn set_policy(
        &mut self,
        now: Nanos,
        volume: VolumeId,
        policy: Policy,
    ) -> Result<(), PlacementRefusal> {
        let at = self.at(now);
        let outcome = self.cluster.set_policy(at, volume, policy);
        self.pass(at);
        outcome
    }

    /// What write buffers hold is on the capacity devices, in no time.
    pub(crate) fn destage_all(&mut self, now: Nanos) {
        let at = self.at(now);
        self.pass(at);
        self.cluster.destage_all(at);
        self.pass(at);
    }

    /// Adds a disk group to a host.
    pub(crate) fn add_group(
        &mut self,
        now: Nanos,
        host: HostId,
        group: &DiskGroupSpec,
    ) -> Result<(), Vec<ClusterProblem>> {
        let at = self.at(now);
        let outcome = self.cluster.add_group(at, host, group);
        if let Ok(added) = outcome {
            let mut devices = std::iter::once(&group.cache).chain(&group.capacity);
            self.is_instant &= devices.all(DeviceProfile::is_instant);
            // Before anything is placed on it.
            self.count_group(added);
        }
        self.pass(at);
        outcome.map(|_| ())
    }

    /// Adds a capacity device to a disk group.
    pub(crate) fn add_device(
        &mut self,
        now: Nanos,
        group: GroupId,
        profile: &DeviceProfile,
    ) -> Result<(), Vec<ClusterProblem>> {
        let at = self.at(now);
        let outcome = self.cluster.add_device(at, group, profile);
        if outcome.is_ok() {
            self.is_instant &= profile.is_instant();
        }
        self.pass(at);
        outcome.map(|_| ())
    }

    /// Lets other data take that share of every capacity device.
    pub(crate) fn fill(&mut self, now: Nanos, percent: u8) -> Result<(), PlacementRefusal> {
        let at = self.at(now);
        let outcome = self.cluster.fill(at, percent);
        self.pass(at);
        outcome
    }

    fn count_group(&mut self, added: GroupId) {
        if !self.cluster.reduces(added) {
            return;
        }
        if let Some(reduction) = &mut self.reduction {
            return reduction.add_group(added);
        }
        match Reduction::start(&self.cluster, &mut self.data, self.directory.clone(), &[]) {
            Ok(started) => self.reduction = started,
            Err(error) => {
                let text = format!("{error}: reduced blocks are not counted");
                self.journal.say(self.skew.on_wall(self.now), "reduction", text);
            }
        }
    }

    /// The file with the bytes of a component.
    pub(crate) fn component_path(&self, device: DeviceId, component: ComponentId) -> PathBuf {
        component_path(&self.directory, device, component)
    }

    /// All hosts lose their power; what was in flight is torn, lost or kept.
    pub(crate) fn power_off(&mut self, now: Nanos) {
        if let Err(problem) = self.inject(now, Fault::PowerCut) {
            tracing::error!("the power was not cut: {problem}");
        }
    }

    /// Whether no host has power, as after a power cut that the last server did not outlive.
    pub(crate) fn is_without_power(&self) -> bool {
        let hosts = self.cluster.state().hosts;
        let lost = hosts.iter().filter(|host| host.condition == HostCondition::Lost).count();
        lost == self.cluster.hosts().count()
    }

    /// All hosts run again.
    pub(crate) fn power_on(&mut self, now: Nanos) {
        if let Err(problem) = self.inject(now, Fault::PowerOn) {
            tracing::error!("the power is not back: {problem}");
        }
    }

    /// Cancels all requests in flight and returns the clients that wait for them.
    pub(crate) fn abandon(&mut self) -> Vec<C> {
        let finished = std::mem::take(&mut self.finished);
        let mut clients: Vec<C> =
            finished.into_iter().filter_map(|(_, answer)| answer.client).collect();
        for in_flight in self.pending.drain() {
            // The cluster may still finish it; its name is then unknown and ignored.
            let _nobody_wants_it = self.data.finish(in_flight.id);
            clients.push(in_flight.client);
        }
        clients
    }

    /// A moment of the wall's clock on the cluster's. A request that arrived while the cluster was already told of a
    /// slightly later moment arrives then.
    pub(super) fn at(&mut self, wall: Nanos) -> Nanos {
        self.skew.go_on(self.now, wall, || self.cluster.next_wakeup())
    }

    /// From now on the cluster waits for what this host is slow to copy, instead of its clients.
    pub(crate) fn follow_host(&mut self) {
        self.skew.keep_to(STRIDE);
    }
}
