//! A server of a test's own, empty; dropping it leaves nothing behind.

pub mod commits;

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use underlay_database::managed::{Listen, Server, ServerSpec, StopMode, find_installs};
use underlay_database::{Engine, Target};
use underlay_driver::Driver;
use underlay_host::{StateDir, Teardown, unprivileged_user};
use underlay_workload::transactional::RunAccounting;

/// Waits half a second, and up to 20 until more than `least` transactions have been committed of what the headline counts: on
/// a busy host, and where a deadlock holds users up for a second (`deadlock_timeout`), it takes its time.
pub fn work_until<B: RunAccounting>(driver: &Driver<B>, least: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    let mut committed = 0;
    while committed <= least && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(500));
        committed += driver.tick().headline_count();
    }
}

/// A running server.
pub struct TestServer {
    pub server: Server,
    teardown: Teardown,
    pub runtime: Runtime,
    /// The database to use, where it is not the engine's own.
    pub database: Option<&'static str>,
    _folder: tempfile::TempDir,
}

impl TestServer {
    /// None where there is no server program.
    pub fn start(engine: Engine, listen: Listen) -> Option<TestServer> {
        let install = find_installs(engine, None).into_iter().next_back()?;
        // On a disk: MariaDB writes with direct I/O, which memory file systems refuse.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let state = StateDir::at(folder.path().join("state")).unwrap();
        open_up(folder.path());
        let teardown = Teardown::create(&state, "driver test").unwrap();
        let scratch = state.scratch_dir("test");
        std::fs::create_dir_all(&scratch).unwrap();
        open_up(&scratch);
        let run_as = unprivileged_user().unwrap();
        for part in ["data", "wal", "backup", "run"] {
            let path = scratch.join(part);
            std::fs::create_dir(&path).unwrap();
            run_as.iter().for_each(|user| user.own(&path).unwrap());
        }
        let settings: &[(&str, &str)] = match engine {
            Engine::Postgresql => &[("shared_buffers", "64MB"), ("max_connections", "40")],
            Engine::Mariadb => &[
                ("innodb_buffer_pool_size", "128M"),
                ("innodb_log_file_size", "64M"),
                ("max_connections", "40"),
            ],
        };
        let spec = ServerSpec {
            name: "driver-test".to_string(),
            install,
            data: scratch.join("data/cluster"),
            wal: scratch.join("wal/cluster"),
            backup: scratch.join("backup/cluster"),
            settings: settings
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            run_as,
            cgroup: None,
            runtime_dir: scratch.join("run"),
            listen,
        };
        let mut server = Server::create(&teardown, spec).unwrap();
        server.start().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Some(TestServer { server, teardown, runtime, database: None, _folder: folder })
    }

    pub fn target(&self) -> Target {
        let target = self.server.target();
        self.database.map_or_else(|| target.clone(), |name| target.with_database(name))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.server.stop(StopMode::Immediate);
        self.teardown.unwind();
    }
}

/// The server's user must be able to pass through.
fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
