//! The directories of a managed server: creating them, and recognising their owner.

use std::fs::{self, DirBuilder};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use underlay_core::SystemError;
use underlay_host::{HostError, Teardown, User, own_directory};

use crate::Engine;
use crate::managed::{ServerError, ServerSpec, empty_directory, is_empty};
use crate::target::Secret;

/// Marks the data directory of a database as ours.
pub(crate) const CLAIM: &str = "underlay.cluster";
/// `sun_path` has 108 bytes, the last of which is zero.
const SOCKET_PATH_BYTES: usize = 107;

/// Refuses users and places that cannot become a server, before anything is touched.
pub(crate) fn check_places<I>(engine: Engine, spec: &ServerSpec<I>) -> Result<(), ServerError> {
    if spec.run_as.is_none() && geteuid().is_root() {
        return Err(ServerError::AsRoot(engine));
    }
    for path in [&spec.data, &spec.wal, &spec.backup, &spec.runtime_dir] {
        if !path.is_absolute() {
            return Err(HostError::NotAbsolute(path.clone()).into());
        }
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
    own_directory(dir, 0o700, owner).map_err(ServerError::from)
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

/// Whether Underlay made the cluster in this directory.
pub(crate) fn is_ours(data: &Path) -> bool {
    data.join(CLAIM).is_file()
}

/// Marks the cluster as ours.
pub(crate) fn claim(data: &Path, name: &str, owner: Option<&User>) -> Result<(), ServerError> {
    write_private(&data.join(CLAIM), name, owner)
}

/// Removes a cluster of ours, and leaves the directories.
pub(crate) fn clear(data: &Path, log: &Path) -> Result<(), ServerError> {
    if !is_empty(data)? && !is_ours(data) {
        return Err(ServerError::ForeignCluster(data.to_path_buf()));
    }
    if !is_empty(log)? && !is_ours(data) {
        return Err(ServerError::NotEmpty(log.to_path_buf()));
    }
    // The log goes first and the claim last, so that a clearing that was cut short can be repeated.
    empty_directory(log)?;
    empty_except_claim(data)?;
    empty_directory(data)
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

/// A file that only its owner may read.
pub(crate) fn write_private(
    path: &Path,
    text: &str,
    owner: Option<&User>,
) -> Result<(), ServerError> {
    // A new file each time: never through a link that another user put there.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(ServerError::file("replace", path)(error));
        }
        _ => {}
    }
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file))
        .map_err(ServerError::file("write", path))?;
    owner.map_or(Ok(()), |user| user.own_file(&file, path)).map_err(ServerError::from)
}

/// Makes the runtime directory, which the server's user must be able to pass.
pub(crate) fn make_runtime_dir(dir: &Path) -> Result<(), ServerError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(ServerError::file("create directory", dir))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o711))
        .map_err(ServerError::file("set the permissions of", dir))
}

/// Below the runtime directory if its path is short enough for a socket, else below `/run` or `/tmp`.
///
/// `longest_name` is the longest name of a socket in it, with the slash.
pub(crate) fn make_socket_dir(
    teardown: &Teardown,
    runtime_dir: &Path,
    owner: Option<&User>,
    longest_name: &str,
) -> Result<PathBuf, ServerError> {
    let near = runtime_dir.join("socket");
    if near.as_os_str().len() + longest_name.len() <= SOCKET_PATH_BYTES {
        make_private(&near, owner)?;
        return Ok(near);
    }
    let base = if owner.is_some() { "/run" } else { "/tmp" };
    let far = PathBuf::from(format!("{base}/underlay-{}", &random_hex()?[..12]));
    teardown.create_directory(&far)?;
    make_private(&far, owner)?;
    Ok(far)
}

/// Where the superuser's password is kept.
pub(crate) fn password_file(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("superuser.password")
}

/// A password that cannot be guessed.
pub(crate) fn random_password() -> Result<Secret, ServerError> {
    Ok(Secret::new(random_hex()?))
}

fn random_hex() -> Result<String, ServerError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0u8; 24];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(ServerError::file("read", path))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A port of 127.0.0.1 that is free at this moment.
pub(crate) fn free_port() -> Result<u16, ServerError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| SystemError::of_call("find a free port", source).into())
}

/// The directories that a pattern with one `*` stands for.
pub(crate) fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.into()] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let (suffix, below) = after.split_once('/').unwrap_or((after, ""));
    let Ok(entries) = fs::read_dir(if parent.is_empty() { "/" } else { parent }) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| {
                name.strip_prefix(prefix).is_some_and(|rest| rest.ends_with(suffix))
            })
        })
        .map(|entry| if below.is_empty() { entry.path() } else { entry.path().join(below) })
        .collect()
}
