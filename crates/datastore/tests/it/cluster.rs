//! Volumes of an emulated cluster, through block devices and file systems: copies survive their hosts, what was lost is
//! rebuilt with real bytes, and what cannot be served is an error.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::cluster::{policy, spec};
use crate::common::{Site, cannot_emulate, volume};
use rand::Rng;
use underlay_core::RootSeed;
use underlay_datastore::{ClusterFault, Datastore, DatastoreError, DatastoreSpec, Timing};
use underlay_host::{FileSystem, skip};
use underlay_model::cluster::Method;

const FILE_BYTES: usize = 8 << 20;

/// Random bytes in a file, synced; what they were when it is read again, past all caches.
struct Witness {
    name: String,
    bytes: Vec<u8>,
}

impl Witness {
    fn write(directory: &Path, name: &str, seed: u64) -> std::io::Result<Witness> {
        let mut bytes = vec![0; FILE_BYTES];
        RootSeed(seed).stream("witness", 0).fill_bytes(&mut bytes);
        let path = directory.join(name);
        fs::write(&path, &bytes)?;
        File::open(&path)?.sync_all()?;
        File::open(directory)?.sync_all()?;
        Ok(Witness { name: name.to_string(), bytes })
    }

    fn read(&self, directory: &Path) -> std::io::Result<Vec<u8>> {
        let file = File::open(directory.join(&self.name))?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        let mut found = vec![0; FILE_BYTES];
        file.read_exact_at(&mut found, 0)?;
        Ok(found)
    }

    #[track_caller]
    fn check(&self, directory: &Path) {
        let found = self.read(directory).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert!(found == self.bytes, "{} has changed", self.name);
    }
}

fn value(datastore: &mut dyn Datastore, name: &str) -> f64 {
    let at = datastore.series().iter().position(|series| series.name == name).expect(name);
    datastore.counters().unwrap()[at]
}

/// Waits until everything that was to be copied is in its place.
fn wait_for_copies(datastore: &mut dyn Datastore, reason: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut told = Vec::new();
    loop {
        told.extend(datastore.notices().unwrap());
        let left = value(datastore, &format!("cluster.resync.{reason}.left"));
        let waiting = value(datastore, "cluster.resync.waiting");
        let ended =
            told.iter().any(|notice| notice.text.contains("ended") && notice.text.contains(reason));
        if ended && left == 0.0 && waiting == 0.0 {
            return;
        }
        assert!(Instant::now() < deadline, "{reason}: {left} bytes left; {told:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Caches that keep what they acknowledged have nothing to flush: after its first attempt the kernel asks no more. Others
/// are asked by every sync.
#[test]
fn only_volatile_caches_are_flushed() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let flushes = |is_protected: bool| {
        let site = Site::new();
        let mut spec = spec(3, policy(0, Method::Mirror));
        let DatastoreSpec::Cluster { storage, .. } = &mut spec else { panic!("a cluster") };
        for group in storage.spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
            group.cache.power_loss_protected = is_protected;
        }
        let request = volume("data", 96, FileSystem::Ext4);
        let mut datastore = site.open(&spec, &[request]).unwrap();
        let directory = datastore.volumes()[0].path.clone();
        let count = |datastore: &mut dyn Datastore| value(datastore, "volume.data.flush.ios");
        let file = File::create(directory.join("file")).unwrap();
        file.sync_all().unwrap();
        let before = count(&mut *datastore);
        for block in 0..20 {
            file.write_all_at(&[1; 4096], block * 4096).unwrap();
            file.sync_all().unwrap();
        }
        let flushed = count(&mut *datastore) - before;
        datastore.close().unwrap();
        flushed
    };
    assert_eq!(flushes(true), 0.0);
    assert!(flushes(false) >= 20.0);
}

fn host(name: &str) -> String {
    name.to_string()
}

/// FTT=1: any one host may go while the file system is in use; what it missed is copied when it comes back, and what
/// does not come back is rebuilt elsewhere, so that another host may go.
fn survives_one_host_after_another(hosts: usize, method: Method) {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec(hosts, policy(1, method)), &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    let first = Witness::write(&directory, "first", 1).unwrap();

    datastore.inject(&ClusterFault::HostLost { host: host("h0") }).unwrap();
    first.check(&directory);
    let second = Witness::write(&directory, "second", 2).unwrap();
    datastore.inject(&ClusterFault::HostReturned { host: host("h0") }).unwrap();
    // Whether `h0` held a part of the volume is up to the placement.
    std::thread::sleep(Duration::from_millis(300));
    let stale = ["stale", "repair"]
        .map(|reason| value(&mut *datastore, &format!("cluster.resync.{reason}.bytes")));

    // One host after the other, each for good: what it held is rebuilt before the next one goes.
    for gone in ["h1", "h2"] {
        let before = value(&mut *datastore, "cluster.resync.repair.bytes");
        datastore.notices().unwrap();
        datastore.inject(&ClusterFault::HostLost { host: host(gone) }).unwrap();
        first.check(&directory);
        second.check(&directory);
        std::thread::sleep(Duration::from_millis(500));
        if value(&mut *datastore, "cluster.resync.repair.bytes") > before {
            wait_for_copies(&mut *datastore, "repair");
        }
        datastore.inject(&ClusterFault::HostReturned { host: host(gone) }).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }
    let third = Witness::write(&directory, "third", 3).unwrap();
    for witness in [&first, &second, &third] {
        witness.check(&directory);
    }
    assert_eq!(value(&mut *datastore, "cluster.data.lost"), 0.0);
    assert_eq!(value(&mut *datastore, "cluster.volume.data.errors"), 0.0, "{stale:?}");
    datastore.health().unwrap();
    datastore.close().unwrap();
}

#[test]
fn a_mirrored_volume_survives_one_host_after_another() {
    survives_one_host_after_another(4, Method::Mirror);
}

#[test]
fn a_raid_5_volume_survives_one_host_after_another() {
    survives_one_host_after_another(5, Method::ErasureCoding);
}

/// A device that is replaced by an empty one: its content really is gone, and really comes back.
#[test]
fn an_empty_device_is_filled_again() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let backing = tempfile::tempdir().unwrap();
    let spec = match spec(3, policy(1, Method::Mirror)) {
        underlay_datastore::DatastoreSpec::Cluster { storage, seed, .. } => {
            underlay_datastore::DatastoreSpec::Cluster {
                storage,
                seed,
                backing_directory: Some(backing.path().to_path_buf()),
            }
        }
        other => other,
    };
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec, &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    let witness = Witness::write(&directory, "witness", 4).unwrap();
    // The devices that hold a component of the volume.
    let run = fs::read_dir(backing.path()).unwrap().next().unwrap().unwrap().path();
    let mut holders: Vec<(String, std::path::PathBuf)> = fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|folder| {
            let name = folder.file_name()?.to_str()?.to_string();
            let (group, device) = name.strip_prefix('g')?.split_once("-d")?;
            let (group, device): (u32, u32) = (group.parse().ok()?, device.parse().ok()?);
            Some((format!("h{group}/g{group}/disk{}", device - 1), folder))
        })
        .collect();
    holders.sort();
    assert_eq!(holders.len(), 2, "two copies: {holders:?}");
    for (device, folder) in holders {
        let bytes = |folder: &Path| -> u64 {
            let files = fs::read_dir(folder).unwrap().flatten();
            files
                .map(|file| std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap()) * 512)
                .sum()
        };
        let before = bytes(&folder);
        assert!(before > FILE_BYTES as u64);
        datastore.notices().unwrap();
        datastore.inject(&ClusterFault::DeviceLost { device: device.clone() }).unwrap();
        witness.check(&directory);
        datastore.inject(&ClusterFault::DeviceReplaced { device: device.clone() }).unwrap();
        wait_for_copies(&mut *datastore, "repair");
        witness.check(&directory);
    }
    assert_eq!(value(&mut *datastore, "cluster.data.lost"), 0.0);
    datastore.close().unwrap();
}

/// Bits that rot are noticed by their checksums, and restored from the other copy.
#[test]
fn rotten_bits_are_repaired_from_the_other_copy() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec(3, policy(1, Method::Mirror)), &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    let witness = Witness::write(&directory, "witness", 5).unwrap();
    // Every block rots in one of the two copies, never in both: which copy is read is up to the address.
    for block in 0..96 * 256 / 4 {
        let (component, offset_bytes) = ((block % 2) as u32, block * 4 * 4096 + 77);
        datastore.inject(&ClusterFault::BitRot { component, offset_bytes, bit: 3 }).unwrap();
    }
    witness.check(&directory);
    assert!(value(&mut *datastore, "cluster.data.repaired") > 0.0);
    assert_eq!(value(&mut *datastore, "cluster.data.lost"), 0.0);
    witness.check(&directory);
    datastore.close().unwrap();
}

/// FTT=0: when the only copy goes, that is an I/O error, and the data is back with its host.
#[test]
fn without_redundancy_the_loss_is_reported() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec(1, policy(0, Method::Mirror)), &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    let witness = Witness::write(&directory, "witness", 6).unwrap();
    datastore.inject(&ClusterFault::HostLost { host: host("h0") }).unwrap();
    assert!(Witness::write(&directory, "dark", 7).is_err());
    let told = datastore.notices().unwrap();
    assert!(told.iter().any(|notice| notice.kind == "volume"), "{told:#?}");
    datastore.inject(&ClusterFault::HostReturned { host: host("h0") }).unwrap();
    // The file system has seen errors and is mounted again, as after a power cut.
    datastore.power_cut().unwrap();
    datastore.power_on().unwrap();
    witness.check(&directory);
    datastore.close().unwrap();
}

#[test]
fn timing_can_be_off_and_on_and_power_may_fail() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec(3, policy(1, Method::Mirror)), &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    datastore.set_timing(Timing::Off).unwrap();
    let first = Witness::write(&directory, "first", 8).unwrap();
    datastore.set_timing(Timing::Modelled).unwrap();
    let second = Witness::write(&directory, "second", 9).unwrap();
    let report = datastore.timing().unwrap().unwrap();
    assert!(report.modelled_mean.is_some_and(|mean| mean.0 > 40_000), "{report:?}");
    for _ in 0..3 {
        datastore.power_cut().unwrap();
        assert!(Witness::write(&directory, "dark", 10).is_err());
        datastore.power_on().unwrap();
        first.check(&directory);
        second.check(&directory);
    }
    datastore.close().unwrap();
}

/// What is destaged at once is read from the capacity devices, and is what was written, also after a power cut.
#[test]
fn what_was_loaded_before_lies_on_the_capacity_devices() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let request = volume("data", 96, FileSystem::Ext4);
    let mut datastore = site.open(&spec(3, policy(1, Method::Mirror)), &[request]).unwrap();
    let directory = datastore.volumes()[0].path.clone();
    let sum = |datastore: &mut dyn Datastore, what: &str| -> f64 {
        let name = |group: usize| format!("cluster.group.h{group}/g{group}.buffer.{what}");
        (0..3).map(|group| value(datastore, &name(group))).sum()
    };
    datastore.set_timing(Timing::Off).unwrap();
    let witness = Witness::write(&directory, "witness", 11).unwrap();
    assert!(sum(&mut *datastore, "fill") >= 2.0 * FILE_BYTES as f64);
    datastore.destage_all().unwrap();
    assert_eq!(sum(&mut *datastore, "fill"), 0.0);
    assert!(sum(&mut *datastore, "destaged") >= 2.0 * FILE_BYTES as f64);
    datastore.set_timing(Timing::Modelled).unwrap();
    let hits = sum(&mut *datastore, "reads.hit");
    witness.check(&directory);
    assert_eq!(sum(&mut *datastore, "reads.hit"), hits);
    assert!(sum(&mut *datastore, "reads.missed") > 0.0);
    datastore.power_cut().unwrap();
    datastore.power_on().unwrap();
    witness.check(&directory);
    datastore.close().unwrap();
}

#[test]
fn what_cannot_be_placed_or_named_is_refused() {
    let site = Site::new();
    let request = [volume("data", 96, FileSystem::Ext4)];
    let refused = site.open(&spec(3, policy(2, Method::Mirror)), &request).err().unwrap();
    assert!(matches!(refused, DatastoreError::CannotPlace { .. }), "{refused}");
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let mut datastore = site.open(&spec(3, policy(1, Method::Mirror)), &request).unwrap();
    let refused = datastore.inject(&ClusterFault::HostLost { host: host("h9") }).unwrap_err();
    assert!(
        refused.to_string().contains("there is no host `h9`; there are h0, h1, h2"),
        "{refused}"
    );
    let device = "h0/g0/disk9".to_string();
    let refused = datastore.inject(&ClusterFault::DeviceLost { device }).unwrap_err();
    assert!(refused.to_string().contains("there is no device"), "{refused}");
    datastore.close().unwrap();
}
