//! Places, servers and queries for tests with a real MariaDB.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mysql_async::prelude::Queryable;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use underlay_database::Target;
use underlay_database::managed::Listen;
use underlay_database::mariadb::{Install, ServerSpec, connect, find_installs};
use underlay_host::{StateDir, Teardown, unprivileged_user};

/// A place on disk with a teardown stack, as a run has.
pub struct Place {
    pub path: PathBuf,
    pub teardown: Teardown,
    pub install: Install,
    pub runtime: Runtime,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

/// `None` when this host has no MariaDB.
pub fn place() -> Option<Place> {
    let install = find_installs(None, None).into_iter().next()?;
    // On a disk: the server writes with direct I/O, which memory file systems refuse.
    let dir = tempfile::Builder::new().prefix("underlay-maria").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Some(Place { path, teardown, install, runtime, _dir: dir })
}

impl Drop for Place {
    fn drop(&mut self) {
        self.teardown.unwind();
    }
}

/// The place, or a printed reason why there is none.
#[macro_export]
macro_rules! place_or_skip {
    () => {
        match $crate::harness::place() {
            Some(place) => place,
            None => underlay_host::skip!("no MariaDB 10.6 or MySQL 8 on this host"),
        }
    };
}

pub fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Data, log and backups in separate directories named after `run`, as on three volumes.
pub fn spec(place: &Place, run: &str, pairs: &[(&str, &str)]) -> ServerSpec {
    let volume = |name: &str| {
        let dir = place.path.join(run).join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    ServerSpec {
        name: run.to_string(),
        install: place.install.clone(),
        data: volume("data").join("maria"),
        wal: volume("wal").join("maria"),
        backup: volume("backup").join("maria"),
        settings: settings(pairs),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: place.path.join(run).join("runtime"),
        listen: Listen::UnixSocket,
    }
}

/// Rows of one query: their first columns as text.
pub fn query(place: &Place, target: &Target, sql: &str) -> Result<Vec<String>, String> {
    place.runtime.block_on(async {
        let mut client = connect(target).await.map_err(|error| error.to_string())?;
        let rows: Vec<mysql_async::Row> =
            client.query(sql).await.map_err(|error| error.to_string())?;
        client.disconnect().await.map_err(|error| error.to_string())?;
        Ok(rows
            .into_iter()
            .map(|row| row.get::<Option<String>, _>(0).flatten().unwrap_or_default())
            .collect())
    })
}

pub fn one(place: &Place, target: &Target, sql: &str) -> String {
    query(place, target, sql).unwrap().remove(0)
}
