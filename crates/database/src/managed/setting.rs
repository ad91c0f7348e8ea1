//! Settings of a server: what a study asked for, and what is in force.

use std::collections::BTreeMap;
use std::fmt;

/// A setting of the study that the server does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Its name.
    pub name: String,
    /// As the study wrote it.
    pub value: String,
    /// Why not, with the server's hint where it has one.
    pub reason: String,
}

/// A setting as the running server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingInForce {
    /// Its name.
    pub name: String,
    /// As `SHOW` prints it.
    pub value: String,
    /// `configuration file`, `command line`, `override`, ... in the engine's words.
    pub source: String,
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} = {}`: {}", self.name, self.value, self.reason)
    }
}

/// All layers in one, by canonical name; later layers win.
pub(crate) fn merged<'a>(
    layers: &[&'a BTreeMap<String, String>],
    canonical: fn(&str) -> String,
) -> BTreeMap<String, &'a str> {
    let mut merged = BTreeMap::new();
    for layer in layers {
        for (name, value) in *layer {
            merged.insert(canonical(name), value.as_str());
        }
    }
    merged
}

/// What needs no server program: names that are Underlay's alone (`reserved`, with the reason), malformed or given twice.
pub(crate) fn own_checks(
    settings: &BTreeMap<String, String>,
    reserved: &[(&str, &str)],
    canonical: fn(&str) -> String,
) -> Vec<SettingProblem> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, value) in settings {
        let lower = canonical(name);
        let owned = reserved.iter().find(|(reserved, _)| *reserved == lower);
        if let Some((_, why)) = owned {
            problems.push(problem(name, value, &format!("a study cannot set this: {why}")));
        } else if !is_name(name) {
            problems.push(problem(name, value, "this is not the name of a setting"));
        } else if value.contains(['\n', '\r', '\0']) {
            problems.push(problem(name, value, "a value is one line"));
        } else if let Some(other) = seen.insert(lower, name) {
            problems.push(problem(name, value, &format!("it is already set as `{other}`")));
        }
    }
    problems
}

fn is_name(name: &str) -> bool {
    name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'))
}

/// One problem.
pub(crate) fn problem(name: &str, value: &str, reason: &str) -> SettingProblem {
    SettingProblem { name: name.to_string(), value: value.to_string(), reason: reason.to_string() }
}
