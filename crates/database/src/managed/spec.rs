//! The specification of a managed server, and the words for its states.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use underlay_host::{Cgroup, User};

use crate::managed::LogTail;

/// What the server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Its Unix socket alone.
    UnixSocket,
    /// Its Unix socket and 127.0.0.1.
    Loopback,
}

/// A server to make: which programs, where, with what.
#[derive(Clone, Debug)]
pub struct ServerSpec<I> {
    /// Its name is `underlay-<name>` where an engine gives its servers names.
    pub name: String,
    /// The programs.
    pub install: I,
    /// The data directory, below the data volume's mount point.
    pub data: PathBuf,
    /// The directory of the log (WAL, redo log), below the log volume's mount point.
    pub wal: PathBuf,
    /// The directory for backups, below the backup volume's mount point.
    pub backup: PathBuf,
    /// Settings of the study, over Underlay's own.
    pub settings: BTreeMap<String, String>,
    /// Whom it runs as. `None` is ourselves, who must not be root.
    pub run_as: Option<User>,
    /// The group that limits it.
    pub cgroup: Option<Cgroup>,
    /// For its configuration, log and socket; below a scratch directory that is on the teardown
    /// stack. The server's user must be able to pass through to it.
    pub runtime_dir: PathBuf,
    /// What it listens on.
    pub listen: Listen,
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Wait until all sessions have ended.
    Smart,
    /// End all sessions, write a checkpoint.
    Fast,
    /// End at once without a checkpoint: the next start recovers.
    Immediate,
}

/// Whether the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It was not started, or was stopped or killed by us.
    Stopped,
    /// Its main process exists.
    Running,
    /// It ended without being stopped.
    Died(LogTail),
}

/// A start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartReport {
    /// Until it accepted connections.
    pub duration: Duration,
    /// Whether it had to recover from a crash or a backup.
    pub recovered: bool,
    /// Settings that make the result unsafe or surprising, in words.
    pub warnings: Vec<String>,
}
