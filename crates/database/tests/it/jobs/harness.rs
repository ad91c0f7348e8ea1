//! The settings of the servers of these tests.

use underlay_database::Engine;

/// Small, and durable: what is acknowledged must survive the end of the server's process.
pub fn durable(engine: Engine) -> &'static [(&'static str, &'static str)] {
    match engine {
        Engine::Postgresql => &[("shared_buffers", "256MB"), ("autovacuum", "off")],
        Engine::Mariadb => &[
            ("innodb_buffer_pool_size", "256M"),
            ("innodb_log_file_size", "64M"),
            // The log is written at each commit; only the machine's own end would lose it.
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
        ],
    }
}
