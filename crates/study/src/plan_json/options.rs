//! The options of a plan as JSON, and back.

use serde_json::{Map, Value, json};
use underlay_core::Nanos;

use crate::options::PlanOptions;
use crate::plan::Scale;

use super::RecordedPlanError;

pub(super) fn options_json(options: &PlanOptions) -> Value {
    json!({
        "scale": options.scale.map(|scale| scale.to_string()),
        "repeats": options.repeats,
        "users": options.users,
        "warm_up_ns": options.warm_up.map(|time| time.0),
        "ramp_up_ns": options.ramp_up.map(|time| time.0),
        "measure_ns": options.measure.map(|time| time.0),
        "seed": options.seed,
        "designs": options.designs,
        "server_bin": options.server_bin,
        "out": options.out,
    })
}

pub(super) fn options_from(options: &Map<String, Value>) -> Result<PlanOptions, RecordedPlanError> {
    let time = |key| Ok(number(options, key)?.map(Nanos));
    let small =
        |number: u64, key| u32::try_from(number).map_err(|_| RecordedPlanError::Damaged(key));
    let scale = match text(options, "scale")? {
        None => None,
        Some(scale) => {
            Some(scale.parse::<Scale>().map_err(|_| RecordedPlanError::Damaged("options.scale"))?)
        }
    };
    let repeats = number(options, "repeats")?;
    let users = list(options, "users")?
        .map(|users| {
            let user = |user: &Value| {
                let number = user.as_u64().ok_or(RecordedPlanError::Damaged("options.users"))?;
                small(number, "options.users")
            };
            users.iter().map(user).collect::<Result<Vec<u32>, _>>()
        })
        .transpose()?;
    let designs = list(options, "designs")?
        .map(|names| {
            let name = |name: &Value| name.as_str().map(str::to_string);
            let names: Option<Vec<String>> = names.iter().map(name).collect();
            names.ok_or(RecordedPlanError::Damaged("options.designs"))
        })
        .transpose()?;
    Ok(PlanOptions {
        scale,
        repeats: repeats.map(|number| small(number, "options.repeats")).transpose()?,
        users,
        warm_up: time("warm_up_ns")?,
        ramp_up: time("ramp_up_ns")?,
        measure: time("measure_ns")?,
        seed: number(options, "seed")?,
        designs,
        server_bin: text(options, "server_bin")?.map(Into::into),
        out: text(options, "out")?.map(Into::into),
    })
}

pub(super) fn number(
    options: &Map<String, Value>,
    key: &'static str,
) -> Result<Option<u64>, RecordedPlanError> {
    optional(options, key, Value::as_u64)
}

pub(super) fn text<'v>(
    options: &'v Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'v str>, RecordedPlanError> {
    optional(options, key, Value::as_str)
}

pub(super) fn list<'v>(
    options: &'v Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'v Vec<Value>>, RecordedPlanError> {
    optional(options, key, Value::as_array)
}

/// A value that may be null or absent, but not of another type.
pub(super) fn optional<'v, T>(
    options: &'v Map<String, Value>,
    key: &'static str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Result<Option<T>, RecordedPlanError> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or(RecordedPlanError::Damaged(key)),
    }
}

/// The values of a TOML text that is known to be right.
pub(super) fn values_of(text: &str) -> Value {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or(Value::Null)
}
