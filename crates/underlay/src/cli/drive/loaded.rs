//! What is printed of a load, whatever was loaded.

use serde_json::{Map, Value, json};
use underlay_core::Nanos;
use underlay_database::load_report::LoadReport;

/// How long it took, in all and by stages.
pub(super) fn in_words(report: &LoadReport) -> String {
    format!(
        "{} (rows {}, keys {}, settling {})",
        Nanos::from(report.duration()),
        Nanos::from(report.rows_duration),
        Nanos::from(report.keys_duration),
        Nanos::from(report.settle_duration),
    )
}

/// The members of every load, after those of `own`, an object that says what was loaded.
pub(super) fn json(report: &LoadReport, own: Value) -> Value {
    let mut members = match own {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let common = [
        ("rows", json!(report.rows)),
        ("bytes", json!(report.bytes)),
        ("rows_ns", json!(Nanos::from(report.rows_duration).0)),
        ("keys_ns", json!(Nanos::from(report.keys_duration).0)),
        ("settle_ns", json!(Nanos::from(report.settle_duration).0)),
    ];
    members.extend(common.map(|(name, value)| (name.to_string(), value)));
    members.into()
}
