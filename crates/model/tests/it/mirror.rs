//! Mirrored devices of a store: writes wait for all copies, reads take turns, a lost copy is left out and given what it
//! missed; and devices behind one link.

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::{BTreeMap, BTreeSet};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{
    DeviceCondition, Finished, HostLink, Operation, Request, RequestId, Store, StoreDevice,
    StoreOutcome, StoreVolume, builtin, mirror, profile::Medium,
};

const VOLUME: Bytes = Bytes::from_mib(16);
/// What a copy is given at once, as the module says.
const PIECE: u64 = 256 << 10;

fn store(profile: &str, copies: u32) -> Store {
    let member = builtin::find(profile).expect("built in");
    let profile = mirror(&member, copies).expect("a mirror");
    let device = StoreDevice { name: "log".to_string(), profile };
    Store::new(&[device], &[StoreVolume { device: 0, capacity: VOLUME }], RootSeed(7))
}

/// Everything that a store still does.
fn finish(store: &mut Store) -> Vec<Finished> {
    let mut finished = Vec::new();
    while let Some(wakeup) = store.next_wakeup() {
        store.advance(wakeup, &mut finished);
    }
    finished
}

/// How long a request to an idle store takes.
fn alone(store: &mut Store, at_ms: u64, request: Request) -> (u64, StoreOutcome) {
    let at = Nanos::from_millis(at_ms);
    store.submit(at, 0, &request, RequestId(at_ms));
    let mut finished = Vec::new();
    store.advance(at + Nanos::from_millis(500), &mut finished);
    let done = finished.first().expect("it is done by now");
    ((done.at - at).0, done.outcome)
}

#[test]
fn a_write_waits_for_the_slowest_copy_and_reads_take_turns() {
    let mut healthy = store("dc1500m-960", 2);
    let (write, _) = alone(&mut healthy, 0, Request::write(0, 4096));
    let (read, _) = alone(&mut healthy, 1000, Request::read(0, 4096));
    let mut slow = store("dc1500m-960", 2);
    slow.set_copy_condition(Nanos::ZERO, 0, 1, DeviceCondition::Slow { factor: 10.0 });
    let (slow_write, outcome) = alone(&mut slow, 0, Request::write(0, 4096));
    assert_eq!(outcome, StoreOutcome::Done);
    assert!(slow_write.abs_diff(10 * write) < write, "{write} ns, then {slow_write} ns");
    let reads: Vec<u64> =
        (1..=4).map(|n| alone(&mut slow, n * 1000, Request::read(0, 4096)).0).collect();
    let fast = reads.iter().filter(|ns| **ns < 2 * read).count();
    assert_eq!(fast, 2, "every second read goes to the fast copy: {reads:?}");
}

/// Two drives read twice as fast as one, and write as fast.
#[test]
fn reads_of_a_mirror_add_up_and_writes_do_not() {
    let last = |copies, write: bool| {
        let mut store = match copies {
            1 => {
                let profile = builtin::find("dc1500m-960").expect("built in");
                let device = StoreDevice { name: "log".to_string(), profile };
                let volume = StoreVolume { device: 0, capacity: VOLUME };
                Store::new(&[device], &[volume], RootSeed(7))
            }
            copies => store("dc1500m-960", copies),
        };
        for id in 0..4000u64 {
            let offset = id.wrapping_mul(0x9e37_79b9) % (VOLUME.0 / 4096) * 4096;
            let request = match write {
                true => Request::write(offset, 4096),
                false => Request::read(offset, 4096),
            };
            store.submit(Nanos::ZERO, 0, &request, RequestId(id));
        }
        finish(&mut store).last().expect("all are done").at.0 as f64
    };
    let reads = last(1, false) / last(2, false);
    assert!((reads - 2.0).abs() < 0.2, "{reads} times as fast");
    let writes = last(1, true) / last(2, true);
    assert!((writes - 1.0).abs() < 0.1, "{writes} times as fast");
}

#[test]
fn a_mirror_goes_on_without_a_copy_and_gives_it_back_what_it_missed() {
    let mut store = store("dc1500m-960", 2);
    store.set_copy_condition(Nanos::ZERO, 0, 0, DeviceCondition::Lost);
    assert_eq!(store.condition(0), DeviceCondition::Healthy, "the other one serves");
    assert!(!store.is_whole(0));
    for piece in [3, 9] {
        let (_, outcome) = alone(&mut store, piece * 1000, Request::write(piece * PIECE, 8192));
        assert_eq!(outcome, StoreOutcome::Done);
        let (_, outcome) = alone(&mut store, piece * 1000 + 500, Request::read(0, 4096));
        assert_eq!(outcome, StoreOutcome::Done);
    }
    let missed = |store: &Store| store.copies(0).iter().map(|it| it.missed.0).collect::<Vec<_>>();
    assert_eq!(missed(&store), [2 * PIECE, 0]);
    // Back, and incomplete: the good copy is lost before everything is copied.
    let back = Nanos::from_secs(10);
    store.set_copy_condition(back, 0, 0, DeviceCondition::Healthy);
    assert!(!store.is_whole(0));
    let mut finished = Vec::new();
    let wakeup = store.next_wakeup().expect("a piece is being read");
    assert!(wakeup > back);
    store.advance(wakeup, &mut finished);
    store.set_copy_condition(wakeup, 0, 1, DeviceCondition::Lost);
    assert_eq!(store.condition(0), DeviceCondition::Lost, "what is left is not complete");
    let (_, outcome) = alone(&mut store, 11_000, Request::read(0, 4096));
    assert_eq!(outcome, StoreOutcome::DeviceLost);
    store.set_copy_condition(Nanos::from_secs(12), 0, 1, DeviceCondition::Healthy);
    finish(&mut store);
    assert!(store.is_whole(0));
    assert_eq!(missed(&store), [0, 0]);
}

#[test]
fn a_copy_that_fails_a_write_is_left_out_and_one_that_fails_a_read_is_not() {
    let erroring = DeviceCondition::Erroring { probability: 1.0 };
    let mut member = builtin::find("dc1500m-960").expect("built in");
    if let Medium::Flash(flash) = &mut member.medium {
        // Every read takes as long.
        (flash.read_service_cv, flash.slow_probability) = (0.0, 0.0);
    }
    let profile = mirror(&member, 2).expect("a mirror");
    let device = StoreDevice { name: "log".to_string(), profile };
    let volume = StoreVolume { device: 0, capacity: VOLUME };
    let mut store = Store::new(&[device], &[volume], RootSeed(7));
    let (read, _) = alone(&mut store, 0, Request::read(0, 4096));
    store.set_copy_condition(Nanos::from_secs(1), 0, 1, erroring);
    // A page that was read just before takes less time.
    let reads = [2, 3].map(|s| alone(&mut store, s * 1000, Request::read(s * PIECE, 4096)));
    let done = StoreOutcome::Done;
    assert_eq!(reads, [(2 * read, done), (read, done)], "every second one is tried on both");
    assert_eq!(store.copies(0)[1].condition, erroring);
    let (_, outcome) = alone(&mut store, 4000, Request::write(0, 4096));
    assert_eq!(outcome, StoreOutcome::Done);
    assert_eq!(store.copies(0)[1].condition, DeviceCondition::Lost);
    assert_eq!(store.copies(0)[1].missed, Bytes(PIECE));
    // The last one is not left out, as there would be nothing left.
    store.set_copy_condition(Nanos::from_secs(5), 0, 0, erroring);
    let (_, outcome) = alone(&mut store, 6000, Request::write(0, 4096));
    assert_eq!(outcome, StoreOutcome::DeviceError);
    assert_eq!(store.copies(0)[0].condition, erroring);
}

#[test]
fn a_stuck_copy_holds_writes_until_it_is_lost_and_no_reads() {
    let mut store = store("dc1500m-960", 2);
    store.set_copy_condition(Nanos::ZERO, 0, 0, DeviceCondition::Stuck);
    let (_, outcome) = alone(&mut store, 1, Request::read(0, 4096));
    assert_eq!(outcome, StoreOutcome::Done);
    let at = Nanos::from_secs(1);
    store.submit(at, 0, &Request::write(0, 4096), RequestId(1));
    assert_eq!((store.in_flight(), store.next_wakeup()), (1, None));
    store.set_copy_condition(Nanos::from_secs(2), 0, 0, DeviceCondition::Lost);
    let finished = finish(&mut store);
    assert_eq!((finished.len(), finished[0].outcome), (1, StoreOutcome::Done));
    assert!(finished[0].at > Nanos::from_secs(2) && finished[0].queue >= Nanos::from_secs(1));
    assert_eq!(store.copies(0)[0].missed, Bytes(PIECE));
}

#[test]
fn reads_that_a_stuck_copy_holds_go_to_the_other_once_it_is_complete() {
    let mut store = store("dc1500m-960", 2);
    store.set_copy_condition(Nanos::ZERO, 0, 1, DeviceCondition::Lost);
    let (_, outcome) = alone(&mut store, 1, Request::write(0, 4096));
    assert_eq!(outcome, StoreOutcome::Done);
    let at = Nanos::from_secs(1);
    store.set_copy_condition(at, 0, 1, DeviceCondition::Healthy);
    // The only piece has been read, and is being written to the copy that missed it.
    let read = store.next_wakeup().expect("a piece is being read");
    store.advance(read, &mut Vec::new());
    store.set_copy_condition(read, 0, 0, DeviceCondition::Stuck);
    store.submit(read, 0, &Request::read(0, 4096), RequestId(7));
    let finished = finish(&mut store);
    assert_eq!((finished.len(), finished[0].outcome), (1, StoreOutcome::Done));
    assert!(finished[0].queue > Nanos::ZERO && store.in_flight() == 0);
}

/// What a step of a random history is.
#[derive(Clone, Debug)]
enum Step {
    Ask(Request),
    Change(usize, DeviceCondition),
}

fn any_step(copies: usize) -> impl Strategy<Value = (u64, Step)> {
    let request = (0..VOLUME.0 / 4096 - 32, 1..=32u32, 0..4u8).prop_map(|(block, pages, op)| {
        let (offset, length) = (block * 4096, pages * 4096);
        Step::Ask(match op {
            0 => Request::read(offset, length),
            1 => Request::write(offset, length),
            2 => Request::flush(),
            _ => Request::discard(offset, length),
        })
    });
    let condition = prop_oneof![
        Just(DeviceCondition::Healthy),
        Just(DeviceCondition::Healthy),
        Just(DeviceCondition::Slow { factor: 5.0 }),
        Just(DeviceCondition::Stuck),
        Just(DeviceCondition::Erroring { probability: 0.3 }),
        Just(DeviceCondition::Lost),
    ];
    let change = (0..copies, condition).prop_map(|(copy, to)| Step::Change(copy, to));
    (0..2_000_000u64, prop_oneof![4 => request, 1 => change])
}

proptest! {
    /// Whatever happens to the copies: every request ends once; what was acknowledged is on every copy that may be read;
    /// nothing fails while a healthy copy has everything; and in the end all copies have everything.
    #[test]
    fn acknowledged_writes_are_on_every_copy_that_is_read(
        copies in 2..=3usize,
        steps in proptest::collection::vec(any_step(3), 1..120),
    ) {
        let run = || {
            let mut store = store("dc1500m-960", copies as u32);
            let mut now = Nanos::ZERO;
            let mut finished = Vec::new();
            // Pieces written while a copy was lost, and the copy's losses since.
            let mut behind: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
            let mut asked = 0;
            for (gap, step) in &steps {
                now += Nanos(*gap);
                store.advance(now, &mut finished);
                let before = store.copies(0);
                match step {
                    Step::Ask(request) => {
                        store.submit(now, 0, request, RequestId(asked));
                        asked += 1;
                        let is_held = before.iter().any(|it| it.condition == DeviceCondition::Stuck);
                        let changes =
                            matches!(request.operation, Operation::Write | Operation::Discard);
                        let serves = before.iter().any(|it| {
                            it.condition == DeviceCondition::Healthy && it.missed == Bytes::ZERO
                        });
                        if changes && !is_held && serves {
                            let end = request.offset_bytes + u64::from(request.length_bytes);
                            let pieces = request.offset_bytes / PIECE..end.div_ceil(PIECE);
                            for (copy, state) in before.iter().enumerate() {
                                if state.condition == DeviceCondition::Lost {
                                    behind.entry(copy).or_default().extend(pieces.clone());
                                }
                            }
                        }
                    }
                    Step::Change(copy, condition) if *copy < copies => {
                        store.set_copy_condition(now, 0, *copy, *condition);
                    }
                    Step::Change(..) => {}
                }
                // A lost copy misses at least what was written without it.
                for (copy, state) in store.copies(0).iter().enumerate() {
                    let pieces = behind.get(&copy).map_or(0, BTreeSet::len) as u64;
                    if state.condition == DeviceCondition::Lost {
                        assert!(state.missed.0 >= pieces * PIECE, "copy {copy} forgot something");
                    } else {
                        // It is being given what it missed.
                        behind.remove(&copy);
                    }
                }
            }
            for copy in 0..copies {
                store.set_copy_condition(now, 0, copy, DeviceCondition::Healthy);
            }
            finished.extend(finish(&mut store));
            (store, finished, asked)
        };
        let (store, finished, asked) = run();
        let mut ids: Vec<u64> = finished.iter().map(|done| done.request.0).collect();
        ids.sort_unstable();
        prop_assert!(ids.iter().copied().eq(0..asked), "every request ends once");
        prop_assert!(store.is_whole(0), "all copies have everything in the end");
        for done in &finished {
            prop_assert!(done.at >= done.arrived && done.queue <= done.at - done.arrived);
        }
        prop_assert_eq!(finished, run().1, "equal seeds give equal runs");
    }

    /// As long as one copy is healthy all the time, the others may do what they like.
    #[test]
    fn nothing_fails_while_one_copy_is_healthy(
        steps in proptest::collection::vec(any_step(1), 1..120),
    ) {
        let mut store = store("dc500m-1920", 2);
        let mut now = Nanos::ZERO;
        let mut finished = Vec::new();
        for (number, (gap, step)) in steps.iter().enumerate() {
            now += Nanos(*gap);
            store.advance(now, &mut finished);
            match step {
                Step::Ask(request) => store.submit(now, 0, request, RequestId(number as u64)),
                Step::Change(copy, condition) => {
                    store.set_copy_condition(now, 0, *copy, *condition);
                }
            }
        }
        store.set_copy_condition(now, 0, 0, DeviceCondition::Lost);
        finished.extend(finish(&mut store));
        prop_assert!(finished.iter().all(|done| done.outcome == StoreOutcome::Done));
    }
}

#[test]
fn a_link_limits_all_devices_together() {
    let profile = builtin::find("dc1500m-960").expect("built in");
    let device = |name: &str| StoreDevice { name: name.to_string(), profile: profile.clone() };
    let volume = |device| StoreVolume { device, capacity: VOLUME };
    let rate = |link: Option<HostLink>| {
        let mut store =
            Store::new(&[device("a"), device("b")], &[volume(0), volume(1)], RootSeed(1));
        store.set_link(link);
        for id in 0..2000u64 {
            let offset = id * 65536 % VOLUME.0;
            let request = Request::read(offset, 65536);
            store.submit(Nanos::ZERO, (id % 2) as usize, &request, RequestId(id));
        }
        let last = finish(&mut store).last().expect("all are done").at.0 as f64;
        (2000.0 * 65536.0 / last * 1e3, store.link_use())
    };
    let link = |rate| HostLink { bytes_per_second: rate, latency: Nanos::ZERO, divisor: 1 };
    let (direct, used) = rate(None);
    assert!(direct > 5_000.0 && used.is_none(), "two drives of 3.1 GB/s give {direct} MB/s");
    for megabytes in [1_600, 3_200] {
        let (through, used) = rate(Some(link(megabytes * 1_000_000)));
        let share = through / megabytes as f64;
        assert!((0.97..=1.001).contains(&share), "{through} MB/s through {megabytes}");
        let busy = used.expect("a link").read_busy.0 as f64;
        let expected = 2000.0 * 65536.0 / (megabytes as f64 * 1e6) * 1e9;
        assert!((busy / expected - 1.0).abs() < 0.001, "{busy} of {expected}");
    }
}
