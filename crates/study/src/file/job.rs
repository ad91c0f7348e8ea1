//! `[workload.batch]`, `[workload.warehouse]` and `[workload.backup]`: jobs, which run until they are done.

use underlay_core::Nanos;
use underlay_workload::batch::{Loop, Mode};

use crate::entry::Entry;
use crate::limits::{
    BACKUP_CYCLES, BATCH_ROWS, JOB_SESSIONS, STREAMS, WAREHOUSE_SCALE, WAREHOUSES,
};
use crate::section::*;

section! {
    /// Insertion of many rows into one table: a job.
    pub(crate) struct Batch as "Batch" {
        /// Rows to insert.
        "rows" rows: Entry<u64> = One(whole(BATCH_ROWS));
        /// Their transactions: `implicit` (each row its own), `explicit` (one for all rows of a
        /// session) or `bulk` (`COPY` or
        /// `LOAD DATA`).
        "mode" mode: Entry<Mode> = One(word::<Mode>());
        /// Who goes from row to row: the `client`, with a round trip each, or the `server`, which is
        /// given many rows at once.
        "loop" place: Entry<Loop> = One(word::<Loop>());
        /// Parallel sessions, each of which inserts a part of the rows.
        "sessions" sessions: Entry<u64> = One(whole(JOB_SESSIONS));
    }
    written_for {
        "users" => "sessions",
    }
    limits { "required": ["rows"] }
}

section! {
    /// Decision support, derived from TPC-H: a job. A power run, then a throughput run.
    pub(crate) struct Warehouse as "Warehouse" {
        /// Scale factor, a multiple of 0.01; 1 is about 1 GB of rows.
        "scale" scale: Entry<f64> = One(number(WAREHOUSE_SCALE));
        /// Query streams of the throughput run; 0 makes none. As many as the specification wants,
        /// when left out.
        "streams" streams: Entry<u64> = One(whole(STREAMS));
    }
    written_for {
        "users" => "streams", "scale-factor" => "scale",
    }
    limits { "required": ["scale"] }
}

section! {
    /// Backup and restore cycles of the engine's own programs: a job. The data is that of TPC-C.
    pub(crate) struct Backup as "Backup" {
        /// Size of the database: about 105 MB per warehouse in PostgreSQL.
        "warehouses" warehouses: Entry<u64> = One(whole(WAREHOUSES));
        /// Cycles of a backup and its restore.
        "cycles" cycles: Entry<u64> = One(whole(BACKUP_CYCLES));
        /// Idle time between two cycles.
        "pause" pause: Entry<Nanos> = One(time());
        /// Whether each backup is restored next to the database, and the last copy checked.
        "restore" restore: Entry<bool> = One(boolean());
        /// The most that a backup copies per second, by its program's own limit; not of a restore.
        "bytes-per-second" bytes_per_second: Entry<u64> = One(rate());
    }
    written_for {
        "scale" => "warehouses", "count" => "cycles", "repeats" => "cycles",
        "wait" => "pause", "verify" => "restore", "rate" => "bytes-per-second",
        "max-rate" => "bytes-per-second", "throttle" => "bytes-per-second",
    }
    limits { "required": ["warehouses"] }
}
