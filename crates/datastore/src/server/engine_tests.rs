//! Tests of the timing plane.

use std::path::Path;

use super::cluster::plane::ClusterPlane;
use super::cluster::request::{InFlight, Payload};
use super::engine::Engine;
use crate::config::VolumeConfig;
use crate::control::TimingMode;
use crate::path_cost::PathCompensation;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec};
use underlay_model::{
    DeviceCondition, DiskGroupSpec, HostLink, Request, StoreDevice, StoreVolume, builtin, mirror,
};

fn engine(profile: &str) -> Engine<u32> {
    let profile = builtin::find(profile).unwrap();
    let device = StoreDevice { name: "a".to_string(), profile };
    let volume = StoreVolume { device: 0, capacity: Bytes::from_mib(64) };
    Engine::new(vec![device], vec![volume], RootSeed(1))
}

const PATH: Nanos = Nanos::from_micros(60);

fn due(engine: &mut Engine<u32>, now: Nanos) -> Vec<u32> {
    let mut due = Vec::new();
    engine.take_due(now, &mut due);
    due.into_iter().map(|due| due.reply).collect()
}

#[test]
fn answers_leave_before_their_deadline_by_the_compensation() {
    let mut engine = engine("dc1500m-960");
    engine.set_probe(Some(Nanos::from_micros(200)));
    engine.path.compensate(PathCompensation::of_all(PATH));
    let arrived = Nanos::from_micros(1_000);
    assert!(engine.is_probe(0, 4096) && !engine.is_probe(4096, 4096));
    engine.submit_probe(arrived, 7);
    assert_eq!(engine.next_answer(), Some(Nanos::from_micros(1_140)));
    assert!(due(&mut engine, Nanos(1_139_999)).is_empty());
    assert_eq!(due(&mut engine, Nanos::from_micros(1_140)), [7]);
    engine.submit(arrived, arrived, 0, &Request::read(1 << 20, 4096), 8);
    let deadline = engine.next_answer().expect("in flight") + PATH;
    assert!(deadline > arrived + PATH, "the device takes longer than the path");
    assert!(due(&mut engine, deadline.saturating_sub(PATH + Nanos(1))).is_empty());
    assert_eq!(engine.in_flight(0), 1);
    assert_eq!(due(&mut engine, deadline.saturating_sub(PATH)), [8]);
    assert_eq!((engine.in_flight(0), engine.next_answer()), (0, None));
}

#[test]
fn a_link_delays_what_its_devices_do_not() {
    let link = HostLink { bytes_per_second: 1_000_000_000, latency: Nanos::ZERO, divisor: 1 };
    let mut engine = engine("null").behind(Some(link));
    assert!(!engine.is_immediate(0) && engine.keeps_time());
    let arrived = Nanos::from_micros(10);
    engine.submit(arrived, arrived, 0, &Request::read(0, 4096), 1);
    assert_eq!(engine.next_answer(), Some(arrived + Nanos(4096)));
    assert_eq!(due(&mut engine, arrived + Nanos(4096)), [1]);
    assert_eq!(engine.link_use().map(|used| used.read_busy), Some(Nanos(4096)));
    engine.power_off(arrived);
    assert_eq!(engine.link_use().map(|used| used.read_busy), Some(Nanos(4096)));
    assert!(!engine.is_immediate(0), "it is still there");
}

#[test]
fn a_lost_copy_stays_lost_when_volumes_come_and_go() {
    let profile = mirror(&builtin::find("dc1500m-960").unwrap(), 2).unwrap();
    let device = StoreDevice { name: "log".to_string(), profile };
    let volume = StoreVolume { device: 0, capacity: Bytes::from_mib(64) };
    let mut engine: Engine<u32> = Engine::new(vec![device], vec![volume], RootSeed(1));
    engine.set_condition(Nanos::ZERO, 0, Some(1), DeviceCondition::Lost);
    engine.submit(Nanos(1), Nanos(1), 0, &Request::write(0, 4096), 1);
    assert_eq!(due(&mut engine, Nanos::from_millis(10)), [1]);
    assert!(engine.copies(0)[1].missed < Bytes::from_mib(1));
    engine.add_volume(Nanos::from_millis(10), 0, 16 << 20);
    let copies = engine.copies(0);
    assert_eq!((copies[0].condition, copies[1].condition), {
        (DeviceCondition::Healthy, DeviceCondition::Lost)
    });
    // Where bytes lie has changed: what it has is worth nothing.
    assert_eq!((copies[0].missed, copies[1].missed), (Bytes::ZERO, Bytes::from_mib(80)));
    engine.set_condition(Nanos::from_millis(20), 0, Some(1), DeviceCondition::Healthy);
    assert!(due(&mut engine, Nanos::from_secs(60)).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::ZERO);
}

#[test]
fn copies_are_not_made_while_there_is_no_power() {
    let profile = mirror(&builtin::find("dc1500m-960").unwrap(), 2).unwrap();
    let device = StoreDevice { name: "log".to_string(), profile };
    let volume = StoreVolume { device: 0, capacity: Bytes::from_mib(64) };
    let mut engine: Engine<u32> = Engine::new(vec![device], vec![volume], RootSeed(1));
    engine.set_condition(Nanos::ZERO, 0, Some(1), DeviceCondition::Lost);
    for piece in 0..100 {
        engine.submit(Nanos(1), Nanos(1), 0, &Request::write(piece << 18, 4096), 1);
    }
    let now = Nanos::from_secs(1);
    assert_eq!(due(&mut engine, now).len(), 100);
    engine.set_condition(now, 0, Some(1), DeviceCondition::Healthy);
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25));
    engine.power_off(now);
    let later = Nanos::from_secs(60);
    assert!(due(&mut engine, later).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25), "and no more than it missed");
    engine.power_on(later);
    assert!(due(&mut engine, later + Nanos::from_micros(1)).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25));
    assert!(due(&mut engine, later + Nanos::from_secs(1)).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::ZERO);
}

/// A mirrored volume on three hosts; its components are below a directory.
fn cluster_engine(directory: &Path) -> Engine<u32> {
    let profile = |name| builtin::find(name).unwrap();
    let host = |index: usize| {
        let capacity = vec![profile("dc500m-1920")];
        let group = DiskGroupSpec::new(&format!("g{index}"), profile("dc1500m-960"), capacity);
        HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
    };
    let spec = ClusterSpec {
        hosts: (0..3).map(host).collect(),
        network: NetworkSpec { latency: Nanos::from_micros(50), bytes_per_second: 1_250_000_000 },
        settings: ClusterSettings::default(),
    };
    let plane = ClusterPlane::open(spec, RootSeed(1), directory, None).unwrap();
    let mut engine = Engine::of_cluster(plane, RootSeed(1));
    let volume = VolumeConfig {
        name: "data".to_string(),
        capacity_bytes: 64 << 20,
        device: 0,
        backing_file: directory.join("nowhere"),
        policy: None,
    };
    engine.add_cluster_volume(Nanos::ZERO, &volume).unwrap();
    engine
}

/// The server looks after its answers all the time, also right before a request arrives: that must not change when it is
/// answered.
#[test]
fn answers_of_a_cluster_leave_before_their_deadline_by_the_compensation() {
    let directory = tempfile::tempdir().unwrap();
    let mut latencies = Vec::new();
    for path in [Nanos::ZERO, PATH] {
        let mut engine = cluster_engine(&directory.path().join(format!("{}", path.0)));
        engine.path.compensate(PathCompensation::of_all(path));
        let arrived = Nanos::from_millis(5);
        assert!(due(&mut engine, arrived).is_empty());
        let in_flight = InFlight { reply: 9, volume: 0, bytes: 4096, arrived };
        let payload = Payload::Write(vec![7; 4096], 0..4096);
        engine.carry(in_flight, &Request::write(0, 4096), payload, false);
        let mut answers = Vec::new();
        let mut now = arrived;
        while answers.is_empty() {
            now = engine.next_answer().expect("a request is in flight").max(now);
            engine.take_due(now, &mut answers);
        }
        let modelled = answers[0].answered.unwrap().modelled.unwrap();
        assert_eq!(modelled.deadline, now + path);
        assert!(modelled.delayed);
        latencies.push(modelled.deadline - arrived);
    }
    assert_eq!(latencies[0], latencies[1], "the model's latency is the same");
    assert!(latencies[0] > Nanos::from_micros(100), "{latencies:?}");
}

#[test]
fn what_the_host_is_too_slow_for_is_due_at_once() {
    let mut engine = engine("dc1500m-960");
    engine.path.compensate(PathCompensation::of_all(PATH));
    engine.submit(Nanos(0), Nanos(0), 0, &Request::write(0, 4096), 1);
    let mut due = Vec::new();
    engine.take_due(Nanos(0), &mut due);
    assert!(!due[0].answered.unwrap().modelled.unwrap().delayed);
}

#[test]
fn a_power_cut_hands_back_what_is_in_flight() {
    let mut engine = engine("hdd-7200");
    for reply in 0..3 {
        engine.submit(Nanos(0), Nanos(0), 0, &Request::read(0, 4096), reply);
    }
    engine.set_probe(Some(Nanos(5)));
    engine.submit_probe(Nanos(0), 3);
    assert_eq!(engine.power_off(Nanos(1)), [0, 1, 2, 3]);
    assert!(!engine.is_powered());
    assert!(due(&mut engine, Nanos::from_secs(1)).is_empty());
    engine.power_on(Nanos(1));
    engine.submit(Nanos(2), Nanos(2), 0, &Request::read(0, 4096), 10);
    assert!(due(&mut engine, Nanos(3)).is_empty());
    assert_eq!(due(&mut engine, Nanos::from_secs(1)), [10]);
}

#[test]
fn instant_devices_and_switched_off_timing_are_immediate() {
    assert!(engine("null").is_immediate(0));
    let mut engine = engine("hdd-7200");
    assert!(!engine.is_immediate(0));
    engine.set_mode(TimingMode::Off);
    assert!(engine.is_immediate(0));
}
