//! Fewer connections than users.

use std::time::Duration;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{rehearse, run_for, spec, total};
use crate::spec::{DriveSpec, Slowdown};
use crate::tick::TypeTick;

#[test]
fn users_of_a_pool_wait_for_connections_and_say_so() {
    let spec = DriveSpec { connections: Some(5), ..spec(20) };
    let database =
        FakeDatabase::new(Behaviour { service: Duration::from_millis(10), ..Behaviour::default() });
    let (end, _) = run_for(&spec, &database, Duration::from_secs(2));
    let counts = total(&end.tick);
    let truth = database.truth(|truth| (truth.running_max, truth.connects));
    assert_eq!(truth, (5, 5));
    // Twenty users share five connections fairly: each waits for three others, then works.
    assert_eq!(counts.service.quantile(0.5).unwrap() / 1_000_000, 10);
    assert!((39..=41).contains(&(counts.response.quantile(0.5).unwrap() / 1_000_000)));
    assert!((29..=31).contains(&(counts.pool_wait.quantile(0.5).unwrap() / 1_000_000)));
    database.truth(|truth| {
        assert_eq!(truth.completed.len(), 20);
        let counts: Vec<usize> = truth.completed.values().map(Vec::len).collect();
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 2, "{counts:?}");
    });
}

#[test]
fn a_slowdown_of_connections_keeps_them_longer_and_changes_no_service_time() {
    let spec = DriveSpec { connections: Some(5), ..spec(20) };
    let database =
        FakeDatabase::new(Behaviour { service: Duration::from_millis(10), ..Behaviour::default() });
    let (as_it_is, slowed, released) = rehearse(&spec, &database, async |stage| {
        stage.set_users(20);
        let mut ticks = Vec::new();
        let slower = Slowdown { connections: 2.0, ..Slowdown::NONE };
        for (second, slowdown) in [(1, slower), (2, Slowdown::NONE), (3, Slowdown::NONE)] {
            stage.wait_until(Duration::from_secs(second).into()).await;
            ticks.push(total(&stage.tick().await));
            stage.set_slowdown(slowdown);
        }
        stage.stop().await;
        <(_, _, _)>::from(<[_; 3]>::try_from(ticks).unwrap_or_else(|_| panic!("three ticks")))
    });
    let completed = |counts: &TypeTick| counts.response.count();
    assert!((490..=505).contains(&completed(&as_it_is)), "{}", completed(&as_it_is));
    assert!((245..=260).contains(&completed(&slowed)), "{}", completed(&slowed));
    assert!((485..=505).contains(&completed(&released)), "{}", completed(&released));
    assert_eq!(slowed.service.quantile(0.5).unwrap() / 1_000_000, 10);
}
