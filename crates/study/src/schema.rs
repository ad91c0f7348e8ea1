//! The JSON schema of study files and device profiles, generated from the declarations in [`crate::file`].
//!
//! For editors: completion and descriptions while typing. The reader does not use it; tests hold the
//! two together.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::Value;

use crate::file::{Profile, Study};

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

/// The JSON schema (2020-12) of a study file.
pub fn json_schema() -> Value {
    of::<Study>("Underlay study")
}

/// The JSON schema (2020-12) of a device profile file.
pub fn profile_json_schema() -> Value {
    of::<Profile>("Underlay device profile")
}

fn of<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    schema["title"] = title.into();
    schema
}
