//! TOML texts that are part of a plan, as JSON values.

use serde_json::Value;

/// The values of a TOML text that is known to be right.
pub(super) fn values_of(text: &str) -> Value {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or(Value::Null)
}
