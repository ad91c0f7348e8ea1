//! Long-running children: servers that must not outlive the run unnoticed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::error::HostError;
use crate::teardown::Teardown;
use crate::user::User;

/// What to start and how.
#[derive(Clone, Debug)]
pub struct ProcessSpec<'a> {
    /// For messages.
    pub name: &'a str,
    /// Absolute path.
    pub program: &'a Path,
    /// Without the program itself.
    pub args: Vec<OsString>,
    /// The whole environment, but for `PATH` (kept) and the marker (added): nothing else is
    /// inherited, so that a stray `PGDATA` cannot change an experiment.
    pub env: Vec<(OsString, OsString)>,
    /// `None` is ourselves.
    pub run_as: Option<&'a User>,
    /// The group that it joins before it executes its first instruction.
    pub cgroup: Option<&'a Cgroup>,
    /// `/` is always possible.
    pub working_dir: &'a Path,
    /// Standard output and error are appended here.
    pub output: PathBuf,
}

/// Signals sent to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
    /// SIGHUP.
    Hangup,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Gone, but collected by somebody else.
    Unknown,
}

/// A child in its own session, registered before it was started.
#[derive(Debug)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// Registers and starts a child.
    pub fn spawn(_teardown: &Teardown, spec: &ProcessSpec<'_>) -> Result<Process, HostError> {
        Err(HostError::ProgramNotFound {
            program: spec.name.to_string(),
            remedy: "not built yet".to_string(),
        })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Result<Option<ProcessExit>, HostError> {
        Ok(None)
    }

    /// Waits for its end; `None` when it did not end in time.
    pub fn wait_for(&self, _limit: Duration) -> Result<Option<ProcessExit>, HostError> {
        Ok(None)
    }

    /// Sends a signal to this process alone. Nothing happens when it has ended.
    pub fn signal(&self, _signal: Signal) -> Result<(), HostError> {
        Ok(())
    }

    /// Kills it and all its descendants at once, as a power failure would.
    pub fn kill_tree(&self) -> Result<(), HostError> {
        Ok(())
    }

    /// Asks it to end, and kills it and its descendants after `grace`.
    pub fn terminate(self, _grace: Duration) -> Result<ProcessExit, HostError> {
        Ok(ProcessExit::Unknown)
    }
}
