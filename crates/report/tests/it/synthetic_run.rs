//! One run of a simulated execution: what samplers, driver and lab would have recorded of it.

use std::collections::BTreeMap;

use rand::RngExt;
use serde_json::{Value, json};
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Histogram, IoClass, Nanos, RootSeed};
use underlay_record::conventions::{
    DISPATCH_LAG, LATENESS, MODELLED, commits_by, document, histogram_scope, io_series,
};
use underlay_record::{
    Check, CheckMoment, CheckOutcome, Event, Interval, NewPhase, NewRun, PhaseKind, PhaseStatus,
    Recorder, RunEnd, RunId, RunStatus, Source, SourceStatus, TransactionTick, WaitCount, WaitKey,
    WaitWindow,
};

use crate::simulation::{MIX, SAMPLES, Second, Simulation};
use crate::synthetic::{Devices, HOST_PATH_NS, OwnCommits, Scenario};
use crate::synthetic_resync::{self, Copied};

/// One run of a scenario.
pub struct SimulatedRun<'a> {
    pub scenario: &'a Scenario,
    pub design: usize,
    pub repeat: u32,
    pub order: u32,
}

/// The cumulative values behind the ticks of a run.
#[derive(Default)]
struct Counters {
    seconds: f64,
    on_cpu_ns: f64,
    run_queue_ns: f64,
    driver_ns: f64,
    busiest_ns: f64,
    commits: f64,
    /// MariaDB's own: a COMMIT makes two of a transaction of one statement.
    own_commits: f64,
    log_bytes: f64,
    reads: (f64, f64),
    log_writes: (f64, f64),
    copied: Copied,
}

impl SimulatedRun<'_> {
    /// Writes it into a record, second by second.
    pub fn carry_out(&self, recorder: &mut Recorder) {
        let run = recorder
            .begin_run(&NewRun {
                design: self.design as u32,
                repeat: self.repeat + 1,
                order: self.order,
                at: Nanos::ZERO,
                origin_wall_ns: 1_790_000_000_000_000_000 + u64::from(self.order) * 300_000_000_000,
            })
            .unwrap();
        self.declare(recorder, run);
        let mut second = 3;
        self.phase(recorder, run, PhaseKind::Restore, None, 0, 3, |_, _| {});
        if self.scenario.failed_run == Some(self.order) {
            let reason = "the server crashed: signal 9".to_string();
            let end =
                RunEnd { at: Nanos::from_secs(4), status: RunStatus::Failed, reason: Some(reason) };
            recorder.end_run(run, &end).unwrap();
            return;
        }
        let mut simulation = self.simulation();
        let mut counters = Counters::default();
        let idle = |recorder: &mut Recorder, at: u64, counters: &mut Counters| {
            self.tick(recorder, run, at, &Second::default(), counters);
        };
        if let Some(resync) = self.scenario.resync {
            let kind = PhaseKind::Settle;
            self.phase(recorder, run, kind, Some(0), second, resync.alone_s, |recorder, at| {
                idle(recorder, at, &mut counters);
            });
            second += resync.alone_s;
        }
        for users in &self.scenario.users {
            simulation.set_users(*users);
            let mut drive = |recorder: &mut Recorder, at: u64| {
                let happened = simulation.second();
                self.tick(recorder, run, at, &happened, &mut counters);
            };
            self.phase(recorder, run, PhaseKind::RampUp, Some(*users), second, 3, &mut drive);
            second += 3;
            let length = self.scenario.measure_s;
            self.phase(recorder, run, PhaseKind::Measure, Some(*users), second, length, &mut drive);
            second += length;
        }
        if self.scenario.null_twin && self.repeat == 0 {
            let mut demands = self.scenario.designs[self.design].demands;
            (demands.read_ns, demands.log_ns) = HOST_PATH_NS;
            let random = RootSeed(self.scenario.seed).stream("twin", u64::from(self.order));
            let mut simulation = Simulation::new(demands, random);
            let users = self.top_users();
            simulation.set_users(users);
            let mut drive = |recorder: &mut Recorder, at: u64| {
                let happened = simulation.second();
                self.tick(recorder, run, at, &happened, &mut counters);
            };
            self.phase(recorder, run, PhaseKind::RampUp, Some(users), second, 1, &mut drive);
            second += 1;
            self.phase(recorder, run, PhaseKind::NullTwin, Some(users), second, 3, &mut drive);
            second += 3;
        }
        if let Some(slower) = self.scenario.causal_check.filter(|_| self.repeat == 0) {
            second = self.causal_check(recorder, run, (second, slower), &mut counters);
        }
        if let Some(resync) = self.scenario.resync {
            let kind = PhaseKind::CoolDown;
            self.phase(recorder, run, kind, Some(0), second, resync.after_s, |recorder, at| {
                idle(recorder, at, &mut counters);
            });
            second += resync.after_s;
        }
        self.write_ending(recorder, run, second);
        let at = Nanos::from_secs(second + 2);
        let end = RunEnd { at, status: RunStatus::Finished, reason: None };
        recorder.end_run(run, &end).unwrap();
    }

    /// Periods of four seconds in which nothing, the log and the reads are slowed in turn. Returns when it ends.
    fn causal_check(
        &self,
        recorder: &mut Recorder,
        run: RunId,
        (begin, slower): (u64, f64),
        counters: &mut Counters,
    ) -> u64 {
        const SECONDS: u64 = 4;
        let (users, mut second, mut periods) = (self.top_users(), begin, Vec::new());
        let turns = [None, Some("log"), None, Some("data-read")];
        for resource in turns.repeat(4).into_iter().chain([None]) {
            let mut demands = self.scenario.designs[self.design].demands;
            match resource {
                Some("log") => demands.log_ns *= slower,
                Some(_) => demands.read_ns *= slower,
                None => {}
            }
            let random = RootSeed(self.scenario.seed).stream("causal", second);
            let mut simulation = Simulation::new(demands, random);
            simulation.set_users(users);
            for _ in 0..SECONDS {
                self.tick(recorder, run, second, &simulation.second(), counters);
                recorder.commit().unwrap();
                second += 1;
            }
            periods.push(json!({
                "resource": resource,
                "factor": if resource.is_some() { 2.0 } else { 1.0 },
                // The first second is the reaction.
                "begin_ns": Nanos::from_secs(second - SECONDS + 1).0,
                "end_ns": Nanos::from_secs(second).0,
            }));
        }
        let check = json!({
            "users": users, "factor": 2.0, "reaction_ns": Nanos::from_secs(1).0,
            "periods": periods, "not_perturbed": [],
        });
        recorder.write_document(Some(run), document::CAUSAL_CHECK, &check).unwrap();
        second
    }

    fn simulation(&self) -> Simulation {
        let mut random = RootSeed(self.scenario.seed).stream("run", u64::from(self.order));
        let noise: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let slower = 1.0 + noise * self.scenario.run_noise;
        let mut demands = self.scenario.designs[self.design].demands;
        demands.cpu_ns *= slower;
        demands.read_ns *= slower;
        demands.log_ns *= slower;
        Simulation::new(demands, random)
    }

    #[expect(clippy::too_many_arguments, reason = "a phase has that many properties")]
    fn phase(
        &self,
        recorder: &mut Recorder,
        run: RunId,
        kind: PhaseKind,
        users: Option<u32>,
        begin: u64,
        seconds: u64,
        mut act: impl FnMut(&mut Recorder, u64),
    ) {
        let label = users.map_or(kind.to_string(), |users| format!("{kind}, {users} users"));
        let at = Nanos::from_secs(begin);
        let phase =
            recorder.begin_phase(&NewPhase { run: Some(run), kind, label, users, at }).unwrap();
        for second in begin..begin + seconds {
            act(recorder, second);
            recorder.commit().unwrap();
        }
        let end = Nanos::from_secs(begin + seconds);
        recorder.end_phase(phase, end, PhaseStatus::Finished).unwrap();
    }

    fn declare(&self, recorder: &mut Recorder, run: RunId) {
        for (index, (name, layer, series)) in sources(self.scenario).into_iter().enumerate() {
            let absent = self.scenario.absent.contains(&name);
            let status = if absent {
                SourceStatus::Absent("not offered by this kernel".into())
            } else {
                SourceStatus::Available
            };
            let series = if absent { Vec::new() } else { series };
            let source = Source { index: index as u32, name: name.into(), layer, status, series };
            recorder.source(run, &source).unwrap();
        }
    }

    fn tick(
        &self,
        recorder: &mut Recorder,
        run: RunId,
        second: u64,
        happened: &Second,
        counters: &mut Counters,
    ) {
        let interval =
            Interval { begin: Nanos::from_secs(second), end: Nanos::from_secs(second + 1) };
        self.count(happened, counters);
        for (kind, name) in self.types().into_iter().enumerate() {
            let tick = self.transactions(interval, name, &happened.responses[kind], second);
            self.record_all(recorder, run, &tick);
        }
        for name in self.scenario.mariadb.iter().flat_map(|mariadb| &mariadb.idle) {
            let tick = self.transactions(interval, name, &[], second);
            recorder.transactions(run, &tick).unwrap();
        }
        let mut lag = Histogram::new();
        lag.record_n(30_000, 100);
        recorder.histogram(run, interval, histogram_scope::DRIVER, DISPATCH_LAG, &lag).unwrap();
        let demands = self.scenario.designs[self.design].demands;
        for (name, ns) in [("data.read", demands.read_ns), ("wal.write", demands.log_ns)] {
            let mut latency = Histogram::new();
            for step in 0..20u64 {
                latency.record((ns * (0.5 + step as f64 / 20.0)) as u64);
            }
            recorder.histogram(run, interval, histogram_scope::DATASTORE, name, &latency).unwrap();
        }
        if !self.scenario.absent.contains(&"waits") {
            let sampled = waits(interval, happened, self.top_users(), self.scenario.vacuumed);
            recorder.waits(run, &sampled).unwrap();
        }
        for (index, (name, values)) in self.values(counters).into_iter().enumerate() {
            if !self.scenario.absent.contains(&name) {
                // Samplers read shortly after the whole second.
                let at = Nanos(interval.end.0 + 200_000);
                let window = Interval { begin: at, end: Nanos(at.0 + 100_000) };
                recorder.tick(run, index as u32, window, &values).unwrap();
            }
        }
    }

    fn types(&self) -> [&'static str; 5] {
        self.scenario.mariadb.as_ref().map_or(MIX.map(|(name, ..)| name), |mariadb| mariadb.types)
    }

    /// Whether the server counts transactions of this type.
    fn is_counted(&self, name: &str) -> bool {
        self.scenario.mariadb.as_ref().is_none_or(|mariadb| mariadb.told.contains(&name))
    }

    /// Records what one database did; of several what each of them did, which is the same, and their total.
    fn record_all(&self, recorder: &mut Recorder, run: RunId, tick: &TransactionTick) {
        let mut total = tick.clone();
        for (number, database) in self.scenario.databases.iter().enumerate() {
            let transaction = format!("{database}/{}", tick.transaction);
            recorder.transactions(run, &TransactionTick { transaction, ..tick.clone() }).unwrap();
            if number > 0 {
                total.committed += tick.committed;
                total.rolled_back += tick.rolled_back;
                total.failed += tick.failed;
                let mut response = total.response.decoded();
                response.merge(&tick.response.decoded());
                total.response = (&response).into();
            }
        }
        recorder.transactions(run, &total).unwrap();
    }

    fn transactions(
        &self,
        interval: Interval,
        name: &str,
        responses: &[u64],
        second: u64,
    ) -> TransactionTick {
        let mut response = Histogram::new();
        responses.iter().for_each(|ns| response.record(*ns));
        let completed = responses.len() as u64;
        // A drift is made by leaving out transactions: the shape is what counts.
        let ladder_s = (self.scenario.measure_s + 3) * self.scenario.users.len() as u64;
        let factor = 1.0 + (self.scenario.drift - 1.0) * second as f64 / ladder_s as f64;
        let rolled_back = if name == "new_order" { completed / 100 } else { 0 };
        let errors = completed * self.scenario.errors_per_mille / 1000;
        TransactionTick {
            interval,
            transaction: name.into(),
            committed: ((completed - rolled_back) as f64 * factor) as u64,
            rolled_back,
            failed: errors,
            unknown: 0,
            errors: if errors > 0 {
                BTreeMap::from([("deadlock".to_string(), errors)])
            } else {
                BTreeMap::new()
            },
            retries: 0,
            response: (&response).into(),
            service: (&response).into(),
        }
    }

    fn count(&self, happened: &Second, counters: &mut Counters) {
        let completed: usize = happened.responses.iter().map(Vec::len).sum();
        counters.seconds += 1.0;
        counters.on_cpu_ns += happened.on_cpu_ns;
        counters.run_queue_ns += happened.run_queue_ns;
        counters.driver_ns += happened.driver_ns;
        counters.busiest_ns += happened.driver_ns / 2.0 + self.scenario.driver_busy * 1e9;
        for (responses, name) in happened.responses.iter().zip(self.types()) {
            let each = if self.is_counted(name) { 1.0 } else { 0.0 };
            counters.commits += each * responses.len() as f64;
            counters.own_commits += (1.0 + each) * responses.len() as f64;
        }
        counters.log_bytes += completed as f64 * 6_000.0;
        counters.reads.0 += happened.reads.0 as f64;
        counters.reads.1 += happened.reads.1;
        counters.log_writes.0 += happened.log_writes.0 as f64;
        counters.log_writes.1 += happened.log_writes.1;
        if let Some(resync) = &self.scenario.resync {
            counters.copied.count(resync, self.design == 0, happened);
        }
    }

    /// The rows of all sources, in the order of [`sources`].
    fn values(&self, counters: &Counters) -> Vec<(&'static str, Vec<f64>)> {
        let seconds = counters.seconds;
        // The collector's own transactions, which MariaDB does not count.
        let observed = if self.scenario.mariadb.is_some() { 0.0 } else { seconds };
        let interference = self.scenario.interference_cores * 1e9 * seconds;
        let busy = counters.on_cpu_ns + counters.driver_ns + interference;
        let idle = self.scenario.host_cores * 1e9 * seconds - busy;
        let sampled = f64::from(SAMPLES) * seconds;
        let read_sectors = counters.reads.0 * 16.0;
        let log_sectors = counters.log_bytes * self.scenario.written_per_logged / 512.0;
        let mut values = vec![
            ("host_cpu", vec![busy * 0.8, 0.0, busy * 0.2, idle * 0.7, idle * 0.3, 0.0, 0.0, 0.0]),
            (
                "process",
                [
                    vec![counters.on_cpu_ns, counters.run_queue_ns, counters.driver_ns, 0.0, 1.0],
                    [counters.on_cpu_ns, counters.run_queue_ns]
                        .repeat(self.scenario.databases.len()),
                ]
                .concat(),
            ),
            (
                if self.scenario.mariadb.is_some() { "mariadb" } else { "postgres" },
                self.of_database(counters, observed),
            ),
            ("waits", vec![sampled, 0.0]),
            ("underlay", vec![seconds, seconds * 2e6]),
            (
                "block",
                vec![
                    counters.reads.0,
                    read_sectors,
                    counters.reads.1 / 1e6,
                    counters.reads.1 / 1e6,
                    counters.log_writes.0,
                    log_sectors,
                    counters.log_writes.1 / 1e6,
                    counters.log_writes.1 / 1e6,
                ],
            ),
            ("driver", vec![counters.driver_ns, counters.busiest_ns, f64::from(self.top_users())]),
            ("pressure", vec![]),
        ];
        values.extend(self.scenario.host_adds.map(|adds| {
            let modelled = |actual: f64| actual / (1.0 + adds);
            let of = |io: (f64, f64)| [io.0, modelled(io.1), io.1];
            let rows = [of(counters.log_writes), of(counters.reads), of((0.0, 0.0))];
            let copied = self
                .scenario
                .resync
                .iter()
                .flat_map(|resync| counters.copied.values(resync, self.design == 0));
            ("datastore", rows.concat().into_iter().chain(copied).collect())
        }));
        values.extend(self.scenario.stopped.map(|share| {
            let periods = 10.0 * seconds;
            ("cgroup", vec![periods, periods, share * 1e9 * seconds, 1e9 * seconds])
        }));
        values
    }

    fn of_database(&self, counters: &Counters, observed: f64) -> Vec<f64> {
        let seconds = counters.seconds;
        let mut values = vec![
            counters.commits + 4.0 * observed,
            0.0,
            counters.log_bytes,
            counters.commits * 200.0,
            counters.reads.0,
        ];
        match &self.scenario.mariadb {
            Some(mariadb) if mariadb.own_commits != OwnCommits::Unsaid => {
                values.extend([0.0, counters.own_commits]);
            }
            Some(_) => {}
            None => values.extend([
                // A checkpoint every 15 s that takes 5 s.
                (seconds / 15.0).floor(),
                ((seconds - 5.0) / 15.0).floor().max(0.0) * 5_000.0,
                4.0 * seconds,
            ]),
        }
        values
    }

    fn top_users(&self) -> u32 {
        self.scenario.users.iter().copied().max().unwrap_or(1)
    }

    fn write_ending(&self, recorder: &mut Recorder, run: RunId, second: u64) {
        let at = Nanos::from_secs(second);
        let note = Event {
            run: Some(run),
            at: Nanos::from_secs(3),
            kind: "note".into(),
            text: "volume.data: device loop3".into(),
            data: Value::Null,
        };
        recorder.event(&note).unwrap();
        for (moment, id, title) in [
            (CheckMoment::Before, "C1", "W_YTD = sum(D_YTD)"),
            (CheckMoment::After, "C1", "W_YTD = sum(D_YTD)"),
            (CheckMoment::After, "ledger", "every acknowledged order exists"),
        ] {
            let violated = self.scenario.violated_run == Some(self.order) && id == "ledger";
            let outcome = if violated {
                CheckOutcome::Violated { rows: 3, example: "order 17 of district 4".into() }
            } else {
                CheckOutcome::Ok
            };
            let check = Check { run, moment, id: id.into(), title: title.into(), outcome };
            recorder.check(&check).unwrap();
        }
        self.write_documents(recorder, run, at);
    }

    fn write_documents(&self, recorder: &mut Recorder, run: RunId, at: Nanos) {
        if let Some(mariadb) = self.scenario.mariadb.as_ref().filter(|mariadb| mariadb.is_recorded)
        {
            let names = mariadb.types.iter().chain(&mariadb.idle);
            let commits = names.map(|name| {
                let by = if self.is_counted(name) {
                    commits_by::EXPLICIT
                } else {
                    commits_by::AUTOCOMMIT
                };
                (name.to_string(), json!({ "by": by, "count": 1 }))
            });
            let commits: serde_json::Map<_, _> = commits.collect();
            let driver = json!({ "commits": commits });
            recorder.write_document(Some(run), document::DRIVER, &driver).unwrap();
        }
        let mut settings = json!({
            "shared_buffers": { "value": "16384", "source": "configuration file" },
            "checkpoint_timeout": { "value": "300", "source": "default" },
            "fsync": { "value": "on", "source": "default" },
            "data_directory": { "value": format!("/run/{}", run.0), "source": "override" },
        });
        let own_commits = self.scenario.mariadb.as_ref().map(|mariadb| mariadb.own_commits);
        if let Some(OwnCommits::Sampled { log_bin }) = own_commits {
            settings["log_bin"] = json!({ "value": log_bin, "source": "default" });
        }
        for (name, value) in &self.scenario.designs[self.design].settings {
            settings[*name] = json!({ "value": value, "source": "configuration file" });
        }
        recorder.write_document(Some(run), document::ENGINE_SETTINGS, &settings).unwrap();
        let engine = json!({ "engine": "postgresql", "version": "15.18" });
        recorder.write_document(Some(run), document::ENGINE, &engine).unwrap();
        let volumes = ["data", "wal"].map(|name| match self.scenario.devices {
            Devices::Own => {
                json!({ "name": name, "block_device": format!("loop-{name}"), "owns_block_device": true })
            }
            Devices::Shared => {
                json!({ "name": name, "block_device": "vda", "owns_block_device": false })
            }
            Devices::SharedUnsaid => json!({ "name": name, "block_device": "vda" }),
        });
        let datastore = json!({ "volumes": volumes });
        recorder.write_document(Some(run), document::DATASTORE, &datastore).unwrap();
        let timing = json!({
            "valid": self.scenario.host_adds.is_some(),
            "reason": self.scenario.host_adds.is_none().then_some("lateness p99 of 400 us exceeds 10 % of 700 us"),
            "host_limited_share": 0.001,
            "floor_ns": 9_000,
            "compensation_ns": 12_000,
        });
        recorder.write_document(Some(run), document::TIMING, &timing).unwrap();
        if self.scenario.at_least.contains(&self.design) {
            let search =
                json!({ "found": { "kind": "at-least", "holds_per_second": 100.0 }, "steps": [] });
            recorder.write_document(Some(run), document::RATE_SEARCH, &search).unwrap();
        }
        if let Some(job) = self.scenario.job {
            let slower = 1.0 + 0.01 * f64::from(self.repeat);
            let took = job.took_s.get(self.design).map(|seconds| *seconds as f64 * slower);
            // Of a million rows, where the time is told.
            let value = took.map_or(job.value * slower, |seconds| 1e6 / seconds);
            let nanos = took.map(|seconds| (seconds * 1e9) as u64);
            let outcome = json!({ "value": value, "duration_ns": nanos });
            recorder.write_document(Some(run), document::OUTCOME, &outcome).unwrap();
        }
        let whole = Interval { begin: Nanos::ZERO, end: at };
        for (name, ns) in [(LATENESS, 5_000), (MODELLED, 120_000)] {
            let mut histogram = Histogram::new();
            (0..100).for_each(|step| histogram.record(ns + ns * step / 100));
            recorder.histogram(run, whole, histogram_scope::TIMING, name, &histogram).unwrap();
        }
    }
}

/// All sources with their series: the names are those of the samplers.
fn sources(scenario: &Scenario) -> Vec<(&'static str, Layer, Vec<SeriesSpec>)> {
    let counters = |names: &[&str], unit: &str| -> Vec<SeriesSpec> {
        names.iter().map(|name| SeriesSpec::counter(*name, unit)).collect()
    };
    let states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let states: Vec<SeriesSpec> =
        states.iter().map(|state| SeriesSpec::counter(format!("cpu.{state}"), "ns")).collect();
    let mut process = counters(
        &["postgres.on_cpu", "postgres.run_queue", "driver.on_cpu", "driver.run_queue"],
        "ns",
    );
    process.push(SeriesSpec::gauge("driver.processes", "processes"));
    // Of several databases each server has its own.
    let of_each = scenario.databases.iter().flat_map(|database| {
        ["on_cpu", "run_queue"]
            .map(|what| SeriesSpec::counter(format!("{database}/postgres.{what}"), "ns"))
    });
    process.extend(of_each);
    let block = |volume: &str, operation: &str| {
        let name = |field: &str| match (scenario.devices, operation, field) {
            // A device has one queue.
            (Devices::Shared, "write", "queue_time") => "device.vda.discard.time".to_string(),
            (Devices::Shared, ..) => format!("device.vda.{field}"),
            _ => format!("volume.{volume}.{field}"),
        };
        vec![
            SeriesSpec::counter(name(&format!("{operation}.ios")), "ios"),
            SeriesSpec::counter(name(&format!("{operation}.sectors")), "sectors"),
            SeriesSpec::counter(name(&format!("{operation}.time")), "ms"),
            SeriesSpec::counter(name("queue_time"), "ms"),
        ]
    };
    let database = match &scenario.mariadb {
        Some(mariadb) => {
            let mut names = vec![
                "status.com_commit",
                "status.com_rollback",
                "status.innodb_lsn_current",
                "status.innodb_buffer_pool_read_requests",
                "status.innodb_buffer_pool_reads",
            ];
            if mariadb.own_commits != OwnCommits::Unsaid {
                names.extend(["status.com_begin", "status.handler_commit"]);
            }
            ("mariadb", Layer::Database, counters(&names, "events"))
        }
        None => (
            "postgres",
            Layer::Database,
            counters(
                &[
                    "database.xact_commit",
                    "database.xact_rollback",
                    "wal.position",
                    "database.blks_hit",
                    "database.blks_read",
                    "bgwriter.checkpoints_timed",
                    "bgwriter.checkpoint_write_time",
                    "observer.transactions",
                ],
                "events",
            ),
        ),
    };
    let classes = IoClass::ALL.into_iter().flat_map(|class| {
        [
            SeriesSpec::counter(io_series::ios(class), "ios"),
            SeriesSpec::counter(io_series::modelled(class), "ns"),
            SeriesSpec::counter(io_series::actual(class), "ns"),
        ]
    });
    let copies = scenario.resync.iter().flat_map(|_| synthetic_resync::series());
    let datastore = ("datastore", Layer::Datastore, classes.chain(copies).collect());
    let mut sources = vec![
        ("host_cpu", Layer::Host, states),
        ("process", Layer::Host, process),
        database,
        ("waits", Layer::Database, counters(&["samples", "holders"], "samples")),
        ("underlay", Layer::Underlay, counters(&["tier.postgres.ticks", "collector.cpu"], "ns")),
        ("block", Layer::Block, [block("data", "read"), block("wal", "write")].concat()),
        (
            "driver",
            Layer::Driver,
            [
                counters(&["cpu", "busiest_thread.awake"], "ns"),
                vec![SeriesSpec::gauge("sessions", "sessions")],
            ]
            .concat(),
        ),
        ("pressure", Layer::Host, Vec::new()),
    ];
    sources.extend(scenario.host_adds.map(|_| datastore));
    let names = ["cpu.periods", "cpu.throttled.periods", "cpu.throttled.time", "cpu.usage"];
    sources.extend(scenario.stopped.map(|_| ("cgroup", Layer::Host, counters(&names, "ns"))));
    sources
}

/// All sessions are open from the start: those of users that are not active yet are idle.
fn waits(interval: Interval, happened: &Second, top_users: u32, workers: u32) -> WaitWindow {
    let active: u32 = happened.samples.iter().sum();
    let mut samples = happened.samples;
    samples[0] += top_users * SAMPLES - active;
    let keys = [
        ("idle", "Client", "ClientRead"),
        ("active", "", ""),
        ("active", "IO", "DataFileRead"),
        ("active", "IO", "WALSync"),
    ];
    let clients = keys
        .iter()
        .zip(samples)
        .filter(|(_, sessions)| *sessions > 0)
        .map(|((state, class, event), sessions)| WaitCount {
            key: WaitKey {
                state: state.to_string(),
                class: class.to_string(),
                event: event.to_string(),
                backend_type: "client backend".into(),
            },
            sessions,
        })
        .collect();
    WaitWindow {
        interval,
        samples: SAMPLES,
        clients,
        holder_samples: 5,
        holders: Vec::new(),
        background: (workers > 0)
            .then(|| WaitCount {
                key: WaitKey {
                    state: "active".into(),
                    class: "Timeout".into(),
                    event: "VacuumDelay".into(),
                    backend_type: "autovacuum worker".into(),
                },
                sessions: workers,
            })
            .into_iter()
            .collect(),
        log_holders: Vec::new(),
        page_holders: Vec::new(),
    }
}
