//! Where this host has its control group controllers, and where groups of ours can be made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::error::HostError;
use crate::mount_table::{MountEntry, mounts};

/// The controllers that matter here.
pub(crate) const CONTROLLERS: [&str; 4] = ["memory", "cpu", "cpuacct", "blkio"];

/// The mounted hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    /// Version 1: controller to mount point.
    pub v1: BTreeMap<String, PathBuf>,
    /// Version 2.
    pub v2: Option<Unified>,
}

/// Where a version 2 group can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// Below this directory.
    pub dir: PathBuf,
    /// The wanted controllers that the group will have.
    pub controllers: Vec<&'static str>,
    /// Why it will not have the others.
    pub obstacles: Vec<String>,
}

/// The version 2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unified {
    /// Its mount point.
    pub mount: PathBuf,
    /// The controllers that it can offer.
    pub controllers: Vec<String>,
}

impl Hierarchies {
    /// Of this host.
    pub fn find() -> Result<Hierarchies, HostError> {
        let mut found = from_mounts(&mounts()?);
        if let Some(unified) = &mut found.v2 {
            unified.controllers = words(&unified.mount.join("cgroup.controllers"));
        }
        Ok(found)
    }

    /// `v1`, `v2`, `hybrid` (version 1 with a version 2 tree at its side) or `none`.
    pub fn version_word(&self) -> &'static str {
        match (self.v1.is_empty(), &self.v2) {
            (true, None) => "none",
            (true, Some(_)) => "v2",
            (false, None) => "v1",
            (false, Some(_)) => "hybrid",
        }
    }

    /// Whether version 2 has this controller. A controller is in one version only.
    pub fn in_v2(&self, controller: &str) -> bool {
        self.v2
            .as_ref()
            .is_some_and(|unified| unified.controllers.iter().any(|name| name == controller))
    }
}

impl Unified {
    /// The directory below which a group can be made, and which of the wanted controllers it then
    /// has; or why there is none.
    ///
    /// Controllers reach a group only when all groups above hand them down, and no group but the
    /// root may hand down while it has processes itself. As root the place is the root, because the
    /// group that we are in belongs to a service manager; otherwise it is the group above ours that
    /// hands down most, such as a delegated user service.
    pub fn parent_for(&self, wanted: &[&'static str]) -> Result<Parent, String> {
        self.best_parent(wanted, enable_controller)
    }

    /// The same as far as can be seen without changing anything.
    pub fn possible_parent_for(&self, wanted: &[&'static str]) -> Result<Parent, String> {
        self.best_parent(wanted, could_enable)
    }

    fn best_parent(
        &self,
        wanted: &[&'static str],
        hands_down: impl Fn(&Path, &str) -> Result<(), String>,
    ) -> Result<Parent, String> {
        let candidates = if geteuid().is_root() {
            vec![self.mount.clone()]
        } else {
            groups_above(&own_group(&self.mount, ""), &self.mount)
        };
        let writable = |dir: &PathBuf| access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        let parents = candidates.into_iter().filter(writable).map(|dir| {
            let mut parent = Parent { dir, controllers: Vec::new(), obstacles: Vec::new() };
            for controller in wanted {
                match hands_down(&parent.dir, controller) {
                    Ok(()) => parent.controllers.push(controller),
                    Err(obstacle) => parent.obstacles.push(obstacle),
                }
            }
            parent
        });
        // The nearest of the best.
        parents
            .reduce(
                |best, next| {
                    if next.controllers.len() > best.controllers.len() { next } else { best }
                },
            )
            .ok_or_else(|| format!("no group of yours below `{}`", self.mount.display()))
    }
}

/// The directory below which a version 1 group can be made: the root of the hierarchy for root (see
/// [`Unified::parent_for`]), else our own group, should it have been given to us.
pub(crate) fn v1_parent(mount: &Path, controller: &str) -> PathBuf {
    if geteuid().is_root() { mount.to_path_buf() } else { own_group(mount, controller) }
}

/// The groups above `group` up to the mount point, nearest first.
fn groups_above(group: &Path, mount: &Path) -> Vec<PathBuf> {
    let above = group.ancestors().skip(1).take_while(|path| path.starts_with(mount));
    above.map(Path::to_path_buf).collect()
}

fn is_enabled(group: &Path, controller: &str) -> bool {
    words(&group.join("cgroup.subtree_control")).iter().any(|name| name == controller)
}

fn could_enable(group: &Path, controller: &str) -> Result<(), String> {
    // Handing down can only be switched on where there are no processes, except at the root.
    if is_enabled(group, controller)
        || geteuid().is_root()
        || words(&group.join("cgroup.procs")).is_empty()
    {
        return Ok(());
    }
    Err(format!("`{}` has processes and does not hand down {controller}", group.display()))
}

/// Lets the groups within a version 2 group have limits of their own, with the controllers that it has. What it cannot hand down.
pub(crate) fn enable_all_controllers(group: &Path) -> Vec<String> {
    let has = words(&group.join("cgroup.controllers"));
    let wanted = ["memory", "cpu", "io"].into_iter();
    let wanted = wanted.filter(|controller| has.iter().any(|name| name == controller));
    wanted.filter_map(|controller| enable_controller(group, controller).err()).collect()
}

fn enable_controller(group: &Path, controller: &str) -> Result<(), String> {
    if is_enabled(group, controller) {
        return Ok(());
    }
    fs::write(group.join("cgroup.subtree_control"), format!("+{controller}")).map_err(|error| {
        format!("`{}` cannot hand down the {controller} controller: {error}", group.display())
    })
}

/// Our own group in the hierarchy of `controller`; the empty name is version 2.
fn own_group(mount: &Path, controller: &str) -> PathBuf {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        controllers.split(',').any(|name| name == controller).then(|| path.trim_start_matches('/'))
    });
    path.map_or_else(|| mount.to_path_buf(), |path| mount.join(path))
}

fn from_mounts(mounts: &[MountEntry]) -> Hierarchies {
    let mut found = Hierarchies::default();
    for entry in mounts {
        match entry.file_system.as_str() {
            "cgroup" => {
                for option in entry.super_options.split(',') {
                    if CONTROLLERS.contains(&option) {
                        found.v1.entry(option.to_string()).or_insert_with(|| entry.target.clone());
                    }
                }
            }
            "cgroup2" if found.v2.is_none() => {
                found.v2 = Some(Unified { mount: entry.target.clone(), controllers: Vec::new() });
            }
            _ => {}
        }
    }
    found
}

fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::from_mounts;
    use crate::mount_table::MountEntry;

    fn entry(target: &str, file_system: &str, super_options: &str) -> MountEntry {
        MountEntry {
            root: PathBuf::from("/"),
            target: PathBuf::from(target),
            file_system: file_system.to_string(),
            super_options: super_options.to_string(),
        }
    }

    #[test]
    fn tells_the_versions_apart() {
        let v1 = entry("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
        let systemd = entry("/sys/fs/cgroup/systemd", "cgroup", "rw,name=systemd");
        let v2 = entry("/sys/fs/cgroup/unified", "cgroup2", "rw,nsdelegate");
        let check = |mounts: &[MountEntry], word: &str| {
            assert_eq!(from_mounts(mounts).version_word(), word);
        };
        check(&[], "none");
        check(&[v1.clone(), systemd], "v1");
        check(&[v1.clone(), v2.clone()], "hybrid");
        check(std::slice::from_ref(&v2), "v2");
        let hybrid = from_mounts(&[v1, v2]);
        assert_eq!(hybrid.v1["cpuacct"], PathBuf::from("/sys/fs/cgroup/cpu,cpuacct"));
        assert!(!hybrid.in_v2("memory"));
    }
}
