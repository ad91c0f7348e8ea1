//! How datastores and volumes are printed.

use crate::stop::Stop;
use serde::Serialize;
use underlay_core::Bytes;
use underlay_datastore::persistent::{Status, VolumeStatus};

/// Prints anything as JSON.
pub fn json<T: Serialize>(value: &T) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Stop::internal(&error))?;
    println!("{text}");
    Ok(())
}

/// Prints how to reach a volume.
pub fn volume(volume: &VolumeStatus) {
    let form = volume.file_system.as_deref().unwrap_or("bare");
    println!("{}  {}, {form}, on {}", volume.name, Bytes(volume.capacity_bytes), volume.device);
    if let Some(mount) = &volume.mount {
        println!("  mounted on    {}", mount.display());
    }
    if let (Some(device), Some(link)) = (&volume.block_device, &volume.link) {
        println!("  block device  {} ({})", device.display(), link.display());
    }
    println!("  NBD           {}", volume.nbd_uri);
    if let Some(uri) = &volume.nbd_tcp_uri {
        println!("  NBD (TCP)     {uri}");
    }
}

/// Prints a running datastore.
pub fn datastore(status: &Status) {
    let power = if status.powered { "runs" } else { "runs without power" };
    println!("{}  {power}", status.directory.display());
    for device in &status.devices {
        println!(
            "  device {}: {}, {}, {} of {} free",
            device.name,
            device.profile,
            device.condition,
            Bytes(device.free_bytes),
            Bytes(device.capacity_bytes),
        );
    }
    if let Some(reason) = &status.no_block_devices {
        println!("  no block devices: {reason}");
    }
    for one in &status.volumes {
        println!();
        volume(one);
    }
}
