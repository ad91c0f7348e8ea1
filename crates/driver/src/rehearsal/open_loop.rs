//! Latency from the intended start, and load that could not be delivered.

use std::time::Duration;

use underlay_core::Nanos;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{rehearse, run_for, spec, total};
use crate::activity::Span;
use crate::arrivals::Arrivals;
use crate::spec::{DriveSpec, Pacing};
use crate::thread_tick::ThreadTick;

const TWO_SECONDS: Duration = Duration::from_secs(2);

fn open(users: u32, rate_per_second: f64) -> DriveSpec {
    DriveSpec { pacing: Pacing::open(rate_per_second, Arrivals::Uniform), ..spec(users) }
}

/// One millisecond per transaction, and nothing at all for 400 ms.
fn freezing() -> FakeDatabase {
    FakeDatabase::new(Behaviour {
        service: Duration::from_millis(1),
        frozen: Some(Span { begin: Nanos::from_secs(1), end: Nanos::from_millis(1_400) }),
        ..Behaviour::default()
    })
}

/// Of a second's 500 transactions, 200 were due while the database was frozen: the open loop says
/// so, although only those in progress were slow once begun.
#[test]
fn a_freeze_shows_in_the_response_of_all_that_were_due() {
    let (end, _) = run_for(&open(10, 500.0), &freezing(), TWO_SECONDS);
    let counts = total(&end.tick);
    let response = |q| counts.response.quantile(q).unwrap() / 1_000_000;
    let service = |q| counts.service.quantile(q).unwrap() / 1_000_000;
    assert!((370..=405).contains(&response(0.99)), "p99 {} ms", response(0.99));
    assert!((150..=250).contains(&response(0.90)), "p90 {} ms", response(0.90));
    assert!(response(0.5) <= 4, "p50 {} ms", response(0.5));
    assert!(service(0.98) <= 3, "service p98 {} ms", service(0.98));
    // The ten in progress, and one that was late by each level.
    assert_eq!(counts.service.count_above(100_000_000), 10);
    assert!((140..=160).contains(&counts.response.count_above(100_000_000)));
    assert_eq!(end.tick.arrivals.overflowed, 0);
}

/// The same freeze, closed loop: one long sample, as the only user was waiting for it.
#[test]
fn a_closed_loop_shows_one_long_sample() {
    let (end, _) = run_for(&spec(1), &freezing(), TWO_SECONDS);
    let counts = total(&end.tick);
    assert_eq!(counts.response.count_above(100_000_000), 1);
    assert!(counts.response.quantile(0.99).unwrap() < 5_000_000);
    assert!(counts.response.max().unwrap() >= 395_000_000);
}

#[test]
fn arrivals_beyond_the_queue_are_counted() {
    let mut spec = open(4, 1_000.0);
    if let Pacing::Open { queue_limit, .. } = &mut spec.pacing {
        *queue_limit = 100;
    }
    let (end, _) = run_for(&spec, &freezing(), TWO_SECONDS);
    let arrivals = end.tick.arrivals;
    // 400 fell due in the freeze; 4 were in progress and 100 could wait.
    assert!((290..=310).contains(&arrivals.overflowed), "{arrivals:?}");
    assert_conserved(&end.tick);
}

#[test]
fn every_arrival_is_taken_dropped_or_queued() {
    let mut spec = open(2, 5_000.0);
    spec.pacing = Pacing::Open {
        rate_per_second: 5_000.0,
        arrivals: Arrivals::Poisson,
        ramp: Nanos::from_secs(1),
        queue_limit: 50,
    };
    let database =
        FakeDatabase::new(Behaviour { service: Duration::from_millis(1), ..Behaviour::default() });
    let (end, _) = run_for(&spec, &database, TWO_SECONDS);
    assert!((7_200..=7_800).contains(&end.tick.arrivals.due), "{:?}", end.tick.arrivals);
    assert_conserved(&end.tick);
}

/// Arrivals pause while no user is active and continue afterwards; a queue that is not served
/// stays.
#[test]
fn the_schedule_rests_without_users() {
    let spec = open(10, 100.0);
    let database =
        FakeDatabase::new(Behaviour { service: Duration::from_millis(1), ..Behaviour::default() });
    let (during, end) = rehearse(&spec, &database, async |stage| {
        stage.wait_until(Nanos::from_secs(1)).await;
        let mut during = stage.tick().await;
        assert_eq!(during.arrivals.due, 0, "nobody is active yet");
        stage.set_users(10);
        stage.wait_until(Nanos::from_secs(2)).await;
        stage.set_users(0);
        stage.wait_until(Nanos::from_secs(5)).await;
        during = stage.tick().await;
        stage.set_users(5);
        stage.wait_until(Nanos::from_secs(6)).await;
        (during, stage.stop().await.0)
    });
    assert!((99..=101).contains(&during.arrivals.due), "{:?}", during.arrivals);
    assert!((99..=101).contains(&end.tick.arrivals.due), "{:?}", end.tick.arrivals);
    assert!(total(&end.tick).response.max().unwrap() < 20_000_000);
}

fn assert_conserved(tick: &ThreadTick) {
    let arrivals = tick.arrivals;
    assert_eq!(arrivals.taken, total(tick).ended());
    assert_eq!(
        arrivals.due,
        arrivals.taken + arrivals.overflowed + arrivals.queued,
        "{arrivals:?}"
    );
}
