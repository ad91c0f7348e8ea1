//! The check of a time against its range, for all sections. The ranges themselves are in `limits`.

use std::ops::RangeInclusive;

use underlay_core::Nanos;

use super::chosen::Chosen;
use super::resolver::Resolver;
use crate::exact;

/// Reports a time outside its range.
pub(super) fn check_time(
    resolver: &mut Resolver<'_>,
    time: &Chosen<Nanos>,
    range: &RangeInclusive<Nanos>,
) {
    if range.contains(&time.value) {
        return;
    }
    let (low, high) = (range.start(), range.end());
    let (label, help) = if time.value < *low {
        (
            format!("{} is shorter than {low}", time.value),
            format!("write at least \"{}\"", exact::time(*low)),
        )
    } else {
        (
            format!("{} is longer than {high}", time.value),
            format!("write at most \"{}\"", exact::time(*high)),
        )
    };
    time.problem(
        &mut resolver.report,
        "out-of-range",
        format!("{} is out of range", time.called()),
        label,
        help,
    );
}
