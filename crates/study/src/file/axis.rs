//! `[[axis]]`: what a study varies in addition to designs and users.
//!
//! Only the form is read here. What the keys mean is decided by reading the study once per point, with the point's values
//! in their places ([`crate::axis`]).

use schemars::{Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

use crate::entry::{Entry, Section};
use crate::reader::{Keys, Written};
use crate::section::*;

section! {
    /// Something that is varied, and therefore asked about: one key with its `values`, or `points` that
    /// set several keys together. Several axes are combined.
    pub(crate) struct Axis as "Axis" {
        /// Name, unique in the study. The last part of `key`, when left out.
        "name" name: Entry<String> = One(text());
        /// The key of the study that takes the values: `engine.memory-limit`. Below `design` the name of
        /// a design may follow; without one, all designs are meant.
        "key" key: Entry<String> = One(text());
        /// The values of the key, in the order in which they are shown. The first one is what the others are
        /// compared with.
        "values" values: Entry<Vec<Written>> = One(list("values of the key", written()));
        /// Instead of `key` and `values`: named points.
        "points" points: Entry<Vec<Section<Point>>> = tables::<Point>();
    }
    written_for {
        "path" => "key", "set" => "points", "value" => "values",
    }
}

section! {
    /// One point of an axis.
    pub(crate) struct Point as "AxisPoint" {
        /// Name, unique on the axis.
        "name" name: Entry<String> = One(text());
        /// Keys of the study with their values at this point. None: the study as it is.
        "set" set: Section<Changes> = table::<Changes>();
    }
    limits { "required": ["name"] }
}

/// Keys of the study, by their dotted paths, with their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(pub Vec<(String, Written)>);

impl schemars::JsonSchema for Changes {
    fn schema_name() -> Cow<'static, str> {
        "Changes".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Keys of the study, by their dotted paths, with their values.",
            "additionalProperties": { "type": ["string", "number", "boolean", "array", "object"] },
        })
    }
}

impl Table for Changes {
    fn read(keys: &mut Keys<'_, '_>) -> Changes {
        let changes = keys.take_each(|name, _, item, report| item.leaves(name.to_string(), report));
        Changes(changes.into_iter().flatten().collect())
    }
}

/// A text, a number or a boolean, as it is written.
fn written() -> impl Kind<Value = Written> {
    kind(
        |item, report| item.written(report),
        |_| json_schema!({ "type": ["string", "number", "boolean"] }),
    )
}
