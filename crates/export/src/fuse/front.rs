//! Requests of the kernel's FUSE: a directory with one file per volume.
//!
//! They come through `/dev/fuse`, one system call per request and one per answer.

use rustix::io::Errno;
use tracing::info;

use super::negotiation::{Agreement, Offer};
use super::protocol::{
    Body, FuseRequest, Node, ROOT_INODE, attributes, directory, entry, file_system_status,
    opened_directory, opened_file,
};
use crate::back_end::{BackEnd, Force, Zeroing};
use crate::client::{AnswerBody, Asker, Client};
use crate::server::Server;

/// Largest request; the kernel's limit for FUSE.
pub(crate) const MAX_REQUEST_BYTES: u32 = 1 << 20;
/// Asynchronous requests in flight. The usual default of 12 to 16 would cap the queue depth.
const MAX_BACKGROUND: u16 = 1024;
const FIRST_VOLUME_INODE: u64 = 2;

/// Who asked over FUSE.
const fn client(unique: u64, body: AnswerBody) -> Client {
    Client(Asker::Fuse { unique, body })
}

impl<B: BackEnd<Client>> Server<B> {
    /// Serves one request of the kernel.
    pub(crate) fn serve(&mut self, request: &FuseRequest<'_>) {
        let FuseRequest { unique, inode, body } = *request;
        let outcome = match body {
            Body::Read { offset, size } => self.fuse_read(unique, inode, offset, size),
            Body::Write { offset, data } => {
                let bytes = data.len() as u32;
                let client = client(unique, AnswerBody::Written { bytes });
                self.volume_of(inode)
                    .and_then(|volume| self.write(client, volume, offset, data, Force::Nothing))
            }
            // The kernel then sends no more flushes and reports success: a virtual disk without a volatile cache.
            Body::Synchronise if self.back_end.is_durable() => Err(Errno::NOSYS),
            Body::Synchronise => {
                let client = client(unique, AnswerBody::Nothing);
                self.volume_of(inode).and_then(|volume| self.flush(client, volume))
            }
            Body::Allocate { offset, length, mode } => {
                let client = client(unique, AnswerBody::Nothing);
                self.allocate(client, inode, offset, length, mode)
            }
            _ => self.serve_metadata(unique, inode, body),
        };
        if let Err(errno) = outcome {
            self.fuse_refuse(unique, errno);
        }
    }

    pub(crate) fn fuse_answer(&mut self, unique: u64, body: &[u8]) {
        if let Some(device) = &self.device {
            device.answer(unique, body);
            self.completions.note(1);
        }
    }

    pub(crate) fn fuse_refuse(&mut self, unique: u64, errno: Errno) {
        if let Some(device) = &self.device {
            device.refuse(unique, errno);
            self.completions.note(1);
        }
    }

    /// Agrees with the kernel on how requests come.
    fn initialise(&mut self, unique: u64, offer: Offer) -> Result<(), Errno> {
        if !offer.is_compatible() {
            return Err(Errno::PROTO);
        }
        let agreement = Agreement { request_bytes: MAX_REQUEST_BYTES, background: MAX_BACKGROUND };
        self.fuse_answer(unique, &agreement.encode());
        info!("the kernel's FUSE is connected");
        Ok(())
    }

    fn serve_metadata(&mut self, unique: u64, inode: u64, body: Body<'_>) -> Result<(), Errno> {
        match body {
            Body::Init(offer) => self.initialise(unique, offer)?,
            Body::Lookup { name } => {
                let found = self.present().find(|(_, volume)| volume.name.as_bytes() == name);
                let (index, _) = found.ok_or(Errno::NOENT)?;
                let inode = FIRST_VOLUME_INODE + index as u64;
                self.fuse_answer(unique, &entry(inode, self.node(inode)?));
            }
            Body::GetAttributes => {
                self.fuse_answer(unique, &attributes(inode, self.node(inode)?));
            }
            Body::Open => {
                self.volume_of(inode)?;
                self.fuse_answer(unique, &opened_file());
            }
            Body::OpenDirectory => self.fuse_answer(unique, &opened_directory()),
            Body::ReadDirectory { offset, size } => {
                let entries = self
                    .present()
                    .map(|(index, volume)| (FIRST_VOLUME_INODE + index as u64, &*volume.name));
                let listing = directory(entries, offset, size.min(MAX_REQUEST_BYTES));
                self.fuse_answer(unique, &listing);
            }
            Body::Release => self.fuse_answer(unique, &[]),
            Body::FileSystemStatus => self.fuse_answer(unique, &file_system_status()),
            Body::Forget | Body::Destroy => {}
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    }

    fn node(&self, inode: u64) -> Result<Node, Errno> {
        if inode == ROOT_INODE {
            return Ok(Node::Directory);
        }
        let volume = self.volumes()[self.volume_of(inode)?].as_ref().ok_or(Errno::NOENT)?;
        Ok(Node::File { size_bytes: volume.capacity_bytes })
    }

    fn volume_of(&self, inode: u64) -> Result<usize, Errno> {
        let index = inode.checked_sub(FIRST_VOLUME_INODE).ok_or(Errno::ISDIR)?;
        let index = usize::try_from(index).map_err(|_| Errno::NOENT)?;
        match self.volumes().get(index) {
            Some(Some(_)) => Ok(index),
            _ => Err(Errno::NOENT),
        }
    }

    fn fuse_read(&mut self, unique: u64, inode: u64, offset: u64, size: u32) -> Result<(), Errno> {
        let volume = self.volume_of(inode)?;
        let Node::File { size_bytes } = self.node(inode)? else { return Err(Errno::ISDIR) };
        if !self.back_end.is_powered() {
            return Err(Errno::IO);
        }
        // Direct reads reach beyond the end; a short answer is how the kernel learns where that is.
        let size = u64::from(size.min(MAX_REQUEST_BYTES)).min(size_bytes.saturating_sub(offset));
        if size == 0 {
            self.fuse_answer(unique, &[]);
            return Ok(());
        }
        debug_assert!(offset + size <= size_bytes, "a read beyond the end was not cut off");
        self.read(client(unique, AnswerBody::Data), volume, offset, size as u32)
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
