//! `[start]`: what the datastore holds before a run.

use super::chosen::{Layer, Pick};
use super::resolver::Resolver;
use crate::finding::Severity;
use crate::plan::{DatastoreKind, DesignPlan};

/// What runs begin with, which only clusters know.
pub(super) fn resolve(resolver: &mut Resolver<'_>, designs: &[DesignPlan]) {
    const PATH: &str = "start.fill-percent";
    let entry = &resolver.file.start.fill_percent;
    let Pick::Found(percent) = resolver.pick(PATH, &[(Layer::File, entry)]) else { return };
    resolver.provenance.push(percent.setting(percent.value.to_string()));
    let others =
        || designs.iter().filter(|design| !matches!(design.kind, DatastoreKind::Cluster(_)));
    if !designs.is_empty() && others().count() == designs.len() {
        percent.problem(
            &mut resolver.report,
            "conflict",
            "`start.fill-percent` has no meaning for these designs",
            "none of them is a cluster",
            "remove it; only the capacity devices of clusters can be filled",
        );
        return;
    }
    for design in others() {
        resolver.finding(
            Severity::Note,
            "not-filled",
            format!("design `{}` is not a cluster and begins without other data", design.name),
            "compare it with care: the others begin filled",
            percent.line(resolver.text),
        );
    }
}
