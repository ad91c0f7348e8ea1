//! A server of either engine for one test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use mysql_async::prelude::Queryable;
use tempfile::TempDir;
use underlay_database::managed::{Listen, Server, ServerSpec, find_installs};
use underlay_database::{Engine, Target, mariadb};
use underlay_host::{StateDir, Teardown, unprivileged_user};

/// A running server, removed at the end of the test.
pub struct Running {
    pub server: Server,
    teardown: Teardown,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.teardown.unwind();
    }
}

/// Small, and durable: what is acknowledged must survive the end of the server's process.
fn settings(engine: Engine) -> BTreeMap<String, String> {
    let pairs: &[(&str, &str)] = match engine {
        Engine::Postgresql => &[("shared_buffers", "256MB"), ("autovacuum", "off")],
        Engine::Mariadb => &[
            ("innodb_buffer_pool_size", "256M"),
            ("innodb_log_file_size", "64M"),
            // The log is written at each commit; only the machine's own end would lose it.
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
        ],
    };
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// `None` when this host has no server of this engine.
pub fn running(engine: Engine) -> Option<Running> {
    let install = find_installs(engine, None).into_iter().next()?;
    // On a disk: MariaDB writes with direct I/O, which memory file systems refuse.
    let dir = tempfile::Builder::new().prefix("underlay-jobs").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let volume = |name: &str| {
        let volume = path.join(name);
        fs::create_dir_all(&volume).unwrap();
        volume.join("db")
    };
    let spec = ServerSpec {
        name: "jobs".to_string(),
        install,
        data: volume("data"),
        wal: volume("wal"),
        backup: volume("backup"),
        settings: settings(engine),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: path.join("runtime"),
        listen: Listen::UnixSocket,
    };
    let mut server = Server::create(&teardown, spec).unwrap();
    server.start().unwrap();
    Some(Running { server, teardown, _dir: dir })
}

/// Skips the test when there is no server.
macro_rules! running_or_skip {
    ($engine:expr) => {
        match $crate::jobs::harness::running($engine) {
            Some(running) => running,
            None => underlay_host::skip!("no server of this engine on this host"),
        }
    };
}
pub(crate) use running_or_skip;

/// Carries out one statement.
pub fn execute(target: &Target, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                client.batch_execute(sql).await.map_err(|error| format!("{error:?}"))
            }
            Engine::Mariadb => {
                let mut conn = mariadb::connect(target).await.unwrap();
                conn.query_drop(sql).await.map_err(|error| error.to_string())
            }
        }
    });
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}
