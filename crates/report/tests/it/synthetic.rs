//! Records of simulated executions, written through the recorder as the lab writes them.

use std::collections::BTreeMap;
use std::path::Path;

use rand::RngExt;
use serde_json::{Value, json};
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::conventions::{DISPATCH_LAG, LATENESS, MODELLED, document, histogram_scope};
use underlay_record::{
    Check, CheckMoment, CheckOutcome, Design, Event, ExecutionStatus, Interval, Manifest, NewPhase,
    NewRun, PhaseKind, PhaseStatus, Record, Recorder, RunEnd, RunId, RunStatus, Source,
    SourceStatus, TransactionTick, WaitCount, WaitKey, WaitWindow,
};

use crate::simulation::{Demands, MIX, SAMPLES, Second, Simulation};

/// One design of a simulated study.
#[derive(Clone, Debug)]
pub struct SimulatedDesign {
    pub name: &'static str,
    pub title: &'static str,
    pub demands: Demands,
    pub evidence: Evidence,
    /// Engine settings in force that differ from the common ones.
    pub settings: Vec<(&'static str, &'static str)>,
}

/// A simulated execution.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub designs: Vec<SimulatedDesign>,
    pub users: Vec<u32>,
    pub repeats: u32,
    /// Measured seconds per rung.
    pub measure_s: u64,
    /// Standard deviation of each run's speed, as a share.
    pub run_noise: f64,
    pub identity: &'static str,
    /// Processors of the host.
    pub host_cores: f64,
    /// Processor time that unknown processes take, cores.
    pub interference_cores: f64,
    /// Share of time that the load generator's busiest thread runs in addition to its work.
    pub driver_busy: f64,
    /// The check that is violated after the run at this position of the schedule.
    pub violated_run: Option<u32>,
    /// The run at this position fails.
    pub failed_run: Option<u32>,
    /// Whether the emulation kept its times.
    pub timing_valid: bool,
    /// Sources that are absent.
    pub absent: Vec<&'static str>,
    /// Throughput changes by this factor from the begin to the end of a run.
    pub drift: f64,
    /// Multiple of the think times of the standard, told to the plan.
    pub key_think: f64,
    /// Attempts that fail, per thousand.
    pub errors_per_mille: u64,
    pub working_set_ratio: f64,
    /// Designs whose searches ended because the load generator was saturated.
    pub at_least: Vec<usize>,
}

/// NVMe-like and SATA-like service times: reads dominate on SATA.
pub fn nvme() -> SimulatedDesign {
    SimulatedDesign {
        name: "nvme",
        title: "NVMe",
        demands: Demands {
            cpu_ns: 1_600_000.0,
            reads: 4,
            read_ns: 480_000.0,
            log_ns: 240_000.0,
            driver_ns: 80_000.0,
            think_ns: 0.0,
            processors: 4,
        },
        evidence: Evidence::Emulated,
        settings: Vec::new(),
    }
}

pub fn sata() -> SimulatedDesign {
    let mut design = nvme();
    (design.name, design.title) = ("sata", "SATA");
    design.demands.read_ns = 2_800_000.0;
    design.demands.log_ns = 1_200_000.0;
    design
}

/// Two designs, three rungs, three repeats, quiet host.
pub fn scenario(designs: Vec<SimulatedDesign>) -> Scenario {
    Scenario {
        seed: 1,
        designs,
        users: vec![1, 4, 8],
        repeats: 3,
        measure_s: 40,
        run_noise: 0.02,
        identity: "c0ffee",
        host_cores: 8.0,
        interference_cores: 0.05,
        driver_busy: 0.0,
        violated_run: None,
        failed_run: None,
        timing_valid: true,
        absent: vec!["pressure"],
        drift: 1.0,
        key_think: 0.0,
        errors_per_mille: 0,
        working_set_ratio: 4.0,
        at_least: Vec::new(),
    }
}

/// Simulates and records the scenario.
pub fn record(scenario: &Scenario, path: &Path) -> Record {
    let mut recorder = Recorder::create(path, &manifest(scenario)).unwrap();
    for (index, design) in scenario.designs.iter().enumerate() {
        recorder
            .add_design(&Design {
                index: index as u32,
                name: design.name.into(),
                title: design.title.into(),
                description: format!("a simulated {} design", design.title),
                evidence: design.evidence,
                detail: detail(design),
            })
            .unwrap();
    }
    let mut order = 0;
    for repeat in 0..scenario.repeats {
        let mut sequence: Vec<usize> = (0..scenario.designs.len()).collect();
        if repeat % 2 == 1 {
            sequence.reverse();
        }
        for design in sequence {
            SimulatedRun { scenario, design, repeat, order }.carry_out(&mut recorder);
            order += 1;
        }
    }
    recorder.finish(ExecutionStatus::Finished).unwrap();
    Record::open_read_only(path).unwrap()
}

fn detail(design: &SimulatedDesign) -> Value {
    let profile = json!({
        "read_ns": design.demands.read_ns,
        "write_ns": design.demands.log_ns,
    });
    json!({
        "name": design.name,
        "title": design.title,
        "evidence": design.evidence.as_str(),
        "datastore": { "emulated": {
            "devices": [{ "name": design.name, "profile": profile }],
            "durability": "profile",
        } },
        "volumes": [
            { "name": "data", "capacity_bytes": 4u64 << 30, "device": design.name, "file_system": "ext4" },
            { "name": "wal", "capacity_bytes": 1u64 << 30, "device": design.name, "file_system": "ext4" },
        ],
        "engine": { "kind": "postgresql", "cpus": design.demands.processors },
    })
}

fn manifest(scenario: &Scenario) -> Manifest {
    let line = |path: &str, value: String, line: u32| json!({ "path": path, "value": value, "origin": { "file": { "line": line } } });
    let default =
        |path: &str, value: &str| json!({ "path": path, "value": value, "origin": "default" });
    let users: Vec<String> = scenario.users.iter().map(u32::to_string).collect();
    Manifest {
        study_name: "synthetic".into(),
        title: "NVMe or SATA under TPC-C".into(),
        question: "Which of two storage designs serves more new orders?".into(),
        evidence: Evidence::Emulated,
        seed: RootSeed(scenario.seed),
        identity: scenario.identity.into(),
        started_wall_ns: 1_790_000_000_000_000_000,
        plan: json!({
            "format": 1,
            "engine": { "kind": "postgresql", "cpus": 4.0, "memory_limit_bytes": 512u64 << 20 },
            "workload": { "tpcc": {
                "warehouses": 16,
                "mode": "procedures",
                "pacing": { "closed": { "key_think": scenario.key_think } },
            } },
            "procedure": { "users": scenario.users, "repeats": scenario.repeats },
            "estimates": { "working_set_ratio": scenario.working_set_ratio },
            "published": [{
                "design": "nvme",
                "metric": "cpu-idle",
                "users": [1, 2, 3],
                "values": [97.8, 91.3, 89.1],
                "source": "Kingston, figure 3.5",
                "note": "other hosts and another engine",
            }],
            "provenance": [
                line("procedure.users", format!("[{}]", users.join(", ")), 12),
                line("procedure.repeats", scenario.repeats.to_string(), 13),
                default("procedure.order", "abba"),
                default("workload.tpcc.mode", "procedures"),
                line("design.nvme.device", "nvme".into(), 20),
                line("design.sata.device", "sata".into(), 24),
            ],
        }),
        host: json!({
            "hostname": "laboratory",
            "kernel": "6.18.0",
            "cpu_model": "a simulated processor",
            "cpu_count": scenario.host_cores as u64,
            "memory_bytes": 25_000_000_000u64,
            "virtualization": "none",
        }),
        software: json!({ "underlay": "0.1.0", "postgresql": "15.18" }),
    }
}

struct SimulatedRun<'a> {
    scenario: &'a Scenario,
    design: usize,
    repeat: u32,
    order: u32,
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
    log_bytes: f64,
    reads: (f64, f64),
    log_writes: (f64, f64),
}

impl SimulatedRun<'_> {
    fn carry_out(&self, recorder: &mut Recorder) {
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
        self.write_ending(recorder, run, second);
        let at = Nanos::from_secs(second + 2);
        let end = RunEnd { at, status: RunStatus::Finished, reason: None };
        recorder.end_run(run, &end).unwrap();
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
        for (index, (name, layer, series)) in sources().into_iter().enumerate() {
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
        for (kind, (name, ..)) in MIX.iter().enumerate() {
            let tick = self.transactions(interval, name, &happened.responses[kind], second);
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
            recorder.waits(run, &waits(interval, happened, self.top_users())).unwrap();
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
        counters.commits += completed as f64;
        counters.log_bytes += completed as f64 * 6_000.0;
        counters.reads.0 += happened.reads.0 as f64;
        counters.reads.1 += happened.reads.1;
        counters.log_writes.0 += happened.log_writes.0 as f64;
        counters.log_writes.1 += happened.log_writes.1;
    }

    /// The rows of all sources, in the order of [`sources`].
    fn values(&self, counters: &Counters) -> Vec<(&'static str, Vec<f64>)> {
        let seconds = counters.seconds;
        let interference = self.scenario.interference_cores * 1e9 * seconds;
        let busy = counters.on_cpu_ns + counters.driver_ns + interference;
        let idle = self.scenario.host_cores * 1e9 * seconds - busy;
        let sampled = f64::from(SAMPLES) * seconds;
        let read_sectors = counters.reads.0 * 16.0;
        let log_sectors = counters.log_bytes * 1.4 / 512.0;
        vec![
            ("host_cpu", vec![busy * 0.8, 0.0, busy * 0.2, idle * 0.7, idle * 0.3, 0.0, 0.0, 0.0]),
            (
                "process",
                vec![counters.on_cpu_ns, counters.run_queue_ns, counters.driver_ns, 0.0, 1.0],
            ),
            (
                "postgres",
                vec![
                    counters.commits + 4.0 * seconds,
                    0.0,
                    counters.log_bytes,
                    counters.commits * 200.0,
                    counters.reads.0,
                    // A checkpoint every 15 s that takes 5 s.
                    (seconds / 15.0).floor(),
                    ((seconds - 5.0) / 15.0).floor().max(0.0) * 5_000.0,
                    4.0 * seconds,
                ],
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
        ]
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
        let mut settings = json!({
            "shared_buffers": { "value": "16384", "source": "configuration file" },
            "checkpoint_timeout": { "value": "300", "source": "default" },
            "fsync": { "value": "on", "source": "default" },
            "data_directory": { "value": format!("/run/{}", run.0), "source": "override" },
        });
        for (name, value) in &self.scenario.designs[self.design].settings {
            settings[*name] = json!({ "value": value, "source": "configuration file" });
        }
        recorder.write_document(Some(run), document::ENGINE_SETTINGS, &settings).unwrap();
        let engine = json!({ "engine": "postgresql", "version": "15.18" });
        recorder.write_document(Some(run), document::ENGINE, &engine).unwrap();
        let timing = json!({
            "valid": self.scenario.timing_valid,
            "reason": (!self.scenario.timing_valid).then_some("lateness p99 of 400 us exceeds 10 % of 700 us"),
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
        let whole = Interval { begin: Nanos::ZERO, end: at };
        for (name, ns) in [(LATENESS, 5_000), (MODELLED, 120_000)] {
            let mut histogram = Histogram::new();
            (0..100).for_each(|step| histogram.record(ns + ns * step / 100));
            recorder.histogram(run, whole, histogram_scope::TIMING, name, &histogram).unwrap();
        }
    }
}

/// All sources with their series: the names are those of the samplers.
fn sources() -> Vec<(&'static str, Layer, Vec<SeriesSpec>)> {
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
    let block = |volume: &str, operation: &str| {
        let name = |field: &str| format!("volume.{volume}.{field}");
        vec![
            SeriesSpec::counter(name(&format!("{operation}.ios")), "ios"),
            SeriesSpec::counter(name(&format!("{operation}.sectors")), "sectors"),
            SeriesSpec::counter(name(&format!("{operation}.time")), "ms"),
            SeriesSpec::counter(name("queue_time"), "ms"),
        ]
    };
    vec![
        ("host_cpu", Layer::Host, states),
        ("process", Layer::Host, process),
        (
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
    ]
}

/// All sessions are open from the start: those of users that are not active yet are idle.
fn waits(interval: Interval, happened: &Second, top_users: u32) -> WaitWindow {
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
        background: Vec::new(),
    }
}
