//! The server process of an emulated datastore.
//!
//! ```text
//! kernel --FUSE--> reader thread --bytes--> backing files (volume, undo_log)      data plane
//!                       |
//!                       +--request--> engine (model) --deadline--> timer          timing plane
//!                                                                    |
//! kernel <--answer-- completer thread <------------------------------+
//! ```
//!
//! The reader moves data at once and submits the request; the model says when it would be done; the completer
//! answers then, or at once if the host was slower than the device. Nothing here knows how
//! a device behaves.

mod buffers;
mod clock;
mod completer;
mod control_socket;
mod engine;
mod export;
mod fuse;
mod realtime;
mod slab;
mod statistics;
mod undo_log;
#[cfg(test)]
mod undo_log_tests;
mod volume;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tracing::error;
use underlay_core::Bytes;
use underlay_model::{DeviceProfile, StoreDevice, StoreVolume};

use crate::config::{ServerConfig, VolumeConfig};
use crate::error::DatastoreError;
use crate::spec::Durability;
use clock::{Clock, Timer};
use engine::Engine;
use export::{Export, ExportedVolume};
use volume::VolumeData;

/// Above everything a normal process does, below the kernel's own real-time threads.
const COMPLETER_PRIORITY: i32 = 11;
/// Below the completer: a deadline that has come is worth more than a request that has just come.
const READER_PRIORITY: i32 = 10;
/// Volatile bytes of a device that has no write buffer but is said to lose what is not flushed: the cache of
/// a disk.
const DEFAULT_VOLATILE: Bytes = Bytes::from_mib(32);

/// Runs the server process of an emulated datastore until its mount is taken away.
///
/// `config` is the file that [`crate::open`] wrote. Returns when the file system was unmounted.
pub fn serve(config: &Path) -> Result<(), DatastoreError> {
    let config = ServerConfig::read(config)?;
    realtime::prepare_process();
    let clock = Clock::start();
    let timer = Timer::new(clock).map_err(DatastoreError::system("create a timer"))?;
    let durability = Durability::from(config.durability);
    let devices = store_devices(&config, durability);
    let volumes = exported_volumes(&config, durability)?;
    let engine = Engine::new(devices, store_volumes(&config.volumes), config.root_seed());
    let export = Arc::new(Export::new(clock, timer, volumes, engine));
    let session = fuse::mount(Arc::clone(&export), &config.mount_point)
        .map_err(DatastoreError::file("mount the volumes on", &config.mount_point))?;
    start_completer(&export)?;
    let reader = start_reader(&export, session)?;
    // Last: whoever connects may rely on everything else.
    let listener = UnixListener::bind(&config.control_socket)
        .map_err(DatastoreError::file("listen on", &config.control_socket))?;
    start_control(&export, listener, config.root_seed())?;
    reader
        .join()
        .unwrap_or_else(|_| Err(std::io::Error::other("the reader thread panicked")))
        .map_err(DatastoreError::system("serve the file system"))
}

/// The devices as the models see them under this durability: one that can lose what it acknowledged
/// must drain its buffer for a flush, one that cannot need not.
fn store_devices(config: &ServerConfig, durability: Durability) -> Vec<StoreDevice> {
    let profile = |profile: DeviceProfile| match durability {
        Durability::Profile | Durability::Lying => profile,
        Durability::Flushed => DeviceProfile { power_loss_protected: false, ..profile },
        Durability::Acknowledged => DeviceProfile { power_loss_protected: true, ..profile },
    };
    config
        .devices
        .iter()
        .map(|device| StoreDevice {
            name: device.name.clone(),
            profile: profile(device.profile.to_profile()),
        })
        .collect()
}

fn store_volumes(volumes: &[VolumeConfig]) -> Vec<StoreVolume> {
    volumes
        .iter()
        .map(|volume| StoreVolume { device: volume.device, capacity: Bytes(volume.capacity_bytes) })
        .collect()
}

fn exported_volumes(
    config: &ServerConfig,
    durability: Durability,
) -> Result<Vec<ExportedVolume>, DatastoreError> {
    config
        .volumes
        .iter()
        .map(|volume| {
            let profile = config.devices[volume.device].profile.to_profile();
            let volatile = volatile_bytes(&profile, durability);
            Ok(ExportedVolume {
                name: volume.name.clone(),
                data: VolumeData::open(&volume.backing_file, volume.capacity_bytes, volatile.0)?,
                lies: durability == Durability::Lying,
            })
        })
        .collect()
}

/// How many acknowledged bytes a power cut can take away.
fn volatile_bytes(profile: &DeviceProfile, durability: Durability) -> Bytes {
    match durability {
        Durability::Profile => profile.volatile_bytes(),
        Durability::Acknowledged => Bytes::ZERO,
        Durability::Flushed | Durability::Lying => {
            profile.write_buffer.map_or(DEFAULT_VOLATILE, |buffer| buffer.capacity)
        }
    }
}

fn start_completer(export: &Arc<Export>) -> Result<(), DatastoreError> {
    let export = Arc::clone(export);
    let completer = move || {
        export.set_realtime(realtime::prioritise(COMPLETER_PRIORITY));
        if let Err(problem) = completer::run(&export) {
            // Without answers every client would hang; without the process the kernel fails them.
            error!("the completer cannot wait for deadlines: {problem}");
            std::process::abort();
        }
    };
    spawn("completer", completer).map(drop)
}

fn start_reader(
    export: &Arc<Export>,
    session: fuser::Session<fuse::VolumeFiles>,
) -> Result<thread::JoinHandle<std::io::Result<()>>, DatastoreError> {
    let export = Arc::clone(export);
    spawn("session", move || {
        // The session's reader thread inherits the priority.
        export.set_realtime(realtime::prioritise(READER_PRIORITY));
        session.run()
    })
}

fn start_control(
    export: &Arc<Export>,
    listener: UnixListener,
    seed: underlay_core::RootSeed,
) -> Result<(), DatastoreError> {
    let export = Arc::clone(export);
    spawn("control", move || control_socket::listen(&export, &listener, seed)).map(drop)
}

fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, DatastoreError> {
    thread::Builder::new()
        .name(name.to_string())
        .spawn(run)
        .map_err(DatastoreError::system("start a thread"))
}
