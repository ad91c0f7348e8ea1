//! What happens to volumes by name and to the cluster's make-up: rot and torn writes somewhere in a volume, another policy,
//! one disk group or one device more.
//!
//! Rot is put where data is: blocks that were never written hold nothing that could be lost. All of it goes to one member
//! of each set, so that it is one failure, as the decay of one device would be.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use crate::data_plane::BLOCK_BYTES;
use rand::RngExt;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use underlay_core::{Nanos, RootSeed};
use underlay_model::cluster::{
    ComponentRole, ComponentState, ComponentStatus, Fault, Policy, VolumeId,
};
use underlay_model::{DeviceProfile, DiskGroupSpec};

use super::plane::ClusterPlane;

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Attempts to find yet another block before it is said that there are too few.
const ATTEMPTS_PER_BIT: u32 = 64;

/// Flips bits of one member of a volume, each in a block of its own.
pub(crate) fn rot_volume<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    volume: &str,
    bits: u32,
    seed: u64,
) -> Result<(), String> {
    let mut random = RootSeed(seed).stream("bit-rot", 0);
    let members = members(plane, volume, |count| random.random_range(0..count))?;
    let mut written = Vec::new();
    for member in &members {
        let path = plane.component_path(member.device, member.component);
        let blocks = written_blocks(&path)
            .map_err(|error| format!("could not look for data in {}: {error}", path.display()))?;
        written.extend(blocks.into_iter().map(|(first, count)| (member.component, first, count)));
    }
    let total: u64 = written.iter().map(|(_, _, count)| count).sum();
    if total < u64::from(bits) {
        return Err(format!("volume `{volume}` has only {total} blocks with data"));
    }
    let mut chosen = std::collections::BTreeSet::new();
    for _ in 0..bits * ATTEMPTS_PER_BIT {
        if chosen.len() < bits as usize {
            chosen.insert(random.random_range(0..total));
        }
    }
    for mut index in chosen {
        for (component, first, count) in &written {
            if index >= *count {
                index -= count;
                continue;
            }
            let offset_bytes = (first + index) * BLOCK + random.random_range(0..BLOCK);
            let bit = random.random_range(0..8);
            plane
                .inject(now, Fault::BitRot { component: *component, offset_bytes, bit })
                .map_err(|problem| problem.to_string())?;
            break;
        }
    }
    Ok(())
}

/// Has the next write to each component of one member of a volume torn.
pub(crate) fn tear_volume<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    volume: &str,
    keep_bytes: u32,
) -> Result<(), String> {
    for member in members(plane, volume, |_| 0)? {
        plane
            .inject(now, Fault::TornWrite { component: member.component, keep_bytes })
            .map_err(|problem| problem.to_string())?;
    }
    Ok(())
}

/// Gives a volume, or all of them, another policy. Stops at the first that cannot have it.
pub(crate) fn set_policy<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    volume: Option<&str>,
    policy: Policy,
) -> Result<(), String> {
    let volumes: Vec<VolumeId> = match volume {
        Some(name) => vec![find_volume(plane, name)?],
        None => plane.cluster.volumes().collect(),
    };
    for volume in volumes {
        plane.set_policy(now, volume, policy).map_err(|refusal| refusal.to_string())?;
    }
    Ok(())
}

/// Adds a disk group to a host.
pub(crate) fn add_group<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    host: &str,
    group: &DiskGroupSpec,
) -> Result<(), String> {
    let Some(host_id) = plane.cluster.find_host(host) else {
        return Err(format!("there is no host `{host}`"));
    };
    let taken =
        plane.cluster.groups().any(|(_, owner, name)| owner == host_id && name == group.name);
    if taken {
        return Err(format!("host `{host}` already has a disk group `{}`", group.name));
    }
    plane
        .add_group(now, host_id, group)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Adds a capacity device to a disk group, `HOST/GROUP`.
pub(crate) fn add_device<C>(
    plane: &mut ClusterPlane<C>,
    now: Nanos,
    group: &str,
    profile: &DeviceProfile,
) -> Result<(), String> {
    let Some(found) = plane.cluster.find_group(group) else {
        return Err(format!("there is no disk group `{group}`"));
    };
    plane
        .add_device(now, found, profile)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn find_volume<C>(plane: &ClusterPlane<C>, name: &str) -> Result<VolumeId, String> {
    plane.cluster.find_volume(name).ok_or_else(|| {
        let known = plane.cluster.volumes().filter_map(|id| plane.cluster.volume_status(id));
        let known: Vec<String> = known.map(|status| status.name).collect();
        format!("there is no volume `{name}`; there are {}", known.join(", "))
    })
}

/// The components in the same place of every set of a volume: one copy, or one member of a parity set.
fn members<C>(
    plane: &ClusterPlane<C>,
    volume: &str,
    choose: impl FnOnce(u8) -> u8,
) -> Result<Vec<ComponentStatus>, String> {
    let id = find_volume(plane, volume)?;
    let status = plane.cluster.volume_status(id).ok_or("the volume is gone")?;
    let current = || {
        status.components.iter().filter(|component| {
            component.role == ComponentRole::Current && component.state == ComponentState::Active
        })
    };
    // Only members that every set has in order: others are failures already.
    let sets = current().map(|component| component.set).max().map_or(0, |last| last as usize + 1);
    let slots: Vec<u8> = (0..=u8::MAX)
        .filter(|slot| sets > 0 && current().filter(|it| it.slot == *slot).count() == sets)
        .collect();
    if slots.is_empty() {
        return Err(format!("no copy of volume `{volume}` is intact"));
    }
    let slot = slots[usize::from(choose(slots.len() as u8))];
    Ok(current().filter(|component| component.slot == slot).copied().collect())
}

/// Runs of blocks with data in a sparse file: (first block, blocks).
fn written_blocks(path: &Path) -> std::io::Result<Vec<(u64, u64)>> {
    let file = File::open(path)?;
    let mut runs = Vec::new();
    let mut at = 0;
    loop {
        let begin = match seek(file.as_fd(), SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => return Ok(runs),
            Err(error) => return Err(error.into()),
        };
        let end = seek(file.as_fd(), SeekFrom::Hole(begin))?;
        let (first, last) = (begin.div_ceil(BLOCK), end / BLOCK);
        if last > first {
            runs.push((first, last - first));
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::written_blocks;
    use std::os::unix::fs::FileExt;

    #[test]
    fn only_blocks_with_data_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c1");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        assert_eq!(written_blocks(&path).unwrap(), []);
        file.write_all_at(&[7; 8192], 32 << 20).unwrap();
        let runs = written_blocks(&path).unwrap();
        let first = (32 << 20) / 4096;
        let has =
            |block: u64| runs.iter().any(|(begin, count)| (*begin..begin + count).contains(&block));
        assert!(has(first) && has(first + 1), "{runs:?}");
        // File systems allocate in larger units, but not the whole file.
        assert!(!has(0) && !has(16_000), "{runs:?}");
    }
}
