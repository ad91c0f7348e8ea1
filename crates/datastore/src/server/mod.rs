//! The server process of an emulated datastore.
//!
//! ```text
//!                    +--------------------- one thread (event_loop) ----------------------+
//! kernel --FUSE-->   |  request --bytes--> backing files (volume, undo_log)    data plane  |
//! (fuse_*)           |     |                                                               |
//! client --NBD-->    |     +--request--> engine (model) --deadline--+          timing plane |
//! (nbd, nbd_front)   |     |                                        |                       |
//! both <--answer--   |  answer when the deadline has come <---------+                       |
//!                    +-----|---------------------------------------------------------------+
//! control socket --commands--^
//! ```
//!
//! Data is moved at once and the request submitted to the model, which says when it would be done; it is answered
//! then, or at once if the host was slower than the device. Nothing here knows how a device behaves.
//!
//! FUSE's protocol is spoken directly. The crate for it (fuser) owns the thread that reads requests, and this server
//! must read requests and keep deadlines on the same one.

mod alarm;
mod answers;
mod buffers;
mod clock;
mod cluster;
mod commands;
mod completions;
mod control_socket;
mod engine;
#[cfg(test)]
mod engine_tests;
mod event_loop;
mod exported_volume;
mod fuse_device;
mod fuse_front;
mod fuse_negotiation;
mod fuse_protocol;
#[cfg(test)]
mod fuzz_tests;
mod mapping;
mod nbd;
mod nbd_front;
mod realtime;
mod reply;
mod service;
mod slab;
mod statistics;
mod undo_log;
#[cfg(test)]
mod undo_log_tests;
#[cfg(test)]
mod virtual_time_tests;
mod volume;
mod wakeful;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use rustix::fs::Mode;
use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::ClusterSpec;
use underlay_model::{DeviceProfile, StoreDevice};

use crate::config::{DeviceConfig, HostLinkConfig, ServerConfig, VolumeConfig};
use crate::error::DatastoreError;
use clock::Clock;
use cluster::plane::ClusterPlane;
use commands::{CommandSender, commands};
use engine::Engine;
use exported_volume::ExportedVolume;
use fuse_device::FuseDevice;
use nbd::listener::NbdListener;
use realtime::Precedence;
use reply::Reply;
use service::{Exports, Service};
use underlay_core::Durability;
use volume::VolumeData;

/// Above everything a normal process does, below the kernel's own real-time threads.
const PRIORITY: i32 = 10;
/// Volatile bytes of a device that has no write buffer but is said to lose what is not flushed: the cache of
/// a disk.
const DEFAULT_VOLATILE: Bytes = Bytes::from_mib(32);

/// Runs the server process of an emulated datastore until its mount is taken away, or it is told to end.
///
/// `config` is the file that [`crate::open`] wrote.
pub fn serve(config: &Path) -> Result<(), DatastoreError> {
    let config = ServerConfig::read(config)?;
    // Volumes hold anybody's data: whatever this process creates is its user's alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    realtime::prepare_process();
    let durability = config.durability;
    let engine = engine(&config, durability)?;
    let (sender, receiver) = commands().map_err(DatastoreError::system("create an event"))?;
    let nbd = NbdListener::bind(config.nbd.socket.as_deref(), config.nbd.address)?;
    let device = config.mount_point.as_deref().map(mount).transpose()?;
    let mut service = Service::new(
        Clock::start(config.dilation()),
        Exports { device, nbd },
        engine,
        VolumeOpener::new(&config, durability),
        config.root_seed(),
    );
    if let Some(plane) = &mut service.engine.cluster {
        let names: Vec<&str> = config.volumes.iter().map(|volume| &*volume.name).collect();
        plane.keep_only(service.clock.now(), &names);
    }
    for volume in &config.volumes {
        service.add_volume(volume).map_err(|reason| DatastoreError::CannotPlace {
            volume: volume.name.clone(),
            reason,
        })?;
    }
    fill(&config, &mut service)?;
    // Whoever connects now is answered once the loop below runs, so may rely on everything.
    let listener = UnixListener::bind(&config.control_socket)
        .map_err(DatastoreError::file("listen on", &config.control_socket))?;
    start_control(sender, listener)?;
    // After the other threads have started: they need no priority.
    service.precedence = Precedence::ask(PRIORITY);
    let outcome = event_loop::run(&mut service, &receiver);
    if let Some(plane) = &mut service.engine.cluster {
        plane.conclude();
    }
    outcome.map_err(DatastoreError::system("serve the volumes"))
}

/// Other data beside the volumes, which have their places by now.
fn fill(config: &ServerConfig, service: &mut Service) -> Result<(), DatastoreError> {
    let percent = config.cluster.as_ref().and_then(|cluster| cluster.fill_percent);
    let now = service.clock.now();
    let Some((plane, percent)) = service.engine.cluster.as_mut().zip(percent) else {
        return Ok(());
    };
    plane
        .fill(now, percent)
        .map_err(|refusal| DatastoreError::CannotFill { percent, reason: refusal.to_string() })
}

fn mount(target: &Path) -> Result<FuseDevice, DatastoreError> {
    FuseDevice::mount(target).map_err(DatastoreError::file("mount the volumes on", target))
}

/// The devices as the models see them under this durability: one that can lose what it acknowledged
/// must drain its buffer for a flush, one that cannot need not.
fn store_devices(config: &ServerConfig, durability: Durability) -> Vec<StoreDevice> {
    config
        .devices
        .iter()
        .map(|device| StoreDevice {
            name: device.name.clone(),
            profile: under(durability, device.profile.to_profile()),
        })
        .collect()
}

fn under(durability: Durability, profile: DeviceProfile) -> DeviceProfile {
    match durability {
        Durability::Profile | Durability::Lying => profile,
        Durability::Flushed => DeviceProfile { power_loss_protected: false, ..profile },
        Durability::Acknowledged => DeviceProfile { power_loss_protected: true, ..profile },
    }
}

/// A cluster as its model sees it under this durability: what a power cut takes is decided by the cache devices, which hold
/// what was acknowledged.
pub(crate) fn cluster_under(durability: Durability, mut spec: ClusterSpec) -> ClusterSpec {
    for group in spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
        group.cache = under(durability, group.cache.clone());
    }
    spec
}

fn engine(config: &ServerConfig, durability: Durability) -> Result<Engine<Reply>, DatastoreError> {
    let seed = config.root_seed();
    match &config.cluster {
        None => {
            let engine = Engine::new(store_devices(config, durability), Vec::new(), seed);
            Ok(engine.behind(config.link.as_ref().map(HostLinkConfig::to_link)))
        }
        Some(cluster) => {
            let mut plane = ClusterPlane::open(
                cluster_under(durability, cluster.spec.to_spec()),
                seed,
                &cluster.components,
                cluster.memory.as_deref(),
            )?;
            // A power cut is over when the datastore is started again, as it is for single devices.
            if plane.is_without_power() {
                plane.power_on(Nanos::ZERO);
            }
            plane.follow_host();
            Ok(Engine::of_cluster(plane, seed))
        }
    }
}

/// How volumes are opened: what a power cut can take away depends on their device.
pub(crate) struct VolumeOpener {
    /// Per device; none = bytes are in the components of a cluster.
    volatile_bytes: Option<Vec<u64>>,
    lies: bool,
}

impl VolumeOpener {
    fn new(config: &ServerConfig, durability: Durability) -> VolumeOpener {
        let volatile =
            |device: &DeviceConfig| volatile_bytes(&device.profile.to_profile(), durability).0;
        VolumeOpener {
            volatile_bytes: match config.cluster {
                Some(_) => None,
                None => Some(config.devices.iter().map(volatile).collect()),
            },
            // A cluster carries out its flushes.
            lies: durability == Durability::Lying && config.cluster.is_none(),
        }
    }

    fn open(&self, volume: &VolumeConfig) -> Result<ExportedVolume, DatastoreError> {
        let open = |volatile: &Vec<u64>| {
            let volatile = volatile[volume.device];
            VolumeData::open(&volume.backing_file, volume.capacity_bytes, volatile)
        };
        Ok(ExportedVolume {
            name: volume.name.clone(),
            capacity_bytes: volume.capacity_bytes,
            data: self.volatile_bytes.as_ref().map(open).transpose()?,
            lies: self.lies,
        })
    }
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
