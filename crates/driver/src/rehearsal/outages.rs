//! Lost sessions, frozen servers, commits of unknown outcome.

use std::time::Duration;

use underlay_core::Nanos;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{rehearse, run_for, spec, total};
use crate::activity::{ActivityLine, Span};
use crate::outage::OutageTracker;
use crate::spec::DriveSpec;
use crate::thread_tick::ThreadTick;

const AWAY: Span = Span { begin: Nanos::from_secs(1), end: Nanos::from_secs(3) };

fn going_away() -> FakeDatabase {
    FakeDatabase::new(Behaviour {
        service: Duration::from_millis(10),
        away: Some(AWAY),
        ..Behaviour::default()
    })
}

fn outages(tick: &ThreadTick) -> OutageTracker {
    let mut tracker = OutageTracker::default();
    tracker.add(tick.events.clone());
    tracker
}

#[test]
fn an_outage_is_timed_and_survived() {
    let spec = spec(20);
    let (end, _) = run_for(&spec, &going_away(), Duration::from_secs(6));
    let tracker = outages(&end.tick);
    assert_eq!(tracker.outages().len(), 1, "{:?}", tracker.outages());
    let outage = &tracker.outages()[0];
    assert!((1_000..1_020).contains(&(outage.first_error.0 / 1_000_000)), "{outage:?}");
    // Back-off is capped at one second, so recovery is seen within one second of the server's.
    let recovered = outage.recovered.unwrap().0 / 1_000_000;
    let restored = outage.restored.unwrap().0 / 1_000_000;
    assert!((3_000..4_050).contains(&recovered), "{outage:?}");
    assert!((recovered..4_050).contains(&restored), "{outage:?}");
    assert_eq!(outage.users_affected, 20);
    assert_eq!(end.tick.connects.lost, 20);
    assert_eq!(end.tick.connects.opened, 40);
    assert!(end.tick.connects.errors.total() >= 20, "each user was refused at least once");
    let mut line = ActivityLine::default();
    line.add(&end.tick.activity);
    let silence = line.longest_silence(AWAY).unwrap();
    assert!(silence.begin <= AWAY.begin && silence.end.0 / 1_000_000 == recovered, "{silence:?}");
}

/// Acknowledged orders exist; those that the database committed without an acknowledgement are among
/// the unknown; nothing is counted twice.
#[test]
fn the_ledger_knows_what_is_certain_and_what_is_not() {
    let database = going_away();
    let (end, _) = run_for(&spec(21), &database, Duration::from_secs(6));
    let counts = total(&end.tick);
    database.truth(|truth| {
        let mut entered = 0;
        for (&(warehouse, district), orders) in &truth.orders {
            entered += orders.len() as u64;
            let Some(known) = end.accounting.ledger.district(warehouse, district) else { continue };
            assert!(known.ids().all(|id| orders.contains(&id)), "an acknowledged order is missing");
        }
        assert!(truth.unanswered_orders > 0, "the rehearsal must have lost answers");
        assert_eq!(end.accounting.ledger.acknowledged_count() + truth.unanswered_orders, entered);
        assert!(end.accounting.ledger.unknown_count() >= truth.unanswered_orders);
        assert_eq!(end.accounting.ledger.duplicate_count(), 0);
        assert_eq!(end.accounting.ledger.acknowledged_count(), end.tick.types[0].committed);
        // Each transaction of unknown outcome committed at most once; no other was unanswered.
        assert!(counts.committed <= truth.committed);
        assert!(truth.committed <= counts.committed + counts.unknown);
    });
    assert!(counts.unknown > 0 && counts.failed == 0);
}

/// After an unknown commit a user goes on with its next transaction; after a certain rollback it
/// repeats the same.
#[test]
fn certain_losses_are_repeated_and_uncertain_ones_are_not() {
    let spec = spec(21);
    let undisturbed =
        FakeDatabase::new(Behaviour { service: Duration::from_millis(10), ..Behaviour::default() });
    run_for(&spec, &undisturbed, Duration::from_secs(6));
    let disturbed = going_away();
    run_for(&spec, &disturbed, Duration::from_secs(6));
    disturbed.truth(|disturbed| {
        undisturbed.truth(|undisturbed| {
            for (warehouse, got) in &disturbed.completed {
                let expected = &undisturbed.completed[warehouse];
                let mut missing = 0;
                let mut expected = expected.iter();
                for transaction in got {
                    missing += expected.by_ref().take_while(|next| *next != transaction).count();
                }
                assert!(missing <= 1, "user {warehouse} left out {missing} transactions");
                assert!(*warehouse % 2 == 0 || missing == 0, "user {warehouse} was committed");
            }
        });
    });
}

#[test]
fn a_session_that_never_answers_is_given_up() {
    let spec = DriveSpec { statement_timeout: Duration::from_secs(1), ..spec(4) };
    let database = FakeDatabase::new(Behaviour {
        service: Duration::from_millis(10),
        stuck: Some(100),
        ..Behaviour::default()
    });
    let (during, end) = rehearse(&spec, &database, async |stage| {
        stage.set_users(4);
        stage.wait_until(Nanos::from_millis(1_900)).await;
        let during = stage.tick().await;
        stage.wait_until(Nanos::from_secs(5)).await;
        (during, stage.stop().await.0)
    });
    assert_eq!((during.users.active, during.users.stalled), (4, 1));
    assert!(during.users.oldest_attempt > Nanos::from_secs(1));
    let counts = total(&end.tick);
    assert_eq!(counts.errors.total(), 1);
    assert_eq!(end.tick.connects.lost, 1);
    assert_eq!(counts.unknown + counts.retries, 1, "given up, or repeated if it cannot commit");
    let message = &end.tick.samples.iter().next().unwrap().message;
    assert_eq!(message, "the transaction was not answered within 2000 ms");
    // The other three went on meanwhile, and the fourth afterwards.
    assert_eq!(end.tick.users.active, 0);
    assert!(counts.completed() > 4 * 250);
}

/// A server that is away or frozen cannot hold up the end for longer than the grace.
#[test]
fn stopping_is_bounded_in_an_outage() {
    let forever = Span { begin: Nanos::from_secs(1), end: Nanos(u64::MAX / 2) };
    let spec = DriveSpec { stop_grace: Duration::from_secs(3), ..spec(10) };
    let away = FakeDatabase::new(Behaviour {
        service: Duration::from_millis(10),
        away: Some(forever),
        ..Behaviour::default()
    });
    let (end, at) = run_for(&spec, &away, Duration::from_secs(5));
    assert!(
        at < Nanos::from_millis(5_200),
        "users that wait to connect leave at once, not at {at}"
    );
    let restored = outages(&end.tick);
    assert_eq!((restored.outages().len(), restored.outages()[0].recovered), (1, None));

    let frozen = FakeDatabase::new(Behaviour {
        service: Duration::from_millis(10),
        frozen: Some(forever),
        ..Behaviour::default()
    });
    let (end, at) = run_for(&spec, &frozen, Duration::from_secs(5));
    assert!((8_000..8_250).contains(&(at.0 / 1_000_000)), "in-flight attempts ended at {at}");
    let counts = total(&end.tick);
    assert_eq!(counts.unknown + counts.abandoned, 10);
    assert_eq!(end.accounting.ledger.unknown_count(), end.tick.types[0].unknown);
}
