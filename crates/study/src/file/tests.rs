//! Reader and schema describe the same format: what one knows, the other accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::parse::read_text;
use crate::problem::Draft;
use crate::reader::Keys;
use crate::report::Report;
use crate::schema::{json_schema, profile_json_schema};
use crate::section::Table as _;

/// A table of the format: its place as keys, `[]` = an element of a list, and what the schema says.
struct Table {
    place: Vec<String>,
    keys: BTreeSet<String>,
}

/// Every table that the schema describes, from the top down.
fn tables(root: &Value) -> Vec<Table> {
    let mut found = Vec::new();
    collect(root, root, &mut Vec::new(), &mut found);
    found
}

fn collect(root: &Value, schema: &Value, place: &mut Vec<String>, found: &mut Vec<Table>) {
    let schema = followed(root, schema);
    if let Some(items) = schema.get("items") {
        place.push("[]".to_string());
        collect(root, items, place, found);
        place.pop();
    }
    // Tables with free keys, and a table without keys, have no properties.
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    assert_eq!(schema["additionalProperties"], false, "{place:?} accepts anything");
    found.push(Table { place: place.clone(), keys: properties.keys().cloned().collect() });
    for (key, property) in properties {
        place.push(key.clone());
        collect(root, property, place, found);
        place.pop();
    }
}

fn followed<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema.get("$ref").and_then(Value::as_str) {
        None => schema,
        Some(reference) => {
            let path = reference.strip_prefix('#').expect("a local reference");
            followed(root, root.pointer(path).expect("a definition"))
        }
    }
}

/// A text with `key = 1` at that place.
fn text_with(place: &[String], key: &str) -> String {
    let mut value = format!("{{ {key} = 1 }}");
    for step in place.iter().rev() {
        value = if step == "[]" { format!("[{value}]") } else { format!("{{ {step} = {value} }}") };
    }
    // The outermost braces are those of the file itself.
    value.strip_prefix('{').and_then(|v| v.strip_suffix('}')).expect("braces").trim().to_string()
}

fn unknown_keys<T>(text: &str, read: fn(&mut Keys<'_, '_>) -> T) -> Vec<Draft> {
    let mut report = Report::default();
    read_text(text, &mut report, read);
    report.into_drafts().into_iter().filter(|draft| draft.code == "unknown-key").collect()
}

fn hold_together<T>(schema: &Value, read: fn(&mut Keys<'_, '_>) -> T, tables_min: usize) {
    let tables = tables(schema);
    assert!(tables.len() >= tables_min, "only {} tables", tables.len());
    for table in tables {
        for key in &table.keys {
            let text = text_with(&table.place, key);
            let unknown = unknown_keys(&text, read);
            assert!(unknown.is_empty(), "the reader does not know `{text}`: {unknown:?}");
        }
        // The reader names the keys it knows when it meets one that it does not.
        let text = text_with(&table.place, "no-such-key-anywhere");
        let unknown = unknown_keys(&text, read);
        assert_eq!(unknown.len(), 1, "{text}");
        let known: BTreeSet<String> =
            unknown[0].help.split('`').skip(1).step_by(2).map(str::to_string).collect();
        assert_eq!(known, table.keys, "reader and schema differ at {:?}", table.place);
    }
}

#[test]
fn study_reader_and_schema_know_the_same_keys() {
    hold_together(&json_schema(), super::Study::read, 20);
}

#[test]
fn profile_reader_and_schema_know_the_same_keys() {
    hold_together(&profile_json_schema(), super::Profile::read, 5);
}

#[test]
fn every_key_has_a_description() {
    fn check(schema: &Value) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, property) in properties {
                assert!(property.get("description").is_some(), "{key} has no description");
            }
        }
        match schema {
            Value::Object(object) => object.values().for_each(check),
            Value::Array(elements) => elements.iter().for_each(check),
            _ => {}
        }
    }
    check(&json_schema());
    check(&profile_json_schema());
}

#[test]
fn the_reference_mentions_every_key() {
    let profile_keys: BTreeSet<String> =
        tables(&profile_json_schema()).into_iter().flat_map(|table| table.keys).collect();
    for table in tables(&json_schema()) {
        for key in table.keys {
            let mentioned = crate::DEFAULTS.contains(&key) || profile_keys.contains(&key);
            assert!(mentioned, "defaults.toml does not mention `{key}` of {:?}", table.place);
        }
    }
}
