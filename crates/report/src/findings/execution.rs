//! What the execution itself says: what was recorded, checks, runs that failed, too few repeats.

use underlay_record::conventions::finding as code;
use underlay_record::{RunStatus, Severity};

use crate::analysis::{Finding, FindingSeverity};
use crate::digest::Digest;
use crate::ladder::Group;
use crate::wording::list;

use super::evidence::Evidence;
use super::finding::{finding, of, warning};

/// Pairs of runs from which on a test has enough of them.
const ENOUGH_RUNS: usize = 5;

pub(super) fn recorded(digest: &Digest) -> Vec<Finding> {
    let position =
        |run: underlay_record::RunId| digest.runs.iter().position(|known| known.id == run);
    digest
        .findings
        .iter()
        // What the emulation says of its timing is said once for all runs, from its own reports.
        .filter(|finding| {
            let timing = [code::NOT_TIMING_VALID, code::HOST_LIMITED];
            digest.emulation.is_empty() || !timing.contains(&finding.code.as_str())
        })
        .filter(|finding| {
            // Findings of replaced runs concern numbers that are not shown.
            finding
                .run
                .and_then(position)
                .is_none_or(|run| digest.runs[run].superseded_by.is_none())
        })
        .map(|recorded| {
            let run = recorded.run.and_then(position);
            Finding {
                severity: match recorded.severity {
                    Severity::Information => FindingSeverity::Information,
                    Severity::Warning => FindingSeverity::Warning,
                    Severity::Invalid => FindingSeverity::Invalid,
                },
                code: recorded.code.clone(),
                text: match run {
                    Some(run) => format!("{}: {}", digest.run_words(run), recorded.text),
                    None => recorded.text.clone(),
                },
                design: run.map(|run| digest.runs[run].design as usize),
                run,
                users: None,
            }
        })
        .collect()
}

pub(super) fn checks(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    let current = (0..digest.runs.len()).filter(|run| digest.runs[*run].superseded_by.is_none());
    for run in current {
        let of_run = || digest.checks.iter().filter(|check| check.run == run);
        let with = |outcome: &str| -> Vec<String> {
            of_run()
                .filter(|check| check.outcome == outcome)
                .map(|check| format!("{} ({})", check.id, check.moment))
                .collect()
        };
        let (violated, failed) = (with("violated"), with("failed"));
        let words = digest.run_words(run);
        if !violated.is_empty() {
            let text = format!("consistency is violated in {words}: {}", list(&violated));
            findings.push(of(
                finding(FindingSeverity::Invalid, "check-violated", text),
                run,
                digest,
            ));
        }
        if !failed.is_empty() {
            let text = format!("checks could not run in {words}: {}", list(&failed));
            findings.push(of(warning("check-failed", text), run, digest));
        }
        // A block load verifies its own data, if asked to. A simulation has none.
        let has_no_data = digest.manifest.evidence == underlay_core::Evidence::Simulated;
        let checked = has_no_data || digest.workload.is_block_load() || of_run().next().is_some();
        if !checked && digest.runs[run].is_evidence() {
            let text = format!("no consistency check ran in {words}");
            findings.push(of(warning("not-checked", text), run, digest));
        }
    }
    findings
}

pub(super) fn runs(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, run) in digest.runs.iter().enumerate() {
        let words = digest.run_words(position);
        let reason = run.reason.as_deref().unwrap_or("no reason was recorded");
        let ended = match run.status {
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "was interrupted",
            RunStatus::Running => "did not end",
            RunStatus::Finished => "was not counted",
        };
        let found = match (run.superseded_by, run.status) {
            (Some(_), _) => finding(
                FindingSeverity::Information,
                "run-replaced",
                format!("{words} {ended} ({reason}) and was repeated"),
            ),
            // What a block load measured until then is used, and said.
            (None, RunStatus::Interrupted) if digest.is_counted(run) => continue,
            (None, RunStatus::Failed | RunStatus::Interrupted) => warning(
                "run-not-finished",
                format!("{words} {ended}: {reason}; its numbers are not used"),
            ),
            (None, RunStatus::Running | RunStatus::Finished) => continue,
        };
        findings.push(of(found, position, digest));
    }
    findings
}

pub(super) fn repeats(evidence: &Evidence<'_>) -> Vec<Finding> {
    let runs = |group: &Group<'_>| group.windows.chunk_by(|a, b| a.run == b.run).count();
    let fewest = evidence.groups.iter().map(runs).min();
    let rounds = evidence.groups.iter().map(|group| group.windows.len()).max().unwrap_or(0);
    match fewest {
        Some(1) if evidence.digest.workload.is_one_run() => vec![warning(
            "no-interval",
            match rounds {
                1 => "one run: no interval over runs is possible, so run-to-run variation is unknown"
                    .to_string(),
                rounds => format!(
                    "one run, of which {rounds} rounds are reported: consecutive rounds are not independent repeats, so no \
                     interval over runs is possible and run-to-run variation is unknown"
                ),
            },
        )],
        Some(1) => vec![warning(
            "no-interval",
            "one run per design and rung: no interval over runs is possible, so run-to-run variation is \
             unknown"
                .to_string(),
        )],
        Some(n) if n < ENOUGH_RUNS => vec![finding(
            FindingSeverity::Information,
            "few-runs",
            format!(
                "{n} runs per design and rung: intervals are wide; {ENOUGH_RUNS} or more repeats narrow them"
            ),
        )],
        _ => Vec::new(),
    }
}
