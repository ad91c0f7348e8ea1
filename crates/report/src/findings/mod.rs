//! Everything the reader of a result must know: what the lab found, and what the numbers show.

mod block_load;
mod client;
mod comparability;
mod evidence;
mod execution;
mod finding;
mod generator;
mod grouped;
mod ladder;
mod platform;
mod windows;

use underlay_record::conventions::finding as code;

use crate::analysis::Finding;

pub(crate) use evidence::Evidence;

use block_load::block_loads;
use client::clients;
use comparability::{comparability, settings};
use execution::{checks, recorded, repeats, runs};
use generator::{load, load_generator};
use ladder::{early_peaks, working_set};
use platform::{host, shared, sources, validity};
use windows::steadiness;

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
