//! A design of a plan at a number of users, as a scenario of the engine model.
//!
//! Processors: databases that a cluster's host gives its processors to share them, unless it has a
//! core for each processor that their limits leave them; every other database has what its CPU limit
//! leaves, or the processors that are assumed. A limit of 2.5 processors is three cores of five
//! sixths of the speed. A client on the host, and what carries out its requests, compete for them
//! where the server has no limit, and a local client always.

use std::collections::BTreeMap;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    BackupSpec, BatchSpec, ClientSpec, DatabaseSpec, DemandProfile, EngineSpec, HostSpec,
    InnodbSettings, Load, PostgresqlSettings, Scenario, VolumeUse, WarehouseSpec, WorkloadSpec,
};
use underlay_study::{
    ClientPlace, ClientPlan, DatabasePart, DatabasePlan, DatastoreKind, DesignPlan, DvdstorePlan,
    EngineKind, EnginePlan, HostCompute, MEMORY_PER_SESSION, Pacing, Plan, SettingError,
    SysbenchPlan, TpccPlan, VolumePlan, WarehousePlan, WorkloadKind,
};
use underlay_workload::dvdstore::{self, DvdStore};
use underlay_workload::sysbench::{self, Sysbench};
use underlay_workload::tpcc::{Entropy, Parameters, Tpcc};
use underlay_workload::transactional::Mix;

use super::background::{background, room};

/// The least that a server's memory limit leaves for the page cache.
const LEAST_PAGE_CACHE: Bytes = Bytes::from_mib(4);

/// What a study leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumptions {
    /// Cores of a host without a CPU limit.
    pub cores: u32,
    /// What transactions cost, where it is not the default of engine and workload.
    pub demands: Option<DemandProfile>,
    /// By numbers of users: what its processor times are multiplied by; those that are not there, by 1.
    pub cpu_scales: BTreeMap<u32, f64>,
}

impl Assumptions {
    /// The default demands on so many cores.
    pub const fn defaults(cores: u32) -> Assumptions {
        Assumptions { cores, demands: None, cpu_scales: BTreeMap::new() }
    }
}

/// The databases of a design with so many users each, and its background work.
///
/// # Errors
/// Every value that cannot be simulated.
pub fn scenario(
    plan: &Plan,
    design: &DesignPlan,
    users: u32,
    assumed: &Assumptions,
) -> Result<Scenario, Vec<String>> {
    let mut scenario =
        Scenario { hosts: Vec::new(), databases: Vec::new(), background: Vec::new() };
    let mut problems = Vec::new();
    let there: Vec<(&DatabasePlan, &DatabasePart)> = plan
        .databases
        .iter()
        .filter_map(|database| Some((database, database.part(design)?)))
        .collect();
    for (database, part) in &there {
        let mapped = Mapping { plan, design, database, part, users, assumed };
        let neighbours: Vec<&DatabasePart> =
            there.iter().map(|(_, other)| *other).filter(|other| other.host == part.host).collect();
        let host = mapped.host(&mut scenario.hosts, &neighbours);
        match mapped.database(host, neighbours.len()) {
            Ok(spec) => scenario.databases.push(spec),
            Err(problem) => problems.push(format!("{}{problem}", mapped.of())),
        }
    }
    if there.is_empty() {
        problems.push(format!("design `{}` has no database", design.name));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    scenario.background = background(plan, design, &scenario.databases);
    Ok(scenario)
}

/// One database on its way.
struct Mapping<'a> {
    plan: &'a Plan,
    design: &'a DesignPlan,
    database: &'a DatabasePlan,
    part: &'a DatabasePart,
    users: u32,
    assumed: &'a Assumptions,
}

impl Mapping<'_> {
    fn of(&self) -> String {
        match self.database.name.as_str() {
            "" => format!("design `{}`: ", self.design.name),
            name => format!("design `{}`, database `{name}`: ", self.design.name),
        }
    }

    /// What the cluster's host gives the databases on it.
    fn compute(&self) -> Option<&HostCompute> {
        let DatastoreKind::Cluster(cluster) = &self.design.kind else { return None };
        let name = self.part.host.as_ref()?;
        cluster.compute.iter().find(|compute| compute.host == *name)
    }

    /// The number of its host, which is added where it is not there yet. `neighbours` are the databases on it.
    fn host(&self, hosts: &mut Vec<HostSpec>, neighbours: &[&DatabasePart]) -> usize {
        let limits: Option<f64> = neighbours.iter().map(|part| part.engine.cpus).sum();
        let has_core_for_each = |cores: f64| limits.is_some_and(|limits| limits <= cores);
        let is_shared = |cores: f64| !has_core_for_each(cores);
        let shared = self.compute().filter(|compute| compute.cores.is_some_and(is_shared));
        let (name, cores, threads, speed) = match shared {
            Some(host) => (host.host.clone(), host.cores, host.threads_per_core, host.core_speed),
            None => {
                let name = format!("host of {}", self.database.recorded("server"));
                let engine = &self.part.engine;
                (name, engine.cpus, 1, engine.core_speed)
            }
        };
        if let Some(known) = hosts.iter().position(|host| host.name == name) {
            return known;
        }
        let gain = shared.map_or(1.0, HostCompute::thread_gain);
        let cores = cores.unwrap_or_else(|| f64::from(self.assumed.cores));
        let whole = cores.ceil().max(1.0);
        hosts.push(HostSpec {
            speed: speed * cores / whole,
            threads_per_core: threads,
            smt_yield: gain,
            ..HostSpec::new(&name, whole as u32)
        });
        hosts.len() - 1
    }

    fn database(&self, host: usize, neighbours: usize) -> Result<DatabaseSpec, String> {
        let workload = &self.database.workload;
        let load = match workload.pacing {
            Pacing::Closed { key_think } => Load::Closed { users: self.users, pacing: key_think },
            Pacing::Open { rate_per_second, arrivals } => {
                Load::Open { users: self.users, rate_per_second, arrivals }
            }
            Pacing::Job => Load::Job {
                sessions: match &workload.kind {
                    // The engine's own programs.
                    WorkloadKind::Backup(_) => 0,
                    // That of refresh functions; queries have processes of their own.
                    WorkloadKind::Warehouse(_) => 1,
                    kind => kind.job_sessions().unwrap_or(1),
                },
            },
        };
        let kind = self.part.engine.kind;
        let users = self.users_of(&workload.kind, workload.seed)?;
        // What is assumed of users is not said of the jobs beside them.
        let types = users.types();
        let fits = |demands: &DemandProfile| {
            demands.types.iter().map(|kind| kind.name.as_str()).eq(types.iter().copied())
        };
        let assumed = self.assumed.demands.clone().filter(|it| fits(it) || !users.is_job());
        let demands = assumed.or_else(|| default_demands(kind, &workload.kind));
        // Kernel and emulator are not in the server's limit, and have the rest of the processors.
        let cores = f64::from(self.assumed.cores);
        let is_limited = self.part.engine.cpus.is_some_and(|limit| limit < cores);
        let demands = demands.map(|demands| DemandProfile {
            cpu_per_io: if is_limited { Nanos::ZERO } else { demands.cpu_per_io },
            ..demands
        });
        let engine = match kind {
            EngineKind::Postgresql => EngineSpec::Postgresql(self.postgresql(neighbours)?),
            EngineKind::Mariadb | EngineKind::Mysql => {
                let settings = mariadb(&self.part.engine).map_err(|error| error.to_string())?;
                EngineSpec::Mariadb(settings)
            }
        };
        Ok(DatabaseSpec {
            name: self.database.name.clone(),
            host,
            engine,
            workload: users,
            mix: Mix::Prescribed,
            demands: demands.ok_or_else(|| "no demands are known for it".to_string())?,
            data: self.volume("data")?,
            log: self.volume("wal")?,
            load,
            client: self.client(host),
        })
    }

    fn client(&self, host: usize) -> ClientSpec {
        let ClientPlan { place, network, connections } = self.part.client;
        let has_limit = self.part.engine.cpus.is_some()
            || self.compute().is_some_and(|compute| compute.cores.is_some());
        ClientSpec {
            connections,
            host: match place {
                ClientPlace::Local => Some(host),
                ClientPlace::Host => (!has_limit).then_some(host),
                ClientPlace::Remote => None,
            },
            round_trip: network.map_or(Nanos::ZERO, |network| network.round_trip),
        }
    }

    fn volume(&self, name: &str) -> Result<VolumeUse, String> {
        let own = self.database.volume(name);
        let is_own = |volume: &VolumePlan| volume.name == own;
        let volume = self.design.volumes.iter().position(is_own);
        let volume = volume.ok_or_else(|| format!("there is no volume `{own}`"))?;
        let length = room(self.plan, &self.design.volumes[volume]);
        Ok(VolumeUse { volume, offset: Bytes::ZERO, length })
    }

    fn postgresql(&self, neighbours: usize) -> Result<PostgresqlSettings, String> {
        let engine = &self.part.engine;
        let of_host = self.compute().and_then(|compute| compute.memory);
        let memory = engine.memory_limit;
        let memory = memory.or(of_host.map(|memory| Bytes(memory.0 / neighbours.max(1) as u64)));
        let Some(memory) = memory else {
            return Err(
                "without engine.memory-limit, the size of the page cache is unknown".to_string()
            );
        };
        let settings = postgresql(engine).map_err(|error| error.to_string())?;
        let job = self.database.workload.kind.job_sessions();
        let sessions = self.part.client.connections_of(job.unwrap_or(self.users));
        let processes = MEMORY_PER_SESSION.0 * u64::from(sessions);
        let used = settings.shared_buffers.0.saturating_add(processes);
        let page_cache = Bytes(memory.0.saturating_sub(used)).max(LEAST_PAGE_CACHE);
        Ok(PostgresqlSettings { page_cache, ..settings })
    }
}

/// What transactions cost by default; `None` of what is not simulated.
pub fn default_demands(engine: EngineKind, workload: &WorkloadKind) -> Option<DemandProfile> {
    match (engine, workload) {
        (EngineKind::Postgresql, WorkloadKind::Tpcc(_)) => Some(DemandProfile::tpcc_postgresql()),
        (EngineKind::Mariadb, WorkloadKind::Tpcc(_)) => Some(DemandProfile::tpcc_mariadb()),
        (EngineKind::Postgresql, WorkloadKind::Sysbench(_)) => {
            Some(DemandProfile::sysbench_postgresql())
        }
        (EngineKind::Mariadb, WorkloadKind::Sysbench(_)) => Some(DemandProfile::sysbench_mariadb()),
        (EngineKind::Postgresql, WorkloadKind::Dvdstore(_)) => {
            Some(DemandProfile::dvdstore_postgresql())
        }
        (EngineKind::Mariadb, WorkloadKind::Dvdstore(_)) => Some(DemandProfile::dvdstore_mariadb()),
        (EngineKind::Postgresql, WorkloadKind::Backup(_)) => {
            Some(DemandProfile::backup_postgresql())
        }
        (EngineKind::Mariadb, WorkloadKind::Backup(_)) => Some(DemandProfile::backup_mariadb()),
        (EngineKind::Postgresql, WorkloadKind::Batch(_)) => Some(DemandProfile::batch_postgresql()),
        (EngineKind::Mariadb, WorkloadKind::Batch(_)) => Some(DemandProfile::batch_mariadb()),
        (EngineKind::Postgresql, WorkloadKind::Warehouse(_)) => {
            Some(DemandProfile::warehouse_postgresql())
        }
        _ => None,
    }
}

impl Mapping<'_> {
    /// What the users of a workload do, or its job.
    fn users_of(&self, workload: &WorkloadKind, seed: RootSeed) -> Result<WorkloadSpec, String> {
        match workload {
            WorkloadKind::Backup(plan) => Ok(WorkloadSpec::Backup(BackupSpec {
                tpcc: tpcc(&plan.population(), seed)?,
                cycles: plan.cycles,
                pause: plan.pause,
                restores: plan.restore,
                bytes_per_second: plan.bytes_per_second,
                volume: self.volume("backup")?,
            })),
            WorkloadKind::Warehouse(plan) => {
                warehouse(plan, &self.part.engine).map_err(|error| error.to_string())
            }
            other => users_of(other, seed),
        }
    }
}

fn tpcc(plan: &TpccPlan, seed: RootSeed) -> Result<Tpcc, String> {
    let parameters = Entropy::new(plan.entropy)
        .and_then(|entropy| Parameters::new(plan.warehouses, seed, entropy))
        .map_err(|error| error.to_string())?;
    let (profile, home_warehouse) = (plan.profile, plan.home_warehouse);
    Ok(Tpcc { profile, home_warehouse, ..Tpcc::new(parameters) })
}

/// The workers are those of the study, or the server's own.
fn warehouse(plan: &WarehousePlan, engine: &EnginePlan) -> Result<WorkloadSpec, SettingError> {
    let whole = |name, own: u32| Ok(engine.number_setting(name)?.map_or(own, |it| it as u32));
    Ok(WorkloadSpec::Warehouse(WarehouseSpec {
        scale: plan.scale,
        streams: plan.streams,
        workers_per_query: whole("max_parallel_workers_per_gather", 2)?,
        workers: whole("max_parallel_workers", 8)?,
    }))
}

fn users_of(workload: &WorkloadKind, seed: RootSeed) -> Result<WorkloadSpec, String> {
    match workload {
        WorkloadKind::Tpcc(plan) => Ok(WorkloadSpec::Tpcc(tpcc(plan, seed)?)),
        WorkloadKind::Dvdstore(plan) => {
            let DvdstorePlan { size, behaviour } = *plan;
            let parameters = dvdstore::Parameters { size, seed, behaviour };
            Ok(WorkloadSpec::DvdStore(DvdStore::new(parameters)))
        }
        WorkloadKind::Batch(plan) => Ok(WorkloadSpec::Batch(BatchSpec {
            rows: plan.rows,
            mode: plan.mode,
            place: plan.place,
        })),
        WorkloadKind::Sysbench(plan) => {
            let SysbenchPlan { script, tables, table_size, distribution, range_size } = *plan;
            let parameters =
                sysbench::Parameters::new(tables, table_size, seed, distribution, script);
            let mut parameters = parameters.map_err(|error| error.to_string())?;
            parameters.composition.range_size = range_size;
            Ok(WorkloadSpec::Sysbench(Sysbench::new(parameters)))
        }
        other => Err(format!("the workload {} is not simulated", other.shape().name)),
    }
}

/// The settings of PostgreSQL that the model knows: the study's, or the server's own.
fn postgresql(engine: &EnginePlan) -> Result<PostgresqlSettings, SettingError> {
    let own = PostgresqlSettings::default();
    let seconds = Nanos::from_secs(1);
    let number = |name| engine.number_setting(name);
    Ok(PostgresqlSettings {
        shared_buffers: engine.size_setting("shared_buffers")?.unwrap_or(own.shared_buffers),
        page_cache: own.page_cache,
        checkpoint_timeout: engine
            .time_setting("checkpoint_timeout", seconds)?
            .unwrap_or(own.checkpoint_timeout),
        checkpoint_completion_target: number("checkpoint_completion_target")?
            .unwrap_or(own.checkpoint_completion_target),
        max_wal_size: engine.size_setting("max_wal_size")?.unwrap_or(own.max_wal_size),
        full_page_writes: !engine.is_switched_off("full_page_writes"),
        synchronous_commit: !engine.is_switched_off("synchronous_commit"),
        bgwriter_delay: engine
            .time_setting("bgwriter_delay", Nanos::from_millis(1))?
            .unwrap_or(own.bgwriter_delay),
        bgwriter_lru_maxpages: number("bgwriter_lru_maxpages")?
            .map_or(own.bgwriter_lru_maxpages, |pages| pages as u32),
        bgwriter_lru_multiplier: number("bgwriter_lru_multiplier")?
            .unwrap_or(own.bgwriter_lru_multiplier),
        autovacuum_naptime: match engine.is_switched_off("autovacuum") {
            true => None,
            false => engine.time_setting("autovacuum_naptime", seconds)?.or(own.autovacuum_naptime),
        },
        autovacuum_analyze_scale_factor: number("autovacuum_analyze_scale_factor")?
            .unwrap_or(own.autovacuum_analyze_scale_factor),
    })
}

/// The same of MariaDB.
fn mariadb(engine: &EnginePlan) -> Result<InnodbSettings, SettingError> {
    let own = InnodbSettings::default();
    let number = |name| engine.number_setting(name);
    let whole = |name, own: u32| Ok(number(name)?.map_or(own, |number| number as u32));
    let io_capacity = whole("innodb_io_capacity", own.io_capacity)?;
    // The server's own rule where only the other is set.
    let most = own.io_capacity_max.max(io_capacity.saturating_mul(2));
    Ok(InnodbSettings {
        buffer_pool_size: engine
            .size_setting("innodb_buffer_pool_size")?
            .unwrap_or(own.buffer_pool_size),
        log_file_size: engine.size_setting("innodb_log_file_size")?.unwrap_or(own.log_file_size),
        flush_log_at_commit: number("innodb_flush_log_at_trx_commit")?
            .map_or(own.flush_log_at_commit, |value| value == 1.0),
        doublewrite: !engine.is_switched_off("innodb_doublewrite"),
        io_capacity,
        io_capacity_max: whole("innodb_io_capacity_max", most)?,
        max_dirty_pages_pct: number("innodb_max_dirty_pages_pct")?
            .unwrap_or(own.max_dirty_pages_pct),
        max_dirty_pages_pct_lwm: number("innodb_max_dirty_pages_pct_lwm")?
            .unwrap_or(own.max_dirty_pages_pct_lwm),
        lru_scan_depth: whole("innodb_lru_scan_depth", own.lru_scan_depth)?,
        old_blocks_pct: whole("innodb_old_blocks_pct", own.old_blocks_pct)?,
        old_blocks_time: number("innodb_old_blocks_time")?
            .map_or(own.old_blocks_time, |ms| Nanos::from_millis(ms as u64)),
    })
}
