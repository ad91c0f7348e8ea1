//! The model of a cluster driven by the wall clock, and its data commands carried out in the order in which they come.
//!
//! Unlike a single device, a cluster decides only while time passes what a request reads and where a write goes. So a
//! request's bytes wait in the data plane until the model says that they move; an answer leaves when the model has finished
//! the request, and never before its bytes have moved.
//!
//! **Time.** The cluster lives by its own clock, which goes with the wall's and may be ahead of it: while timing is off,
//! each request is carried through at once by letting the cluster's time jump to its end. The clock never goes back, so what
//! was skipped stays skipped.
//!
//! **Blocks.** The cluster knows blocks of 4 KiB. A smaller write is widened; what surrounds it is filled in at the moment its
//! command is carried out, which no other request can come between.

use std::ops::Range;
use std::path::Path;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterSpec, ComponentId, DataCommand, DeviceId, Durability, Fault,
    FaultProblem, GroupId, Outcome, Piece, PlacementRefusal, Policy, VolumeFinished, VolumeId,
};
use underlay_model::data_plane::{BLOCK_BYTES, DataPlane, Delivered};
use underlay_model::{Operation, Request, RequestId};

use super::file_store::FileStores;
use super::journal::Journal;
use super::memory::Memory;
use crate::error::DatastoreError;
use crate::server::engine::Due;
use crate::server::slab::Slab;
use crate::server::statistics::{Answered, Modelled};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Names the reads that fill in what surrounds a small write; no request has that name.
const FILLING: RequestId = RequestId(u64::MAX);
/// While timing is off: a request that needs more of the cluster's time than this waits like any other (something is
/// stuck, and only a repair will bring it back).
const JUMP_MAX: Nanos = Nanos::from_secs(60);

/// A cluster with its data. `R` is whatever answers a request.
pub(crate) struct ClusterPlane<R> {
    pub(crate) cluster: Cluster,
    pub(crate) data: DataPlane<FileStores>,
    pub(crate) journal: Journal,
    memory: Option<Memory>,
    /// By the server's number of a volume.
    volumes: Vec<Option<VolumeId>>,
    pending: Slab<Pending<R>>,
    /// Tells requests apart that had the same place in `pending`.
    sequence: u32,
    events: Vec<ClusterEvent>,
    finished: Vec<Finished<R>>,
    /// How far the cluster's clock is ahead of the wall's.
    ahead: Nanos,
    /// What the cluster's clock shows.
    now: Nanos,
}

struct Pending<R> {
    id: RequestId,
    carried: Carried<R>,
    /// The part of a write that the client gave; the rest of its first and last block is filled in.
    given: Range<usize>,
}

/// A request on its way.
pub(crate) struct Carried<R> {
    pub(crate) reply: R,
    /// The server's number of the volume.
    pub(crate) volume: usize,
    /// Bytes that the client asked for.
    pub(crate) bytes: u32,
    pub(crate) arrived: Nanos,
}

/// A request that is done.
pub(crate) struct Finished<R> {
    id: RequestId,
    pub(crate) carried: Carried<R>,
    pub(crate) operation: Operation,
    /// On the wall's clock.
    pub(crate) at: Nanos,
    pub(crate) queue: Nanos,
    pub(crate) failed: bool,
    /// What was read, or the buffer of a write; empty for others.
    pub(crate) buffer: Vec<u8>,
}

/// What a request brings or wants.
pub(crate) enum Payload {
    Nothing,
    /// A buffer of the request's length, and the part of it that the client gave.
    Write(Vec<u8>, Range<usize>),
}

impl<R> ClusterPlane<R> {
    /// The cluster as it is remembered, or a new one; its components are below `directory`.
    pub(crate) fn open(
        spec: ClusterSpec,
        seed: RootSeed,
        directory: &Path,
        memory: Option<&Path>,
    ) -> Result<ClusterPlane<R>, DatastoreError> {
        let memory = memory.map(Memory::at);
        let recalled = match &memory {
            Some(memory) => memory.recall()?,
            None => None,
        };
        let stores = FileStores::new(directory);
        let durability = durability_of_groups(&spec);
        let Some((state, restart)) = recalled else {
            let cluster = Cluster::new(spec, seed).map_err(DatastoreError::BadCluster)?;
            return Ok(ClusterPlane::of(cluster, DataPlane::new(stores), memory));
        };
        let misfit =
            |reason: String| DatastoreError::BadMemory { path: directory.to_path_buf(), reason };
        let cluster = Cluster::restore(spec, seed, &state, restart)
            .map_err(|problem| misfit(problem.to_string()))?;
        let mut data = DataPlane::new(FileStores::new(directory));
        for record in &state.components {
            let component = ComponentId(record.component);
            let device = DeviceId { group: GroupId(record.group), member: record.disk + 1 };
            let store = stores.open(component, device, record.length, restart);
            let store = store.map_err(|error| misfit(error.to_string()))?;
            data.attach(component, store, durability[record.group as usize]);
        }
        Ok(ClusterPlane::of(cluster, data, memory))
    }

    fn of(
        cluster: Cluster,
        data: DataPlane<FileStores>,
        memory: Option<Memory>,
    ) -> ClusterPlane<R> {
        let mut plane = ClusterPlane {
            cluster,
            data,
            journal: Journal::default(),
            memory,
            volumes: Vec::new(),
            pending: Slab::with_capacity(1024),
            sequence: 0,
            events: Vec::new(),
            finished: Vec::new(),
            ahead: Nanos::ZERO,
            now: Nanos::ZERO,
        };
        // From here on the last end counts as disorderly, until the next one is in order.
        plane.remember();
        plane
    }

    /// Stores what must not be forgotten, if it has changed.
    fn remember(&mut self) {
        let generation = self.cluster.state_generation();
        if let Some(memory) = &mut self.memory
            && !memory.holds(generation)
        {
            memory.keep(generation, self.cluster.state());
        }
    }

    /// The server ends. In order, if nothing is in flight; otherwise the next start settles what was.
    pub(crate) fn conclude(&mut self) {
        let at_rest = self.pending.is_empty() && self.finished.is_empty();
        if let Some(memory) = self.memory.as_mut().filter(|_| at_rest)
            && let Err(error) = memory.conclude(self.cluster.state())
        {
            tracing::error!("{error}; the next start will settle and copy more than is needed");
        }
    }

    /// Removes volumes that are remembered and that nobody wants any more: their removal was cut short.
    pub(crate) fn keep_only(&mut self, now: Nanos, names: &[&str]) {
        let wanted: Vec<VolumeId> =
            names.iter().filter_map(|name| self.cluster.find_volume(name)).collect();
        let unwanted: Vec<VolumeId> =
            self.cluster.volumes().filter(|volume| !wanted.contains(volume)).collect();
        let at = self.at(now);
        for volume in unwanted {
            if let Err(refusal) = self.cluster.remove_volume(at, volume) {
                tracing::error!("a forgotten volume could not be removed: {refusal}");
            }
        }
        self.pass(at);
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
        self.volumes.push(Some(volume));
        self.pass(at);
        Ok(self.volumes.len() - 1)
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

    /// The cluster's name of a volume.
    pub(crate) fn volume(&self, number: usize) -> Option<VolumeId> {
        self.volumes.get(number).copied().flatten()
    }

    /// Accepts a request of whole blocks. It comes back from [`ClusterPlane::advance`].
    ///
    /// # Panics
    /// If the volume does not exist, or the request is not of whole blocks within it.
    pub(crate) fn submit(
        &mut self,
        carried: Carried<R>,
        request: &Request,
        payload: Payload,
    ) -> RequestId {
        let volume = self.volume(carried.volume).expect("the caller has looked");
        let at = self.at(carried.arrived);
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = u64::from(self.sequence) << 32;
        let given = match &payload {
            Payload::Nothing => 0..request.length_bytes as usize,
            Payload::Write(_, given) => given.clone(),
        };
        let key = self.pending.insert(Pending { id: RequestId(0), carried, given });
        // The highest bit is left to the names of this file's own reads.
        let id = RequestId((sequence | key) & (u64::MAX >> 1));
        if let Some(pending) = self.pending.get_mut(key) {
            pending.id = id;
        }
        match (request.operation, payload) {
            (_, Payload::Write(bytes, _)) => self.data.stage_write(id, bytes),
            (Operation::Read, _) => {
                self.data.stage_read(id, vec![0; request.length_bytes as usize]);
            }
            _ => {}
        }
        self.cluster.submit(at, volume, request, id);
        id
    }

    /// Lets time pass up to `until` on the wall's clock, and appends what is done.
    pub(crate) fn advance(&mut self, until: Nanos, finished: &mut Vec<Finished<R>>) {
        self.pass(until + self.ahead);
        finished.append(&mut self.finished);
    }

    /// When [`ClusterPlane::advance`] will next have something to do, on the wall's clock.
    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        if !self.finished.is_empty() {
            return Some(Nanos::ZERO);
        }
        self.cluster.next_wakeup().map(|at| at.saturating_sub(self.ahead))
    }

    /// Carries a request through at once, if nothing keeps it: the cluster's time jumps to its end.
    pub(crate) fn hurry(&mut self, id: RequestId) -> Option<Finished<R>> {
        let limit = self.now + JUMP_MAX;
        loop {
            if let Some(place) = self.finished.iter().position(|finished| finished.id == id) {
                return Some(self.finished.remove(place));
            }
            let next = self.cluster.next_wakeup().filter(|next| *next <= limit)?;
            let next = next.max(self.now);
            self.ahead += next - self.now;
            self.pass(next);
        }
    }

    /// Lets a fault, or a repair, happen.
    pub(crate) fn inject(&mut self, now: Nanos, fault: Fault) -> Result<(), FaultProblem> {
        let at = self.at(now);
        let outcome = self.cluster.inject(at, fault);
        self.pass(at);
        outcome
    }

    /// All hosts lose their power; what was in flight is torn, lost or kept.
    pub(crate) fn power_off(&mut self, now: Nanos) {
        if let Err(problem) = self.inject(now, Fault::PowerCut) {
            tracing::error!("the power was not cut: {problem}");
        }
    }

    /// All hosts run again.
    pub(crate) fn power_on(&mut self, now: Nanos) {
        if let Err(problem) = self.inject(now, Fault::PowerOn) {
            tracing::error!("the power is not back: {problem}");
        }
    }

    /// Gives up all requests in flight and hands back what would answer them.
    pub(crate) fn abandon(&mut self) -> Vec<Carried<R>> {
        let finished = std::mem::take(&mut self.finished).into_iter().map(|done| done.carried);
        let finished: Vec<_> = finished.collect();
        let pending = self.pending.drain();
        for pending in &pending {
            // The cluster may still finish it; then nobody knows its name any more.
            let _nobody_wants_it = self.data.finish(pending.id);
        }
        finished.into_iter().chain(pending.into_iter().map(|pending| pending.carried)).collect()
    }

    /// A moment of the wall's clock on the cluster's. A request that arrived while the cluster was already told of a
    /// slightly later moment arrives then.
    fn at(&self, wall: Nanos) -> Nanos {
        (wall + self.ahead).max(self.now)
    }

    fn pass(&mut self, at: Nanos) {
        if at > self.now {
            self.now = at;
        }
        let mut events = std::mem::take(&mut self.events);
        self.cluster.advance(self.now, &mut events);
        // Before anything is carried out or answered: a server that is killed now must know what it had decided.
        self.remember();
        for event in events.drain(..) {
            match event {
                ClusterEvent::Data(command) => self.carry_out(&command),
                ClusterEvent::Finished(done) => self.finish(&done),
                ClusterEvent::Notice { at, notice } => {
                    let at = at.saturating_sub(self.ahead);
                    self.journal.note(at, &self.cluster, &notice);
                }
            }
        }
        self.events = events;
        let now = self.now.saturating_sub(self.ahead);
        for finding in self.data.take_findings() {
            self.journal.note_finding(now, finding);
        }
    }

    fn carry_out(&mut self, command: &DataCommand) {
        if let DataCommand::Write { request, buffer_offset, piece } = command {
            self.fill_in(*request, *buffer_offset, piece);
        }
        self.data.execute(command);
    }

    /// Completes the first and the last block of a small write with what is there now.
    fn fill_in(&mut self, request: RequestId, buffer_offset: u32, piece: &Piece) {
        let Some(pending) = self.pending_of(request) else { return };
        let given = pending.given.clone();
        let part = buffer_offset as usize..(buffer_offset + piece.length_bytes) as usize;
        let head = (!given.start.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.start));
        let tail = (!given.end.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.end));
        let edges = [head, tail.filter(|tail| Some(*tail) != head)];
        for block in edges.into_iter().flatten().filter(|block| part.contains(block)) {
            let start = piece.start + (block - part.start) as u32;
            let surroundings = self.peek(piece.with_range(start, BLOCK_BYTES as u32));
            let Some(Delivered::Bytes(mut bytes)) = self.data.finish(request) else { return };
            for (at, old) in (block..block + BLOCK_BYTES).zip(surroundings) {
                if !given.contains(&at) {
                    bytes[at] = old;
                }
            }
            self.data.stage_write(request, bytes);
        }
    }

    /// What a range holds now. What cannot be read is zeros, as it would be for everybody.
    fn peek(&mut self, piece: Piece) -> Vec<u8> {
        self.data.stage_read(FILLING, vec![0; piece.length_bytes as usize]);
        self.data.execute(&DataCommand::Read { request: FILLING, buffer_offset: 0, piece });
        match self.data.finish(FILLING) {
            Some(Delivered::Bytes(bytes) | Delivered::Unreadable(bytes)) => bytes,
            None => vec![0; piece.length_bytes as usize],
        }
    }

    fn pending_of(&mut self, id: RequestId) -> Option<&mut Pending<R>> {
        let key = id.0 & u64::from(u32::MAX);
        self.pending.get_mut(key).filter(|pending| pending.id == id)
    }

    fn finish(&mut self, done: &VolumeFinished) {
        let delivered = self.data.finish(done.request);
        if self.pending_of(done.request).is_none() {
            return;
        }
        let key = done.request.0 & u64::from(u32::MAX);
        let Some(Pending { carried, .. }) = self.pending.remove(key) else { return };
        let (buffer, unreadable) = match delivered {
            Some(Delivered::Bytes(bytes)) => (bytes, false),
            Some(Delivered::Unreadable(bytes)) => (bytes, true),
            None => (Vec::new(), false),
        };
        self.finished.push(Finished {
            id: done.request,
            at: done.at.saturating_sub(self.ahead).max(carried.arrived),
            operation: done.operation,
            queue: done.queue,
            failed: unreadable || done.outcome != Outcome::Ok,
            buffer,
            carried,
        });
    }
}

impl<R> Finished<R> {
    /// What is to be answered and counted. A request that the host was slower with than the cluster was not held back.
    pub(crate) fn into_due(self, compensation: Nanos) -> Due<R> {
        let Carried { reply, volume, bytes, arrived } = self.carried;
        let delayed = self.at > arrived + compensation;
        let modelled = Some(Modelled { deadline: self.at, queue: self.queue, delayed });
        let operation = self.operation;
        let answered = Answered { volume, operation, bytes, arrived, replied: self.at, modelled };
        let answered = Some(answered);
        Due { reply, answered, failed: self.failed, buffer: self.buffer }
    }
}

/// What a power cut takes from components of each disk group: as the model decides it for new ones.
fn durability_of_groups(spec: &ClusterSpec) -> Vec<Durability> {
    let groups = spec.hosts.iter().flat_map(|host| &host.groups);
    groups
        .map(|group| {
            let cache = &group.cache;
            let protected = cache.power_loss_protected || cache.write_buffer.is_none();
            if protected { Durability::OnWrite } else { Durability::OnFlush }
        })
        .collect()
}

fn block_of(at: usize) -> usize {
    at / BLOCK_BYTES * BLOCK_BYTES
}

/// The whole blocks around a range: where they begin, and how many bytes.
pub(crate) fn widened(offset: u64, length: u64) -> (u64, u64) {
    let start = offset / BLOCK * BLOCK;
    (start, (offset + length).next_multiple_of(BLOCK) - start)
}
