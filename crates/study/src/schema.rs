//! The JSON schema of study files and device profiles, generated from the declarations in [`crate::file`].
//!
//! For editors: completion and descriptions while typing. The reader does not use it; tests hold the
//! two together.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::file::{Profile, Study};

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
