//! The names of designs, before anything else of them is decided. Whether a name is safe and used once is not checked here.

use super::chosen::{Chosen, Layer};
use super::resolver::Resolver;
use crate::builtin;
use crate::entry::{Entry, Section};
use crate::file::Design;

/// The name each design will have; `None` where it cannot be known.
pub(super) fn design_names(resolver: &Resolver<'_>) -> Vec<Option<String>> {
    let Some(sections) = resolver.file.design.get() else { return Vec::new() };
    sections.iter().map(|section| design_name(resolver, section).map(|name| name.value)).collect()
}

/// The name of one design.
pub(super) fn design_name(
    resolver: &Resolver<'_>,
    section: &Section<Design>,
) -> Option<Chosen<String>> {
    let base = section.base.get().and_then(|name| builtin::design(name));
    let absent = Entry::Absent;
    let (layer, of_base) = match base {
        Some((name, base)) => (Layer::Builtin(name), &base.name),
        None => (Layer::Default, &absent),
    };
    resolver.pick("design.name", &[(Layer::File, &section.name), (layer, of_base)]).found()
}
