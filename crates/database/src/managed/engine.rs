//! One managed server of any engine.
//!
//! An enum instead of a trait: the engines are those that Underlay can load, drive and check, and the
//! compiler then shows each place where a new engine needs code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use underlay_host::{Capability, Teardown};

use crate::managed::{
    BackupFormat, BackupOptions, BackupReport, CopyReport, Liveness, LogTail, RestoreOptions,
    RestoredCopy, ServerError, ServerSpec, SettingInForce, StartReport, StopMode, TemplateManifest,
    Tools, Watch, uncache,
};
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// The server programs of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Install {
    /// PostgreSQL's.
    Postgres(postgres::Install),
    /// MariaDB's or MySQL's.
    Mariadb(mariadb::Install),
}

/// A managed server.
#[derive(Debug)]
pub enum Server {
    /// PostgreSQL.
    Postgres(postgres::Server),
    /// MariaDB or MySQL.
    Mariadb(mariadb::Server),
}

/// A loaded, stopped database kept as files.
#[derive(Clone, Debug)]
pub enum Template {
    /// Of PostgreSQL.
    Postgres(postgres::Template),
    /// Of MariaDB or MySQL.
    Mariadb(mariadb::Template),
}

/// What takes and restores backups of a running server, on a thread of its own. Its programs run as the server's user, in
/// its control group and on its teardown stack, and end when they are asked to stop.
#[derive(Clone, Debug)]
pub struct BackupTools(AnyTools);

#[derive(Clone, Debug)]
enum AnyTools {
    Postgres(Tools<postgres::Install>),
    Mariadb(Tools<mariadb::Install>),
}

/// The installs of an engine, as its own `find_installs` finds them.
pub fn find_installs(engine: Engine, server_bin: Option<&Path>) -> Vec<Install> {
    match engine {
        Engine::Postgresql => {
            postgres::find_installs(server_bin).into_iter().map(Install::Postgres).collect()
        }
        Engine::Mariadb => {
            mariadb::find_installs(None, server_bin).into_iter().map(Install::Mariadb).collect()
        }
    }
}

/// What `doctor` says about an engine on this host.
pub fn capability(engine: Engine, server_bin: Option<&Path>) -> Capability {
    match engine {
        Engine::Postgresql => postgres::capability(server_bin),
        Engine::Mariadb => mariadb::capability(server_bin),
    }
}

impl Install {
    /// Which engine.
    pub fn engine(&self) -> Engine {
        match self {
            Install::Postgres(_) => Engine::Postgresql,
            Install::Mariadb(_) => Engine::Mariadb,
        }
    }

    /// The word of the product: `postgresql`, `mariadb`, `mysql`.
    pub fn product(&self) -> &'static str {
        match self {
            Install::Postgres(_) => Engine::Postgresql.as_str(),
            Install::Mariadb(install) => install.flavour.as_str(),
        }
    }

    /// 15 of 15.18, 10 of 10.11.19.
    pub fn major(&self) -> u32 {
        match self {
            Install::Postgres(install) => install.major,
            Install::Mariadb(install) => install.major,
        }
    }

    /// As the server names it: `15.18`, `10.11.19`.
    pub fn version(&self) -> &str {
        match self {
            Install::Postgres(install) => &install.version,
            Install::Mariadb(install) => &install.version,
        }
    }

    /// The folder of the server program.
    pub fn bin_dir(&self) -> &Path {
        match self {
            Install::Postgres(install) => &install.bin_dir,
            Install::Mariadb(install) => install.bin_dir(),
        }
    }

    /// Why no backup of its servers can be taken, and what to install; `None` when one can.
    pub fn backup_problem(&self) -> Option<String> {
        match self {
            // Without `pg_basebackup` it is no install.
            Install::Postgres(_) => None,
            Install::Mariadb(install) => mariadb::backup_problem(install),
        }
    }
}

/// The same spec with an engine's own programs.
fn with_install<I>(spec: ServerSpec<Install>, install: I) -> ServerSpec<I> {
    ServerSpec {
        name: spec.name,
        install,
        data: spec.data,
        wal: spec.wal,
        backup: spec.backup,
        settings: spec.settings,
        run_as: spec.run_as,
        cgroup: spec.cgroup,
        runtime_dir: spec.runtime_dir,
        listen: spec.listen,
    }
}

/// Does the same with whichever server it is.
macro_rules! each {
    ($kind:ident, $self:expr, $one:ident => $what:expr) => {
        match $self {
            $kind::Postgres($one) => $what,
            $kind::Mariadb($one) => $what,
        }
    };
}

impl Server {
    /// Makes a new database in the spec's empty or missing directories.
    pub fn create(teardown: &Teardown, spec: ServerSpec<Install>) -> Result<Server, ServerError> {
        match spec.install.clone() {
            Install::Postgres(install) => {
                postgres::Server::create(teardown, with_install(spec, install))
                    .map(Server::Postgres)
            }
            Install::Mariadb(install) => {
                mariadb::Server::create(teardown, with_install(spec, install)).map(Server::Mariadb)
            }
        }
    }

    /// Replaces the study's settings; they count from the next start.
    pub fn set_settings(&mut self, settings: BTreeMap<String, String>) {
        each!(Server, self, server => server.set_settings(settings));
    }

    /// Checks the settings, starts the server, and waits until it accepts connections.
    pub fn start(&mut self) -> Result<StartReport, ServerError> {
        each!(Server, self, server => server.start())
    }

    /// Stops the server; how long it took.
    pub fn stop(&mut self, mode: StopMode) -> Result<Duration, ServerError> {
        each!(Server, self, server => server.stop(mode))
    }

    /// Kills all its processes at once, as a power failure would.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        each!(Server, self, server => server.kill())
    }

    /// Takes a backup of the running server into a new directory below the backup directory.
    pub fn backup(&self, format: BackupFormat) -> Result<BackupReport, ServerError> {
        each!(Server, self, server => server.backup(format))
    }

    /// Replaces the stopped database by a backup of it.
    pub fn restore(&mut self, backup: &BackupReport) -> Result<BackupReport, ServerError> {
        each!(Server, self, server => server.restore(backup))
    }

    /// What takes and restores its backups while it runs.
    pub fn backup_tools(&self) -> BackupTools {
        BackupTools(match self {
            Server::Postgres(server) => AnyTools::Postgres(server.backup_tools()),
            Server::Mariadb(server) => AnyTools::Mariadb(server.backup_tools()),
        })
    }

    /// Removes the stopped database and takes over a restored copy of it in its place.
    pub fn adopt(&mut self, copy: &RestoredCopy) -> Result<(), ServerError> {
        each!(Server, self, server => server.adopt(copy))
    }

    /// Why all its sessions were ended although it was not asked to, if that was logged since this was last asked. One that
    /// has a single process tells of it by [`Server::liveness`].
    pub fn crash(&mut self) -> Option<String> {
        each!(Server, self, server => server.crash())
    }

    /// Whether it runs, and if it died, of what.
    pub fn liveness(&mut self) -> Result<Liveness, ServerError> {
        each!(Server, self, server => server.liveness())
    }

    /// Whether its main process exists.
    pub fn is_alive(&mut self) -> bool {
        each!(Server, self, server => server.is_alive())
    }

    /// Waits until it accepts connections and is done with recovery.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), ServerError> {
        each!(Server, self, server => server.wait_ready(limit))
    }

    /// The main process's number, while it has one.
    pub fn pid(&self) -> Option<u32> {
        each!(Server, self, server => server.pid())
    }

    /// How to connect as administrator over its Unix socket. Valid until the next start.
    pub fn target(&self) -> Target {
        each!(Server, self, server => server.target())
    }

    /// How to connect over 127.0.0.1, when it listens there. Valid until the next start.
    pub fn tcp_target(&self) -> Option<Target> {
        each!(Server, self, server => server.tcp_target())
    }

    /// The last lines of its log since the last start, and the cause of trouble that they name.
    pub fn log_tail(&self) -> LogTail {
        each!(Server, self, server => server.log_tail())
    }

    /// Its whole log, of all starts.
    pub fn log_path(&self) -> PathBuf {
        each!(Server, self, server => server.log_path())
    }

    /// The settings that were set explicitly, as the running server has them, by name.
    pub fn settings_in_force(&self) -> Result<Vec<SettingInForce>, ServerError> {
        each!(Server, self, server => server.settings_in_force())
    }
}

impl BackupTools {
    /// Takes a backup into one archive below the backup directory, from files that are read from storage and not from memory.
    /// It copies at most `bytes_per_second`, where that is limited.
    pub fn take(
        &self,
        bytes_per_second: Option<u64>,
        watch: &Watch<'_>,
    ) -> Result<BackupReport, ServerError> {
        uncache(each!(AnyTools, &self.0, tools => &tools.spec.data))?;
        let options = BackupOptions { format: BackupFormat::Archive, bytes_per_second };
        each!(AnyTools, &self.0, tools => tools.take(options, watch))
    }

    /// Restores a backup, read from storage, beside the database that it is of. Replaces an earlier copy.
    pub fn restore_copy(
        &self,
        backup: &BackupReport,
        watch: &Watch<'_>,
    ) -> Result<RestoredCopy, ServerError> {
        uncache(&backup.path)?;
        each!(AnyTools, &self.0, tools => tools.restore_copy(backup, watch))
    }

    /// Removes a backup.
    pub fn remove(&self, backup: &BackupReport) -> Result<(), ServerError> {
        fs::remove_dir_all(&backup.path).map_err(ServerError::file("remove", &backup.path))
    }
}

impl Template {
    /// Copies a cleanly stopped database into `dir`.
    pub fn capture(
        server: &mut Server,
        dir: &Path,
        labels: BTreeMap<String, String>,
    ) -> Result<(Template, CopyReport), ServerError> {
        match server {
            Server::Postgres(server) => postgres::Template::capture(server, dir, labels)
                .map(|(template, report)| (Template::Postgres(template), report)),
            Server::Mariadb(server) => mariadb::Template::capture(server, dir, labels)
                .map(|(template, report)| (Template::Mariadb(template), report)),
        }
    }

    /// The complete template of an engine in `dir`.
    pub fn open(engine: Engine, dir: &Path) -> Result<Template, ServerError> {
        match engine {
            Engine::Postgresql => postgres::Template::open(dir).map(Template::Postgres),
            Engine::Mariadb => mariadb::Template::open(dir).map(Template::Mariadb),
        }
    }

    /// What it holds.
    pub fn manifest(&self) -> &TemplateManifest {
        each!(Template, self, template => template.manifest())
    }

    /// Copies it into the spec's directories, replacing a database that Underlay made there before.
    pub fn restore(
        &self,
        teardown: &Teardown,
        spec: ServerSpec<Install>,
        options: &RestoreOptions,
    ) -> Result<(Server, CopyReport), ServerError> {
        match (self, spec.install.clone()) {
            (Template::Postgres(template), Install::Postgres(install)) => template
                .restore(teardown, with_install(spec, install), options)
                .map(|(server, report)| (Server::Postgres(server), report)),
            (Template::Mariadb(template), Install::Mariadb(install)) => template
                .restore(teardown, with_install(spec, install), options)
                .map(|(server, report)| (Server::Mariadb(server), report)),
            (template, install) => Err(ServerError::TemplateVersion {
                dir: each!(Template, template, template => template.dir().to_path_buf()),
                template: template.manifest().version.clone(),
                server: format!("{} {}", install.engine(), install.version()),
            }),
        }
    }
}
