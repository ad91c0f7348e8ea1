//! What is InnoDB's own: the age of the checkpoint, the doublewrite buffer, locks that end before
//! the flush.

use crate::scenario::{device, run, tpcc};
use underlay_core::Bytes;
use underlay_engine::result::Place;
use underlay_engine::{DemandProfile, EngineRun, EngineSpec, InnodbSettings, Scenario};

/// TPC-C on MariaDB.
pub fn mariadb(warehouses: u32, users: u32, settings: InnodbSettings) -> Scenario {
    let mut scenario = tpcc(warehouses, users, 8, Bytes::from_mib(64));
    scenario.databases[0].engine = EngineSpec::Mariadb(settings);
    scenario.databases[0].demands = DemandProfile::tpcc_mariadb();
    scenario
}

fn cached() -> InnodbSettings {
    InnodbSettings {
        buffer_pool_size: Bytes::from_gib(2),
        log_file_size: Bytes::from_mib(500),
        ..InnodbSettings::default()
    }
}

fn place(run: &EngineRun, place: Place) -> f64 {
    run.databases[0].places[place as usize].mean_present(run.length())
}

#[test]
fn every_page_goes_through_the_doublewrite_buffer() {
    let small = InnodbSettings { buffer_pool_size: Bytes::from_mib(128), ..cached() };
    let with = run(&mariadb(16, 16, small.clone()), &device("p4500-2000"), 5);
    let database = &with.databases[0];
    assert!(database.io.doublewrite.departures > 10, "{:?}", database.io.doublewrite);
    // A batch of 128 pages is four requests of 512 KiB, and a flush before and after its pages are written.
    let batches = database.io.data_flush.departures.div_ceil(2);
    assert!(database.writers.written_pages <= 128 * (batches + 2));
    let requests = database.io.doublewrite.departures;
    assert!((batches..=4 * (batches + 1)).contains(&requests), "{requests} of {batches}");
    assert!(database.writers.doublewrite_pages <= 32 * (requests + 4), "{requests}");
    // But for what is on its way at the ends.
    let writers = &database.writers;
    assert!(writers.written_pages.abs_diff(writers.doublewrite_pages) <= 2 * 128, "{writers:?}");
    assert_eq!(database.log.images, 0);
    let without = InnodbSettings { doublewrite: false, ..small };
    let without = run(&mariadb(16, 16, without), &device("p4500-2000"), 5);
    assert_eq!(without.databases[0].io.doublewrite.arrivals, 0);
    assert_eq!(without.databases[0].writers.doublewrite_pages, 0);
    assert!(without.databases[0].writers.written_pages > 100);
}

#[test]
fn a_small_log_stops_sessions_until_pages_are_written() {
    let with_log = |log_file_size| InnodbSettings { log_file_size, ..cached() };
    let of = |log: Bytes| {
        let mut scenario = mariadb(16, 32, with_log(log));
        scenario.databases[0].log.length = Bytes::from_gib(1);
        run(&scenario, &device("extreme-pro-480"), 5)
    };
    let (small, large) = (of(Bytes::from_mib(8)), of(Bytes::from_mib(1_000)));
    assert!(place(&small, Place::Throttle) > 1.0, "{}", place(&small, Place::Throttle));
    assert_eq!(place(&large, Place::Throttle), 0.0);
    assert!(small.headline(0) < large.headline(0));
    let pages = |run: &EngineRun| {
        run.databases[0].writers.written_pages as f64 / run.databases[0].committed() as f64
    };
    assert!(pages(&small) > pages(&large), "{} {}", pages(&small), pages(&large));
}

#[test]
fn sessions_wait_to_change_a_page_that_is_being_written() {
    // Log and frames suffice. Pages are flushed once a second, or never.
    let throttled = |max_dirty_pages_pct| {
        let settings = InnodbSettings {
            log_file_size: Bytes::from_mib(1_000),
            max_dirty_pages_pct,
            ..cached()
        };
        let mut scenario = mariadb(1, 8, settings);
        scenario.databases[0].log.length = Bytes::from_gib(1);
        place(&run(&scenario, &device("hdd-7200"), 5), Place::Throttle)
    };
    let (flushed, left) = (throttled(0.001), throttled(90.0));
    assert!(flushed > 0.1, "{flushed}");
    assert_eq!(left, 0.0);
}

#[test]
fn locks_end_before_the_flush() {
    // One warehouse, a slow log: PostgreSQL's payments queue behind each other's flushes, InnoDB's
    // do not.
    let slow = device("hdd-7200");
    let postgresql = run(&tpcc(1, 32, 8, Bytes::from_gib(2)), &slow, 20);
    let innodb = run(&mariadb(1, 32, cached()), &slow, 20);
    assert!(place(&postgresql, Place::Lock) > 2.0 * place(&innodb, Place::Lock));
    assert!(innodb.headline(0) > 1.5 * postgresql.headline(0));
}
