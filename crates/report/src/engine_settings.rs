//! The settings of an engine that were in force, from the document of a run.

use serde_json::Value;

use crate::flatten::plain;

/// Engine settings in force: name and value.
pub(crate) fn engine_settings(content: &Value) -> Vec<(String, String)> {
    let Some(members) = content.as_object() else { return Vec::new() };
    let value = |setting: &Value| match setting {
        Value::Object(fields) => fields.get("value").map(plain).unwrap_or_default(),
        other => plain(other),
    };
    members.iter().map(|(name, setting)| (name.clone(), value(setting))).collect()
}
