//! How a time and a size stand in the JSON schema: texts with a unit.
//!
//! It deliberately reads none: the reader does.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Stands for a time in a schema.
pub(crate) struct Time;

/// Stands for a size in a schema.
pub(crate) struct Size;

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A time with its unit: ns, us, ms, s, min, h.",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|ms|s|min|h)\s*$",
            "examples": ["30s", "1.5ms"],
        })
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A size with its unit: B, KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000).",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)\s*$",
            "examples": ["512MiB", "1.92TB"],
        })
    }
}
