//! The life of one managed cluster: create, start, stop, kill.
//!
//! The server is our own child (no `pg_ctl` between), in its own session and control group, and on
//! the teardown stack. Its configuration is in the runtime directory, not in the data directory.
//!
//! Who may connect: over the Unix socket the superuser without password, since the kernel lets only
//! the server's user and root through to it (directory and socket are theirs alone); over 127.0.0.1,
//! where every user of the host gets through, with a random password that is asked by SCRAM. Nobody
//! from other hosts. The socket costs the measured connection nothing, the password nobody can guess.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use underlay_host::{Cgroup, HostError, Process, ProcessExit, ProcessSpec, Signal, Teardown};

use crate::managed::{
    Listen, Liveness, LogCause, LogTail, ServerError, SettingInForce, StartReport, StopMode,
    block_on, free_port, is_ours, make_runtime_dir, make_socket_dir, password_file,
    random_password, read_since, require_reachable, write_private,
};
use crate::postgres::cluster;
use crate::postgres::cluster::SUPERUSER;
use crate::postgres::install::Install;
use crate::postgres::log::{PREFIX, READER};
use crate::postgres::query::rows;
use crate::postgres::settings::{base_settings, check_settings, render, unclaimed, warnings};
use crate::target::{Address, Secret, Target};

/// Recovery of a crash on a slow volume takes minutes.
const START_LIMIT: Duration = Duration::from_secs(600);
/// So does the checkpoint of a shutdown.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// Another program may take the port between our choice and the server's start.
const PORT_ATTEMPTS: u32 = 4;
/// Processes of a postmaster that was killed alone need a moment to end.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// The longest name of a socket in its directory.
const LONGEST_SOCKET_NAME: &str = "/.s.PGSQL.65535";
/// PostgreSQL truncates longer names.
const CLUSTER_NAME_BYTES: usize = 63;

/// A cluster: which programs, where, with what.
pub type ServerSpec = crate::managed::ServerSpec<Install>;

/// A managed cluster. When this is dropped a running server goes on running until the teardown
/// stack ends it.
#[derive(Debug)]
pub struct Server {
    teardown: Teardown,
    spec: ServerSpec,
    password: Secret,
    socket_dir: PathBuf,
    port: u16,
    process: Option<Process>,
    /// Where the log of the last start begins.
    log_start_bytes: u64,
    oom_kills_at_start: u64,
}

impl Server {
    /// Makes a new cluster (`initdb`) in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        cluster::check_spec(&spec)?;
        cluster::make_directories(&spec)?;
        let password = random_password()?;
        let server = Server::prepared(teardown, spec, password)?;
        cluster::initialise(teardown, &server.spec, &server.password)?;
        Ok(server)
    }

    /// Takes over a stopped cluster of ours that is in the spec's directories already, left by an
    /// earlier server with the same runtime directory.
    pub fn open(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        cluster::check_spec(&spec)?;
        if !is_ours(&spec.data) {
            return Err(ServerError::ForeignCluster(spec.data.clone()));
        }
        let path = password_file(&spec.runtime_dir);
        let text = fs::read_to_string(&path).map_err(ServerError::file("read", &path))?;
        Server::prepared(teardown, spec, Secret::new(text))
    }

    /// A server over directories that the caller fills.
    pub(crate) fn prepared(
        teardown: &Teardown,
        spec: ServerSpec,
        password: Secret,
    ) -> Result<Server, ServerError> {
        let owner = spec.run_as.as_ref();
        make_runtime_dir(&spec.runtime_dir)?;
        require_reachable(&spec.runtime_dir.join("file"), owner)?;
        let socket_dir = make_socket_dir(teardown, &spec.runtime_dir, owner, LONGEST_SOCKET_NAME)?;
        require_reachable(&socket_dir.join("file"), owner)?;
        write_private(&password_file(&spec.runtime_dir), password.reveal(), None)?;
        Ok(Server {
            teardown: teardown.clone(),
            port: free_port()?,
            spec,
            password,
            socket_dir,
            process: None,
            log_start_bytes: 0,
            oom_kills_at_start: 0,
        })
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
        self.require_stopped("start the server")?;
        let spec = &self.spec;
        check_settings(
            &spec.install,
            spec.run_as.as_ref(),
            &self.teardown,
            &spec.runtime_dir,
            &spec.settings,
        )?;
        let begin = Instant::now();
        let mut attempt = 1;
        loop {
            self.spawn()?;
            match self.wait_ready(START_LIMIT) {
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
                Ok(()) => break,
            }
        }
        let duration = begin.elapsed();
        let warnings = self.check_in_force()?;
        Ok(StartReport { duration, recovered: self.has_recovered(), warnings })
    }

    /// Stops the server; how long it took. The log is an error's if it could not end properly.
    pub fn stop(&mut self, mode: StopMode) -> Result<Duration, ServerError> {
        if !self.is_alive() {
            return Err(match self.liveness()? {
                Liveness::Died(log) => ServerError::Died(log),
                _ => ServerError::NotRunning { action: "stop the server" },
            });
        }
        let begin = Instant::now();
        let signal = match mode {
            StopMode::Smart => Signal::Terminate,
            StopMode::Fast => Signal::Interrupt,
            StopMode::Immediate => Signal::Quit,
        };
        let Some(process) = self.process.take() else {
            return Err(ServerError::NotRunning { action: "stop the server" });
        };
        process.signal(signal)?;
        let Some(exit) = process.wait_for(STOP_LIMIT)? else {
            self.process = Some(process);
            return Err(ServerError::StopTimeout { waited: STOP_LIMIT, log: self.log_tail() });
        };
        process.collect(Some(exit))?;
        // Code 0 is a finished shutdown; an immediate one is never finished.
        if exit != ProcessExit::Code(0) && mode != StopMode::Immediate {
            return Err(ServerError::Died(self.log_tail()));
        }
        Ok(begin.elapsed())
    }

    /// Kills all its processes at once, as a power failure would. Fine when it has ended already.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        if let Some(process) = self.process.take() {
            process.kill_tree()?;
            process.collect(None)?;
        }
        Ok(())
    }

    /// Whether it runs, and if it died, of what.
    pub fn liveness(&mut self) -> Result<Liveness, ServerError> {
        match &self.process {
            None => Ok(Liveness::Stopped),
            Some(process) => match process.try_wait()? {
                None => {
                    // After a crash of a session's process it goes on with memory of another name.
                    process.note_shared_memory()?;
                    Ok(Liveness::Running)
                }
                Some(_) => Ok(Liveness::Died(self.log_tail())),
            },
        }
    }

    /// Whether its postmaster exists.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.liveness(), Ok(Liveness::Running))
    }

    /// Waits until it accepts connections and is done with recovery. Also of use after one of its
    /// processes crashed, when it starts anew by itself.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), ServerError> {
        let target = self.target();
        let Some(process) = &self.process else {
            return Err(ServerError::NotRunning { action: "wait for the server" });
        };
        let deadline = Instant::now() + limit;
        let ready = block_on(async {
            while process.try_wait()?.is_none() {
                // It may be killed in its recovery already.
                process.note_shared_memory()?;
                if let Ok(client) = target.connect().await
                    && client.simple_query("SELECT 1").await.is_ok()
                {
                    return Ok::<_, HostError>(Some(true));
                }
                if Instant::now() >= deadline {
                    return Ok(Some(false));
                }
                tokio::time::sleep(Duration::from_millis(15)).await;
            }
            Ok(None)
        })??;
        match ready {
            Some(true) => Ok(()),
            Some(false) => Err(ServerError::StartTimeout { waited: limit, log: self.log_tail() }),
            None => Err(ServerError::StartFailed(self.log_tail())),
        }
    }

    /// The postmaster's process number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The port, which also names the Unix socket. It may change at a start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect: the maintenance database over the Unix socket, as superuser. Valid until the
    /// next start.
    pub fn target(&self) -> Target {
        Target::unix_socket(self.socket_dir.clone(), self.port, SUPERUSER)
    }

    /// How to connect over 127.0.0.1, when it listens there. Valid until the next start.
    pub fn tcp_target(&self) -> Option<Target> {
        (self.spec.listen == Listen::Loopback).then(|| Target {
            address: Address::Tcp("127.0.0.1".to_string()),
            password: Some(self.password.clone()),
            ..self.target()
        })
    }

    /// The last lines of its log since the last start, and the cause of trouble that they name.
    pub fn log_tail(&self) -> LogTail {
        let mut tail = LogTail::read(&self.log_path(), self.log_start_bytes, READER);
        // The kernel does not tell the victim; the group's counter does.
        if tail.cause == Some(LogCause::Crash) && self.oom_kills() > self.oom_kills_at_start {
            tail.cause = Some(LogCause::OutOfMemory);
        }
        tail
    }

    /// Its whole log, of all starts.
    pub fn log_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("server.log")
    }

    /// Every setting that is not at its built-in default, as the running server has it, by name.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        if self.process.is_none() {
            return Err(ServerError::NotRunning { action: "read the settings" });
        }
        // `client` and `session` are of our own connection.
        let rows = rows(
            &self.target(),
            "read the settings in force",
            "SELECT name, current_setting(name), source FROM pg_settings \
             WHERE source NOT IN ('default', 'client', 'session') ORDER BY name",
        )?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let [name, value, source] = <[String; 3]>::try_from(row).ok()?;
                Some(SettingInForce { name, value, source })
            })
            .collect())
    }

    pub(crate) fn require_stopped(&mut self, action: &'static str) -> Result<(), ServerError> {
        if self.is_alive() {
            return Err(ServerError::StillRunning { action });
        }
        // A server that died leaves its process object and perhaps children.
        self.kill()
    }

    pub(crate) fn password(&self) -> &Secret {
        &self.password
    }

    fn spawn(&mut self) -> Result<(), ServerError> {
        self.kill()?;
        self.write_configuration()?;
        self.log_start_bytes = self.log_path().metadata().map_or(0, |metadata| metadata.len());
        self.oom_kills_at_start = self.oom_kills();
        let spec = &self.spec;
        let program = spec.install.program("postgres");
        let config = format!("config_file={}", self.config_path().display());
        self.process = Some(Process::spawn(
            &self.teardown,
            &ProcessSpec {
                name: "postgres",
                program: &program,
                args: vec!["-D".into(), spec.data.clone().into(), "-c".into(), config.into()],
                env: vec![("LC_ALL".into(), "C".into())],
                run_as: spec.run_as.as_ref(),
                cgroup: spec.cgroup.as_ref(),
                working_dir: Path::new("/"),
                output: self.log_path(),
            },
        )?);
        Ok(())
    }

    fn write_configuration(&self) -> Result<(), ServerError> {
        let owner = self.spec.run_as.as_ref();
        let base = base_settings(&self.spec.install)?;
        let text = render(&[&base, &self.spec.settings, &self.identity_settings()]);
        write_private(&self.config_path(), &text, owner)?;
        write_private(&self.hba_path(), &access_rules(self.spec.listen), owner)?;
        write_private(&self.ident_path(), "", owner)
    }

    fn identity_settings(&self) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.display().to_string();
        let name: String = format!("underlay-{}", self.spec.name)
            .chars()
            .map(|c| if c.is_ascii_graphic() { c } else { '_' })
            .take(CLUSTER_NAME_BYTES)
            .collect();
        let listen = match self.spec.listen {
            Listen::UnixSocket => "",
            Listen::Loopback => "127.0.0.1",
        };
        [
            ("cluster_name", name),
            ("hba_file", path(self.hba_path())),
            ("ident_file", path(self.ident_path())),
            ("listen_addresses", listen.to_string()),
            ("port", self.port.to_string()),
            ("unix_socket_directories", path(self.socket_dir.clone())),
            ("unix_socket_permissions", "0700".to_string()),
            ("logging_collector", "off".to_string()),
            ("log_destination", "stderr".to_string()),
            ("log_line_prefix", PREFIX.to_string()),
            ("log_timezone", "UTC".to_string()),
            ("lc_messages", "C".to_string()),
            ("update_process_title", "on".to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into()
    }

    /// What only the running server knows about the settings; a server with unknown ones is stopped.
    fn check_in_force(&mut self) -> Result<Vec<String>, ServerError> {
        let action = "read the settings in force";
        let names = rows(&self.target(), action, "SELECT lower(name) FROM pg_settings")?;
        let known: BTreeSet<String> = names.into_iter().flatten().collect();
        let problems = unclaimed(&self.spec.settings, |name| known.contains(name));
        if !problems.is_empty() {
            self.stop(StopMode::Fast)?;
            return Err(ServerError::Settings { server: self.spec.install.title(), problems });
        }
        Ok(warnings(&self.settings_in_force()?))
    }

    fn has_recovered(&self) -> bool {
        let text = read_since(&self.log_path(), self.log_start_bytes);
        ["automatic recovery in progress", "redo starts at", "starting backup recovery"]
            .iter()
            .any(|mark| text.contains(mark))
    }

    fn oom_kills(&self) -> u64 {
        self.spec.cgroup.as_ref().and_then(Cgroup::oom_kills).unwrap_or_default()
    }

    fn config_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("postgresql.conf")
    }

    fn hba_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("pg_hba.conf")
    }

    fn ident_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("pg_ident.conf")
    }
}

/// See the module's header. `replication` is for `pg_basebackup`.
fn access_rules(listen: Listen) -> String {
    let mut rules = String::from("local all all trust\nlocal replication all trust\n");
    if listen == Listen::Loopback {
        rules.push_str("host all all 127.0.0.1/32 scram-sha-256\n");
    }
    rules
}
