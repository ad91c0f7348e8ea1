//! `underlay volume list`: what is in a datastore, whether it runs or not.

use super::{home, show, stop};
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use underlay_core::Bytes;
use underlay_datastore::persistent::{Description, Home, Presence};

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
    match home.presence().map_err(|error| stop(&error))? {
        Presence::Kept(connection) => {
            let status = connection.status().map_err(|error| stop(&error))?;
            if arguments.json {
                show::json(&json!({ "running": true, "datastore": status }))
            } else {
                show::datastore(&status);
                Ok(())
            }
        }
        Presence::Orphaned => described(arguments, &home, Keeper::Gone),
        Presence::Stopped => described(arguments, &home, Keeper::None),
    }
}

/// Why a keeper does not answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// The datastore is stopped.
    None,
    /// It was killed; volumes are still served.
    Gone,
}

/// What is known without a keeper.
fn described(arguments: &Arguments, home: &Home, keeper: Keeper) -> Result<(), Stop> {
    let description = home.description().map_err(|error| stop(&error))?;
    let directory = home.directory().display().to_string();
    if arguments.json {
        return show::json(&json!({
            "running": false,
            "keeper-gone": keeper == Keeper::Gone,
            "datastore": stopped(&directory, &description),
        }));
    }
    match keeper {
        Keeper::None => {
            outln!("{directory}  stopped; `underlay volume start {directory}` brings it back");
        }
        Keeper::Gone => outln!(
            "{directory}  its keeper is gone, but its volumes are still served; `underlay volume stop \
             {directory}` takes them down, then `start` brings them back"
        ),
    }
    print(&description);
    Ok(())
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

fn print(description: &Description) {
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
