//! The `path` datastore: directories on a file system that exists already.
//!
//! Each volume is a directory of its own below `<directory>/underlay-<run>/`, so that nothing of the owner's
//! is touched. Nothing is modelled, formatted or mounted; the capacity is only checked against
//! the free space, not enforced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use underlay_core::Evidence;
use underlay_core::series::SeriesSpec;
use underlay_host::{Teardown, Ticket};

use crate::control::ServiceSlowdown;
use crate::datastore::{Datastore, VolumeLatency};
use crate::emulated::check_space;
use crate::error::DatastoreError;
use crate::fault::{ClusterChange, ClusterFault, DatastoreNotice};
use crate::spec::{Context, MountedVolume, Timing, VolumeRequest};
use crate::timing_report::TimingReport;

/// An open `path` datastore.
pub(crate) struct PathDatastore {
    teardown: Teardown,
    base: Option<Ticket>,
    volumes: Vec<MountedVolume>,
    /// Device number of the file system at opening: a lost mount shows as another one.
    device_number: u64,
}

/// Creates one directory per volume.
pub(crate) fn open(
    directory: &Path,
    volumes: &[VolumeRequest],
    context: &Context<'_>,
) -> Result<PathDatastore, DatastoreError> {
    let directory = directory.canonicalize().map_err(DatastoreError::file("resolve", directory))?;
    check_space(&directory, volumes.iter().map(|volume| volume.capacity).sum())?;
    let run = context.scratch.file_name().unwrap_or_default().to_string_lossy();
    let base = directory.join(format!("underlay-{run}"));
    let ticket = context.teardown.create_directory(&base)?;
    allow_traversal(&base)?;
    let device_number = metadata(&base)?.dev();
    let block_device = block_device_of(device_number);
    let mut mounted = Vec::with_capacity(volumes.len());
    for volume in volumes {
        let path = base.join(&volume.name);
        fs::create_dir(&path).map_err(DatastoreError::file("create directory", &path))?;
        if let Some(owner) = context.owner {
            owner.own(&path)?;
        }
        mounted.push(MountedVolume {
            name: volume.name.clone(),
            path,
            block_device: block_device.clone(),
            // A directory: the file system has others, and so has its device.
            owns_block_device: false,
            capacity: volume.capacity,
        });
    }
    Ok(PathDatastore {
        teardown: context.teardown.clone(),
        base: Some(ticket),
        volumes: mounted,
        device_number,
    })
}

/// Lets server users pass through a directory that only we may list.
pub(crate) fn allow_traversal(directory: &Path) -> Result<(), DatastoreError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o711))
        .map_err(DatastoreError::file("set the permissions of", directory))
}

fn metadata(path: &Path) -> Result<fs::Metadata, DatastoreError> {
    fs::metadata(path).map_err(DatastoreError::file("inspect", path))
}

/// The name in `/proc/diskstats` of the block device with this number, if it is one.
pub(crate) fn block_device_of(device_number: u64) -> Option<String> {
    let (major, minor) = (rustix::fs::major(device_number), rustix::fs::minor(device_number));
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// Whether the file system below `path` has become read-only.
pub(crate) fn is_read_only(path: &Path) -> Result<bool, DatastoreError> {
    let status = rustix::fs::statvfs(path)
        .map_err(DatastoreError::file("inspect the file system of", path))?;
    Ok(status.f_flag.contains(StatVfsMountFlags::RDONLY))
}

impl Datastore for PathDatastore {
    fn volumes(&self) -> &[MountedVolume] {
        &self.volumes
    }

    fn evidence(&self) -> Evidence {
        Evidence::Measured
    }

    fn series(&self) -> Vec<SeriesSpec> {
        Vec::new()
    }

    fn counters(&mut self) -> Result<Vec<f64>, DatastoreError> {
        Ok(Vec::new())
    }

    fn set_slowdown(&mut self, slowdown: ServiceSlowdown) -> Result<(), DatastoreError> {
        if slowdown == ServiceSlowdown::NONE {
            return Ok(());
        }
        Err(DatastoreError::NotEmulated("slow one kind of I/O"))
    }

    fn set_timing(&mut self, timing: Timing) -> Result<(), DatastoreError> {
        match timing {
            Timing::Modelled => Err(DatastoreError::NotEmulated("model latencies")),
            // Nothing is modelled anyway, which is what is asked for.
            Timing::Off => Ok(()),
        }
    }

    fn timing(&mut self) -> Result<Option<TimingReport>, DatastoreError> {
        Ok(None)
    }

    fn latency(&mut self) -> Result<Vec<VolumeLatency>, DatastoreError> {
        Ok(Vec::new())
    }

    fn power_cut(&mut self) -> Result<(), DatastoreError> {
        Err(DatastoreError::NotEmulated("lose its power"))
    }

    fn power_on(&mut self) -> Result<(), DatastoreError> {
        Err(DatastoreError::NotEmulated("lose its power"))
    }

    fn inject(&mut self, _fault: &ClusterFault) -> Result<(), DatastoreError> {
        Err(DatastoreError::NotEmulated("break"))
    }

    fn change(&mut self, _change: &ClusterChange) -> Result<(), DatastoreError> {
        Err(DatastoreError::NotEmulated("be changed"))
    }

    fn remount(&mut self) -> Result<(), DatastoreError> {
        Err(DatastoreError::NotEmulated("be mounted again"))
    }

    fn notices(&mut self) -> Result<Vec<DatastoreNotice>, DatastoreError> {
        Ok(Vec::new())
    }

    fn processes(&self) -> Vec<(String, u32)> {
        Vec::new()
    }

    fn health(&mut self) -> Result<(), DatastoreError> {
        for volume in &self.volumes {
            let lost = || DatastoreError::LostMount {
                volume: volume.name.clone(),
                path: volume.path.clone(),
            };
            let found = fs::metadata(&volume.path).map_err(|_| lost())?;
            if found.dev() != self.device_number {
                return Err(lost());
            }
            if is_read_only(&volume.path)? {
                return Err(DatastoreError::ReadOnly {
                    volume: volume.name.clone(),
                    path: volume.path.clone(),
                });
            }
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<(), DatastoreError> {
        if let Some(ticket) = self.base.take() {
            self.teardown.release(ticket)?;
        }
        Ok(())
    }
}
