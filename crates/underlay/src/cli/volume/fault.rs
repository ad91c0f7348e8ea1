//! `underlay volume fault`: injects or repairs a fault in a running datastore.

use super::data_directory::{running, stop};
use crate::stop::Stop;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use underlay_core::Bytes;
use underlay_datastore::ClusterFault;
use underlay_model::DeviceCondition;
use underlay_study::{TORN_KEEP, TORN_UNIT};

/// Arguments of `underlay volume fault`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore.
    directory: PathBuf,
    #[command(subcommand)]
    fault: Fault,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Slow down all requests of a device.
    Slow {
        /// The device.
        device: String,
        /// Factor by which requests take longer.
        #[arg(long)]
        factor: f64,
    },
    /// The device accepts requests and completes none until it is repaired.
    Stuck {
        /// The device.
        device: String,
    },
    /// The device fails a share of its requests.
    Erroring {
        /// The device.
        device: String,
        /// Probability of a failure: 0.01 = one request in a hundred.
        #[arg(long)]
        probability: f64,
    },
    /// The device is lost: every request fails.
    Lost {
        /// The device.
        device: String,
    },
    /// The device works normally again; a lost device returns with its data.
    Mend {
        /// The device.
        device: String,
    },
    /// Replace a device of a cluster by an empty one.
    Replace {
        /// The device, such as `host-1/group-1/disk0`; `underlay volume list` shows them.
        device: String,
    },
    /// A host of a cluster crashes or loses power.
    HostLost {
        /// The host.
        host: String,
    },
    /// A host of a cluster stops responding but keeps its data.
    HostFrozen {
        /// The host.
        host: String,
    },
    /// A network partition: these hosts of a cluster reach only each other.
    Partition {
        /// The hosts.
        #[arg(required = true)]
        hosts: Vec<String>,
    },
    /// A host runs and reaches the others again.
    HostReturned {
        /// The host.
        host: String,
    },
    /// The next write to one copy of a volume of a cluster stores only its first bytes, and reports success.
    TornWrite {
        /// The volume.
        volume: String,
        /// Bytes to store: a multiple of 512, below 64 KiB.
        #[arg(long, value_name = "SIZE", value_parser = keep)]
        keep: Bytes,
    },
    /// Flip a stored bit of a cluster silently.
    BitRot {
        /// The component, such as `c0`; `underlay volume list` shows them.
        #[arg(value_parser = component)]
        component: u32,
        /// Offset of the byte.
        #[arg(long, value_name = "BYTE")]
        at: u64,
    },
    /// Cut the power: volatile data is lost or torn, and all I/O fails.
    PowerCut,
    /// Restore the power and mount the volumes again. No process may have files on them open.
    PowerOn,
}

/// `c0`, or only `0`.
fn component(word: &str) -> Result<u32, String> {
    let number = word.strip_prefix('c').unwrap_or(word).parse();
    number.map_err(|_| {
        "use a component's name as shown by `underlay volume list`, such as c0".to_string()
    })
}

/// Length of a torn write; the same limits as in studies.
fn keep(word: &str) -> Result<Bytes, String> {
    let size: Bytes = word.parse().map_err(|error| format!("{error}"))?;
    if TORN_KEEP.contains(&size.0) && size.0.is_multiple_of(TORN_UNIT.0) {
        return Ok(size);
    }
    Err("use a multiple of 512 bytes below 64 KiB, such as 512B".to_string())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let connection = running(&arguments.directory)?;
    let set = |device: &str, condition: DeviceCondition| {
        if let Some(problem) = condition.problem() {
            return Err(Stop::bad_input(problem));
        }
        connection.set_condition(device, condition).map_err(|error| stop(&error))
    };
    let inject = |fault| connection.inject(fault).map_err(|error| stop(&error));
    match &arguments.fault {
        Fault::Slow { device, factor } => set(device, DeviceCondition::Slow { factor: *factor }),
        Fault::Stuck { device } => set(device, DeviceCondition::Stuck),
        Fault::Erroring { device, probability } => {
            set(device, DeviceCondition::Erroring { probability: *probability })
        }
        Fault::Lost { device } => set(device, DeviceCondition::Lost),
        Fault::Mend { device } => set(device, DeviceCondition::Healthy),
        Fault::Replace { device } => {
            inject(ClusterFault::DeviceReplaced { device: device.clone() })
        }
        Fault::HostLost { host } => inject(ClusterFault::HostLost { host: host.clone() }),
        Fault::HostFrozen { host } => inject(ClusterFault::HostFrozen { host: host.clone() }),
        Fault::Partition { hosts } => {
            inject(ClusterFault::HostsPartitioned { hosts: hosts.clone() })
        }
        Fault::HostReturned { host } => inject(ClusterFault::HostReturned { host: host.clone() }),
        Fault::TornWrite { volume, keep } => inject(ClusterFault::VolumeTornWrite {
            volume: volume.clone(),
            keep_bytes: keep.0 as u32,
        }),
        Fault::BitRot { component, at } => {
            inject(ClusterFault::BitRot { component: *component, offset_bytes: *at, bit: 0 })
        }
        Fault::PowerCut => connection.power_cut().map_err(|error| stop(&error)),
        Fault::PowerOn => connection.power_on().map_err(|error| stop(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{component, keep};
    use underlay_core::Bytes;

    #[test]
    fn components_are_named_as_they_are_shown_or_by_number() {
        assert_eq!((component("c12"), component("12")), (Ok(12), Ok(12)));
        for wrong in ["", "c", "d0", "c-1", "cc0"] {
            assert!(component(wrong).unwrap_err().contains("such as c0"), "{wrong}");
        }
    }

    #[test]
    fn a_torn_write_keeps_sectors_and_not_all_of_them() {
        assert_eq!(keep("512B"), Ok(Bytes(512)));
        assert_eq!(keep("8KiB"), Ok(Bytes(8192)));
        for wrong in ["0B", "100B", "64KiB", "many"] {
            assert!(keep(wrong).is_err(), "{wrong}");
        }
    }
}
