//! Records of simulated executions, written through the recorder as the lab writes them.

use std::path::Path;

use serde_json::{Value, json};
use underlay_core::{Evidence, RootSeed};
use underlay_record::{Design, ExecutionStatus, Manifest, Record, Recorder};

use crate::simulation::Demands;
use crate::synthetic_resync::Resync;
use crate::synthetic_run::SimulatedRun;

/// One design of a simulated study.
#[derive(Clone, Debug)]
pub struct SimulatedDesign {
    pub name: &'static str,
    pub title: &'static str,
    pub demands: Demands,
    pub evidence: Evidence,
    /// Engine settings in force that differ from the common ones.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Of a study with an axis: where it lies.
    pub variant: Option<SimulatedVariant>,
}

/// A variant of a simulated study with an axis.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedVariant {
    pub design: &'static str,
    pub design_title: &'static str,
    pub at: Point,
}

/// Where a variant lies on the axis of its study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// On an axis of memory: GiB.
    Memory(u64),
    /// On an axis of processors.
    Cores(u64),
    /// On an axis of names.
    Tuning(&'static str),
}

impl Point {
    /// Its name in plans.
    pub fn name(self) -> String {
        match self {
            Point::Memory(gib) => format!("{gib}GiB"),
            Point::Cores(cores) => cores.to_string(),
            Point::Tuning(name) => name.to_string(),
        }
    }

    /// The name of its axis, the key that it sets, and the unit of that.
    fn axis(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Point::Memory(_) => ("memory", "engine.memory-limit", Some("bytes")),
            Point::Cores(_) => ("cores", "engine.cpus", None),
            Point::Tuning(_) => ("tuning", "workload.batch.mode", None),
        }
    }

    /// As a plan describes it.
    fn described(self) -> Value {
        let (phrase, number) = match self {
            Point::Memory(gib) => (format!("{gib} GiB of memory"), Some(gib << 30)),
            Point::Cores(cores) => (format!("{cores} cores"), Some(cores)),
            Point::Tuning(name) => (name.to_string(), None),
        };
        let name = self.name();
        json!({ "name": name, "label": name, "phrase": phrase, "number": number })
    }
}

/// A load of MariaDB, which counts the statements COMMIT and ROLLBACK alone.
#[derive(Clone, Debug)]
pub struct OnMariadb {
    /// The names of the transaction types, the most frequent first.
    pub types: [&'static str; 5],
    /// Types that the workload has and that never come: they have ticks, too.
    pub idle: Vec<&'static str>,
    /// Those that the server is told to commit.
    pub told: Vec<&'static str>,
    /// Whether the load generator recorded which these are.
    pub is_recorded: bool,
    /// What is known of the server's own commits.
    pub own_commits: OwnCommits,
}

/// What a record of MariaDB says of Handler_commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCommits {
    /// Nothing, as older ones.
    Unsaid,
    /// It was sampled, and so was what opens a transaction; `log_bin` is as said.
    Sampled { log_bin: &'static str },
}

/// Where the volumes `data` and `wal` lie, and how a record says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// A device each.
    Own,
    /// Folders on one disk, recorded as the disk's series.
    Shared,
    /// The same in older records: the disk's counters under the name of each volume, and nothing said about it.
    SharedUnsaid,
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
    /// What the host adds to modelled I/O times, as a share of them; `None` in records of versions that did not say.
    pub host_adds: Option<f64>,
    /// Whether the first run of each design ends with its null twin.
    pub null_twin: bool,
    /// Sources that are absent.
    pub absent: Vec<&'static str>,
    /// Throughput changes by this factor from the begin to the end of a run.
    pub drift: f64,
    /// Multiple of the think times of the standard, told to the plan.
    pub key_think: f64,
    /// Attempts that fail, per thousand.
    pub errors_per_mille: u64,
    /// Samples per second in which an autovacuum worker was seen.
    pub vacuumed: u32,
    pub working_set_ratio: f64,
    /// On MariaDB instead of PostgreSQL.
    pub mariadb: Option<OnMariadb>,
    /// What the block layer knows of the volumes.
    pub devices: Devices,
    /// Bytes written to the log's device, per byte of log.
    pub written_per_logged: f64,
    /// Designs whose searches ended because the load generator was saturated.
    pub at_least: Vec<usize>,
    /// A job in the place of TPC-C.
    pub job: Option<Job>,
    /// Databases under test at once, each of which does all of this.
    pub databases: Vec<&'static str>,
    /// Copies of the cluster that the designs are on.
    pub resync: Option<Resync>,
    /// Share of the time in which servers are stopped by their CPU limit; `None` without a control group.
    pub stopped: Option<f64>,
    /// A causal check in the first repeat: how many times as long reads and log writes really take where it slows them by two.
    pub causal_check: Option<f64>,
}

/// A job of a simulated study, as the plan describes it, and what every run came to.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub name: &'static str,
    pub counted: &'static str,
    pub unit: &'static str,
    pub period_s: u64,
    pub value: f64,
    /// How long it took on each design, seconds; empty where it does not say so.
    pub took_s: &'static [u64],
}

/// An insertion of rows.
pub const ROWS: Job = Job {
    name: "batch",
    counted: "rows",
    unit: "rows/s",
    period_s: 1,
    value: 2_876.0,
    took_s: &[],
};

impl Job {
    /// What a plan says of the workload.
    fn shape(&self) -> Value {
        json!({
            "headline": {
                "types": ["new_order"],
                "counted": self.counted,
                "unit": self.unit,
                "period_ns": self.period_s * 1_000_000_000,
            },
        })
    }

    /// What a plan says of a run's headline.
    fn outcome(&self) -> Value {
        json!({
            "kind": "job",
            "definition": "a composition of TPC-H",
            "counted": self.counted,
            "unit": self.unit,
            "period_ns": self.period_s * 1_000_000_000,
        })
    }
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
        variant: None,
    }
}

pub fn sata() -> SimulatedDesign {
    let mut design = nvme();
    (design.name, design.title) = ("sata", "SATA");
    design.demands.read_ns = 2_800_000.0;
    design.demands.log_ns = 1_200_000.0;
    design
}

/// A design whose device takes no time: what is left is the path through the host.
pub fn null() -> SimulatedDesign {
    let mut design = nvme();
    (design.name, design.title) = ("null", "No delay");
    (design.demands.read_ns, design.demands.log_ns) = HOST_PATH_NS;
    design
}

/// What reads and log writes take on this host without any device, ns.
pub const HOST_PATH_NS: (f64, f64) = (20_000.0, 20_000.0);

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
        host_adds: Some(0.01),
        null_twin: false,
        absent: vec!["pressure"],
        drift: 1.0,
        key_think: 0.0,
        errors_per_mille: 0,
        vacuumed: 0,
        working_set_ratio: 4.0,
        mariadb: None,
        devices: Devices::Own,
        written_per_logged: 1.4,
        at_least: Vec::new(),
        job: None,
        databases: Vec::new(),
        resync: None,
        stopped: None,
        causal_check: None,
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
    let profile = match design.name {
        "null" => json!({ "medium": { "instant": {} }, "flush": "0s" }),
        name => json!({
            "name": format!("{name}-drive"),
            "medium": {},
            "read_ns": design.demands.read_ns,
            "write_ns": design.demands.log_ns,
        }),
    };
    let device = design.variant.map_or(design.name, |variant| variant.design);
    let mut detail = json!({
        "name": design.name,
        "title": design.title,
        "evidence": design.evidence.as_str(),
        "datastore": { "emulated": {
            "devices": [{ "name": device, "profile": profile }],
            "durability": "profile",
        } },
        "volumes": [
            { "name": "data", "capacity_bytes": 4u64 << 30, "device": device, "file_system": "ext4" },
            { "name": "wal", "capacity_bytes": 1u64 << 30, "device": device, "file_system": "ext4" },
        ],
        "engine": { "kind": "postgresql", "cpus": design.demands.processors },
    });
    if let Some(variant) = design.variant {
        if let Point::Memory(gib) = variant.at {
            detail["engine"]["memory_limit_bytes"] = (gib << 30).into();
        }
        detail["variant"] = json!({
            "design": variant.design,
            "design_title": variant.design_title,
            "at": { variant.at.axis().0: variant.at.name() },
        });
    }
    detail
}

/// The axis of the designs that are variants.
fn axes(scenario: &Scenario) -> Value {
    let mut points: Vec<Point> =
        scenario.designs.iter().filter_map(|it| Some(it.variant?.at)).collect();
    let Some(first) = points.first() else { return json!([]) };
    let (name, key, unit) = first.axis();
    // Names keep the order of the study.
    if !matches!(first, Point::Tuning(_)) {
        points.sort_unstable();
    }
    points.dedup();
    let points: Vec<Value> = points.into_iter().map(Point::described).collect();
    json!([{ "name": name, "keys": [key], "unit": unit, "points": points }])
}

/// Several databases, each on all designs.
fn databases(scenario: &Scenario) -> Value {
    let part = |design: &SimulatedDesign| json!({ "design": design.name, "engine": { "cpus": design.demands.processors } });
    let parts: Vec<Value> = scenario.designs.iter().map(part).collect();
    let database = |name: &&str| json!({ "name": name, "designs": parts });
    scenario.databases.iter().map(database).collect()
}

fn workload(scenario: &Scenario) -> Value {
    if let Some(job) = scenario.job {
        return json!({ job.name: { "shape": job.shape() } });
    }
    let pacing = json!({ "closed": { "key_think": scenario.key_think } });
    let Some(mariadb) = &scenario.mariadb else {
        let tpcc = json!({
            "warehouses": 16, "mode": "procedures", "home_warehouse": "drawn", "pacing": pacing,
        });
        return json!({ "tpcc": tpcc });
    };
    let headline = json!({
        "types": mariadb.types,
        "counted": "transactions",
        "unit": "TPS",
        "period_ns": 1_000_000_000u64,
    });
    json!({ "sysbench": { "shape": { "headline": headline }, "pacing": pacing } })
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
            "designs": scenario.designs.iter().map(detail).collect::<Vec<_>>(),
            "axes": axes(scenario),
            "databases": databases(scenario),
            "engine": { "kind": "postgresql", "cpus": 4.0, "memory_limit_bytes": 512u64 << 20 },
            "workload": workload(scenario),
            "outcome": scenario.job.map_or(Value::Null, |job| job.outcome()),
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
