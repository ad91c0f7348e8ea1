//! `[laptop]`: what is smaller in a run on a laptop.
//!
//! Only the form is read here. What the keys mean is decided by reading the study with the values in their places
//! ([`crate::laptop`]), as for the points of an axis.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::entry::Entry;
use crate::plan::Scale;
use crate::reader::{Item, Keys, Written};
use crate::report::Report;
use crate::section::Table;

/// A scale, what it changes in words, and keys of the study with their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laptop {
    /// Similarity scale of everything.
    pub scale: Entry<Scale>,
    /// What differs from the publication at this size alone, one sentence each.
    pub deviations: Entry<Vec<String>>,
    /// Dotted paths of keys with their values, at the size of the study: the scale applies to them, too.
    pub set: Vec<(String, Written)>,
}

impl schemars::JsonSchema for Laptop {
    fn schema_name() -> Cow<'static, str> {
        "Laptop".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "What `--laptop` changes: a similarity scale, and keys of the study with their values.",
            "patternProperties": {
                "^scale$": {
                    "type": "string",
                    "description": "Similarity scale: cores, users, data, memory and rate caps divided by k.",
                    "pattern": r"^1/[1-9][0-9]*$",
                },
                "^deviations$": {
                    "type": "array",
                    "description": "What differs from the publication at this size alone, one sentence each.",
                    "items": { "type": "string" },
                },
            },
            "additionalProperties": { "type": ["string", "number", "boolean", "array", "object"] },
        })
    }
}

impl Table for Laptop {
    fn read(keys: &mut Keys<'_, '_>) -> Laptop {
        let mut laptop = Laptop::default();
        keys.take_each(|name, _, item, report| match name {
            "scale" => laptop.scale = scale(item, report),
            "deviations" => laptop.deviations = deviations(item, report),
            _ => laptop.set.extend(item.leaves(name.to_string(), report)),
        });
        laptop
    }
}

fn deviations(item: &Item<'_>, report: &mut Report) -> Entry<Vec<String>> {
    match item.list(report, "sentences", |item, report| item.text(report)) {
        Some(value) => Entry::Given { value, span: item.span.clone() },
        None => Entry::Refused,
    }
}

fn scale(item: &Item<'_>, report: &mut Report) -> Entry<Scale> {
    let Some(text) = item.text(report) else { return Entry::Refused };
    match text.parse() {
        Ok(value) => Entry::Given { value, span: item.span.clone() },
        Err(_) => {
            report.at(
                &item.span,
                "wrong-unit",
                format!("`{text}` is not a scale (`{}`)", item.path),
                "a scale is 1/k with a whole number k",
                "write for example scale = \"1/16\"",
            );
            Entry::Refused
        }
    }
}
