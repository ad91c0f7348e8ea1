//! What others send, damaged: NBD conversations, requests of the kernel, commands, and the files that a stopped datastore left.
//! Nothing of it may panic, and nothing may be used up that was not there.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_fuzz::fuzz;
use underlay_model::cluster::{
    Cluster, ClusterSettings, ClusterSpec, ClusterState, Fault, HostId, HostSpec, NetworkSpec,
    Policy, Restart,
};
use underlay_model::{DiskGroupSpec, builtin};

use super::fuse_protocol;
use super::nbd::negotiation::{Export, Negotiation, Step};
use super::nbd::protocol::{self, Parsed};
use crate::cluster_config::{ClusterConfig, GroupConfig, PolicyConfig};
use crate::config::{ProfileConfig, ServerConfig, VolumeConfig};
use crate::control::{Answer, Command, Condition, EncodedHistogram, Stat, TimingMode};
use crate::fault::ClusterFault;
use crate::persistent::fuzzing;

fn be(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    be(&[b"IHAVEOPT", &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data])
}

fn request(kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    be(&[
        &0x2560_9513u32.to_be_bytes(),
        &flags.to_be_bytes(),
        &kind.to_be_bytes(),
        &77u64.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ])
}

/// What a client says from its first byte: flags, options, requests.
fn conversations() -> Vec<Vec<u8>> {
    let flags = 3u32.to_be_bytes();
    let go = |kind| option(kind, &be(&[&4u32.to_be_bytes(), b"data", &[0, 1, 0, 3]]));
    let requests = [
        request(0, 0, 4096, 8192, &[]),
        request(1, 1, 0, 512, &[9; 512]),
        request(3, 0, 0, 0, &[]),
        request(4, 0, 65_536, 4096, &[]),
        request(6, 2, 0, 4096, &[]),
        request(2, 0, 0, 0, &[]),
    ]
    .concat();
    let contexts = |queries: &[&[u8]]| {
        let named = |text: &[u8]| be(&[&(text.len() as u32).to_be_bytes(), text]);
        let count = (queries.len() as u32).to_be_bytes();
        be(&[&named(b"data"), &count, &queries.iter().copied().flat_map(named).collect::<Vec<_>>()])
    };
    let lists = [option(9, &contexts(&[])), option(9, &contexts(&[b"base:"]))].concat();
    let sets = option(10, &contexts(&[b"base:allocation", b"other:context"]));
    let statuses = [request(7, 0, 0, 1 << 20, &[]), request(7, 8, 4096, 4096, &[])].concat();
    vec![
        be(&[&flags, &option(8, &[]), &lists, &sets, &go(7), &statuses, &requests]),
        be(&[&flags, &sets, &option(8, &[]), &sets, &option(1, b"data"), &statuses]),
        be(&[&flags, &option(8, &[]), &option(3, &[]), &go(6), &go(7), &requests]),
        be(&[&flags, &option(1, b"data"), &requests]),
        be(&[&flags, &option(7, &be(&[&0u32.to_be_bytes(), &[0, 0]])), &requests]),
        be(&[&flags, &option(2, &[])]),
    ]
}

/// Reads a conversation as the server does, in pieces of `piece` bytes.
fn converse(bytes: &[u8], piece: usize) {
    let exports = [Export { name: "data".to_string(), size_bytes: 1 << 20 }];
    let mut negotiation = Negotiation::new();
    let (mut there, mut at) = (0, 0);
    let more = |there: &mut usize| {
        let had = *there;
        *there = (*there + piece).min(bytes.len());
        *there > had
    };
    loop {
        match negotiation.step(&bytes[at..there], &exports) {
            Err(_) | Ok(Step::Ended(_)) => return,
            Ok(Step::Incomplete(needed)) => {
                assert!(needed > there - at, "asks for what it has");
                if !more(&mut there) {
                    return;
                }
            }
            Ok(Step::Reply(used, _)) => {
                assert!(used > 0 && used <= there - at, "used up {used} of {}", there - at);
                at += used;
            }
            Ok(Step::Chosen { used, export, .. }) => {
                assert!(used <= there - at && export < exports.len());
                at += used;
                break;
            }
        }
    }
    loop {
        match protocol::parse(&bytes[at..there]) {
            Err(_) => return,
            Ok(Parsed::Incomplete(needed)) => {
                assert!(needed > there - at, "asks for what it has");
                if !more(&mut there) {
                    return;
                }
            }
            Ok(Parsed::Request(request, used)) => {
                assert!(used >= protocol::REQUEST_BYTES && used <= there - at);
                assert!(request.data.len() <= request.length as usize);
                at += used;
            }
        }
    }
}

#[test]
fn nbd_conversations() {
    fuzz(&conversations(), |bytes| {
        for piece in [1, 7, usize::MAX >> 1] {
            converse(bytes, piece);
        }
    });
}

#[test]
fn requests_of_the_kernel() {
    let header = |opcode: u32, body: &[u8]| {
        let length = (40 + body.len()) as u32;
        be(&[
            &length.to_ne_bytes(),
            &opcode.to_ne_bytes(),
            &[5; 8],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0; 16],
            body,
        ])
    };
    let write = be(&[&[1; 8], &4096u64.to_ne_bytes(), &512u32.to_ne_bytes(), &[0; 20], &[7; 512]]);
    let read = be(&[&[1; 8], &4096u64.to_ne_bytes(), &8192u32.to_ne_bytes(), &[0; 20]]);
    let init = [7u32, 45, 131_072, 0xffff_ffff].map(u32::to_ne_bytes).concat();
    let corpus = vec![
        header(1, b"data\0"),
        header(15, &read),
        header(16, &write),
        header(26, &init),
        header(28, &read),
        header(43, &[0; 32]),
        header(3, &[0; 16]),
    ];
    fuzz(&corpus, |bytes| {
        if let Ok(request) = fuse_protocol::parse(bytes)
            && let fuse_protocol::Body::Write { data, .. } = request.body
        {
            assert!(data.len() < bytes.len());
        }
    });
}

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
        network: NetworkSpec { latency: Nanos::from_micros(20), bytes_per_second: 1_250_000_000 },
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
