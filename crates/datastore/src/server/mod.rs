//! The server process of an emulated datastore: a back end under an export, and the commands that change it.
//!
//! ```text
//! kernel, NBD clients <--> export (crate) --BlockRequest--> back end: devices, or a cluster
//!                               ^          <----Answer-----     model, backing files
//! control socket --commands-----+
//! ```
//!
//! There are two back ends: single [`devices`], each volume in a file of its own, and a [`cluster`]. Neither knows its
//! clients or their protocols; what they share besides serving is in [`commands`].

mod cluster;
mod commands;
mod control_socket;
mod devices;
#[cfg(test)]
mod fuzz_tests;
mod slab;
mod sparse;
#[cfg(test)]
mod virtual_time_tests;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use rustix::fs::Mode;
use underlay_core::{Durability, Nanos};
use underlay_export::{
    Clock, Exports, FuseDevice, NbdListener, Server, TaskQueue, prepare_process, task_queue,
};
use underlay_model::cluster::ClusterSpec;

use crate::config::{ClusterServerConfig, ServerConfig};
use crate::error::DatastoreError;
use cluster::back_end::ClusterBackEnd;
use cluster::plane::ClusterPlane;
use commands::{CommandSender, Managed, place};
use devices::Devices;

/// Above everything a normal process does, below the kernel's own real-time threads.
const PRIORITY: i32 = 10;

/// Runs the server process of an emulated datastore until its mount is removed, or it is asked to stop.
///
/// `config` is the file that [`crate::open`] wrote.
pub fn serve(config: &Path) -> Result<(), DatastoreError> {
    let config = ServerConfig::read(config)?;
    // Volumes hold anybody's data: whatever this process creates is its user's alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    prepare_process();
    match &config.cluster {
        None => serve_devices(&config),
        Some(cluster) => serve_cluster(&config, cluster),
    }
}

fn serve_devices(config: &ServerConfig) -> Result<(), DatastoreError> {
    let mut server = server(config, Devices::new(config))?;
    place_all(config, &mut server)?;
    run(config, &mut server)
}

fn serve_cluster(
    config: &ServerConfig,
    cluster: &ClusterServerConfig,
) -> Result<(), DatastoreError> {
    let mut plane = ClusterPlane::open(
        cluster_under(config.durability, cluster.spec.to_spec()),
        config.root_seed(),
        &cluster.components,
        cluster.memory.as_deref(),
    )?;
    // A power cut is over when the datastore is started again, as it is for single devices.
    if plane.is_without_power() {
        plane.power_on(Nanos::ZERO);
    }
    plane.follow_host();
    let mut server = server(config, ClusterBackEnd::new(plane))?;
    let names: Vec<&str> = config.volumes.iter().map(|volume| &*volume.name).collect();
    let now = server.now();
    server.back_end.plane.keep_only(now, &names);
    place_all(config, &mut server)?;
    if let Some(percent) = cluster.fill_percent {
        let now = server.now();
        // Other data beside the volumes, which have their places by now.
        server.back_end.plane.fill(now, percent).map_err(|refusal| DatastoreError::CannotFill {
            percent,
            reason: refusal.to_string(),
        })?;
    }
    let outcome = run(config, &mut server);
    server.back_end.plane.conclude();
    outcome
}

/// A server that clients find, without volumes. Its clock begins.
fn server<B: Managed>(config: &ServerConfig, back_end: B) -> Result<Server<B>, DatastoreError> {
    let nbd = NbdListener::bind(config.nbd.socket.as_deref(), config.nbd.address)?;
    let device = config.mount_point.as_deref().map(mount).transpose()?;
    let clock = Clock::start(config.dilation());
    Ok(Server::new(clock, Exports { device, nbd }, back_end))
}

fn mount(target: &Path) -> Result<FuseDevice, DatastoreError> {
    FuseDevice::mount(target).map_err(DatastoreError::file("mount the volumes on", target))
}

fn place_all<B: Managed>(
    config: &ServerConfig,
    server: &mut Server<B>,
) -> Result<(), DatastoreError> {
    for volume in &config.volumes {
        place(server, volume).map_err(|reason| DatastoreError::CannotPlace {
            volume: volume.name.clone(),
            reason,
        })?;
    }
    Ok(())
}

/// Serves until the end.
fn run<B: Managed>(config: &ServerConfig, server: &mut Server<B>) -> Result<(), DatastoreError> {
    let (sender, tasks): (_, TaskQueue<Server<B>>) =
        task_queue().map_err(DatastoreError::system("create an event"))?;
    // A client that connects now is answered once the loop below runs, when everything is ready.
    let listener = UnixListener::bind(&config.control_socket)
        .map_err(DatastoreError::file("listen on", &config.control_socket))?;
    start_control(CommandSender::new(sender), listener)?;
    // After the other threads have started: they need no priority.
    server.prioritise(PRIORITY);
    server.run(&tasks).map_err(DatastoreError::system("serve the volumes"))
}

fn start_control<B: Managed>(
    sender: CommandSender<B>,
    listener: UnixListener,
) -> Result<(), DatastoreError> {
    thread::Builder::new()
        .name("control".to_string())
        .spawn(move || control_socket::listen(&sender, &listener))
        .map(drop)
        .map_err(DatastoreError::system("start a thread"))
}

/// A cluster as its model sees it under this durability: what a power cut takes is decided by the cache devices, which hold
/// what was acknowledged.
pub(crate) fn cluster_under(durability: Durability, mut spec: ClusterSpec) -> ClusterSpec {
    for group in spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
        group.cache = devices::under(durability, group.cache.clone());
    }
    spec
}
