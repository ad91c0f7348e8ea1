//! The write buffer: what is admitted, merged, destaged and read back, and how congestion holds writers back.

use crate::common::{Load, Outcome, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{
    DiskGroup, DiskGroupSpec, GroupFinished, GroupIo, GroupOutcome, GroupRequestId, IoClass,
    MemberState, Operation, Reduction, ReductionCosts,
};

const SEED: RootSeed = RootSeed(68);

fn spec(usable: Bytes) -> DiskGroupSpec {
    let mut spec = group_spec("dc1500m-960", &["5200eco-1920", "5200eco-1920"]);
    spec.write_buffer.usable = usable;
    spec
}

fn io(id: u64, operation: Operation, disk: usize, offset_bytes: u64, length_bytes: u32) -> GroupIo {
    let id = GroupRequestId(id);
    GroupIo { id, class: IoClass::Vm, operation, disk, offset_bytes, length_bytes }
}

/// Lets everything finish; returns the answers.
fn settle(group: &mut DiskGroup) -> Vec<GroupFinished> {
    let mut finished = Vec::new();
    while let Some(wakeup) = group.next_wakeup() {
        group.advance(wakeup, &mut finished);
    }
    finished
}

fn end_of(finished: &[GroupFinished]) -> Nanos {
    finished.iter().map(|done| done.at).max().unwrap_or(Nanos::ZERO)
}

#[test]
fn a_write_is_finished_when_the_cache_device_has_it() {
    let mut group = DiskGroup::new(spec(Bytes::from_gib(1)), SEED);
    group.submit(Nanos::ZERO, io(1, Operation::Write, 1, 8192, 8192));
    let done = settle(&mut group);
    assert_eq!((done.len(), done[0].outcome), (1, GroupOutcome::Ok));
    // The buffered write of the NVMe cache device, not of the SATA device.
    assert!(done[0].at < Nanos::from_micros(35), "{}", done[0].at);
    let counters = group.counters(done[0].at);
    assert_eq!(counters.write_buffer.account.buffered_bytes, 8192);
    assert_eq!((counters.members[0].writes, counters.members[2].writes), (1, 0));
}

#[test]
fn reads_of_buffered_ranges_hit_the_buffer_and_others_the_device() {
    let mut group = DiskGroup::new(spec(Bytes::from_gib(1)), SEED);
    group.submit(Nanos::ZERO, io(0, Operation::Write, 0, 1 << 20, 64 << 10));
    let mut now = end_of(&settle(&mut group));
    for (id, offset, length, cache, disk) in [
        (1, 1 << 20, 65_536, 1, 0),        // All of it.
        (2, (1 << 20) + 4096, 100, 1, 0),  // A part of a block.
        (3, (1 << 20) - 8192, 8192, 0, 1), // Just before.
        (4, (1 << 20) - 8192, 16_384, 1, 1),
        (5, 1 << 30, 4096, 0, 1),
    ] {
        let before = group.counters(now);
        group.submit(now, io(id, Operation::Read, 0, offset, length));
        now = end_of(&settle(&mut group));
        let after = group.counters(now);
        let reads = |member: usize| after.members[member].reads - before.members[member].reads;
        assert_eq!((reads(0), reads(1), reads(2)), (cache, disk, 0), "request {id}");
    }
}

#[test]
fn overwrites_merge_and_neighbours_leave_together() {
    let mut group = DiskGroup::new(spec(Bytes::from_mib(64)), SEED);
    let mut now = Nanos::ZERO;
    let mut finished = Vec::new();
    // The same 16 MiB, four times, in pieces of 8 KiB: below the start of the elevator (30 % of 64 MiB).
    for id in 0..4 * 2048u64 {
        now += Nanos::from_micros(50);
        group.advance(now, &mut finished);
        group.submit(now, io(id, Operation::Write, 0, id % 2048 * 8192, 8192));
    }
    settle(&mut group);
    let counters = group.counters(now + Nanos::from_secs(1));
    let account = counters.write_buffer.account;
    assert_eq!(account.admitted_bytes, 64 << 20);
    assert_eq!(account.overwritten_bytes, 48 << 20);
    assert_eq!((account.buffered_bytes, account.destaged_bytes), (16 << 20, 0));
    // Another 16 MiB start it; it stops at 25 %, having destaged runs of 64 KiB.
    now += Nanos::from_secs(1);
    for id in 0..2048u64 {
        now += Nanos::from_micros(50);
        group.submit(now, io(id, Operation::Write, 0, (1 << 30) + id * 8192, 8192));
    }
    now = end_of(&settle(&mut group)).max(now) + Nanos::from_secs(1);
    let counters = group.counters(now);
    let buffer = counters.write_buffer;
    assert!(!buffer.elevator_is_running);
    // Where the elevator stopped, or what came after that and did not start it again.
    let buffered = buffer.account.buffered_bytes;
    assert!((15 << 20..=19 << 20).contains(&buffered), "{:?}", buffer.account);
    let run = buffer.account.destaged_bytes / buffer.elevator_runs;
    assert!(run > 48 << 10, "mean run {run}");
}

#[test]
fn what_was_written_long_ago_is_read_from_the_capacity_device() {
    let mut group = DiskGroup::new(spec(Bytes::from_mib(64)), SEED);
    for id in 0..512u64 {
        group.submit(Nanos::ZERO, io(id, Operation::Write, 0, id * 65_536, 65_536));
    }
    // The elevator runs: some blocks are on their way when the others are put away.
    let mut finished = Vec::new();
    let mut now = Nanos::ZERO;
    while !group.counters(now).write_buffer.elevator_is_running {
        now = group.next_wakeup().expect("writes are under way");
        group.advance(now, &mut finished);
    }
    group.destage_all(now);
    now = end_of(&settle(&mut group)).max(now) + Nanos::from_secs(1);
    group.destage_all(now);
    let before = group.counters(now);
    let buffer = before.write_buffer;
    assert!(!buffer.elevator_is_running);
    assert_eq!(buffer.account.buffered_bytes, 0);
    assert_eq!(buffer.account.destaged_bytes, 32 << 20);
    group.submit(now, io(600, Operation::Read, 0, 0, 65_536));
    now = end_of(&settle(&mut group));
    let after = group.counters(now);
    let reads = |member: usize| after.members[member].reads - before.members[member].reads;
    assert_eq!((reads(0), reads(1)), (0, 1));
}

/// What a lost device would have had is gone, and not on another.
#[test]
fn nothing_is_put_away_on_a_lost_device() {
    let mut group = DiskGroup::new(spec(Bytes::from_gib(1)), SEED);
    for disk in 0..2 {
        group.submit(Nanos::ZERO, io(disk as u64, Operation::Write, disk, 0, 65_536));
    }
    let now = end_of(&settle(&mut group));
    group.set_member(now, 2, MemberState::Lost);
    group.destage_all(now);
    let account = group.counters(now).write_buffer.account;
    assert_eq!((account.destaged_bytes, account.buffered_bytes), (65_536, 0));
}

#[test]
fn discards_spare_the_capacity_device_and_flushes_cost_nothing() {
    let mut group = DiskGroup::new(spec(Bytes::from_gib(1)), SEED);
    group.submit(Nanos::ZERO, io(0, Operation::Write, 0, 0, 64 << 10));
    let now = end_of(&settle(&mut group));
    group.submit(now, io(1, Operation::Discard, 0, 100, 32 << 10));
    group.submit(now, io(2, Operation::Flush, 0, 0, 0));
    let done = settle(&mut group);
    let flush = done.iter().find(|done| done.id == GroupRequestId(2)).expect("answered");
    assert_eq!((flush.at, flush.queue, flush.service), (now, Nanos::ZERO, Nanos::ZERO));
    let account = group.counters(end_of(&done)).write_buffer.account;
    // Of the blocks that the discard touches, the first and the last only in part.
    assert_eq!(account.discarded_bytes, 7 * 4096);
    assert_eq!(account.buffered_bytes, 9 * 4096);
}

/// Writers that never stop: the rate falls to the pace of the elevator, evenly, and stays there.
fn filling(depth: u32, usable: Bytes, end_ms: u64) -> (DiskGroup, Outcome) {
    let mut group = DiskGroup::new(spec(usable), SEED);
    let writes = Stream::random(IoClass::Vm, 0.0, 8192, Load::Closed(depth));
    let plan = Plan {
        warm_up: Nanos::from_millis(end_ms * 3 / 4),
        end: Nanos::from_millis(end_ms),
        interval: Nanos::from_millis(25),
    };
    let outcome = run(&mut group, &[writes], plan, SEED);
    (group, outcome)
}

#[test]
fn throughput_falls_to_the_destage_rate_without_a_cliff() {
    for depth in [8, 32, 128] {
        let (mut group, outcome) = filling(depth, Bytes::from_gib(2), 18_000);
        let steady = outcome.bytes_per_second(0);
        let counters = group.counters(Nanos::from_secs(18));
        let drain = counters.write_buffer.drain_bytes_per_second.expect("the elevator runs");
        assert!((steady / drain - 1.0).abs() < 0.05, "depth {depth}: {steady} against {drain}");
        // Two devices at 22,000 random writes of 4 KiB per second each; runs of 8 KiB are a little faster.
        assert!((180e6..260e6).contains(&steady), "depth {depth}: {steady}");
        let line: Vec<f64> =
            outcome.streams[0].time_line.iter().map(|bytes| *bytes as f64 * 40.0).collect();
        let line = &line[..720];
        assert!(
            line[20] > 1.5 * steady,
            "depth {depth}: fast at first, {:.0} MB/s",
            line[20] / 1e6
        );
        // Never far below the elevator's pace on the way, and no sudden step.
        // The first windows show the cache device's own memory filling.
        for (at, pair) in line.windows(2).enumerate().skip(4) {
            assert!(pair[1] > 0.70 * steady, "depth {depth}, {at}: {:.0} MB/s", pair[1] / 1e6);
            assert!(pair[1] > 0.70 * pair[0], "depth {depth}, {at}: {pair:?}");
        }
        for (at, span) in line.chunks(8).enumerate() {
            let mean = span.iter().sum::<f64>() / span.len() as f64;
            assert!(mean > 0.85 * steady, "depth {depth}, span {at}: {:.0} MB/s", mean / 1e6);
        }
        let (fill, congestion) = *outcome.fill.last().expect("sampled");
        assert!((0.6..0.96).contains(&fill), "depth {depth}: {fill}");
        // The value tells the number of writers: 32 x log2(N + 1).
        let expected = 32.0 * (f64::from(depth) + 1.0).log2();
        let off = f64::from(congestion) - expected;
        assert!(off.abs() < 32.0, "depth {depth}: congestion {congestion}, expected {expected:.0}");
    }
}

/// More writers than congestion can hold back wait for room, at the same throughput.
#[test]
fn a_crowd_waits_for_room_at_the_same_rate() {
    let (_, outcome) = filling(2_000, Bytes::from_mib(256), 6_000);
    let steady = outcome.bytes_per_second(0);
    assert!((180e6..260e6).contains(&steady), "{steady}");
    assert!(outcome.fill.iter().all(|(fill, _)| *fill <= 1.0), "{:?}", outcome.fill);
}

#[test]
fn below_the_elevators_pace_nobody_waits() {
    let mut group = DiskGroup::new(spec(Bytes::from_mib(256)), SEED);
    let writes = Stream::random(IoClass::Vm, 0.0, 8192, Load::Open(15_000.0));
    let outcome = run(&mut group, &[writes], Plan::millis(2_000, 6_000), SEED);
    assert!(outcome.fill.iter().all(|(_, congestion)| *congestion == 0), "{:?}", outcome.fill);
    assert!(outcome.quantile_us(0, 0.99) < 60.0, "{}", outcome.quantile_us(0, 0.99));
}

#[test]
fn reduction_costs_metadata_and_saves_bytes() {
    let run_with = |reduction: Reduction| {
        let mut spec = spec(Bytes::from_mib(64));
        spec.reduction = reduction;
        let mut group = DiskGroup::new(spec, SEED);
        group.take_destaged();
        let streams = [
            Stream::random(IoClass::Vm, 0.0, 8192, Load::Open(8_000.0)),
            Stream::random(IoClass::Vm, 1.0, 8192, Load::Open(4_000.0)).within((1 << 40, 64 << 30)),
        ];
        let outcome = run(&mut group, &streams, Plan::millis(500, 2_500), SEED);
        (group.counters(Nanos::from_millis(2_500)), outcome, group.take_destaged())
    };
    let costs = ReductionCosts { address_map_hit: 0.5, ..ReductionCosts::DEFAULT };
    let (plain, plain_outcome, destaged) = run_with(Reduction::Off);
    let (reduced, reduced_outcome, _) = run_with(Reduction::DedupeCompress(costs));
    assert_eq!(plain.reduction.blocks, 0);
    let blocks = reduced.reduction.blocks as f64;
    let near = |found: u64, expected: f64| (found as f64 / expected - 1.0).abs() < 0.05;
    assert!(near(reduced.reduction.hash_map_reads, 0.1 * blocks), "{:?}", reduced.reduction);
    assert!(near(reduced.reduction.metadata_writes, 0.25 * blocks), "{:?}", reduced.reduction);
    assert!(near(reduced.reduction.stored_bytes, 0.5 * 4096.0 * blocks), "{:?}", reduced.reduction);
    assert!(reduced_outcome.quantile_us(1, 0.5) > 1.5 * plain_outcome.quantile_us(1, 0.5));
    let told: u64 = destaged.iter().map(|(_, _, length)| u64::from(*length)).sum();
    assert_eq!(told, plain.write_buffer.account.destaged_bytes);
}

#[test]
fn what_the_data_plane_observes_changes_the_cost() {
    let stored = |ratio: f64| {
        let mut spec = spec(Bytes::from_mib(64));
        spec.reduction = Reduction::DedupeCompress(ReductionCosts::DEFAULT);
        let mut group = DiskGroup::new(spec, SEED);
        group.set_reduction_observed(ratio, 0.9);
        let writes = Stream::random(IoClass::Vm, 0.0, 8192, Load::Open(10_000.0));
        run(&mut group, &[writes], Plan::millis(100, 1_500), SEED);
        let reduction = group.counters(Nanos::from_millis(1_500)).reduction;
        reduction.stored_bytes as f64 / (reduction.blocks * 4096) as f64
    };
    assert!((stored(0.9) - 0.9).abs() < 0.05);
    assert!((stored(0.25) - 0.25).abs() < 0.05);
}
