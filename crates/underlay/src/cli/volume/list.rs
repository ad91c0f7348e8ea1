//! `underlay volume list`: what is in a datastore, whether it runs or not.

use super::data_directory::{data_directory, stop};
use super::show;
use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use underlay_core::Bytes;
use underlay_datastore::DatastoreError;
use underlay_datastore::persistent::{Busy, DataDirectory, Description, Presence};

/// Arguments of `underlay volume list`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let store = data_directory(&arguments.directory)?;
    match store.presence().map_err(|error| stop(&error))? {
        Presence::Kept(connection) => match connection.status() {
            Ok(status) if arguments.json => {
                let state = State::Running.as_str();
                show::json(&json!({ "running": true, "state": state, "datastore": status }))
            }
            Ok(status) => {
                show::datastore(&status);
                Ok(())
            }
            // It was stopped or killed a moment ago.
            Err(DatastoreError::SupervisorLeft(_)) => {
                described(arguments, &store, State::Busy(Busy::Stopping))
            }
            Err(error) => Err(stop(&error)),
        },
        Presence::Busy(busy) => described(arguments, &store, State::Busy(busy)),
        Presence::Orphaned => described(arguments, &store, State::SupervisorGone),
        Presence::Stopped => described(arguments, &store, State::Stopped),
    }
}

/// The state of a datastore.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Busy(Busy),
    Stopped,
    /// Its supervisor was killed; volumes are still served.
    SupervisorGone,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Busy(busy) => busy.as_str(),
            State::Stopped => "stopped",
            State::SupervisorGone => "supervisor-gone",
        }
    }
}

/// What is known without a supervisor.
fn described(arguments: &Arguments, store: &DataDirectory, state: State) -> Result<(), Stop> {
    let description = store.description().map_err(|error| stop(&error))?;
    let directory = store.directory().display().to_string();
    if arguments.json {
        return show::json(&json!({
            "running": false,
            "state": state.as_str(),
            "supervisor-gone": state == State::SupervisorGone,
            "datastore": stopped(&directory, &description),
        }));
    }
    match state {
        State::Running | State::Stopped => {
            outln!("{directory}  stopped; start it with `underlay volume start {directory}`");
        }
        State::Busy(busy) => {
            outln!("{directory}  is {}; try again in a moment", busy.as_str());
        }
        State::SupervisorGone => outln!(
            "{directory}  its supervisor is gone, but its volumes are still served; `underlay volume stop \
             {directory}` takes them down, then `start` starts them again"
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
