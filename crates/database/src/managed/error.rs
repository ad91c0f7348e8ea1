//! What can go wrong with a managed server.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use underlay_core::SystemError;
use underlay_host::HostError;

use crate::Engine;
use crate::error::SessionError;
use crate::managed::{LogTail, SettingProblem};

/// Why a server could not be created, started, stopped or copied.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Something on the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call.
    #[error(transparent)]
    System(#[from] SystemError),
    /// Databases never run as root.
    #[error("{0} does not run as root; give it a user such as `postgres`")]
    AsRoot(Engine),
    /// A cluster that Underlay did not make is in the way.
    #[error("the cluster in `{}` was not created by Underlay and is not touched; choose another directory", .0.display())]
    ForeignCluster(PathBuf),
    /// A version that is not managed.
    #[error("{engine} {version} in `{}` is not supported: {supported}; give another with --server-bin", bin_dir.display())]
    UnsupportedVersion {
        /// What it is.
        engine: Engine,
        /// Its version.
        version: String,
        /// Which versions are, in words.
        supported: &'static str,
        /// Where it is.
        bin_dir: PathBuf,
    },
    /// A directory that must be empty is not.
    #[error("`{}` is not empty; a cluster is only created in an empty or missing directory", .0.display())]
    NotEmpty(PathBuf),
    /// The server's user cannot get there.
    #[error("user `{user}` cannot enter `{}` to reach `{}`; run `chmod o+x {}`", blocked_at.display(), path.display(), blocked_at.display())]
    Unreachable {
        /// Whom the server runs as.
        user: String,
        /// Where it must get to.
        path: PathBuf,
        /// The directory that it cannot pass.
        blocked_at: PathBuf,
    },
    /// Settings that the server does not accept, all of them.
    #[error("{server} does not accept {}", list(problems))]
    Settings {
        /// The engine and the version asked.
        server: String,
        /// One per setting.
        problems: Vec<SettingProblem>,
    },
    /// The server ended instead of accepting connections.
    #[error("the server did not start: {}", .0.headline())]
    StartFailed(LogTail),
    /// The server did not accept connections in time.
    #[error("the server did not accept connections within {} s: {}", waited.as_secs(), log.headline())]
    StartTimeout {
        /// How long was waited.
        waited: Duration,
        /// What it logged.
        log: LogTail,
    },
    /// The server did not stop in time.
    #[error("the server did not stop within {} s: {}", waited.as_secs(), log.headline())]
    StopTimeout {
        /// How long was waited.
        waited: Duration,
        /// What it logged.
        log: LogTail,
    },
    /// The server ended by itself.
    #[error("the server ended unexpectedly: {}", .0.headline())]
    Died(LogTail),
    /// An operation that needs a running server.
    #[error("could not {action}: the server is not running")]
    NotRunning {
        /// The verb phrase.
        action: &'static str,
    },
    /// An operation that needs a stopped server.
    #[error("could not {action}: the server is running; stop it first")]
    StillRunning {
        /// The verb phrase.
        action: &'static str,
    },
    /// A copy of a cluster that was not stopped cleanly would have to recover.
    #[error("the cluster in `{}` was not shut down cleanly (state: {state}); start it and stop it again", data.display())]
    NotCleanlyStopped {
        /// Its data directory.
        data: PathBuf,
        /// In the engine's words.
        state: String,
    },
    /// A template without manifest, or whose files are not those of its manifest.
    #[error("the template in `{}` is not usable: {reason}; remove it, and it will be created again", dir.display())]
    BadTemplate {
        /// Where it is.
        dir: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A template of another version.
    #[error("the template in `{}` is of {template}, the server is {server}", dir.display())]
    TemplateVersion {
        /// Where it is.
        dir: PathBuf,
        /// The engine and version that made it.
        template: String,
        /// The server's engine and version.
        server: String,
    },
    /// A server of which no backup can be taken.
    #[error("backups of {server} are not possible here: {reason}")]
    NoBackups {
        /// The product and its series.
        server: String,
        /// Why not.
        reason: &'static str,
    },
    /// A backup program of another series than the server.
    #[error("`{}` is of {version} and cannot take a backup of {server}; install the package mariadb-backup of the server's series", program.display())]
    BackupVersion {
        /// The program found.
        program: PathBuf,
        /// Its version.
        version: String,
        /// The product and its series.
        server: String,
    },
    /// A program of a backup or restore that was stopped before its end, because that was asked for.
    #[error("`{program}` was stopped before it finished")]
    Stopped {
        /// Which program.
        program: String,
    },
    /// Tablespaces would leave the volumes that the design gives.
    #[error("the cluster in `{}` has tablespaces, which are not supported; move the tables back", .0.display())]
    Tablespaces(PathBuf),
    /// A program of the engine printed something unknown.
    #[error("the output of `{program}` could not be parsed: {text}")]
    Unparsable {
        /// Which program.
        program: &'static str,
        /// What it printed.
        text: String,
    },
    /// A query of our own failed.
    #[error("could not {action}: {source}")]
    Query {
        /// The verb phrase.
        action: &'static str,
        /// The reason.
        source: SessionError,
    },
}

impl ServerError {
    /// A closure for `map_err` on a file operation.
    pub(crate) fn file<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> ServerError + 'a {
        move |source| SystemError::of_file(action, path, source).into()
    }
}

fn list(problems: &[SettingProblem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
