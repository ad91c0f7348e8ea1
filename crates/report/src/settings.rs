//! Every setting of an execution: planned, in force, and the facts of the host.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_record::conventions::document;

use crate::analysis::Setting;
use crate::digest::Digest;
use crate::engine_settings::engine_settings;
use crate::flatten::leaves;
use crate::plan_view::PlanView;

/// All settings, grouped.
pub(crate) fn all(digest: &Digest) -> Vec<Setting> {
    let mut settings = planned(digest);
    settings.extend(in_force(digest, "engine", document::ENGINE_SETTINGS, engine_settings));
    settings.extend(in_force(digest, "engine", document::ENGINE, leaves));
    settings.extend(in_force(digest, "datastore", document::DATASTORE, lasting_leaves));
    settings.extend(facts("host", &digest.manifest.host));
    settings.extend(facts("software", &digest.manifest.software));
    settings
}

/// The leaves of a document without the places that exist only during a run.
fn lasting_leaves(content: &Value) -> Vec<(String, String)> {
    let is_place = |path: &str| path.ends_with(".path") || path.ends_with(".block_device");
    leaves(content).into_iter().filter(|(path, _)| !is_place(path)).collect()
}

fn planned(digest: &Digest) -> Vec<Setting> {
    let of_design = |path: &str| {
        digest.designs.iter().enumerate().find_map(|(position, design)| {
            let below = path.strip_prefix("design.")?.strip_prefix(design.name.as_str())?;
            Some((position, below.strip_prefix('.')?.to_string()))
        })
    };
    PlanView::new(&digest.manifest.plan)
        .settings()
        .into_iter()
        .map(|setting| {
            let (design, path) = match of_design(&setting.path) {
                Some((design, path)) => (Some(design), format!("design.{path}")),
                None => (None, setting.path),
            };
            Setting {
                group: "plan".to_string(),
                path,
                value: setting.value,
                origin: setting.origin,
                design,
            }
        })
        .collect()
}

/// The values of a document: one row when all designs agree, else one per design.
fn in_force(
    digest: &Digest,
    group: &str,
    name: &str,
    of: impl Fn(&Value) -> Vec<(String, String)>,
) -> Vec<Setting> {
    let mut values: BTreeMap<String, BTreeMap<usize, String>> = BTreeMap::new();
    let mut designs: Vec<usize> = Vec::new();
    for (design, content) in digest.documents_named(name) {
        if !designs.contains(&design) {
            designs.push(design);
            for (path, value) in of(content) {
                values.entry(path).or_default().insert(design, value);
            }
        }
    }
    let row = |path: &str, value: &str, design| Setting {
        group: group.to_string(),
        path: path.to_string(),
        value: value.to_string(),
        origin: "in force".to_string(),
        design,
    };
    let mut rows = Vec::new();
    for (path, by_design) in &values {
        let mut distinct: Vec<&String> = by_design.values().collect();
        distinct.dedup();
        if let ([only], true) = (distinct.as_slice(), by_design.len() == designs.len()) {
            rows.push(row(path, only, None));
        } else {
            rows.extend(by_design.iter().map(|(design, value)| row(path, value, Some(*design))));
        }
    }
    rows
}

fn facts(group: &str, document: &Value) -> Vec<Setting> {
    leaves(document)
        .into_iter()
        .map(|(path, value)| Setting {
            group: group.to_string(),
            path,
            value,
            origin: "found".to_string(),
            design: None,
        })
        .collect()
}

/// The facts of a design for readers: what the plan says about its storage.
pub(crate) fn design_facts(digest: &Digest, design: usize) -> Vec<(String, String)> {
    let Some(design) = digest.designs.get(design) else { return Vec::new() };
    // What a variant has of its own is among the axes and the settings.
    let described = [
        "name",
        "title",
        "description",
        "evidence",
        "engine",
        "engine_overrides",
        "variant",
        "workload",
        "procedure",
        "estimates",
    ];
    leaves(&design.detail)
        .into_iter()
        .filter(|(path, _)| !described.contains(&path.split('.').next().unwrap_or(path)))
        .collect()
}
