//! How datastores and volumes are printed.

use crate::stop::Stop;
use serde::Serialize;
use underlay_core::Bytes;
use underlay_datastore::persistent::{Status, VolumeStatus};

/// Prints anything as JSON.
pub fn json<T: Serialize>(value: &T) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Stop::internal(&error))?;
    outln!("{text}");
    Ok(())
}

/// Prints how to reach a volume.
pub fn volume(volume: &VolumeStatus) {
    let form = volume.file_system.as_deref().unwrap_or("bare");
    let place = volume.policy.as_deref().unwrap_or(&volume.device);
    outln!("{}  {}, {form}, on {place}", volume.name, Bytes(volume.capacity_bytes));
    if let Some(mount) = &volume.mount {
        outln!("  mounted on    {}", mount.display());
    }
    if let (Some(device), Some(link)) = (&volume.block_device, &volume.link) {
        outln!("  block device  {} ({})", device.display(), link.display());
    }
    if volume.file_system.is_some() && volume.mount.is_none() && volume.block_device.is_some() {
        outln!("  not mounted");
    }
    outln!("  NBD           {}", volume.nbd_uri);
    if let Some(uri) = &volume.nbd_tcp_uri {
        outln!("  NBD (TCP)     {uri}");
    }
}

/// Prints a running datastore.
pub fn datastore(status: &Status) {
    let power = if status.powered { "running" } else { "power is cut" };
    outln!("{}  {power}", status.directory.display());
    for (name, _) in status.cluster.iter().filter(|(_, value)| **value == 0.0) {
        let host = name.strip_prefix("cluster.host.").and_then(|it| it.strip_suffix(".reachable"));
        if let Some(host) = host {
            outln!("  host {host}: unreachable");
        }
    }
    for device in &status.devices {
        let is_cache = !status.cluster.is_empty() && device.name.ends_with("/cache");
        let of = if is_cache {
            device.free_bytes + device.buffer_fill_bytes
        } else {
            device.capacity_bytes
        };
        outln!(
            "  device {}: {}, {}, {} of {} free{}",
            device.name,
            device.profile,
            device.condition,
            Bytes(device.free_bytes),
            Bytes(of),
            if is_cache { " in its write buffer" } else { "" },
        );
    }
    let left: f64 = (status.cluster.iter())
        .filter(|(name, _)| name.starts_with("cluster.resync.") && name.ends_with(".left"))
        .map(|(_, bytes)| bytes)
        .sum();
    if left > 0.0 {
        outln!("  {} left to resynchronise", Bytes(left as u64));
    }
    if let Some(reason) = &status.no_block_devices {
        outln!("  no block devices: {reason}");
    }
    for one in &status.volumes {
        outln!();
        volume(one);
        for component in status.components.iter().filter(|it| it.volume == one.name) {
            outln!("  component {} on {}: {}", component.name, component.device, component.state);
        }
    }
}
