//! Which counters of the block layer speak of which volumes.
//!
//! The kernel counts per device. A volume with a device to itself has its own numbers; volumes that are folders on
//! one file system, or lie on one device for another reason, have those of the device together, with whatever else
//! the device serves. They are shown once, under a name that says so, never as the numbers of one of them.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_record::conventions::{document, source};

use super::run::ObservedRun;

/// The name under which the numbers of a device are shown that is not one volume's alone.
const WHOLE_DEVICE: &str = "whole device";

/// A device with counters, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedDevice {
    /// Title: the volume's name, or that it is a whole device. The same in designs that differ only in
    /// the device, so that these can be compared.
    pub(crate) name: String,
    /// What the names of its series begin with: `volume.wal`, `device.vda`.
    pub(crate) prefix: String,
    /// Where it is not one volume's alone.
    pub(crate) shared: Option<SharedDevice>,
}

/// A device that serves more than one volume, or one volume and other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedDevice {
    /// The key in `/proc/diskstats`.
    pub(crate) device: String,
    /// The volumes on it.
    pub(crate) volumes: Vec<String>,
}

/// The devices of a run's volumes that have counters, by name.
pub(crate) fn counted_devices(run: &ObservedRun) -> Vec<CountedDevice> {
    let Some(ticks) = run.sources.get(source::BLOCK) else { return Vec::new() };
    let has = |prefix: &str| ticks.names().any(|name| name.starts_with(&format!("{prefix}.")));
    let said = run.documents.get(document::DATASTORE).unwrap_or(&Value::Null);
    let shared = shared_devices(said);
    let is_shared =
        |volume: &str| shared.iter().any(|device| device.volumes.iter().any(|on| on == volume));
    let mut own: Vec<&str> =
        ticks.names().filter_map(|name| name.strip_prefix("volume.")?.split('.').next()).collect();
    own.sort_unstable();
    own.dedup();
    let mut devices: Vec<CountedDevice> = own
        .into_iter()
        .filter(|volume| !is_shared(volume))
        .map(|volume| CountedDevice {
            name: volume.to_string(),
            prefix: format!("volume.{volume}"),
            shared: None,
        })
        .collect();
    let volumes = said["volumes"].as_array().map_or(0, Vec::len);
    for device in shared {
        // Older records have the device's counters under the name of each of its volumes.
        let first = device.volumes.iter().map(|volume| format!("volume.{volume}"));
        let mut prefixes = std::iter::once(format!("device.{}", device.device)).chain(first);
        let Some(prefix) = prefixes.find(|prefix| has(prefix)) else { continue };
        let name = match device.volumes.len() == volumes {
            true => WHOLE_DEVICE.to_string(),
            false => format!("{WHOLE_DEVICE} of {}", device.volumes.join(", ")),
        };
        devices.push(CountedDevice { name, prefix, shared: Some(device) });
    }
    devices
}

/// The devices that are not one volume's alone, from the document that describes the datastore.
///
/// Older records do not say whose a device is; there those are shared that several volumes have.
pub(crate) fn shared_devices(datastore: &Value) -> Vec<SharedDevice> {
    let mut devices: BTreeMap<&str, (Vec<String>, bool)> = BTreeMap::new();
    for volume in datastore["volumes"].as_array().into_iter().flatten() {
        let (Some(name), Some(device)) = (volume["name"].as_str(), volume["block_device"].as_str())
        else {
            continue;
        };
        let (names, owned) = devices.entry(device).or_insert((Vec::new(), true));
        names.push(name.to_string());
        *owned &= volume["owns_block_device"].as_bool().unwrap_or(true);
    }
    devices
        .into_iter()
        .filter(|(_, (names, owned))| names.len() > 1 || !owned)
        .map(|(device, (volumes, _))| SharedDevice { device: device.to_string(), volumes })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{SharedDevice, shared_devices};
    use serde_json::json;

    #[test]
    fn folders_and_neighbours_share_their_device() {
        let shared = |device: &str, volumes: &[&str]| SharedDevice {
            device: device.to_string(),
            volumes: volumes.iter().map(ToString::to_string).collect(),
        };
        // As records were before they said whose a device is.
        let old = json!({ "volumes": [
            { "name": "data", "block_device": "vda" },
            { "name": "wal", "block_device": "vda" },
            { "name": "backup", "block_device": "loop3" },
            { "name": "temp", "block_device": null },
        ] });
        assert_eq!(shared_devices(&old), [shared("vda", &["data", "wal"])]);
        let new = json!({ "volumes": [
            { "name": "data", "block_device": "vda", "owns_block_device": false },
            { "name": "wal", "block_device": "loop3", "owns_block_device": true },
        ] });
        assert_eq!(shared_devices(&new), [shared("vda", &["data"])]);
        assert!(shared_devices(&json!({})).is_empty());
    }
}
