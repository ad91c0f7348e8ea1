//! Circles of imports: files that reach each other. Which file imports which is found elsewhere.

use super::paths::Imports;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Files each of which reaches all the others.
pub struct Circle<'i> {
    pub files: Vec<&'i str>,
    imports: &'i Imports,
}

pub fn circles(imports: &Imports) -> Vec<Circle<'_>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reached(imports, file))).collect();
    let circle = |file: &&str| -> Vec<&str> {
        reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect()
    };
    let circles: BTreeSet<_> = reached.keys().map(circle).collect();
    let circles = circles.into_iter().filter(|files| !files.is_empty());
    circles.map(|files| Circle { files, imports }).collect()
}

fn reached<'i>(imports: &'i Imports, file: &str) -> BTreeSet<&'i str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        for to in imports[file].keys() {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.files.join(", "))?;
        for from in &self.files {
            for (to, paths) in &self.imports[*from] {
                if self.files.contains(&to.as_str()) {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    write!(f, "\n    {from} imports from {to}: {}", paths.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
