//! Tests of a cluster as an export drives it: when answers leave, and what becomes of requests that are not of whole blocks.

use std::path::Path;

use super::back_end::ClusterBackEnd;
use super::plane::ClusterPlane;
use crate::cluster_config::PolicyConfig;
use crate::config::VolumeConfig;
use crate::control::TimingMode;
use underlay_core::{Dilation, Nanos, RootSeed};
use underlay_export::path_cost::PathCompensation;
use underlay_export::{Answer, Asked, BackEnd, BlockRequest, Clock, Exchange, Force, Zeroing};
use underlay_model::cluster::{
    ClusterSettings, ClusterSpec, HostId, HostSpec, NetworkSpec, Policy,
};
use underlay_model::{DiskGroupSpec, Operation, ServiceFactor, builtin};

const PATH: Nanos = Nanos::from_micros(60);

/// A mirrored volume on three hosts; its components are below a directory.
fn cluster(directory: &Path) -> (ClusterBackEnd<u32>, Exchange<u32>) {
    cluster_with(directory, None, None)
}

/// A volume of a policy on three hosts, used from one of them.
fn cluster_with(
    directory: &Path,
    policy: Option<PolicyConfig>,
    used_from: Option<u32>,
) -> (ClusterBackEnd<u32>, Exchange<u32>) {
    let profile = |name| builtin::find(name).unwrap();
    let host = |index: usize| {
        let capacity = vec![profile("dc500m-1920")];
        let group = DiskGroupSpec::new(&format!("g{index}"), profile("dc1500m-960"), capacity);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    let spec = ClusterSpec {
        hosts: (0..3).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(50),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    };
    let plane = ClusterPlane::open(spec, RootSeed(1), directory, None).unwrap();
    let mut back_end = ClusterBackEnd::new(plane);
    let volume = VolumeConfig {
        name: "data".to_string(),
        capacity_bytes: 64 << 20,
        device: 0,
        backing_file: std::path::PathBuf::new(),
        policy,
        host: used_from,
    };
    assert_eq!(back_end.add_volume(Nanos::ZERO, &volume), Ok(0));
    (back_end, Exchange::new(Clock::start(Dilation::NONE)))
}

fn write(offset: u64, data: &[u8]) -> Asked<'_> {
    Asked::Write { offset, data, force: Force::Nothing }
}

/// Asks, and waits for what comes back to the client; parts that only count are left out.
fn ask(
    (back_end, exchange): (&mut ClusterBackEnd<u32>, &mut Exchange<u32>),
    arrived: Nanos,
    asked: Asked<'_>,
) -> (Nanos, Answer<u32>) {
    let request = BlockRequest { client: 9, volume: 0, arrived, asked };
    back_end.submit(request, exchange).unwrap();
    let mut now = arrived;
    loop {
        let answers = std::mem::take(&mut exchange.answers);
        if let Some(answer) = answers.into_iter().find(|answer| answer.client.is_some()) {
            return (now, answer);
        }
        now = back_end.next_answer(&exchange.path).expect("a request is in flight").max(now);
        back_end.take_due(now, exchange);
    }
}

/// The server looks after its answers all the time, also right before a request arrives: that must not change when it is
/// answered.
#[test]
fn answers_of_a_cluster_leave_before_their_deadline_by_the_compensation() {
    let directory = tempfile::tempdir().unwrap();
    let mut latencies = Vec::new();
    for path in [Nanos::ZERO, PATH] {
        let (mut back_end, mut exchange) = cluster(&directory.path().join(format!("{}", path.0)));
        exchange.path.compensate(PathCompensation::of_all(path));
        let arrived = Nanos::from_millis(5);
        back_end.take_due(arrived, &mut exchange);
        assert!(exchange.answers.is_empty());
        let (now, answer) = ask((&mut back_end, &mut exchange), arrived, write(0, &[7; 4096]));
        let modelled = answer.modelled.unwrap();
        assert_eq!((modelled.deadline, answer.early), (now + path, path));
        assert!(modelled.delayed);
        latencies.push(modelled.deadline - arrived);
    }
    assert_eq!(latencies[0], latencies[1], "the model's latency is the same");
    assert!(latencies[0] > Nanos::from_micros(100), "{latencies:?}");
}

/// Two of three hosts hold nothing of a volume in one copy: used from there, a write crosses the network both ways.
#[test]
fn a_volume_is_used_from_the_host_that_it_was_asked_for() {
    let one_copy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
    let latency = |host: u32| {
        let directory = tempfile::tempdir().unwrap();
        let policy = Some(PolicyConfig::from(one_copy));
        let (mut back_end, mut exchange) = cluster_with(directory.path(), policy, Some(host));
        let volume = back_end.plane.volume(0).unwrap();
        assert_eq!(back_end.plane.cluster.volume_status(volume).unwrap().owner, HostId(host));
        let arrived = Nanos::from_millis(5);
        let (_, answer) = ask((&mut back_end, &mut exchange), arrived, write(0, &[7; 4096]));
        answer.modelled.unwrap().deadline - arrived
    };
    let mut latencies = [0, 1, 2].map(latency);
    latencies.sort();
    let both_ways = Nanos::from_micros(100);
    assert!(latencies[1] >= latencies[0] + both_ways, "{latencies:?}");
    assert!(latencies[2] >= latencies[0] + both_ways, "{latencies:?}");
}

#[test]
fn a_volume_cannot_be_used_from_a_host_that_does_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    let (mut back_end, _) = cluster(directory.path());
    let volume = VolumeConfig {
        name: "other".to_string(),
        capacity_bytes: 64 << 20,
        device: 0,
        backing_file: std::path::PathBuf::new(),
        policy: None,
        host: Some(3),
    };
    let refused = back_end.add_volume(Nanos::ZERO, &volume).unwrap_err();
    assert!(refused.contains("host 3 does not exist"), "{refused}");
}

#[test]
fn a_discard_of_several_parts_is_answered_once() {
    for mode in [TimingMode::Modelled, TimingMode::Off] {
        let directory = tempfile::tempdir().unwrap();
        let (mut back_end, mut exchange) = cluster(directory.path());
        back_end.set_mode(mode);
        let mut at = Nanos::from_millis(1);
        let mut next = || {
            at += Nanos::from_millis(100);
            at
        };
        ask((&mut back_end, &mut exchange), next(), write(0, &[7; 16_384]));
        // The end of a block, two whole ones, the beginning of another.
        let asked = Asked::Discard { offset: 4_000, length: 8_292, zeroing: Zeroing::FreesSpace };
        let (_, answer) = ask((&mut back_end, &mut exchange), next(), asked);
        assert_eq!((answer.client, answer.failed), (Some(9), false));
        assert_eq!(answer.modelled.is_some(), mode == TimingMode::Modelled);
        assert_eq!(back_end.in_flight(0), 0);
        let asked = Asked::Read { offset: 3_999, length: 8_294 };
        let (_, answer) = ask((&mut back_end, &mut exchange), next(), asked);
        assert_eq!((answer.operation, answer.bytes), (Operation::Read, 8_294));
        let (data, length) = (answer.data(), answer.data().len());
        assert_eq!((data[0], data[length - 1], length), (7, 7, 8_294));
        assert!(data[1..length - 1].iter().all(|byte| *byte == 0));
        let nothing = Asked::Discard { offset: 8_192, length: 0, zeroing: Zeroing::FreesSpace };
        assert!(!ask((&mut back_end, &mut exchange), next(), nothing).1.failed);
    }
}

#[test]
fn a_power_cut_hands_back_whoever_waits_and_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let (mut back_end, mut exchange) = cluster(directory.path());
    let arrived = Nanos::from_millis(1);
    let asked = [
        write(0, &[7; 4096]),
        Asked::Discard { offset: 4_000, length: 8_292, zeroing: Zeroing::FreesSpace },
        Asked::Flush,
    ];
    for (client, asked) in (1..).zip(asked) {
        let request = BlockRequest { client, volume: 0, arrived, asked };
        back_end.submit(request, &mut exchange).unwrap();
    }
    assert_eq!(back_end.in_flight(0), 5, "three of them are parts");
    let mut clients = back_end.power_off(arrived);
    clients.sort_unstable();
    assert_eq!(clients, [1, 2, 3]);
    assert!(!back_end.is_powered());
    back_end.take_due(Nanos::from_secs(1), &mut exchange);
    assert!(exchange.answers.is_empty(), "nobody is answered twice");
    back_end.power_on(Nanos::from_secs(1));
    let (_, answer) =
        ask((&mut back_end, &mut exchange), Nanos::from_secs(2), write(0, &[1; 4096]));
    assert!(back_end.is_powered() && !answer.failed);
}

#[test]
fn a_slowed_purpose_holds_answers_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut latencies = Vec::new();
    for factor in [1.0, 3.0] {
        let (mut back_end, mut exchange) = cluster(&directory.path().join(format!("{factor}")));
        back_end.set_factors(vec![[ServiceFactor::new(factor).unwrap(); 4]]);
        let arrived = Nanos::from_millis(5);
        let (now, _) = ask((&mut back_end, &mut exchange), arrived, write(0, &[7; 4096]));
        latencies.push((now - arrived).0);
    }
    assert!(latencies[1].abs_diff(3 * latencies[0]) <= 1, "{latencies:?}");
}
