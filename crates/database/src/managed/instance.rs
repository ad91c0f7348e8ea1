//! One server with what belongs to it, whatever the engine: spec, password, socket directory, port, log, and its
//! process while it runs.
//!
//! The server is our own child process without a wrapper, in its own session and control group, and on the
//! teardown stack. What differs between engines is in their own `Server`: directories and configuration,
//! the command that starts it, when it accepts connections, the meaning of signals and exit codes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use underlay_host::{Cgroup, HostError, Process, ProcessExit, ProcessSpec, Signal, Teardown};

use crate::managed::{
    Liveness, LogCause, LogTail, Reader, RestoredCopy, ServerError, ServerSpec, Tools, block_on,
    clear, free_port, is_ours, is_recovering, make_runtime_dir, make_socket_dir, password_file,
    read_since, require_reachable, write_private,
};
use crate::target::{Secret, Target};

/// Recovery of a crash on a slow volume takes minutes.
const START_LIMIT: Duration = Duration::from_secs(600);
/// So does writing what is dirty at a shutdown.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// Another program may take the port between our choice and the server's start.
const PORT_ATTEMPTS: u32 = 4;
/// One that recovers from a crash has nothing to write that would be missed: it is killed after this time.
const STOP_LIMIT_CRASHED: Duration = Duration::from_secs(10);
/// Between two looks at a server that is stopping.
const STOP_PAUSE: Duration = Duration::from_millis(500);
/// A server that was killed needs a moment to close its files, and its processes to end.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// Between two questions whether it answers.
const READY_PAUSE: Duration = Duration::from_millis(15);

/// A server with the programs `I`. When this is dropped a running server goes on running until the
/// teardown stack ends it.
#[derive(Debug)]
pub(crate) struct Instance<I> {
    teardown: Teardown,
    spec: ServerSpec<I>,
    password: Secret,
    socket_dir: PathBuf,
    port: u16,
    reader: Reader,
    process: Option<Process>,
    /// Where the log of the last start begins.
    log_start_bytes: u64,
    /// Up to where the log was searched for crashes.
    searched_bytes: u64,
    oom_kills_at_start: u64,
}

/// How a server is started.
pub(crate) struct StartCommand {
    /// For messages.
    pub name: &'static str,
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

impl<I> Instance<I> {
    /// One over directories that the caller fills. `socket_name` is the longest name of a socket in its
    /// directory, with the slash before it.
    pub fn prepared(
        teardown: &Teardown,
        spec: ServerSpec<I>,
        password: Secret,
        socket_name: &str,
        reader: Reader,
    ) -> Result<Instance<I>, ServerError> {
        let owner = spec.run_as.as_ref();
        make_runtime_dir(&spec.runtime_dir)?;
        require_reachable(&spec.runtime_dir.join("file"), owner)?;
        let socket_dir = make_socket_dir(teardown, &spec.runtime_dir, owner, socket_name)?;
        require_reachable(&socket_dir.join("file"), owner)?;
        write_private(&password_file(&spec.runtime_dir), password.reveal(), None)?;
        Ok(Instance {
            teardown: teardown.clone(),
            port: free_port()?,
            spec,
            password,
            socket_dir,
            reader,
            process: None,
            log_start_bytes: 0,
            searched_bytes: 0,
            oom_kills_at_start: 0,
        })
    }

    /// One over directories of ours that an earlier one with the same runtime directory left.
    pub fn taken_over(
        teardown: &Teardown,
        spec: ServerSpec<I>,
        socket_name: &str,
        reader: Reader,
    ) -> Result<Instance<I>, ServerError> {
        if !is_ours(&spec.data) {
            return Err(ServerError::ForeignCluster(spec.data.clone()));
        }
        let path = password_file(&spec.runtime_dir);
        let text = fs::read_to_string(&path).map_err(ServerError::file("read", &path))?;
        Instance::prepared(teardown, spec, Secret::new(text), socket_name, reader)
    }

    /// Starts it and waits until it is ready; how long that took. `prepare` writes the configuration, for
    /// the port of this attempt, and says how to start it; `ready` waits, as [`Instance::wait_ready`] does.
    pub fn start(
        &mut self,
        prepare: impl Fn(&Instance<I>) -> Result<StartCommand, ServerError>,
        ready: impl Fn(&Instance<I>, Duration) -> Result<(), ServerError>,
    ) -> Result<Duration, ServerError> {
        let begin = Instant::now();
        let mut attempt = 1;
        loop {
            self.spawn(&prepare)?;
            match ready(self, START_LIMIT) {
                Err(ServerError::StartFailed(log))
                    if log.cause == Some(LogCause::AddressInUse) && attempt < PORT_ATTEMPTS =>
                {
                    attempt += 1;
                    std::thread::sleep(RETRY_PAUSE);
                    self.port = free_port()?;
                }
                Err(error) => {
                    self.kill()?;
                    return Err(error);
                }
                Ok(()) => return Ok(begin.elapsed()),
            }
        }
    }

    /// Waits until it answers.
    pub fn wait_ready<F: Future<Output = bool> + Send>(
        &self,
        limit: Duration,
        answers: impl Fn() -> F + Send + Sync,
    ) -> Result<(), ServerError> {
        let Some(process) = &self.process else {
            return Err(ServerError::NotRunning { action: "wait for the server" });
        };
        let deadline = Instant::now() + limit;
        let ready = block_on(async {
            while process.try_wait()?.is_none() {
                // It may be killed in its recovery already.
                process.note_shared_memory()?;
                if answers().await {
                    return Ok::<_, HostError>(Some(true));
                }
                if Instant::now() >= deadline {
                    return Ok(Some(false));
                }
                tokio::time::sleep(READY_PAUSE).await;
            }
            Ok(None)
        })??;
        match ready {
            Some(true) => Ok(()),
            Some(false) => Err(ServerError::StartTimeout { waited: limit, log: self.log_tail() }),
            None => Err(ServerError::StartFailed(self.log_tail())),
        }
    }

    /// Asks it to end by a signal, and waits for that. One of whose processes crashed, and that has not recovered, is
    /// killed if it does not end soon.
    pub fn end(&mut self, signal: Signal) -> Result<ProcessExit, ServerError> {
        let Some(process) = self.process.take() else {
            return Err(ServerError::NotRunning { action: "stop the server" });
        };
        process.signal(signal)?;
        let began = Instant::now();
        let mut crashed: Option<Instant> = None;
        let exit = loop {
            if let Some(exit) = process.wait_for(STOP_PAUSE)? {
                break exit;
            }
            if crashed.is_none() && is_recovering(&self.log_of_start(), self.reader) {
                crashed = Some(Instant::now());
            }
            if crashed.is_some_and(|since| since.elapsed() >= STOP_LIMIT_CRASHED) {
                let log = self.log_tail();
                process.kill_tree()?;
                process.collect(None)?;
                return Err(ServerError::Died(log));
            }
            if began.elapsed() >= STOP_LIMIT {
                self.process = Some(process);
                return Err(ServerError::StopTimeout { waited: STOP_LIMIT, log: self.log_tail() });
            }
        };
        process.collect(Some(exit))?;
        Ok(exit)
    }

    /// Why all its sessions were ended although it was not asked to, if that was logged since this was last asked.
    pub fn crash(&mut self) -> Option<String> {
        let text = read_since(&self.log_path(), self.searched_bytes);
        // A line that is still being written is read the next time.
        let whole = text.get(..=text.rfind('\n')?)?;
        if !whole.lines().any(self.reader.is_crash) {
            // Only a log without foreign bytes can be counted by its text; one with them is searched again.
            if !whole.contains(char::REPLACEMENT_CHARACTER) {
                self.searched_bytes += whole.len() as u64;
            }
            return None;
        }
        self.searched_bytes = self.log_path().metadata().map_or(0, |metadata| metadata.len());
        Some(LogTail::of(whole, self.reader).headline())
    }

    /// Kills all its processes at once. Fine when it has ended already.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        if let Some(process) = self.process.take() {
            process.kill_tree()?;
            process.collect(None)?;
        }
        Ok(())
    }

    /// Whether it runs, and if it died, of what.
    pub fn liveness(&self) -> Result<Liveness, ServerError> {
        let Some(process) = &self.process else { return Ok(Liveness::Stopped) };
        if process.try_wait()?.is_some() {
            return Ok(Liveness::Died(self.log_tail()));
        }
        // PostgreSQL goes on with memory of another name after one of its processes crashed.
        process.note_shared_memory()?;
        Ok(Liveness::Running)
    }

    /// Whether its main process exists.
    pub fn is_alive(&self) -> bool {
        matches!(self.liveness(), Ok(Liveness::Running))
    }

    /// Refuses `action` unless it runs.
    pub fn require_running(&self, action: &'static str) -> Result<(), ServerError> {
        match self.liveness()? {
            Liveness::Running => Ok(()),
            Liveness::Died(log) => Err(ServerError::Died(log)),
            Liveness::Stopped => Err(ServerError::NotRunning { action }),
        }
    }

    /// Refuses `action` while it runs; what is left of one that died goes.
    pub fn require_stopped(&mut self, action: &'static str) -> Result<(), ServerError> {
        if self.is_alive() {
            return Err(ServerError::StillRunning { action });
        }
        // A server that died leaves its process object and perhaps children.
        self.kill()
    }

    /// What takes and restores its backups, for a thread of its own; `target` is how a backup connects.
    pub fn backup_tools(&self, target: Target) -> Tools<I>
    where
        I: Clone,
    {
        Tools { teardown: self.teardown.clone(), spec: self.spec.clone(), target }
    }

    /// Removes the stopped database; where one over a restored copy of it belongs, and what it is made from.
    pub fn give_way_to(
        &mut self,
        copy: &RestoredCopy,
    ) -> Result<(Teardown, ServerSpec<I>), ServerError>
    where
        I: Clone,
    {
        self.require_stopped("take over a restored copy")?;
        clear(&self.spec.data, &self.spec.wal)?;
        let (data, wal) = (copy.data.clone(), copy.wal.clone());
        Ok((self.teardown.clone(), ServerSpec { data, wal, ..self.spec.clone() }))
    }

    /// The stack that it is on.
    pub fn teardown(&self) -> &Teardown {
        &self.teardown
    }

    /// What it was made from.
    pub fn spec(&self) -> &ServerSpec<I> {
        &self.spec
    }

    /// Replaces the study's settings; they count from the next start.
    pub fn set_settings(&mut self, settings: BTreeMap<String, String>) {
        self.spec.settings = settings;
    }

    /// Of the administrator over 127.0.0.1.
    pub fn password(&self) -> &Secret {
        &self.password
    }

    /// Where its Unix socket is.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// The port over 127.0.0.1. It may change at a start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The main process's number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Its whole log, of all starts.
    pub fn log_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("server.log")
    }

    /// All that it has logged since its last start.
    pub fn log_of_start(&self) -> String {
        read_since(&self.log_path(), self.log_start_bytes)
    }

    /// The last lines of its log since the last start, and the cause of trouble that they name.
    pub fn log_tail(&self) -> LogTail {
        let mut tail = LogTail::read(&self.log_path(), self.log_start_bytes, self.reader);
        // The kernel does not tell the victim; the group's counter does.
        let is_killed = !self.reader.reports_kills || tail.cause == Some(LogCause::Crash);
        if is_killed && self.oom_kills() > self.oom_kills_at_start {
            tail.cause = Some(LogCause::OutOfMemory);
            tail.evidence.get_or_insert_with(|| "killed by the kernel".to_string());
        }
        tail
    }

    fn spawn(
        &mut self,
        prepare: impl Fn(&Instance<I>) -> Result<StartCommand, ServerError>,
    ) -> Result<(), ServerError> {
        self.kill()?;
        let command = prepare(self)?;
        self.log_start_bytes = self.log_path().metadata().map_or(0, |metadata| metadata.len());
        self.searched_bytes = self.log_start_bytes;
        self.oom_kills_at_start = self.oom_kills();
        self.process = Some(Process::spawn(
            &self.teardown,
            &ProcessSpec {
                name: command.name,
                program: &command.program,
                args: command.args,
                env: vec![("LC_ALL".into(), "C".into())],
                run_as: self.spec.run_as.as_ref(),
                cgroup: self.spec.cgroup.as_ref(),
                working_dir: Path::new("/"),
                output: self.log_path(),
            },
        )?);
        Ok(())
    }

    fn oom_kills(&self) -> u64 {
        self.spec.cgroup.as_ref().and_then(Cgroup::oom_kills).unwrap_or_default()
    }
}
