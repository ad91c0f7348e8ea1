//! The model against formulas, where there are some.

use crate::scenario::{device, run, tpcc};
use rand::Rng;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::HostSpec;
use underlay_engine::cpu::Cpu;
use underlay_engine::result::Place;

/// The probability of waiting in M/M/c with so many Erlangs (Erlang's C formula).
fn erlang_c(servers: u32, offered: f64) -> f64 {
    let blocked = (1..=servers)
        .fold(1.0, |blocked, server| offered * blocked / (f64::from(server) + offered * blocked));
    let utilisation = offered / f64::from(servers);
    blocked / (1.0 - utilisation + utilisation * blocked)
}

#[test]
fn processors_are_an_m_m_c_queue() {
    // Sharing serves as much per second as a queue does, so that as many are present as in M/M/c.
    for (cores, utilisation) in [(1, 0.5), (1, 0.8), (4, 0.7), (8, 0.85)] {
        let mut random = RootSeed(11).stream("mmc", u64::from(cores));
        let mut exponential = |mean: f64| {
            let unit = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
            Nanos((-unit.ln() * mean) as u64)
        };
        let service = 1e6;
        let gap = service / (f64::from(cores) * utilisation);
        let mut cpu = Cpu::new(&HostSpec::new("h", cores));
        let mut arrival = Nanos::ZERO;
        for _ in 0..400_000 {
            arrival += exponential(gap);
            while let Some(done) = cpu.next().filter(|done| *done <= arrival) {
                while cpu.pop(done).is_some() {}
            }
            cpu.submit(arrival, exponential(service), ());
        }
        let used = cpu.take_use(arrival);
        let offered = f64::from(cores) * utilisation;
        let expected = offered + erlang_c(cores, offered) * utilisation / (1.0 - utilisation);
        let present = used.bursts.mean_present(arrival);
        assert!((present / expected - 1.0).abs() < 0.04, "{cores}: {present}, {expected}");
        let busy = used.busy_thread_ns / (f64::from(cores) * arrival.0 as f64);
        assert!((busy / utilisation - 1.0).abs() < 0.01, "{busy}");
    }
}

#[test]
fn a_lone_commit_waits_for_one_write_and_one_flush() {
    let run = run(&tpcc(2, 1, 2, Bytes::from_gib(1)), &device("p4500-2000"), 10);
    let database = &run.databases[0];
    let log = &database.places[Place::Log as usize];
    // Each commit is a flush of its own, but for the log writer's.
    assert!(database.log.flushes >= database.log.commits);
    let expected = database.io.log_write.mean_stay().0 + database.io.log_flush.mean_stay().0;
    let stay = log.mean_stay().0;
    assert!(stay.abs_diff(expected) <= expected / 50, "{stay} {expected}");
    assert_eq!(database.places[Place::Lock as usize].arrivals, 0);
}

#[test]
fn many_commits_share_a_flush_and_wait_for_at_most_two() {
    let run = run(&tpcc(64, 64, 32, Bytes::from_gib(8)), &device("extreme-pro-480"), 5);
    let database = &run.databases[0];
    assert!(database.log.flushes * 2 < database.log.commits, "{:?}", database.log);
    let flush = database.io.log_write.mean_stay().0 + database.io.log_flush.mean_stay().0;
    let stay = database.places[Place::Log as usize].mean_stay().0;
    assert!(stay > flush && stay < 5 * flush / 2, "{stay} {flush}");
}
