//! Files of a crate import each other one way only: what a file needs can then be read, tested and
//! changed without it.
//!
//! An import is a `use`, or a path in code, in a macro's arguments or in an attribute. It leads to
//! the file that defines the item, through all re-exports. `mod x;` is no import, and what is
//! `#[cfg(test)]` may import what it likes. Not seen: calls of methods, inferred types, paths in
//! strings, and macros of `#[macro_use]` that are called in the arguments of another macro.

mod circles;
mod modules;
mod paths;

use circles::circles;
use modules::Sources;
use paths::imports;
use std::path::Path;

#[test]
fn files_import_each_other_one_way_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = String::new();
    for entry in std::fs::read_dir(crates).expect("the folder is readable") {
        let folder = entry.expect("the entry is readable").path();
        let name = folder.file_name().expect("a crate has a name").display();
        let mut sources = Sources::new();
        read_sources(&folder.join("src"), "", &mut sources);
        assert!(sources.contains_key("lib.rs"), "{name} has no lib.rs");
        for root in ["lib.rs", "main.rs"].into_iter().filter(|root| sources.contains_key(*root)) {
            for circle in circles(&imports(&sources, root)) {
                found += &format!("{name}: a circle of {circle}\n");
            }
        }
    }
    assert!(found.is_empty(), "move what both need to a file of its own:\n{found}");
}

fn read_sources(folder: &Path, below: &str, sources: &mut Sources) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = format!("{below}{}", path.file_name().expect("it has a name").display());
        if path.is_dir() {
            read_sources(&path, &format!("{name}/"), sources);
        } else if name.ends_with(".rs") {
            sources.insert(name, std::fs::read_to_string(&path).expect("the file is readable"));
        }
    }
}

/// The files of the circles in a crate of three files.
fn circles_among(lib: &str, a: &str, b: &str) -> Vec<String> {
    let files = [("lib.rs", lib), ("a.rs", a), ("b.rs", b)];
    let sources = files.map(|(file, text)| (file.to_string(), text.to_string())).into();
    circles(&imports(&sources, "lib.rs")).iter().map(|circle| circle.files.join(" ")).collect()
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let lib = "mod a; mod b; pub use b::B;";
    let a_of_b = "pub struct B; fn b(_: crate::a::A) {}";
    for (lib, a, b) in [
        (lib, "use crate::b::B; pub struct A;", a_of_b),
        (lib, "use crate::b::{self as other}; pub struct A(other::B);", a_of_b),
        (lib, "use crate::B; pub struct A;", a_of_b),
        (lib, "use crate::b::*; pub struct A;", a_of_b),
        (lib, "pub struct A(Vec<super::b::B>);", a_of_b),
        (lib, "pub struct A; fn a() { assert!(a == [crate::B]) }", a_of_b),
        (lib, "pub struct A { #[arg(default = crate::B)] a: u8 }", a_of_b),
        (lib, "words! { pub enum A {} } use crate::B;", a_of_b),
        (
            lib,
            "#[macro_export] macro_rules! a { () => { $crate::B } }",
            "pub struct B; use crate::a;",
        ),
        (
            "#[macro_use] mod a; mod b;",
            "macro_rules! a { () => { $crate::b::B } }",
            "fn b() { a!() }",
        ),
    ] {
        assert_eq!(circles_among(lib, a, b), ["a.rs b.rs"], "{lib} | {a} | {b}");
    }
    let child_and_parent =
        circles_among("mod a; pub use a::A; struct L;", "pub struct A(super::L);", "");
    assert_eq!(child_and_parent, ["a.rs lib.rs"]);
}

#[test]
fn what_leads_one_way_is_no_circle() {
    for (lib, a, b) in [
        ("mod a; pub use a::A;", "pub struct A;", ""),
        ("mod a; struct L;", "pub struct A(super::L);", ""),
        ("mod a; mod b; pub use a::A; pub use b::B;", "pub struct A;", "pub struct B(crate::A);"),
        // The child needs nothing of the parent, but what another crate defines.
        ("mod a; pub use a::A; pub use std::fmt::Debug;", "pub trait A: crate::Debug {}", ""),
        ("mod a; mod b;", "#[cfg(test)] mod tests { use crate::b::B; }", "use crate::a::A;"),
        ("mod a; mod b;", "use crate::b; pub struct A;", "pub(in crate::a) struct B(crate::a::A);"),
    ] {
        assert_eq!(circles_among(lib, a, b), [""; 0], "{lib} | {a} | {b}");
    }
}
