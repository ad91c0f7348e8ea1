//! An engine of a plan as JSON. A design's own values are named with the design.

use serde_json::{Value, json};

use crate::plan::EnginePlan;

/// An engine.
pub(super) fn engine(engine: &EnginePlan) -> Value {
    json!({
        "kind": engine.kind.as_str(),
        "version": engine.version,
        "settings": engine.settings,
        "memory_limit_bytes": engine.memory_limit.map(|limit| limit.0),
        "cpus": engine.cpus,
        "server_bin": engine.server_bin,
    })
}
