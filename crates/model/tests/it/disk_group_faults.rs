//! Faults of members and of the power, one by one.

use crate::common::{Load, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{
    DiskGroup, GroupFinished, GroupIo, GroupOutcome, GroupRequestId, IoClass, MemberState,
    Operation, Reduction, ReductionCosts,
};

const SEED: RootSeed = RootSeed(69);
const CACHE: usize = 0;
const FIRST_DISK: usize = 1;

fn group(reduction: Reduction) -> DiskGroup {
    let mut spec = group_spec("dc1500m-960", &["5200eco-1920", "5200eco-1920"]);
    spec.write_buffer.usable = Bytes::from_mib(16);
    spec.reduction = reduction;
    DiskGroup::new(spec, SEED)
}

fn io(id: u64, operation: Operation, disk: usize) -> GroupIo {
    GroupIo {
        id: GroupRequestId(id),
        class: IoClass::Vm,
        operation,
        disk,
        offset_bytes: id * 7919 % 65_536 * 65_536,
        length_bytes: 8192,
    }
}

/// Lets everything finish that can, and insists that this ends.
fn settle(group: &mut DiskGroup) -> Vec<GroupFinished> {
    let mut finished = Vec::new();
    for _ in 0..1_000_000 {
        let Some(wakeup) = group.next_wakeup() else { return finished };
        group.advance(wakeup, &mut finished);
    }
    panic!("the group does not come to rest");
}

fn outcomes(finished: &[GroupFinished], outcome: GroupOutcome) -> usize {
    finished.iter().filter(|done| done.outcome == outcome).count()
}

#[test]
fn a_lost_disk_answers_what_it_has_and_what_comes() {
    let mut group = group(Reduction::Off);
    (0..100).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Read, 0)));
    (100..200).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Read, 1)));
    (200..210).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, 0)));
    let now = Nanos::from_micros(40);
    group.set_member(now, FIRST_DISK, MemberState::Lost);
    let mut finished = Vec::new();
    group.advance(now, &mut finished);
    let lost = GroupOutcome::DeviceLost { device: FIRST_DISK };
    assert_eq!(outcomes(&finished, lost), 100, "at once");
    group.submit(now, io(300, Operation::Read, 0));
    group.submit(now, io(301, Operation::Write, 0));
    finished.extend(settle(&mut group));
    assert_eq!(finished.len(), 212);
    let ok_on_other = finished.iter().filter(|done| (100..200).contains(&done.id.0));
    assert!(ok_on_other.into_iter().all(|done| done.outcome == GroupOutcome::Ok));
    assert!(outcomes(&finished, lost) >= 102);
    // It returns, empty.
    let now = Nanos::from_secs(1);
    group.set_member(now, FIRST_DISK, MemberState::Healthy);
    group.submit(now, io(400, Operation::Read, 0));
    assert_eq!(settle(&mut group)[0].outcome, GroupOutcome::Ok);
}

#[test]
fn a_lost_cache_device_takes_the_group_with_it() {
    let mut group = group(Reduction::Off);
    (0..50).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, 0)));
    settle(&mut group);
    let now = Nanos::from_millis(10);
    (50..100).for_each(|id| group.submit(now, io(id, Operation::Read, id as usize % 2)));
    group.set_member(now, CACHE, MemberState::Lost);
    group.submit(now, io(100, Operation::Flush, 0));
    let finished = settle(&mut group);
    assert_eq!(outcomes(&finished, GroupOutcome::DeviceLost { device: CACHE }), 51);
    let account = group.counters(now).write_buffer.account;
    assert_eq!((account.buffered_bytes, account.dropped_bytes), (0, 50 * 8192));
}

#[test]
fn any_lost_device_takes_a_deduplicating_group_with_it() {
    let mut group = group(Reduction::DedupeCompress(ReductionCosts::DEFAULT));
    group.submit(Nanos::ZERO, io(0, Operation::Read, 0));
    group.set_member(Nanos::ZERO, 2, MemberState::Lost);
    group.submit(Nanos::ZERO, io(1, Operation::Read, 0));
    assert_eq!(outcomes(&settle(&mut group), GroupOutcome::DeviceLost { device: 2 }), 2);
}

#[test]
fn a_stuck_device_keeps_requests_until_it_is_set_again() {
    let mut group = group(Reduction::Off);
    (0..20).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Read, id as usize % 2)));
    group.set_member(Nanos(10), FIRST_DISK, MemberState::Stuck);
    (20..30).for_each(|id| group.submit(Nanos(20), io(id, Operation::Read, 0)));
    assert_eq!(settle(&mut group).len(), 10, "only those of the other disk");
    let now = Nanos::from_secs(5);
    let mut again = group.clone();
    group.set_member(now, FIRST_DISK, MemberState::Healthy);
    let finished = settle(&mut group);
    assert_eq!((finished.len(), outcomes(&finished, GroupOutcome::Ok)), (20, 20));
    assert!(finished.iter().all(|done| done.at >= now));
    again.set_member(now, FIRST_DISK, MemberState::Lost);
    let finished = settle(&mut again);
    let lost = outcomes(&finished, GroupOutcome::DeviceLost { device: FIRST_DISK });
    assert_eq!((finished.len(), lost), (20, 20));
}

#[test]
fn a_slow_device_is_slow_in_latency_and_rate() {
    let run_at = |factor: Option<f64>, load: Load| {
        let mut group = group(Reduction::Off);
        if let Some(factor) = factor {
            group.set_member(Nanos::ZERO, FIRST_DISK, MemberState::Slow { factor });
            group.set_member(Nanos::ZERO, 2, MemberState::Slow { factor });
        }
        let reads = Stream::random(IoClass::Vm, 1.0, 8192, load);
        run(&mut group, &[reads], Plan::millis(200, 1_200), SEED)
    };
    let (healthy, slow) = (run_at(None, Load::Closed(1)), run_at(Some(5.0), Load::Closed(1)));
    let ratio = slow.quantile_us(0, 0.5) / healthy.quantile_us(0, 0.5);
    assert!((ratio / 5.0 - 1.0).abs() < 0.05, "latency x {ratio}");
    let (healthy, slow) = (run_at(None, Load::Closed(64)), run_at(Some(5.0), Load::Closed(64)));
    let ratio = healthy.requests_per_second(0) / slow.requests_per_second(0);
    assert!((ratio / 5.0 - 1.0).abs() < 0.05, "rate / {ratio}");
}

#[test]
fn an_erroring_device_errs_as_often_as_told() {
    let mut group = group(Reduction::Off);
    group.set_member(Nanos::ZERO, FIRST_DISK, MemberState::Erroring { probability: 0.25 });
    (0..4000).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Read, 0)));
    let finished = settle(&mut group);
    let errors = outcomes(&finished, GroupOutcome::DeviceError { device: FIRST_DISK });
    assert!((900..1100).contains(&errors), "{errors}");
    let now = Nanos::from_secs(10);
    let counters = group.counters(now);
    assert_eq!(counters.classes[IoClass::Vm.index()].errors, errors as u64);
    assert_eq!(counters.members[FIRST_DISK].errors, errors as u64);
}

/// Destaging to it fails until it is given up; writes to it are refused, those to the other disk go on.
#[test]
fn a_device_that_always_errs_is_given_up() {
    let mut group = group(Reduction::Off);
    group.set_member(Nanos::ZERO, FIRST_DISK, MemberState::Erroring { probability: 1.0 });
    // More than the buffer holds.
    (0..6000).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, id as usize % 2)));
    let finished = settle(&mut group);
    assert_eq!(finished.len(), 6000, "nothing hangs");
    let now = Nanos::from_secs(100);
    let counters = group.counters(now);
    assert!(counters.members[FIRST_DISK].is_given_up);
    assert!(counters.write_buffer.account.dropped_bytes > 0);
    let refused = GroupOutcome::DeviceError { device: FIRST_DISK };
    for (disk, outcome) in [(0, refused), (1, GroupOutcome::Ok)] {
        group.submit(now, io(7000, Operation::Write, disk));
        assert_eq!(settle(&mut group)[0].outcome, outcome);
    }
    let now = Nanos::from_secs(200);
    group.set_member(now, FIRST_DISK, MemberState::Healthy);
    group.submit(now, io(7001, Operation::Write, 0));
    assert_eq!(settle(&mut group)[0].outcome, GroupOutcome::Ok);
}

#[test]
fn a_cache_device_that_always_errs_hangs_nobody() {
    let mut group = group(Reduction::Off);
    (0..2000).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, 0)));
    group.set_member(Nanos::from_millis(1), CACHE, MemberState::Erroring { probability: 1.0 });
    (2000..6000).for_each(|id| group.submit(Nanos::from_millis(2), io(id, Operation::Write, 1)));
    let finished = settle(&mut group);
    assert_eq!(finished.len(), 6000);
    let errors = outcomes(&finished, GroupOutcome::DeviceError { device: CACHE });
    assert!(errors >= 4000, "{errors}");
}

#[test]
fn a_power_cut_takes_what_is_in_flight_and_leaves_the_buffer() {
    let mut group = group(Reduction::Off);
    // Enough to start the elevator, so that runs are under way at the cut.
    (0..1200).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, id as usize % 2)));
    let cut = Nanos::from_millis(7);
    let mut finished = Vec::new();
    group.advance(cut, &mut finished);
    let before = group.counters(cut).write_buffer.account;
    (2000..2100).for_each(|id| group.submit(cut, io(id, Operation::Read, 0)));
    group.power_cut(cut);
    group.submit(cut, io(3000, Operation::Read, 0));
    assert!(settle(&mut group).is_empty() && group.in_flight() == 0);
    let after = group.counters(cut).write_buffer.account;
    assert!(before.destaged_bytes > 0 && before.buffered_bytes > 0);
    assert_eq!(after, before, "what was acknowledged is still there");
    let now = Nanos::from_secs(60);
    group.power_on(now);
    group.submit(now, io(1, Operation::Read, 1));
    let finished = settle(&mut group);
    assert_eq!((finished.len(), finished[0].outcome), (1, GroupOutcome::Ok));
    let settled = group.counters(Nanos::from_secs(120)).write_buffer;
    assert!(settled.account.destaged_bytes > after.destaged_bytes, "the elevator goes on");
}

/// A sweep that paused after an error goes on after a power cut. Its pause outlived its alarm once: writes then
/// waited for room for ever.
#[test]
fn a_paused_sweep_survives_a_power_cut() {
    let mut group = group(Reduction::Off);
    group.set_member(Nanos::ZERO, FIRST_DISK, MemberState::Erroring { probability: 1.0 });
    (0..1500).for_each(|id| group.submit(Nanos::ZERO, io(id, Operation::Write, 0)));
    let mut now = Nanos::ZERO;
    while group.counters(now).write_buffer.elevator_failures == 0 {
        now += Nanos::from_micros(10);
    }
    group.power_cut(now);
    group.power_on(now);
    group.set_member(now, CACHE, MemberState::Healthy);
    (0..3000).for_each(|id| group.submit(now, io(id, Operation::Write, 0)));
    let finished = settle(&mut group);
    assert!(finished.len() >= 3000, "{}", finished.len());
    assert_eq!(group.in_flight(), 0);
}
