//! What transactions demand of a database: processor time, log bytes, and what moving a page costs.
//!
//! A profile is data: it comes from the defaults here or from a recorded run. Which pages a
//! transaction touches and which rows it locks are not part of it, because they follow from the
//! drawn keys ([`crate::layout`]). Processor times are those of one thread that has its core to
//! itself on a host of speed 1 (see [`crate::HostSpec::speed`]).
//!
//! The defaults are orders of magnitude, not measurements of a system. Replace them by a measured
//! profile where absolute numbers matter; ratios of designs depend on them less.

use underlay_core::Nanos;
use underlay_workload::sysbench;

/// Demands of one engine under one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandProfile {
    /// Per transaction type, in the order of the workload's `Shape::types`.
    pub types: Vec<TypeDemand>,
    /// Processor time of the server per page that it reads into the buffer pool, of which the
    /// kernel's share is most.
    pub cpu_per_page_read: Nanos,
    /// Processor time per page that a server process or thread writes, wherever it is written from.
    pub cpu_per_page_write: Nanos,
    /// Processor time per flush of the log, of the session that flushes.
    pub cpu_per_log_flush: Nanos,
    /// Processor time per transaction of the server's background processes and threads, beside that of writing pages: of
    /// purge or vacuum, and of those that write the log. No session waits for it. Measured profiles have it.
    pub background_cpu: Nanos,
    /// Processor time of the load generator per transaction; used where the client has a host.
    pub client_cpu: Nanos,
    /// Processor time of the database's host per I/O request beside that of the server: of the
    /// kernel's threads, and of an emulator. It is used while the request is on its way.
    pub cpu_per_io: Nanos,
    /// Every processor time of the server is multiplied by this; 1 by default. For a fit on one
    /// measured point.
    pub cpu_factor: f64,
    /// All log bytes but page images are multiplied by this; 1 by default. For a fit on one
    /// measured point.
    pub log_factor: f64,
}

/// Demands of one type of transaction.
///
/// A *unit* is the type's own measure of size: TPC-C an order line (New-Order, about 10), a
/// delivered order (Delivery, 10), a counted line (Stock-Level, about 200), a customer looked at
/// (Payment, Order-Status; 1 by number, 3 by name); sysbench a statement, of which a range counts
/// one more per 25 rows; its log bytes count changed rows instead, and its bulk inserts use the
/// processor once per 10 rows. The web shop: a review whose ratings are summed up, a product that is
/// found or shown, a line of an order. A job: a megabyte (1,000,000 bytes) that is backed up or
/// restored, a row that is inserted; of a warehouse, all of a query or refresh function per hundredth
/// of the scale factor.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDemand {
    /// The workload's name of the type.
    pub name: String,
    /// Processor time per transaction, without its units.
    pub cpu_base: Nanos,
    /// Processor time per unit on top.
    pub cpu_per_unit: Nanos,
    /// Log bytes per transaction, without its units and without full-page images.
    pub log_bytes_base: u32,
    /// Log bytes per unit on top.
    pub log_bytes_per_unit: u32,
}

impl TypeDemand {
    /// Processor time of a transaction of so many units.
    pub fn cpu(&self, units: u32) -> Nanos {
        Nanos(self.cpu_base.0 + self.cpu_per_unit.0 * u64::from(units))
    }

    /// Log bytes of a transaction of so many units.
    pub fn log_bytes(&self, units: u32) -> u64 {
        u64::from(self.log_bytes_base) + u64::from(self.log_bytes_per_unit) * u64::from(units)
    }
}

/// Microseconds per transaction and per unit, bytes of log per transaction and per unit.
type Row = (&'static str, u64, u64, u32, u32);

/// PostgreSQL, TPC-C as functions with one round trip each. Log bytes from the formats of its
/// records: 50 to 90 bytes for an update in place, 90 to 140 for an inserted row, 60 to 80 for an
/// index entry, 34 for the commit.
const TPCC_POSTGRESQL: [Row; 5] = [
    ("new_order", 170, 42, 700, 360),
    ("payment", 120, 12, 620, 0),
    ("order_status", 90, 12, 0, 0),
    ("delivery", 90, 95, 60, 1_450),
    ("stock_level", 120, 3, 0, 0),
];

/// InnoDB: the same work in stored procedures. Redo also describes the undo records, and no page
/// images.
const TPCC_MARIADB: [Row; 5] = [
    ("new_order", 150, 44, 1_100, 480),
    ("payment", 110, 12, 1_000, 0),
    ("order_status", 80, 12, 0, 0),
    ("delivery", 80, 100, 120, 2_200),
    ("stock_level", 100, 3, 0, 0),
];

/// PostgreSQL, sysbench's scripts with prepared statements, a round trip each. A changed row is an
/// update that moves an index entry: two row versions and an entry.
const SYSBENCH_POSTGRESQL: [Row; sysbench::Script::ALL.len()] = [
    ("read_write", 70, 18, 34, 380),
    ("read_only", 60, 18, 0, 380),
    ("write_only", 60, 22, 34, 380),
    ("point_select", 12, 18, 0, 380),
    ("update_index", 22, 26, 34, 420),
    ("update_non_index", 20, 22, 34, 260),
    ("insert", 20, 30, 34, 460),
    ("delete", 20, 20, 34, 90),
    ("bulk_insert", 40, 30, 34, 420),
];

/// InnoDB: the same, with redo of the undo records and of the purge; without splits of leaves, which are in the scripts.
/// Log bytes of `read_write` are from one record (2026-11-29): 7.3 kB for four changes, less 8 kB per split that it counts.
/// Those of `write_only` and `update_index` follow.
const SYSBENCH_MARIADB: [Row; sysbench::Script::ALL.len()] = [
    ("read_write", 80, 17, 100, 1_100),
    ("read_only", 70, 17, 0, 1_100),
    ("write_only", 60, 22, 100, 1_100),
    ("point_select", 12, 17, 0, 700),
    ("update_index", 22, 28, 100, 1_150),
    ("update_non_index", 20, 22, 100, 520),
    ("insert", 20, 30, 100, 560),
    ("delete", 20, 22, 100, 460),
    ("bulk_insert", 40, 30, 100, 480),
];

/// PostgreSQL, the web shop: a statement per step, and a function for the purchase. A review takes
/// the sum of its 20 ratings, a line of an order a trigger and the checks of three references.
const DVDSTORE_POSTGRESQL: [Row; 15] = [
    ("login", 90, 8, 0, 0),
    ("new_customer", 120, 0, 620, 0),
    ("new_member", 70, 0, 290, 0),
    ("browse_category", 50, 3, 0, 0),
    ("browse_actor", 80, 3, 0, 0),
    ("browse_title", 60, 3, 0, 0),
    ("reviews_by_actor", 180, 14, 0, 0),
    ("reviews_by_title", 150, 14, 0, 0),
    ("product_reviews", 70, 14, 0, 0),
    ("reviews_by_stars", 60, 14, 0, 0),
    ("reviews_by_date", 90, 14, 0, 0),
    ("new_review", 120, 0, 1_150, 0),
    ("rate_review", 80, 0, 420, 0),
    ("prices", 40, 6, 0, 0),
    ("purchase", 130, 60, 480, 500),
];

/// InnoDB: the same, with redo of the undo records. The ratings of a review are in an index.
const DVDSTORE_MARIADB: [Row; 15] = [
    ("login", 85, 8, 0, 0),
    ("new_customer", 120, 0, 1_050, 0),
    ("new_member", 70, 0, 420, 0),
    ("browse_category", 50, 3, 0, 0),
    ("browse_actor", 110, 3, 0, 0),
    ("browse_title", 90, 3, 0, 0),
    ("reviews_by_actor", 220, 7, 0, 0),
    ("reviews_by_title", 190, 7, 0, 0),
    ("product_reviews", 70, 7, 0, 0),
    ("reviews_by_stars", 60, 7, 0, 0),
    ("reviews_by_date", 90, 7, 0, 0),
    ("new_review", 120, 0, 1_600, 0),
    ("rate_review", 80, 0, 640, 0),
    ("prices", 40, 6, 0, 0),
    ("purchase", 130, 55, 700, 620),
];

/// PostgreSQL's `pg_basebackup` and the server that reads for it, in equal parts; a restore by
/// `tar`. Per megabyte: reading and writing files copies each byte four and two times, and the
/// manifest has a checksum of all.
const BACKUP_POSTGRESQL: [Row; 2] = [("backup", 0, 900, 0, 0), ("restore", 0, 700, 0, 0)];

/// `mariabackup`, which checks every page, and `mbstream`.
const BACKUP_MARIADB: [Row; 2] = [("backup", 0, 700, 0, 0), ("restore", 0, 700, 0, 0)];

/// Rows of the study of batch insertion, one `INSERT` each, or as a stream: then a transaction is
/// 1,000 of them.
const BATCH_POSTGRESQL: [Row; 1] = [("insert", 22, 8, 34, 240)];
const BATCH_MARIADB: [Row; 1] = [("insert", 22, 10, 100, 260)];

/// PostgreSQL, the warehouse: processor time and log bytes, measured with everything cached at scale
/// factor 1 (2026-11-29, decision 0121). Refresh functions insert or delete 15 orders with 60 lines;
/// their log was measured together, and divided by the formats of its records.
const WAREHOUSE_POSTGRESQL: [Row; 24] = [
    ("q1", 0, 42_000, 0, 0),
    ("q2", 0, 5_600, 0, 0),
    ("q3", 0, 17_700, 0, 0),
    ("q4", 0, 36_400, 0, 0),
    ("q5", 0, 23_500, 0, 0),
    ("q6", 0, 5_700, 0, 0),
    ("q7", 0, 12_300, 0, 0),
    ("q8", 0, 3_900, 0, 0),
    ("q9", 0, 32_900, 0, 0),
    ("q10", 0, 17_200, 0, 0),
    ("q11", 0, 1_070, 0, 0),
    ("q12", 0, 26_900, 0, 0),
    ("q13", 0, 11_000, 0, 0),
    ("q14", 0, 5_600, 0, 0),
    ("q15", 0, 6_500, 0, 0),
    ("q16", 0, 3_100, 0, 0),
    ("q17", 0, 8_800, 0, 0),
    ("q18", 0, 51_800, 0, 0),
    ("q19", 0, 610, 0, 0),
    ("q20", 0, 1_640, 0, 0),
    ("q21", 0, 38_900, 0, 0),
    ("q22", 0, 1_100, 0, 0),
    ("rf1", 0, 2_400, 34, 30_750),
    ("rf2", 0, 115, 34, 4_050),
];

fn profile(rows: &[Row], page_read_us: u64) -> DemandProfile {
    let types = rows.iter().map(|&(name, base, unit, log_base, log_unit)| TypeDemand {
        name: name.to_string(),
        cpu_base: Nanos::from_micros(base),
        cpu_per_unit: Nanos::from_micros(unit),
        log_bytes_base: log_base,
        log_bytes_per_unit: log_unit,
    });
    DemandProfile {
        types: types.collect(),
        cpu_per_page_read: Nanos::from_micros(page_read_us),
        cpu_per_page_write: Nanos::from_micros(6),
        cpu_per_log_flush: Nanos::from_micros(15),
        background_cpu: Nanos::ZERO,
        client_cpu: Nanos::from_micros(25),
        cpu_per_io: Nanos::ZERO,
        cpu_factor: 1.0,
        log_factor: 1.0,
    }
}

impl DemandProfile {
    /// The same demands with the factors applied, which are 1 then.
    pub fn scaled(&self) -> DemandProfile {
        let cpu = |time: Nanos| Nanos((time.0 as f64 * self.cpu_factor).round() as u64);
        let log = |bytes: u32| (f64::from(bytes) * self.log_factor).round() as u32;
        let types = self.types.iter().map(|demand| TypeDemand {
            name: demand.name.clone(),
            cpu_base: cpu(demand.cpu_base),
            cpu_per_unit: cpu(demand.cpu_per_unit),
            log_bytes_base: log(demand.log_bytes_base),
            log_bytes_per_unit: log(demand.log_bytes_per_unit),
        });
        DemandProfile {
            types: types.collect(),
            cpu_per_page_read: cpu(self.cpu_per_page_read),
            cpu_per_page_write: cpu(self.cpu_per_page_write),
            cpu_per_log_flush: cpu(self.cpu_per_log_flush),
            background_cpu: cpu(self.background_cpu),
            client_cpu: self.client_cpu,
            cpu_per_io: self.cpu_per_io,
            cpu_factor: 1.0,
            log_factor: 1.0,
        }
    }

    /// Processor time of writing so many pages.
    pub(crate) fn of_written_pages(&self, pages: u64) -> Nanos {
        Nanos(self.cpu_per_page_write.0 * pages)
    }

    /// Default demands of TPC-C on PostgreSQL.
    pub fn tpcc_postgresql() -> DemandProfile {
        profile(&TPCC_POSTGRESQL, 8)
    }

    /// Default demands of TPC-C on MariaDB.
    pub fn tpcc_mariadb() -> DemandProfile {
        profile(&TPCC_MARIADB, 12)
    }

    /// Default demands of the web shop on PostgreSQL.
    pub fn dvdstore_postgresql() -> DemandProfile {
        profile(&DVDSTORE_POSTGRESQL, 8)
    }

    /// Default demands of the web shop on MariaDB.
    pub fn dvdstore_mariadb() -> DemandProfile {
        profile(&DVDSTORE_MARIADB, 12)
    }

    /// Default demands of backups and restores of PostgreSQL.
    pub fn backup_postgresql() -> DemandProfile {
        profile(&BACKUP_POSTGRESQL, 8)
    }

    /// Default demands of backups and restores of MariaDB.
    pub fn backup_mariadb() -> DemandProfile {
        profile(&BACKUP_MARIADB, 12)
    }

    /// Default demands of batch insertion on PostgreSQL.
    pub fn batch_postgresql() -> DemandProfile {
        profile(&BATCH_POSTGRESQL, 8)
    }

    /// Default demands of a warehouse on PostgreSQL.
    pub fn warehouse_postgresql() -> DemandProfile {
        profile(&WAREHOUSE_POSTGRESQL, 8)
    }

    /// Default demands of batch insertion on MariaDB.
    pub fn batch_mariadb() -> DemandProfile {
        profile(&BATCH_MARIADB, 12)
    }

    /// Default demands of sysbench on PostgreSQL.
    pub fn sysbench_postgresql() -> DemandProfile {
        profile(&SYSBENCH_POSTGRESQL, 8)
    }

    /// Default demands of sysbench on MariaDB.
    pub fn sysbench_mariadb() -> DemandProfile {
        profile(&SYSBENCH_MARIADB, 12)
    }
}
