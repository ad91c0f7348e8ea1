//! What a request does: data plane first, then the timing plane, then the answer.
//!
//! All of it happens on one thread, so there are no locks. Data moves at once. The model then says when the
//! request would be done; until then the answer waits in the engine. Requests to devices without delay, and all
//! requests while timing is off, are answered at once.

use std::io;

use rustix::io::Errno;
use underlay_core::{Nanos, RootSeed};
use underlay_model::{Operation, Request};

use super::buffers::BufferPool;
use super::clock::Clock;
use super::engine::{Due, Engine};
use super::fuse_device::FuseDevice;
use super::fuse_protocol::{
    Body, FuseRequest, Limits, Node, ROOT_INODE, attributes, directory, entry, file_system_status,
    initialised, is_compatible, opened_directory, opened_file, written,
};
use super::statistics::Answered;
use super::undo_log::{Generation, PowerCut};
use super::volume::VolumeData;

/// Largest request; the kernel's limit for FUSE.
pub(crate) const MAX_REQUEST_BYTES: u32 = 1 << 20;
/// Asynchronous requests in flight. The usual default of 12 to 16 would cap the queue depth.
const MAX_BACKGROUND: u16 = 1024;
const FIRST_VOLUME_INODE: u64 = 2;
/// Small buffers ready from the start.
const READY_BUFFERS: usize = 256;

/// One server: its volumes, its model, its connection to the kernel.
pub(crate) struct Service {
    pub(crate) clock: Clock,
    pub(crate) device: FuseDevice,
    pub(crate) engine: Engine<Reply>,
    pub(crate) volumes: Vec<ExportedVolume>,
    pub(crate) seed: RootSeed,
    pub(crate) is_realtime: bool,
    buffers: BufferPool,
    /// For reads that are answered at once.
    scratch: Box<[u8]>,
    /// Answers about to be sent; empty in between, kept for its memory.
    due: Vec<Due<Reply>>,
}

/// One volume as the export sees it.
pub(crate) struct ExportedVolume {
    pub(crate) name: String,
    pub(crate) data: VolumeData,
    /// Flushes are acknowledged and ignored.
    pub(crate) lies: bool,
}

/// The answer to a request, ready to be sent.
pub(crate) struct Reply {
    unique: u64,
    content: Content,
}

enum Content {
    /// Data read, in a pooled buffer.
    Data { buffer: Box<[u8]>, length: usize },
    /// A write of so many bytes.
    Written { length: u32 },
    /// A flush; durable from its answer on.
    Flushed { volume: usize, generation: Option<Generation> },
    /// A discard.
    Done,
}

impl Service {
    pub(crate) fn new(
        clock: Clock,
        device: FuseDevice,
        engine: Engine<Reply>,
        volumes: Vec<ExportedVolume>,
        seed: RootSeed,
    ) -> Service {
        Service {
            clock,
            device,
            engine,
            volumes,
            seed,
            is_realtime: false,
            buffers: BufferPool::new(READY_BUFFERS),
            // Written, not just allocated, so that no page is touched for the first time later.
            scratch: vec![1; MAX_REQUEST_BYTES as usize].into_boxed_slice(),
            due: Vec::with_capacity(1024),
        }
    }

    /// Serves one request of the kernel.
    pub(crate) fn serve(&mut self, request: &FuseRequest<'_>) {
        let FuseRequest { unique, inode, body } = *request;
        let outcome = match body {
            Body::Read { offset, size } => self.read(unique, inode, offset, size),
            Body::Write { offset, data } => self.write(unique, inode, offset, data),
            Body::Synchronise => self.flush(unique, inode),
            Body::Allocate { offset, length, mode } => {
                self.allocate(unique, inode, offset, length, mode)
            }
            _ => self.serve_metadata(unique, inode, body),
        };
        if let Err(errno) = outcome {
            self.device.refuse(unique, errno);
        }
    }

    fn serve_metadata(&mut self, unique: u64, inode: u64, body: Body<'_>) -> Result<(), Errno> {
        match body {
            Body::Init { major, minor, flags } => {
                if !is_compatible(major, minor, flags) {
                    return Err(Errno::PROTO);
                }
                let limits =
                    Limits { request_bytes: MAX_REQUEST_BYTES, background: MAX_BACKGROUND };
                self.device.answer(unique, &initialised(limits));
            }
            Body::Lookup { name } => {
                let found = |volume: &ExportedVolume| volume.name.as_bytes() == name;
                let index = self.volumes.iter().position(found).ok_or(Errno::NOENT)?;
                let inode = FIRST_VOLUME_INODE + index as u64;
                self.device.answer(unique, &entry(inode, self.node(inode)?));
            }
            Body::GetAttributes => {
                self.device.answer(unique, &attributes(inode, self.node(inode)?));
            }
            Body::Open => {
                self.volume_of(inode)?;
                self.device.answer(unique, &opened_file());
            }
            Body::OpenDirectory => self.device.answer(unique, &opened_directory()),
            Body::ReadDirectory { offset, size } => {
                let names = self.volumes.iter().map(|volume| volume.name.as_str());
                let entries = (FIRST_VOLUME_INODE..).zip(names);
                self.device.answer(unique, &directory(entries, offset, size));
            }
            Body::Release => self.device.answer(unique, &[]),
            Body::FileSystemStatus => self.device.answer(unique, &file_system_status()),
            Body::Forget | Body::Destroy => {}
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    }

    /// Sends what is due.
    pub(crate) fn answer_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.engine.take_due(self.clock.now(), &mut due);
        for Due { reply, answered } in due.drain(..) {
            self.send(reply);
            let replied = self.clock.now();
            self.engine.record(&Answered { replied, ..answered });
        }
        self.due = due;
    }

    /// The power fails: no request is served any more, those in flight fail, and what is volatile meets its
    /// fate.
    pub(crate) fn power_cut(&mut self) -> io::Result<PowerCut> {
        for reply in self.engine.power_off() {
            self.fail(reply);
        }
        let cycle = self.engine.power_cycles();
        let mut total = PowerCut::default();
        for volume in &mut self.volumes {
            let mut random = self.seed.stream(&format!("power-cut.{}", volume.name), cycle);
            let outcome = volume.data.power_cut(&mut random)?;
            total.kept += outcome.kept;
            total.lost += outcome.lost;
            total.torn += outcome.torn;
        }
        Ok(total)
    }

    fn node(&self, inode: u64) -> Result<Node, Errno> {
        if inode == ROOT_INODE {
            return Ok(Node::Directory);
        }
        let volume = &self.volumes[self.volume_of(inode)?];
        Ok(Node::File { size_bytes: volume.data.capacity_bytes() })
    }

    fn volume_of(&self, inode: u64) -> Result<usize, Errno> {
        let index = inode.checked_sub(FIRST_VOLUME_INODE).ok_or(Errno::ISDIR)?;
        let index = usize::try_from(index).map_err(|_| Errno::NOENT)?;
        if index < self.volumes.len() { Ok(index) } else { Err(Errno::NOENT) }
    }

    /// The volume of an inode, if it has power.
    fn powered(&self, inode: u64) -> Result<usize, Errno> {
        let volume = self.volume_of(inode)?;
        if self.engine.is_powered() { Ok(volume) } else { Err(Errno::IO) }
    }

    fn powered_range(&self, inode: u64, offset: u64, length: u64) -> Result<usize, Errno> {
        let volume = self.powered(inode)?;
        let inside = self.volumes[volume].data.contains(offset, length);
        if inside { Ok(volume) } else { Err(Errno::INVAL) }
    }

    fn read(&mut self, unique: u64, inode: u64, offset: u64, size: u32) -> Result<(), Errno> {
        let volume = self.powered(inode)?;
        let arrived = self.clock.now();
        // Direct reads reach beyond the end; a short answer is how the kernel learns where that is.
        let capacity = self.volumes[volume].data.capacity_bytes();
        let size = u64::from(size.min(MAX_REQUEST_BYTES)).min(capacity.saturating_sub(offset));
        let length = size as usize;
        if length == 0 {
            self.device.answer(unique, &[]);
            return Ok(());
        }
        if self.engine.is_immediate(volume) {
            let buffer = &mut self.scratch[..length];
            let outcome = self.volumes[volume].data.read(offset, buffer);
            moved(&mut self.engine, outcome)?;
            self.device.answer(unique, &self.scratch[..length]);
            self.count_immediate(volume, Operation::Read, length as u32, arrived);
            return Ok(());
        }
        let mut buffer = self.buffers.take(length);
        let outcome = self.volumes[volume].data.read(offset, &mut buffer[..length]);
        moved(&mut self.engine, outcome)?;
        let content = Content::Data { buffer, length };
        let request = Request::read(offset, length as u32);
        self.submit(arrived, volume, &request, Reply { unique, content });
        Ok(())
    }

    fn write(&mut self, unique: u64, inode: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let volume = self.powered_range(inode, offset, data.len() as u64)?;
        let arrived = self.clock.now();
        let outcome = self.volumes[volume].data.write(offset, data);
        moved(&mut self.engine, outcome)?;
        let length = data.len() as u32;
        let reply = Reply { unique, content: Content::Written { length } };
        self.answer_or_submit(arrived, volume, &Request::write(offset, length), reply);
        Ok(())
    }

    fn flush(&mut self, unique: u64, inode: u64) -> Result<(), Errno> {
        let volume = self.powered(inode)?;
        let arrived = self.clock.now();
        if self.volumes[volume].lies {
            self.device.answer(unique, &[]);
            self.count_immediate(volume, Operation::Flush, 0, arrived);
            return Ok(());
        }
        let generation = self.volumes[volume].data.flush_arrives();
        let reply = Reply { unique, content: Content::Flushed { volume, generation } };
        self.answer_or_submit(arrived, volume, &Request::flush(), reply);
        Ok(())
    }

    /// Discards arrive as holes to punch, zeroing as ranges to zero. A volume has no other allocation.
    fn allocate(
        &mut self,
        unique: u64,
        inode: u64,
        offset: u64,
        length: u64,
        mode: u32,
    ) -> Result<(), Errno> {
        let volume = self.powered_range(inode, offset, length)?;
        let known = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) as u32;
        if mode & known == 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let arrived = self.clock.now();
        let outcome = self.volumes[volume].data.discard(offset, length);
        moved(&mut self.engine, outcome)?;
        // The model's request is shorter than what a discard may cover; its length costs nothing.
        let request = Request::discard(offset, u32::try_from(length).unwrap_or(u32::MAX));
        self.answer_or_submit(arrived, volume, &request, Reply { unique, content: Content::Done });
        Ok(())
    }

    fn answer_or_submit(&mut self, arrived: Nanos, volume: usize, request: &Request, reply: Reply) {
        if self.engine.is_immediate(volume) {
            self.send(reply);
            self.count_immediate(volume, request.operation, request.length_bytes, arrived);
        } else {
            self.submit(arrived, volume, request, reply);
        }
    }

    fn submit(&mut self, arrived: Nanos, volume: usize, request: &Request, reply: Reply) {
        self.engine.submit(arrived, self.clock.now(), volume, request, reply);
    }

    fn count_immediate(&mut self, volume: usize, operation: Operation, bytes: u32, arrived: Nanos) {
        let replied = self.clock.now();
        let answered = Answered { volume, operation, bytes, arrived, replied, modelled: None };
        self.engine.record(&answered);
    }

    fn send(&mut self, reply: Reply) {
        let unique = reply.unique;
        match reply.content {
            Content::Data { buffer, length } => {
                self.device.answer(unique, &buffer[..length]);
                self.buffers.give(buffer);
            }
            Content::Written { length } => self.device.answer(unique, &written(length)),
            Content::Flushed { volume, generation } => {
                // Before the answer: once the client has it, a power cut must not take anything.
                if let Some(generation) = generation {
                    self.volumes[volume].data.flush_completes(generation);
                }
                self.device.answer(unique, &[]);
            }
            Content::Done => self.device.answer(unique, &[]),
        }
    }

    /// Answers with an I/O error.
    fn fail(&mut self, reply: Reply) {
        self.device.refuse(reply.unique, Errno::IO);
        if let Content::Data { buffer, .. } = reply.content {
            self.buffers.give(buffer);
        }
    }
}

/// Counts and reports a failure of the backing file.
fn moved(engine: &mut Engine<Reply>, outcome: io::Result<()>) -> Result<(), Errno> {
    outcome.map_err(|error| {
        engine.count_error();
        tracing::error!("the backing file failed: {error}");
        Errno::IO
    })
}
