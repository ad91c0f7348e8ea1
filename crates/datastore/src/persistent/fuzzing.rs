//! Parsers of what a supervisor reads, for the tests that damage it.

use std::path::Path;

use underlay_core::RootSeed;
use underlay_host::FileSystem;
use underlay_model::builtin;

use super::description::{Description, DeviceDescription, VolumeDescription};
use super::protocol::{NewVolume, Question, Reply};
use underlay_core::Durability;

/// Valid questions, answers and descriptions.
pub(crate) fn corpus() -> Vec<Vec<u8>> {
    let json = |value: &Question| serde_json::to_vec(value).expect("plain data");
    let volume = NewVolume {
        name: "data".to_string(),
        capacity_bytes: 1 << 20,
        device: Some("ssd".to_string()),
        policy: None,
        file_system: Some("ext4".to_string()),
        mount: Some("/mnt/data".into()),
    };
    let description = Description {
        seed: RootSeed(1),
        durability: Durability::Profile,
        devices: vec![DeviceDescription {
            name: "ssd".to_string(),
            profile: builtin::find("dc1500m-960").expect("a profile"),
        }],
        link: None,
        cluster: None,
        nbd_address: None,
        volumes: vec![VolumeDescription {
            name: "data".to_string(),
            capacity_bytes: 1 << 20,
            device: "ssd".to_string(),
            policy: None,
            file_system: Some(FileSystem::Ext4),
            mount: None,
        }],
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("datastore.json");
    description.write(&path).expect("a file");
    vec![
        json(&Question::Create(volume)),
        json(&Question::Stop { forced: true }),
        serde_json::to_vec(&Reply::Refused { reason: "no".to_string() }).expect("plain data"),
        std::fs::read(&path).expect("just written"),
    ]
}

/// Reads the bytes as everything a supervisor reads.
pub(crate) fn check(bytes: &[u8], folder: &Path) {
    let _ = serde_json::from_slice::<Question>(bytes);
    let _ = serde_json::from_slice::<Reply>(bytes);
    let path = folder.join("datastore.json");
    std::fs::write(&path, bytes).expect("a writable folder");
    let _ = Description::read(&path);
}
