//! Making file systems and asking for their free space.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use rustix::fs::statvfs;
use rustix::process::geteuid;
use underlay_core::{Bytes, FileSystem};

use crate::error::HostError;
use crate::program::run_program;

/// Below this xfsprogs refuses (since 5.19).
const XFS_MINIMUM: Bytes = Bytes::from_mib(300);
/// Below this a cluster and a journal do not fit.
const EXT4_MINIMUM: Bytes = Bytes::from_mib(32);

/// A database has few and large files. The usual 16 KiB per inode would spend 1.6 % of a volume on
/// inode tables, all of which are written by mkfs.
const EXT4_BYTES_PER_INODE: u64 = 65_536;
/// A fresh cluster has about a thousand files, a database more of them for every schema.
const EXT4_LEAST_INODES: u64 = 8_192;

/// The smallest device that a file system can be made on.
pub const fn minimum_size(system: FileSystem) -> Bytes {
    match system {
        FileSystem::Ext4 => EXT4_MINIMUM,
        FileSystem::Xfs => XFS_MINIMUM,
    }
}

/// Makes a file system on a block device, destroying what is on it.
///
/// All of ext4's inode tables and its journal are written now (`lazy_itable_init=0`,
/// `lazy_journal_init=0`): the kernel would otherwise write them in the background of the measured
/// window. Nothing is discarded (`nodiscard`, `-K`): the device is new, and discarding it first would
/// cost a pass over it and leave the state of the device to the kernel's discard granularity. No
/// blocks are reserved for root, so that a volume is full when its capacity is used.
pub fn make_file_system(device: &Path, system: FileSystem) -> Result<(), HostError> {
    if !geteuid().is_root() {
        return Err(HostError::NeedsRoot { action: "make a file system" });
    }
    let size = device_size(device)?;
    if size < minimum_size(system) {
        return Err(HostError::TooSmall {
            device: device.to_path_buf(),
            file_system: system.as_str(),
            size,
            minimum: minimum_size(system),
        });
    }
    let (program, mut args) = match system {
        FileSystem::Ext4 => ("mkfs.ext4", ext4_arguments(size)),
        FileSystem::Xfs => ("mkfs.xfs", ["-f", "-q", "-K"].map(OsString::from).to_vec()),
    };
    args.push(device.as_os_str().to_os_string());
    run_program(program, &args, None).map(|_| ())
}

/// The space that an unprivileged user may still fill below `path`, which need not exist yet.
pub fn free_space(path: &Path) -> Result<Bytes, HostError> {
    // The ancestors of a relative path end before the current folder.
    let path = std::path::absolute(path).map_err(HostError::file("resolve", path))?;
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let facts =
        statvfs(existing).map_err(HostError::file("ask for the free space of", existing))?;
    Ok(Bytes(facts.f_bavail * facts.f_frsize))
}

fn ext4_arguments(size: Bytes) -> Vec<OsString> {
    let inodes = (size.0 / EXT4_BYTES_PER_INODE).max(EXT4_LEAST_INODES);
    [
        "-F",
        "-q",
        "-b",
        "4096",
        "-m",
        "0",
        "-N",
        &inodes.to_string(),
        "-J",
        &format!("size={}", ext4_journal_mib(size)),
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
    ]
    .map(OsString::from)
    .to_vec()
}

/// The journal's size is fixed here, because mkfs chooses by its version and a full journal stalls.
fn ext4_journal_mib(size: Bytes) -> u64 {
    match size.0 >> 20 {
        0..128 => 4,
        128..1024 => 16,
        1024..4096 => 32,
        _ => 64,
    }
}

fn device_size(device: &Path) -> Result<Bytes, HostError> {
    let mut file = File::open(device).map_err(HostError::file("open", device))?;
    file.seek(SeekFrom::End(0)).map(Bytes).map_err(HostError::file("ask for the size of", device))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FileSystem, free_space};
    use underlay_core::Bytes;

    #[test]
    fn asks_for_the_space_of_what_does_not_exist_yet() {
        let here = free_space(Path::new("/tmp")).unwrap();
        let there = free_space(Path::new("/tmp/no/such/place")).unwrap();
        assert!(there > Bytes::ZERO);
        // Others write at the same time.
        assert!(here.0.abs_diff(there.0) < 1 << 30);
    }

    #[test]
    fn what_does_not_exist_below_the_current_folder_has_its_space() {
        let (here, there) = (free_space(Path::new(".")), free_space(Path::new("no-such-place")));
        assert!(here.unwrap().0.abs_diff(there.unwrap().0) < 1 << 30);
    }

    #[test]
    fn words_read_back() {
        for system in [FileSystem::Ext4, FileSystem::Xfs] {
            assert_eq!(FileSystem::from_word(system.as_str()), Some(system));
        }
        assert_eq!(FileSystem::from_word("btrfs"), None);
    }
}
