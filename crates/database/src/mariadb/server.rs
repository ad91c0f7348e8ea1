//! The life of one managed MariaDB: create, start, stop, kill.
//!
//! The server is our own child (no `mariadbd-safe`, no service between), in its own session and control
//! group, and on the teardown stack. Its configuration is in the runtime directory.
//!
//! Who may connect: over the Unix socket the administrator without password, since the kernel lets only
//! the server's user and root through to it (the socket's directory is theirs alone); over 127.0.0.1,
//! when asked for, a second administrator with a random password. Nobody from other hosts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use underlay_host::{Cgroup, HostError, Process, ProcessExit, ProcessSpec, Signal, Teardown};

use crate::error::{CommitState, SessionError};
use crate::managed::{
    Listen, Liveness, LogCause, LogTail, ServerError, SettingInForce, StartReport, StopMode,
    block_on, free_port, is_ours, make_runtime_dir, make_socket_dir, password_file,
    random_password, read_since, require_reachable, write_private,
};
use crate::mariadb::connection::connect;
use crate::mariadb::initial::{
    SUPERUSER, check_spec, data_dir, initialise, make_directories, temporary_dir,
};
use crate::mariadb::install::{Flavour, Install};
use crate::mariadb::log::{READER, ended_cleanly, has_recovered};
use crate::mariadb::settings::{base_settings, check_settings, in_force_sql, render, warnings};
use crate::target::{Address, Secret, Target};

/// Recovery of a crash on a slow volume takes minutes.
const START_LIMIT: Duration = Duration::from_secs(600);
/// So does writing the dirty pages at a shutdown.
const STOP_LIMIT: Duration = Duration::from_secs(600);
/// Another program may take the port between our choice and the server's start.
const PORT_ATTEMPTS: u32 = 4;
/// A server that was killed needs a moment to let go of its files.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// The name of the socket in its directory.
const SOCKET: &str = "/mariadb.sock";
/// The administrator who may connect over 127.0.0.1.
const TCP_SUPERUSER: &str = "underlay";

/// A server: which programs, where, with what. `wal` is the directory of the redo log.
pub type ServerSpec = crate::managed::ServerSpec<Install>;

/// A managed server. When this is dropped a running server goes on running until the teardown stack
/// ends it.
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
    /// Makes a new database in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        check_spec(&spec)?;
        make_directories(&spec)?;
        let server = Server::prepared(teardown, spec, random_password()?)?;
        initialise(&server.spec)?;
        Ok(server)
    }

    /// Takes over a stopped database of ours that is in the spec's directories already, left by an
    /// earlier server with the same runtime directory.
    pub fn open(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        check_spec(&spec)?;
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
        let socket_dir = make_socket_dir(teardown, &spec.runtime_dir, owner, SOCKET)?;
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
        check_settings(&spec.install, spec.run_as.as_ref(), &self.teardown, &spec.settings)?;
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
        let recovered = has_recovered(&read_since(&self.log_path(), self.log_start_bytes));
        let warnings = warnings(&self.settings_in_force()?);
        Ok(StartReport { duration, recovered, warnings })
    }

    /// Stops the server; how long it took. The log is an error's if it could not end properly. It ends
    /// all sessions whatever the mode; [`StopMode::Immediate`] kills it.
    pub fn stop(&mut self, mode: StopMode) -> Result<Duration, ServerError> {
        if !self.is_alive() {
            return Err(match self.liveness()? {
                Liveness::Died(log) => ServerError::Died(log),
                _ => ServerError::NotRunning { action: "stop the server" },
            });
        }
        let begin = Instant::now();
        if mode == StopMode::Immediate {
            self.kill()?;
            return Ok(begin.elapsed());
        }
        let Some(process) = self.process.take() else {
            return Err(ServerError::NotRunning { action: "stop the server" });
        };
        process.signal(Signal::Terminate)?;
        let Some(exit) = process.wait_for(STOP_LIMIT)? else {
            self.process = Some(process);
            return Err(ServerError::StopTimeout { waited: STOP_LIMIT, log: self.log_tail() });
        };
        process.collect(Some(exit))?;
        if exit != ProcessExit::Code(0) || !self.is_clean() {
            return Err(ServerError::Died(self.log_tail()));
        }
        Ok(begin.elapsed())
    }

    /// Kills it at once, as a power failure would. Fine when it has ended already.
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
                None => Ok(Liveness::Running),
                Some(_) => Ok(Liveness::Died(self.log_tail())),
            },
        }
    }

    /// Whether its process exists.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.liveness(), Ok(Liveness::Running))
    }

    /// Waits until it accepts connections and is done with recovery.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), ServerError> {
        let target = self.target();
        let Some(process) = &self.process else {
            return Err(ServerError::NotRunning { action: "wait for the server" });
        };
        let deadline = Instant::now() + limit;
        let ready = block_on(async {
            while process.try_wait()?.is_none() {
                if let Ok(mut client) = connect(&target).await
                    && client.query_drop("SELECT 1").await.is_ok()
                {
                    // A courtesy to the server's log; it answered, which is all that was asked.
                    let _ = client.disconnect().await;
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

    /// The server's process number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The port over 127.0.0.1. It may change at a start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect: over the Unix socket, as administrator, no database chosen.
    pub fn target(&self) -> Target {
        Target::mariadb_socket(self.socket(), SUPERUSER)
    }

    /// How to connect over 127.0.0.1, when it listens there. Valid until the next start.
    pub fn tcp_target(&self) -> Option<Target> {
        (self.spec.listen == Listen::Loopback).then(|| Target {
            address: Address::Tcp("127.0.0.1".to_string()),
            port: self.port,
            user: TCP_SUPERUSER.to_string(),
            password: Some(self.password.clone()),
            ..self.target()
        })
    }

    /// The last lines of its log since the last start, and the cause of trouble that they name.
    pub fn log_tail(&self) -> LogTail {
        let mut tail = LogTail::read(&self.log_path(), self.log_start_bytes, READER);
        // The kernel kills without a word in the log; the group's counter tells.
        if self.oom_kills() > self.oom_kills_at_start {
            tail.cause = Some(LogCause::OutOfMemory);
            tail.evidence.get_or_insert_with(|| "killed by the kernel".to_string());
        }
        tail
    }

    /// Its whole log, of all starts.
    pub fn log_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("server.log")
    }

    /// Every setting that somebody set, and some that explain results, as the running server has it, by
    /// name.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        if self.process.is_none() {
            return Err(ServerError::NotRunning { action: "read the settings" });
        }
        let sql = in_force_sql(self.spec.install.flavour == Flavour::Mysql);
        let rows = self.rows("read the settings in force", sql)?;
        Ok(rows
            .into_iter()
            .map(|(name, value, source)| SettingInForce { name, value, source })
            .collect())
    }

    pub(crate) fn require_stopped(&mut self, action: &'static str) -> Result<(), ServerError> {
        if self.is_alive() {
            return Err(ServerError::StillRunning { action });
        }
        // A server that died leaves its process object.
        self.kill()
    }

    pub(crate) fn password(&self) -> &Secret {
        &self.password
    }

    /// Whether the stopped server left nothing to recover.
    pub(crate) fn is_clean(&self) -> bool {
        ended_cleanly(&read_since(&self.log_path(), 0))
    }

    fn rows(
        &self,
        action: &'static str,
        sql: String,
    ) -> Result<Vec<(String, String, String)>, ServerError> {
        let target = self.target();
        block_on(async {
            let mut client = connect(&target).await?;
            let rows = client
                .query(sql)
                .await
                .map_err(|error| SessionError::from_mariadb(&error, CommitState::NotSent))?;
            let _ = client.disconnect().await;
            Ok(rows)
        })?
        .map_err(|source| ServerError::Query { action, source })
    }

    fn spawn(&mut self) -> Result<(), ServerError> {
        self.kill()?;
        self.write_configuration()?;
        self.log_start_bytes = self.log_path().metadata().map_or(0, |metadata| metadata.len());
        self.oom_kills_at_start = self.oom_kills();
        let spec = &self.spec;
        let config = format!("--defaults-file={}", self.config_path().display());
        self.process = Some(Process::spawn(
            &self.teardown,
            &ProcessSpec {
                name: spec.install.flavour.as_str(),
                program: &spec.install.program,
                args: vec![config.into()],
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
        write_private(&self.init_path(), &self.init_sql(), owner)
    }

    /// What the server carries out at each start: one statement per line.
    fn init_sql(&self) -> String {
        if self.spec.listen == Listen::UnixSocket {
            return String::new();
        }
        let account = format!("'{TCP_SUPERUSER}'@'127.0.0.1'");
        let password = self.password.reveal();
        format!(
            "CREATE USER IF NOT EXISTS {account};\n\
             ALTER USER {account} IDENTIFIED BY '{password}';\n\
             GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION;\n"
        )
    }

    fn identity_settings(&self) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.display().to_string();
        let mut settings = vec![
            ("datadir", path(data_dir(&self.spec.data))),
            ("innodb_log_group_home_dir", path(self.spec.wal.clone())),
            ("tmpdir", path(temporary_dir(&self.spec.data))),
            ("socket", path(self.socket())),
            ("pid_file", path(self.socket_dir.join("pid"))),
            ("init_file", path(self.init_path())),
            ("lc_messages", "en_US".to_string()),
            ("skip_name_resolve", "ON".to_string()),
            ("local_infile", "ON".to_string()),
        ];
        match self.spec.listen {
            Listen::UnixSocket => settings.push(("skip_networking", "ON".to_string())),
            Listen::Loopback => {
                settings.push(("bind_address", "127.0.0.1".to_string()));
                settings.push(("port", self.port.to_string()));
            }
        }
        settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn socket(&self) -> PathBuf {
        self.socket_dir.join(&SOCKET[1..])
    }

    fn oom_kills(&self) -> u64 {
        self.spec.cgroup.as_ref().and_then(Cgroup::oom_kills).unwrap_or_default()
    }

    fn config_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("my.cnf")
    }

    fn init_path(&self) -> PathBuf {
        self.spec.runtime_dir.join("init.sql")
    }
}
