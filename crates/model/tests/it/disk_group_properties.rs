//! What holds for every sequence of requests and faults.

use crate::common::group_spec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use std::collections::{BTreeMap, BTreeSet};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{
    DiskGroup, DiskGroupSpec, GroupFinished, GroupIo, GroupOutcome, GroupRequestId, IoClass,
    MemberState, Operation, Policy, Reduction, ReductionCosts, SchedulerSpec,
};

const MEMBERS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Io { class: usize, operation: usize, disk: usize, page: u64, pages: u32 },
    Fault { member: usize, state: MemberState },
    Cut,
    DestageAll,
}

fn any_io() -> impl Strategy<Value = Step> {
    // Few pages, so that overwrites, hits and partial hits are frequent; some requests are large.
    let pages = prop_oneof![4 => 1..4u32, 1 => 16..300u32];
    (0..4usize, 0..8usize, 0..MEMBERS - 1, 0..400u64, pages).prop_map(
        |(class, operation, disk, page, pages)| Step::Io { class, operation, disk, page, pages },
    )
}

fn any_state() -> impl Strategy<Value = MemberState> {
    prop_oneof![
        Just(MemberState::Healthy),
        (1.0..20.0f64).prop_map(|factor| MemberState::Slow { factor }),
        Just(MemberState::Stuck),
        (0.0..=1.0f64).prop_map(|probability| MemberState::Erroring { probability }),
        Just(MemberState::Erroring { probability: 1.0 }),
        Just(MemberState::Lost),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let fault = (0..MEMBERS, any_state()).prop_map(|(member, state)| Step::Fault { member, state });
    prop_oneof![40 => any_io(), 2 => fault, 1 => Just(Step::Cut), 1 => Just(Step::DestageAll)]
}

fn any_spec() -> impl Strategy<Value = DiskGroupSpec> {
    let policy = prop_oneof![
        3 => Just(Policy::ADAPTIVE),
        1 => Just(Policy::None),
        1 => Just(Policy::StaticLimit { bytes_per_second: 20_000_000 }),
        1 => Just(Policy::LatencyWatermark {
            low: Nanos::from_micros(200),
            high: Nanos::from_millis(1),
            interval: Nanos::from_millis(5),
            step_bytes_per_second: 10_000_000,
            floor_bytes_per_second: 5_000_000,
        }),
    ];
    let capacity =
        prop_oneof![Just("5200eco-1920"), Just("dc1500m-960"), Just("hdd-7200"), Just("null")];
    let reduces = 0..3u8;
    (policy, capacity, reduces, 1..6u64).prop_map(|(policy, capacity, reduces, usable_mib)| {
        let mut spec = group_spec("dc500m-1920", &[capacity, capacity]);
        spec.scheduler = SchedulerSpec { policy, ..SchedulerSpec::DEFAULT };
        spec.write_buffer.usable = Bytes::from_mib(usable_mib);
        if reduces == 0 {
            spec.reduction = Reduction::DedupeCompress(ReductionCosts::DEFAULT);
        }
        spec
    })
}

fn request(id: u64, step: &Step) -> Option<GroupIo> {
    let Step::Io { class, operation, disk, page, pages } = step else { return None };
    let operation = match operation {
        0..3 => Operation::Read,
        3..6 => Operation::Write,
        6 => Operation::Discard,
        _ => Operation::Flush,
    };
    Some(GroupIo {
        id: GroupRequestId(id),
        class: IoClass::ALL[*class],
        operation,
        disk: *disk,
        offset_bytes: page * 4096,
        length_bytes: pages * 4096,
    })
}

/// What happened: the answers, when each was submitted, and which vanished in a power cut.
#[derive(Debug, PartialEq)]
struct Run {
    finished: Vec<GroupFinished>,
    submitted: BTreeMap<u64, Nanos>,
    vanished: BTreeSet<u64>,
    was_faulty: bool,
}

fn play(spec: &DiskGroupSpec, steps: &[(u64, Step)]) -> Run {
    let mut group = DiskGroup::new(spec.clone(), RootSeed(7));
    let mut run = Run {
        finished: Vec::new(),
        submitted: BTreeMap::new(),
        vanished: BTreeSet::new(),
        was_faulty: false,
    };
    let mut now = Nanos::ZERO;
    for (id, (gap_us, step)) in steps.iter().enumerate() {
        now += Nanos::from_micros(*gap_us);
        match step {
            Step::Io { .. } => {
                let io = request(id as u64, step).expect("a request");
                group.submit(now, io);
                run.submitted.insert(id as u64, now);
            }
            Step::Fault { member, state } => {
                run.was_faulty |= *state != MemberState::Healthy;
                group.set_member(now, *member, *state);
            }
            Step::DestageAll => group.destage_all(now),
            Step::Cut => {
                group.power_cut(now);
                group.advance(now, &mut run.finished);
                let answered: BTreeSet<_> = run.finished.iter().map(|done| done.id.0).collect();
                run.vanished =
                    run.submitted.keys().copied().filter(|id| !answered.contains(id)).collect();
                group.power_on(now);
            }
        }
        // Balances the books, or panics.
        group.counters(now);
    }
    let mut settle = |group: &mut DiskGroup, now: &mut Nanos| {
        for _ in 0..2_000_000 {
            let Some(wakeup) = group.next_wakeup() else { return };
            *now = (*now).max(wakeup);
            group.advance(wakeup, &mut run.finished);
        }
        panic!("the group does not come to rest");
    };
    settle(&mut group, &mut now);
    // What a stuck device keeps comes back when it is set again.
    for member in 0..MEMBERS {
        if group.counters(now).members[member].state == MemberState::Stuck {
            group.set_member(now, member, MemberState::Healthy);
            settle(&mut group, &mut now);
        }
    }
    assert_eq!(group.in_flight(), 0, "{:#?}", group.counters(now));
    group.counters(now);
    run
}

/// As many cases as asked for by the environment (`PROPTEST_CASES`), else a few seconds' worth.
fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

proptest! {
    #![proptest_config(cases(192))]

    /// Every request is answered exactly once, in order of time, with times that add up; only faults cause
    /// errors; nothing hangs whatever fails; bytes are conserved; equal seeds give equal runs.
    #[test]
    fn requests_are_conserved_whatever_fails(
        spec in any_spec(),
        steps in proptest::collection::vec((0..400u64, any_step()), 1..250),
    ) {
        let run = play(&spec, &steps);
        prop_assert!(run.finished.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let mut answered = BTreeSet::new();
        for done in &run.finished {
            prop_assert!(answered.insert(done.id.0), "{:?} twice", done.id);
            let submitted = run.submitted[&done.id.0];
            prop_assert_eq!(done.at, submitted + done.queue + done.service);
            prop_assert!(run.was_faulty || done.outcome == GroupOutcome::Ok, "{:?}", done);
        }
        let expected: BTreeSet<_> = run.submitted.keys().copied().collect();
        let together: BTreeSet<_> = answered.union(&run.vanished).copied().collect();
        prop_assert_eq!(together, expected);
        prop_assert!(answered.is_disjoint(&run.vanished));
        prop_assert_eq!(run, play(&spec, &steps));
    }

    /// While nothing is destaged, a read finds in the buffer exactly what was written and not discarded.
    #[test]
    fn reads_find_what_was_written(
        steps in proptest::collection::vec(any_io(), 1..120),
    ) {
        let mut spec = group_spec("dc1500m-960", &["dc500m-1920", "dc500m-1920"]);
        spec.write_buffer.elevator_start = 1.0;
        spec.write_buffer.elevator_unthrottle = 1.0;
        let mut group = DiskGroup::new(spec, RootSeed(8));
        let mut written = [BTreeSet::new(), BTreeSet::new()];
        let mut now = Nanos::ZERO;
        let mut finished = Vec::new();
        for (id, step) in steps.iter().enumerate() {
            let io = request(id as u64, step).expect("requests only");
            let pages = io.offset_bytes / 4096..(io.offset_bytes + u64::from(io.length_bytes)) / 4096;
            let before = group.counters(now).write_buffer;
            group.submit(now, io);
            while let Some(wakeup) = group.next_wakeup() {
                group.advance(wakeup, &mut finished);
                now = wakeup;
            }
            let after = group.counters(now).write_buffer;
            let here = &mut written[io.disk];
            match io.operation {
                Operation::Write => here.extend(pages),
                Operation::Discard => here.retain(|page| !pages.contains(page)),
                Operation::Flush => {}
                Operation::Read => {
                    let present = pages.clone().filter(|page| here.contains(page)).count();
                    let all = pages.count();
                    let grew = (
                        after.read_hits - before.read_hits,
                        after.read_partial_hits - before.read_partial_hits,
                        after.read_misses - before.read_misses,
                    );
                    let expected = match present {
                        0 => (0, 0, 1),
                        some if some == all => (1, 0, 0),
                        _ => (0, 1, 0),
                    };
                    prop_assert_eq!(grew, expected);
                }
            }
            let held = written.iter().map(BTreeSet::len).sum::<usize>() as u64 * 4096;
            prop_assert_eq!(after.account.buffered_bytes, held);
        }
        prop_assert!(finished.iter().all(|done| done.outcome == GroupOutcome::Ok));
    }
}
