//! The lifecycle of one managed MariaDB: create, start, stop, kill.
//!
//! The server is our own child process (without `mariadbd-safe` or a service): see `managed::Instance` for what that
//! means.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use underlay_host::{ProcessExit, Signal, Teardown};

use crate::error::{CommitState, SessionError};
use crate::managed::{
    Instance, Listen, Liveness, LogTail, RestoredCopy, ServerError, SettingInForce, StartReport,
    StopMode, Tools, block_on, random_password, read_since,
};
use crate::mariadb::configuration;
use crate::mariadb::configuration::{SOCKET, TCP_SUPERUSER};
use crate::mariadb::connection::connect;
use crate::mariadb::initial::{SUPERUSER, check_spec, initialise, make_directories};
use crate::mariadb::install::{Flavour, Install};
use crate::mariadb::log::{READER, ended_cleanly, has_recovered};
use crate::mariadb::settings::{check_settings, in_force_sql, warnings};
pub use crate::mariadb::spec::ServerSpec;
use crate::target::{Address, Secret, Target};

/// A managed server. When this is dropped a running server goes on running until the teardown stack
/// ends it.
#[derive(Debug)]
pub struct Server {
    instance: Instance<Install>,
}

impl Server {
    /// Makes a new database in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        check_spec(&spec)?;
        make_directories(&spec)?;
        let server = Server::prepared(teardown, spec, random_password()?)?;
        initialise(server.spec())?;
        Ok(server)
    }

    /// Takes over a stopped database of ours that is in the spec's directories already, left by an
    /// earlier server with the same runtime directory.
    pub fn open(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        check_spec(&spec)?;
        let instance = Instance::taken_over(teardown, spec, SOCKET, READER)?;
        Ok(Server { instance })
    }

    /// A server over directories that the caller fills.
    pub(crate) fn prepared(
        teardown: &Teardown,
        spec: ServerSpec,
        password: Secret,
    ) -> Result<Server, ServerError> {
        let instance = Instance::prepared(teardown, spec, password, SOCKET, READER)?;
        Ok(Server { instance })
    }

    /// What it was made from.
    pub fn spec(&self) -> &ServerSpec {
        self.instance.spec()
    }

    /// Replaces the study's settings; they count from the next start.
    pub fn set_settings(&mut self, settings: BTreeMap<String, String>) {
        self.instance.set_settings(settings);
    }

    /// Checks the settings, starts the server, and waits until it accepts connections.
    pub fn start(&mut self) -> Result<StartReport, ServerError> {
        self.require_stopped("start the server")?;
        let spec = self.spec();
        let teardown = self.instance.teardown();
        check_settings(&spec.install, spec.run_as.as_ref(), teardown, &spec.settings)?;
        let duration = self.instance.start(configuration::write, wait_ready)?;
        let recovered = has_recovered(&self.instance.log_of_start());
        let warnings = warnings(&self.settings_in_force()?);
        Ok(StartReport { duration, recovered, warnings })
    }

    /// Stops the server; how long it took. The log is an error's if it could not end properly. It ends
    /// all sessions whatever the mode; [`StopMode::Immediate`] kills it.
    pub fn stop(&mut self, mode: StopMode) -> Result<Duration, ServerError> {
        self.instance.require_running("stop the server")?;
        let begin = Instant::now();
        if mode == StopMode::Immediate {
            self.kill()?;
            return Ok(begin.elapsed());
        }
        let exit = self.instance.end(Signal::Terminate)?;
        if exit != ProcessExit::Code(0) || !self.is_clean() {
            return Err(ServerError::Died(self.log_tail()));
        }
        Ok(begin.elapsed())
    }

    /// Kills it at once, as a power failure would. Fine when it has ended already.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.instance.kill()
    }

    /// Why all its sessions were ended although it was not asked to, if that was logged since this was last asked.
    pub fn crash(&mut self) -> Option<String> {
        self.instance.crash()
    }

    /// Whether it runs, and if it died, of what.
    pub fn liveness(&mut self) -> Result<Liveness, ServerError> {
        self.instance.liveness()
    }

    /// Whether its process exists.
    pub fn is_alive(&mut self) -> bool {
        self.instance.is_alive()
    }

    /// Waits until it accepts connections and is done with recovery.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), ServerError> {
        wait_ready(&self.instance, limit)
    }

    /// The server's process number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.instance.pid()
    }

    /// The port over 127.0.0.1. It may change at a start.
    pub fn port(&self) -> u16 {
        self.instance.port()
    }

    /// How to connect: over the Unix socket, as administrator, no database chosen.
    pub fn target(&self) -> Target {
        target(&self.instance)
    }

    /// How to connect over 127.0.0.1, when it listens there. Valid until the next start.
    pub fn tcp_target(&self) -> Option<Target> {
        (self.spec().listen == Listen::Loopback).then(|| Target {
            address: Address::Tcp("127.0.0.1".to_string()),
            port: self.port(),
            user: TCP_SUPERUSER.to_string(),
            password: Some(self.password().clone()),
            ..self.target()
        })
    }

    /// The last lines of its log since the last start, and the cause of trouble that they name.
    pub fn log_tail(&self) -> LogTail {
        self.instance.log_tail()
    }

    /// Its whole log, of all starts.
    pub fn log_path(&self) -> PathBuf {
        self.instance.log_path()
    }

    /// Every setting that was set explicitly, and some that explain results, as the running server has
    /// it, by name.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        if self.pid().is_none() {
            return Err(ServerError::NotRunning { action: "read the settings" });
        }
        let sql = in_force_sql(self.spec().install.flavour == Flavour::Mysql);
        let rows = self.rows("read the settings in force", sql)?;
        Ok(rows
            .into_iter()
            .map(|(name, value, source)| SettingInForce { name, value, source })
            .collect())
    }

    /// What takes and restores its backups, for a thread of its own.
    pub(crate) fn backup_tools(&self) -> Tools<Install> {
        self.instance.backup_tools(self.target())
    }

    /// Removes the stopped database and takes over a restored copy of it in its place.
    pub(crate) fn adopt(&mut self, copy: &RestoredCopy) -> Result<(), ServerError> {
        let (teardown, spec) = self.instance.give_way_to(copy)?;
        *self = Server::open(&teardown, spec)?;
        Ok(())
    }

    pub(crate) fn require_stopped(&mut self, action: &'static str) -> Result<(), ServerError> {
        self.instance.require_stopped(action)
    }

    pub(crate) fn password(&self) -> &Secret {
        self.instance.password()
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
}

fn target(instance: &Instance<Install>) -> Target {
    Target::mariadb_socket(configuration::socket(instance), SUPERUSER)
}

fn wait_ready(instance: &Instance<Install>, limit: Duration) -> Result<(), ServerError> {
    let target = target(instance);
    let target = &target;
    instance.wait_ready(limit, || async move {
        let Ok(mut client) = connect(target).await else { return false };
        if client.query_drop("SELECT 1").await.is_err() {
            return false;
        }
        // A courtesy to the server's log; it answered, which is all that was asked.
        let _ = client.disconnect().await;
        true
    })
}
