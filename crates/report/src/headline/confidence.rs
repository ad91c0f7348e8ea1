//! How sure an answer is: pairs of runs, and what casts doubt on which design is ahead.

use underlay_record::conventions::finding as code;

use super::results::{Contest, Results};
use crate::analysis::{Answer, Comparison, Confidence, Finding, FindingSeverity, Validity};
use crate::comparisons::more_repeats;
use crate::wording::count;

/// Pairs from which on the answer may be called certain.
const ENOUGH_PAIRS: usize = 5;

/// How sure the answer is, and why.
pub(super) fn confidence(
    results: &Results<'_>,
    (contest, answer): (Contest, Answer),
    comparison: &Comparison,
) -> (Confidence, Vec<String>) {
    if !matches!(answer, Answer::Winner | Answer::Equivalent) {
        let reason = match answer {
            Answer::NotRepeated => "one run per design".to_string(),
            Answer::NoDifferenceShown => {
                format!("the interval does not decide{}", more_repeats(comparison))
            }
            _ => "the numbers do not answer the question".to_string(),
        };
        return (Confidence::None, vec![reason]);
    }
    let mut reasons = vec![format!(
        "{}, the interval {}",
        count(comparison.pairs as u64, "pair"),
        if answer == Answer::Winner { "excludes 1" } else { "lies within 5 % of 1" }
    )];
    // That a point of an axis reaches the host's ceiling is no doubt that it is ahead.
    let reaches_ceiling = |finding: &Finding| {
        finding.code == code::HOST_LIMITED
            && contest.axis.is_some()
            && results.outcome_of(contest) != Some(Validity::HostLimited)
    };
    let doubts: Vec<&Finding> = results
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Warning && is_doubt(&finding.code))
        .filter(|finding| !reaches_ceiling(finding))
        .collect();
    reasons.extend(doubts.iter().map(|finding| finding.text.clone()));
    let level = if !doubts.is_empty() {
        Confidence::Low
    } else if comparison.pairs < ENOUGH_PAIRS {
        Confidence::Medium
    } else {
        Confidence::High
    };
    (level, reasons)
}

/// Whether a finding casts doubt on which design is ahead.
fn is_doubt(code: &str) -> bool {
    matches!(
        code,
        "validity-unknown"
            | "host-limited"
            | "confounded"
            | "mixed-evidence"
            | "not-steady"
            | "steady-state-not-reached"
            | "steady-state-not-judged"
            | "interrupted"
            | "page-cache"
            | "steal"
            | "interference"
            | "generator-saturated"
            | "dispatch-lag"
            | "errors"
            | "outage"
            | "not-checked"
            | "check-failed"
            | "limit-not-enforced"
            | "memory-limit-unenforced"
            | "cpu-limit-unenforced"
    )
}
