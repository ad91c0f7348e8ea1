//! The server process of an emulated datastore.
//!
//! ```text
//!                    +--------------------- one thread (event_loop) ----------------------+
//! kernel --FUSE-->   |  request --bytes--> backing files (volume, undo_log)    data plane  |
//! (fuse_device,      |     |                                                               |
//!  fuse_protocol)    |     +--request--> engine (model) --deadline--+          timing plane |
//! kernel <--answer-- |  answer when the deadline has come <---------+                       |
//!                    +---------------------------------------------------------------------+
//! control socket --commands--^
//! ```
//!
//! Data is moved at once and the request submitted to the model, which says when it would be done; it is answered
//! then, or at once if the host was slower than the device. Nothing here knows how a device behaves.
//!
//! FUSE's protocol is spoken directly. The crate for it (fuser) owns the thread that reads requests, and this server
//! must read requests and keep deadlines on the same one.

mod alarm;
mod buffers;
mod clock;
mod commands;
mod control_socket;
mod engine;
mod event_loop;
mod fuse_device;
mod fuse_protocol;
mod realtime;
mod service;
mod slab;
mod statistics;
mod undo_log;
#[cfg(test)]
mod undo_log_tests;
mod volume;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use underlay_core::Bytes;
use underlay_model::{DeviceProfile, StoreDevice, StoreVolume};

use crate::config::{ServerConfig, VolumeConfig};
use crate::error::DatastoreError;
use crate::spec::Durability;
use clock::Clock;
use commands::{CommandSender, commands};
use engine::Engine;
use fuse_device::FuseDevice;
use service::{ExportedVolume, Service};
use volume::VolumeData;

/// Above everything a normal process does, below the kernel's own real-time threads.
const PRIORITY: i32 = 10;
/// Volatile bytes of a device that has no write buffer but is said to lose what is not flushed: the cache of
/// a disk.
const DEFAULT_VOLATILE: Bytes = Bytes::from_mib(32);

/// Runs the server process of an emulated datastore until its mount is taken away.
///
/// `config` is the file that [`crate::open`] wrote. Returns when the file system was unmounted.
pub fn serve(config: &Path) -> Result<(), DatastoreError> {
    let config = ServerConfig::read(config)?;
    realtime::prepare_process();
    let durability = Durability::from(config.durability);
    let devices = store_devices(&config, durability);
    let volumes = exported_volumes(&config, durability)?;
    let engine = Engine::new(devices, store_volumes(&config.volumes), config.root_seed());
    let (sender, receiver) = commands().map_err(DatastoreError::system("create an event"))?;
    let device = FuseDevice::mount(&config.mount_point)
        .map_err(DatastoreError::file("mount the volumes on", &config.mount_point))?;
    let mut service = Service::new(Clock::start(), device, engine, volumes, config.root_seed());
    // Whoever connects now is answered once the loop below runs, so may rely on everything.
    let listener = UnixListener::bind(&config.control_socket)
        .map_err(DatastoreError::file("listen on", &config.control_socket))?;
    start_control(sender, listener)?;
    // After the other threads have started: they need no priority.
    service.is_realtime = realtime::prioritise(PRIORITY);
    event_loop::run(&mut service, &receiver)
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

fn start_control(sender: CommandSender, listener: UnixListener) -> Result<(), DatastoreError> {
    thread::Builder::new()
        .name("control".to_string())
        .spawn(move || control_socket::listen(&sender, &listener))
        .map(drop)
        .map_err(DatastoreError::system("start a thread"))
}
