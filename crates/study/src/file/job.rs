//! `[workload.batch]` and `[workload.warehouse]`: jobs, which run until they are done.

use schemars::JsonSchema;
use underlay_workload::batch::Mode;

use crate::entry::Entry;
use crate::limits::{BATCH_ROWS, JOB_SESSIONS, STREAMS, WAREHOUSE_SCALE};
use crate::reader::Keys;
use crate::words::Word;

/// Insertion of many rows into one table: a job.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["rows"]))]
pub(crate) struct Batch {
    /// Rows to insert.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub rows: Entry<u64>,
    /// Their transactions: `implicit` (each row its own), `explicit` (one for all rows of a session) or `bulk` (`COPY` or
    /// `LOAD DATA`).
    #[schemars(with = "Word<Mode>")]
    pub mode: Entry<Mode>,
    /// Sessions that insert side by side, each a part of the rows.
    #[schemars(range(min = 1, max = 1024))]
    pub sessions: Entry<u64>,
}

/// Decision support, derived from TPC-H: a job. A power run, then a throughput run.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["scale"]))]
pub(crate) struct Warehouse {
    /// Scale factor, a multiple of 0.01; 1 is about 1 GB of rows.
    #[schemars(range(min = 0.01, max = 1000))]
    pub scale: Entry<f64>,
    /// Query streams of the throughput run; 0 makes none. As many as the specification wants, when left out.
    #[schemars(range(min = 0, max = 100))]
    pub streams: Entry<u64>,
}

/// Reads a batch insertion.
pub(super) fn read_batch(keys: &mut Keys<'_, '_>) -> Batch {
    keys.alias("users", "sessions");
    Batch {
        rows: keys.take("rows", |item, report| item.integer(report, BATCH_ROWS)),
        mode: keys.take("mode", |item, report| item.word(report)),
        sessions: keys.take("sessions", |item, report| item.integer(report, JOB_SESSIONS)),
    }
}

/// Reads a warehouse.
pub(super) fn read_warehouse(keys: &mut Keys<'_, '_>) -> Warehouse {
    keys.alias("users", "streams");
    keys.alias("scale-factor", "scale");
    Warehouse {
        scale: keys.take("scale", |item, report| item.number(report, WAREHOUSE_SCALE)),
        streams: keys.take("streams", |item, report| item.integer(report, STREAMS)),
    }
}
