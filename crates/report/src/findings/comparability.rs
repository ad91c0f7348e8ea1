//! Whether the designs can be compared: settings and kinds of evidence.

use std::collections::BTreeMap;

use underlay_record::conventions::{document, finding as code};

use crate::analysis::Finding;
use crate::confounds::not_asked;
use crate::digest::Digest;
use crate::engine_settings::engine_settings;
use crate::flatten::plain;
use crate::plan_view::PlanView;
use crate::wording::{list, percent};

use super::evidence::Evidence;
use super::finding::warning;

pub(super) fn settings(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (design, settings) in first_per_design(digest, document::ENGINE_SETTINGS) {
        let unsafe_settings: Vec<String> = engine_settings(settings)
            .into_iter()
            .filter(|(name, value)| {
                matches!(name.as_str(), "fsync" | "full_page_writes" | "synchronous_commit")
                    && value == "off"
            })
            .map(|(name, _)| format!("{name} = off"))
            .collect();
        if !unsafe_settings.is_empty() {
            let text = format!(
                "{}: {}; acknowledged transactions can be lost, and the storage does less work than under a \
                 durable database",
                digest.titles()[design],
                list(&unsafe_settings)
            );
            findings.push(Finding { design: Some(design), ..warning(code::NOT_DURABLE, text) });
        }
    }
    for (design, limits) in first_per_design(digest, document::UNENFORCED) {
        for limit in limits.as_array().into_iter().flatten() {
            let text = format!(
                "{}: the limit `{}` is not enforced: {}",
                digest.titles()[design],
                plain(&limit["limit"]),
                plain(&limit["reason"])
            );
            findings
                .push(Finding { design: Some(design), ..warning(code::LIMIT_NOT_ENFORCED, text) });
        }
    }
    let ratio = PlanView::new(&digest.manifest.plan).working_set_ratio();
    if let Some(ratio) = ratio.filter(|ratio| *ratio < 1.0) {
        let text = format!(
            "the database fits in the server's memory ({} of it): few reads reach the storage",
            percent(ratio)
        );
        findings.push(warning(code::DATA_FITS_CACHE, text));
    }
    findings
}

pub(super) fn first_per_design<'a>(
    digest: &'a Digest,
    name: &'a str,
) -> BTreeMap<usize, &'a serde_json::Value> {
    let mut first = BTreeMap::new();
    for (design, content) in digest.documents_named(name) {
        if design < digest.designs.len() {
            first.entry(design).or_insert(content);
        }
    }
    first
}

pub(super) fn comparability(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(paths) = not_asked(evidence.confounds) {
        let axes = evidence.digest.axes();
        let text = match axes.is_empty() {
            true => format!("the designs differ in more than their storage: {paths}"),
            false => {
                let mut asked: Vec<String> = axes.list.into_iter().map(|axis| axis.name).collect();
                if evidence.digest.axes().has_several_designs() {
                    asked.push("storage".to_string());
                }
                format!(
                    "the variants differ in more than what was asked ({}): {paths}",
                    asked.join(", ")
                )
            }
        };
        findings.push(warning("confounded", text));
    }
    let kinds: Vec<_> = evidence.digest.designs.iter().map(|design| design.evidence).collect();
    if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
        let words: Vec<String> = evidence
            .digest
            .titles()
            .iter()
            .zip(&kinds)
            .map(|(title, kind)| format!("{title} is {kind}"))
            .collect();
        let text = format!("the designs are different kinds of evidence: {}", list(&words));
        findings.push(warning("mixed-evidence", text));
    }
    findings
}
