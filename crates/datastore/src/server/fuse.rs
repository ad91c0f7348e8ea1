//! The FUSE file system: one directory with one file per volume, each the raw bytes of a block device.
//!
//! Files are opened with direct I/O and parallel writes, so that the kernel keeps no copy: a completed write is
//! here. One thread reads requests, moves the data, and hands the request to the model. This is the
//! only file, beside `export`, that knows the FUSE crate.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Session, WriteFlags,
};
use underlay_model::{Operation, Request};

use super::export::{Export, Reply};

/// Largest request; the kernel's limit for FUSE.
const MAX_REQUEST_BYTES: u32 = 1 << 20;
/// Asynchronous requests in flight. The default of 12 to 16 would cap the queue depth.
const MAX_BACKGROUND: u16 = 1024;
/// Attributes never change behind the kernel's back.
const ATTRIBUTES_VALID: Duration = Duration::from_secs(86_400);
/// The directory is inode 1.
const FIRST_VOLUME_INODE: u64 = 2;
const LENGTH_LIMIT: usize = MAX_REQUEST_BYTES as usize;

/// The mounted file system.
pub(crate) struct VolumeFiles {
    export: Arc<Export>,
    /// For reads that are answered at once; only the reader thread uses it.
    scratch: Mutex<Box<[u8]>>,
}

/// Mounts the volumes' files.
pub(crate) fn mount(export: Arc<Export>, mount_point: &Path) -> io::Result<Session<VolumeFiles>> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("underlay".to_string()),
        MountOption::Subtype("underlay".to_string()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    // More readers only compete for the same two or four CPUs, and arrivals would no longer be ordered.
    config.n_threads = Some(1);
    let scratch = Mutex::new(vec![1; LENGTH_LIMIT].into_boxed_slice());
    Session::new(VolumeFiles { export, scratch }, mount_point, &config)
}

impl VolumeFiles {
    fn volume_of(&self, inode: INodeNo) -> Result<usize, Errno> {
        let index = u64::from(inode).checked_sub(FIRST_VOLUME_INODE).ok_or(Errno::EISDIR)?;
        let index = usize::try_from(index).map_err(|_| Errno::ENOENT)?;
        if index < self.export.volumes.len() { Ok(index) } else { Err(Errno::ENOENT) }
    }

    fn attributes(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        if inode == INodeNo::ROOT {
            return Ok(attributes(inode, FileType::Directory, 0o700, 0));
        }
        let volume = &self.export.volumes[self.volume_of(inode)?];
        Ok(attributes(inode, FileType::RegularFile, 0o600, volume.data.capacity_bytes()))
    }

    fn is_immediate(&self, volume: usize) -> Result<bool, Errno> {
        let engine = self.export.engine();
        if engine.is_powered() { Ok(engine.is_immediate(volume)) } else { Err(Errno::EIO) }
    }

    /// Checks the power and a range, and says whether the request is to be answered at once.
    fn admit(&self, inode: INodeNo, offset: u64, length: u64) -> Result<(usize, bool), Errno> {
        let volume = self.volume_of(inode)?;
        if !self.export.volumes[volume].data.contains(offset, length) {
            return Err(Errno::EINVAL);
        }
        Ok((volume, self.is_immediate(volume)?))
    }

    fn read_immediately(&self, volume: usize, offset: u64, length: usize, reply: ReplyData) {
        let arrived = self.export.clock.now();
        let mut scratch = self.scratch.lock().expect("the reader does not panic");
        let buffer = &mut scratch[..length];
        match self.export.volumes[volume].data.read(offset, buffer) {
            Ok(()) => reply.data(buffer),
            Err(error) => return reply.error(self.data_error(&error)),
        }
        self.export.record_immediate(volume, Operation::Read, length as u32, arrived);
    }

    fn data_error(&self, error: &io::Error) -> Errno {
        self.export.count_error();
        tracing::error!("the backing file failed: {error}");
        Errno::EIO
    }

    fn flush_volume(&self, inode: INodeNo, reply: ReplyEmpty) {
        let arrived = self.export.clock.now();
        let (volume, immediate) = match self.admit(inode, 0, 0) {
            Ok(admitted) => admitted,
            Err(errno) => return reply.error(errno),
        };
        if self.export.volumes[volume].lies {
            reply.ok();
            return self.export.record_immediate(volume, Operation::Flush, 0, arrived);
        }
        let generation = self.export.volumes[volume].data.flush_arrives();
        let reply = Reply::Flushed { reply, volume, generation };
        if immediate {
            self.export.send(reply);
            self.export.record_immediate(volume, Operation::Flush, 0, arrived);
        } else {
            self.export.submit(arrived, volume, &Request::flush(), reply);
        }
    }
}

fn attributes(inode: INodeNo, kind: FileType, permissions: u16, size: u64) -> FileAttr {
    FileAttr {
        ino: inode,
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: permissions,
        nlink: 1,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for VolumeFiles {
    fn init(&mut self, _request: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it asynchronous I/O of the loop device would be served one request at a time.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::other("the kernel's FUSE has no asynchronous direct I/O"))?;
        let refused = |_| io::Error::other("the kernel's FUSE refused a limit");
        config.set_max_background(MAX_BACKGROUND).map_err(refused)?;
        config
            .set_max_write(MAX_REQUEST_BYTES)
            .map_err(|_| io::Error::other("max_write refused"))?;
        Ok(())
    }

    fn lookup(&self, _request: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.export.volumes.iter().position(|volume| name == volume.name.as_str());
        match found.filter(|_| parent == INodeNo::ROOT) {
            Some(index) => {
                let inode = INodeNo(FIRST_VOLUME_INODE + index as u64);
                let size = self.export.volumes[index].data.capacity_bytes();
                let attributes = attributes(inode, FileType::RegularFile, 0o600, size);
                reply.entry(&ATTRIBUTES_VALID, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            Ok(attributes) => reply.attr(&ATTRIBUTES_VALID, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let names = self.export.volumes.iter().map(|volume| volume.name.as_str());
        for (index, name) in names.enumerate().skip(offset as usize) {
            let inode = INodeNo(FIRST_VOLUME_INODE + index as u64);
            if reply.add(inode, index as u64 + 1, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &fuser::Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.volume_of(inode) {
            Ok(volume) => reply.opened(
                FileHandle(volume as u64),
                FopenFlags::FOPEN_DIRECT_IO
                    | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                    | FopenFlags::FOPEN_NOFLUSH,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (volume, immediate) = match self.admit(inode, 0, 0) {
            Ok(admitted) => admitted,
            Err(errno) => return reply.error(errno),
        };
        // Direct reads reach beyond the end; a short answer is how the kernel learns where that is.
        let capacity = self.export.volumes[volume].data.capacity_bytes();
        let size = u64::from(size).min(capacity.saturating_sub(offset)) as u32;
        if size == 0 {
            return reply.data(&[]);
        }
        let length = size as usize;
        if immediate && length <= LENGTH_LIMIT {
            return self.read_immediately(volume, offset, length, reply);
        }
        let arrived = self.export.clock.now();
        let mut buffer = self.export.buffers.take(length);
        if let Err(error) = self.export.volumes[volume].data.read(offset, &mut buffer[..length]) {
            return reply.error(self.data_error(&error));
        }
        let reply = Reply::Data { reply, buffer, length };
        self.export.submit(arrived, volume, &Request::read(offset, size), reply);
    }

    fn write(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (volume, immediate) = match self.admit(inode, offset, data.len() as u64) {
            Ok(admitted) => admitted,
            Err(errno) => return reply.error(errno),
        };
        let arrived = self.export.clock.now();
        if let Err(error) = self.export.volumes[volume].data.write(offset, data) {
            return reply.error(self.data_error(&error));
        }
        let length = data.len() as u32;
        if immediate {
            reply.written(length);
            self.export.record_immediate(volume, Operation::Write, length, arrived);
        } else {
            let request = Request::write(offset, length);
            self.export.submit(arrived, volume, &request, Reply::Written { reply, length });
        }
    }

    fn fsync(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.flush_volume(inode, reply);
    }

    fn fallocate(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (volume, immediate) = match self.admit(inode, offset, length) {
            Ok(admitted) => admitted,
            Err(errno) => return reply.error(errno),
        };
        // Discards arrive as holes to punch, zeroing as ranges to zero. A volume has no other allocation.
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let arrived = self.export.clock.now();
        if let Err(error) = self.export.volumes[volume].data.discard(offset, length) {
            return reply.error(self.data_error(&error));
        }
        let reply = Reply::Done { reply };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if immediate {
            self.export.send(reply);
            self.export.record_immediate(volume, Operation::Discard, length, arrived);
        } else {
            self.export.submit(arrived, volume, &Request::discard(offset, length), reply);
        }
    }
}
