//! The modules of a crate as their texts declare them. What a path means is found elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use syn::buffer::{Cursor, TokenBuffer};
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, Meta, UseTree};

/// Texts by the path of their file below `src`.
pub type Sources = BTreeMap<String, String>;

/// What one module says.
#[derive(Default)]
pub struct Module {
    pub file: String,
    /// Names from the root, which has none.
    names: Vec<String>,
    pub parent: usize,
    pub children: BTreeMap<String, usize>,
    pub items: BTreeSet<String>,
    /// The name that a `use` binds (`*` for all names of a module), and the path that it means.
    pub uses: Vec<(String, Vec<String>)>,
    /// The other paths, and `name!` of macros that are called without a path.
    pub paths: BTreeSet<Vec<String>>,
    /// `#[macro_use]`: its macros need no import.
    pub lends_macros: bool,
}

impl Module {
    /// The paths that `use` binds to a name.
    pub fn bound<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Vec<String>> {
        self.uses.iter().filter(move |(bound, _)| bound == name).map(|(_, path)| path)
    }

    /// Whether it defines, declares or imports what has this name.
    pub fn explains(&self, name: &str) -> bool {
        let declared = self.items.contains(name) || self.children.contains_key(name);
        declared || self.bound(name).next().is_some()
    }
}

/// The modules of the crate with this root, which is the first.
pub fn modules(sources: &Sources, root: &str) -> Vec<Module> {
    let modules = vec![Module { file: root.into(), ..Module::default() }];
    let mut reader = Reader { sources, modules, at: 0 };
    reader.read_file(root);
    reader.modules
}

struct Reader<'s> {
    sources: &'s Sources,
    modules: Vec<Module>,
    at: usize,
}

impl Reader<'_> {
    fn here(&mut self) -> &mut Module {
        &mut self.modules[self.at]
    }

    fn read_file(&mut self, file: &str) {
        let parsed = syn::parse_file(&self.sources[file]);
        self.read_items(&parsed.unwrap_or_else(|error| panic!("{file}: {error}")).items);
    }

    fn read_items(&mut self, items: &[Item]) {
        for item in items {
            let name = match item {
                Item::Const(item) => Some(&item.ident),
                Item::Enum(item) => Some(&item.ident),
                Item::Fn(item) => Some(&item.sig.ident),
                Item::Macro(item) => item.ident.as_ref(),
                Item::Static(item) => Some(&item.ident),
                Item::Struct(item) => Some(&item.ident),
                Item::Trait(item) => Some(&item.ident),
                Item::Type(item) => Some(&item.ident),
                Item::Union(item) => Some(&item.ident),
                _ => None,
            };
            self.here().items.extend(name.map(Ident::to_string));
            self.visit_item(item);
        }
    }

    fn read_use(&mut self, before: &[String], tree: &UseTree) {
        let path = |name: &Ident| [before, &[name.to_string()]].concat();
        let bound = match tree {
            UseTree::Path(tree) => return self.read_use(&path(&tree.ident), &tree.tree),
            UseTree::Group(tree) => {
                return tree.items.iter().for_each(|tree| self.read_use(before, tree));
            }
            UseTree::Glob(_) => ("*".into(), before.to_vec()),
            UseTree::Rename(tree) => (tree.rename.to_string(), path(&tree.ident)),
            UseTree::Name(tree) if tree.ident == "self" => {
                (before.last().expect("`self` ends a path").clone(), before.to_vec())
            }
            UseTree::Name(tree) => (tree.ident.to_string(), path(&tree.ident)),
        };
        self.here().uses.push(bound);
    }

    /// Of tokens it takes whatever looks like a path.
    fn read_tokens(&mut self, mut cursor: Cursor) {
        while !cursor.eof() {
            if let Some((inside, .., after)) = cursor.any_group() {
                self.read_tokens(inside);
                cursor = after;
            } else if let Some((path, after)) = leading_path(cursor) {
                self.here().paths.insert(path);
                cursor = after;
            } else {
                cursor = cursor.token_tree().expect("it is not at its end").1;
            }
        }
    }
}

/// The path that the tokens begin with, and what follows it.
fn leading_path(cursor: Cursor) -> Option<(Vec<String>, Cursor)> {
    let (first, mut rest) = cursor.ident()?;
    let mut path = vec![first.to_string()];
    while let Some((name, after)) = after_colon(rest).and_then(after_colon).and_then(Cursor::ident)
    {
        path.push(name.to_string());
        rest = after;
    }
    Some((path, rest))
}

fn after_colon(cursor: Cursor) -> Option<Cursor> {
    cursor.punct().filter(|(sign, _)| sign.as_char() == ':').map(|(_, after)| after)
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// Visits what is not for tests only.
macro_rules! unless_for_tests {
    ($($visit:ident: $node:ident,)+) => {
        $(fn $visit(&mut self, node: &'ast syn::$node) {
            if !is_for_tests(&node.attrs) {
                visit::$visit(self, node);
            }
        })+
    };
}

impl<'ast> Visit<'ast> for Reader<'_> {
    unless_for_tests! {
        visit_item_const: ItemConst,
        visit_item_fn: ItemFn,
        visit_item_impl: ItemImpl,
        visit_item_struct: ItemStruct,
        visit_impl_item_fn: ImplItemFn,
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let (number, parent, name) = (self.modules.len(), self.at, item.ident.to_string());
        self.here().children.insert(name.clone(), number);
        let names = [&*self.here().names, &[name]].concat();
        let mut file = self.here().file.clone();
        if item.content.is_none() {
            let files = [".rs", "/mod.rs"].map(|end| names.join("/") + end);
            let found = files.into_iter().find(|file| self.sources.contains_key(file));
            file = found.unwrap_or_else(|| panic!("no file for the module {}", names.join("::")));
        }
        let lends_macros = has(&item.attrs, "macro_use");
        let module =
            Module { file: file.clone(), names, parent, lends_macros, ..Module::default() };
        self.modules.push(module);
        self.at = number;
        match &item.content {
            Some((_, items)) => self.read_items(items),
            None => self.read_file(&file),
        }
        self.at = parent;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() && !is_for_tests(&item.attrs) {
            self.read_use(&[], &item.tree);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        visit::visit_item_macro(self, item);
        if let Some(name) = item.ident.as_ref().filter(|_| has(&item.attrs, "macro_export")) {
            // As if the root re-exported it.
            let path = [&["crate".into()], &*self.here().names, &[name.to_string()]].concat();
            self.modules[0].uses.push((name.to_string(), path));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.here().paths.insert(names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match call.path.get_ident() {
            Some(name) => drop(self.here().paths.insert(vec![format!("{name}!")])),
            None => self.visit_path(&call.path),
        }
        self.read_tokens(TokenBuffer::new2(call.tokens.clone()).begin());
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.read_tokens(TokenBuffer::new2(list.tokens.clone()).begin());
    }

    /// `pub(in path)` needs nothing of what is there.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}
