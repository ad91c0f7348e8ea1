//! What a run stands on: datastore, control group, restored database, started server. All of it is on the run's teardown
//! stack before it exists.

use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_database::Engine;
use underlay_database::managed::{Listen, RestoreOptions, Server, ServerSpec};
use underlay_datastore::{
    ClusterStorage, Context, DatastoreSpec, MountedVolume, Timing, VolumeRequest, open,
};
use underlay_host::{Cgroup, CgroupLimits, Teardown, Unenforced, User};
use underlay_record::Severity;
use underlay_record::conventions::{document, finding};
use underlay_study::{
    ClientPlace, DatastoreKind, DesignPlan, DilatedSetting, VolumePlan, dilated_settings,
};

use super::ActiveRun;
use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;
use crate::lab::workload::Subject;

/// What a design's volumes live on; `seed` is that of its random service times.
pub fn datastore_spec(design: &DesignPlan, seed: RootSeed) -> DatastoreSpec {
    match &design.kind {
        DatastoreKind::Path { directory } => DatastoreSpec::Path { directory: directory.clone() },
        DatastoreKind::Emulated { devices, durability, backing, link } => DatastoreSpec::Emulated {
            devices: devices.clone(),
            seed,
            backing_directory: backing.clone(),
            durability: *durability,
            link: *link,
        },
        DatastoreKind::Cluster(plan) => DatastoreSpec::Cluster {
            storage: Box::new(ClusterStorage {
                spec: plan.spec.clone(),
                policy: plan.policy,
                policies: BTreeMap::new(),
                fill_percent: plan.fill_percent,
            }),
            seed,
            backing_directory: None,
        },
    }
}

/// A design's volumes, to be created.
pub fn volume_requests(design: &DesignPlan) -> Vec<VolumeRequest> {
    let request = |volume: &VolumePlan| VolumeRequest {
        name: volume.name.clone(),
        capacity: volume.capacity,
        file_system: volume.file_system,
        device: volume.device.clone(),
    };
    design.volumes.iter().map(request).collect()
}

impl<S: Subject> ActiveRun<'_, S> {
    /// A folder of this run's own; short, because sockets live in it.
    pub(super) fn scratch(&self) -> Result<PathBuf, Abort> {
        let name = format!("{}-{}", std::process::id(), self.log.run.0);
        let path = self.bench.state.scratch_dir(&name);
        self.teardown.create_directory(&path).during("create a folder for the run")?;
        Ok(path)
    }

    pub(super) fn open_datastore(
        &self,
        scratch: &Path,
    ) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
        open_datastore(&Ground {
            design: self.design,
            // Every repeat meets other random service times, both designs of a pair the same stream.
            seed: self.bench.plan.seed.child("datastore", u64::from(self.scheduled.repeat)),
            log: self.log,
            teardown: self.teardown,
            scratch,
            server_program: self.bench.server_program,
            owner: self.bench.user,
        })
    }

    pub(super) fn make_cgroup(&self, observer: &mut dyn Observer) -> Result<Option<Cgroup>, Abort> {
        let engine = &self.design.engine;
        // A processor of the design is a fraction of one of the host.
        let cpus = engine.cpus.map(|cpus| cpus / f64::from(self.bench.dilation.factor()));
        let limits = CgroupLimits { memory: engine.memory_limit, cpus };
        let name = format!("underlay-{}-{}", std::process::id(), self.log.run.0);
        let (cgroup, unenforced) =
            Cgroup::create(self.teardown, &name, &limits).during("create a control group")?;
        let listed: Vec<_> = unenforced
            .iter()
            .map(|Unenforced { limit, reason, remedy }| {
                json!({ "limit": limit, "reason": reason, "remedy": remedy })
            })
            .collect();
        self.log.document(document::UNENFORCED, &json!(listed))?;
        for Unenforced { limit, reason, remedy } in &unenforced {
            let text = format!("the limit of {limit} is not enforced: {reason} ({remedy})");
            self.log.find(Severity::Warning, finding::LIMIT_NOT_ENFORCED, &text, observer)?;
        }
        Ok(cgroup)
    }

    pub(super) fn restore(
        &self,
        scratch: &Path,
        volumes: &[MountedVolume],
        cgroup: Option<Cgroup>,
    ) -> Result<Server, Abort> {
        let directory = |volume: &str, name: &str| -> Result<PathBuf, Abort> {
            volumes
                .iter()
                .find(|mounted| mounted.name == volume)
                .map(|mounted| mounted.path.join(name))
                .ok_or_else(|| Abort::Failed(format!("the design has no volume `{volume}`")))
        };
        let names = match self.bench.install.engine() {
            Engine::Postgresql => ("pgdata", "pgwal"),
            Engine::Mariadb => ("mariadb", "redo"),
        };
        let spec = ServerSpec {
            name: format!("run-{}", self.log.run.0),
            install: self.bench.install.clone(),
            data: directory("data", names.0)?,
            wal: directory("wal", names.1)?,
            backup: directory("backup", "backup")?,
            settings: self.server_settings(),
            run_as: self.bench.user.cloned(),
            cgroup,
            runtime_dir: scratch.join("pg"),
            listen: match self.design.client.place {
                ClientPlace::Host | ClientPlace::Local => Listen::UnixSocket,
                ClientPlace::Remote => Listen::Loopback,
            },
        };
        let wal_ready = self.wal_ready(volumes);
        let (server, copied) = self
            .bench
            .template
            .restore(self.teardown, spec, &RestoreOptions { log_ready: wal_ready })
            .during("restore the template")?;
        self.log
            .recorder
            .lock()
            .write_document(
                Some(self.log.run),
                "restore",
                &json!({
                    "files": copied.files,
                    "bytes": copied.bytes.0,
                    "duration_ns": Nanos::from(copied.duration).0,
                    "wal_ready_bytes": wal_ready.0,
                }),
            )
            .during("write the record")?;
        Ok(server)
    }

    /// The design's settings with timers and rates in the host's time.
    fn server_settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.design.engine.settings.clone();
        settings.extend(self.dilated().map(|one| (one.name.to_string(), one.server)));
        settings
    }

    fn dilated(&self) -> impl Iterator<Item = DilatedSetting> {
        let engine = &self.design.engine;
        dilated_settings(engine.kind, &engine.settings, self.bench.dilation).into_iter()
    }

    /// WAL segments to have ready: a server that has been running recycles its segments and writes into
    /// space that exists. A quarter of the log volume is what it would hold after its first checkpoint.
    pub(super) fn wal_ready(&self, volumes: &[MountedVolume]) -> Bytes {
        let capacity = volumes
            .iter()
            .find(|volume| volume.name == "wal")
            .map_or(0, |volume| volume.capacity.0);
        Bytes((capacity / 4).min(Bytes::from_mib(512).0) >> 24 << 24)
    }

    pub(super) fn start(
        &self,
        server: &mut Server,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let started = server.start().during("start the database server")?;
        for warning in &started.warnings {
            self.log.find(Severity::Warning, finding::NOT_DURABLE, warning, observer)?;
        }
        let mut settings: BTreeMap<_, _> = server
            .settings_in_force()
            .during("read the settings in force")?
            .into_iter()
            .map(|setting| {
                (setting.name, json!({ "value": setting.value, "source": setting.source }))
            })
            .collect();
        // The record is in design time; what the server was given stands beside it.
        for DilatedSetting { name, design, .. } in self.dilated() {
            settings.entry(name.to_string()).and_modify(|setting| {
                setting["server_value"] = std::mem::replace(&mut setting["value"], json!(design));
            });
        }
        self.log.document(document::ENGINE_SETTINGS, &json!(settings))?;
        self.log.document(
            document::ENGINE,
            &json!({
                "engine": self.bench.install.product(),
                "version": self.bench.install.version(),
                "programs": self.bench.install.bin_dir(),
                "data_bytes": self.bench.template.manifest().bytes.0,
                "start_ns": Nanos::from(started.duration).0,
            }),
        )
    }

    pub(super) fn set_timing(
        &self,
        datastore: &SharedDatastore,
        timing: Timing,
    ) -> Result<(), Abort> {
        set_timing(self.design, datastore, timing)
    }
}

/// What a datastore is opened on.
pub struct Ground<'a> {
    /// The design.
    pub design: &'a DesignPlan,
    /// Of its random service times.
    pub seed: RootSeed,
    /// The run in the record.
    pub log: RunLog<'a>,
    /// Where everything that is created is registered.
    pub teardown: &'a Teardown,
    /// A folder of the run's own.
    pub scratch: &'a Path,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// Who the volumes belong to; this process, when there is nobody.
    pub owner: Option<&'a User>,
}

/// Opens the datastore of a design with its volumes, and notes them in the record.
pub fn open_datastore(ground: &Ground<'_>) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
    let spec = datastore_spec(ground.design, ground.seed);
    let volumes = volume_requests(ground.design);
    let context = Context {
        teardown: ground.teardown,
        scratch: ground.scratch,
        server_program: ground.server_program,
        owner: ground.owner,
        dilation: ground.log.dilation,
    };
    let datastore = open(&spec, &volumes, &context).during("open the datastore")?;
    let mounted = datastore.volumes().to_vec();
    let described: Vec<_> = mounted
        .iter()
        .zip(&volumes)
        .map(|(volume, request)| {
            json!({
                "name": volume.name,
                "path": volume.path,
                "block_device": volume.block_device,
                "owns_block_device": volume.owns_block_device,
                "capacity_bytes": volume.capacity.0,
                "file_system": request.file_system.as_str(),
            })
        })
        .collect();
    ground.log.document(document::DATASTORE, &json!({ "volumes": described }))?;
    Ok((Arc::new(Mutex::new(datastore)), mounted))
}

/// Switches the modelled latencies of a design's datastore.
pub fn set_timing(
    design: &DesignPlan,
    datastore: &SharedDatastore,
    timing: Timing,
) -> Result<(), Abort> {
    if matches!(design.kind, DatastoreKind::Path { .. }) {
        // A real device has one timing.
        return Ok(());
    }
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    datastore.set_timing(timing).during("switch the modelled latencies")
}

/// Removes a datastore of which nothing else holds a share.
pub fn close(datastore: SharedDatastore) -> Result<(), Abort> {
    // The sampler's share went with the collector: this is the last one. If it is not, unwinding the
    // teardown stack removes the datastore all the same.
    match Arc::try_unwrap(datastore) {
        Ok(datastore) => {
            let datastore = datastore.into_inner().unwrap_or_else(PoisonError::into_inner);
            datastore.close().during("remove the datastore")
        }
        Err(_) => Ok(()),
    }
}
