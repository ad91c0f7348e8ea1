//! Conservation laws: Little's law for every queue, the utilisation law for every resource, bytes
//! and pages in balance.

use crate::scenario::{device, postgresql, run, tpcc};
use underlay_core::{Bytes, Nanos};
use underlay_engine::EngineRun;
use underlay_engine::result::Place;
use underlay_engine::station::Station;

/// Little's law over a window: the integral of the number present is the sum of the stays, but for
/// those who were there at its begin or end, who are at most `users` at each and stay at most
/// `stay_max`.
fn check_little(name: &str, station: &Station, at_ends: u64, stay_max_ns: u64) {
    let difference = station.present_ns.abs_diff(station.stay_ns);
    let allowed = u128::from(2 * at_ends) * u128::from(stay_max_ns);
    assert!(difference <= allowed, "{name}: {station:?}, {difference} > {allowed}");
}

pub fn check(run: &EngineRun, users: u64) {
    let length = run.length();
    let database = &run.databases[0];
    // No stay is longer than the longest response.
    let longest = database.response().max().expect("transactions ended");
    for place in Place::ALL {
        check_little(place.as_str(), &database.places[place as usize], users, longest);
    }
    // Closed without pauses: every user is somewhere all the time.
    let present: u128 = database.places.iter().map(|place| place.present_ns).sum();
    assert_eq!(present, u128::from(users) * u128::from(length.0));
    // Response times are the stays.
    let responses = database.response().sum();
    let stays: u128 = database.places.iter().map(|place| place.stay_ns).sum();
    assert!(responses.abs_diff(stays) <= u128::from(users) * u128::from(longest));

    let io = &database.io;
    // Transactions wait for reads and for the log; at most one flush of the log is under way.
    check_little("read", &io.read, users, longest);
    check_little("log write", &io.log_write, 2, longest);
    check_little("log flush", &io.log_flush, 1, longest);
    let longest_of_writers = longest.max(20_000_000);
    check_little("page write", &io.page_write, 128, longest_of_writers);
    check_little("data flush", &io.data_flush, 1, longest_of_writers);
    check_little("doublewrite", &io.doublewrite, 1, longest_of_writers);
    check_little("analyze", &io.analyze, 10, longest_of_writers);
    check_little("read ahead", &io.read_ahead, 2 * users, longest_of_writers);
    assert!(database.log.flushes.abs_diff(io.log_flush.departures) <= 1);
    assert_eq!(database.log.writes, io.log_write.arrivals);
    assert_eq!(database.writers.write_requests, io.page_write.arrivals);

    // Every block of the log is written at least once, and a flush rewrites at most the block it
    // begins in. One flush is under way at each end of the window.
    let log = &database.log;
    let slack = 8192 * (log.flushes + 2) + log.written / log.flushes.max(1);
    assert!(log.written + slack >= log.inserted, "{log:?}");
    assert!(log.written <= log.inserted + 2 * slack, "{log:?}");

    // Pages read from storage are misses that the page cache did not have.
    let cache = &database.page_cache;
    let missed = database.pool.misses - cache.hits.min(database.pool.misses);
    assert!(
        io.read.arrivals.abs_diff(missed)
            <= users
                + database.writers.session_pages
                + database.writers.checkpoint_pages
                + database.writers.background_pages
    );

    let host = &run.hosts[0];
    let threads = u64::from(host.threads);
    let left = users + 200;
    // The work done is the work demanded, but for what was on the processors at the ends.
    let demanded = host.used.demanded_ns as f64;
    assert!((host.used.done_ns - demanded).abs() <= left as f64 * 20e6, "{:?}", host.used);
    assert!(host.busy(length) <= 1.0 + 1e-9 && host.utilisation(length) <= 1.0 + 1e-9);
    assert!(host.used.busy_thread_ns <= threads as f64 * length.0 as f64 * (1.0 + 1e-9));
    check_little("cpu", &host.used.bursts, left, longest.max(20_000_000));
    // Utilisation law: with one thread per core and speed 1, busy time is work.
    assert!((host.used.busy_thread_ns - host.used.done_ns).abs() < 1e-6 * host.used.done_ns + 1.0);
}

#[test]
fn laws_hold_with_everything_cached() {
    check(&run(&tpcc(4, 12, 2, Bytes::from_gib(1)), &device("p4500-2000"), 5), 12);
}

#[test]
fn laws_hold_with_misses_and_evictions() {
    let run = run(&tpcc(20, 32, 4, Bytes::from_mib(48)), &device("p4500-2000"), 10);
    assert!(run.databases[0].pool.dirty_evictions > 0, "{:?}", run.databases[0].pool);
    assert!(run.databases[0].writers.written_pages > 100);
    check(&run, 32);
}

#[test]
fn laws_hold_while_autovacuum_reads() {
    let mut scenario = tpcc(8, 16, 4, Bytes::from_mib(48));
    let settings = postgresql(&mut scenario);
    settings.autovacuum_naptime = Some(Nanos::from_secs(1));
    settings.autovacuum_analyze_scale_factor = 0.001;
    let run = run(&scenario, &device("p4500-2000"), 10);
    assert!(run.databases[0].io.analyze.departures > 10_000, "{:?}", run.databases[0].io.analyze);
    check(&run, 16);
}

#[test]
fn laws_hold_where_the_log_limits() {
    check(&run(&tpcc(4, 24, 8, Bytes::from_gib(1)), &device("extreme-pro-480"), 5), 24);
}

#[test]
fn laws_hold_on_innodb() {
    let settings = underlay_engine::InnodbSettings {
        buffer_pool_size: Bytes::from_mib(128),
        ..underlay_engine::InnodbSettings::default()
    };
    let scenario = crate::mariadb::mariadb(16, 32, settings);
    let run = run(&scenario, &device("p4500-2000"), 10);
    assert!(run.databases[0].pool.evictions > 1_000);
    check(&run, 32);
    assert_eq!(run.databases[0].writers.session_pages, 0);
}
