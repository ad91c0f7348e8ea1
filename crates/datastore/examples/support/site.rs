//! A state directory in memory, a teardown stack on it, and datastores served by this same program.
//!
//! Memory, because the host's disk would otherwise be measured too.

use std::path::{Path, PathBuf};
use std::process::exit;

use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_datastore::{Context, Datastore, DatastoreSpec, Durability, VolumeRequest};
use underlay_host::{FileSystem, StateDir, Teardown, clean};
use underlay_model::DeviceProfile;

pub type Failure = Box<dyn std::error::Error>;

/// Serves and ends if this process was started as a datastore server.
pub fn serve_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, command, _, config] = arguments.as_slice() else { return };
    if command != "datastore-server" {
        return;
    }
    match underlay_datastore::serve(Path::new(config)) {
        Ok(()) => exit(0),
        Err(error) => {
            eprintln!("{error}");
            exit(1)
        }
    }
}

/// The value that follows an option on the command line.
pub fn argument(option: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != option).nth(1)
}

/// The value of `--seconds N`, or a default.
pub fn seconds_per_cell(default: u64) -> u64 {
    argument("--seconds").and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Writes results to the file asked for.
pub fn write_json(value: &serde_json::Value) -> Result<(), Failure> {
    if let Some(path) = argument("--json") {
        std::fs::write(path, serde_json::to_vec_pretty(value)?)?;
    }
    Ok(())
}

/// Surroundings that vanish on drop, and what a killed benchmark left behind vanishes with the next.
pub struct Site {
    state: StateDir,
    pub teardown: Teardown,
    pub scratch: PathBuf,
}

impl Site {
    pub fn new() -> Result<Site, Failure> {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let state = StateDir::at(base.join("underlay-benchmark"))?;
        clean(&state)?;
        let teardown = Teardown::create(&state, "benchmark")?;
        let scratch = state.scratch_dir(&std::process::id().to_string());
        teardown.create_directory(&scratch)?;
        Ok(Site { state, teardown, scratch: scratch.canonicalize()? })
    }

    /// An emulated datastore of one volume `data` with ext4 on one device.
    pub fn emulate(
        &self,
        profile: &DeviceProfile,
        capacity: Bytes,
    ) -> Result<Box<dyn Datastore>, Failure> {
        self.open("device", &on_one_device(profile), capacity)
    }

    /// A datastore of one volume `data` with ext4; its name is its own among those of a site.
    pub fn open(
        &self,
        name: &str,
        spec: &DatastoreSpec,
        capacity: Bytes,
    ) -> Result<Box<dyn Datastore>, Failure> {
        let scratch = self.scratch.join(name);
        self.teardown.create_directory(&scratch)?;
        let volume = VolumeRequest {
            name: "data".to_string(),
            capacity,
            file_system: FileSystem::Ext4,
            device: None,
            host: None,
        };
        let program = std::env::current_exe()?;
        let context = Context {
            teardown: &self.teardown,
            scratch: &scratch,
            server_program: &program,
            owner: None,
            dilation: Dilation::NONE,
        };
        Ok(underlay_datastore::open(spec, &[volume], &context)?)
    }
}

/// Volumes on one device.
pub fn on_one_device(profile: &DeviceProfile) -> DatastoreSpec {
    DatastoreSpec::Emulated {
        devices: vec![("device".to_string(), profile.clone())],
        seed: RootSeed(1),
        backing_directory: None,
        durability: Durability::Profile,
        link: None,
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for leftover in self.teardown.unwind() {
            eprintln!("left over: {leftover:?}");
        }
        // A folder that is not empty is of another benchmark, or of what was left over.
        let root = self.state.root();
        for folder in ["teardown", "runs", "templates", ""] {
            if std::fs::remove_dir(root.join(folder)).is_err() {
                break;
            }
        }
    }
}
