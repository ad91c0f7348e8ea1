//! `underlay volume list`: what is in a datastore, whether it runs or not.

use super::{home, show, stop};
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use underlay_core::Bytes;
use underlay_datastore::persistent::Description;

/// Arguments of `underlay volume list`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let home = home(&arguments.directory)?;
    match home.connect().map_err(|error| stop(&error))? {
        Some(connection) => {
            let status = connection.status().map_err(|error| stop(&error))?;
            if arguments.json {
                show::json(&json!({ "running": true, "datastore": status }))
            } else {
                show::datastore(&status);
                Ok(())
            }
        }
        None => {
            let description = home.description().map_err(|error| stop(&error))?;
            if arguments.json {
                show::json(&json!({
                    "running": false,
                    "datastore": stopped(&home.directory().display().to_string(), &description),
                }))
            } else {
                print(&home.directory().display().to_string(), &description);
                Ok(())
            }
        }
    }
}

fn stopped(directory: &str, description: &Description) -> serde_json::Value {
    let devices = description.devices.iter();
    let volumes = description.volumes.iter();
    json!({
        "directory": directory,
        "hosts": description.cluster.as_ref().map(|cluster| {
            cluster.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>()
        }),
        "devices": devices
            .map(|device| json!({
                "name": device.name,
                "profile": device.profile.name,
                "capacity-bytes": device.profile.capacity.0,
            }))
            .collect::<Vec<_>>(),
        "volumes": volumes
            .map(|volume| json!({
                "name": volume.name,
                "capacity-bytes": volume.capacity_bytes,
                "device": volume.device,
                "policy": volume.policy.map(|policy| policy.to_string()),
                "file-system": volume.file_system.map(|system| system.as_str()),
            }))
            .collect::<Vec<_>>(),
    })
}

fn print(directory: &str, description: &Description) {
    outln!("{directory}  stopped; `underlay volume start {directory}` brings it back");
    for device in &description.devices {
        let capacity = device.profile.capacity;
        outln!("  device {}: {}, {capacity}", device.name, device.profile.name);
    }
    if let Some(cluster) = &description.cluster {
        outln!("  a cluster of {} hosts", cluster.hosts.len());
    }
    for volume in &description.volumes {
        let form = volume.file_system.map_or("bare", |system| system.as_str());
        let capacity = Bytes(volume.capacity_bytes);
        let place =
            volume.policy.map_or_else(|| volume.device.clone(), |policy| policy.to_string());
        outln!("\n{}  {capacity}, {form}, on {place}", volume.name);
    }
}
