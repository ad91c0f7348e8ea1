//! `[[published]]`: results that others printed.

use crate::entry::{Entry, Section};
use crate::file::axis::Changes;
use crate::section::*;
use schemars::json_schema;

section! {
    /// A series of published results for one design, at one point of every axis.
    pub(crate) struct Published as "Published" {
        /// Name of the design of this study that it belongs to. The only one, when left out.
        "design" design: Entry<String> = One(text());
        /// The point of each axis, by its name: `at = { tuning = "explicit" }`.
        "at" at: Section<Changes> = table::<Changes>();
        /// One of several databases, by its own name: `oltp-3`. All of them together, when left out.
        "database" database: Entry<String> = One(text());
        /// What was measured: `result` is what the workload counts (also written `nopm`), `p95` the response
        /// time of that, `volumes.data.read-latency` the latency of a volume.
        "metric" metric: Entry<String> = One(text());
        /// Unit of the values: `ms`, `%` or `MB/s`. That of the record, when left out.
        "unit" unit: Entry<String> = One(text());
        /// Number of users of each value, at the size of the publication. A job has none.
        "users" users: Entry<Vec<u32>> = One(list("numbers of users", count_from_one()));
        /// The values, one per number of users.
        "values" values: Entry<Vec<f64>> = One(list("numbers", number(0.0..=1e15)));
        /// Whether agreement with it says nothing: the model was fitted to it, or the study sets it. Medians of errors
        /// leave out ratios with such a value on either side. `note` says why.
        "given" given: Entry<bool> = One(boolean());
        /// Id of the experiment, such as `V6`.
        "experiment" experiment: Entry<String> = One(text());
        /// Document and figure.
        "source" source: Entry<String> = One(text());
        /// What to know before comparing.
        "note" note: Entry<String> = One(text());
    }
    limits { "required": ["metric", "values", "source"] }
}

/// Whole numbers from 1.
fn count_from_one() -> impl Kind<Value = u32> {
    kind(
        |item, report| item.integer(report, 1..=u64::from(u32::MAX)).map(|number| number as u32),
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
    )
}
