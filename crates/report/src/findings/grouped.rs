//! One finding about several rungs: which ones, in words, and the largest number among them.

use std::collections::BTreeMap;

use crate::analysis::Finding;
use crate::digest::Digest;
use crate::ladder::Group;
use crate::observed::WindowFacts;
use crate::wording::list;

use super::evidence::Evidence;

/// One finding for all rungs where `of` gives a number, with the largest.
pub(super) fn grouped(
    evidence: &Evidence<'_>,
    of: impl Fn(&Group<'_>) -> Option<f64>,
    make: impl FnOnce(&str, f64) -> Finding,
) -> Option<Finding> {
    let found: Vec<((usize, u32), f64)> = evidence
        .groups
        .iter()
        .filter_map(|group| Some(((group.design, group.users), of(group)?)))
        .collect();
    let largest = found.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let rungs: Vec<(usize, u32)> = found.iter().map(|(rung, _)| *rung).collect();
    let mut finding = make(&places(evidence.digest, &rungs), largest);
    if let [(design, users)] = rungs[..] {
        (finding.design, finding.users) = (Some(design), Some(users));
    }
    Some(finding)
}

/// The largest value over a group's windows, if it exceeds the limit.
pub(super) fn above(
    group: &Group<'_>,
    limit: f64,
    of: impl Fn(&WindowFacts) -> Option<f64>,
) -> Option<f64> {
    let values = group.windows.iter().filter_map(|window| of(window));
    values.max_by(f64::total_cmp).filter(|value| *value > limit)
}

/// `NVMe at 4 and 8 users, SATA at 8 users`; of a job `NVMe, SATA`.
pub(super) fn places(digest: &Digest, rungs: &[(usize, u32)]) -> String {
    let titles = digest.titles();
    let mut by_design: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (design, users) in rungs {
        by_design.entry(*design).or_default().push(*users);
    }
    let parts: Vec<String> = by_design
        .into_iter()
        .map(|(design, mut users)| {
            users.sort_unstable();
            users.dedup();
            let title = titles.get(design).map_or("?", String::as_str);
            // A job has one number of sessions, which says nothing.
            if digest.workload.is_job() {
                return title.to_string();
            }
            let one = users == [1];
            let users: Vec<String> = users.iter().map(u32::to_string).collect();
            let users = list(&users);
            let on = digest.workload.in_flight_where();
            match (digest.workload.is_block_load(), one) {
                (true, true) => format!("{title} with 1 request in flight{on}"),
                (true, false) => format!("{title} with {users} requests in flight{on}"),
                (false, true) => format!("{title} at {users} user"),
                (false, false) => format!("{title} at {users} users"),
            }
        })
        .collect();
    parts.join(", ")
}
