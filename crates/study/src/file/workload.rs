//! `[workload.tpcc]` and its alternatives: what the users do.

use underlay_core::Nanos;

use crate::entry::{Entry, Section};
use crate::file::block::Block;
use crate::file::job::{Backup, Batch, Warehouse};
use crate::limits::{
    ENTROPY, KEY_THINK, RANGE_SIZE, RATE_PER_SECOND, TABLE_SIZE, TABLES, WAREHOUSES,
};
use crate::plan::{Arrivals, HomeWarehouse, Mode, Profile};
use crate::section::*;
use underlay_workload::sysbench::{Distribution, Script};

section! {
    /// What the users do: exactly one kind of workload.
    pub(crate) struct Workload as "Workload" {
        /// Order entry as TPC-C describes it. Derived from TPC-C, not comparable to published TPC
        /// results.
        "tpcc" tpcc: Section<Tpcc> = table::<Tpcc>();
        /// Transactions compatible with sysbench's OLTP scripts, on tables that sysbench can share.
        "sysbench" sysbench: Section<Sysbench> = table::<Sysbench>();
        /// A web shop after DVD Store 3.
        "dvdstore" dvdstore: Section<Dvdstore> = table::<Dvdstore>();
        /// Insertion of many rows: a job.
        "batch" batch: Section<Batch> = table::<Batch>();
        /// Decision support, derived from TPC-H: a job.
        "warehouse" warehouse: Section<Warehouse> = table::<Warehouse>();
        /// A block load on the volumes, without a database.
        "block" block: Section<Block> = table::<Block>();
        /// Backups and restores by the engine's own programs: a job.
        "backup" backup: Section<Backup> = table::<Backup>();
    }
    written_for {
        "tpc-c" => "tpcc", "kind" => "tpcc", "warehouses" => "tpcc", "oltp" => "sysbench",
        "dvd-store" => "dvdstore", "tpch" => "warehouse", "tpc-h" => "warehouse",
        "io" => "block", "io-profile" => "block",
        "backups" => "backup", "restore" => "backup",
    }
    limits { "minProperties": 1, "maxProperties": 1 }
}

section! {
    /// The TPC-C workload.
    pub(crate) struct Tpcc as "Tpcc" {
        /// Size of the database: about 105 MB per warehouse in PostgreSQL.
        "warehouses" warehouses: Entry<u64> = One(whole(WAREHOUSES));
        /// `procedures`: one round trip per transaction. `statements`: one per SQL statement.
        "mode" mode: Entry<Mode> = One(word::<Mode>());
        /// `specification`, or `hammerdb-like` for HammerDB's declared deviations, which every page
        /// then names.
        "profile" profile: Entry<Profile> = One(word::<Profile>());
        /// `fixed`: each user has a warehouse for good, as TPC-C says. `drawn`: each transaction draws
        /// its own from all, so that every rung of users has the same working set.
        "home-warehouse" home_warehouse: Entry<HomeWarehouse> = One(word::<HomeWarehouse>());
        /// What makes a user start the next transaction. A closed loop without waiting, when left
        /// out.
        "pacing" pacing: Section<Pacing> = table::<Pacing>();
        /// Random characters in generated texts, in percent; 100 = incompressible.
        "entropy" entropy: Entry<u64> = One(whole(ENTROPY));
        /// A statement that runs longer is cancelled and counted as an error.
        "statement-timeout" statement_timeout: Entry<Nanos> = One(time());
    }
    written_for {
        "scale" => "warehouses", "all-warehouses" => "home-warehouse",
        "allwarehouse" => "home-warehouse",
    }
    limits { "required": ["warehouses"] }
}

section! {
    /// The sysbench workload.
    pub(crate) struct Sysbench as "Sysbench" {
        /// What a transaction does: the script of sysbench, without `oltp_`.
        "script" script: Entry<Script> = One(word::<Script>());
        /// Tables.
        "tables" tables: Entry<u64> = One(whole(TABLES));
        /// Rows of each table: about 260 bytes each with their index entries in PostgreSQL.
        "table-size" table_size: Entry<u64> = One(whole(TABLE_SIZE));
        /// How ids are drawn: `uniform` is the default of sysbench's master, `special` that of 1.0.
        "rand-type" rand_type: Entry<Distribution> = One(word::<Distribution>());
        /// Ids in a range.
        "range-size" range_size: Entry<u64> = One(whole(RANGE_SIZE));
        /// What makes a user start the next transaction. A closed loop, when left out; it has no
        /// think times.
        "pacing" pacing: Section<Pacing> = table::<Pacing>();
        /// A statement that runs longer is cancelled and counted as an error.
        "statement-timeout" statement_timeout: Entry<Nanos> = One(time());
    }
    written_for {
        "rows" => "table-size", "distribution" => "rand-type",
    }
    limits { "required": ["table-size"] }
}

section! {
    /// The web shop.
    pub(crate) struct Dvdstore as "Dvdstore" {
        /// Nominal size: S (10MB), M (1GB), L (100GB), or a number with MB, GB or TB. 10MB takes
        /// about 460 MB.
        "db-size" db_size: Entry<String> = One(text());
        /// Visits of new customers, in percent.
        "pct-newcustomers" pct_newcustomers: Entry<u64> = One(whole(0..=100));
        /// Visits in which a customer becomes a member, in percent.
        "pct-newmember" pct_newmember: Entry<u64> = One(whole(0..=100));
        /// Searches per visit on average.
        "n-searches" n_searches: Entry<u64> = One(whole(1..=1000));
        /// Rows that a search asks for on average.
        "search-batch-size" search_batch_size: Entry<u64> = One(whole(1..=10000));
        /// Reviews that a search for reviews looks at, at most.
        "search-depth" search_depth: Entry<u64> = One(whole(1..=1000000));
        /// Searches for reviews, and products whose reviews are read, per visit on average.
        "n-reviews" n_reviews: Entry<u64> = One(whole(1..=1000));
        /// Visits with a new review, in percent.
        "pct-newreviews" pct_newreviews: Entry<u64> = One(whole(0..=100));
        /// Visits in which a review is rated, in percent.
        "pct-newhelpfulness" pct_newhelpfulness: Entry<u64> = One(whole(0..=100));
        /// Lines of an order on average.
        "n-line-items" n_line_items: Entry<u64> = One(whole(1..=10));
        /// The flow of DVD Store 2: no members, no reviews.
        "ds2-mode" ds2_mode: Entry<bool> = One(boolean());
        /// What makes a user start the next transaction. A closed loop without waiting, when left
        /// out.
        "pacing" pacing: Section<Pacing> = table::<Pacing>();
        /// A statement that runs longer is cancelled and counted as an error.
        "statement-timeout" statement_timeout: Entry<Nanos> = One(time());
    }
    limits { "required": ["db-size"] }
}

section! {
    /// What makes a user start the next transaction: exactly one of the two.
    pub(crate) struct Pacing as "Pacing" {
        /// The answer to the one before.
        "closed" closed: Section<Closed> = table::<Closed>();
        /// A clock, whatever the database does. Latency counts from the intended start.
        "open" open: Section<Open> = table::<Open>();
    }
    limits { "maxProperties": 1 }
}

section! {
    /// A closed loop.
    pub(crate) struct Closed as "Closed" {
        /// Multiplier of the workload's keying and think times: 0 = none, 1 = as in the standard.
        "key-think" key_think: Entry<f64> = One(number(KEY_THINK));
    }
}

section! {
    /// An open loop.
    pub(crate) struct Open as "Open" {
        /// Transactions per second over all users, all types together.
        "rate-per-second" rate_per_second: Entry<f64> = One(number(RATE_PER_SECOND));
        /// How they are spread in time.
        "arrivals" arrivals: Entry<Arrivals> = One(word::<Arrivals>());
    }
    limits { "required": ["rate-per-second"] }
}
