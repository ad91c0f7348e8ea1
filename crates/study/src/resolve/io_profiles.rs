//! Block loads by name: the study's own first, then those that come with Underlay.
//!
//! What a load means is not decided here but where files of block loads are lowered.

use underlay_workload::block::IoProfile;

use super::resolver::{OwnIoProfiles, Resolver};
use crate::entry::Entry;
use crate::finding::{Finding, Severity};
use crate::io_profile::{Lowering, find_io_profile, suggest_io_profile};
use crate::problem::position;
use crate::suggest::nearest;

/// All `[[io-profile]]` of the study. Their problems are reported once, however often they are asked for.
pub(super) fn resolve(resolver: &mut Resolver<'_>) -> OwnIoProfiles {
    if let Some(own) = &resolver.io_profiles {
        return own.clone();
    }
    let own = read_io_profiles(resolver);
    resolver.io_profiles = Some(own.clone());
    own
}

fn read_io_profiles(resolver: &mut Resolver<'_>) -> OwnIoProfiles {
    let file = resolver.file;
    let mut own = OwnIoProfiles::new();
    let Entry::Given { value: sections, .. } = &file.io_profile else { return own };
    for section in sections.iter().filter(|section| !section.refused) {
        let place = section.span.clone().unwrap_or_default();
        let lowered =
            Lowering { report: &mut resolver.report, place: place.clone(), prefix: "io-profile." }
                .profile(section);
        let Entry::Given { value: name, span } = &section.name else { continue };
        if find_io_profile(name).is_some() {
            resolver.report.at(
                span,
                "duplicate-name",
                format!("a block load that comes with underlay is called `{name}`"),
                "a report could not tell them apart",
                "give it another name",
            );
        }
        if own.insert(name.clone(), lowered).is_some() {
            resolver.report.at(
                span,
                "duplicate-name",
                format!("two block loads are called `{name}`"),
                "the second one",
                "give it another name",
            );
        }
        doubt_unused(resolver, name, position(resolver.text, place.start).0);
    }
    own
}

/// A load that nothing names is perhaps a typing error away from being used.
fn doubt_unused(resolver: &mut Resolver<'_>, name: &String, line: usize) {
    if resolver.file.workload.block.profile.get() == Some(name) {
        return;
    }
    let background = resolver.file.background.get().map_or(&[][..], Vec::as_slice);
    if background.iter().any(|section| section.load.profile.get() == Some(name)) {
        return;
    }
    resolver.findings.push(Finding {
        severity: Severity::Note,
        code: "unused-io-profile",
        text: format!("nothing puts the block load `{name}` on a volume"),
        remedy: match resolver.is_block_load() {
            true => format!("name it: profile = \"{name}\""),
            false => {
                format!("name it: load = {{ profile = \"{name}\", volumes = [\"data\"] }}")
            }
        },
        line: Some(line),
    });
}

/// The load that a key names.
pub(super) fn io_profile(
    resolver: &mut Resolver<'_>,
    key: &Entry<String>,
    own: &OwnIoProfiles,
) -> Option<IoProfile> {
    let Entry::Given { value: name, span } = key else { return None };
    if let Some(profile) = own.get(name) {
        return profile.clone();
    }
    if let Some(profile) = find_io_profile(name) {
        return Some(profile.clone());
    }
    let meant = nearest(name, own.keys().map(String::as_str)).or(suggest_io_profile(name));
    let label = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "neither an [[io-profile]] of this study nor built in".to_string(),
    };
    resolver.report.at(
        span,
        "unknown-name",
        format!("there is no block load `{name}`"),
        label,
        "`underlay list io-profiles` shows what is built in; your own are [[io-profile]] tables of the study",
    );
    None
}
