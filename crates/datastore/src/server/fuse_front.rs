//! Requests of the kernel's FUSE: a directory with one file per volume.
//!
//! They come through `/dev/fuse` or, where the kernel offers it, through the ring; which of both is decided when the mount
//! begins, and only answers differ.

use rustix::io::Errno;
use tracing::{info, warn};

use super::fuse_negotiation::{Agreement, Offer};
use super::fuse_protocol::{
    Body, FuseRequest, Node, ROOT_INODE, attributes, directory, entry, file_system_status,
    opened_directory, opened_file,
};
use super::fuse_ring::protocol;
use super::fuse_ring::ring::FuseRing;
use super::reply::{Client, FuseTag};
use super::service::{Force, MAX_SCRATCH_BYTES, Service};
use super::volume::Zeroing;
use crate::export_way::ExportWay;
use std::os::fd::AsFd;

/// Largest request; the kernel's limit for FUSE.
pub(crate) const MAX_REQUEST_BYTES: u32 = MAX_SCRATCH_BYTES as u32;
/// Asynchronous requests in flight. The usual default of 12 to 16 would cap the queue depth.
const MAX_BACKGROUND: u16 = 1024;
const FIRST_VOLUME_INODE: u64 = 2;

impl Service {
    /// Serves the request of a place of the ring.
    pub(crate) fn serve_place(&mut self, place: usize) {
        let Some(ring) = &mut self.ring else { return };
        let header = ring.header(place);
        let places = ring.places();
        match protocol::parse(&header, places.payload(place)) {
            Ok(request) => {
                if let Body::Write { data, .. } = request.body {
                    ring.touched(place, data.len());
                }
                self.serve(&request, Some(place as u32));
            }
            // Not answered, it would be waited for by somebody for ever; it may be answered by its place alone.
            Err(error) => {
                warn!("a request of the ring is not understood: {error}");
                ring.refuse(place, protocol::commit_of(&header), Errno::IO);
            }
        }
    }

    /// Serves one request of the kernel.
    pub(crate) fn serve(&mut self, request: &FuseRequest<'_>, place: Option<u32>) {
        let FuseRequest { unique, inode, body } = *request;
        let tag = FuseTag { unique, place };
        let client = Client::Fuse(tag);
        let outcome = match body {
            Body::Read { offset, size } => self.fuse_read(tag, inode, offset, size),
            Body::Write { offset, data } => self
                .volume_of(inode)
                .and_then(|volume| self.write(client, volume, offset, data, Force::Nothing)),
            Body::Synchronise => {
                self.volume_of(inode).and_then(|volume| self.flush(client, volume))
            }
            Body::Allocate { offset, length, mode } => {
                self.allocate(client, inode, offset, length, mode)
            }
            _ => self.serve_metadata(tag, inode, body),
        };
        if let Err(errno) = outcome {
            self.fuse_refuse(tag, errno);
        }
    }

    pub(super) fn fuse_answer(&mut self, tag: FuseTag, body: &[u8]) {
        match (tag.place, &mut self.ring, &mut self.outbox, &self.device) {
            (Some(place), Some(ring), ..) => ring.answer(place as usize, tag.unique, body),
            (None, _, Some(outbox), _) => outbox.answer(tag.unique, body),
            (None, _, None, Some(device)) => {
                device.answer(tag.unique, body);
                self.completions.note(1);
            }
            _ => {}
        }
    }

    /// Answers a read whose data is in the place that it came from.
    pub(super) fn fuse_answer_in_place(&mut self, client: Client, length: usize) {
        if let (Client::Fuse(FuseTag { unique, place: Some(place) }), Some(ring)) =
            (client, &mut self.ring)
        {
            ring.answer_in_place(place as usize, unique, length);
        }
    }

    pub(super) fn fuse_refuse(&mut self, tag: FuseTag, errno: Errno) {
        match (tag.place, &mut self.ring, &mut self.outbox, &self.device) {
            (Some(place), Some(ring), ..) => ring.refuse(place as usize, tag.unique, errno),
            (None, _, Some(outbox), _) => outbox.refuse(tag.unique, errno),
            (None, _, None, Some(device)) => {
                device.refuse(tag.unique, errno);
                self.completions.note(1);
            }
            _ => {}
        }
    }

    /// How requests of the kernel come.
    pub(super) fn export_way(&self) -> ExportWay {
        match (&self.device, &self.ring) {
            (None, _) => ExportWay::None,
            (Some(_), Some(ring)) if ring.is_whole() => ExportWay::FuseIoUring,
            (Some(_), _) => ExportWay::Fuse,
        }
    }

    /// Agrees with the kernel on how requests come.
    fn initialise(&mut self, tag: FuseTag, offer: Offer) -> Result<(), Errno> {
        if !offer.is_compatible() {
            return Err(Errno::PROTO);
        }
        let mut ring = match &self.device {
            Some(device) if offer.has_ring() => {
                let made = FuseRing::new(device.as_fd(), MAX_REQUEST_BYTES as usize);
                made.inspect_err(|error| warn!("no FUSE over io_uring: {error}")).ok()
            }
            _ => None,
        };
        let agreement = Agreement {
            request_bytes: MAX_REQUEST_BYTES,
            background: MAX_BACKGROUND,
            ring: ring.is_some(),
        };
        self.fuse_answer(tag, &agreement.encode());
        // Once the kernel was told of the ring, requests wait for it; a place that is not taken ends that.
        if let Some(ring) = &mut ring
            && let Err(error) = ring.register()
        {
            warn!("FUSE over io_uring ends before it began: {error}");
        }
        info!(ring = ring.is_some(), "the kernel's FUSE is connected");
        self.ring = ring;
        Ok(())
    }

    fn serve_metadata(&mut self, tag: FuseTag, inode: u64, body: Body<'_>) -> Result<(), Errno> {
        match body {
            Body::Init(offer) => self.initialise(tag, offer)?,
            Body::Lookup { name } => {
                let found = self.present().find(|(_, volume)| volume.name.as_bytes() == name);
                let (index, _) = found.ok_or(Errno::NOENT)?;
                let inode = FIRST_VOLUME_INODE + index as u64;
                self.fuse_answer(tag, &entry(inode, self.node(inode)?));
            }
            Body::GetAttributes => {
                self.fuse_answer(tag, &attributes(inode, self.node(inode)?));
            }
            Body::Open => {
                self.volume_of(inode)?;
                self.fuse_answer(tag, &opened_file());
            }
            Body::OpenDirectory => self.fuse_answer(tag, &opened_directory()),
            Body::ReadDirectory { offset, size } => {
                let entries = self
                    .present()
                    .map(|(index, volume)| (FIRST_VOLUME_INODE + index as u64, &*volume.name));
                let listing = directory(entries, offset, size.min(MAX_REQUEST_BYTES));
                self.fuse_answer(tag, &listing);
            }
            Body::Release => self.fuse_answer(tag, &[]),
            Body::FileSystemStatus => self.fuse_answer(tag, &file_system_status()),
            Body::Forget | Body::Destroy => {}
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    }

    fn node(&self, inode: u64) -> Result<Node, Errno> {
        if inode == ROOT_INODE {
            return Ok(Node::Directory);
        }
        let volume = self.volumes[self.volume_of(inode)?].as_ref().ok_or(Errno::NOENT)?;
        Ok(Node::File { size_bytes: volume.capacity_bytes })
    }

    fn volume_of(&self, inode: u64) -> Result<usize, Errno> {
        let index = inode.checked_sub(FIRST_VOLUME_INODE).ok_or(Errno::ISDIR)?;
        let index = usize::try_from(index).map_err(|_| Errno::NOENT)?;
        match self.volumes.get(index) {
            Some(Some(_)) => Ok(index),
            _ => Err(Errno::NOENT),
        }
    }

    fn fuse_read(&mut self, tag: FuseTag, inode: u64, offset: u64, size: u32) -> Result<(), Errno> {
        let volume = self.volume_of(inode)?;
        let Node::File { size_bytes } = self.node(inode)? else { return Err(Errno::ISDIR) };
        if !self.engine.is_powered() {
            return Err(Errno::IO);
        }
        // Direct reads reach beyond the end; a short answer is how the kernel learns where that is.
        let size = u64::from(size.min(MAX_REQUEST_BYTES)).min(size_bytes.saturating_sub(offset));
        if size == 0 {
            self.fuse_answer(tag, &[]);
            return Ok(());
        }
        self.read(Client::Fuse(tag), volume, offset, size as u32)
    }

    /// Discards arrive as holes to punch, zeroing as ranges to zero. A volume has no other allocation.
    fn allocate(
        &mut self,
        client: Client,
        inode: u64,
        offset: u64,
        length: u64,
        mode: u32,
    ) -> Result<(), Errno> {
        let volume = self.volume_of(inode)?;
        let known = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) as u32;
        if mode & known == 0 {
            return Err(Errno::OPNOTSUPP);
        }
        self.discard(client, volume, offset, length, Zeroing::FreesSpace)
    }
}
