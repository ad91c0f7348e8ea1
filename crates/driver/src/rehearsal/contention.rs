//! Transactions that lose against others.

use std::time::Duration;

use underlay_database::ErrorClass;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{run_for, spec, total};

fn failing(class: ErrorClass) -> FakeDatabase {
    FakeDatabase::new(Behaviour {
        service: Duration::from_millis(10),
        every: Some((10, class)),
        ..Behaviour::default()
    })
}

#[test]
fn a_deadlock_is_retried_with_the_same_inputs() {
    let database = failing(ErrorClass::Deadlock);
    let (end, _) = run_for(&spec(8), &database, Duration::from_secs(3));
    let counts = total(&end.tick);
    database.truth(|truth| {
        assert_eq!(counts.errors.of(ErrorClass::Deadlock), truth.refused.len() as u64);
        assert_eq!(counts.completed() + counts.retries + counts.abandoned, truth.attempts);
        let completed: Vec<_> = truth.completed.values().flatten().collect();
        let repeated = truth.refused.iter().filter(|refused| completed.contains(refused)).count();
        assert!(repeated as u64 >= truth.refused.len() as u64 - counts.abandoned);
    });
    assert_eq!((counts.failed, counts.unknown), (0, 0));
    assert!(counts.retries > 100);
    // A retry is part of the response and not of the service time.
    assert_eq!(counts.service.quantile(1.0).unwrap() / 1_000_000, 10);
    assert!(counts.response.max().unwrap() > 10_900_000);
    assert!(counts.retry_wait.count() > 100 && counts.retry_wait.count() <= counts.retries);
    assert!(end.tick.events.is_empty(), "contention is no outage");
}

#[test]
fn what_cannot_succeed_is_given_up_and_does_not_spin() {
    let database = FakeDatabase::new(Behaviour {
        every: Some((1, ErrorClass::Other)),
        ..Behaviour::default()
    });
    let (end, _) = run_for(&spec(5), &database, Duration::from_secs(10));
    let counts = total(&end.tick);
    assert_eq!((counts.completed(), counts.retries), (0, 0));
    assert_eq!(counts.failed, database.truth(|truth| truth.attempts));
    // With waits that grow to a second, some 15 attempts per user, not thousands.
    assert!((5 * 10..5 * 25).contains(&counts.failed), "{}", counts.failed);
}
