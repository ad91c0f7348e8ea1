//! Tests of the timing plane.

use super::engine::{Effect, Engine, InFlight};
use crate::control::TimingMode;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_export::path_cost::{PathCompensation, PathCost};
use underlay_export::{Answer, Modelled};
use underlay_model::{
    DeviceCondition, HostLink, Request, StoreDevice, StoreVolume, builtin, mirror,
};

fn engine(profile: &str) -> Engine<u32> {
    let profile = builtin::find(profile).unwrap();
    let device = StoreDevice { name: "a".to_string(), profile };
    let volume = StoreVolume { device: 0, capacity: Bytes::from_mib(64) };
    Engine::new(vec![device], vec![volume], RootSeed(1))
}

const PATH: Nanos = Nanos::from_micros(60);

fn path(compensation: Nanos) -> PathCost {
    let mut path = PathCost::default();
    path.compensate(PathCompensation::of_all(compensation));
    path
}

fn submit(engine: &mut Engine<u32>, at: Nanos, request: &Request, client: u32) {
    let in_flight = InFlight::new(client, 0, at);
    engine.submit(at, request, in_flight);
}

fn answers(engine: &mut Engine<u32>, now: Nanos, path: &PathCost) -> Vec<Answer<u32>> {
    let mut answers = Vec::new();
    engine.take_due(now, path, |answer, _| answers.push(answer));
    answers
}

fn due_by(engine: &mut Engine<u32>, now: Nanos, path: &PathCost) -> Vec<u32> {
    answers(engine, now, path).into_iter().filter_map(|answer| answer.client).collect()
}

fn due(engine: &mut Engine<u32>, now: Nanos) -> Vec<u32> {
    due_by(engine, now, &PathCost::default())
}

#[test]
fn answers_leave_before_their_deadline_by_the_compensation() {
    let mut engine = engine("dc1500m-960");
    let path = path(PATH);
    let arrived = Nanos::from_micros(1_000);
    submit(&mut engine, arrived, &Request::read(1 << 20, 4096), 8);
    let deadline = engine.next_answer(&path).expect("in flight") + PATH;
    assert!(deadline > arrived + PATH, "the device takes longer than the path");
    assert!(due_by(&mut engine, deadline.saturating_sub(PATH + Nanos(1)), &path).is_empty());
    assert_eq!(engine.in_flight(0), 1);
    let answers = answers(&mut engine, deadline.saturating_sub(PATH), &path);
    let [Answer { client: Some(8), modelled: Some(modelled), early: PATH, .. }] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!((modelled.deadline, modelled.delayed), (deadline, true));
    assert_eq!((engine.in_flight(0), engine.next_answer(&path)), (0, None));
}

#[test]
fn reads_leave_in_their_own_time_beside_writes() {
    let early_writes = Nanos::from_micros(20);
    let mut path = PathCost::default();
    path.compensate(PathCompensation { reads_ns: PATH.0, writes_ns: early_writes.0 });
    let arrived = Nanos::from_micros(1_000);
    let alone = |request: &Request| {
        let mut engine = engine("dc1500m-960");
        submit(&mut engine, arrived, request, 1);
        engine.next_answer(&PathCost::default()).expect("in flight")
    };
    let mut engine = engine("dc1500m-960");
    submit(&mut engine, arrived, &Request::write(0, 4096), 1);
    let write = engine.next_answer(&path).expect("in flight");
    assert_eq!(write + early_writes, alone(&Request::write(0, 4096)));
    submit(&mut engine, arrived, &Request::read(1 << 20, 4096), 2);
    assert_eq!(due_by(&mut engine, write, &path), [1], "a write takes less than a read");
    let read = engine.next_answer(&path).expect("in flight");
    assert!(due_by(&mut engine, read.saturating_sub(Nanos(1)), &path).is_empty());
    let answers = answers(&mut engine, read, &path);
    let [Answer { client: Some(2), modelled: Some(modelled), early: PATH, .. }] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!(modelled.deadline, read + PATH);
}

#[test]
fn a_link_delays_what_its_devices_do_not() {
    let link = HostLink { bytes_per_second: 1_000_000_000, latency: Nanos::ZERO, divisor: 1 };
    let mut engine = engine("null").behind(Some(link));
    assert!(!engine.is_immediate(0) && engine.keeps_time());
    let arrived = Nanos::from_micros(10);
    submit(&mut engine, arrived, &Request::read(0, 4096), 1);
    assert_eq!(engine.next_answer(&PathCost::default()), Some(arrived + Nanos(4096)));
    assert_eq!(due(&mut engine, arrived + Nanos(4096)), [1]);
    assert_eq!(engine.link_use().map(|used| used.read_busy), Some(Nanos(4096)));
    engine.power_off();
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
    submit(&mut engine, Nanos(1), &Request::write(0, 4096), 1);
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
        submit(&mut engine, Nanos(1), &Request::write(piece << 18, 4096), 1);
    }
    let now = Nanos::from_secs(1);
    assert_eq!(due(&mut engine, now).len(), 100);
    engine.set_condition(now, 0, Some(1), DeviceCondition::Healthy);
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25));
    engine.power_off();
    let later = Nanos::from_secs(60);
    assert!(due(&mut engine, later).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25), "and no more than it missed");
    engine.power_on(later);
    assert!(due(&mut engine, later + Nanos::from_micros(1)).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::from_mib(25));
    assert!(due(&mut engine, later + Nanos::from_secs(1)).is_empty());
    assert_eq!(engine.copies(0)[1].missed, Bytes::ZERO);
}

#[test]
fn what_the_host_is_too_slow_for_is_due_at_once() {
    let mut engine = engine("dc1500m-960");
    submit(&mut engine, Nanos(0), &Request::write(0, 4096), 1);
    let due = answers(&mut engine, Nanos(0), &path(PATH));
    assert!(matches!(due[0].modelled, Some(Modelled { delayed: false, .. })));
}

#[test]
fn a_power_cut_hands_back_what_is_in_flight() {
    let mut engine = engine("hdd-7200");
    for reply in 0..3 {
        submit(&mut engine, Nanos(0), &Request::read(0, 4096), reply);
    }
    assert_eq!(engine.power_off(), [0, 1, 2]);
    assert!(!engine.is_powered());
    assert!(due(&mut engine, Nanos::from_secs(1)).is_empty());
    engine.power_on(Nanos(1));
    submit(&mut engine, Nanos(2), &Request::read(0, 4096), 10);
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

#[test]
fn what_becomes_durable_does_so_with_the_answer() {
    let mut engine = engine("dc1500m-960");
    let effect = Effect::Durable { offset: 8192, length: 512 };
    let request = Request { force_unit_access: true, ..Request::write(8192, 512) };
    engine.submit(Nanos(7), &request, InFlight { effect, ..InFlight::new(1, 0, Nanos(7)) });
    let mut effects = Vec::new();
    let path = PathCost::default();
    engine.take_due(Nanos(7), &path, |_, effect| effects.push(effect));
    assert_eq!(effects, []);
    engine.take_due(Nanos::from_secs(1), &path, |_, effect| effects.push(effect));
    assert_eq!(effects, [effect]);
}
