//! A managed server for one test of a peer; dropping it leaves nothing behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use underlay_database::managed::{Listen, Server, ServerSpec, StopMode, find_installs};
use underlay_database::{Address, Engine};
use underlay_host::{StateDir, Teardown, unprivileged_user};

use crate::place::Place;

/// A running server, empty.
pub struct Stand {
    server: Server,
    teardown: Teardown,
    _folder: tempfile::TempDir,
}

impl Stand {
    /// None where there is no server program.
    pub fn start(engine: Engine) -> Option<Stand> {
        let install = find_installs(engine, None).into_iter().next()?;
        // On a disk: MariaDB writes with direct I/O, which memory file systems refuse.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        open_up(folder.path());
        let state = StateDir::at(folder.path().join("state")).unwrap();
        let teardown = Teardown::create(&state, "test of a peer").unwrap();
        let scratch = state.scratch_dir("peers");
        teardown.create_directory(&scratch).unwrap();
        let settings: &[(&str, &str)] = match engine {
            Engine::Postgresql => &[("shared_buffers", "128MB"), ("max_connections", "40")],
            Engine::Mariadb => &[
                ("innodb_buffer_pool_size", "256M"),
                ("innodb_log_file_size", "128M"),
                ("max_connections", "40"),
            ],
        };
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let mut server = Server::create(
            &teardown,
            ServerSpec {
                name: "peers-test".to_string(),
                install,
                data: scratch.join("data"),
                wal: scratch.join("wal"),
                backup: scratch.join("backup"),
                settings: settings.collect(),
                run_as: unprivileged_user().unwrap(),
                cgroup: None,
                runtime_dir: scratch.join("run"),
                listen: Listen::Loopback,
            },
        )
        .unwrap();
        server.start().unwrap();
        Some(Stand { server, teardown, _folder: folder })
    }

    /// Its superuser, over 127.0.0.1.
    pub fn place(&self) -> Place {
        let target = self.server.tcp_target().expect("it listens");
        let Address::Tcp(host) = target.address else { panic!("not a TCP address") };
        Place {
            engine: target.engine,
            host,
            port: target.port,
            user: target.user,
            password: target.password.map_or(String::new(), |word| word.reveal().to_string()),
            database: target.database,
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = self.server.stop(StopMode::Immediate);
        self.teardown.unwind();
    }
}

/// The server's user must be able to pass through.
fn open_up(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
