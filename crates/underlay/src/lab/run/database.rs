//! A database under test in a run: its control group, its restored data, its server. All that it creates is on the
//! run's teardown stack before it exists.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use underlay_core::{Bytes, Nanos};
use underlay_database::Engine;
use underlay_database::managed::{
    Listen, RestoreOptions, Server, ServerSpec, SettingInForce, StartReport,
};
use underlay_datastore::MountedVolume;
use underlay_host::{Cgroup, CgroupLimits, Unenforced};
use underlay_record::Severity;
use underlay_record::conventions::{document, finding};
use underlay_study::{
    ClientPlace, DatabasePart, DatastoreKind, DesignPlan, DilatedSetting, EnginePlan, HostCompute,
    dilated_settings,
};

use super::active::ActiveRun;
use super::bench::{Bench, DatabaseBench};
use super::under_test::UnderTest;
use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::verification::kept_from_beginning;

/// What a server says once it is started.
pub struct Started {
    settings: serde_json::Map<String, Value>,
    product: &'static str,
    version: String,
    programs: PathBuf,
    data: Bytes,
    took: Nanos,
}

impl<'a> ActiveRun<'a> {
    /// What each database of the run is in its design.
    fn parts(&self) -> Result<Vec<(&'a DatabaseBench<'a>, &'a DatabasePart)>, Abort> {
        let bench: &'a Bench<'a> = self.bench;
        let design = self.design;
        let part = |database: &'a DatabaseBench<'a>| Some((database, database.plan.part(design)?));
        let parts: Vec<_> = bench.databases.iter().filter_map(part).collect();
        match parts.is_empty() {
            true => Err(Abort::Failed(format!("the design `{}` has no database", design.name))),
            false => Ok(parts),
        }
    }

    /// A control group for each host of the cluster that limits the databases placed on it.
    fn make_hosts(
        &self,
        unenforced: &mut Vec<Unenforced>,
    ) -> Result<Vec<(&'a str, Cgroup)>, Abort> {
        let design: &'a DesignPlan = self.design;
        let DatastoreKind::Cluster(cluster) = &design.kind else { return Ok(Vec::new()) };
        let mut hosts = Vec::new();
        for compute in &cluster.compute {
            let limits = self.limits(compute.memory, compute.cpus());
            let HostCompute { host, .. } = compute;
            let name = format!("underlay-{}-{}-{host}", std::process::id(), self.log.run.0);
            let (cgroup, not) = Cgroup::create(self.teardown, &name, &limits)
                .during("create a control group for a host")?;
            unenforced.extend(not);
            hosts.extend(cgroup.map(|cgroup| (host.as_str(), cgroup)));
        }
        Ok(hosts)
    }

    /// As limits of a control group. A processor of the design is a fraction of one of the host.
    fn limits(&self, memory: Option<Bytes>, cpus: Option<f64>) -> CgroupLimits {
        let factor = f64::from(self.bench.dilation.factor());
        CgroupLimits { memory, cpus: cpus.map(|cpus| cpus / factor) }
    }

    /// The control group of each database, and those of the hosts that they are placed on.
    pub(super) fn make_cgroups(
        &self,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Option<Cgroup>>, Vec<Cgroup>), Abort> {
        let mut cgroups = Vec::new();
        let mut of_hosts = Vec::new();
        let hosts = self.make_hosts(&mut of_hosts)?;
        report_unenforced(&of_hosts, self.log, observer)?;
        let mut all_unenforced = listed(&of_hosts);
        for (number, (database, part)) in self.parts()?.into_iter().enumerate() {
            let log = self.log.of(&database.plan.name);
            let (cgroup, unenforced) = self.make_cgroup(number, part, &hosts)?;
            let listed = listed(&unenforced);
            log.document(document::UNENFORCED, &json!(listed))?;
            report_unenforced(&unenforced, log, observer)?;
            all_unenforced.extend(listed);
            cgroups.push(cgroup);
        }
        if self.bench.plan.has_named_databases() {
            all_unenforced.dedup();
            self.log.document(document::UNENFORCED, &json!(all_unenforced))?;
        }
        Ok((cgroups, hosts.into_iter().map(|(_, cgroup)| cgroup).collect()))
    }

    fn make_cgroup(
        &self,
        number: usize,
        part: &DatabasePart,
        hosts: &[(&str, Cgroup)],
    ) -> Result<(Option<Cgroup>, Vec<Unenforced>), Abort> {
        let mut limits = self.limits(part.engine.memory_limit, part.engine.whole_cpus());
        let run = format!("underlay-{}-{}", std::process::id(), self.log.run.0);
        let name = match self.bench.plan.has_named_databases() {
            true => format!("{run}-{}", number + 1),
            false => run,
        };
        let mut known = hosts.iter();
        let host = known.find(|(host, _)| part.host.as_deref() == Some(*host)).map(|(_, it)| it);
        // Control groups of version 1 refuse a part that may use more than the whole.
        if let Some(most) = host.and_then(Cgroup::cpus) {
            limits.cpus = limits.cpus.map(|cpus| cpus.min(most));
        }
        match host {
            Some(host) => host.create_within(&name, &limits),
            None => Cgroup::create(self.teardown, &name, &limits),
        }
        .during("create a control group")
    }

    /// Restores the template of each database on its volumes.
    pub(super) fn restore_all(
        &self,
        scratch: &Path,
        volumes: &[MountedVolume],
        cgroups: Vec<Option<Cgroup>>,
    ) -> Result<Vec<UnderTest<'a>>, Abort> {
        let mut databases = Vec::new();
        let parts = self.parts()?.into_iter().zip(cgroups);
        for (number, ((bench, part), cgroup)) in parts.enumerate() {
            let log = self.log.of(&bench.plan.name);
            let scratch = match self.bench.plan.has_named_databases() {
                // Short, because sockets live in it.
                true => {
                    let own = scratch.join((number + 1).to_string());
                    self.teardown
                        .create_directory(&own)
                        .during("create a folder for a database")?;
                    own
                }
                false => scratch.to_path_buf(),
            };
            let server = self.restore((bench, part), log, &scratch, volumes, cgroup.clone())?;
            databases.push(UnderTest { bench, part, log, scratch, cgroup, server });
        }
        Ok(databases)
    }

    fn restore(
        &self,
        (bench, part): (&DatabaseBench<'_>, &DatabasePart),
        log: RunLog<'_>,
        scratch: &Path,
        volumes: &[MountedVolume],
        cgroup: Option<Cgroup>,
    ) -> Result<Server, Abort> {
        let directory = |volume: &str, name: &str| -> Result<PathBuf, Abort> {
            let volume = bench.plan.volume(volume);
            volumes
                .iter()
                .find(|mounted| mounted.name == volume)
                .map(|mounted| mounted.path.join(name))
                .ok_or_else(|| Abort::Failed(format!("the design has no volume `{volume}`")))
        };
        let names = match bench.install.engine() {
            Engine::Postgresql => ("pgdata", "pgwal"),
            Engine::Mariadb => ("mariadb", "redo"),
        };
        let spec = ServerSpec {
            name: match log.database {
                "" => format!("run-{}", log.run.0),
                database => format!("run-{}-{database}", log.run.0),
            },
            install: bench.install.clone(),
            data: directory("data", names.0)?,
            wal: directory("wal", names.1)?,
            backup: directory("backup", "backup")?,
            settings: self.server_settings(part),
            run_as: self.bench.user.cloned(),
            cgroup,
            runtime_dir: scratch.join("pg"),
            listen: match part.client.place {
                ClientPlace::Host | ClientPlace::Local => Listen::UnixSocket,
                ClientPlace::Remote => Listen::Loopback,
            },
        };
        let log_ready = log_ready(&part.engine, &bench.plan.volume("wal"), volumes);
        let (server, copied) = bench
            .template
            .restore(self.teardown, spec, &RestoreOptions { log_ready })
            .during("restore the template")?;
        log.document(
            "restore",
            &json!({
                "files": copied.files,
                "bytes": copied.bytes.0,
                "duration_ns": Nanos::from(copied.duration).0,
                "wal_ready_bytes": log_ready.0,
            }),
        )?;
        Ok(server)
    }

    /// The design's settings with timers and rates in the host's time.
    fn server_settings(&self, part: &DatabasePart) -> BTreeMap<String, String> {
        let mut settings = part.engine.settings.clone();
        settings.extend(self.dilated(part).map(|one| (one.name.to_string(), one.server)));
        settings
    }

    fn dilated(&self, part: &DatabasePart) -> impl Iterator<Item = DilatedSetting> + use<> {
        let engine = &part.engine;
        dilated_settings(engine.kind, &engine.settings, self.bench.dilation).into_iter()
    }

    /// Starts every server, one after the other.
    pub(super) fn start_all(
        &self,
        databases: &mut [UnderTest<'_>],
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let mut all = Vec::new();
        for database in databases {
            let started = self.start(database, observer)?;
            started.keep(database.log)?;
            all.push(started);
        }
        match Started::common(all) {
            Some(common) if self.bench.plan.has_named_databases() => common.keep(self.log),
            _ => Ok(()),
        }
    }

    fn start(
        &self,
        database: &mut UnderTest<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Started, Abort> {
        let server = &mut database.server;
        let (started, in_force) = settings_of_started(server)
            .map_err(|failure| kept_from_beginning(failure, &mut [server]))?;
        for warning in &started.warnings {
            database.log.find(Severity::Warning, finding::NOT_DURABLE, warning, observer)?;
        }
        let mut settings: serde_json::Map<String, Value> = in_force
            .into_iter()
            .map(|setting| {
                (setting.name, json!({ "value": setting.value, "source": setting.source }))
            })
            .collect();
        // The record is in design time; what the server was given stands beside it.
        for DilatedSetting { name, design, .. } in self.dilated(database.part) {
            if let Some(setting) = settings.get_mut(name) {
                setting["server_value"] = std::mem::replace(&mut setting["value"], json!(design));
            }
        }
        let install = database.bench.install;
        Ok(Started {
            settings,
            product: install.product(),
            version: install.version().to_string(),
            programs: install.bin_dir().to_path_buf(),
            data: database.bench.template.manifest().bytes,
            took: started.duration.into(),
        })
    }
}

impl Started {
    /// What several servers have in common: their settings, of which those that differ are left out, and the data of all.
    fn common(all: Vec<Started>) -> Option<Started> {
        all.into_iter().reduce(|common, other| Started {
            settings: common
                .settings
                .into_iter()
                .filter(|(name, setting)| other.settings.get(name) == Some(setting))
                .collect(),
            data: common.data + other.data,
            took: common.took + other.took,
            ..common
        })
    }

    /// Writes it to the record.
    fn keep(&self, log: RunLog<'_>) -> Result<(), Abort> {
        log.document(document::ENGINE_SETTINGS, &json!(self.settings))?;
        log.document(
            document::ENGINE,
            &json!({
                "engine": self.product,
                "version": self.version,
                "programs": self.programs,
                "data_bytes": self.data.0,
                "start_ns": self.took.0,
            }),
        )
    }
}

/// Starts a server and asks it what it runs with.
fn settings_of_started(server: &mut Server) -> Result<(StartReport, Vec<SettingInForce>), Abort> {
    let started = server.start().during("start the database server")?;
    let in_force = server.settings_in_force().during("ask the database server for its settings")?;
    Ok((started, in_force))
}

/// Limits that are not in force, for the record.
fn listed(unenforced: &[Unenforced]) -> Vec<Value> {
    let one = |Unenforced { limit, reason, remedy }: &Unenforced| json!({ "limit": limit, "reason": reason, "remedy": remedy });
    unenforced.iter().map(one).collect()
}

fn report_unenforced(
    unenforced: &[Unenforced],
    log: RunLog<'_>,
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    for Unenforced { limit, reason, remedy } in unenforced {
        let text = format!("the limit of {limit} is not enforced: {reason} ({remedy})");
        log.find(Severity::Warning, finding::LIMIT_NOT_ENFORCED, &text, observer)?;
    }
    Ok(())
}

/// Log to have ready: a server that has been running recycles its segments, and writes into space that exists. It
/// keeps as much as its setting allows between checkpoints. Less would be filled with zeros while the load runs,
/// a whole segment at a time, and every commit would wait for it.
fn log_ready(engine: &EnginePlan, volume: &str, volumes: &[MountedVolume]) -> Bytes {
    let capacity =
        volumes.iter().find(|mounted| mounted.name == volume).map_or(0, |it| it.capacity.0);
    engine.log_size().min(Bytes(capacity / 4 * 3))
}
