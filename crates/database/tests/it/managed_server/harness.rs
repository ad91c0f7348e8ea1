//! Where the servers of these tests live, and how they are asked.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use underlay_core::Bytes;
use underlay_database::Target;
use underlay_database::postgres::{Install, Listen, ServerSpec, find_installs};
use underlay_host::{StateDir, Teardown, free_space, unprivileged_user};

/// A place on disk with a teardown stack, as a run has.
pub struct Place {
    pub path: PathBuf,
    pub teardown: Teardown,
    pub install: Install,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

/// What a test needs under its clusters.
#[derive(Clone, Copy, PartialEq)]
pub enum Ground {
    /// A file system on a disk, with a page cache that can be dropped.
    Disk,
    /// Anything; memory if there is enough of it, because it is quick.
    Any,
}

/// `None` when this host has no PostgreSQL.
pub fn place(ground: Ground) -> Option<Place> {
    let install = find_installs(None).into_iter().next()?;
    let memory = Path::new("/dev/shm");
    let roomy = free_space(memory).is_ok_and(|free| free > Bytes::from_gib(4));
    let base = match ground {
        Ground::Any if memory.is_dir() && roomy => memory,
        _ => Path::new("/var/tmp"),
    };
    let dir = tempfile::Builder::new().prefix("underlay-pg").tempdir_in(base).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    Some(Place { path, teardown, install, _dir: dir })
}

macro_rules! place_or_skip {
    ($ground:ident) => {
        match $crate::managed_server::harness::place(
            $crate::managed_server::harness::Ground::$ground,
        ) {
            Some(place) => place,
            None => underlay_host::skip!("no PostgreSQL 13 to 18 on this host"),
        }
    };
}

pub(crate) use place_or_skip;

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
        data: volume("data").join("pg"),
        wal: volume("wal").join("pg"),
        backup: volume("backup").join("pg"),
        settings: settings(pairs),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: place.path.join(run).join("runtime"),
        listen: Listen::Loopback,
    }
}

pub fn query(target: &Target, sql: &str) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = target.connect().await.map_err(|error| error.to_string())?;
        let messages = client.simple_query(sql).await.map_err(|error| error.to_string())?;
        Ok(messages
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => {
                    Some(row.get(0).unwrap_or_default().to_string())
                }
                _ => None,
            })
            .collect())
    })
}

pub fn one(target: &Target, sql: &str) -> String {
    query(target, sql).unwrap().remove(0)
}

pub const MAKE_ROWS: &str = "CREATE TABLE t AS SELECT g AS id, repeat(md5(g::text), 8) AS text \
     FROM generate_series(1, 20000) g; CREATE INDEX ON t (id)";
pub const SUM: &str =
    "SELECT count(*) || ' ' || sum(id) || ' ' || md5(string_agg(text, ',' ORDER BY id)) FROM t";

/// Gone, or a zombie that the first process of the system has not collected yet.
pub fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

pub fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_ascii_whitespace().map(|child| child.parse().unwrap()).collect()
}
