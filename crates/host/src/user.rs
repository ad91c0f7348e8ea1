//! The user that servers run as: never root.
//!
//! Names are looked up in `/etc/passwd` alone: a static binary cannot ask a directory service, and
//! the users that database packages create are local.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::HostError;

const PASSWD: &str = "/etc/passwd";
/// In order of preference. The packages of PostgreSQL create the first, every system has the second.
const PREFERRED: [&str; 2] = ["postgres", "nobody"];

/// A user of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its login name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its primary group.
    pub gid: u32,
}

/// Whom servers run as when we are root (`postgres` if it exists, else `nobody`); `None` when we
/// are not root, and servers simply run as ourselves.
pub fn unprivileged_user() -> Result<Option<User>, HostError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string(PASSWD).map_err(HostError::file("read", Path::new(PASSWD)))?;
    PREFERRED
        .iter()
        .find_map(|name| find(&passwd, name))
        .map(Some)
        .ok_or_else(|| HostError::NoSuchUser(PREFERRED[1].to_string()))
}

impl User {
    /// The user of this name.
    pub fn named(name: &str) -> Result<User, HostError> {
        let passwd =
            fs::read_to_string(PASSWD).map_err(HostError::file("read", Path::new(PASSWD)))?;
        find(&passwd, name).ok_or_else(|| HostError::NoSuchUser(name.to_string()))
    }

    /// Makes this user the owner of a file or directory (not of what is inside). A symbolic link is not followed: in a
    /// directory that the user may write to, it could point to anything.
    pub fn own(&self, path: &Path) -> Result<(), HostError> {
        lchown(path, Some(self.uid), Some(self.gid))
            .map_err(HostError::file("change owner of", path))
    }

    /// Makes this user the owner of an open file, whatever its path leads to by now. `path` is for messages.
    pub fn own_file(&self, file: &File, path: &Path) -> Result<(), HostError> {
        fchown(file, Some(self.uid), Some(self.gid))
            .map_err(HostError::file("change owner of", path))
    }

    /// The first parent directory of `path` that this user may not traverse, if any.
    ///
    /// Judged by owner, group and mode; access control lists are not looked at.
    pub fn blocked_at(&self, path: &Path) -> Option<PathBuf> {
        let mut ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
        ancestors.reverse();
        ancestors.into_iter().find(|dir| !self.may_pass(dir)).map(Path::to_path_buf)
    }

    fn may_pass(&self, dir: &Path) -> bool {
        let Ok(metadata) = dir.metadata() else { return false };
        let mode = metadata.mode();
        let execute = if metadata.uid() == self.uid {
            0o100
        } else if metadata.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        self.uid == 0 || mode & execute != 0
    }
}

/// Sets mode and owner of a directory, which must not be a symbolic link: the user could make it point to any directory
/// of the host.
pub fn own_directory(dir: &Path, mode: u32, owner: Option<&User>) -> Result<(), HostError> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(dir)
        .map_err(HostError::file("open as a directory that is not a link", dir))?;
    open.set_permissions(Permissions::from_mode(mode))
        .map_err(HostError::file("set the permissions of", dir))?;
    owner.map_or(Ok(()), |user| user.own_file(&open, dir))
}

fn find(passwd: &str, name: &str) -> Option<User> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (found == name).then(|| User { name: name.to_string(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::{User, find};

    #[test]
    fn finds_a_user_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n+nis\npostgres2:x:7:7::/:/bin/sh\npostgres:x:101:104:PG:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(
            find(passwd, "postgres"),
            Some(User { name: "postgres".to_string(), uid: 101, gid: 104 })
        );
        assert_eq!(find(passwd, "post"), None);
    }

    #[test]
    fn what_a_link_points_to_keeps_its_owner_and_mode() {
        use super::{own_directory, unprivileged_user};
        use std::os::unix::fs::{MetadataExt, symlink};
        let Some(user) = unprivileged_user().unwrap() else {
            crate::skip!("needs root to give files away");
        };
        let dir = tempfile::tempdir().unwrap();
        let (foreign, link) = (dir.path().join("foreign"), dir.path().join("link"));
        create_dir(&foreign).unwrap();
        set_permissions(&foreign, Permissions::from_mode(0o755)).unwrap();
        symlink(&foreign, &link).unwrap();
        user.own(&link).unwrap();
        let error = own_directory(&link, 0o700, Some(&user)).unwrap_err();
        assert!(error.to_string().contains("link"), "{error}");
        let facts = foreign.metadata().unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o755));
        own_directory(&foreign, 0o700, Some(&user)).unwrap();
        let facts = foreign.metadata().unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o777), (user.uid, 0o700));
    }

    #[test]
    fn names_the_directory_that_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (dir.path().join("outer"), dir.path().join("outer/inner"));
        create_dir(&outer).unwrap();
        create_dir(&inner).unwrap();
        set_permissions(dir.path(), Permissions::from_mode(0o711)).unwrap();
        set_permissions(&outer, Permissions::from_mode(0o700)).unwrap();
        let stranger = User { name: "stranger".to_string(), uid: 54_321, gid: 54_321 };
        assert_eq!(stranger.blocked_at(&inner.join("data")), Some(outer.clone()));
        set_permissions(&outer, Permissions::from_mode(0o711)).unwrap();
        set_permissions(&inner, Permissions::from_mode(0o711)).unwrap();
        assert_eq!(stranger.blocked_at(&inner.join("data")), None);
    }
}
