//! What paths mean: the module that defines the item, through `use` and re-exports. Types and
//! values of one name are not told apart.

use super::modules::{Module, Sources, modules};
use std::collections::{BTreeMap, BTreeSet};

/// For each file the files that it imports, each with the paths that do.
pub type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The imports of the crate with this root.
pub fn imports(sources: &Sources, root: &str) -> Imports {
    let modules = modules(sources, root);
    let mut imports = Imports::new();
    for (at, module) in modules.iter().enumerate() {
        let here = imports.entry(module.file.clone()).or_default();
        let mut add = |path: &[String], is_glob: bool, is_use: bool| {
            let Some((to, is_item)) = meaning(&modules, at, path, STEPS) else { return };
            // What a `use` imports is not said again for each place that needs it.
            let says = |used, is_item| meaning(&modules, at, used, STEPS) == Some((to, is_item));
            let is_said = |name, is_item| module.bound(name).any(|used| says(used, is_item));
            if modules[to].file != module.file
                && (is_item || is_glob)
                && (is_use || !is_said(&path[0], true) && !is_said("*", false))
            {
                let all = if is_glob { "::*" } else { "" };
                let said = format!("{}{all}", path.join("::"));
                here.entry(modules[to].file.clone()).or_default().insert(said);
            }
        };
        module.uses.iter().for_each(|(name, path)| add(path, name == "*", true));
        module.paths.iter().for_each(|path| add(path, false, false));
    }
    imports
}

/// A module, and whether an item of it is meant. Nothing is what other crates define.
type Meaning = Option<(usize, bool)>;

/// No path goes through so many modules and re-exports.
const STEPS: usize = 64;

/// What `path` means in the scope of module `at`.
fn meaning(modules: &[Module], at: usize, path: &[String], steps: usize) -> Meaning {
    let (module, steps) = (&modules[at], steps.checked_sub(1)?);
    let (first, rest) = path.split_first()?;
    let inside = |module, rest: &[String]| match rest {
        [] => Some((module, false)),
        [name, ..] => meaning(modules, module, rest, steps)
            // Names that no text of the module explains are made by its macros.
            .or_else(|| (!modules[module].explains(name)).then_some((module, true))),
    };
    match first.as_str() {
        "crate" => return inside(0, rest),
        "self" => return inside(at, rest),
        "super" => return inside(module.parent, rest),
        name if let Some(name) = name.strip_suffix('!') => {
            let lends = |other: &Module| other.lends_macros && other.items.contains(name);
            let lender = || modules.iter().position(lends).map(|module| (module, true));
            return if module.explains(name) { None } else { lender() };
        }
        _ => {}
    }
    // Of a module and an item with one name, the item is at the end of a path.
    let is_item = module.items.contains(first) || module.bound(first).next().is_some();
    if let Some(child) = module.children.get(first)
        && !(rest.is_empty() && is_item)
    {
        return inside(*child, rest);
    }
    if module.items.contains(first) {
        return Some((at, true));
    }
    // A name that is bound to a path that begins with it is that of another crate, or of a child.
    let mut bound =
        module.bound(first).filter(|path| path[0] != *first || module.children.contains_key(first));
    let through = |path: &Vec<String>| match meaning(modules, at, path, steps)? {
        (module, false) => inside(module, rest),
        item => Some(item),
    };
    let of_glob = |glob: &Vec<String>| match meaning(modules, at, glob, steps)? {
        (module, false) if module != at => meaning(modules, module, path, steps),
        _ => None,
    };
    bound.find_map(through).or_else(|| module.bound("*").find_map(of_glob))
}
