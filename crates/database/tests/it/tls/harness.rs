//! A server of either engine that speaks TLS, and what a session with it turned out to be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use tokio::runtime::Runtime;
use underlay_database::managed::{Listen, Server, ServerSpec, find_installs};
use underlay_database::sysbench::Session;
use underlay_database::tls::{Encryption, Verification, encryption};
use underlay_database::{Engine, Target};
use underlay_host::{StateDir, Teardown, unprivileged_user};

use super::certificates::Certificates;

/// A running server, removed at the end of the test.
pub struct Running {
    pub server: Server,
    pub certificates: Certificates,
    pub runtime: Runtime,
    teardown: Teardown,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.teardown.unwind();
    }
}

/// `None` when this host has no server of this engine. `settings` are told where the certificates are.
pub fn running(
    engine: Engine,
    settings: impl FnOnce(&Certificates) -> BTreeMap<String, String>,
) -> Option<Running> {
    let install = find_installs(engine, None).into_iter().next()?;
    let dir = tempfile::Builder::new().prefix("underlay-tls").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let certificates = Certificates::make(&path.join("certificates"));
    let volume = |name: &str| {
        let volume = path.join(name);
        fs::create_dir_all(&volume).unwrap();
        volume.join("db")
    };
    let spec = ServerSpec {
        name: "tls".to_string(),
        install,
        data: volume("data"),
        wal: volume("wal"),
        backup: volume("backup"),
        settings: settings(&certificates),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: path.join("runtime"),
        listen: Listen::Loopback,
    };
    let mut server = Server::create(&teardown, spec).unwrap();
    server.start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Some(Running { server, certificates, runtime, teardown, _dir: dir })
}

/// What came of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    Plain,
    Encrypted(Verification),
    /// The error holds this text.
    Refused(&'static str),
}

impl Running {
    /// The server over TCP, as its administrator, with the URL's `options`; `{}` in them is the directory of certificates.
    pub fn target(&self, host: &str, options: &str) -> Target {
        let tcp = self.server.tcp_target().unwrap();
        let login = format!("{}:{}", tcp.user, tcp.password.as_ref().unwrap().reveal());
        self.target_of(&login, host, options).unwrap()
    }

    /// As somebody else; the login is `user:password` or `user`.
    pub fn target_of(&self, login: &str, host: &str, options: &str) -> Result<Target, String> {
        let tcp = self.server.tcp_target().unwrap();
        let (scheme, database) = match tcp.engine {
            Engine::Postgresql => ("postgres", "postgres"),
            Engine::Mariadb => ("mysql", ""),
        };
        let directory = self.certificates.path("");
        let options = options.replace("{}", &directory.to_string_lossy());
        let url = format!("{scheme}://{login}@{host}:{}/{database}?{options}", tcp.port);
        Target::from_url(&url).map_err(|error| error.to_string())
    }

    /// Opens a session and compares what it says of itself with `expected`; returns how it is encrypted.
    pub fn expect(&self, target: &Target, what: &str, expected: &Became) -> Option<Encryption> {
        let answer = self.runtime.block_on(encryption(target));
        let became = match (&answer, expected) {
            (Ok(None), _) => Became::Plain,
            (Ok(Some(encryption)), _) => Became::Encrypted(encryption.verified),
            (Err(error), Became::Refused(text)) if error.message.contains(text) => {
                Became::Refused(text)
            }
            (Err(error), _) => panic!("{what}: expected {expected:?}, got: {error}"),
        };
        assert_eq!(became, *expected, "{what}: {answer:?}");
        // Sysbench's sessions speak to the server without the client's library, and have no tables here.
        let direct = self.runtime.block_on(Session::connect(target, 1)).err().unwrap();
        let text = match expected {
            Became::Refused(text) => text,
            Became::Plain | Became::Encrypted(_) => "sbtest",
        };
        assert!(direct.message.contains(text), "{what}, directly: {direct}");
        answer.ok().flatten()
    }
}
