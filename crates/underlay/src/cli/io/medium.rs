//! What a target lies on, as far as the host tells: storage, an emulated volume of ours, or nothing but memory.
//!
//! Followed through loop devices to the file system or device below. Layers that name nothing below them (device mapper,
//! RAID, overlays, network file systems) end the search and count as storage.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use underlay_core::Evidence;

/// Layers looked through: a file system on a loop device on a file of a volume, and one to spare.
const LAYERS: usize = 4;
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Beginnings of the names of block devices that are memory.
const MEMORY_DEVICES: [&str; 2] = ["ram", "zram"];

/// What a target lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Storage of this host.
    Storage,
    /// One of our own emulated volumes.
    Emulated,
    /// This host's memory: no storage is measured.
    Memory,
}

impl Medium {
    /// That of a file or block device.
    pub fn of(path: &Path) -> Medium {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut path = path.to_path_buf();
        for _ in 0..LAYERS {
            let is_device =
                fs::metadata(&path).is_ok_and(|data| data.file_type().is_block_device());
            let device = if is_device {
                path.file_name().map(|name| name.to_string_lossy().into_owned())
            } else {
                let Some((kind, source)) = mount_of(&mounts, &path) else { break };
                if kind == "fuse.underlay" {
                    return Medium::Emulated;
                }
                if MEMORY_FILE_SYSTEMS.contains(&kind) {
                    return Medium::Memory;
                }
                source.strip_prefix("/dev/").map(str::to_string)
            };
            let Some(device) = device else { break };
            if is_memory(&device) {
                return Medium::Memory;
            }
            let backing = format!("/sys/class/block/{device}/loop/backing_file");
            match fs::read_to_string(backing) {
                Ok(file) => path = PathBuf::from(file.trim_end()),
                Err(_) => break,
            }
        }
        Medium::Storage
    }

    /// What figures of it are. Those of memory are measured, though not of storage.
    pub fn evidence(self) -> Evidence {
        match self {
            Medium::Storage | Medium::Memory => Evidence::Measured,
            Medium::Emulated => Evidence::Emulated,
        }
    }
}

/// Kind and source of the mount that is seen at a path: the last one of the longest mount point.
fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<(&'a str, &'a str)> {
    let (_, kind, source) = mounts
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let dash = fields.iter().position(|field| *field == "-")?;
            Some((*fields.get(4)?, *fields.get(dash + 1)?, *fields.get(dash + 2)?))
        })
        .filter(|(point, _, _)| path.starts_with(point))
        .max_by_key(|(point, _, _)| point.len())?;
    Some((kind, source))
}

fn is_memory(device: &str) -> bool {
    let numbered = |beginning: &str| {
        let number = device.strip_prefix(beginning);
        number
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    MEMORY_DEVICES.into_iter().any(numbered)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_memory, mount_of};

    const MOUNTS: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
        30 22 0:5 / /dev rw - devtmpfs devtmpfs rw\n\
        31 30 0:26 / /dev/shm rw shared:4 - tmpfs shm rw\n\
        40 22 7:0 / /mnt/a rw - xfs /dev/loop3 rw\n";

    #[test]
    fn the_nearest_mount_counts() {
        let at = |path: &str| mount_of(MOUNTS, Path::new(path));
        assert_eq!(at("/home/x"), Some(("ext4", "/dev/vda")));
        assert_eq!(at("/dev/shm/x"), Some(("tmpfs", "shm")));
        assert_eq!(at("/mnt/a/x"), Some(("xfs", "/dev/loop3")));
        assert_eq!(at("/mnt/ab"), Some(("ext4", "/dev/vda")));
    }

    #[test]
    fn devices_of_memory_are_told_by_their_names() {
        assert!(is_memory("ram0") && is_memory("zram12"));
        assert!(!is_memory("ram") && !is_memory("vda") && !is_memory("ramdisk1"));
    }
}
