//! The place of a test's servers: a folder with a teardown stack, as a run has.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use underlay_core::Bytes;
use underlay_database::Engine;
use underlay_database::managed::{Install, Listen, ServerSpec, find_installs};
use underlay_host::{StateDir, Teardown, free_space, unprivileged_user};

use crate::sql::runtime;

/// Less free memory than this is not used for files.
const MEMORY_MIN: Bytes = Bytes::from_gib(4);

/// A folder for servers. When this is dropped they are ended, and the folder is removed.
#[derive(Debug)]
pub struct Bed {
    /// The folder. The servers' user can pass through it.
    pub path: PathBuf,
    /// Ends what runs here.
    pub teardown: Teardown,
    /// The programs of the engine that the bed was asked for.
    pub install: Install,
    /// For the calling thread, to talk to the servers.
    pub runtime: Runtime,
    // After the stack, which is unwound first.
    _folder: TempDir,
}

/// This host has no server of an engine.
#[derive(Clone, Copy, Debug)]
pub struct NoServer(Engine);

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions = match self.0 {
            Engine::Postgresql => "PostgreSQL 13 to 18",
            Engine::Mariadb => "MariaDB 10.6 or MySQL 8",
        };
        write!(f, "no {versions} on this host")
    }
}

impl Bed {
    /// On a disk: MariaDB writes with direct I/O, which memory file systems refuse.
    pub fn on_disk(engine: Engine) -> Result<Bed, NoServer> {
        Bed::below(Path::new("/var/tmp"), engine)
    }

    /// In memory if there is enough of it and the engine can use it, because that is fast; else on a disk.
    pub fn anywhere(engine: Engine) -> Result<Bed, NoServer> {
        let memory = Path::new("/dev/shm");
        let is_roomy = free_space(memory).is_ok_and(|free| free > MEMORY_MIN);
        match engine {
            Engine::Postgresql if memory.is_dir() && is_roomy => Bed::below(memory, engine),
            Engine::Postgresql | Engine::Mariadb => Bed::on_disk(engine),
        }
    }

    fn below(base: &Path, engine: Engine) -> Result<Bed, NoServer> {
        let install = find_installs(engine, None).into_iter().next().ok_or(NoServer(engine))?;
        let folder = passable_folder(base);
        let path = folder.path().canonicalize().unwrap();
        let state = StateDir::at(path.join("state")).unwrap();
        let teardown = Teardown::create(&state, "test").unwrap();
        Ok(Bed { path, teardown, install, runtime: runtime(), _folder: folder })
    }

    /// A server's spec as that of [`spec_in`], in a folder of the bed that has the server's name.
    pub fn spec<I>(&self, install: I, name: &str, pairs: &[(&str, &str)]) -> ServerSpec<I> {
        spec_in(&self.path.join(name), install, name, pairs)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for left in self.teardown.unwind() {
            eprintln!("left behind: {left:?}");
        }
    }
}

/// A new folder below `base` that every user can pass through, removed when it is dropped.
pub fn passable_folder(base: &Path) -> TempDir {
    let folder = tempfile::Builder::new().prefix("underlay-test-").tempdir_in(base).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

/// A server's spec: data, log and backups in separate directories below `dir`, as on three volumes. It listens on
/// its Unix socket alone, and runs as the unprivileged user.
pub fn spec_in<I>(dir: &Path, install: I, name: &str, pairs: &[(&str, &str)]) -> ServerSpec<I> {
    let volume = |volume: &str| {
        let volume = dir.join(volume);
        fs::create_dir_all(&volume).unwrap();
        volume.join("db")
    };
    ServerSpec {
        name: name.to_string(),
        install,
        data: volume("data"),
        wal: volume("wal"),
        backup: volume("backup"),
        settings: settings(pairs),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: dir.join("runtime"),
        listen: Listen::UnixSocket,
    }
}

/// A server's settings by name.
pub fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}
