//! Power cuts through the real export: what was flushed survives, what was not may be lost or torn, and
//! nothing else ever happens.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::common::raw_server::{RawServer, RawSpec, flash, glacial};
use crate::common::{Site, cannot_emulate, emulated, profile, volume};
use rand::RngExt;
use underlay_core::RootSeed;
use underlay_datastore::{DatastoreSpec, Durability};
use underlay_host::{FileSystem, skip};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const BLOCKS: usize = 64;

/// What each sector may hold after a power cut: the values written since the last flush, and before.
struct Reference {
    allowed: Vec<BTreeSet<u8>>,
    newest: Vec<u8>,
    value: u8,
}

impl Reference {
    fn new() -> Reference {
        let sectors = BLOCKS * BLOCK / SECTOR;
        Reference {
            allowed: vec![BTreeSet::from([0]); sectors],
            newest: vec![0; sectors],
            value: 0,
        }
    }

    fn write(&mut self, file: &File, block: usize, blocks: usize) {
        self.value = self.value % 250 + 1;
        file.write_all_at(&vec![self.value; blocks * BLOCK], (block * BLOCK) as u64).unwrap();
        let sectors = block * BLOCK / SECTOR..(block + blocks) * BLOCK / SECTOR;
        for sector in sectors {
            self.allowed[sector].insert(self.value);
            self.newest[sector] = self.value;
        }
    }

    fn flush(&mut self, file: &File) {
        file.sync_data().unwrap();
        for (allowed, newest) in self.allowed.iter_mut().zip(&self.newest) {
            *allowed = BTreeSet::from([*newest]);
        }
    }

    /// Checks every sector and returns how many do not hold their newest value.
    fn verify(&mut self, file: &File) -> usize {
        let mut lost = 0;
        for sector in 0..self.allowed.len() {
            let mut bytes = [0; SECTOR];
            file.read_exact_at(&mut bytes, (sector * SECTOR) as u64).unwrap();
            let found = bytes[0];
            assert!(bytes.iter().all(|byte| *byte == found), "sector {sector} is torn inside");
            let allowed = &self.allowed[sector];
            assert!(allowed.contains(&found), "sector {sector}: {found} is not in {allowed:?}");
            lost += usize::from(found != self.newest[sector]);
            self.newest[sector] = found;
            self.allowed[sector] = BTreeSet::from([found]);
        }
        lost
    }
}

/// Rounds of random writes and flushes, each ended by a power cut. Returns sectors lost.
fn rounds(profile: serde_json::Value, durability: &'static str, seed: u64) -> usize {
    let site = Site::new();
    let capacity_bytes = (BLOCKS * BLOCK) as u64;
    let mut server =
        RawServer::start(&site, &RawSpec { profile, durability, capacity_bytes, seed });
    let mut random = RootSeed(seed).stream("writes", 0);
    let mut reference = Reference::new();
    let mut lost = 0;
    for _ in 0..5 {
        let file = server.open();
        for _ in 0..random.random_range(5..60) {
            if random.random_range(0..8) == 0 {
                reference.flush(&file);
            } else {
                let blocks = random.random_range(1..5);
                reference.write(&file, random.random_range(0..BLOCKS - blocks), blocks);
            }
        }
        let answer = server.ask("power-cut".into());
        assert!(answer.get("power-cut").is_some(), "{answer}");
        assert!(file.read_at(&mut [0; BLOCK], 0).is_err());
        assert!(file.write_at(&[0; BLOCK], 0).is_err());
        assert!(file.sync_data().is_err());
        assert!(server.ask("power-cut".into()).get("refused").is_some());
        assert_eq!(server.ask("power-on".into()), "done");
        lost += reference.verify(&server.open());
    }
    lost
}

#[test]
fn flushed_data_survives_and_the_rest_is_old_new_or_torn() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let lost: usize = (0..4).map(|seed| rounds(flash(false), "profile", seed)).sum();
    assert!(lost > 0, "twenty power cuts that lose nothing test nothing");
}

#[test]
fn a_protected_device_loses_nothing_it_acknowledged() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    assert_eq!(rounds(flash(true), "profile", 1), 0);
    assert_eq!(rounds(flash(false), "acknowledged", 2), 0);
    assert!(rounds(flash(true), "flushed", 3) > 0);
}

/// A lying device loses flushed data: the check that is always passed above must fail here.
#[test]
fn a_lying_device_loses_flushed_data() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = RawSpec {
        profile: flash(true),
        durability: "lying",
        capacity_bytes: (BLOCKS * BLOCK) as u64,
        seed: 1,
    };
    let mut server = RawServer::start(&site, &spec);
    let file = server.open();
    file.write_all_at(&vec![7; BLOCKS * BLOCK], 0).unwrap();
    file.sync_data().unwrap();
    server.ask("power-cut".into());
    server.ask("power-on".into());
    let mut found = vec![0; BLOCKS * BLOCK];
    server.open().read_exact_at(&mut found, 0).unwrap();
    assert!(found.contains(&0), "flushed blocks were lost");
    assert!(found.iter().all(|byte| *byte == 0 || *byte == 7));
}

#[test]
fn requests_in_flight_fail_at_the_power_cut() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let spec = RawSpec {
        profile: glacial(),
        durability: "profile",
        capacity_bytes: (BLOCKS * BLOCK) as u64,
        seed: 1,
    };
    let mut server = RawServer::start(&site, &spec);
    let file = server.open();
    let reader = std::thread::spawn(move || file.read_at(&mut [0; BLOCK], 0));
    while server.ask("stat".into())["stat"]["volumes"][0]["in-flight"] != 1 {}
    server.ask("power-cut".into());
    let outcome = reader.join().unwrap();
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc_eio()));
}

fn libc_eio() -> i32 {
    rustix::io::Errno::IO.raw_os_error()
}

/// Checks a copy of the device as the power cut left it: the journal must be enough to repair it.
fn check_ext4_copy(backing: &Path, copy: &Path) {
    fs::copy(backing, copy).unwrap();
    let preen = Command::new("e2fsck").args(["-f", "-p"]).arg(copy).output().unwrap();
    // 0 = clean, 1 = repaired as expected; 4 and more = damage that a journal should have prevented.
    assert!(matches!(preen.status.code(), Some(0 | 1)), "{preen:?}");
    let again = Command::new("e2fsck").args(["-f", "-n"]).arg(copy).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}

/// ext4 on a volatile device: mounts again after each power cut, with everything that was synced.
#[test]
fn ext4_recovers_with_all_synced_files() {
    if let Some(reason) = cannot_emulate() {
        skip!("{reason}");
    }
    let site = Site::new();
    let DatastoreSpec::Emulated { devices, seed, durability, .. } =
        emulated(profile("dc500m-1920"), Durability::Flushed)
    else {
        unreachable!("built as emulated")
    };
    let backing = tempfile::tempdir().unwrap();
    let spec = DatastoreSpec::Emulated {
        devices,
        seed,
        durability,
        backing_directory: Some(backing.path().to_path_buf()),
        link: None,
    };
    let mut datastore = site.open(&spec, &[volume("data", 64, FileSystem::Ext4)]).unwrap();
    let backing_file = fs::read_dir(backing.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().join("data"))
        .next()
        .expect("one directory per run");
    let mut synced = Vec::new();
    for round in 0..4u8 {
        let directory = datastore.volumes()[0].path.clone();
        for i in 0..20u8 {
            let path = directory.join(format!("{round}-{i}"));
            fs::write(&path, vec![i + 1; 20_000]).unwrap();
            if i % 3 == 0 {
                File::open(&path).unwrap().sync_all().unwrap();
                File::open(&directory).unwrap().sync_all().unwrap();
                synced.push((path, vec![i + 1; 20_000]));
            }
        }
        datastore.power_cut().unwrap();
        assert!(
            fs::write(directory.join("after"), vec![1; 1 << 20])
                .and_then(|()| File::open(directory.join("after"))?.sync_all())
                .is_err()
        );
        check_ext4_copy(&backing_file, &backing.path().join("copy"));
        datastore.power_on().unwrap();
        datastore.health().unwrap();
        for (path, contents) in &synced {
            assert!(fs::read(path).unwrap() == *contents, "{}", path.display());
        }
    }
    datastore.close().unwrap();
}
