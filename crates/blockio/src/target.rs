//! What is measured: a file or a block device, opened for direct I/O.
//!
//! Reading is the default. To write, a caller either creates the file, or says that an existing file, or a
//! device, may be overwritten: two different words, so that a device is never written to by a flag that was
//! meant for a file. A block device is opened exclusively for that, which fails while it is mounted or in use.

use crate::error::BlockIoError;
use crate::target_kind::TargetKind;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use underlay_core::Bytes;

/// Smallest size that gives usable results.
pub const SIZE_MIN: Bytes = Bytes::from_mib(16);

/// What the caller allows to overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The content of an existing file, never a device.
    OverwriteFile,
    /// The content of a block device, never a file.
    OverwriteDevice,
}

/// Whether the kernel's page cache lies between the requests and the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// It does not (`O_DIRECT`): the storage is measured.
    Direct,
    /// It does: memory is measured too.
    Buffered,
}

impl Caching {
    fn flag(self) -> OFlags {
        match self {
            Caching::Direct => OFlags::DIRECT,
            Caching::Buffered => OFlags::empty(),
        }
    }
}

/// Whether a target may be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutability {
    ReadOnly,
    Writable,
}

/// An open file or device.
#[derive(Debug)]
pub struct Target {
    file: File,
    path: PathBuf,
    kind: TargetKind,
    size: Bytes,
    mutability: Mutability,
}

impl Target {
    /// Opens an existing file or device for reading.
    ///
    /// # Errors
    /// When it cannot be opened, is of another kind, too small, or a file with holes.
    pub fn open(path: &Path) -> Result<Target, BlockIoError> {
        Target::open_to_read(path, Caching::Direct)
    }

    /// Opens an existing file or device for reading, through the page cache or not.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn open_to_read(path: &Path, caching: Caching) -> Result<Target, BlockIoError> {
        let target = open(path, OFlags::RDONLY | caching.flag(), Mutability::ReadOnly)?;
        target.check_stored()?;
        Ok(target)
    }

    /// Opens an existing file or device to read and write it, after the caller made sure that its content
    /// may be destroyed. A block device must not be in use.
    ///
    /// # Errors
    /// When it cannot be opened, or is a device in use.
    pub fn open_to_write(path: &Path, caching: Caching) -> Result<Target, BlockIoError> {
        let exclusive = match kind_of(path)? {
            TargetKind::File => OFlags::empty(),
            TargetKind::BlockDevice => OFlags::EXCL,
        };
        open(path, OFlags::RDWR | exclusive | caching.flag(), Mutability::Writable)
    }

    /// Opens an existing file or device whose content may be destroyed.
    ///
    /// # Errors
    /// As [`Target::open`], and when it is not of the kind that may be overwritten, or a device in use.
    pub fn open_for_overwriting(path: &Path, allowed: Existing) -> Result<Target, BlockIoError> {
        let (kind, exclusive) = match allowed {
            Existing::OverwriteFile => (TargetKind::File, OFlags::empty()),
            Existing::OverwriteDevice => (TargetKind::BlockDevice, OFlags::EXCL),
        };
        // Looked at before it is opened for writing.
        let other =
            |found| BlockIoError::OtherKind { path: path.to_path_buf(), found, wanted: kind };
        let found = kind_of(path)?;
        if found != kind {
            return Err(other(found));
        }
        let direct = Caching::Direct.flag();
        let target = open(path, OFlags::RDWR | exclusive | direct, Mutability::Writable)?;
        if target.kind == kind { Ok(target) } else { Err(other(target.kind)) }
    }

    /// Creates a file of that size. It has holes until it is written to.
    ///
    /// # Errors
    /// When something of that name exists, or there is no space.
    pub fn create(path: &Path, size: Bytes) -> Result<Target, BlockIoError> {
        Target::create_with(path, size, Caching::Direct)
    }

    /// As [`Target::create`], through the page cache or not.
    ///
    /// # Errors
    /// When something of that name exists, or there is no space.
    pub fn create_with(path: &Path, size: Bytes, caching: Caching) -> Result<Target, BlockIoError> {
        let create =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | caching.flag();
        let fd = rustix::fs::open(path, create, Mode::RUSR | Mode::WUSR);
        let file = File::from(fd.map_err(|error| refused(path, "create", error.into()))?);
        // Space that is there now cannot be missing in the middle of a measurement.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size.0)
            .map_err(|error| failed(path, "allocate space for", error.into()))?;
        let path = path.to_path_buf();
        check_size(&path, size)?;
        Ok(Target { file, path, kind: TargetKind::File, size, mutability: Mutability::Writable })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Its size.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.mutability == Mutability::Writable
    }

    /// The descriptor, for the ring and for flushes.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The file, for plain system calls.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Refuses writes to what was opened for reading.
    pub(crate) fn require_writable(&self) -> Result<(), BlockIoError> {
        match self.mutability {
            Mutability::Writable => Ok(()),
            Mutability::ReadOnly => Err(BlockIoError::ReadOnly { path: self.path.clone() }),
        }
    }

    fn check_stored(&self) -> Result<(), BlockIoError> {
        if self.kind == TargetKind::BlockDevice {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&self.file);
        let stat = stat.map_err(|error| failed(&self.path, "look at", error.into()))?;
        let stored = Bytes(stat.st_blocks as u64 * 512);
        // Compressing file systems store less, so only much less is a hole.
        if stored.0 < self.size.0 / 2 {
            let path = self.path.clone();
            return Err(BlockIoError::Sparse { path, size: self.size, stored });
        }
        Ok(())
    }
}

fn open(path: &Path, access: OFlags, mutability: Mutability) -> Result<Target, BlockIoError> {
    let kind = kind_of(path)?;
    let flags = access | OFlags::CLOEXEC;
    let fd: OwnedFd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| refused(path, "open", error.into()))?;
    let mut file = File::from(fd);
    // The end of a block device is its size, as for a file.
    let size =
        file.seek(SeekFrom::End(0)).map_err(|error| failed(path, "find the size of", error))?;
    let path = path.to_path_buf();
    let size = Bytes(size);
    check_size(&path, size)?;
    Ok(Target { file, path, kind, size, mutability })
}

/// Whether a path is a file or a block device, without opening it.
///
/// # Errors
/// When there is nothing, or something else.
pub fn kind_of(path: &Path) -> Result<TargetKind, BlockIoError> {
    let stat = rustix::fs::stat(path).map_err(|error| failed(path, "look at", error.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(TargetKind::File),
        FileType::BlockDevice => Ok(TargetKind::BlockDevice),
        _ => Err(BlockIoError::WrongKind { path: path.to_path_buf() }),
    }
}

fn check_size(path: &Path, size: Bytes) -> Result<(), BlockIoError> {
    if size < SIZE_MIN {
        return Err(BlockIoError::TooSmall { path: path.to_path_buf(), size, least: SIZE_MIN });
    }
    Ok(())
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> BlockIoError {
    BlockIoError::Target { action, path: path.to_path_buf(), source }
}

/// An open with `O_DIRECT` that the file system does not know fails with `EINVAL`.
fn refused(path: &Path, action: &'static str, source: io::Error) -> BlockIoError {
    match source.raw_os_error() {
        Some(libc::EINVAL) => BlockIoError::NoDirectIo { path: path.to_path_buf() },
        _ => failed(path, action, source),
    }
}
