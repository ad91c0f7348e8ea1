//! Where volumes live: a path, or an emulated device exported as a block device.
//!
//! [`open`] creates the volumes of a design and mounts them; the [`Datastore`] it returns reports what
//! they do, and takes them away again. The `emulated` kind moves real bytes to backing files at once
//! and answers when the device model of `underlay-model` says so.
//!
//! [`persistent`] is the same for anyone: volumes in a directory of the user's choice, which outlive every program.
//!
//! What is deliberately not here: how a device behaves (the `model` crate), what runs on the
//! volumes, and any decision about which design to use.

pub mod error;

pub mod spec;

pub mod datastore;
pub mod fault;
pub mod timing_report;

mod path;

mod cluster_config;
mod config;
mod control;
mod profile_config;

pub mod data_plane;
pub mod reduction;

mod emulated;
mod server;

pub mod persistent;

pub use control::ServiceSlowdown;
pub use datastore::{BackendLatency, Datastore, VolumeLatency};
pub use emulated::check_host;
pub use error::DatastoreError;
pub use fault::{ClusterChange, ClusterFault, DatastoreNotice};
pub use server::serve;
pub use spec::{ClusterStorage, Context, DatastoreSpec, MountedVolume, Timing, VolumeRequest};
pub use timing_report::TimingReport;
pub use underlay_core::Durability;

use std::collections::HashSet;

/// Creates and mounts `volumes` on the datastore that `spec` describes.
///
/// Everything acquired is on `context.teardown` before it exists. On error, what was acquired so far is
/// still on the stack; unwind it.
pub fn open(
    spec: &DatastoreSpec,
    volumes: &[VolumeRequest],
    context: &Context<'_>,
) -> Result<Box<dyn Datastore>, DatastoreError> {
    check_names(volumes)?;
    match spec {
        DatastoreSpec::Path { directory } => Ok(Box::new(path::open(directory, volumes, context)?)),
        DatastoreSpec::Emulated { devices, seed, backing_directory, durability, link } => {
            let emulation = emulated::Emulation {
                storage: emulated::Storage::Devices(devices, *link),
                seed: *seed,
                backing_directory: backing_directory.as_deref(),
                durability: *durability,
            };
            Ok(Box::new(emulated::open(&emulation, volumes, context)?))
        }
        DatastoreSpec::Cluster { storage, seed, backing_directory } => {
            let emulation = emulated::Emulation {
                storage: emulated::Storage::Cluster(storage),
                seed: *seed,
                backing_directory: backing_directory.as_deref(),
                durability: Durability::Profile,
            };
            Ok(Box::new(emulated::open(&emulation, volumes, context)?))
        }
    }
}

fn check_names(volumes: &[VolumeRequest]) -> Result<(), DatastoreError> {
    if volumes.is_empty() {
        return Err(DatastoreError::NoVolumes);
    }
    let mut seen = HashSet::new();
    for VolumeRequest { name, .. } in volumes {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(allowed) {
            return Err(DatastoreError::BadVolumeName(name.clone()));
        }
        if !seen.insert(name) {
            return Err(DatastoreError::DuplicateVolume(name.clone()));
        }
    }
    Ok(())
}
