//! What a request does: data plane first, then the timing plane, then the answer.
//!
//! All of it happens on one thread, so there are no locks. Data moves at once. The model then says when the
//! request would be done; until then the answer waits in the engine. Requests to devices without delay, and all
//! requests while timing is off, are answered at once.
//!
//! Clients come through the kernel's FUSE (`fuse_front`) or over NBD (`nbd_front`); here they are the same.

use std::io;

use rustix::io::Errno;
use underlay_core::{Nanos, RootSeed};
use underlay_model::{Operation, Request};

use super::VolumeOpener;
use super::buffers::BufferPool;
use super::clock::Clock;
use super::cluster::in_flight::Joint;
use super::completions::Completions;
use super::engine::{Due, Engine};
use super::exported_volume::ExportedVolume;
use super::fuse_device::FuseDevice;
use super::nbd::connection::Phase;
use super::nbd::listener::{ConnectionId, NbdListener};
use super::nbd::protocol::Extent;
use super::realtime::Precedence;
use super::reply::{Client, Content, Reply};
use super::slab::Slab;
use super::statistics::Answered;
use super::undo_log::PowerCut;
use super::volume::{VolumeData, Zeroing};
use super::wakeful::CpusAwake;
use crate::config::VolumeConfig;
use crate::control::TimingMode;
use crate::error::DatastoreError;

/// Data that is answered at once without a buffer of its own; the kernel's limit for FUSE.
pub(crate) const MAX_SCRATCH_BYTES: usize = 1 << 20;
/// Small buffers ready from the start.
const READY_BUFFERS: usize = 256;

/// One server: its volumes, its model, its connections to clients.
pub(crate) struct Service {
    pub(crate) clock: Clock,
    /// Present when volumes are exported as files for block devices.
    pub(crate) device: Option<FuseDevice>,
    pub(crate) nbd: NbdListener,
    pub(crate) engine: Engine<Reply>,
    /// By number; the place of a removed volume stays empty.
    pub(crate) volumes: Vec<Option<ExportedVolume>>,
    pub(crate) seed: RootSeed,
    pub(crate) precedence: Precedence,
    /// Of requests of the kernel's FUSE.
    pub(crate) completions: Completions,
    /// Somebody asked for the end.
    pub(crate) is_ending: bool,
    opener: VolumeOpener,
    /// Held while modelled times are to be kept.
    awake: Option<CpusAwake>,
    /// Requests of clients that became several.
    pub(super) joints: Slab<Joint>,
    pub(super) buffers: BufferPool,
    /// For reads that are answered at once.
    scratch: Box<[u8]>,
    /// Answers about to be sent; empty in between, kept for its memory.
    due: Vec<Due<Reply>>,
    /// Clients about to be looked at; the same.
    pub(super) ready: Vec<ConnectionId>,
}

/// The ways in which clients come.
pub(crate) struct Exports {
    pub(crate) device: Option<FuseDevice>,
    pub(crate) nbd: NbdListener,
}

impl Service {
    pub(crate) fn new(
        clock: Clock,
        exports: Exports,
        engine: Engine<Reply>,
        opener: VolumeOpener,
        seed: RootSeed,
    ) -> Service {
        Service {
            clock,
            device: exports.device,
            nbd: exports.nbd,
            engine,
            opener,
            joints: Slab::with_capacity(64),
            volumes: Vec::new(),
            seed,
            precedence: Precedence::default(),
            completions: Completions::new(),
            is_ending: false,
            awake: None,
            buffers: BufferPool::new(READY_BUFFERS),
            // Written, not just allocated, so that no page is touched for the first time later.
            scratch: vec![1; MAX_SCRATCH_BYTES].into_boxed_slice(),
            due: Vec::with_capacity(1024),
            ready: Vec::new(),
        }
    }

    /// Switches the models on or off. While they are on, idle CPUs do not sleep.
    pub(crate) fn set_mode(&mut self, mode: TimingMode) {
        self.engine.set_mode(mode);
        let delays = mode == TimingMode::Modelled && self.engine.is_any_delayed();
        if !delays {
            self.awake = None;
        } else if self.awake.is_none() {
            match CpusAwake::hold() {
                Ok(awake) => self.awake = Some(awake),
                Err(error) => tracing::warn!("idle CPUs will sleep: {error}; answers may be late"),
            }
        }
    }

    /// The volumes there are, with their numbers.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, &ExportedVolume)> {
        self.volumes.iter().enumerate().filter_map(|(i, volume)| Some((i, volume.as_ref()?)))
    }

    /// Sends what is due. Returns whether anything was.
    pub(crate) fn answer_due(&mut self) -> bool {
        let mut due = std::mem::take(&mut self.due);
        self.engine.take_due(self.clock.now(), &mut due);
        let was_any = !due.is_empty();
        for Due { mut reply, answered, failed, buffer } in due.drain(..) {
            self.deliver(&mut reply, buffer);
            if failed {
                if let Some(answered) = &answered {
                    self.engine.statistics.count_failure(answered.volume);
                }
                self.fail(reply);
            } else {
                self.send(reply);
            }
            if let Some(answered) = answered {
                self.record(answered);
            }
        }
        self.due = due;
        was_any
    }

    /// Counts a request whose answer was sent.
    fn record(&mut self, answered: Answered) {
        let replied = self.clock.now();
        self.engine.record(&Answered { replied, ..answered });
    }

    /// The power fails: no request is served any more, those in flight fail, and what is volatile meets its
    /// fate.
    pub(crate) fn power_cut(&mut self) -> io::Result<PowerCut> {
        for reply in self.engine.power_off(self.clock.now()) {
            self.fail(reply);
        }
        let cycle = self.engine.power_cycles();
        let mut total = PowerCut::default();
        for volume in self.volumes.iter_mut().flatten() {
            let mut random = self.seed.stream(&format!("power-cut.{}", volume.name), cycle);
            let Some(data) = &mut volume.data else { continue };
            let outcome = data.power_cut(&mut random)?;
            total.kept += outcome.kept;
            total.lost += outcome.lost;
            total.torn += outcome.torn;
        }
        Ok(total)
    }

    /// Opens a volume's data.
    pub(crate) fn open_volume(
        &self,
        volume: &VolumeConfig,
    ) -> Result<ExportedVolume, DatastoreError> {
        self.opener.open(volume)
    }

    /// Adds a volume and returns its number. Requests in flight to others are not disturbed. An error says why it cannot
    /// be placed.
    pub(crate) fn add_volume(&mut self, volume: &VolumeConfig) -> Result<usize, String> {
        let now = self.clock.now();
        let opened = self.open_volume(volume).map_err(|error| error.to_string())?;
        let number = match opened.data {
            Some(_) => self.engine.add_volume(now, volume.device, volume.capacity_bytes),
            None => self.engine.add_cluster_volume(now, volume)?,
        };
        self.volumes.push(Some(opened));
        debug_assert_eq!(number + 1, self.volumes.len());
        Ok(number)
    }

    /// Takes a volume away, with its NBD clients. `None` when requests to it are still in flight.
    pub(crate) fn remove_volume(&mut self, number: usize) -> Option<ExportedVolume> {
        for id in self.nbd.clients() {
            let serves = self.nbd.get(id).is_some_and(
                |client| matches!(client.phase, Phase::Serving { volume, .. } if volume == number),
            );
            if serves {
                self.nbd.close(id);
            }
        }
        if self.engine.in_flight(number) > 0 {
            return None;
        }
        let removed = self.volumes.get_mut(number)?.take();
        if removed.is_some() {
            self.engine.remove_volume(self.clock.now(), number);
        }
        removed
    }

    fn volume(&mut self, number: usize) -> Result<&mut ExportedVolume, Errno> {
        self.volumes.get_mut(number).and_then(Option::as_mut).ok_or(Errno::NOENT)
    }

    /// The bytes of a volume that has a file of its own.
    pub(super) fn data(&mut self, number: usize) -> Result<&mut VolumeData, Errno> {
        self.volume(number)?.data.as_mut().ok_or(Errno::NOENT)
    }

    /// The volume, if it has power and the range lies within it.
    fn powered_range(
        &mut self,
        number: usize,
        offset: u64,
        length: u64,
    ) -> Result<&mut ExportedVolume, Errno> {
        let is_powered = self.engine.is_powered();
        let volume = self.volume(number)?;
        if !is_powered {
            return Err(Errno::IO);
        }
        if volume.contains(offset, length) { Ok(volume) } else { Err(Errno::INVAL) }
    }

    /// Reads a range that lies within the volume.
    pub(super) fn read(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u32,
    ) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let bytes = length as usize;
        let in_cluster = self.powered_range(volume, offset, u64::from(length))?.data.is_none();
        if self.engine.is_probe(offset, length) {
            let mut buffer = self.buffers.take(bytes);
            // What a probe reads is of no interest, and a cluster would have to be asked for it.
            if !in_cluster {
                let outcome = self.data(volume)?.read(offset, &mut buffer[..bytes]);
                self.moved(outcome)?;
            }
            let content = Content::Data { buffer, length: bytes };
            self.engine.submit_probe(arrived, Reply { client, content });
            return Ok(());
        }
        if in_cluster {
            return self.cluster_read(client, volume, offset, length, arrived);
        }
        if self.engine.is_immediate(volume) && bytes <= self.scratch.len() {
            let mut scratch = std::mem::take(&mut self.scratch);
            let outcome = self.data(volume)?.read(offset, &mut scratch[..bytes]);
            let outcome = self.moved(outcome);
            if outcome.is_ok() {
                self.send_data(client, &scratch[..bytes]);
                self.count_immediate(volume, Operation::Read, length, arrived);
            }
            self.scratch = scratch;
            return outcome;
        }
        let mut buffer = self.buffers.take(bytes);
        let outcome = self.data(volume)?.read(offset, &mut buffer[..bytes]);
        self.moved(outcome)?;
        let content = Content::Data { buffer, length: bytes };
        let request = Request::read(offset, length);
        self.answer_or_submit(arrived, volume, &request, Reply { client, content });
        Ok(())
    }

    /// Where a range holds data: runs in order, one at least unless the range is empty. What is under way may count already.
    pub(super) fn extents(
        &mut self,
        number: usize,
        offset: u64,
        length: u32,
    ) -> Result<Vec<Extent>, Errno> {
        match &self.powered_range(number, offset, u64::from(length))?.data {
            Some(data) => {
                let outcome = data.extents(offset, length);
                outcome.map_err(|error| self.moved(Err(error)).err().unwrap_or(Errno::IO))
            }
            None => {
                let plane = self.engine.cluster.as_ref().ok_or(Errno::NOENT)?;
                plane.extents(number, offset, length).ok_or(Errno::IO)
            }
        }
    }

    pub(super) fn write(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        data: &[u8],
        durability: Force,
    ) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let target = self.powered_range(volume, offset, data.len() as u64)?;
        let forced = durability == Force::UnitAccess && !target.lies;
        let length = data.len() as u32;
        let request = Request { force_unit_access: forced, ..Request::write(offset, length) };
        let Some(file) = &mut target.data else {
            return self.cluster_write(client, volume, offset, data, request, arrived);
        };
        let outcome = file.write(offset, data);
        self.moved(outcome)?;
        let content = if forced {
            Content::Durable { volume, offset, length }
        } else {
            Content::Written { length }
        };
        self.answer_or_submit(arrived, volume, &request, Reply { client, content });
        Ok(())
    }

    pub(super) fn flush(&mut self, client: Client, volume: usize) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let target = self.powered_range(volume, 0, 0)?;
        if target.lies {
            self.send(Reply { client, content: Content::Done });
            self.count_immediate(volume, Operation::Flush, 0, arrived);
            return Ok(());
        }
        let Some(data) = &mut target.data else { return self.cluster_flush(client, volume) };
        let generation = data.flush_arrives();
        let reply = Reply { client, content: Content::Flushed { volume, generation } };
        self.answer_or_submit(arrived, volume, &Request::flush(), reply);
        Ok(())
    }

    /// Frees a range, or zeroes it; both are durable at once.
    pub(super) fn discard(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u64,
        zeroing: Zeroing,
    ) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let Some(data) = &mut self.powered_range(volume, offset, length)?.data else {
            return self.cluster_discard(client, volume, offset, length);
        };
        let outcome = data.discard(offset, length, zeroing);
        self.moved(outcome)?;
        // The model's request is shorter than what a discard may cover; its length costs nothing.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let request = match zeroing {
            Zeroing::FreesSpace => Request::discard(offset, length),
            Zeroing::KeepsSpace => Request::write(offset, length),
        };
        self.answer_or_submit(arrived, volume, &request, Reply { client, content: Content::Done });
        Ok(())
    }

    pub(super) fn answer_or_submit(
        &mut self,
        arrived: Nanos,
        volume: usize,
        request: &Request,
        reply: Reply,
    ) {
        if self.engine.is_immediate(volume) {
            self.send(reply);
            self.count_immediate(volume, request.operation, request.length_bytes, arrived);
        } else {
            self.engine.submit(arrived, self.clock.now(), volume, request, reply);
        }
    }

    fn count_immediate(&mut self, volume: usize, operation: Operation, bytes: u32, arrived: Nanos) {
        self.record(Answered {
            volume,
            operation,
            bytes,
            arrived,
            replied: arrived,
            modelled: None,
        });
    }

    /// Counts and reports a failure of the backing file.
    fn moved(&mut self, outcome: io::Result<()>) -> Result<(), Errno> {
        outcome.map_err(|error| {
            self.engine.count_error();
            tracing::error!("the backing file failed: {error}");
            if error.kind() == io::ErrorKind::StorageFull { Errno::NOSPC } else { Errno::IO }
        })
    }
}

/// Whether a write is done when it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    /// It may stay volatile until the next flush.
    Nothing,
    /// It is durable when it is answered.
    UnitAccess,
}
