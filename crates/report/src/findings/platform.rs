//! What the emulation and the host did to the evidence.

use std::collections::BTreeMap;

use underlay_record::conventions::{document, finding as code};

use crate::analysis::{Emulation, Finding, FindingSeverity};
use crate::digest::Digest;
use crate::observed::{SharedDevice, shared_devices};
use crate::wording::{amount, list, percent, time_ns};

use super::{Evidence, HOST_LIMITED, above, finding, grouped, of, warning};

/// How well the emulation kept its times: one finding each over all runs concerned.
pub(super) fn emulation(digest: &Digest) -> Vec<Finding> {
    let late: Vec<&Emulation> =
        digest.emulation.iter().filter(|found| found.valid == Some(false)).collect();
    let limited: Vec<&Emulation> = digest
        .emulation
        .iter()
        .filter(|found| found.host_limited_share.is_some_and(|share| share > HOST_LIMITED))
        .collect();
    let mut findings = Vec::new();
    if let Some(first) = late.first() {
        let reason = match (&first.reason, first.lateness_p99_ns) {
            (Some(reason), _) => reason.clone(),
            (None, Some(late)) => format!("lateness p99 {}", time_ns(late as f64)),
            (None, None) => "no reason was recorded".to_string(),
        };
        let example = if late.len() > 1 { "for example " } else { "" };
        let text = format!(
            "not timing-valid in {}: the emulated device completed requests late ({example}{reason})",
            runs_words(digest, &late)
        );
        findings.push(of_runs(warning(code::NOT_TIMING_VALID, text), digest, &late));
    }
    if !limited.is_empty() {
        let shares = limited.iter().filter_map(|found| found.host_limited_share);
        let largest = shares.max_by(f64::total_cmp).unwrap_or(0.0);
        let text = format!(
            "the host was slower than the emulated device for up to {} of the requests in {}",
            percent(largest),
            runs_words(digest, &limited)
        );
        findings.push(of_runs(warning(code::HOST_LIMITED, text), digest, &limited));
    }
    findings
}

/// `run 3 (NVMe, repeat 2)`, or `4 of 6 runs`.
pub(super) fn runs_words(digest: &Digest, found: &[&Emulation]) -> String {
    match found {
        [only] => digest.run_words(only.run),
        _ => format!("{} of {} runs", found.len(), digest.emulation.len()),
    }
}

/// A finding about some runs: about their design, if they have the same.
pub(super) fn of_runs(finding: Finding, digest: &Digest, found: &[&Emulation]) -> Finding {
    let mut designs: Vec<u32> =
        found.iter().filter_map(|f| Some(digest.runs.get(f.run)?.design)).collect();
    designs.dedup();
    match (found, designs.as_slice()) {
        ([only], _) => of(finding, only.run, digest),
        (_, [design]) => Finding { design: Some(*design as usize), ..finding },
        _ => finding,
    }
}

pub(super) fn host(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| window.cpu.steal_share),
        |places, largest| {
            let text = format!(
                "the hypervisor took up to {} of the CPU time (steal): {places}",
                percent(largest)
            );
            warning("steal", text)
        },
    ));
    let others = |window: &crate::observed::WindowFacts| {
        Some(window.cpu.interference_cores()? / window.cpu.host_cores?)
    };
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.05, others),
        |places, largest| {
            let text = format!(
                "other processes, or kernel threads that serve the volumes, used up to {} of the host's CPU time: \
                 {places}",
                percent(largest)
            );
            warning("interference", text)
        },
    ));
    findings
}

/// Devices that volumes do not have to themselves: one finding per design and device.
pub(super) fn shared(digest: &Digest) -> Vec<Finding> {
    let mut told: BTreeMap<(usize, String), Finding> = BTreeMap::new();
    for (design, datastore) in digest.documents_named(document::DATASTORE) {
        for SharedDevice { device, volumes } in shared_devices(datastore) {
            let title = digest.titles().get(design).cloned().unwrap_or_default();
            let (noun, is) = if volumes.len() == 1 { ("volume", "is") } else { ("volumes", "are") };
            let text = format!(
                "{noun} {} of {title} {is} not alone on device {device}: the kernel counts I/O per device, so the \
                 numbers include all other I/O on {device}, and gate G7 is not judged",
                list(&volumes),
            );
            let finding = Finding { design: Some(design), ..warning(code::SHARED_DEVICE, text) };
            told.entry((design, device)).or_insert(finding);
        }
    }
    told.into_values().collect()
}

/// Sources that did not work, with the runs they are missing in.
pub(super) fn sources(digest: &Digest) -> Vec<Finding> {
    let mut broken: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for source in digest.sources.iter().filter(|source| source.status != "available") {
        let reason = source.reason.as_deref().unwrap_or("no reason was recorded");
        *broken.entry((&source.name, &source.status, reason)).or_default() += 1;
    }
    let runs = digest.documents.len();
    broken
        .into_iter()
        .map(|((name, status, reason), n)| {
            let place = if n == runs {
                "all runs".to_string()
            } else {
                format!("{} of {runs} runs", amount(n as f64))
            };
            let text = format!("source `{name}` is {status} in {place}: {reason}");
            finding(FindingSeverity::Information, "source", text)
        })
        .collect()
}
