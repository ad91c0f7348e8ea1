//! Designs before they are resolved: their names, and the built-in design that each starts from.
//!
//! No other key of a design is read here, but for titles that two designs would share.

use super::chosen::Chosen;
use super::design_names::design_name;
use super::names;
use super::resolver::Resolver;
use crate::builtin;
use crate::entry::{Entry, Section};
use crate::file::Design;
use crate::problem::position;
use crate::suggest::{listed, nearest};

/// One design while it is resolved.
pub(super) struct Draft<'a> {
    pub name: Chosen<String>,
    pub file: &'a Section<Design>,
    pub base: Option<(&'static str, &'static Design)>,
    /// Whether the built-in's title is that of another design of the study, too.
    pub shares_title: bool,
}

impl Draft<'_> {
    /// The title that it has or inherits.
    fn title(&self) -> Option<&String> {
        let inherited = || self.base.and_then(|(_, base)| base.title.get());
        self.file.title.get().or_else(inherited)
    }
}

/// Names, bases and uniqueness of all designs.
pub(super) fn drafts<'f>(
    resolver: &mut Resolver<'_>,
    sections: &'f [Section<Design>],
) -> Vec<Draft<'f>> {
    let mut drafts: Vec<Draft<'f>> = Vec::new();
    for section in sections {
        if section.refused {
            continue;
        }
        let base = base(resolver, section);
        let Some(name) = design_name(resolver, section) else {
            if matches!((&section.name, &section.base), (Entry::Absent, Entry::Absent)) {
                resolver.report.add(
                    section.span.clone(),
                    "missing-key",
                    "a design has no name",
                    "`name` is missing",
                    "add for example name = \"nvme\"",
                );
            }
            continue;
        };
        names::check(resolver, &name);
        if let Some(first) = drafts.iter().find(|draft| draft.name.value == name.value) {
            let line = first.file.span.clone().map(|span| position(resolver.text, span.start).0);
            let label = match line {
                Some(line) => format!("the design in line {line} has this name"),
                None => "another design has this name".to_string(),
            };
            resolver.report.add(
                name.span.clone().or_else(|| section.span.clone()),
                "duplicate-name",
                format!("two designs are called `{}`", name.value),
                label,
                "give each design a `name` of its own",
            );
        }
        if let Some(base) = base {
            drafts.push(Draft { name, file: section, base, shares_title: false });
        }
    }
    let titles: Vec<Option<String>> = drafts.iter().map(|draft| draft.title().cloned()).collect();
    for (index, draft) in drafts.iter_mut().enumerate() {
        let mut others = titles.iter().enumerate().filter(|(other, _)| *other != index);
        draft.shares_title =
            draft.file.title.is_absent() && others.any(|(_, title)| *title == titles[index]);
    }
    drafts
}

/// The built-in design it starts from: the outer `None` = one that does not exist.
fn base(
    resolver: &mut Resolver<'_>,
    section: &Section<Design>,
) -> Option<Option<(&'static str, &'static Design)>> {
    let (name, span) = match &section.base {
        Entry::Absent => return Some(None),
        Entry::Refused => return None,
        Entry::Given { value, span } => (value, span),
    };
    if let Some(found) = builtin::design(name) {
        return Some(Some(found));
    }
    let label = match nearest(name, builtin::design_names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "no built-in design has this name".to_string(),
    };
    resolver.report.at(
        span,
        "unknown-name",
        format!("the built-in design `{name}` is not known"),
        label,
        format!("use one of {}", listed(builtin::design_names())),
    );
    None
}
