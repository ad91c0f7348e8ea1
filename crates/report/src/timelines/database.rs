//! Time lines of the database server: what its sessions waited for, its log, its blocks and its memory.

use underlay_record::conventions::source;

use super::drawing::Drawing;
use crate::analysis::TimeClass;
use crate::observed::{ObservedRun, class_of, middle};

/// What sessions waited for.
pub(super) fn draw_waits(run: &ObservedRun, drawing: &mut Drawing) {
    let classes: [(TimeClass, &str, &str); 8] = [
        (TimeClass::Cpu, "wait.cpu", "On CPU or runnable"),
        (TimeClass::Log, "wait.log", "Log"),
        (TimeClass::DataRead, "wait.data-read", "Data reads"),
        (TimeClass::DataWrite, "wait.data-write", "Data writes"),
        (TimeClass::Lock, "wait.lock", "Locks"),
        (TimeClass::Latch, "wait.latch", "Latches"),
        (TimeClass::Other, "wait.other", "Other"),
        (TimeClass::Client, "wait.client", "Idle (client)"),
    ];
    for (class, name, title) in classes {
        let points: Vec<(f64, f64)> = run
            .waits
            .iter()
            .filter(|window| window.samples > 0)
            .map(|window| {
                let sessions: u32 = window
                    .clients
                    .iter()
                    .filter(|count| class_of(&count.key) == class)
                    .map(|count| count.sessions)
                    .sum();
                (middle(window.interval), f64::from(sessions) / f64::from(window.samples))
            })
            .collect();
        drawing.points((name, title, "database", "sessions", "waits"), &points);
    }
}

/// What the engine wrote and read, and the memory that it is charged for.
pub(super) fn draw_database(run: &ObservedRun, drawing: &mut Drawing) {
    let postgres = |series| run.series(source::POSTGRES, series);
    let mariadb = |series| run.series(source::MARIADB, series);
    let log = ["wal.position", "wal.wal_bytes", "wal.bytes"]
        .into_iter()
        .find_map(postgres)
        .or_else(|| mariadb("status.innodb_lsn_current"));
    drawing.rate(("log_bytes", "Log written", "database", "bytes/s", "log"), log, 1.0);
    drawing.rate(
        ("blocks_read", "Blocks read", "database", "1/s", "blocks"),
        postgres("database.blks_read").or_else(|| mariadb("status.innodb_pages_read")),
        1.0,
    );
    let cgroup = |series| run.series(source::CGROUP, series);
    drawing.gauge(
        ("memory.usage", "Memory charged", "database", "bytes", "memory"),
        cgroup("memory.usage"),
    );
    drawing.gauge(
        ("memory.cache", "of which page cache", "database", "bytes", "memory"),
        cgroup("memory.cache"),
    );
    drawing.gauge(
        ("memory.dirty", "of which dirty", "database", "bytes", "memory"),
        cgroup("memory.dirty"),
    );
}
