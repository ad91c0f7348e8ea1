//! What the emulation and the host did to the evidence.

use std::collections::BTreeMap;

use underlay_record::conventions::{document, finding as code};

use crate::analysis::{Finding, FindingSeverity, RungValidity, Validity};
use crate::digest::Digest;
use crate::observed::{SharedDevice, shared_devices};
use crate::validity::CEILING_REACHED;
use crate::wording::{amount, list, percent};

use super::evidence::Evidence;
use super::finding::{finding, warning};
use super::grouped::{above, grouped, places};

/// Whether designs or this host were measured: one finding each over all rungs concerned.
pub(super) fn validity(evidence: &Evidence<'_>) -> Vec<Finding> {
    let with_device = |outcome: Validity| -> Vec<&RungValidity> {
        let rows = evidence.validity.iter();
        rows.filter(|row| row.outcome == outcome && !row.no_device).collect()
    };
    let mut findings = Vec::new();
    let limited = with_device(Validity::HostLimited);
    if !limited.is_empty() {
        let text = format!(
            "host-limited: {} cannot be distinguished from this host: within {} of its ceiling, or I/O times mostly \
             the host's",
            rungs_words(evidence, &limited),
            percent(1.0 - CEILING_REACHED)
        );
        findings.push(of_rungs(warning(code::HOST_LIMITED, text), &limited));
    }
    let bounded = with_device(Validity::Bounded);
    if !bounded.is_empty() {
        let shares = bounded.iter().flat_map(|row| [row.late_share, row.early_share]).flatten();
        let whose = match evidence.digest.workload.has_sessions() {
            true => "the sessions' time",
            false => "the time",
        };
        let text = format!(
            "bounded: up to {} of {whose} may be the host's: {}; intervals with the host's share include it",
            percent(shares.max_by(f64::total_cmp).unwrap_or(0.0)),
            rungs_words(evidence, &bounded),
        );
        let information = finding(FindingSeverity::Information, code::BOUNDED, text);
        findings.push(of_rungs(information, &bounded));
    }
    let unknown = with_device(Validity::Unknown);
    if !unknown.is_empty() {
        let late = evidence.digest.emulation.iter().find(|found| found.valid == Some(false));
        let late = late.and_then(|found| found.reason.as_ref());
        let late = late.map_or_else(String::new, |reason| format!("; {reason}"));
        let text = format!(
            "validity unknown: {}: the record has no excess of I/O times per class, so the host's share has no bound{late}",
            rungs_words(evidence, &unknown),
        );
        findings.push(of_rungs(warning(code::VALIDITY_UNKNOWN, text), &unknown));
    }
    for design in ceilings(evidence.validity) {
        let title = evidence.digest.titles().get(design).cloned().unwrap_or_default();
        let text = format!("{title} has no device: it shows this host's ceiling, not a device");
        let information = finding(FindingSeverity::Information, "no-device", text);
        findings.push(Finding { design: Some(design), ..information });
    }
    findings
}

/// The designs without a device.
fn ceilings(validity: &[RungValidity]) -> Vec<usize> {
    let mut designs: Vec<usize> =
        validity.iter().filter(|row| row.no_device).map(|row| row.design).collect();
    designs.dedup();
    designs
}

/// `NVMe at 4 and 16 users, SATA at 16 users`.
fn rungs_words(evidence: &Evidence<'_>, rows: &[&RungValidity]) -> String {
    let rungs: Vec<(usize, u32)> = rows.iter().map(|row| (row.design, row.users)).collect();
    places(evidence.digest, &rungs)
}

/// A finding about some rungs: about their design and users, if they have the same.
fn of_rungs(finding: Finding, rows: &[&RungValidity]) -> Finding {
    let design = rows[0].design;
    let design = rows.iter().all(|row| row.design == design).then_some(design);
    let users = if let [only] = rows { Some(only.users) } else { None };
    Finding { design, users, ..finding }
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
