//! A simulated run in its record: every second of the users, of the sessions' time, of processors,
//! volumes and background work.
//!
//! Names and units are those of the samplers of a real run, so that reports need not know the
//! difference; what a model does not know is absent.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use underlay_core::series::Layer;
use underlay_core::{Histogram, Nanos};
use underlay_engine::result::{Place, TypeResult};
use underlay_engine::station::Station;
use underlay_engine::{DatabaseResult, EngineRun, EngineSpec, Scenario, WorkloadSpec};
use underlay_model::cluster::HostUse;
use underlay_record::conventions::{document, source};
use underlay_record::{Interval, RunId, TransactionTick, WaitCount, WaitKey, WaitWindow};
use underlay_simulation::databases::{Second, counted};
use underlay_study::{DesignPlan, EngineKind, Plan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::shared_recorder::SharedRecorder;

use super::counters::Counters;

/// Session samples per second of virtual time: the mean number of sessions in each state is known,
/// and is written as so many samples would show it.
const SAMPLES: u32 = 1_000;

const HOST: u32 = 0;
const PROCESS: u32 = 1;
const ENGINE: u32 = 2;
const BLOCK: u32 = 3;
const DATASTORE: u32 = 4;
const BACKGROUND: u32 = 5;

/// A run that is being written.
pub struct Recording<'a> {
    recorder: &'a SharedRecorder,
    run: RunId,
    plan: &'a Plan,
    design: &'a DesignPlan,
    now: Nanos,
    scenario: &'a Scenario,
    host: Counters,
    process: Counters,
    engine: Counters,
    block: Counters,
    datastore: Counters,
    background: Counters,
    has_sources: bool,
}

impl<'a> Recording<'a> {
    /// A run that has begun in the record.
    pub fn new(
        recorder: &'a SharedRecorder,
        run: RunId,
        (plan, design): (&'a Plan, &'a DesignPlan),
        scenario: &'a Scenario,
    ) -> Recording<'a> {
        Recording {
            recorder,
            run,
            plan,
            design,
            now: Nanos::ZERO,
            scenario,
            host: Counters::default(),
            process: Counters::default(),
            engine: Counters::default(),
            block: Counters::default(),
            datastore: Counters::default(),
            background: Counters::default(),
            has_sources: false,
        }
    }

    /// Which run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// How far it is, on its clock.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// What is known before its load.
    pub fn begin(&mut self) -> Result<(), Abort> {
        let mut recorder = self.recorder.lock();
        for database in &self.plan.databases {
            let Some(part) = database.part(self.design) else { continue };
            let documents = [
                (document::ENGINE, engine_document(part.engine.kind)),
                (document::ENGINE_SETTINGS, json!(part.engine.settings)),
            ];
            for (name, content) in documents {
                let name = database.recorded(name);
                recorder
                    .write_document(Some(self.run), &name, &content)
                    .during("write the record")?;
            }
        }
        Ok(())
    }

    /// A second of it, with so many active users.
    pub fn second(
        &mut self,
        Second { run: second, hosts }: &Second,
        users: u32,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let interval = Interval { begin: second.from, end: second.until };
        if !self.has_sources {
            // Counters begin at 0, at the begin of the first second.
            self.count(second, 0.0);
            self.count_background(second, 0.0);
            self.count_hosts(hosts, 0.0);
            self.declare()?;
            self.read(interval.begin)?;
            self.has_sources = true;
        }
        self.count(second, 1.0);
        self.count_background(second, 1.0);
        self.count_hosts(hosts, 1.0);
        self.read(interval.end)?;
        self.transactions(second, interval)?;
        let counted = counted(self.scenario);
        let waits = waits(second, (users, counted.len()), interval);
        let mut recorder = self.recorder.lock();
        recorder.waits(self.run, &waits).during("write the record")?;
        recorder.commit().during("write the record")?;
        drop(recorder);
        self.now = interval.end;
        report(second, (users, &counted), observer);
        Ok(())
    }

    fn declare(&self) -> Result<(), Abort> {
        let of_server = match self.plan.engine.kind {
            EngineKind::Postgresql => source::POSTGRES,
            EngineKind::Mariadb | EngineKind::Mysql => source::MARIADB,
        };
        let sources = [
            (HOST, source::HOST_CPU, Layer::Host, &self.host),
            (PROCESS, source::PROCESS, Layer::Host, &self.process),
            (ENGINE, of_server, Layer::Database, &self.engine),
            (BLOCK, source::BLOCK, Layer::Block, &self.block),
            (DATASTORE, source::DATASTORE, Layer::Datastore, &self.datastore),
            (BACKGROUND, source::BACKGROUND, Layer::Driver, &self.background),
        ];
        let mut recorder = self.recorder.lock();
        let present = sources.into_iter().filter(|(.., counters)| !counters.is_empty());
        for (index, name, layer, counters) in present {
            let source = counters.source(index, name, layer);
            recorder.source(self.run, &source).during("write the record")?;
        }
        Ok(())
    }

    fn read(&self, at: Nanos) -> Result<(), Abort> {
        let interval = Interval { begin: at, end: at };
        let counters = [
            (HOST, &self.host),
            (PROCESS, &self.process),
            (ENGINE, &self.engine),
            (BLOCK, &self.block),
            (DATASTORE, &self.datastore),
            (BACKGROUND, &self.background),
        ];
        let mut recorder = self.recorder.lock();
        for (index, counters) in counters.into_iter().filter(|(_, it)| !it.is_empty()) {
            let values = counters.values();
            recorder.tick(self.run, index, interval, &values).during("write the record")?;
        }
        Ok(())
    }

    /// The same of what a cluster's hosts have.
    fn count_hosts(&mut self, hosts: &[(String, HostUse)], times: f64) {
        for (name, used) in hosts {
            self.datastore.add_host_use(name, *used, times);
        }
    }

    /// Adds a second to the counters, or with `times` 0 only their names.
    fn count(&mut self, second: &EngineRun, times: f64) {
        let length = second.length().0 as f64;
        let scenario = self.scenario;
        let (mut busy, mut client, mut requests) = (0.0, 0.0, 0.0);
        for host in &second.hosts {
            // As limits count: two threads of a core have not two processors.
            busy += host.used.done_ns;
            self.host.add("cpu.user", "ns", times * host.used.done_ns);
            let idle = (host.full_capacity * length - host.used.done_ns).max(0.0);
            self.host.add("cpu.idle", "ns", times * idle);
        }
        let mut wanted = 0.0;
        for (result, spec) in second.databases.iter().zip(&scenario.databases) {
            if spec.client.host.is_some() {
                client += (ended(result) * spec.demands.client_cpu.0) as f64;
            }
            requests += (result.requests() * spec.demands.cpu_per_io.0) as f64;
            wanted += result.places[Place::Cpu as usize].present_ns as f64;
        }
        for (result, spec) in second.background.iter().zip(&scenario.background) {
            requests += (result.requests() * spec.cpu_per_io.0) as f64;
        }
        let server = (busy - client - requests).max(0.0);
        let name = match self.plan.engine.kind {
            EngineKind::Postgresql => "postgres",
            EngineKind::Mariadb | EngineKind::Mysql => "mariadb",
        };
        self.process.add(format!("{name}.on_cpu"), "ns", times * server);
        self.process.add(format!("{name}.run_queue"), "ns", times * (wanted - server).max(0.0));
        self.process.add("driver.on_cpu", "ns", times * client);
        self.process.add("kernel.on_cpu", "ns", times * requests);
        for (result, spec) in second.databases.iter().zip(&scenario.databases) {
            let page = f64::from(spec.engine.page_bytes());
            count_engine(&mut self.engine, result, &spec.engine, times);
            let writers = &result.writers;
            let io = &result.io;
            let mut stations = vec![
                (spec.data.volume, "read", io.read, io.read.departures as f64 * page),
                (spec.data.volume, "read", io.analyze, io.analyze.departures as f64 * page),
                (spec.data.volume, "read", io.read_ahead, result.ahead_pages as f64 * page),
                (spec.data.volume, "write", io.page_write, writers.written_pages as f64 * page),
                (
                    spec.data.volume,
                    "write",
                    io.doublewrite,
                    writers.doublewrite_pages as f64 * page,
                ),
                (spec.data.volume, "flush", io.data_flush, 0.0),
                (spec.log.volume, "write", io.log_write, result.log.written as f64),
                (spec.log.volume, "flush", io.log_flush, 0.0),
            ];
            if let Some(job) = &result.job {
                let archives = match &spec.workload {
                    WorkloadSpec::Backup(backup) => Some(backup.volume.volume),
                    _ => None,
                };
                let volumes = std::iter::once(spec.data.volume).chain(archives);
                for ((volume, io), bytes) in volumes.zip(io.job).zip(job.volumes) {
                    stations.extend([
                        (volume, "read", io.read, bytes.read as f64),
                        (volume, "write", io.write, bytes.written as f64),
                        (volume, "flush", io.flush, 0.0),
                    ]);
                }
            }
            for (volume, operation, station, bytes) in stations {
                self.count_requests((volume, operation), &station, bytes, times);
            }
        }
    }

    /// The same of requests of a kind on a volume.
    fn count_requests(
        &mut self,
        (volume, operation): (usize, &str),
        station: &Station,
        bytes: f64,
        times: f64,
    ) {
        let volume = &self.design.volumes[volume].name;
        let sums = [station.departures as f64, station.stay_ns as f64, bytes];
        self.block.add_requests((volume, operation), sums.map(|sum| times * sum));
    }

    /// The same of background work: its own counters, and its part of those of the volumes.
    fn count_background(&mut self, second: &EngineRun, times: f64) {
        for result in &second.background {
            let mut sums = [0; 4];
            for part in &result.parts {
                for (operation, io) in ["read", "write", "flush"].into_iter().zip(part.all()) {
                    let of = (part.volume, operation);
                    self.count_requests(of, &io.station, io.bytes as f64, times);
                }
                let (read, write) = (&part.read, &part.write);
                let of_part = [read.station.departures, write.station.departures];
                let counts = of_part.into_iter().chain([read.bytes, write.bytes]);
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            // As of real work, flushes are no writes.
            let [reads, writes, read_bytes, write_bytes] = sums;
            for (series, unit, by) in [
                ("reads", "requests", reads),
                ("writes", "requests", writes),
                ("read_bytes", "bytes", read_bytes),
                ("write_bytes", "bytes", write_bytes),
                // Nothing fails in the model.
                ("errors", "requests", 0),
            ] {
                let series = format!("{}.{series}", result.name);
                self.background.add(series, unit, times * by as f64);
            }
        }
    }

    /// What users did, of each database and together.
    fn transactions(&self, second: &EngineRun, interval: Interval) -> Result<(), Abort> {
        let mut recorder = self.recorder.lock();
        let mut write = |name: String, kind: &TypeResult| {
            let tick = TransactionTick {
                interval,
                transaction: name,
                committed: kind.committed,
                rolled_back: kind.rolled_back,
                failed: 0,
                unknown: 0,
                errors: BTreeMap::new(),
                retries: 0,
                response: (&kind.response).into(),
                service: (&kind.service).into(),
            };
            recorder.transactions(self.run, &tick).during("write the record")
        };
        let counted = counted(self.scenario);
        let mut total: BTreeMap<&str, TypeResult> = BTreeMap::new();
        for (number, database) in second.databases.iter().enumerate() {
            for kind in &database.types {
                if self.plan.has_named_databases() {
                    write(format!("{}/{}", database.name, kind.name), kind)?;
                }
                // Together are those with users.
                if !counted.contains(&number) {
                    continue;
                }
                let sum = total.entry(kind.name).or_default();
                sum.committed += kind.committed;
                sum.rolled_back += kind.rolled_back;
                sum.response.merge(&kind.response);
                sum.service.merge(&kind.service);
            }
        }
        total.iter().try_for_each(|(name, kind)| write((*name).to_string(), kind))
    }
}

/// What the server's own statistics count.
fn count_engine(counters: &mut Counters, result: &DatabaseResult, spec: &EngineSpec, times: f64) {
    let DatabaseResult { pool, log, writers, .. } = result;
    let mut add = |name: &str, unit, by: u64| counters.add(name, unit, times * by as f64);
    match spec {
        EngineSpec::Postgresql(_) => {
            add("database.xact_commit", "transactions", ended(result));
            add("database.blks_hit", "blocks", pool.hits);
            add("database.blks_read", "blocks", pool.misses);
            add("wal.wal_bytes", "bytes", log.inserted);
            add("wal.wal_fpi", "images", log.images / u64::from(spec.page_bytes()));
            add("wal.wal_write", "writes", log.writes);
            add("wal.wal_sync", "flushes", log.flushes);
            add("bgwriter.buffers_checkpoint", "blocks", writers.checkpoint_pages);
            add("bgwriter.buffers_clean", "blocks", writers.background_pages);
            add("bgwriter.buffers_backend", "blocks", writers.session_pages);
        }
        EngineSpec::Mariadb(_) => {
            add("status.innodb_buffer_pool_read_requests", "reads", pool.hits + pool.misses);
            add("status.innodb_buffer_pool_reads", "reads", pool.misses);
            add("status.innodb_lsn_current", "bytes", log.inserted);
            add("status.innodb_os_log_written", "bytes", log.written);
            add("status.innodb_buffer_pool_pages_flushed", "pages", writers.written_pages);
        }
    }
}

/// Transactions that ended.
fn ended(database: &DatabaseResult) -> u64 {
    database.types.iter().map(|kind| kind.committed + kind.rolled_back).sum()
}

/// What sessions that are in a place look like to a sampler; `None` where no session is at work.
fn as_sampled(place: Place) -> Option<(&'static str, &'static str)> {
    match place {
        Place::Connection | Place::Client | Place::Network => None,
        Place::Cpu => Some(("", "")),
        Place::Lock => Some(("Lock", "transactionid")),
        Place::Read => Some(("IO", "DataFileRead")),
        Place::Log => Some(("IO", "WALSync")),
        Place::Throttle => Some(("IO", "DataFileWrite")),
    }
}

/// The sessions of all databases, as samples would show them.
fn waits(second: &EngineRun, (users, databases): (u32, usize), interval: Interval) -> WaitWindow {
    let mut clients = Vec::new();
    let mut at_work = 0.0;
    let key = |state: &str, class: &str, event: &str| WaitKey {
        state: state.to_string(),
        class: class.to_string(),
        event: event.to_string(),
        backend_type: "client backend".to_string(),
    };
    let as_samples = |sessions: f64| (sessions * f64::from(SAMPLES)).round() as u32;
    for place in Place::ALL {
        let Some((class, event)) = as_sampled(place) else { continue };
        let present = second
            .databases
            .iter()
            .map(|database| database.places[place as usize].mean_present(second.length()));
        let present: f64 = present.sum();
        at_work += present;
        clients.push(WaitCount { key: key("active", class, event), sessions: as_samples(present) });
    }
    let all = f64::from(users) * databases as f64;
    let idle = WaitCount {
        key: key("idle", "Client", "ClientRead"),
        sessions: as_samples((all - at_work).max(0.0)),
    };
    clients.push(idle);
    WaitWindow {
        interval,
        samples: SAMPLES,
        clients,
        holder_samples: 0,
        holders: Vec::new(),
        background: Vec::new(),
        log_holders: Vec::new(),
        page_holders: Vec::new(),
    }
}

/// Reports what the users of all databases did.
fn report(second: &EngineRun, (users, of): (u32, &[usize]), observer: &mut dyn Observer) {
    let Some(first) = of.first().map(|number| &second.databases[*number]) else { return };
    let headline: f64 = of.iter().map(|number| second.headline(*number)).sum();
    let mut response = Histogram::new();
    let mut counted = 0;
    for database in of.iter().map(|number| &second.databases[*number]) {
        for kind in database.headline.types {
            response.merge(&database.types[*kind].response);
            counted += database.types[*kind].committed;
        }
    }
    observer.notice(&Event::Second {
        headline,
        counted: first.headline.counted,
        counted_per_second: counted as f64 / second.length().as_secs_f64(),
        unit: first.headline.unit,
        users,
        response_p99: response.quantile(0.99).map(Nanos),
        errors: 0,
    });
}

/// What records say of a database that was not installed.
fn engine_document(kind: EngineKind) -> Value {
    json!({ "engine": kind.as_str(), "version": "modelled" })
}
