//! Users that come and go: nothing is lost, repeated or drawn again.

use std::time::Duration;

use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use underlay_core::{Dilation, Nanos};
use underlay_database::ErrorClass;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{rehearse, run_for, spec, total};
use crate::arrivals::Arrivals;
use crate::spec::{DriveSpec, Pacing};
use crate::thread_tick::ThreadTick;
use crate::tick::TypeTick;

fn plain() -> FakeDatabase {
    FakeDatabase::new(Behaviour { service: Duration::from_millis(7), ..Behaviour::default() })
}

#[test]
fn connecting_does_not_stampede() {
    let database = plain();
    let (end, _) = run_for(&spec(200), &database, Duration::from_secs(2));
    assert_eq!(end.tick.connects.opened, 200);
    assert_eq!(database.truth(|truth| truth.connecting_max), 16);
}

#[test]
fn keying_and_think_times_pace_the_users() {
    let spec = DriveSpec { pacing: Pacing::Closed { key_think: 0.1 }, ..spec(100) };
    let (end, _) = run_for(&spec, &plain(), Duration::from_secs(100));
    let counts = total(&end.tick);
    // Keying and thinking take 2.1 s on average at a tenth: (10 x 30 + 10 x 15 + 12 + 7 + 7) / 23 / 10.
    let expected = 100.0 * 100.0 / 2.07;
    let share = counts.completed() as f64 / expected;
    assert!((0.9..1.1).contains(&share), "{} of {expected}", counts.completed());
    // The response counts from the end of the keying, not from the previous transaction.
    assert!(counts.response.max().unwrap() < 12_000_000);
}

#[test]
fn dilated_users_of_a_slower_database_are_what_users_in_real_time_are() {
    let pacing = Pacing::Closed { key_think: 0.01 };
    let (real, _) = run_for(&DriveSpec { pacing, ..spec(20) }, &plain(), Duration::from_secs(50));
    let dilation = Dilation::new(4).unwrap();
    let service = Duration::from_millis(28);
    let slower = FakeDatabase::new(Behaviour { service, ..Behaviour::default() });
    let dilated = DriveSpec { pacing, dilation, ..spec(20) };
    let (dilated, ended) = run_for(&dilated, &slower, Duration::from_secs(50));
    assert!((Nanos::from_secs(50)..Nanos::from_secs(51)).contains(&ended), "{ended}");
    let (real, dilated) = (total(&real.tick), total(&dilated.tick));
    let ratio = dilated.completed() as f64 / real.completed() as f64;
    assert!((0.98..1.02).contains(&ratio), "{} and {}", dilated.completed(), real.completed());
    let median = |tick: &TypeTick| tick.response.quantile(0.5).unwrap() as f64;
    let ratio = median(&dilated) / median(&real);
    // The rehearsal's timers round up to milliseconds of the host, which are shorter in design time.
    assert!((0.8..1.05).contains(&ratio), "{} and {}", median(&dilated), median(&real));
}

#[test]
fn a_user_draws_the_same_sequence_under_any_load() {
    let closed = plain();
    run_for(&spec(6), &closed, Duration::from_secs(4));
    let paced = plain();
    let slow = DriveSpec { pacing: Pacing::Closed { key_think: 0.001 }, ..spec(6) };
    rehearse(&slow, &paced, async |stage| {
        for round in 0..20u64 {
            stage.set_users((round % 7) as u32);
            stage.wait_until(Nanos::from_millis((round + 1) * 200)).await;
        }
        stage.stop().await
    });
    closed.truth(|closed| {
        paced.truth(|paced| {
            assert_eq!(paced.completed.len(), 6);
            for (home, some) in &paced.completed {
                assert!(some.len() > 10);
                assert_eq!(
                    closed.completed[home][..some.len()],
                    some[..],
                    "user at home in {home}"
                );
            }
        });
    });
}

#[test]
fn users_become_active_over_the_warehouses_and_keep_their_sessions() {
    let database = plain();
    let spec = spec(10);
    let end = rehearse(&spec, &database, async |stage| {
        for (users, until_ms) in [(3, 500), (0, 600), (6, 1_000), (2, 1_500)] {
            stage.set_users(users);
            stage.wait_until(Nanos::from_millis(until_ms)).await;
        }
        let tick = stage.tick().await;
        assert_eq!((tick.users.active, tick.users.ready, tick.users.sessions), (2, 2, 6));
        stage.stop().await.0
    });
    assert_eq!(end.tick.connects.lost, 0);
    database.truth(|truth| {
        assert_eq!(truth.connects, 6);
        assert_eq!(truth.completed.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    });
}

fn pacings() -> impl Strategy<Value = Pacing> {
    prop_oneof![
        Just(Pacing::Closed { key_think: 0.0 }),
        Just(Pacing::Closed { key_think: 0.01 }),
        Just(Pacing::open(300.0, Arrivals::Poisson)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever is asked of the users while attempts fail: the ticks add up to what the database did.
    #[test]
    fn nothing_is_lost_or_counted_twice(
        steps in proptest::collection::vec((0u32..9, 1u64..200), 1..12),
        pacing in pacings(),
        connections in proptest::option::of(1u32..8),
        every in 2u64..40,
        class in prop_oneof![
            Just(ErrorClass::Deadlock), Just(ErrorClass::Io), Just(ErrorClass::ConnectionLost),
            Just(ErrorClass::Other),
        ],
    ) {
        let spec = DriveSpec { pacing, connections, ..spec(8) };
        let database = FakeDatabase::new(Behaviour {
            service: Duration::from_millis(3),
            every: Some((every, class)),
            ..Behaviour::default()
        });
        let ticks = rehearse(&spec, &database, async |stage| {
            let mut ticks = Vec::new();
            let mut at = Nanos::ZERO;
            for (users, length_ms) in steps {
                stage.set_users(users);
                at += Nanos::from_millis(length_ms);
                stage.wait_until(at).await;
                ticks.push(stage.tick().await);
            }
            ticks.push(stage.stop().await.0.tick);
            ticks
        });
        let mut sum = ThreadTick::new(ticks[0].types.len());
        for tick in &ticks {
            sum.types.iter_mut().zip(&tick.types).for_each(|(sum, kind)| sum.merge(kind));
            sum.arrivals.add(&tick.arrivals);
            sum.connects.merge(&tick.connects);
        }
        let counts = total(&sum);
        let (attempts, committed, refused) = database
            .truth(|truth| (truth.attempts, truth.committed, truth.refused.len() as u64));
        prop_assert_eq!(counts.committed, committed);
        prop_assert_eq!(counts.errors.total(), refused);
        prop_assert_eq!(counts.completed() + refused, attempts);
        prop_assert_eq!(counts.response.count(), counts.completed());
        prop_assert_eq!(counts.service.count(), counts.completed());
        prop_assert_eq!(counts.unknown, 0);
        prop_assert!(counts.abandoned <= 8);
        // Every error is followed by a repetition, a loss, or the end.
        let followed = counts.retries + counts.failed;
        prop_assert!(followed <= refused && refused <= followed + counts.abandoned);
        if matches!(spec.pacing, Pacing::Open { .. }) {
            prop_assert_eq!(sum.arrivals.taken, counts.ended());
        }
    }
}
