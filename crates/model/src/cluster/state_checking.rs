//! Plausibility checks of a stored state before a cluster is built from it: the file may be damaged or belong to another
//! cluster.
//!
//! Checked here: values that could otherwise request any amount of memory or violate what the cluster relies on. Whether the
//! parts fit each other and the specification is checked while the cluster is restored.

use std::collections::BTreeSet;

use super::geometry::Geometry;
use super::policy_record::policy_from;
use super::spec::ClusterSettings;
use super::state::{
    ClusterState, ComponentRecord, LayoutRecord, RestoreProblem, VolumeRecord, misfit,
};

/// Numbers of components and volumes are never given twice, so that tables grow with them; this many take 128 MiB.
const NUMBERS_MAX: u32 = 1 << 24;
/// Where address spaces end: far beyond any device, and far below what overflows.
const ADDRESS_MAX: u64 = 1 << 60;
const BLOCK_BYTES: u64 = 4096;

/// The first thing that no memory of ours would say.
pub(super) fn check(
    state: &ClusterState,
    settings: &ClusterSettings,
) -> Result<(), RestoreProblem> {
    for (what, number) in [("component", state.next_component), ("volume", state.next_volume)] {
        if number > NUMBERS_MAX {
            return Err(misfit(format!("{what} number {number} is out of range")));
        }
    }
    if let Some(host) = state.hosts.iter().find(|host| host.side > NUMBERS_MAX) {
        return Err(misfit(format!(
            "host {} is on an invalid side of a partition: {}",
            host.host, host.side
        )));
    }
    for component in &state.components {
        check_component(component, settings)?;
    }
    check_ranges(&state.components)?;
    let mut names = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for volume in &state.volumes {
        if !names.insert(volume.name.as_str()) {
            return Err(misfit(format!("there are two volumes `{}`", volume.name)));
        }
        if volume.capacity == 0 || !volume.capacity.is_multiple_of(BLOCK_BYTES) {
            return Err(misfit(format!(
                "volume {} has an invalid size: {} bytes",
                volume.volume, volume.capacity
            )));
        }
        let wanted = volume.wanted.map(policy_from);
        if wanted.is_some_and(|policy| !policy.problems().is_empty()) {
            return Err(misfit(format!(
                "the requested policy of volume {} is invalid",
                volume.volume
            )));
        }
        for layout in std::iter::once(&volume.present).chain(&volume.next) {
            check_layout(volume, layout, settings, &mut taken)?;
        }
    }
    let numbers: BTreeSet<u32> = state.volumes.iter().map(|volume| volume.volume).collect();
    if numbers.len() < state.volumes.len() {
        return Err(misfit("two volumes have the same number".to_string()));
    }
    Ok(())
}

fn check_component(
    record: &ComponentRecord,
    settings: &ClusterSettings,
) -> Result<(), RestoreProblem> {
    let number = record.component;
    let unit = settings.stripe_unit.0;
    let longest = settings.component_limit.0.max(unit).next_multiple_of(unit);
    if record.length == 0 || !record.length.is_multiple_of(unit) || record.length > longest {
        return Err(misfit(format!(
            "component {number} has an invalid length: {} bytes",
            record.length
        )));
    }
    if record.reserved > record.length {
        return Err(misfit(format!("component {number} reserves more than its length")));
    }
    if record.base > ADDRESS_MAX {
        return Err(misfit(format!("component {number} has an invalid address: {}", record.base)));
    }
    Ok(())
}

/// No address belongs to two components.
fn check_ranges(components: &[ComponentRecord]) -> Result<(), RestoreProblem> {
    let mut sorted: Vec<&ComponentRecord> = components.iter().collect();
    sorted.sort_unstable_by_key(|record| (record.group, record.disk, record.base));
    for pair in sorted.windows(2) {
        let same_device = (pair[0].group, pair[0].disk) == (pair[1].group, pair[1].disk);
        if same_device && pair[0].base + pair[0].length > pair[1].base {
            let (first, second) = (pair[0].component, pair[1].component);
            return Err(misfit(format!("components {first} and {second} overlap")));
        }
    }
    Ok(())
}

fn check_layout(
    volume: &VolumeRecord,
    layout: &LayoutRecord,
    settings: &ClusterSettings,
    taken: &mut BTreeSet<u32>,
) -> Result<(), RestoreProblem> {
    let number = volume.volume;
    let policy = policy_from(layout.policy);
    if let Some(problem) = policy.problems().first() {
        return Err(misfit(format!("the policy of volume {number} is invalid: {problem}")));
    }
    if u64::from(layout.unit_bytes) != settings.stripe_unit.0 || layout.sets == 0 {
        return Err(misfit(format!(
            "volume {number} has an invalid layout: {} sets with stripe units of {} bytes",
            layout.sets, layout.unit_bytes
        )));
    }
    let geometry = Geometry {
        kind: policy.set_kind(),
        sets: layout.sets,
        unit_bytes: layout.unit_bytes,
        capacity_bytes: volume.capacity,
    };
    let slots = u64::from(geometry.kind.members()) * u64::from(layout.sets);
    if layout.slots.len() as u64 != slots {
        return Err(misfit(format!("volume {number} has {} of {slots} slots", layout.slots.len())));
    }
    // With as many sets as there are slots, this bounds the capacity too.
    let unit = settings.stripe_unit.0;
    let longest = settings.component_limit.0.max(unit).next_multiple_of(unit);
    let most =
        u128::from(longest) * u128::from(geometry.kind.data_units()) * u128::from(layout.sets);
    if u128::from(volume.capacity) > most {
        return Err(misfit(format!(
            "volume {number} is too large for its layout: {} bytes",
            volume.capacity
        )));
    }
    let components = layout
        .slots
        .iter()
        .flat_map(|(current, next)| std::iter::once(*current).chain(next.iter().copied()));
    for component in components {
        if !taken.insert(component) {
            return Err(misfit(format!("component {component} is used twice")));
        }
    }
    Ok(())
}
