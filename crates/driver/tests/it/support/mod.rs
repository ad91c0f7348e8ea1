//! Small servers, and loads on them.

pub mod commits;

use std::time::{Duration, Instant};

use underlay_database::Engine;
use underlay_driver::Driver;
use underlay_workload::transactional::RunAccounting;

/// Settings of a small server that is as durable as usual.
pub fn small(engine: Engine) -> &'static [(&'static str, &'static str)] {
    match engine {
        Engine::Postgresql => &[("shared_buffers", "64MB"), ("max_connections", "40")],
        Engine::Mariadb => &[
            ("innodb_buffer_pool_size", "128M"),
            ("innodb_log_file_size", "64M"),
            ("max_connections", "40"),
        ],
    }
}

/// Waits half a second, and up to 20 until more than `least` transactions have been committed of what the headline counts: on
/// a busy host, and where a deadlock holds users up for a second (`deadlock_timeout`), it takes its time.
pub fn work_until<B: RunAccounting>(driver: &Driver<B>, least: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    let mut committed = 0;
    while committed <= least && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(500));
        committed += driver.tick().headline_count();
    }
}
