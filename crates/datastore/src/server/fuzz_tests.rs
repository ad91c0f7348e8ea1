//! What others send, damaged: commands, and the files that a stopped datastore left. Nothing of it may panic.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_fuzz::fuzz;
use underlay_model::cluster::{
    Cluster, ClusterSettings, ClusterSpec, ClusterState, Fault, HostId, HostSpec, NetworkSpec,
    Policy, Restart,
};
use underlay_model::{DiskGroupSpec, builtin};

use crate::cluster_config::{ClusterConfig, GroupConfig, PolicyConfig};
use crate::config::{ServerConfig, VolumeConfig};
use crate::control::{Answer, Command, Condition, EncodedHistogram, Stat, TimingMode};
use crate::fault::ClusterFault;
use crate::persistent::fuzzing;
use crate::profile_config::ProfileConfig;

fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data")
}

fn small_cluster() -> ClusterSpec {
    let device = |name: &str, mib| {
        let mut profile = builtin::find(name).expect("a profile");
        profile.capacity = Bytes::from_mib(mib);
        profile
    };
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new(
            "g",
            device("dc1500m-960", 256),
            vec![device("dc500m-1920", 512)],
        )],
    };
    ClusterSpec {
        hosts: (0..4).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    }
}

#[test]
fn commands_questions_and_descriptions() {
    let device = "ssd".to_string();
    let spec = small_cluster();
    let volume = VolumeConfig {
        name: "data".to_string(),
        capacity_bytes: 1 << 20,
        device: 0,
        backing_file: "/nowhere/data".into(),
        policy: Some(PolicyConfig::from(Policy::DEFAULT)),
        host: None,
    };
    let mut corpus = vec![
        json(&Command::Stat),
        json(&Command::SetTiming(TimingMode::Off)),
        json(&Command::AddVolume(volume)),
        json(&Command::SetCondition {
            device: device.clone(),
            condition: Condition::Slow { factor: 2.0 },
        }),
        json(&Command::Inject(ClusterFault::HostsPartitioned { hosts: vec![device.clone()] })),
        json(&Command::Inject(ClusterFault::VolumeBitRot { volume: device, bits: 3, seed: 4 })),
        json(&Command::ChangePolicy { volume: None, policy: PolicyConfig::from(Policy::DEFAULT) }),
        json(&Command::AddGroup {
            host: "h0".to_string(),
            group: Box::new(GroupConfig::from_spec(&spec.hosts[0].groups[0])),
        }),
        json(&Command::AddDevice {
            group: "h0/g0".to_string(),
            profile: Box::new(ProfileConfig::from_profile(&spec.hosts[0].groups[0].cache)),
        }),
        json(&Answer::Stat(Stat::default())),
        json(&ClusterConfig::from_spec(&spec)),
    ];
    let mut histogram = underlay_core::Histogram::new();
    [1, 900, 70_000, 5_000_000].iter().for_each(|value| histogram.record(*value));
    corpus.push(json(&EncodedHistogram::encode(&histogram)));
    corpus.extend(fuzzing::corpus());
    let folder = tempfile::tempdir().expect("a folder");
    fuzz(&corpus, |bytes| {
        let _ = serde_json::from_slice::<Command>(bytes);
        let _ = serde_json::from_slice::<Answer>(bytes);
        let _ = serde_json::from_slice::<ServerConfig>(bytes);
        if let Ok(histogram) = serde_json::from_slice::<EncodedHistogram>(bytes) {
            let _ = histogram.decode().map(|found| found.quantile(0.99));
        }
        if let Ok(config) = serde_json::from_slice::<ClusterConfig>(bytes) {
            let _ =
                Cluster::new(config.to_spec(), RootSeed(1)).map(|cluster| cluster.next_wakeup());
        }
        fuzzing::check(bytes, folder.path());
    });
}

/// A state worth remembering: volumes of several policies, a lost host, copying under way.
fn states() -> Vec<Vec<u8>> {
    let mut cluster = Cluster::new(small_cluster(), RootSeed(3)).expect("a cluster");
    let policies = [
        Policy { failures_to_tolerate: 0, ..Policy::DEFAULT },
        Policy::DEFAULT,
        Policy { method: underlay_model::cluster::Method::ErasureCoding, ..Policy::DEFAULT },
    ];
    let mut states = vec![json(&cluster.state())];
    let mut events = Vec::new();
    for (number, policy) in policies.into_iter().enumerate() {
        let name = format!("v{number}");
        let volume = cluster
            .create_volume(Nanos::ZERO, &name, Bytes::from_mib(8), policy)
            .expect("a volume");
        cluster.assume_written(volume).expect("room");
    }
    cluster.advance(Nanos::from_secs(1), &mut events);
    states.push(json(&cluster.state()));
    cluster.inject(Nanos::from_secs(2), Fault::HostLost { host: HostId(1) }).expect("a fault");
    cluster.advance(Nanos::from_secs(20), &mut events);
    states.push(json(&cluster.state()));
    states
}

#[test]
fn memories_of_a_cluster() {
    let states = states();
    fuzz(&states, |bytes| {
        let Ok(state) = serde_json::from_slice::<ClusterState>(bytes) else { return };
        for restart in [Restart::Clean, Restart::Unclean] {
            let Ok(mut cluster) = Cluster::restore(small_cluster(), RootSeed(3), &state, restart)
            else {
                return;
            };
            // What was accepted must be good for going on.
            let mut events = Vec::new();
            cluster.advance(Nanos::from_secs(5), &mut events);
            for volume in cluster.volumes().collect::<Vec<_>>() {
                cluster.volume_status(volume).expect("it was just listed");
            }
            cluster.inject(Nanos::from_secs(6), Fault::PowerCut).expect("always possible");
            cluster.inject(Nanos::from_secs(7), Fault::PowerOn).expect("always possible");
            cluster.advance(Nanos::from_secs(8), &mut events);
            cluster.state();
        }
    });
}
