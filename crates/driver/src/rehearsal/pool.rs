//! Fewer connections than users.

use std::time::Duration;

use super::fake_database::{Behaviour, FakeDatabase};
use super::{run_for, spec, total};
use crate::spec::DriveSpec;

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
