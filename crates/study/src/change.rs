//! A study with some of its values replaced: on the tables of its TOML text, so that every key of the format can be set and
//! every check finds the value where an axis, or `[laptop]`, has it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::reader::Written;
use crate::report::Report;

/// Who sets keys of a study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setter {
    /// The table that has the values.
    pub table: &'static str,
    /// How messages call it.
    pub called: &'static str,
}

/// A key that is set.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Dotted path of the key.
    pub path: String,
    /// The bytes of the path in the file, or of its value.
    pub path_span: Range<usize>,
    /// Its value.
    pub value: Written,
}

/// The study with these changes made. What cannot be changed is reported.
pub(crate) fn changed<'t>(
    document: &DeTable<'t>,
    (setter, changes): (Setter, &[&Change]),
    report: &mut Report,
) -> DeTable<'t> {
    let mut values = BTreeMap::new();
    if let Some(table) = document.get(setter.table) {
        collect(table, &mut values);
    }
    let mut changed = document.clone();
    for change in changes {
        // Every value that was read has its own place in the text.
        let Some(value) = values.get(&change.value.span.start) else { continue };
        if let Err(at) = put(&mut changed, &change.path, (&change.path_span, value)) {
            report.at(
                &change.path_span,
                "cannot-vary",
                format!("{} cannot set `{}`", setter.called, change.path),
                format!("`{at}` is a value, not a table"),
                "name a key of a table of the study, such as engine.memory-limit",
            );
        }
    }
    changed
}

/// Every value below, by where it begins.
fn collect<'d, 't>(
    value: &'d Spanned<DeValue<'t>>,
    found: &mut BTreeMap<usize, &'d Spanned<DeValue<'t>>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => table.iter().for_each(|(_, inner)| collect(inner, found)),
        DeValue::Array(array) => {
            array.iter().for_each(|inner| collect(inner, found));
            // Also whole, for keys that hold a list; its first element begins behind its bracket.
            found.insert(value.span().start, value);
        }
        _ => {
            found.insert(value.span().start, value);
        }
    }
}

/// Puts a value at a dotted path. `Err` with what is in the way.
fn put<'t>(
    table: &mut DeTable<'t>,
    path: &str,
    (span, value): (&Range<usize>, &Spanned<DeValue<'t>>),
) -> Result<(), String> {
    let Some((name, rest)) = path.split_once('.') else {
        // The key is where its value is, which inserting alone would not change.
        table.remove(path);
        table.insert(key(span, path), value.clone());
        return Ok(());
    };
    if !table.contains_key(name) {
        let empty = DeValue::Table(DeTable::new());
        table.insert(key(span, name), Spanned::new(span.clone(), empty));
    }
    let Some(inner) = table.get_mut(name) else { return Err(name.to_string()) };
    match inner.get_mut() {
        // Names of server settings may contain dots.
        DeValue::Table(settings) if name == "settings" => {
            settings.remove(rest);
            settings.insert(key(span, rest), value.clone());
            Ok(())
        }
        DeValue::Table(inner) => {
            put(inner, rest, (span, value)).map_err(|at| format!("{name}.{at}"))
        }
        DeValue::Array(elements) => {
            let named = elements.iter().position(|element| is_named(element, rest).is_some());
            for (position, element) in elements.iter_mut().enumerate() {
                let below = match named {
                    Some(wanted) if wanted != position => continue,
                    Some(_) => is_named(element, rest).unwrap_or_default().to_string(),
                    None => rest.to_string(),
                };
                let DeValue::Table(inner) = element.get_mut() else {
                    return Err(name.to_string());
                };
                put(inner, &below, (span, value)).map_err(|at| format!("{name}.{at}"))?;
            }
            Ok(())
        }
        _ => Err(name.to_string()),
    }
}

/// What is left of a path that begins with the name of this table, or of the built-in design that it uses.
fn is_named<'p>(element: &Spanned<DeValue<'_>>, path: &'p str) -> Option<&'p str> {
    let DeValue::Table(table) = element.get_ref() else { return None };
    let name = table.get("name").or_else(|| table.get("use"))?;
    let DeValue::String(name) = name.get_ref() else { return None };
    path.strip_prefix(&**name)?.strip_prefix('.')
}

fn key<'t>(span: &Range<usize>, name: &str) -> Spanned<Cow<'t, str>> {
    Spanned::new(span.clone(), Cow::Owned(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{Change, Setter, changed};
    use crate::reader::Written;
    use crate::report::Report;
    use toml::de::{DeTable, DeValue};

    const STUDY: &str = r#"
question = "?"
[engine]
cpus = 2
[[design]]
name = "a.b"
[[design]]
use = "null"
[[axis]]
values = [4]
"#;

    fn text_of(table: &DeTable<'_>, path: &[&str]) -> Option<String> {
        let (name, rest) = path.split_first()?;
        let value = table.get(*name)?.get_ref();
        match (value, rest) {
            (DeValue::Table(inner), [_, ..]) => text_of(inner, rest),
            (DeValue::Array(array), [position, rest @ ..]) => {
                let element = array.get(position.parse::<usize>().ok()?)?;
                let DeValue::Table(inner) = element.get_ref() else { return None };
                text_of(inner, rest)
            }
            (DeValue::Integer(integer), []) => Some(integer.as_str().to_string()),
            _ => None,
        }
    }

    fn set(path: &str) -> (Report, impl Fn(&[&str]) -> Option<String>) {
        let document = DeTable::parse(STUDY).expect("TOML");
        let start = STUDY.find("4]").expect("the value");
        let value = Written { text: "4".to_string(), span: start..start + 1 };
        let path_span = value.span.clone();
        let change = Change { path: path.to_string(), path_span, value };
        let mut report = Report::default();
        let setter = Setter { table: "axis", called: "an axis" };
        let study = changed(document.get_ref(), (setter, &[&change]), &mut report);
        (report, move |path: &[&str]| text_of(&study, path))
    }

    #[test]
    fn values_are_put_into_tables_that_are_there_or_not() {
        let (report, at) = set("engine.cpus");
        assert!(report.is_empty());
        assert_eq!(at(&["engine", "cpus"]).as_deref(), Some("4"));
        let (_, at) = set("workload.tpcc.warehouses");
        assert_eq!(at(&["workload", "tpcc", "warehouses"]).as_deref(), Some("4"));
        assert_eq!(at(&["engine", "cpus"]).as_deref(), Some("2"));
        let (_, at) = set("engine.settings.auto_explain.log_level");
        assert_eq!(at(&["engine", "settings", "auto_explain.log_level"]).as_deref(), Some("4"));
    }

    #[test]
    fn an_element_is_meant_by_its_name_or_all_are() {
        let (_, at) = set("design.a.b.engine.cpus");
        assert_eq!(at(&["design", "0", "engine", "cpus"]).as_deref(), Some("4"));
        assert_eq!(at(&["design", "1", "engine", "cpus"]), None);
        let (_, at) = set("design.null.engine.cpus");
        assert_eq!(at(&["design", "1", "engine", "cpus"]).as_deref(), Some("4"));
        let (_, at) = set("design.engine.cpus");
        assert_eq!(at(&["design", "0", "engine", "cpus"]).as_deref(), Some("4"));
        assert_eq!(at(&["design", "1", "engine", "cpus"]).as_deref(), Some("4"));
    }

    #[test]
    fn a_value_is_no_table() {
        let (report, at) = set("engine.cpus.of.host");
        assert_eq!(report.into_drafts()[0].code, "cannot-vary");
        assert_eq!(at(&["engine", "cpus"]).as_deref(), Some("2"));
    }
}
