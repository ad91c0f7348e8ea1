//! The directories of a cluster: making them, filling them, and knowing whose they are.
//!
//! ```text
//! <data>/                    PGDATA, 0700, owned by the server's user
//!   underlay.cluster         says that Underlay made this cluster and may replace it
//!   pg_wal -> <wal>
//! <wal>/                     the write-ahead log, on its own volume
//! <backup>/                  backups, on their own volume
//! ```

use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::process::geteuid;
use underlay_host::{HostError, ProgramSpec, User, run_program_with};

use crate::postgres::error::ServerError;
use crate::postgres::install::SUPPORTED_MAJORS;
use crate::postgres::server::ServerSpec;
use crate::postgres::tree_copy::{empty_directory, is_empty, sync_file_systems};
use crate::target::Secret;

/// The role that owns the cluster.
pub(crate) const SUPERUSER: &str = "underlay";
/// Marks a cluster as ours.
const CLAIM: &str = "underlay.cluster";
/// The link in the data directory.
const WAL_LINK: &str = "pg_wal";

/// Refuses what cannot become a server, before anything is touched.
pub(crate) fn check_spec(spec: &ServerSpec) -> Result<(), ServerError> {
    let install = &spec.install;
    if !SUPPORTED_MAJORS.contains(&install.major) {
        return Err(ServerError::UnsupportedVersion {
            major: install.major,
            bin_dir: install.bin_dir.clone(),
        });
    }
    if spec.run_as.is_none() && geteuid().is_root() {
        return Err(ServerError::AsRoot);
    }
    for path in [&spec.data, &spec.wal, &spec.backup, &spec.runtime_dir] {
        if !path.is_absolute() {
            return Err(HostError::NotAbsolute(path.clone()).into());
        }
    }
    Ok(())
}

/// Makes the directories that are missing, for the server's user alone.
pub(crate) fn make_directories(spec: &ServerSpec) -> Result<(), ServerError> {
    for dir in [&spec.data, &spec.wal, &spec.backup] {
        make_private(dir, spec.run_as.as_ref())?;
    }
    let programs = spec.install.program("postgres");
    for path in [&spec.data, &spec.wal, &spec.backup, &programs] {
        require_reachable(path, spec.run_as.as_ref())?;
    }
    Ok(())
}

/// A directory of mode 0700 that belongs to this user.
pub(crate) fn make_private(dir: &Path, owner: Option<&User>) -> Result<(), ServerError> {
    if !dir.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(dir)
            .map_err(ServerError::file("create directory", dir))?;
    }
    fs::set_permissions(dir, Permissions::from_mode(0o700))
        .map_err(ServerError::file("set the permissions of", dir))?;
    owner.map_or(Ok(()), |user| user.own(dir)).map_err(ServerError::from)
}

/// The server would only say `Permission denied`.
pub(crate) fn require_reachable(path: &Path, user: Option<&User>) -> Result<(), ServerError> {
    let Some(user) = user else { return Ok(()) };
    match user.blocked_at(path) {
        None => Ok(()),
        Some(blocked_at) => Err(ServerError::Unreachable {
            user: user.name.clone(),
            path: path.to_path_buf(),
            blocked_at,
        }),
    }
}

/// Runs initdb in empty directories.
///
/// The locale is C, whose sort order is the same on every host, with UTF-8 text. Data checksums are
/// on: damage by the storage must be seen. initdb's own thousand fsyncs are replaced by one sync of
/// each file system, which is as durable and takes no minute on a slow volume.
pub(crate) fn initialise(spec: &ServerSpec, password: &Secret) -> Result<(), ServerError> {
    for dir in [&spec.data, &spec.wal] {
        if !is_empty(dir)? {
            return Err(ServerError::NotEmpty(dir.clone()));
        }
    }
    let owner = spec.run_as.as_ref();
    let password_file = spec.runtime_dir.join("initdb.password");
    write_private(&password_file, password.reveal(), owner)?;
    let initialised = run_initdb(spec, &password_file);
    fs::remove_file(&password_file).map_err(ServerError::file("remove", &password_file))?;
    initialised?;
    claim(spec)?;
    sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())
}

/// Whether Underlay made the cluster in this directory.
pub(crate) fn is_ours(data: &Path) -> bool {
    data.join(CLAIM).is_file()
}

/// Marks the cluster as ours.
pub(crate) fn claim(spec: &ServerSpec) -> Result<(), ServerError> {
    write_private(&spec.data.join(CLAIM), &spec.name, spec.run_as.as_ref())
}

/// Removes a cluster of ours, and leaves the directories.
pub(crate) fn clear(spec: &ServerSpec) -> Result<(), ServerError> {
    if !is_empty(&spec.data)? && !is_ours(&spec.data) {
        return Err(ServerError::ForeignCluster(spec.data.clone()));
    }
    if !is_empty(&spec.wal)? && !is_ours(&spec.data) {
        return Err(ServerError::NotEmpty(spec.wal.clone()));
    }
    // The log goes first and the claim last, so that a clearing that was cut short can be repeated.
    empty_directory(&spec.wal)?;
    empty_except_claim(&spec.data)?;
    empty_directory(&spec.data)
}

fn empty_except_claim(data: &Path) -> Result<(), ServerError> {
    let claim = data.join(CLAIM);
    let entries = fs::read_dir(data).map_err(ServerError::file("list", data))?;
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| *path != claim) {
        let is_dir = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let removed = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(ServerError::file("remove", &path))?;
    }
    Ok(())
}

/// Points `pg_wal` to the WAL directory.
pub(crate) fn link_wal(spec: &ServerSpec) -> Result<(), ServerError> {
    let link = spec.data.join(WAL_LINK);
    symlink(&spec.wal, &link).map_err(ServerError::file("create link", &link))?;
    let Some(user) = &spec.run_as else { return Ok(()) };
    std::os::unix::fs::lchown(&link, Some(user.uid), Some(user.gid))
        .map_err(ServerError::file("change owner of", &link))
}

/// Whether a path relative to the data directory belongs into a copy of a stopped cluster.
pub(crate) fn is_copied(relative: &Path) -> bool {
    // The WAL is copied on its own; the others describe the running server.
    ![WAL_LINK, "postmaster.pid", "postmaster.opts", CLAIM]
        .iter()
        .any(|name| relative == Path::new(name))
}

/// Refuses tablespaces, which would be outside the volumes.
pub(crate) fn refuse_tablespaces(data: &Path) -> Result<(), ServerError> {
    let dir = data.join("pg_tblspc");
    if is_empty(&dir)? { Ok(()) } else { Err(ServerError::Tablespaces(data.to_path_buf())) }
}

/// A file that only its owner may read.
pub(crate) fn write_private(
    path: &Path,
    text: &str,
    owner: Option<&User>,
) -> Result<(), ServerError> {
    // A new file each time: never through a link that somebody else put there.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(ServerError::file("replace", path)(error));
        }
        _ => {}
    }
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(ServerError::file("write", path))?;
    owner.map_or(Ok(()), |user| user.own(path)).map_err(ServerError::from)
}

fn run_initdb(spec: &ServerSpec, password_file: &Path) -> Result<(), ServerError> {
    let mut args: Vec<std::ffi::OsString> = vec!["--pgdata".into(), spec.data.clone().into()];
    args.extend(["--waldir".into(), spec.wal.clone().into()]);
    args.extend(["--username".into(), SUPERUSER.into()]);
    args.extend(["--pwfile".into(), password_file.into()]);
    args.extend(
        ["--auth=scram-sha-256", "--no-locale", "--encoding=UTF8", "--data-checksums", "--no-sync"]
            .map(Into::into),
    );
    let program = spec.install.program("initdb");
    run_program_with(&ProgramSpec {
        program: &program,
        args,
        env: Vec::new(),
        run_as: spec.run_as.as_ref(),
        working_dir: Path::new("/"),
    })?;
    Ok(())
}
