//! What the numbers rest on: runs, checks, kinds of evidence, and the disclaimer.
//!
//! What it deliberately does not do: show definitions, settings and sources; the page has them.

use super::colour::Style;
use super::page::Page;
use crate::analysis::{Analysis, EvidenceKind};
use crate::wording::{count, list};

/// The last lines.
pub(super) fn small_print(page: &mut Page, analysis: &Analysis) {
    page.blank();
    let counted = analysis.runs.iter().filter(|run| run.counted).count();
    let checks = analysis.checks.len();
    let held = analysis.checks.iter().filter(|check| check.outcome == "ok").count();
    let blocks = analysis.workload.is_block_load();
    // A block load is verified only if asked to, and what is simulated has no data; the identity of a block load is its
    // whole description.
    let has_data = !blocks && analysis.study.evidence != EvidenceKind::Simulated;
    let checked = match (has_data, checks) {
        (false, 0) => String::new(),
        (_, 1) => format!(" {held} of 1 consistency check passed;"),
        _ => format!(" {held} of {} passed;", count(checks as u64, "consistency check")),
    };
    let identity =
        if blocks { analysis.study.name.as_str() } else { analysis.study.identity.as_str() };
    let text = format!(
        "{} of {} counted;{checked} evidence: {}{}; workload {identity}.",
        counted,
        count(analysis.runs.len() as u64, "run"),
        kinds_of_evidence(analysis),
        match analysis.study.time_dilation {
            1 => String::new(),
            factor => format!(", time dilation {factor}"),
        },
    );
    page.styled(Style::Faint, &text, "", "");
    page.styled(Style::Faint, &analysis.method.disclaimer, "", "");
}

/// `emulated`, or `measured and emulated`: all kinds that the designs are.
fn kinds_of_evidence(analysis: &Analysis) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for design in &analysis.designs {
        let kind = design.evidence.as_str().to_string();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        kinds.push(analysis.study.evidence.as_str().to_string());
    }
    list(&kinds)
}
