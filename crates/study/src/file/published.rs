//! `[[published]]`: results that others printed.

use schemars::JsonSchema;

use crate::entry::Entry;
use crate::reader::Keys;

/// A series of published results for one design.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["design", "metric", "users", "values", "source"]))]
pub(crate) struct Published {
    /// Name of the design of this study that it belongs to.
    pub design: Entry<String>,
    /// `nopm`, `tpm`, `tpm-per-user` or `cpu-idle` (percent).
    pub metric: Entry<String>,
    /// Number of users of each value, at the size of the publication.
    pub users: Entry<Vec<u32>>,
    /// The values, one per number of users.
    pub values: Entry<Vec<f64>>,
    /// Document and figure.
    pub source: Entry<String>,
    /// What to know before comparing.
    pub note: Entry<String>,
}

/// Reads one series.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Published {
    Published {
        design: keys.take("design", |item, report| item.text(report)),
        metric: keys.take("metric", |item, report| item.text(report)),
        users: keys.take("users", |item, report| {
            item.list(report, "numbers of users", |item, report| {
                item.integer(report, 1..=u64::from(u32::MAX)).map(|number| number as u32)
            })
        }),
        values: keys.take("values", |item, report| {
            item.list(report, "numbers", |item, report| item.number(report, 0.0..=1e15))
        }),
        source: keys.take("source", |item, report| item.text(report)),
        note: keys.take("note", |item, report| item.text(report)),
    }
}
