//! What the shape of a ladder means, and what it does not mean.

use super::evidence::Evidence;
use super::finding::{finding, warning};
use crate::analysis::{Finding, FindingSeverity, Rung};
use crate::wording::count;
use crate::working_set::growth;

/// A ladder whose working set grows with users varies two things.
pub(super) fn working_set(evidence: &Evidence<'_>) -> Option<Finding> {
    let grown =
        (0..evidence.digest.designs.len()).find_map(|design| growth(&of(evidence, design)))?;
    let text = format!(
        "{grown}; throughput over users shows both effects. With home-warehouse = \"drawn\" in [workload.tpcc], or from \
         as many users as warehouses on, only the load changes"
    );
    Some(warning("working-set-grows", text))
}

/// Why a design does best with the fewest users of the ladder.
pub(super) fn early_peaks(evidence: &Evidence<'_>) -> Vec<Finding> {
    let titles = evidence.digest.titles();
    let explained = evidence.peaks.iter().filter_map(|peak| {
        let rungs = of(evidence, peak.design);
        let next = rungs.get(1)?;
        if rungs.first()?.users != peak.users {
            return None;
        }
        let found = |users: u32| {
            let of_rung = |b: &&crate::analysis::Bottleneck| {
                (b.design, b.users) == (peak.design, users) && b.class != "inconclusive"
            };
            evidence.bottlenecks.iter().find(of_rung)
        };
        let why = growth(&rungs).or_else(|| {
            let limit = found(next.users)?;
            Some(format!(
                "with {}, the bottleneck is {}",
                count(u64::from(next.users), "user"),
                limit.sentence
            ))
        });
        let why = why.unwrap_or_else(|| "what limits the next rung is not known".to_string());
        let text = format!(
            "{} does best with {}, the fewest of the ladder: {why}",
            titles[peak.design],
            count(u64::from(peak.users), "user")
        );
        Some(Finding {
            design: Some(peak.design),
            users: Some(peak.users),
            ..finding(FindingSeverity::Information, "peak-at-first-rung", text)
        })
    });
    explained.collect()
}

/// The rungs of a design, by users.
fn of<'a>(evidence: &Evidence<'a>, design: usize) -> Vec<&'a Rung> {
    evidence.rungs.iter().filter(|rung| rung.design == design).collect()
}
