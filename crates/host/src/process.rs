//! Long-running children: servers that must not outlive the run unnoticed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::pidfd_send_signal;

use crate::cgroup::Cgroup;
use crate::child_setup::{ChildSetup, Lifetime, clean_command};
use crate::error::HostError;
use crate::process_table::{MARKER_VARIABLE, kill_marked, open_descriptor, wait_ended};
use crate::shared_memory::{self, Segment, mapped_by};
use crate::teardown::{Resource, Teardown, Ticket};
use crate::unique_name::new_marker;
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
    /// Gone, but reaped elsewhere: the teardown stack killed it.
    Unknown,
}

/// A child in its own session, registered before it was started. It keeps running when this is
/// dropped: the teardown stack ends it.
#[derive(Debug)]
pub struct Process {
    teardown: Teardown,
    ticket: Ticket,
    marker: String,
    name: String,
    pid: u32,
    descriptor: OwnedFd,
    child: Mutex<Child>,
    /// The shared memory that it was seen to use, registered.
    segments: Mutex<BTreeMap<Segment, Ticket>>,
}

impl Process {
    /// Registers and starts a child.
    pub fn spawn(teardown: &Teardown, spec: &ProcessSpec<'_>) -> Result<Process, HostError> {
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(&spec.output)
            .map_err(HostError::file("open", &spec.output))?;
        let error_output = output.try_clone().map_err(HostError::file("open", &spec.output))?;
        let join = spec.cgroup.map_or_else(|| Ok(Vec::new()), Cgroup::open_procs)?;

        let marker = new_marker(spec.name);
        let mut command = clean_command(spec.program, &spec.args, &spec.env);
        command
            .env(MARKER_VARIABLE, &marker)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(error_output);
        let mut setup = ChildSetup {
            run_as: spec.run_as.map(|user| (user.uid, user.gid)),
            join,
            working_dir: spec.working_dir.to_path_buf(),
            lifetime: Lifetime::OwnSession,
        }
        .prepared();
        // SAFETY: `apply` only makes system calls; it allocates nothing and takes no lock, as is
        // required between fork and exec of a process with threads.
        unsafe { command.pre_exec(move || setup.apply()) };

        let ticket = teardown
            .register(Resource::Process { marker: marker.clone(), name: spec.name.to_string() })?;
        let spawned = command.spawn().map_err(HostError::file("start", spec.program));
        // Not yet waited for, so its number cannot have been given to another.
        let opened = spawned.and_then(|child| Ok((open_descriptor(child.id())?, child)));
        match opened {
            Ok((descriptor, child)) => Ok(Process {
                teardown: teardown.clone(),
                ticket,
                marker,
                name: spec.name.to_string(),
                pid: child.id(),
                descriptor,
                child: Mutex::new(child),
                segments: Mutex::default(),
            }),
            Err(error) => {
                teardown.release(ticket)?;
                Err(error)
            }
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Result<Option<ProcessExit>, HostError> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        match child.try_wait() {
            Ok(status) => Ok(status.map(exit)),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                Ok(Some(ProcessExit::Unknown))
            }
            Err(error) => Err(HostError::system("wait for a process")(error)),
        }
    }

    /// Waits for its end; `None` when it did not end in time.
    pub fn wait_for(&self, limit: Duration) -> Result<Option<ProcessExit>, HostError> {
        if wait_ended(&self.descriptor, limit)? { self.try_wait() } else { Ok(None) }
    }

    /// Sends a signal to this process alone. Nothing happens when it has ended.
    pub fn signal(&self, signal: Signal) -> Result<(), HostError> {
        match pidfd_send_signal(&self.descriptor, number(signal)) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(HostError::system("send a signal")(error)),
        }
    }

    /// Kills it and all its descendants at once, as a power failure would, and waits until they are
    /// gone.
    pub fn kill_tree(&self) -> Result<(), HostError> {
        kill_marked(&self.marker, &self.name)?;
        self.remove_shared_memory();
        Ok(())
    }

    /// Registers the shared memory that it maps now. If it is killed, alone or with us, nothing else could identify
    /// any more what it left. It is removed by [`Process::kill_tree`] and [`Process::collect`], or with the stack.
    pub fn note_shared_memory(&self) -> Result<(), HostError> {
        let mapped = mapped_by(self.pid);
        // One that has ended may have been collected, and its number given to a stranger. While it lives, what
        // was just read was its own.
        if wait_ended(&self.descriptor, Duration::ZERO)? {
            return Ok(());
        }
        let mut known = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        for segment in mapped {
            if let Entry::Vacant(place) = known.entry(segment) {
                let resource = Resource::SharedMemory { segment: place.key().clone() };
                place.insert(self.teardown.register(resource)?);
            }
        }
        Ok(())
    }

    /// A segment still in use, for example by a child that is ending, stays registered and is removed with the stack.
    fn remove_shared_memory(&self) {
        let mut known = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        for (segment, ticket) in std::mem::take(&mut *known) {
            match shared_memory::remove(&segment) {
                Ok(_) => self.teardown.forget(ticket),
                Err(error) => {
                    tracing::debug!(%segment, %error, "shared memory stays for now");
                    known.insert(segment, ticket);
                }
            }
        }
    }

    /// Asks it to end with SIGTERM, kills what is left of it and its descendants after `grace`, and
    /// takes it off the teardown stack.
    pub fn terminate(self, grace: Duration) -> Result<ProcessExit, HostError> {
        self.signal(Signal::Terminate)?;
        let ended = self.wait_for(grace)?;
        self.collect(ended)
    }

    /// Takes a process that has ended off the teardown stack, with descendants that it left.
    pub fn collect(self, ended: Option<ProcessExit>) -> Result<ProcessExit, HostError> {
        self.kill_tree()?;
        let ended = match ended {
            Some(exit) => exit,
            None => self.try_wait()?.unwrap_or(ProcessExit::Unknown),
        };
        self.teardown.forget(self.ticket);
        Ok(ended)
    }
}

fn exit(status: ExitStatus) -> ProcessExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, Some(signal)) => ProcessExit::Signal(signal),
        (None, None) => ProcessExit::Unknown,
    }
}

fn number(signal: Signal) -> rustix::process::Signal {
    use rustix::process::Signal as Number;
    match signal {
        Signal::Terminate => Number::TERM,
        Signal::Interrupt => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Kill => Number::KILL,
        Signal::Hangup => Number::HUP,
        Signal::Stop => Number::STOP,
        Signal::Continue => Number::CONT,
    }
}
