//! What a study will need: time, disk and memory, from constants that are documented here.
//!
//! Estimates are for deciding whether to start, not for results. The constants are round assumptions about
//! PostgreSQL 15 on two processors, checked by whole runs and not fitted to them; a faster host finishes earlier.

use std::path::Path;

use underlay_core::{Bytes, Dilation, Nanos};

use underlay_workload::batch::Mode;

use crate::host_view::HostView;
use crate::plan::{
    BackupPlan, BlockPlan, DatabasePart, DatastoreKind, DesignPlan, EngineKind, Plan, Scale,
    TWIN_MEASURE, TWIN_RAMP_UP, WorkloadKind,
};

pub(crate) use crate::plan::Estimates;

/// Tables and indexes of one warehouse after the load.
const DATABASE_PER_WAREHOUSE: u64 = 105_000_000;
/// Items, system catalogs and an empty cluster.
const DATABASE_BASE: u64 = 40_000_000;
/// A row of sysbench's tables with its two index entries after the load.
const DATABASE_PER_ROW: u64 = 260;
/// Share of a volume that a file system leaves for files, in percent.
const USABLE_PERCENT: u64 = 94;
/// Growth of tables and indexes during one run, in percent of the loaded database.
const GROWTH_PERCENT: u64 = 15;

/// Processor time of loading one warehouse.
const LOAD_PER_WAREHOUSE: Nanos = Nanos::from_millis(3500);
/// Processor time of loading one row of sysbench's tables.
const LOAD_PER_ROW: Nanos = Nanos(6_000);
/// Creating the cluster, constraints, statistics and taking the template.
const LOAD_BASE: Nanos = Nanos::from_secs(8);
/// Rate of restoring a template onto the volumes, bytes per second.
const RESTORE_RATE: u64 = 400_000_000;
/// Making volumes and file systems, starting the server.
const START: Nanos = Nanos::from_secs(3);
/// Rates that a search tries, with the longer windows of those near its answer.
const SEARCH_STEPS: u64 = 14;
/// Stopping the server, taking the volumes down.
const STOP: Nanos = Nanos::from_secs(2);
/// Consistency checks, before and after a run, per warehouse and once.
const CHECK_PER_WAREHOUSE: Nanos = Nanos::from_millis(200);
const CHECK_BASE: Nanos = Nanos::from_secs(1);
/// Consistency checks per row of sysbench's tables.
const CHECK_PER_ROW: Nanos = Nanos(500);

/// Memory of one virtual user in the load generator.
const MEMORY_PER_USER: Bytes = Bytes::from_kib(200);
/// Memory of one server session.
pub const MEMORY_PER_SESSION: Bytes = Bytes::from_mib(6);
/// Underlay itself, with its samplers and record.
const MEMORY_BASE: Bytes = Bytes::from_mib(64);
/// The process behind an emulated datastore, without the write buffers it models.
const MEMORY_DATASTORE: Bytes = Bytes::from_mib(48);

/// A product of the web shop with its reviews and their ratings, and a customer with orders: 458 MB were measured for 10,000 and
/// 20,000 of them.
const DATABASE_PER_PRODUCT: u64 = 40_000;
const DATABASE_PER_CUSTOMER: u64 = 1_000;
/// Processor time of loading and of checking a product with what belongs to it.
const LOAD_PER_PRODUCT: Nanos = Nanos(1_500_000);
/// Of loading a customer with orders: 12,500 products and 2,500,000 customers took 56 s on two processors.
const LOAD_PER_CUSTOMER: Nanos = Nanos(37_000);
const CHECK_PER_PRODUCT: Nanos = Nanos(200_000);
/// Time of checking a customer with orders, beside another database on two processors: 20 s for 2,500,000 in each of four.
const CHECK_PER_CUSTOMER: Nanos = Nanos(7_000);

/// A row of a batch insertion with its key, when it is there.
const DATABASE_PER_BATCH_ROW: u64 = 180;
/// Processor time of comparing one.
const CHECK_PER_BATCH_ROW: Nanos = Nanos(2_000);
/// An order of the warehouse with its lines and indexes, and its part of the other tables.
const DATABASE_PER_ORDER: u64 = 1_400;
/// Processor time of loading and of checking an order.
const LOAD_PER_ORDER: Nanos = Nanos(40_000);
const CHECK_PER_ORDER: Nanos = Nanos(20_000);
/// Time of inserting a row, by its transaction: a commit each, a statement each, a stream.
const INSERT_PER_ROW: [Nanos; 3] = [Nanos(700_000), Nanos(40_000), Nanos(4_000)];
/// Time of the queries of one stream, per order.
const QUERIES_PER_ORDER: Nanos = Nanos(40_000);

/// Rate of a backup and of a restore, bytes per second, of a device that is no slower than a program.
const BACKUP_RATE: u64 = 300_000_000;

/// What one of what sets the size of the database costs.
struct Unit {
    bytes: u64,
    load: Nanos,
    check: Nanos,
}

/// What one of these costs.
fn unit(workload: &WorkloadKind) -> Unit {
    match workload {
        WorkloadKind::Tpcc(_) | WorkloadKind::Backup(_) => Unit {
            bytes: DATABASE_PER_WAREHOUSE,
            load: LOAD_PER_WAREHOUSE,
            check: CHECK_PER_WAREHOUSE,
        },
        WorkloadKind::Sysbench(_) => {
            Unit { bytes: DATABASE_PER_ROW, load: LOAD_PER_ROW, check: CHECK_PER_ROW }
        }
        WorkloadKind::Batch(_) => {
            Unit { bytes: DATABASE_PER_BATCH_ROW, load: Nanos::ZERO, check: CHECK_PER_BATCH_ROW }
        }
        WorkloadKind::Warehouse(_) => {
            Unit { bytes: DATABASE_PER_ORDER, load: LOAD_PER_ORDER, check: CHECK_PER_ORDER }
        }
        // Files on volumes, which are no database.
        WorkloadKind::Block(_) => Unit { bytes: 1 << 20, load: Nanos::ZERO, check: Nanos::ZERO },
        WorkloadKind::Dvdstore(plan) => {
            // Products per customer differ with the size.
            let (products, customers) =
                (u64::from(plan.size.products()), u64::from(plan.size.customers().max(1)));
            let each = |per_product: u64| per_product.saturating_mul(products) / customers;
            Unit {
                bytes: DATABASE_PER_CUSTOMER + each(DATABASE_PER_PRODUCT),
                load: Nanos(LOAD_PER_CUSTOMER.0 + each(LOAD_PER_PRODUCT.0)),
                check: Nanos(CHECK_PER_CUSTOMER.0 + each(CHECK_PER_PRODUCT.0)),
            }
        }
    }
}

/// Size of the loaded database; of a block load, of the file on each volume.
pub(crate) fn database(workload: &WorkloadKind) -> Bytes {
    if let Some(block) = workload.block() {
        return block.working_set;
    }
    let grown = unit(workload).bytes.saturating_mul(workload.population().count);
    Bytes(grown.saturating_add(DATABASE_BASE))
}

/// How many of what sets the size of the database fit that many bytes with room for growth.
pub(crate) fn population_in(usable: Bytes, workload: &WorkloadKind) -> u64 {
    (usable.0 / 4 * 3).saturating_sub(DATABASE_BASE) / unit(workload).bytes
}

/// What a file system on a volume leaves for files.
pub(crate) fn usable(capacity: Bytes) -> Bytes {
    Bytes(capacity.0 / 100 * USABLE_PERCENT)
}

/// All estimates of a plan, whose own `estimates` are not looked at.
pub(crate) fn estimates(plan: &Plan, host: &HostView<'_>) -> Estimates {
    let database = databases(plan);
    let block = plan.workload.kind.block();
    let templates = distinct_templates(plan)
        .iter()
        .map(|template| self::database(template.workload))
        .fold(Bytes::ZERO, saturating_sum);
    let largest = |of: &dyn Fn(&DesignPlan) -> Bytes| {
        plan.designs.iter().map(of).max().unwrap_or(Bytes::ZERO)
    };
    let disk_volumes = largest(&|design| match block {
        Some(block) => files(design, block),
        None => expected_volumes(plan, design),
    });
    let load = match block {
        Some(_) => Nanos::ZERO,
        None => load(plan, host),
    };
    let under_load = under_load(plan);
    let around_load = match block {
        Some(_) => around_block_load(disk_volumes),
        None => around(plan, database),
    };
    // A factor that is found later is not known here.
    let dilation = plan.procedure.time_dilation.factor().unwrap_or_default();
    let run = run_of(around_load, under_load, dilation);
    let runs = plan.schedule.len() as u64;
    Estimates {
        load,
        run,
        around_load,
        under_load,
        duration: Nanos(
            load.0.saturating_add(run.0.saturating_mul(runs)).saturating_add(twins(plan).0),
        ),
        database,
        disk_templates: templates,
        disk_volumes,
        disk_volumes_worst: largest(&|design| {
            design.volumes.iter().map(|volume| volume.capacity).fold(Bytes::ZERO, saturating_sum)
        }),
        disk: saturating_sum(templates, disk_volumes),
        memory: largest(&|design| memory(plan, design)),
        working_set_ratio: working_set_ratio(plan, host),
    }
}

/// Of several databases, that of the one with the least memory for its data.
fn working_set_ratio(plan: &Plan, host: &HostView<'_>) -> Option<f64> {
    let ratio = |(workload, limit): (&WorkloadKind, Option<Bytes>)| {
        let cache = limit.map_or(host.memory, |limit| limit.min(host.memory));
        (cache != Bytes(u64::MAX) && workload.read_again().is_some())
            .then(|| self::database(workload).0 as f64 / cache.0.max(1) as f64)
    };
    if !plan.has_named_databases() {
        return ratio((&plan.workload.kind, plan.engine.memory_limit));
    }
    let each = plan.databases.iter().map(|one| (&one.workload.kind, one.size.memory_limit));
    each.filter_map(ratio).max_by(f64::total_cmp)
}

/// Size of all loaded databases; of a block load, of the file on each volume.
fn databases(plan: &Plan) -> Bytes {
    let each = plan.databases.iter().map(|one| database(&one.workload.kind));
    each.fold(Bytes::ZERO, saturating_sum)
}

/// The files of a block load on all volumes of a design.
fn files(design: &DesignPlan, block: &BlockPlan) -> Bytes {
    Bytes(block.working_set.0.saturating_mul(design.volumes.len() as u64))
}

/// What surrounds a block load: its files are written before it and read after it.
fn around_block_load(files: Bytes) -> Nanos {
    let pass = u128::from(files.0) * 1_000_000_000 / u128::from(RESTORE_RATE);
    let pass = u64::try_from(pass).unwrap_or(u64::MAX);
    Nanos(pass.saturating_mul(2).saturating_add(START.0 + STOP.0))
}

/// The estimates of a study from those of its points, which have their own designs: points with the same population share
/// their templates.
pub(crate) fn of_points(points: &[Plan]) -> Estimates {
    let mut whole = Estimates::default();
    let mut loaded = Vec::new();
    for point in points {
        let one = &point.estimates;
        let populations = point.databases.iter().map(|one| one.workload.kind.population());
        let loads = (populations.collect::<Vec<_>>(), servers(point));
        if !loaded.contains(&loads) {
            loaded.push(loads);
            whole.load = Nanos(whole.load.0.saturating_add(one.load.0));
            whole.disk_templates = saturating_sum(whole.disk_templates, one.disk_templates);
        }
        whole.run = whole.run.max(one.run);
        whole.around_load = whole.around_load.max(one.around_load);
        whole.under_load = whole.under_load.max(one.under_load);
        let runs = one.duration.saturating_sub(one.load);
        whole.duration = Nanos(whole.duration.0.saturating_add(runs.0));
        whole.database = whole.database.max(one.database);
        whole.disk_volumes = whole.disk_volumes.max(one.disk_volumes);
        whole.disk_volumes_worst = whole.disk_volumes_worst.max(one.disk_volumes_worst);
        whole.memory = whole.memory.max(one.memory);
        // With the least memory for the data: what does not fit there is read from storage.
        whole.working_set_ratio = [whole.working_set_ratio, one.working_set_ratio]
            .into_iter()
            .flatten()
            .max_by(f64::total_cmp);
    }
    whole.duration = Nanos(whole.duration.0.saturating_add(whole.load.0));
    whole.disk = saturating_sum(whole.disk_templates, whole.disk_volumes);
    whole
}

/// A loaded database that runs start from.
#[derive(PartialEq)]
struct TemplateOf<'p> {
    workload: &'p WorkloadKind,
    server: (EngineKind, Option<u32>, Option<&'p Path>),
}

/// A template is shared by all databases of the same population in all designs whose servers are of the same version; a block
/// load has none.
fn distinct_templates(plan: &Plan) -> Vec<TemplateOf<'_>> {
    let mut templates: Vec<TemplateOf<'_>> = Vec::new();
    if plan.workload.kind.block().is_some() {
        return templates;
    }
    for database in &plan.databases {
        for DatabasePart { engine, .. } in &database.parts {
            let server = (engine.kind, engine.version, engine.server_bin.as_deref());
            let needed = TemplateOf { workload: &database.workload.kind, server };
            if !templates.contains(&needed) {
                templates.push(needed);
            }
        }
    }
    templates
}

/// Versions and programs of the servers of all designs.
fn servers(plan: &Plan) -> Vec<(Option<u32>, Option<std::path::PathBuf>)> {
    let mut servers: Vec<_> = plan
        .designs
        .iter()
        .map(|design| (design.engine.version, design.engine.server_bin.clone()))
        .collect();
    servers.sort();
    servers.dedup();
    servers
}

fn load(plan: &Plan, host: &HostView<'_>) -> Nanos {
    // The load runs before any limit is set, on as many processors as help it.
    let parallel = u64::from(host.cpus.clamp(1, 8));
    let each = distinct_templates(plan).into_iter().map(|template| {
        let kind = template.workload;
        let one = unit(kind).load.0.saturating_mul(kind.population().count) / parallel;
        LOAD_BASE.0.saturating_add(one)
    });
    Nanos(each.fold(0, u64::saturating_add))
}

impl Estimates {
    /// Wall time of one run at a time dilation.
    pub fn run_at(&self, dilation: Dilation) -> Nanos {
        run_of(self.around_load, self.under_load, dilation)
    }
}

fn run_of(around_load: Nanos, under_load: Nanos, dilation: Dilation) -> Nanos {
    Nanos(around_load.0.saturating_add(dilation.wall(under_load).0))
}

/// The null twins of all designs, of the highest rung. That another rung is the best one, and has a twin too, is rare.
fn twins(plan: &Plan) -> Nanos {
    let designs = (0..plan.designs.len()).filter(|design| plan.has_null_twin(*design)).count();
    // What this host can do with a block load takes no longer to see under a dilation.
    let dilation = match plan.workload.kind.block() {
        Some(_) => Dilation::NONE,
        None => plan.procedure.time_dilation.factor().unwrap_or_default(),
    };
    dilation.wall(Nanos((TWIN_RAMP_UP.0 + TWIN_MEASURE.0) * designs as u64))
}

/// What surrounds the load of a run.
fn around(plan: &Plan, database: Bytes) -> Nanos {
    let restore = u128::from(database.0) * 1_000_000_000 / u128::from(RESTORE_RATE);
    let restore = u64::try_from(restore).unwrap_or(u64::MAX);
    // One database after the other.
    let each = plan.databases.iter().map(|one| {
        let kind = &one.workload.kind;
        let check = unit(kind).check.0.saturating_mul(kind.population().count);
        let checks = CHECK_BASE.0.saturating_add(check).saturating_mul(2);
        (START.0 + STOP.0).saturating_add(checks)
    });
    Nanos(restore.saturating_add(each.fold(0, u64::saturating_add)))
}

fn under_load(plan: &Plan) -> Nanos {
    let procedure = &plan.procedure;
    let rungs = match plan.workload.kind.block() {
        Some(block) => block.loads() as u64,
        None => procedure.users.len() as u64,
    };
    let search = procedure.search.as_ref().map_or(0, |search| {
        (search.settle.0.saturating_add(search.measure.0)).saturating_mul(SEARCH_STEPS)
    });
    let kind = &plan.workload.kind;
    let measure = job(kind, plan.scale).unwrap_or(procedure.measure);
    let rung = procedure.ramp_up.0.saturating_add(measure.0).saturating_add(search);
    let caches = procedure.cache_warm_up.0;
    let before = caches.saturating_add(procedure.settle.0).saturating_add(procedure.warm_up.0);
    // In the first repeat only: each run has its share.
    let causal = procedure.causal.map_or(0, |causal| causal.total().0);
    let causal = causal / u64::from(procedure.repeats.max(1));
    // It is unknown how early its condition ends it.
    let after = procedure.cool_down.map_or(0, |cool_down| cool_down.at_most.0);
    let rungs = rung.saturating_mul(rungs);
    Nanos(before.saturating_add(rungs).saturating_add(causal).saturating_add(after))
}

/// How long a job takes; `None` of a workload that users follow.
fn job(kind: &WorkloadKind, scale: Scale) -> Option<Nanos> {
    match kind {
        WorkloadKind::Tpcc(_)
        | WorkloadKind::Sysbench(_)
        | WorkloadKind::Dvdstore(_)
        | WorkloadKind::Block(_) => None,
        WorkloadKind::Batch(plan) => {
            let [implicit, explicit, bulk] = INSERT_PER_ROW;
            let row = match plan.mode {
                Mode::Implicit => implicit,
                Mode::Explicit => explicit,
                Mode::Bulk => bulk,
            };
            Some(Nanos(row.0.saturating_mul(u64::from(plan.rows / plan.sessions.max(1)))))
        }
        WorkloadKind::Warehouse(plan) => {
            let stream = QUERIES_PER_ORDER.0.saturating_mul(plan.scale.orders());
            Some(Nanos(stream.saturating_mul(1 + u64::from(plan.streams))))
        }
        WorkloadKind::Backup(plan) => Some(backups(plan, database(kind), scale)),
    }
}

/// How long backup and restore cycles take: at a scale as long as at full size, because rates are divided, too.
fn backups(plan: &BackupPlan, database: Bytes, scale: Scale) -> Nanos {
    let full = u128::from(database.0) * u128::from(scale.divisor);
    let one = full * 1_000_000_000 / u128::from(BACKUP_RATE);
    let one = u64::try_from(one).unwrap_or(u64::MAX);
    let cycle = one.saturating_mul(if plan.restore { 2 } else { 1 });
    let pauses = plan.pause.0.saturating_mul(u64::from(plan.cycles.saturating_sub(1)));
    Nanos(cycle.saturating_mul(u64::from(plan.cycles)).saturating_add(pauses))
}

/// What a workload puts on the volumes `data` and `backup` beside the loaded database.
pub(crate) fn copies(workload: &WorkloadKind) -> (Bytes, Bytes) {
    match workload {
        WorkloadKind::Backup(plan) => {
            let database = database(workload);
            (if plan.restore { database } else { Bytes::ZERO }, database)
        }
        _ => (Bytes::ZERO, Bytes::ZERO),
    }
}

fn expected_volumes(plan: &Plan, design: &DesignPlan) -> Bytes {
    let each = plan.databases.iter().filter_map(|one| {
        let part = one.part(design)?;
        let capacity = |name: &str| {
            let name = one.volume(name);
            let volume = part.volumes.iter().find(|volume| volume.name == name);
            volume.map_or(Bytes::ZERO, |volume| volume.capacity)
        };
        let log = part.engine.log_size();
        let copies = copies(&one.workload.kind);
        let grown = Bytes(database(&one.workload.kind).0 / 100 * (100 + GROWTH_PERCENT));
        let data = saturating_sum(grown, copies.0).min(capacity("data"));
        let backup = copies.1.min(capacity("backup"));
        Some(saturating_sum(saturating_sum(data, backup), log.min(capacity("wal"))))
    });
    each.fold(Bytes::ZERO, saturating_sum)
}

fn memory(plan: &Plan, design: &DesignPlan) -> Bytes {
    let users = u64::from(plan.procedure.users_at_once()) * plan.databases.len() as u64;
    let server = |part: &DatabasePart| {
        let sessions = u64::from(part.client.connections_of(plan.procedure.users_at_once()));
        part.engine.memory_limit.unwrap_or_else(|| {
            let buffers = part.engine.buffers();
            saturating_sum(buffers, Bytes(MEMORY_PER_SESSION.0 * sessions))
        })
    };
    let server = match plan.workload.kind.block() {
        Some(_) => Bytes::ZERO,
        None => {
            let parts = plan.databases.iter().filter_map(|one| one.part(design));
            parts.map(server).fold(Bytes::ZERO, saturating_sum)
        }
    };
    let datastore = match &design.kind {
        DatastoreKind::Path { .. } => Bytes::ZERO,
        DatastoreKind::Cluster(_) => MEMORY_DATASTORE,
        DatastoreKind::Emulated { devices, .. } => {
            let buffers = devices.iter().map(|(_, profile)| {
                profile.write_buffer.map_or(Bytes::ZERO, |buffer| buffer.capacity)
            });
            buffers.fold(MEMORY_DATASTORE, saturating_sum)
        }
    };
    let rest = Bytes(MEMORY_BASE.0 + MEMORY_PER_USER.0 * users);
    saturating_sum(saturating_sum(server, datastore), rest)
}

/// The sum, or the largest size there is.
pub(crate) fn saturating_sum(a: Bytes, b: Bytes) -> Bytes {
    Bytes(a.0.saturating_add(b.0))
}
