//! What a target lies on, as far as the host tells: storage, an emulated volume of ours, or nothing but memory.
//!
//! Followed through file systems, loop devices, partitions, device mapper and RAID to what is below, and through network block
//! devices and file systems in user space to whom they are connected with ([`connections`]). What names nothing below it (overlays,
//! network file systems, another host, the disk of a virtual machine) ends the search and counts as storage.

mod connections;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, major, minor, statx};
use underlay_core::Evidence;

use crate::lab::block::Medium;
use connections::Connections;

/// Layers looked through: a file system on a loop device on a file of a volume, a volume manager on its partition, and some to spare.
const LAYERS: usize = 8;
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Beginnings of the names of block devices that are memory.
const MEMORY_DEVICES: [&str; 2] = ["ram", "zram"];
/// The type of our own file system, as mounts have it.
const OURS: &str = "fuse.underlay";

impl Medium {
    /// That of a file or block device.
    pub fn of(path: &Path) -> Medium {
        Host::this().of_path(path, LAYERS)
    }

    /// What figures of it are. Those of memory are measured, though not of storage.
    pub fn evidence(self) -> Evidence {
        match self {
            Medium::Storage | Medium::Memory => Evidence::Measured,
            Medium::Emulated => Evidence::Emulated,
        }
    }

    /// That of what lies on several.
    fn of_all(media: impl Iterator<Item = Medium>) -> Medium {
        let media: Vec<Medium> = media.collect();
        if media.contains(&Medium::Emulated) {
            return Medium::Emulated;
        }
        let in_memory = !media.is_empty() && media.iter().all(|medium| *medium == Medium::Memory);
        if in_memory { Medium::Memory } else { Medium::Storage }
    }
}

/// Where the kernel tells about itself.
struct Host {
    sys: PathBuf,
    mounts: String,
    connections: Connections,
}

impl Host {
    fn this() -> Host {
        Host {
            sys: PathBuf::from("/sys"),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
            connections: Connections::of_this_host(),
        }
    }

    fn of_path(&self, path: &Path, layers: usize) -> Medium {
        let Some(layers) = layers.checked_sub(1) else { return Medium::Storage };
        let data = fs::metadata(path);
        if let Ok(data) = &data
            && data.file_type().is_block_device()
        {
            return self.of_device((major(data.rdev()), minor(data.rdev())), layers);
        }
        let Some(mount) = mount_of(&self.mounts, path) else { return Medium::Storage };
        if mount.kind == OURS {
            return Medium::Emulated;
        }
        if MEMORY_FILE_SYSTEMS.contains(&mount.kind) {
            return Medium::Memory;
        }
        if mount.kind == "fuse" || mount.kind.starts_with("fuse.") {
            let is_ours = self.connections.fuse_is_ours(mount.device.1);
            return if is_ours { Medium::Emulated } else { Medium::Storage };
        }
        // Some file systems have a number of their own, and name their device only.
        let source = fs::metadata(mount.source).ok();
        let source = source.filter(|data| data.file_type().is_block_device());
        let device = source.map_or(mount.device, |data| (major(data.rdev()), minor(data.rdev())));
        self.of_device(device, layers)
    }

    fn of_device(&self, (major, minor): (u32, u32), layers: usize) -> Medium {
        let Some(layers) = layers.checked_sub(1) else { return Medium::Storage };
        let known = self.sys.join(format!("dev/block/{major}:{minor}")).canonicalize();
        let Ok(mut folder) = known else { return Medium::Storage };
        if folder.join("partition").exists() {
            folder.pop();
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_numbered(&name, &MEMORY_DEVICES) {
            return Medium::Memory;
        }
        if is_numbered(&name, &["nbd"]) {
            let client = fs::read_to_string(folder.join("pid")).ok();
            let client = client.and_then(|pid| pid.trim().parse().ok());
            let is_ours = client.is_some_and(|pid| self.connections.nbd_is_ours(pid));
            return if is_ours { Medium::Emulated } else { Medium::Storage };
        }
        if let Ok(file) = fs::read_to_string(folder.join("loop/backing_file")) {
            return self.of_path(Path::new(file.trim_end_matches('\n')), layers);
        }
        let below = fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
        let below = below.filter_map(|entry| {
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            device_number(number.trim())
        });
        Medium::of_all(below.map(|device| self.of_device(device, layers)))
    }
}

/// A mounted file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mounted<'a> {
    kind: &'a str,
    source: &'a str,
    /// Major and minor number of its device.
    device: (u32, u32),
}

/// The mount that a path lies in: as the kernel says, or else the last one of the longest mount point.
fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<Mounted<'a>> {
    let parsed = || {
        mounts.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let dash = fields.iter().position(|field| *field == "-")?;
            let mounted = Mounted {
                kind: fields.get(dash + 1)?,
                source: fields.get(dash + 2)?,
                device: device_number(fields.get(2)?)?,
            };
            Some((*fields.first()?, unescaped(fields.get(4)?), mounted))
        })
    };
    let known = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok();
    let known = known.filter(|data| data.stx_mask & StatxFlags::MNT_ID.bits() != 0);
    let number = known.map(|data| data.stx_mnt_id.to_string());
    if let Some(number) = number
        && let Some((.., mounted)) = parsed().find(|(id, ..)| *id == number)
    {
        return Some(mounted);
    }
    let above = parsed().filter(|(_, point, _)| path.starts_with(point));
    above.max_by_key(|(_, point, _)| point.as_os_str().len()).map(|(.., mounted)| mounted)
}

/// `major:minor`.
fn device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A mount point with the blanks that the kernel writes as `\040`.
fn unescaped(point: &str) -> PathBuf {
    let mut text = point.to_string();
    for (escape, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        text = text.replace(escape, character);
    }
    PathBuf::from(text)
}

/// Whether a device has one of these names and a number.
fn is_numbered(device: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        let number = device.strip_prefix(name);
        number
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::connections::Connections;
    use super::{Host, MEMORY_DEVICES, Medium, Mounted, is_numbered, mount_of};

    const MOUNTS: &str = "9922 1 254:0 / /nowhere rw - ext4 /dev/vda rw\n\
        9930 22 0:5 / /nowhere/dev rw - devtmpfs devtmpfs rw\n\
        9931 30 0:26 / /nowhere/dev/shm rw shared:4 - tmpfs shm rw\n\
        9940 22 7:0 / /nowhere/mnt/a\\040b rw - xfs /dev/loop3 rw\n";

    #[test]
    fn the_nearest_mount_counts() {
        let at = |path: &str| mount_of(MOUNTS, Path::new(path));
        let disk = Mounted { kind: "ext4", source: "/dev/vda", device: (254, 0) };
        assert_eq!(at("/nowhere/home/x"), Some(disk));
        assert_eq!(at("/nowhere/dev/shm/x").map(|mounted| mounted.source), Some("shm"));
        assert_eq!(at("/nowhere/mnt/a b/x").map(|mounted| mounted.kind), Some("xfs"));
        assert_eq!(at("/nowhere/mnt/ab"), Some(disk));
    }

    #[test]
    fn devices_of_memory_are_told_by_their_names() {
        let is_memory = |name: &str| is_numbered(name, &MEMORY_DEVICES);
        assert!(is_memory("ram0") && is_memory("zram12"));
        assert!(!is_memory("ram") && !is_memory("vda") && !is_memory("ramdisk1"));
    }

    /// Its minor number, its folder, and what stands there: links begin with an arrow.
    type Device = (u32, &'static str, &'static [(&'static str, &'static str)]);

    /// A kernel's own files, made up.
    fn host(devices: &[Device], connections: Connections) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().canonicalize().unwrap();
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        for (minor, path, files) in devices {
            let folder = sys.join("block").join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("dev"), format!("9:{minor}\n")).unwrap();
            symlink(&folder, sys.join(format!("dev/block/9:{minor}"))).unwrap();
            for (name, text) in *files {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                match text.strip_prefix("-> ") {
                    Some(below) => symlink(sys.join("block").join(below), file).unwrap(),
                    None => fs::write(file, text).unwrap(),
                }
            }
        }
        let mounts = "1 0 0:33 / /nowhere/volumes rw - fuse.underlay underlay rw\n".to_string();
        (root, Host { sys, mounts, connections })
    }

    #[test]
    fn volumes_are_recognised_through_what_lies_on_them() {
        let (_root, host) = host(
            &[
                (0, "loop0", &[("loop/backing_file", "/nowhere/volumes/data\n")]),
                (1, "loop0/loop0p1", &[("partition", "1\n")]),
                (2, "vda", &[]),
                (3, "dm-0", &[("slaves/loop0p1", "-> loop0/loop0p1")]),
                (4, "md0", &[("slaves/vda", "-> vda"), ("slaves/dm-0", "-> dm-0")]),
                (5, "md1", &[("slaves/vda", "-> vda")]),
                (6, "zram1", &[]),
                (7, "dm-1", &[("slaves/zram1", "-> zram1")]),
                (8, "dm-2", &[("slaves/dm-2", "-> dm-2")]),
            ],
            Connections::default(),
        );
        let of = |minor: u32| host.of_device((9, minor), 8);
        for minor in [0, 1, 3, 4] {
            assert_eq!(of(minor), Medium::Emulated, "{minor}");
        }
        for minor in [2, 5, 8, 99] {
            assert_eq!(of(minor), Medium::Storage, "{minor}");
        }
        assert_eq!((of(6), of(7)), (Medium::Memory, Medium::Memory));
    }

    #[test]
    fn network_block_devices_are_ours_by_whom_they_are_connected_with() {
        // Process 11 reaches a server of ours, process 12 another one; nobody is process 13.
        let connections = |orphans: bool| Connections::of([(11, true), (12, false)], orphans);
        let devices: [Device; 4] = [
            (0, "nbd0", &[("pid", "11\n")]),
            (1, "nbd1", &[("pid", "12\n")]),
            (2, "nbd2", &[("pid", "13\n")]),
            (3, "nbd3", &[]),
        ];
        let (_root, host_without) = host(&devices, connections(false));
        let of = |host: &Host| [0, 1, 2, 3].map(|minor| host.of_device((9, minor), 8));
        let (ours, other) = (Medium::Emulated, Medium::Storage);
        assert_eq!(of(&host_without), [ours, other, other, other]);
        // A connection of ours that only the kernel holds: its client has ended and left it there.
        let (_root, host_with) = host(&devices, connections(true));
        assert_eq!(of(&host_with), [ours, other, ours, other]);
    }
}
