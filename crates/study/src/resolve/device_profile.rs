//! Device profiles by their built-in names. Files of profiles are not read here.

use std::ops::Range;

use underlay_model::{DeviceProfile, builtin as model};

use super::resolver::Resolver;
use crate::suggest::{listed, nearest};

/// The built-in profile of that name; `span` is where it is named.
pub(super) fn known_profile(
    resolver: &mut Resolver<'_>,
    name: &str,
    span: Option<Range<usize>>,
) -> Option<DeviceProfile> {
    let found = model::find(name);
    if found.is_none() {
        let all = model::all();
        let names = || all.iter().map(|profile| profile.name.as_str());
        let label = match nearest(name, names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "no built-in profile has this name".to_string(),
        };
        resolver.report.add(
            span,
            "unknown-name",
            format!("the device profile `{name}` is not known"),
            label,
            format!("use one of {}", listed(names())),
        );
    }
    found
}
