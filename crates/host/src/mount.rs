//! Mounted file systems.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};
use rustix::process::geteuid;
use underlay_core::FileSystem;

use crate::error::HostError;
use crate::teardown::{Resource, Teardown, Ticket};

pub use crate::mount_point::{is_in_use, is_mount_point};

/// A mounted file system. It stays mounted when this is dropped: the teardown stack unmounts it.
#[derive(Debug)]
pub struct Mount {
    teardown: Teardown,
    ticket: Ticket,
    target: PathBuf,
}

impl Mount {
    /// Mounts the block device `source` on the existing directory `target`. `options` is a comma
    /// separated list as for mount(8), or empty; `nosuid` and `nodev` are always added, since a
    /// data volume needs neither.
    pub fn make(
        teardown: &Teardown,
        source: &Path,
        target: &Path,
        system: FileSystem,
        options: &str,
    ) -> Result<Mount, HostError> {
        if !geteuid().is_root() {
            return Err(HostError::NeedsRoot { action: "mount a volume" });
        }
        let target = target.canonicalize().map_err(HostError::file("resolve", target))?;
        let (flags, data) = split_options(options);
        let data =
            CString::new(data).map_err(HostError::file("use the mount options of", &target))?;
        let ticket = teardown.register(Resource::Mount { target: target.clone() })?;
        let flags = flags | MountFlags::NOSUID | MountFlags::NODEV;
        if let Err(error) = mount(source, &target, system.as_str(), flags, data.as_c_str()) {
            teardown.forget(ticket);
            return Err(HostError::file("mount", source)(error));
        }
        Ok(Mount { teardown: teardown.clone(), ticket, target })
    }

    /// Where it is mounted; absolute and free of symbolic links.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Unmounts it.
    pub fn unmount(self) -> Result<(), HostError> {
        self.teardown.release(self.ticket)
    }
}

/// The flags that the kernel takes as bits, and the rest, which the file system takes as text.
fn split_options(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data: Vec<&str> = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "ro" => flags |= MountFlags::RDONLY,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "noexec" => flags |= MountFlags::NOEXEC,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "rw" | "defaults" | "nosuid" | "nodev" => {}
            other => data.push(other),
        }
    }
    (flags, data.join(","))
}

#[cfg(test)]
mod tests {
    use rustix::mount::MountFlags;

    use super::split_options;

    #[test]
    fn splits_options() {
        assert_eq!(
            split_options("noatime,data=ordered,,rw,discard"),
            (MountFlags::NOATIME, "data=ordered,discard".to_string())
        );
        assert_eq!(split_options(""), (MountFlags::empty(), String::new()));
    }
}
