//! Everything the reader of a result must know: what the lab found, and what the numbers show.

mod block_load;
mod client;
mod comparability;
mod execution;
mod generator;
mod ladder;
mod platform;
mod windows;

use std::collections::BTreeMap;

use underlay_core::Nanos;
use underlay_record::conventions::finding as code;

use crate::analysis::{
    Bottleneck, Confound, DriverLoad, Finding, FindingSeverity, Peak, Rung, RungValidity, Window,
};
use crate::digest::Digest;
use crate::ladder::Group;
use crate::wording::list;

use block_load::block_loads;
use client::clients;
use comparability::{comparability, settings};
use execution::{checks, recorded, repeats, runs};
use generator::{load, load_generator};
use ladder::{early_peaks, working_set};
use platform::{host, shared, sources, validity};
use windows::steadiness;

/// Dispatch later than this at the 99th percentile is not on time.
const LATE_DISPATCH: Nanos = Nanos::from_millis(20);

/// Load generators that take more of the host than this are mentioned.
const DRIVER_SHARE: f64 = 0.25;

/// Pairs of runs from which on a test has enough of them.
const ENOUGH_RUNS: usize = 5;

/// What the findings are derived from.
pub(crate) struct Evidence<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) groups: &'a [Group<'a>],
    pub(crate) windows: &'a [Window],
    pub(crate) rungs: &'a [Rung],
    pub(crate) peaks: &'a [Peak],
    pub(crate) bottlenecks: &'a [Bottleneck],
    pub(crate) validity: &'a [RungValidity],
    pub(crate) driver: &'a [DriverLoad],
    pub(crate) confounds: &'a [Confound],
}

/// All findings, gravest first.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = recorded(evidence.digest);
    let mut derived = Vec::new();
    derived.extend(checks(evidence.digest));
    derived.extend(runs(evidence.digest));
    derived.extend(repeats(evidence));
    derived.extend(block_loads(evidence.digest));
    derived.extend(load_generator(evidence));
    derived.extend(clients(evidence));
    derived.extend(validity(evidence));
    derived.extend(host(evidence));
    derived.extend(shared(evidence.digest));
    derived.extend(steadiness(evidence));
    derived.extend(load(evidence));
    derived.extend(working_set(evidence));
    derived.extend(early_peaks(evidence));
    derived.extend(settings(evidence.digest));
    derived.extend(comparability(evidence));
    derived.extend(sources(evidence.digest));
    // What the plan or the lab has said already is not said twice.
    let said = findings.clone();
    let is_new = |finding: &Finding| {
        !said.iter().any(|known| {
            says_the_same(&known.code, &finding.code)
                && (known.run == finding.run || known.run.is_none() || finding.run.is_none())
        })
    };
    findings.extend(derived.into_iter().filter(is_new));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Whether a recorded finding says what a derived one would say.
fn says_the_same(recorded: &str, derived: &str) -> bool {
    let others: &[&str] = match derived {
        "checkpoint-cycle" => &["no-checkpoint", "checkpoint-in-some-windows"],
        code::DATA_FITS_CACHE => &["fits-cache"],
        code::NOT_DURABLE => &["fsync-off", "full-page-writes-off", "synchronous-commit-off"],
        code::LIMIT_NOT_ENFORCED => &["memory-limit-unenforced", "cpu-limit-unenforced"],
        "few-runs" => &["wide-interval"],
        _ => &[],
    };
    recorded == derived || others.contains(&recorded)
}

fn finding(severity: FindingSeverity, code: &str, text: String) -> Finding {
    Finding { severity, code: code.to_string(), text, design: None, run: None, users: None }
}

fn warning(code: &str, text: String) -> Finding {
    finding(FindingSeverity::Warning, code, text)
}

/// A finding about one run.
fn of(finding: Finding, run: usize, digest: &Digest) -> Finding {
    let design = digest.runs.get(run).map(|run| run.design as usize);
    Finding { run: Some(run), design, ..finding }
}

/// `NVMe at 4 and 8 users, SATA at 8 users`; of a job `NVMe, SATA`.
fn places(digest: &Digest, rungs: &[(usize, u32)]) -> String {
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

/// One finding for all rungs where `of` gives a number, with the largest.
fn grouped(
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
fn above(
    group: &Group<'_>,
    limit: f64,
    of: impl Fn(&crate::observed::WindowFacts) -> Option<f64>,
) -> Option<f64> {
    let values = group.windows.iter().filter_map(|window| of(window));
    values.max_by(f64::total_cmp).filter(|value| *value > limit)
}
