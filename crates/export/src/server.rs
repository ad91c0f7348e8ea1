//! What a request does: it is passed to the back end, and the reply is sent when the back end says so.
//!
//! All of it happens on one thread, so there are no locks. Clients come through the kernel's FUSE (`fuse::front`) or over
//! NBD (`nbd::front`); here they are the same.

use std::net::SocketAddr;

use rustix::io::Errno;
use underlay_core::{Nanos, Operation};

use crate::back_end::{Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Force, Zeroing};
use crate::client::{AnswerBody, Asker, Client};
use crate::clock::Clock;
use crate::completions::Completions;
use crate::fuse::device::FuseDevice;
use crate::fuse::protocol::written;
use crate::nbd::connection::Phase;
use crate::nbd::listener::{ConnectionId, NbdListener};
use crate::path_cost::{PathCompensation, PathCost};
use crate::probes::{PROBE_BYTES, Probes};
use crate::realtime::Precedence;
use crate::statistics::Statistics;
use crate::wakeful::CpusAwake;

/// One server: its volumes, what serves them, its connections to clients.
pub struct Server<B> {
    /// What serves the volumes.
    pub back_end: B,
    /// What was answered.
    pub statistics: Statistics,
    pub(crate) exchange: Exchange<Client>,
    /// Present when volumes are exported as files for block devices.
    pub(crate) device: Option<FuseDevice>,
    pub(crate) nbd: NbdListener,
    /// By number; the place of a removed volume stays empty.
    volumes: Vec<Option<Volume>>,
    probes: Probes<Client>,
    pub(crate) precedence: Precedence,
    /// Of requests of the kernel's FUSE.
    pub(crate) completions: Completions,
    /// The end was requested.
    pub(crate) is_ending: bool,
    /// Held while modelled times are to be kept.
    awake: Option<CpusAwake>,
    /// NBD clients about to be looked at; empty in between, kept for its memory.
    pub(crate) ready: Vec<ConnectionId>,
}

/// The ways in which clients come.
pub struct Exports {
    /// Files for block devices.
    pub device: Option<FuseDevice>,
    /// Sockets.
    pub nbd: NbdListener,
}

/// One volume as its clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name of its file, or of its NBD export.
    pub name: String,
    /// Its size.
    pub capacity_bytes: u64,
}

impl Volume {
    /// Whether a range lies within it.
    fn contains(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= self.capacity_bytes)
    }
}

impl<B: BackEnd<Client>> Server<B> {
    /// A server without volumes.
    pub fn new(clock: Clock, exports: Exports, back_end: B) -> Server<B> {
        Server {
            back_end,
            statistics: Statistics::new(0),
            exchange: Exchange::new(clock),
            device: exports.device,
            nbd: exports.nbd,
            volumes: Vec::new(),
            probes: Probes::new(),
            precedence: Precedence::default(),
            completions: Completions::new(),
            is_ending: false,
            awake: None,
            ready: Vec::new(),
        }
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.exchange.clock.now()
    }

    /// Has [`Server::run`] return.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Asks for a real-time priority for the calling thread, which must be the one that serves.
    pub fn prioritise(&mut self, priority: i32) {
        self.precedence = Precedence::ask(priority);
    }

    /// Whether the serving thread has real-time priority.
    pub fn is_prioritised(&self) -> bool {
        self.precedence.is_granted()
    }

    /// Answers are given before their deadlines by this from now on.
    pub fn compensate(&mut self, compensation: PathCompensation) {
        self.exchange.path.compensate(compensation);
    }

    /// What the way through the host costs.
    pub fn path(&self) -> &PathCost {
        &self.exchange.path
    }

    /// Reads of the first 4 KiB of any volume are answered after this time from now on, uncounted, whatever the back end
    /// says; none = no longer.
    pub fn set_probe(&mut self, latency: Option<Nanos>) {
        self.probes.set_latency(latency);
    }

    /// The address on which NBD clients are accepted over TCP.
    pub fn nbd_address(&self) -> Option<SocketAddr> {
        self.nbd.address()
    }

    /// NBD connections that chose a volume.
    pub fn nbd_clients_of(&self, volume: usize) -> u64 {
        self.nbd.clients_of(volume)
    }

    /// To be called when the back end begins or ceases to keep time: while it does, idle CPUs do not sleep.
    pub fn follow_timing(&mut self) {
        if !self.back_end.keeps_time() {
            self.awake = None;
        } else if self.awake.is_none() {
            match CpusAwake::hold() {
                Ok(awake) => self.awake = Some(awake),
                Err(error) => tracing::warn!("idle CPUs will sleep: {error}; answers may be late"),
            }
        }
    }

    /// Whether answers have to leave at moments of their own.
    pub(crate) fn keeps_time(&self) -> bool {
        self.probes.are_expected() || self.back_end.keeps_time()
    }

    /// When the next request is to be answered; none = nothing is in flight.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        let path = &self.exchange.path;
        let early = path.compensation_of(Operation::Read);
        let probe = self.probes.next().map(|at| at.saturating_sub(early));
        [self.back_end.next_answer(path), probe].into_iter().flatten().min()
    }

    /// All volumes by number; the place of a removed volume stays empty.
    pub fn volumes(&self) -> &[Option<Volume>] {
        &self.volumes
    }

    /// The volumes there are, with their numbers.
    pub fn present(&self) -> impl Iterator<Item = (usize, &Volume)> {
        self.volumes.iter().enumerate().filter_map(|(i, volume)| Some((i, volume.as_ref()?)))
    }

    /// Exports a volume, to which the back end has given this number: the next one.
    ///
    /// # Panics
    /// If it is another.
    pub fn add_volume(&mut self, number: usize, volume: Volume) {
        assert_eq!(number, self.volumes.len(), "both sides know a volume by the same number");
        self.volumes.push(Some(volume));
        self.statistics.add_volume();
    }

    /// Takes a volume away, with its NBD clients. `None` when requests to it are still in flight.
    pub fn remove_volume(&mut self, number: usize) -> Option<Volume> {
        for id in self.nbd.clients() {
            let serves = self.nbd.get(id).is_some_and(
                |client| matches!(client.phase, Phase::Serving { volume, .. } if volume == number),
            );
            if serves {
                self.nbd.close(id);
            }
        }
        if self.back_end.in_flight(number) > 0 {
            return None;
        }
        let removed = self.volumes.get_mut(number)?.take();
        if removed.is_some() {
            let now = self.now();
            self.back_end.remove_volume(now, number);
        }
        removed
    }

    /// The power has failed: those whose requests the back end gave up, and probes, get an error.
    pub fn fail(&mut self, clients: Vec<Client>) {
        for client in clients {
            self.refuse(client, Errno::IO);
        }
        let probes: Vec<(Client, Vec<u8>)> = self.probes.abandon().collect();
        for (client, buffer) in probes {
            self.refuse(client, Errno::IO);
            self.exchange.buffers.give(buffer);
        }
    }

    /// Sends what is due. Returns whether anything was.
    pub(crate) fn answer_due(&mut self) -> bool {
        let now = self.now();
        let mut was_any = false;
        // Probes are reads.
        let until = now + self.exchange.path.compensation_of(Operation::Read);
        while let Some((client, buffer)) = self.probes.take_due(until) {
            self.succeed(client, &buffer[..PROBE_BYTES as usize]);
            self.exchange.buffers.give(buffer);
            was_any = true;
        }
        self.back_end.take_due(now, &mut self.exchange);
        was_any |= !self.exchange.answers.is_empty();
        self.send_answers();
        was_any
    }

    /// The volume, if it has power and the range lies within it.
    fn powered_range(&self, number: usize, offset: u64, length: u64) -> Result<(), Errno> {
        let volume = self.volumes.get(number).and_then(Option::as_ref).ok_or(Errno::NOENT)?;
        if !self.back_end.is_powered() {
            return Err(Errno::IO);
        }
        if volume.contains(offset, length) { Ok(()) } else { Err(Errno::INVAL) }
    }

    /// Reads a range that lies within the volume.
    pub(crate) fn read(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u32,
    ) -> Result<(), Errno> {
        let arrived = self.now();
        self.powered_range(volume, offset, u64::from(length))?;
        if self.probes.has(offset, length) {
            let mut buffer = self.exchange.buffers.take(length as usize);
            self.back_end.probe(volume, &mut buffer[..length as usize])?;
            self.probes.submit(arrived, client, buffer);
            return Ok(());
        }
        self.submit(BlockRequest { client, volume, arrived, asked: Asked::Read { offset, length } })
    }

    pub(crate) fn write(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        data: &[u8],
        force: Force,
    ) -> Result<(), Errno> {
        let arrived = self.now();
        self.powered_range(volume, offset, data.len() as u64)?;
        let asked = Asked::Write { offset, data, force };
        self.submit(BlockRequest { client, volume, arrived, asked })
    }

    pub(crate) fn flush(&mut self, client: Client, volume: usize) -> Result<(), Errno> {
        let arrived = self.now();
        self.powered_range(volume, 0, 0)?;
        self.submit(BlockRequest { client, volume, arrived, asked: Asked::Flush })
    }

    /// Frees a range, or zeroes it; both are durable when they are answered.
    pub(crate) fn discard(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u64,
        zeroing: Zeroing,
    ) -> Result<(), Errno> {
        let arrived = self.now();
        self.powered_range(volume, offset, length)?;
        let asked = Asked::Discard { offset, length, zeroing };
        self.submit(BlockRequest { client, volume, arrived, asked })
    }

    /// Where a range holds data. What is under way may count already.
    pub(crate) fn extents(
        &mut self,
        volume: usize,
        offset: u64,
        length: u32,
    ) -> Result<Vec<Extent>, Errno> {
        self.powered_range(volume, offset, u64::from(length))?;
        self.back_end.extents(volume, offset, length)
    }

    fn submit(&mut self, request: BlockRequest<'_, Client>) -> Result<(), Errno> {
        self.back_end.submit(request, &mut self.exchange)?;
        if !self.exchange.answers.is_empty() {
            self.send_answers();
        }
        Ok(())
    }

    /// Sends what the back end handed over, and counts it.
    fn send_answers(&mut self) {
        let mut answers = std::mem::take(&mut self.exchange.answers);
        for answer in answers.drain(..) {
            match answer.client {
                Some(client) if answer.failed => {
                    self.statistics.count_failure(answer.volume);
                    self.refuse(client, Errno::IO);
                }
                Some(client) => self.succeed(client, answer.data()),
                None => {}
            }
            // What failed without a model has no time to be counted.
            if answer.modelled.is_some() || !answer.failed {
                self.record(&answer);
            }
            self.exchange.buffers.give(answer.buffer);
        }
        debug_assert!(self.exchange.answers.is_empty(), "an answer asks for nothing");
        self.exchange.answers = answers;
    }

    /// Counts a request whose answer was sent.
    fn record(&mut self, answer: &Answer<Client>) {
        let replied = self.now();
        let path = &mut self.exchange.path;
        if let Some(modelled) = answer.modelled.filter(|modelled| modelled.delayed) {
            let leaves = modelled.deadline.saturating_sub(answer.early);
            path.observe_answer(replied.saturating_sub(leaves));
        }
        self.statistics.record(answer, replied, path.way(answer.early));
    }

    /// Answers with success, and with what was read.
    pub(crate) fn succeed(&mut self, client: Client, data: &[u8]) {
        match client.0 {
            Asker::Fuse { unique, body } => match body {
                AnswerBody::Data => self.fuse_answer(unique, data),
                AnswerBody::Written { bytes } => self.fuse_answer(unique, &written(bytes)),
                AnswerBody::Nothing => self.fuse_answer(unique, &[]),
            },
            Asker::Nbd { reply_bytes: 0, .. } => self.nbd_done(client.0),
            Asker::Nbd { reply_bytes, .. } => {
                debug_assert_eq!(data.len(), reply_bytes as usize, "all that was asked for");
                self.nbd_data(client.0, data);
            }
        }
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, client: Client, errno: Errno) {
        match client.0 {
            Asker::Fuse { unique, .. } => self.fuse_refuse(unique, errno),
            Asker::Nbd { .. } => self.nbd_refuse(client.0, errno),
        }
    }
}
