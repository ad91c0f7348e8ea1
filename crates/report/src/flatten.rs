//! JSON documents as lists of dotted paths and plain texts, for settings and comparisons.

use serde_json::Value;

/// The leaves of a document: (dotted path, text), in the order of the document. Arrays of plain values are one
/// leaf.
pub(crate) fn leaves(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(value, String::new(), &mut found);
    found
}

/// A value without the quotes of JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn collect(value: &Value, path: String, found: &mut Vec<(String, String)>) {
    let below = |key: &str| {
        if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
    };
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                collect(member, below(key), found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (position, item) in items.iter().enumerate() {
                // Named items are matched by name, not by position; except devices, whose names are
                // chosen freely: those of two designs correspond by position.
                let named = item["name"].as_str().filter(|_| !path.ends_with("devices"));
                let key = named.map_or(position.to_string(), str::to_string);
                collect(item, below(&key), found);
            }
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(plain).collect();
            found.push((path, texts.join(", ")));
        }
        Value::Null => {}
        other => found.push((path, plain(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::leaves;
    use serde_json::json;

    #[test]
    fn paths_are_dotted_and_named() {
        let document = json!({
            "a": { "b": 1, "c": "text" },
            "list": [1, 2],
            "volumes": [{ "name": "wal", "size": 3 }, { "size": 4 }],
            "devices": [{ "name": "nvme" }],
            "nothing": null,
        });
        let found: Vec<String> =
            leaves(&document).into_iter().map(|(path, text)| format!("{path}={text}")).collect();
        let expected = [
            "a.b=1",
            "a.c=text",
            "devices.0.name=nvme",
            "list=1, 2",
            "volumes.wal.name=wal",
            "volumes.wal.size=3",
            "volumes.1.size=4",
        ];
        assert_eq!(found, expected);
    }
}
