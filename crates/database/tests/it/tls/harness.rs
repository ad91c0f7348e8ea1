//! A server of either engine that speaks TLS, and what a session with it turned out to be.

use std::collections::BTreeMap;
use std::ops::Deref;

use underlay_database::managed::Listen;
use underlay_database::sysbench::Session;
use underlay_database::tls::{Encryption, Verification, encryption};
use underlay_database::{Engine, Target};
use underlay_testbed::{Bed, NoServer, TestServer};

use super::certificates::Certificates;

/// A running server that has certificates.
pub struct Running {
    host: TestServer,
    pub certificates: Certificates,
}

impl Deref for Running {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.host
    }
}

/// `settings` are told where the certificates are.
pub fn running(
    engine: Engine,
    settings: impl FnOnce(&Certificates) -> BTreeMap<String, String>,
) -> Result<Running, NoServer> {
    let bed = Bed::on_disk(engine)?;
    let certificates = Certificates::make(&bed.path.join("certificates"));
    let host = TestServer::start_on(bed, |spec| {
        spec.settings = settings(&certificates);
        spec.listen = Listen::Loopback;
    });
    Ok(Running { host, certificates })
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
        let answer = self.bed.runtime.block_on(encryption(target));
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
        let direct = self.bed.runtime.block_on(Session::connect(target, 1)).err().unwrap();
        let text = match expected {
            Became::Refused(text) => text,
            Became::Plain | Became::Encrypted(_) => "sbtest",
        };
        assert!(direct.message.contains(text), "{what}, directly: {direct}");
        answer.ok().flatten()
    }
}
