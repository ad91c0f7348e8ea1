//! What happened in the measured windows: drifts, checkpoints and autovacuum.

use underlay_core::Nanos;
use underlay_record::conventions::document;

use crate::analysis::{Finding, FindingSeverity, SteadyState, Window};
use crate::engine_settings::engine_settings;
use crate::observed::WindowFacts;
use crate::verdict::gates;
use crate::verdict::steady::SHORTEST_S;
use crate::wording::{count, percent};

use super::block_load;
use super::evidence::Evidence;
use super::finding::{finding, warning};
use super::grouped::{above, grouped, places};

/// Autovacuum workers, on average over a window, that are mentioned.
const AUTOVACUUM_WORKERS: f64 = 0.05;

pub(super) fn steadiness(evidence: &Evidence<'_>) -> Vec<Finding> {
    // Backups have no rate that could be steady, and nobody changes a page while they are taken.
    if evidence.digest.workload.is_backup() {
        return Vec::new();
    }
    let with = |state: SteadyState| -> Vec<&Window> {
        let windows = evidence.windows.iter().filter(|window| window.steady.state == state);
        // Rounds are judged together: how short each is does not matter then.
        let judged = |window: &&Window| {
            state == SteadyState::TooShort && block_load::is_judged(evidence.digest, window.run)
        };
        windows.filter(|window| !judged(window)).collect()
    };
    let mut findings = Vec::new();
    let unsteady = with(SteadyState::NotSteady);
    if let Some(first) = unsteady.first() {
        let rungs: Vec<(usize, u32)> =
            unsteady.iter().map(|window| (window.design, window.users)).collect();
        let text = format!(
            "throughput was not steady in {}: {} (for example {})",
            count(unsteady.len() as u64, "window"),
            places(evidence.digest, &rungs),
            first.steady.text
        );
        findings.push(warning("not-steady", text));
    }
    let short = with(SteadyState::TooShort);
    if let Some(first) = short.first() {
        let workload = &evidence.digest.workload;
        let remedy = match workload.is_block_load() {
            true => String::new(),
            false => format!("; {}", gates::longer(workload.is_job(), SHORTEST_S, None)),
        };
        let text = format!("steadiness unknown: {}{remedy}", first.steady.text);
        findings.push(finding(FindingSeverity::Information, "steadiness-unknown", text));
    }
    findings.extend(checkpoints(evidence));
    findings.extend(autovacuum(evidence));
    findings
}

/// Windows in which the server vacuumed or analysed tables of its own accord. It begins by the number of changed rows, so
/// one rung may have it and another not.
fn autovacuum(evidence: &Evidence<'_>) -> Option<Finding> {
    let workers = |window: &WindowFacts| Some(window.waits.as_ref()?.autovacuum);
    grouped(
        evidence,
        |group| above(group, AUTOVACUUM_WORKERS, workers),
        |places, largest| {
            let share = percent(largest.min(1.0));
            let text = format!(
                "autovacuum ran for up to {share} of a window and competed with the users for I/O: {places}"
            );
            finding(FindingSeverity::Information, "autovacuum", text)
        },
    )
}

/// Windows that hold less than one checkpoint cycle say nothing about checkpoints.
pub(super) fn checkpoints(evidence: &Evidence<'_>) -> Option<Finding> {
    let (_, settings) = evidence.digest.documents_named(document::ENGINE_SETTINGS).next()?;
    let timeout = engine_settings(settings)
        .into_iter()
        .find(|(name, _)| name == "checkpoint_timeout")
        .and_then(|(_, value)| seconds(&value))?;
    let shortest = evidence
        .windows
        .iter()
        .map(|window| window.end_s - window.begin_s)
        .min_by(f64::total_cmp)
        .filter(|shortest| *shortest < timeout)?;
    let text = format!(
        "windows of {shortest:.0} s are shorter than the time between checkpoints ({timeout:.0} s): the \
         cost of checkpoints shows only in windows that contain one"
    );
    Some(finding(FindingSeverity::Information, "checkpoint-cycle", text))
}

/// `300`, `300s`, `5min` in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let seconds = text.parse::<f64>().ok();
    seconds.or_else(|| text.parse::<Nanos>().ok().map(Nanos::as_secs_f64))
}
