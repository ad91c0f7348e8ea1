//! Everything that differs between the designs besides what the study asks about.
//!
//! Between designs the study asks about storage. What belongs to the storage of a design (devices, durability, where a
//! volume lies) is *asked*; engine settings, sizes, limits, file systems, versions and hosts are not. Along an axis it asks
//! about what the axis varies. A comparison in which more than the asked factor differs is flagged, because its ratio is
//! not that factor's alone.

use std::collections::BTreeMap;

use underlay_record::conventions::document;

use crate::analysis::Confound;
use crate::axes::{Apart, Axes};
use crate::digest::Digest;
use crate::engine_settings::engine_settings;
use crate::flatten::{leaves, plain};
use crate::plan_view::PlanView;

/// Engine settings that name places and identities of a run, and therefore always differ.
const INCIDENTAL: [&str; 30] = [
    "data_directory",
    "port",
    "unix_socket_directories",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "config_file",
    "cluster_name",
    "log_directory",
    "log_filename",
    "stats_temp_directory",
    "temp_tablespaces",
    "data_directory_mode",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "in_hot_standby",
    // They follow from where the client is, which is listed itself.
    "listen_addresses",
    "bind_address",
    "skip_networking",
    // MariaDB's and MySQL's.
    "datadir",
    "tmpdir",
    "slave_load_tmpdir",
    "socket",
    "pid_file",
    "init_file",
    "log_error",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "innodb_tmpdir",
];

/// Words of a design that only describe it.
const DESCRIPTIVE: [&str; 7] =
    ["name", "title", "description", "source", "based_on", "engine_overrides", "variant"];

/// The differences between the designs of one record.
pub(crate) fn within(digest: &Digest) -> Vec<Confound> {
    let sides: Vec<BTreeMap<String, String>> =
        (0..digest.designs.len()).map(|design| facts_of_design(digest, design)).collect();
    let mut confounds = differences(&sides);
    let axes = digest.axes();
    if !axes.is_empty() {
        for confound in &mut confounds {
            confound.asked = is_asked_of_variants(&confound.path, &sides, &axes);
        }
    }
    confounds
}

/// Whether all that differs at this path, between variants that differ in one thing, belongs to that one thing.
fn is_asked_of_variants(path: &str, sides: &[BTreeMap<String, String>], axes: &Axes) -> bool {
    let is_known = |side: usize| sides[side].keys().any(|key| subject(key) == subject(path));
    let pairs = (0..sides.len()).flat_map(|a| (a + 1..sides.len()).map(move |b| (a, b)));
    let mut differ = pairs.filter(|(a, b)| {
        is_known(*a) && is_known(*b) && sides[*a].get(path) != sides[*b].get(path)
    });
    differ.all(|(a, b)| match axes.apart(a, b) {
        Some(Apart::Design) => is_asked(path),
        Some(Apart::Axis(axis)) => is_varied(path, &axes.list[axis].keys),
        // They are not compared.
        None => true,
    })
}

/// Whether what differs at this path along an axis is what the axis varies. The plans of a design's variants differ in nothing
/// else; what a server has in force may.
fn is_varied(path: &str, keys: &[String]) -> bool {
    let has_key = |wanted: &str| {
        keys.iter().any(|key| key.as_str() == wanted || key.ends_with(&format!(".{wanted}")))
    };
    match path.strip_prefix("engine.in-force.") {
        Some(setting) => has_key(&format!("engine.settings.{setting}")),
        None if path == "engine.version" => {
            has_key("engine.version") || has_key("engine.server-bin")
        }
        None => path.starts_with("design."),
    }
}

/// The differences between one design each of two records.
pub(crate) fn between(a: (&Digest, usize), b: (&Digest, usize)) -> Vec<Confound> {
    let side = |(digest, design): (&Digest, usize)| {
        let mut facts = facts_of_design(digest, design);
        facts.extend(common_facts(digest));
        facts
    };
    differences(&[side(a), side(b)])
}

/// What differs besides the storage, in words: at most five paths; `None` when nothing does.
pub(crate) fn not_asked(confounds: &[Confound]) -> Option<String> {
    const SHOWN: usize = 5;
    let paths: Vec<&str> = confounds
        .iter()
        // Kinds of evidence have a finding of their own.
        .filter(|confound| !confound.asked && confound.path != "design.evidence")
        .map(|confound| confound.path.as_str())
        .collect();
    let more = match paths.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = paths[..paths.len().min(SHOWN)].join(", ");
    (!paths.is_empty()).then(|| format!("{shown}{more}"))
}

/// Paths with their values on each side, where not all are equal.
///
/// A side that says nothing at all about a subject (its settings in force, say, because it has no run
/// yet) is unknown, and differs in nothing of it.
fn differences(sides: &[BTreeMap<String, String>]) -> Vec<Confound> {
    let mut paths: Vec<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter(|path| {
            let known =
                sides.iter().filter(|side| side.keys().any(|k| subject(k) == subject(path)));
            let mut values = known.map(|side| side.get(*path));
            values.next().is_some_and(|first| values.any(|other| other != first))
        })
        .map(|path| Confound {
            path: path.clone(),
            values: sides.iter().map(|side| side.get(path).cloned()).collect(),
            asked: is_asked(path),
        })
        .collect()
}

/// What a path is about: what is known or unknown together.
fn subject(path: &str) -> &str {
    let first = path.split('.').next().unwrap_or(path);
    if path.starts_with("engine.in-force.") { "engine.in-force" } else { first }
}

/// Whether what differs at this path belongs to the storage: the datastore, where a volume lies, and the host that uses it.
fn is_asked(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    path.strip_prefix("design.").is_some_and(|below| {
        // Where a block load went: devices and files, their sizes and what they lie on.
        // Processors and memory of hosts are no storage.
        (below.starts_with("datastore") && !below.starts_with("datastore.cluster.compute"))
            || below.starts_with("targets")
            || below.starts_with("volume_hosts")
            || (below.starts_with("volumes") && last == "device")
    })
}

fn facts_of_design(digest: &Digest, design: usize) -> BTreeMap<String, String> {
    let mut facts = planned_facts(digest, design);
    let of_runs = |name| {
        digest.documents_named(name).find(|(of, _)| *of == design).map(|(_, content)| content)
    };
    if let Some(settings) = of_runs(document::ENGINE_SETTINGS) {
        for (name, value) in engine_settings(settings) {
            if !INCIDENTAL.contains(&name.as_str()) {
                facts.insert(format!("engine.in-force.{name}"), value);
            }
        }
    }
    if let Some(version) = of_runs(document::ENGINE).map(|engine| plain(&engine["version"])) {
        facts.insert("engine.version".to_string(), version);
    }
    if let Some(design) = digest.designs.get(design) {
        facts.insert("design.evidence".to_string(), design.evidence.to_string());
    }
    facts
}

fn planned_facts(digest: &Digest, design: usize) -> BTreeMap<String, String> {
    let Some(design) = digest.designs.get(design) else { return BTreeMap::new() };
    leaves(&design.detail)
        .into_iter()
        .filter(|(path, _)| {
            let first = path.split('.').next().unwrap_or(path);
            let last = path.rsplit('.').next().unwrap_or(path);
            !DESCRIPTIVE.contains(&first) && !DESCRIPTIVE.contains(&last)
        })
        .map(|(path, value)| (format!("design.{path}"), value))
        .collect()
}

/// What holds for all designs of a record, and may differ from another record.
fn common_facts(digest: &Digest) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for setting in PlanView::new(&digest.manifest.plan).settings() {
        // Both are in design time, whatever their dilation; a finding says it.
        let is_dilation = setting.path == "procedure.time-dilation";
        if !setting.path.starts_with("design.")
            && !setting.path.starts_with("study.")
            && !is_dilation
        {
            facts.insert(format!("plan.{}", setting.path), setting.value);
        }
    }
    for (path, value) in leaves(&digest.manifest.host) {
        facts.insert(format!("host.{path}"), value);
    }
    for (path, value) in leaves(&digest.manifest.software) {
        facts.insert(format!("software.{path}"), value);
    }
    facts.insert("workload.identity".to_string(), digest.manifest.identity.clone());
    facts
}

#[cfg(test)]
mod tests {
    use super::{differences, is_asked, is_asked_of_variants, is_varied};
    use crate::axes::Axes;
    use serde_json::json;
    use std::collections::BTreeMap;
    use underlay_core::Evidence;
    use underlay_record::Design;

    /// Two designs at two sizes of memory: variants a1, a2, b1, b2.
    fn axes() -> Axes {
        let plan = json!({ "axes": [{
            "name": "memory", "keys": ["engine.memory-limit"],
            "points": [{ "name": "1" }, { "name": "2" }],
        }] });
        let variant = |(index, (design, at)): (usize, (&str, &str))| Design {
            index: index as u32,
            name: format!("{design}.{at}"),
            title: String::new(),
            description: String::new(),
            evidence: Evidence::Emulated,
            detail: json!({ "variant": { "design": design, "at": { "memory": at } } }),
        };
        let all = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")];
        let designs: Vec<Design> = all.into_iter().enumerate().map(variant).collect();
        Axes::of(&plan, &designs)
    }

    fn asked(path: &str, values: [&str; 4]) -> bool {
        let sides = values.map(|value| BTreeMap::from([(path.to_string(), value.to_string())]));
        is_asked_of_variants(path, &sides, &axes())
    }

    #[test]
    fn what_an_axis_varies_is_asked_and_the_rest_is_not() {
        assert!(asked("design.engine.memory_limit_bytes", ["8", "16", "8", "16"]));
        // Memory that differs between designs at one point is nothing that the axis asks.
        assert!(!asked("design.engine.memory_limit_bytes", ["8", "16", "8", "32"]));
        assert!(asked("design.datastore.emulated.durability", ["x", "x", "y", "y"]));
        assert!(!asked("design.engine.cpus", ["1", "1", "2", "2"]));
        assert!(!asked("engine.in-force.fsync", ["on", "off", "on", "off"]));
        assert!(!asked("engine.version", ["15.1", "15.2", "15.1", "15.2"]));
    }

    #[test]
    fn settings_in_force_are_varied_by_their_names() {
        let keys = ["design.nvme.engine.settings.shared_buffers".to_string()];
        assert!(is_varied("engine.in-force.shared_buffers", &keys));
        assert!(!is_varied("engine.in-force.wal_buffers", &keys));
        assert!(is_varied("design.engine.settings.shared_buffers", &keys));
    }

    #[test]
    fn storage_is_asked_and_the_rest_is_not() {
        let storage = [
            "design.datastore.emulated.devices.0.profile.read",
            "design.volumes.wal.device",
            "design.targets.0.path",
            "design.volume_hosts",
        ];
        for asked in storage {
            assert!(is_asked(asked), "{asked}");
        }
        let others = [
            "design.engine.settings.wal_level",
            "design.volumes.data.capacity_bytes",
            "design.volumes.data.file_system",
            "design.datastore.cluster.compute.0.cpus",
            "engine.in-force.fsync",
            "design.working_set_bytes",
            "host.cpu_count",
        ];
        for other in others {
            assert!(!is_asked(other), "{other}");
        }
    }

    #[test]
    fn only_differences_are_listed() {
        let side = |fsync: &str| {
            BTreeMap::from([
                ("engine.in-force.fsync".to_string(), fsync.to_string()),
                ("engine.version".to_string(), "15.18".to_string()),
            ])
        };
        let found = differences(&[side("on"), side("off"), side("on")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].values[1].as_deref(), Some("off"));
        let unknown = BTreeMap::from([("design.evidence".to_string(), "emulated".to_string())]);
        assert!(differences(&[side("on"), unknown]).is_empty(), "no run yet is no difference");
        assert!(!found[0].asked);
    }
}
