//! The ranges of the study format, once for the reader, the resolver, the command line and the schema.

use std::ops::RangeInclusive;

use underlay_core::{Bytes, Nanos};
use underlay_workload::batch::MAX_ROWS;
use underlay_workload::sysbench::Parameters;

/// Seeds: what a TOML integer can hold.
pub(crate) const SEED: RangeInclusive<u64> = 0..=i64::MAX as u64;
/// Major versions of servers; which of them an engine has is checked when the engine is known.
pub(crate) const ENGINE_MAJOR: RangeInclusive<u64> = 0..=u32::MAX as u64;
/// Processors of a database server.
pub(crate) const CPUS: RangeInclusive<f64> = 0.1..=4096.0;
/// Speed of a core, compared with that of other designs.
pub(crate) const CORE_SPEED: RangeInclusive<f64> = 0.1..=10.0;
/// Hardware threads of a core of a host. What more than two are worth is not known here.
pub(crate) const THREADS_PER_CORE: RangeInclusive<u64> = 1..=2;
/// Least memory of a database server that starts at all.
pub(crate) const MEMORY_LIMIT_MIN: Bytes = Bytes::from_mib(64);
/// Warehouses.
pub(crate) const WAREHOUSES: RangeInclusive<u64> = 1..=1_000_000;
/// Tables of sysbench.
pub(crate) const TABLES: RangeInclusive<u64> = 1..=Parameters::TABLES_MAX as u64;
/// Rows of each of them.
pub(crate) const TABLE_SIZE: RangeInclusive<u64> = 1..=Parameters::TABLE_SIZE_MAX as u64;
/// Ids in a range of sysbench.
pub(crate) const RANGE_SIZE: RangeInclusive<u64> = 1..=1_000_000;
/// Rows of a batch insertion.
pub(crate) const BATCH_ROWS: RangeInclusive<u64> = 1..=MAX_ROWS as u64;
/// Sessions of a job: each has a thread.
pub(crate) const JOB_SESSIONS: RangeInclusive<u64> = 1..=1024;
/// Query streams of a warehouse.
pub(crate) const STREAMS: RangeInclusive<u64> = 0..=100;
/// Scale factors of a warehouse.
pub(crate) const WAREHOUSE_SCALE: RangeInclusive<f64> = 0.01..=1000.0;
/// Threads of a block load per volume, and requests in flight of one.
pub(crate) const BLOCK_CONCURRENCY: RangeInclusive<u64> = 1..=4096;
/// Requests in flight of a block load on one volume: what a ring has room for.
pub(crate) const BLOCK_IN_FLIGHT_MAX: u32 = 16_384;
/// Passes over the working set before a block load.
pub(crate) const BLOCK_PRECONDITION: RangeInclusive<u64> = 0..=10;
/// Smallest file of a block load: what block I/O accepts as a target.
pub(crate) const BLOCK_FILE_MIN: Bytes = Bytes::from_mib(16);
/// Points of a rate curve.
pub(crate) const CURVE_POINTS: usize = 64;
/// A point of a rate curve, in percent of the maximum.
pub(crate) const CURVE_PERCENT: RangeInclusive<u32> = 1..=1000;
/// Equal volumes of a block load.
pub(crate) const VOLUMES_PER_KIND: RangeInclusive<u64> = 1..=256;
/// Cycles of a backup and its restore in a run.
pub(crate) const BACKUP_CYCLES: RangeInclusive<u64> = 1..=1000;
/// What a backup may be limited to, bytes per second. pg_basebackup takes 32 KiB to 1 GiB; mariadb-backup counts reads
/// of 1 MiB.
pub(crate) const BACKUP_RATE: RangeInclusive<u64> = 1 << 20..=1 << 30;
/// Databases of a study under test at once.
pub(crate) const DATABASES: RangeInclusive<u64> = 1..=64;
/// Percentage of random characters in texts.
pub(crate) const ENTROPY: RangeInclusive<u64> = 0..=100;
/// Multiplier of keying and think times.
pub(crate) const KEY_THINK: RangeInclusive<f64> = 0.0..=100.0;
/// Transactions per second of an open loop. Zero is excluded by a check of its own.
pub(crate) const RATE_PER_SECOND: RangeInclusive<f64> = 0.001..=10_000_000.0;
/// Weight of a type of transaction.
pub(crate) const WEIGHT: RangeInclusive<u64> = 0..=1_000_000;
/// How near a search comes to the highest rate, as a share of it.
pub(crate) const RESOLUTION: RangeInclusive<f64> = 0.005..=1.0;
/// Measured time at each rate of a search: a quantile needs transactions.
pub(crate) const SEARCH_MEASURE: RangeInclusive<Nanos> =
    Nanos::from_secs(1)..=Nanos::from_secs(3600);
/// Unmeasured time at each rate of a search.
pub(crate) const SEARCH_SETTLE: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(3600);
/// Virtual users of one rung.
pub(crate) const USERS: RangeInclusive<u32> = 1..=100_000;
/// What a network can add to a round trip.
pub(crate) const ROUND_TRIP: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(10);
/// What a network can carry in each direction.
pub(crate) const NETWORK_BYTES_PER_SECOND: RangeInclusive<u64> = 10_000..=1_000_000_000_000;
/// Rungs of a ladder.
pub(crate) const RUNGS_MAX: usize = 64;
/// Variants of a study with axes: designs times combinations of points.
pub(crate) const VARIANTS_MAX: usize = 64;
/// Repeats.
pub(crate) const REPEATS: RangeInclusive<u32> = 1..=1000;
/// How narrow an interval can be asked for, in thousandths of the ratio.
pub(crate) const PRECISION_PERMILLE: RangeInclusive<u32> = 5..=1000;
/// Measured window: below, a checkpoint or a hiccup decides the result.
pub(crate) const MEASURE: RangeInclusive<Nanos> =
    Nanos::from_secs(5)..=Nanos::from_secs(7 * 86_400);
/// Causal check: below, a resource is slowed too briefly to see what follows.
pub(crate) const CAUSAL_CHECK: RangeInclusive<Nanos> =
    Nanos::from_secs(10)..=Nanos::from_secs(3600);
/// Length of a causal check that only `what-if` asks for.
pub(crate) const CAUSAL_CHECK_LENGTH: Nanos = Nanos::from_secs(20);
/// Phases that are not measured.
pub(crate) const UNMEASURED: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(7 * 86_400);
/// Statement timeout.
pub(crate) const STATEMENT_TIMEOUT: RangeInclusive<Nanos> =
    Nanos::from_millis(100)..=Nanos::from_secs(3600);
/// Least volume that mkfs.ext4 makes with a journal.
pub(crate) const EXT4_MIN: Bytes = Bytes::from_mib(64);
/// Least volume that mkfs.xfs makes.
pub(crate) const XFS_MIN: Bytes = Bytes::from_mib(300);
/// What a torn write stores is a multiple of a sector.
pub const TORN_UNIT: Bytes = Bytes(512);
/// Bytes that a torn write can store.
pub const TORN_KEEP: RangeInclusive<u64> = 512..=65_024;
/// Longest name that becomes part of a file name.
pub(crate) const NAME_LENGTH_MAX: usize = 64;
