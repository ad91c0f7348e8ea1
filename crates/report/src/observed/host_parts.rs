//! What the volumes of a cluster's host share, and for how long requests occupied it.

use std::collections::BTreeMap;

use underlay_record::conventions::source;

use super::window::MeasuredWindow;

/// Kinds of parts: what their series end in after `cluster.host.NAME.`, and what they are called.
pub(crate) const HOST_PARTS: [(&str, &str); 3] = [
    ("stack.busy", "storage stack"),
    ("send.busy", "sending link"),
    ("receive.busy", "receiving link"),
];

/// Share of the time for which they were occupied, by position in [`HOST_PARTS`] and host.
pub(super) fn host_parts(window: &MeasuredWindow<'_>) -> BTreeMap<(usize, String), f64> {
    let Some(ticks) = window.run.sources.get(source::DATASTORE) else { return BTreeMap::new() };
    let part = |name: &str| {
        let below = name.strip_prefix("cluster.host.")?;
        let (kind, host) = HOST_PARTS.iter().enumerate().find_map(|(kind, (end, _))| {
            Some((kind, below.strip_suffix(end)?.strip_suffix('.')?))
        })?;
        let busy = window.rate(source::DATASTORE, name)? / 1e9;
        Some(((kind, host.to_string()), busy))
    };
    ticks.names().filter_map(part).collect()
}
