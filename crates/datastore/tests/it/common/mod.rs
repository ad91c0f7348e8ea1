//! Surroundings for tests of whole datastores and of the server alone.

// Every test program uses its part of this.
pub mod cluster;
pub mod nbd_client;
pub mod raw_server;
pub mod storage;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_datastore::{
    Context, Datastore, DatastoreError, DatastoreSpec, Durability, VolumeRequest,
};
use underlay_host::{FileSystem, StateDir, Teardown};
use underlay_model::{DeviceProfile, builtin};

/// A state directory, a teardown stack and a scratch directory that vanish together.
pub struct Site {
    pub teardown: Teardown,
    pub scratch: PathBuf,
    directory: Option<TempDir>,
}

impl Site {
    pub fn new() -> Site {
        let directory = tempfile::Builder::new().prefix("ud").tempdir().unwrap();
        let state = StateDir::at(directory.path().join("s")).unwrap();
        let mut site = Site::in_state(state);
        site.directory = Some(directory);
        site
    }

    /// In a state directory that somebody else removes.
    pub fn in_state(state: StateDir) -> Site {
        let teardown = Teardown::create(&state, "test").unwrap();
        let scratch = state.scratch_dir("run");
        teardown.create_directory(&scratch).unwrap();
        let scratch = scratch.canonicalize().unwrap();
        Site { teardown, scratch, directory: None }
    }

    pub fn open(
        &self,
        spec: &DatastoreSpec,
        volumes: &[VolumeRequest],
    ) -> Result<Box<dyn Datastore>, DatastoreError> {
        let context = Context {
            teardown: &self.teardown,
            scratch: &self.scratch,
            server_program: Path::new(env!("CARGO_BIN_EXE_underlay-datastore-server")),
            owner: None,
            dilation: Dilation::NONE,
        };
        underlay_datastore::open(spec, volumes, &context)
    }
}

impl Drop for Site {
    /// Unwinds even when a test fails, and says what could not be removed.
    fn drop(&mut self) {
        let left = self.teardown.unwind();
        if left.is_empty() || std::thread::panicking() {
            return;
        }
        // Keep the directory: removing it could reach into something still mounted.
        let kept = self.directory.take().map(TempDir::keep);
        panic!("left over in {kept:?}: {left:?}");
    }
}

/// Why volumes cannot be emulated here, if so.
pub fn cannot_emulate() -> Option<&'static str> {
    if !Path::new("/dev/fuse").exists() {
        Some("there is no /dev/fuse")
    } else if !Path::new("/dev/loop-control").exists() {
        Some("there are no loop devices")
    } else if !rustix::process::geteuid().is_root() {
        Some("this needs root")
    } else {
        None
    }
}

pub fn profile(name: &str) -> DeviceProfile {
    builtin::find(name).unwrap()
}

pub fn emulated(profile: DeviceProfile, durability: Durability) -> DatastoreSpec {
    DatastoreSpec::Emulated {
        devices: vec![("device".to_string(), profile)],
        seed: RootSeed(42),
        backing_directory: None,
        durability,
        link: None,
    }
}

pub fn volume(name: &str, mebibytes: u64, file_system: FileSystem) -> VolumeRequest {
    VolumeRequest {
        name: name.to_string(),
        capacity: Bytes::from_mib(mebibytes),
        file_system,
        device: None,
        host: None,
    }
}
