//! An engine of a plan as JSON. A design's own values are named with the design.

use serde_json::{Value, json};

use crate::plan::EnginePlan;

/// An engine.
pub(super) fn engine(engine: &EnginePlan) -> Value {
    let mut json = json!({
        "kind": engine.kind.as_str(),
        "version": engine.version,
        "settings": engine.settings,
        "memory_limit_bytes": engine.memory_limit.map(|limit| limit.0),
        "cpus": engine.whole_cpus(),
        "server_bin": engine.server_bin,
    });
    if engine.core_speed != 1.0 {
        json["core_speed"] = engine.core_speed.into();
    }
    json
}
