//! Checks that refuse a datastore before anything is created.

use std::collections::HashSet;
use std::path::Path;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::Cluster;
use underlay_model::{DeviceProfile, HostLink, Medium};

use crate::error::DatastoreError;
use crate::spec::{ClusterStorage, VolumeRequest};

/// Whether this host can emulate at all; nothing is created to find out.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn check_host() -> Result<(), DatastoreError> {
    if !Path::new("/dev/fuse").exists() {
        return Err(DatastoreError::EmulationUnavailable {
            missing: "there is no /dev/fuse".to_string(),
            remedy: "load the kernel module fuse, or pass the device into the container",
        });
    }
    if !rustix::process::geteuid().is_root() {
        return Err(DatastoreError::EmulationUnavailable {
            missing: "block devices can only be attached and mounted by root".to_string(),
            remedy: "run with sudo",
        });
    }
    Ok(())
}

/// Devices that exist and can be modelled.
pub(crate) fn check_devices(devices: &[(String, DeviceProfile)]) -> Result<(), DatastoreError> {
    if devices.is_empty() {
        return Err(DatastoreError::NoDevices);
    }
    let mut seen = HashSet::new();
    for (name, profile) in devices {
        if !seen.insert(name) {
            return Err(DatastoreError::DuplicateDevice(name.clone()));
        }
        let problems = profile.problems();
        if !problems.is_empty() {
            return Err(DatastoreError::BadProfile { device: name.clone(), problems });
        }
    }
    Ok(())
}

/// A link that can be modelled.
pub(crate) fn check_link(link: Option<HostLink>) -> Result<(), DatastoreError> {
    match link.and_then(|link| link.problem()) {
        Some(problem) => Err(DatastoreError::BadLink(problem)),
        None => Ok(()),
    }
}

/// Finds the device of each volume and checks that they hold their volumes.
pub(crate) fn place_volumes(
    devices: &[(String, DeviceProfile)],
    volumes: &[VolumeRequest],
) -> Result<Vec<usize>, DatastoreError> {
    let mut used = vec![Bytes::ZERO; devices.len()];
    let mut placed = Vec::with_capacity(volumes.len());
    for volume in volumes {
        let device = match &volume.device {
            None => 0,
            Some(name) => devices.iter().position(|(known, _)| known == name).ok_or_else(|| {
                DatastoreError::UnknownDevice {
                    volume: volume.name.clone(),
                    device: name.clone(),
                    known: devices.iter().map(|(known, _)| known.clone()).collect(),
                }
            })?,
        };
        // As the model lays them out: extents start at whole mebibytes.
        used[device] += Bytes(volume.capacity.0.next_multiple_of(1 << 20));
        placed.push(device);
    }
    for ((name, profile), needed) in devices.iter().zip(used) {
        if needed > profile.capacity {
            return Err(DatastoreError::DeviceTooSmall {
                device: name.clone(),
                needed,
                capacity: profile.capacity,
            });
        }
    }
    Ok(placed)
}

/// Checks that the cluster is possible and holds these volumes, by placing them on a trial cluster.
pub(crate) fn check_cluster(
    storage: &ClusterStorage,
    requests: &[VolumeRequest],
) -> Result<(), DatastoreError> {
    let mut cluster =
        Cluster::new(storage.spec.clone(), RootSeed(0)).map_err(DatastoreError::BadCluster)?;
    for VolumeRequest { name, capacity, .. } in requests {
        let policy = storage.policy_of(name);
        cluster.create_volume(Nanos::ZERO, name, *capacity, policy).map_err(|refusal| {
            DatastoreError::CannotPlace { volume: name.clone(), reason: refusal.to_string() }
        })?;
    }
    Ok(())
}

/// Refuses devices that answer reads faster than the export can hand one through.
pub(crate) fn check_floor(
    devices: &[(String, DeviceProfile)],
    floor: Nanos,
) -> Result<(), DatastoreError> {
    for (name, profile) in devices {
        if let Some(typical) = typical_read(profile)
            && typical <= floor
        {
            return Err(DatastoreError::FasterThanHost { device: name.clone(), typical, floor });
        }
    }
    Ok(())
}

/// The time of the fastest lone read of any device; none where no read takes time.
pub(crate) fn fastest_read(devices: &[(String, DeviceProfile)]) -> Option<Nanos> {
    devices.iter().filter_map(|(_, profile)| typical_read(profile)).min()
}

/// The time of a lone read; none for devices without any.
fn typical_read(profile: &DeviceProfile) -> Option<Nanos> {
    match &profile.medium {
        Medium::Instant => None,
        Medium::Flash(flash) => Some(flash.read_command + flash.read_service + flash.base),
        Medium::Disk(disk) => Some(disk.command + disk.seek_shortest),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_devices, check_floor, place_volumes};
    use crate::error::DatastoreError;
    use crate::spec::VolumeRequest;
    use underlay_core::{Bytes, Nanos};
    use underlay_host::FileSystem;
    use underlay_model::builtin;

    fn volume(name: &str, capacity: Bytes, device: Option<&str>) -> VolumeRequest {
        VolumeRequest {
            name: name.to_string(),
            capacity,
            file_system: FileSystem::Ext4,
            device: device.map(str::to_string),
            host: None,
        }
    }

    #[test]
    fn messages_name_what_is_wrong() {
        let nvme = builtin::find("dc1500m-960").unwrap();
        let devices = vec![("nvme".to_string(), nvme.clone()), ("disk".to_string(), nvme.clone())];
        let placed = |volumes: &[VolumeRequest]| place_volumes(&devices, volumes);
        let small = Bytes::from_gib(1);
        assert_eq!(
            placed(&[volume("a", small, None), volume("b", small, Some("disk"))]).unwrap(),
            [0, 1]
        );
        let unknown = placed(&[volume("wal", small, Some("ssd"))]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "volume `wal` wants device `ssd`; the design has nvme, disk"
        );
        let large = Bytes::from_gib(600);
        let full = placed(&[volume("a", large, None), volume("b", large, None)]).unwrap_err();
        assert!(matches!(full, DatastoreError::DeviceTooSmall { .. }), "{full}");
        assert!(matches!(check_devices(&[]), Err(DatastoreError::NoDevices)));
        let twice = vec![("a".to_string(), nvme.clone()), ("a".to_string(), nvme.clone())];
        assert!(matches!(check_devices(&twice), Err(DatastoreError::DuplicateDevice(_))));
        let mut broken = nvme.clone();
        broken.capacity = Bytes::ZERO;
        let problem = check_devices(&[("nvme".to_string(), broken)]).unwrap_err();
        assert!(problem.to_string().contains("`capacity` is 0 B"), "{problem}");
        let too_fast = check_floor(&devices, Nanos::from_micros(95)).unwrap_err();
        assert!(matches!(too_fast, DatastoreError::FasterThanHost { .. }), "{too_fast}");
        assert!(check_floor(&devices, Nanos::from_micros(60)).is_ok());
    }
}
