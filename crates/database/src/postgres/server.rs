//! The life of one managed cluster: create, start, stop, kill.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use underlay_host::{Cgroup, Teardown, User};

use crate::postgres::backup::{BackupFormat, BackupReport};
use crate::postgres::error::ServerError;
use crate::postgres::install::Install;
use crate::postgres::log::LogTail;
use crate::postgres::settings::SettingInForce;
use crate::target::Target;

/// What the server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Its Unix socket alone.
    UnixSocket,
    /// Its Unix socket and 127.0.0.1.
    Loopback,
}

/// A cluster: which programs, where, with what.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Part of `cluster_name`, which is `underlay-<name>`.
    pub name: String,
    /// The programs.
    pub install: Install,
    /// The data directory, below the data volume's mount point.
    pub data: PathBuf,
    /// The WAL directory, below the log volume's mount point.
    pub wal: PathBuf,
    /// The directory for backups, below the backup volume's mount point.
    pub backup: PathBuf,
    /// Settings of the study, over Underlay's own.
    pub settings: BTreeMap<String, String>,
    /// `None` is ourselves, who must not be root.
    pub run_as: Option<User>,
    /// The group that limits it.
    pub cgroup: Option<Cgroup>,
    /// For its configuration, log and socket; below a scratch directory.
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
    /// It was not started, or was stopped.
    Stopped,
    /// Its postmaster exists.
    Running,
    /// It ended although nobody asked it to.
    Died(LogTail),
}

/// A start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartReport {
    /// Until it accepted connections.
    pub duration: Duration,
    /// Whether it had to recover from a crash.
    pub recovered: bool,
    /// Settings that make the result unsafe or surprising, in words.
    pub warnings: Vec<String>,
}

/// A managed cluster.
#[derive(Debug)]
pub struct Server {
    teardown: Teardown,
    spec: ServerSpec,
    port: u16,
}

impl Server {
    /// Makes a new cluster (`initdb`) in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        Err(ServerError::NotEmpty(Server { teardown: teardown.clone(), spec, port: 0 }.spec.data))
    }

    /// Takes over a cluster that is in the spec's directories already: restored by
    /// [`crate::postgres::Template::restore`], or left by an earlier server of the same spec.
    pub fn open(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        Server::create(teardown, spec)
    }

    /// What it was made from.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Replaces the study's settings; they count from the next start.
    pub fn set_settings(&mut self, settings: BTreeMap<String, String>) {
        self.spec.settings = settings;
    }

    /// Checks the settings, starts the server, and waits until it accepts connections.
    pub fn start(&mut self) -> Result<StartReport, ServerError> {
        Err(ServerError::NotRunning { action: "start" })
    }

    /// Stops the server; how long it took.
    pub fn stop(&mut self, _mode: StopMode) -> Result<Duration, ServerError> {
        Err(ServerError::NotRunning { action: "stop" })
    }

    /// Kills all its processes at once, as a power failure would.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        Err(ServerError::NotRunning { action: "kill" })
    }

    /// Whether it runs.
    pub fn liveness(&mut self) -> Result<Liveness, ServerError> {
        Ok(Liveness::Stopped)
    }

    /// Whether its postmaster exists.
    pub fn is_alive(&mut self) -> bool {
        false
    }

    /// Waits until it accepts connections.
    pub fn wait_ready(&mut self, _limit: Duration) -> Result<(), ServerError> {
        Err(ServerError::NotRunning { action: "wait" })
    }

    /// The postmaster's process number, while it runs.
    pub fn pid(&self) -> Option<u32> {
        None
    }

    /// How to connect: the maintenance database over the Unix socket, as superuser.
    pub fn target(&self) -> Target {
        Target::unix_socket(self.spec.runtime_dir.clone(), self.port, "underlay")
    }

    /// How to connect over 127.0.0.1, when it listens there.
    pub fn tcp_target(&self) -> Option<Target> {
        None
    }

    /// The last lines of its log, and the cause they name.
    pub fn log_tail(&self) -> LogTail {
        LogTail { lines: Vec::new(), cause: None, evidence: None }
    }

    /// Every setting that is not at its built-in default, as the running server has it.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        let _ = &self.teardown;
        Err(ServerError::NotRunning { action: "read the settings" })
    }

    /// Takes a backup into a new directory below the backup directory.
    pub fn backup(&self, _format: BackupFormat) -> Result<BackupReport, ServerError> {
        Err(ServerError::NotRunning { action: "take a backup" })
    }

    /// Replaces the stopped cluster by a backup of it. The next start recovers to the backup's end.
    pub fn restore(&mut self, _backup: &BackupReport) -> Result<BackupReport, ServerError> {
        Err(ServerError::NotRunning { action: "restore a backup" })
    }
}
