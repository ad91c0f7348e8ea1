//! The page's types: `web/src/analysis.ts` declares what [`Analysis`] serialises to, derived from the Rust types.
//!
//! What it deliberately does not do: write the file during a normal build. It changes only on request, so a
//! review sees what changes for the page.

// A test reads and writes the page's sources.
#![allow(clippy::disallowed_methods)]

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

use super::Analysis;
use crate::atlas::Atlas;

const HEADER: &str = "\
// Generated from the Rust types in crates/report/src/analysis. Do not edit: after a change there run
// `UPDATE=1 cargo test -p underlay-report --lib types_of_the_page`.
//
// Times are seconds since the start of their run, latencies nanoseconds, shares lie in 0..1. A value
// that could not be computed is null, never zero. Designs, runs and series are referred to by position.
";

/// Collects the declarations of a type and of all types in it, by name.
#[derive(Default)]
struct Declarations {
    config: Config,
    seen: BTreeSet<TypeId>,
    texts: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if !self.seen.insert(TypeId::of::<T>()) {
            return;
        }
        // Only derived types have a path; the others are written out where they are used.
        if T::output_path().is_some() {
            let text = format!("\nexport {}", without_comments(&T::decl(&self.config)));
            let name = T::ident(&self.config);
            assert!(self.texts.insert(name.clone(), text).is_none(), "two types are named {name}");
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

/// The shapes alone: the Rust types document the fields, and a reworded comment there changes nothing here.
fn without_comments(declaration: &str) -> String {
    let mut text = String::new();
    let mut in_comment = false;
    for line in declaration.lines().map(str::trim_end) {
        in_comment |= line.starts_with("/**");
        if !in_comment {
            text.push_str(line);
            text.push('\n');
        }
        in_comment &= !line.ends_with("*/");
    }
    text
}

#[test]
fn types_of_the_page_are_up_to_date() {
    let config = Config::new().with_large_int("number");
    let mut declarations = Declarations { config, ..Declarations::default() };
    declarations.visit::<Analysis>();
    declarations.visit::<Atlas>();
    let wanted: String =
        [HEADER.to_string()].into_iter().chain(declarations.texts.into_values()).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src/analysis.ts");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &wanted).expect("the page's sources can be written");
    }
    let found = fs::read_to_string(&path).expect("the page's sources can be read");
    assert!(
        found == wanted,
        "web/src/analysis.ts does not match the Rust types; run \
         `UPDATE=1 cargo test -p underlay-report --lib types_of_the_page`"
    );
}
