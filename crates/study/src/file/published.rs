//! `[[published]]`: results that others printed.

use crate::entry::Entry;
use crate::section::*;
use schemars::json_schema;

section! {
    /// A series of published results for one design.
    pub(crate) struct Published as "Published" {
        /// Name of the design of this study that it belongs to.
        "design" design: Entry<String> = One(text());
        /// `nopm`, `tpm`, `tpm-per-user` or `cpu-idle` (percent).
        "metric" metric: Entry<String> = One(text());
        /// Number of users of each value, at the size of the publication.
        "users" users: Entry<Vec<u32>> = One(list("numbers of users", count_from_one()));
        /// The values, one per number of users.
        "values" values: Entry<Vec<f64>> = One(list("numbers", number(0.0..=1e15)));
        /// Document and figure.
        "source" source: Entry<String> = One(text());
        /// What to know before comparing.
        "note" note: Entry<String> = One(text());
    }
    limits { "required": ["design", "metric", "users", "values", "source"] }
}

/// Whole numbers from 1.
fn count_from_one() -> impl Kind<Value = u32> {
    kind(
        |item, report| item.integer(report, 1..=u64::from(u32::MAX)).map(|number| number as u32),
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
    )
}
