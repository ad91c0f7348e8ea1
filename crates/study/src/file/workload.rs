//! `[workload.tpcc]` and its alternatives: what the users do.

use schemars::JsonSchema;
use underlay_core::Nanos;

use crate::entry::{Entry, Section};
use crate::file::job::{Batch, Warehouse, read_batch, read_warehouse};
use crate::limits::{
    ENTROPY, KEY_THINK, RANGE_SIZE, RATE_PER_SECOND, TABLE_SIZE, TABLES, WAREHOUSES,
};
use crate::plan::{Arrivals, Mode, Profile};
use crate::reader::{Item, Keys};
use crate::report::Report;
use crate::schema::Time;
use crate::words::Word;
use underlay_workload::sysbench::{Distribution, Script};

/// What the users do: exactly one kind of workload.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Workload {
    /// Order entry as TPC-C describes it. Derived from TPC-C, not comparable to published TPC results.
    pub tpcc: Section<Tpcc>,
    /// Transactions compatible with sysbench's OLTP scripts, on tables that sysbench can share.
    pub sysbench: Section<Sysbench>,
    /// A web shop after DVD Store 3.
    pub dvdstore: Section<Dvdstore>,
    /// Insertion of many rows: a job.
    pub batch: Section<Batch>,
    /// Decision support, derived from TPC-H: a job.
    pub warehouse: Section<Warehouse>,
}

/// The TPC-C workload.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["warehouses"]))]
pub(crate) struct Tpcc {
    /// Size of the database: about 105 MB per warehouse in PostgreSQL.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub warehouses: Entry<u64>,
    /// `procedures`: one round trip per transaction. `statements`: one per SQL statement.
    #[schemars(with = "Word<Mode>")]
    pub mode: Entry<Mode>,
    /// `specification`, or `hammerdb-like` for HammerDB's declared deviations, which every page then names.
    #[schemars(with = "Word<Profile>")]
    pub profile: Entry<Profile>,
    /// What makes a user start the next transaction. A closed loop without waiting, when left out.
    pub pacing: Section<Pacing>,
    /// Random characters in generated texts, in percent; 100 = incompressible.
    #[schemars(range(min = 0, max = 100))]
    pub entropy: Entry<u64>,
    /// A statement that runs longer is cancelled and counted as an error.
    #[schemars(with = "Time")]
    pub statement_timeout: Entry<Nanos>,
}

/// The sysbench workload.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["table-size"]))]
pub(crate) struct Sysbench {
    /// What a transaction does: the script of sysbench, without `oltp_`.
    #[schemars(with = "Word<Script>")]
    pub script: Entry<Script>,
    /// Tables.
    #[schemars(range(min = 1, max = 10_000))]
    pub tables: Entry<u64>,
    /// Rows of each table: about 260 bytes each with their index entries in PostgreSQL.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub table_size: Entry<u64>,
    /// How ids are drawn: `uniform` is the default of sysbench's master, `special` that of 1.0.
    #[schemars(with = "Word<Distribution>")]
    pub rand_type: Entry<Distribution>,
    /// Ids in a range.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub range_size: Entry<u64>,
    /// What makes a user start the next transaction. A closed loop, when left out; it has no think times.
    pub pacing: Section<Pacing>,
    /// A statement that runs longer is cancelled and counted as an error.
    #[schemars(with = "Time")]
    pub statement_timeout: Entry<Nanos>,
}

/// The web shop.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["db-size"]))]
pub(crate) struct Dvdstore {
    /// Nominal size: S (10MB), M (1GB), L (100GB), or a number with MB, GB or TB. 10MB takes about 460 MB.
    pub db_size: Entry<String>,
    /// Visits of new customers, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub pct_newcustomers: Entry<u64>,
    /// Visits in which somebody becomes a member, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub pct_newmember: Entry<u64>,
    /// Searches per visit on average.
    #[schemars(range(min = 1, max = 1000))]
    pub n_searches: Entry<u64>,
    /// Rows that a search asks for on average.
    #[schemars(range(min = 1, max = 10000))]
    pub search_batch_size: Entry<u64>,
    /// Reviews that a search for reviews looks at, at most.
    #[schemars(range(min = 1, max = 1000000))]
    pub search_depth: Entry<u64>,
    /// Searches for reviews, and products whose reviews are read, per visit on average.
    #[schemars(range(min = 1, max = 1000))]
    pub n_reviews: Entry<u64>,
    /// Visits with a new review, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub pct_newreviews: Entry<u64>,
    /// Visits in which a review is rated, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub pct_newhelpfulness: Entry<u64>,
    /// Lines of an order on average.
    #[schemars(range(min = 1, max = 10))]
    pub n_line_items: Entry<u64>,
    /// The old flow: no members, no reviews.
    pub ds2_mode: Entry<bool>,
    /// What makes a user start the next transaction. A closed loop without waiting, when left out.
    pub pacing: Section<Pacing>,
    /// A statement that runs longer is cancelled and counted as an error.
    #[schemars(with = "Time")]
    pub statement_timeout: Entry<Nanos>,
}

/// What makes a user start the next transaction: exactly one of the two.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("maxProperties" = 1))]
pub(crate) struct Pacing {
    /// The answer to the one before.
    pub closed: Section<Closed>,
    /// A clock, whatever the database does. Latency counts from the intended start.
    pub open: Section<Open>,
}

/// A closed loop.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Closed {
    /// Multiplier of the workload's keying and think times: 0 = none, 1 = as in the standard.
    #[schemars(range(min = 0, max = 100))]
    pub key_think: Entry<f64>,
}

/// An open loop.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["rate-per-second"]))]
pub(crate) struct Open {
    /// Transactions per second over all users, all types together.
    #[schemars(range(min = 0.001, max = 10_000_000))]
    pub rate_per_second: Entry<f64>,
    /// How they are spread in time.
    #[schemars(with = "Word<Arrivals>")]
    pub arrivals: Entry<Arrivals>,
}

/// Reads `[workload]`.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Workload {
    keys.alias("tpc-c", "tpcc");
    keys.alias("kind", "tpcc");
    keys.alias("warehouses", "tpcc");
    keys.alias("oltp", "sysbench");
    keys.alias("dvd-store", "dvdstore");
    keys.alias("tpch", "warehouse");
    keys.alias("tpc-h", "warehouse");
    Workload {
        tpcc: keys.section("tpcc", read_tpcc),
        sysbench: keys.section("sysbench", read_sysbench),
        dvdstore: keys.section("dvdstore", |keys| Dvdstore {
            db_size: keys.take("db-size", |item, report| item.text(report)),
            pct_newcustomers: keys
                .take("pct-newcustomers", |item, report| item.integer(report, 0..=100)),
            pct_newmember: keys.take("pct-newmember", |item, report| item.integer(report, 0..=100)),
            n_searches: keys.take("n-searches", |item, report| item.integer(report, 1..=1000)),
            search_batch_size: keys
                .take("search-batch-size", |item, report| item.integer(report, 1..=10000)),
            search_depth: keys
                .take("search-depth", |item, report| item.integer(report, 1..=1000000)),
            n_reviews: keys.take("n-reviews", |item, report| item.integer(report, 1..=1000)),
            pct_newreviews: keys
                .take("pct-newreviews", |item, report| item.integer(report, 0..=100)),
            pct_newhelpfulness: keys
                .take("pct-newhelpfulness", |item, report| item.integer(report, 0..=100)),
            n_line_items: keys.take("n-line-items", |item, report| item.integer(report, 1..=10)),
            ds2_mode: keys.take("ds2-mode", |item, report| item.boolean(report)),
            pacing: keys.section("pacing", read_pacing),
            statement_timeout: keys.take("statement-timeout", |item, report| item.time(report)),
        }),
        batch: keys.section("batch", read_batch),
        warehouse: keys.section("warehouse", read_warehouse),
    }
}

fn read_tpcc(keys: &mut Keys<'_, '_>) -> Tpcc {
    keys.alias("scale", "warehouses");
    Tpcc {
        warehouses: keys.take("warehouses", |item, report| item.integer(report, WAREHOUSES)),
        mode: keys.take("mode", |item, report| item.word(report)),
        profile: keys.take("profile", |item, report| item.word(report)),
        pacing: keys.section("pacing", read_pacing),
        entropy: keys.take("entropy", |item, report| item.integer(report, ENTROPY)),
        statement_timeout: keys.take("statement-timeout", |item, report| item.time(report)),
    }
}

fn read_sysbench(keys: &mut Keys<'_, '_>) -> Sysbench {
    keys.alias("rows", "table-size");
    keys.alias("distribution", "rand-type");
    Sysbench {
        script: keys.take("script", |item, report| item.word(report)),
        tables: keys.take("tables", |item, report| item.integer(report, TABLES)),
        table_size: keys.take("table-size", |item, report| item.integer(report, TABLE_SIZE)),
        rand_type: keys.take("rand-type", |item, report| item.word(report)),
        range_size: keys.take("range-size", |item, report| item.integer(report, RANGE_SIZE)),
        pacing: keys.section("pacing", read_pacing),
        statement_timeout: keys.take("statement-timeout", |item, report| item.time(report)),
    }
}

fn read_pacing(keys: &mut Keys<'_, '_>) -> Pacing {
    Pacing {
        closed: keys.section("closed", |keys| Closed {
            key_think: keys.take("key-think", |item, report| item.number(report, KEY_THINK)),
        }),
        open: keys.section("open", |keys| Open {
            rate_per_second: keys.take("rate-per-second", read_rate),
            arrivals: keys.take("arrivals", |item, report| item.word(report)),
        }),
    }
}

fn read_rate(item: &Item<'_>, report: &mut Report) -> Option<f64> {
    item.number(report, RATE_PER_SECOND)
}
