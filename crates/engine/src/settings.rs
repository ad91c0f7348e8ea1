//! Settings of the servers that the model knows, and what they may be.
//!
//! Not here: settings of a study, which are words; `simulation` reads them.

use underlay_core::{Bytes, Nanos};

/// PostgreSQL's settings that the model knows; defaults are the server's own.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresqlSettings {
    /// `shared_buffers`.
    pub shared_buffers: Bytes,
    /// Memory for the operating system's page cache: the server's memory limit without shared
    /// buffers and processes.
    pub page_cache: Bytes,
    /// `checkpoint_timeout`.
    pub checkpoint_timeout: Nanos,
    /// `checkpoint_completion_target`, above 0, at most 1.
    pub checkpoint_completion_target: f64,
    /// `max_wal_size`.
    pub max_wal_size: Bytes,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// `synchronous_commit`; off, commits do not wait for the log.
    pub synchronous_commit: bool,
    /// `bgwriter_delay`.
    pub bgwriter_delay: Nanos,
    /// `bgwriter_lru_maxpages`; 0 switches the background writer off.
    pub bgwriter_lru_maxpages: u32,
    /// `bgwriter_lru_multiplier`.
    pub bgwriter_lru_multiplier: f64,
    /// `autovacuum_naptime`; `None` where `autovacuum` is off.
    pub autovacuum_naptime: Option<Nanos>,
    /// `autovacuum_analyze_scale_factor`.
    pub autovacuum_analyze_scale_factor: f64,
}

impl Default for PostgresqlSettings {
    fn default() -> PostgresqlSettings {
        PostgresqlSettings {
            shared_buffers: Bytes::from_mib(128),
            page_cache: Bytes::from_gib(1),
            checkpoint_timeout: Nanos::from_secs(300),
            checkpoint_completion_target: 0.9,
            max_wal_size: Bytes::from_gib(1),
            full_page_writes: true,
            synchronous_commit: true,
            bgwriter_delay: Nanos::from_millis(200),
            bgwriter_lru_maxpages: 100,
            bgwriter_lru_multiplier: 2.0,
            autovacuum_naptime: Some(Nanos::from_secs(60)),
            autovacuum_analyze_scale_factor: 0.1,
        }
    }
}

/// InnoDB's settings that the model knows; defaults are MariaDB's own. Files are opened with
/// `O_DIRECT`: there is no page cache.
#[derive(Clone, Debug, PartialEq)]
pub struct InnodbSettings {
    /// `innodb_buffer_pool_size`.
    pub buffer_pool_size: Bytes,
    /// `innodb_log_file_size`.
    pub log_file_size: Bytes,
    /// `innodb_flush_log_at_trx_commit = 1`; otherwise commits do not wait for the log.
    pub flush_log_at_commit: bool,
    /// `innodb_doublewrite`.
    pub doublewrite: bool,
    /// `innodb_io_capacity`, pages per second.
    pub io_capacity: u32,
    /// `innodb_io_capacity_max`, pages per second.
    pub io_capacity_max: u32,
    /// `innodb_max_dirty_pages_pct`.
    pub max_dirty_pages_pct: f64,
    /// `innodb_max_dirty_pages_pct_lwm`; 0 = off.
    pub max_dirty_pages_pct_lwm: f64,
    /// `innodb_lru_scan_depth`, pages.
    pub lru_scan_depth: u32,
    /// `innodb_old_blocks_pct`.
    pub old_blocks_pct: u32,
    /// `innodb_old_blocks_time`.
    pub old_blocks_time: Nanos,
}

impl Default for InnodbSettings {
    fn default() -> InnodbSettings {
        InnodbSettings {
            buffer_pool_size: Bytes::from_mib(128),
            log_file_size: Bytes::from_mib(96),
            flush_log_at_commit: true,
            doublewrite: true,
            io_capacity: 200,
            io_capacity_max: 2_000,
            max_dirty_pages_pct: 90.0,
            max_dirty_pages_pct_lwm: 0.0,
            lru_scan_depth: 1_536,
            old_blocks_pct: 37,
            old_blocks_time: Nanos::from_secs(1),
        }
    }
}

impl InnodbSettings {
    pub(crate) fn check(&self, check: &mut impl FnMut(&'static str, f64, bool, &'static str)) {
        let pool = self.buffer_pool_size;
        check(
            "innodb_buffer_pool_size",
            pool.0 as f64,
            pool >= Bytes::from_mib(5),
            "at least 5 MiB",
        );
        let log = self.log_file_size;
        check("innodb_log_file_size", log.0 as f64, log >= Bytes::from_mib(4), "at least 4 MiB");
        let capacity = f64::from(self.io_capacity);
        check("innodb_io_capacity", capacity, self.io_capacity >= 100, "at least 100");
        let max = f64::from(self.io_capacity_max);
        let holds = self.io_capacity_max >= self.io_capacity;
        check("innodb_io_capacity_max", max, holds, "at least innodb_io_capacity");
        let dirty = self.max_dirty_pages_pct;
        check("innodb_max_dirty_pages_pct", dirty, (0.0..100.0).contains(&dirty), "0 to 99.999");
        let low = self.max_dirty_pages_pct_lwm;
        check("innodb_max_dirty_pages_pct_lwm", low, (0.0..100.0).contains(&low), "0 to 99.999");
        let old = f64::from(self.old_blocks_pct);
        check("innodb_old_blocks_pct", old, (5.0..=95.0).contains(&old), "5 to 95");
    }
}

impl PostgresqlSettings {
    pub(crate) fn check(&self, check: &mut impl FnMut(&'static str, f64, bool, &'static str)) {
        let buffers = self.shared_buffers.0 as f64;
        check(
            "shared_buffers",
            buffers,
            self.shared_buffers >= Bytes::from_mib(1),
            "at least 1 MiB",
        );
        let target = self.checkpoint_completion_target;
        check(
            "checkpoint_completion_target",
            target,
            target > 0.0 && target <= 1.0,
            "above 0, at most 1",
        );
        let timeout = self.checkpoint_timeout.as_secs_f64();
        check("checkpoint_timeout in s", timeout, timeout >= 1.0, "at least 1");
        let wal = self.max_wal_size.0 as f64;
        check("max_wal_size", wal, self.max_wal_size >= Bytes::from_mib(2), "at least 2 MiB");
        let delay = self.bgwriter_delay.as_secs_f64();
        check("bgwriter_delay in s", delay, (0.01..=10.0).contains(&delay), "0.01 to 10");
        let multiplier = self.bgwriter_lru_multiplier;
        check("bgwriter_lru_multiplier", multiplier, (0.0..=10.0).contains(&multiplier), "0 to 10");
        let naptime = self.autovacuum_naptime.map_or(1.0, Nanos::as_secs_f64);
        check("autovacuum_naptime in s", naptime, naptime >= 1.0, "at least 1");
        let scale = self.autovacuum_analyze_scale_factor;
        let is_share = (0.0..=100.0).contains(&scale);
        check("autovacuum_analyze_scale_factor", scale, is_share, "0 to 100");
    }
}
