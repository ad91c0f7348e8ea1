//! The lifecycle of one managed cluster: create, start, stop, kill.
//!
//! The server is our own child process (without `pg_ctl`): see `managed::Instance` for what that
//! means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use underlay_host::{ProcessExit, Resource, Signal, Teardown};

use crate::managed::{
    Instance, Listen, Liveness, LogTail, RestoredCopy, ServerError, SettingInForce, StartReport,
    StopMode, Tools, random_password,
};
use crate::postgres::cluster::SUPERUSER;
use crate::postgres::install::Install;
use crate::postgres::log::READER;
use crate::postgres::query::rows;
use crate::postgres::settings::{check_settings, unclaimed, warnings};
pub use crate::postgres::spec::ServerSpec;
use crate::postgres::{cluster, configuration};
use crate::target::{Address, Secret, Target};

/// The longest name of a socket in its directory.
const LONGEST_SOCKET_NAME: &str = "/.s.PGSQL.65535";

/// A managed cluster. When this is dropped a running server goes on running until the teardown
/// stack ends it.
#[derive(Debug)]
pub struct Server {
    instance: Instance<Install>,
}

impl Server {
    /// Makes a new cluster (`initdb`) in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        cluster::check_spec(&spec)?;
        cluster::make_directories(&spec)?;
        let password = random_password()?;
        let server = Server::prepared(teardown, spec, password)?;
        cluster::initialise(teardown, server.spec(), server.password())?;
        Ok(server)
    }

    /// Takes over a stopped cluster of ours that is in the spec's directories already, left by an
    /// earlier server with the same runtime directory.
    pub fn open(teardown: &Teardown, spec: ServerSpec) -> Result<Server, ServerError> {
        cluster::check_spec(&spec)?;
        register_memory(teardown, &spec)?;
        let instance = Instance::taken_over(teardown, spec, LONGEST_SOCKET_NAME, READER)?;
        Ok(Server { instance })
    }

    /// A server over directories that the caller fills.
    pub(crate) fn prepared(
        teardown: &Teardown,
        spec: ServerSpec,
        password: Secret,
    ) -> Result<Server, ServerError> {
        register_memory(teardown, &spec)?;
        let instance = Instance::prepared(teardown, spec, password, LONGEST_SOCKET_NAME, READER)?;
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
        check_settings(
            &spec.install,
            spec.run_as.as_ref(),
            self.instance.teardown(),
            &spec.runtime_dir,
            &spec.settings,
        )?;
        let duration = self.instance.start(configuration::write, wait_ready)?;
        let warnings = self.check_in_force()?;
        Ok(StartReport { duration, recovered: self.has_recovered(), warnings })
    }

    /// Stops the server; how long it took. The log is an error's if it could not end properly.
    pub fn stop(&mut self, mode: StopMode) -> Result<Duration, ServerError> {
        self.instance.require_running("stop the server")?;
        let begin = Instant::now();
        let signal = match mode {
            StopMode::Smart => Signal::Terminate,
            StopMode::Fast => Signal::Interrupt,
            StopMode::Immediate => Signal::Quit,
        };
        let exit = self.instance.end(signal)?;
        // Code 0 is a finished shutdown; an immediate one is never finished.
        if exit != ProcessExit::Code(0) && mode != StopMode::Immediate {
            return Err(ServerError::Died(self.log_tail()));
        }
        Ok(begin.elapsed())
    }

    /// Kills all its processes at once, as a power failure would. Fine when it has ended already.
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

    /// Whether its postmaster exists.
    pub fn is_alive(&mut self) -> bool {
        self.instance.is_alive()
    }

    /// Waits until it accepts connections and is done with recovery. Also of use after one of its
    /// processes crashed, when it restarts by itself.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), ServerError> {
        wait_ready(&self.instance, limit)
    }

    /// The postmaster's process number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.instance.pid()
    }

    /// The port, which also names the Unix socket. It may change at a start.
    pub fn port(&self) -> u16 {
        self.instance.port()
    }

    /// How to connect: the maintenance database over the Unix socket, as superuser. Valid until the
    /// next start.
    pub fn target(&self) -> Target {
        target(&self.instance)
    }

    /// How to connect over 127.0.0.1, when it listens there. Valid until the next start.
    pub fn tcp_target(&self) -> Option<Target> {
        (self.spec().listen == Listen::Loopback).then(|| Target {
            address: Address::Tcp("127.0.0.1".to_string()),
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

    /// Every setting that is not at its built-in default, as the running server has it, by name.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        if self.pid().is_none() {
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

    /// What only the running server knows about the settings; a server with unknown ones is stopped.
    fn check_in_force(&mut self) -> Result<Vec<String>, ServerError> {
        let action = "read the settings in force";
        let names = rows(&self.target(), action, "SELECT lower(name) FROM pg_settings")?;
        let known: BTreeSet<String> = names.into_iter().flatten().collect();
        let problems = unclaimed(&self.spec().settings, |name| known.contains(name));
        // Only a running server knows the settings of its extensions, so these are checked now.
        if !problems.is_empty() {
            self.stop(StopMode::Fast)?;
            return Err(ServerError::Settings { server: self.spec().install.title(), problems });
        }
        Ok(warnings(&self.settings_in_force()?))
    }

    fn has_recovered(&self) -> bool {
        let text = self.instance.log_of_start();
        ["automatic recovery in progress", "redo starts at", "starting backup recovery"]
            .iter()
            .any(|mark| text.contains(mark))
    }
}

/// Before initdb, which starts servers too: killed with us, they leave memory that nothing else leads to.
fn register_memory(teardown: &Teardown, spec: &ServerSpec) -> Result<(), ServerError> {
    let owner = spec.run_as.as_ref().map_or_else(|| geteuid().as_raw(), |user| user.uid);
    teardown.register(Resource::postgresql_memory(&spec.data, owner)?)?;
    Ok(())
}

fn target(instance: &Instance<Install>) -> Target {
    Target::unix_socket(instance.socket_dir().to_path_buf(), instance.port(), SUPERUSER)
}

fn wait_ready(instance: &Instance<Install>, limit: Duration) -> Result<(), ServerError> {
    let target = target(instance);
    let target = &target;
    instance.wait_ready(limit, || async move {
        match target.connect().await {
            Ok(client) => client.simple_query("SELECT 1").await.is_ok(),
            Err(_) => false,
        }
    })
}
