//! An invented analysis with something of everything, for the tests of the page.
//!
//! Its numbers are made up, smooth and reproducible; they only have the shapes of real ones: two designs,
//! a ladder of users, repeats in the order A B B A, a violated check, an invalid run, gaps in series.

mod measures;
mod timelines;

use serde_json::json;
use underlay_report::Atlas;
use underlay_report::analysis::{
    ANALYSIS_FORMAT, Agreement, Analysis, Answer, Aspect, Basis, Bottleneck, BudgetPart,
    CausalCheck, Ceiling, Check, ClassExcess, Comparison, Confidence, Confound, Design, Direction,
    Emulation, Estimate, EvidenceKind, Finding, FindingSeverity, Gate, GateState, HostFactors,
    LimitMode, Method, Metric, NotPerturbed, Outcome, Peak, Published, Ratio, RatioMethod,
    Reaction, RuledOut, RungValidity, Scope, Sensitivity, Setting, Source, Study, TimeClass,
    Validity, Verdict, WhatIf, Workload,
};
use underlay_report::atlas::{FullSize, entry, missing};

use measures::{block_loads, curves, distributions, driver, operations, rungs, searches};
use timelines::{runs, timelines, windows};

/// The ladder.
pub const USERS: [u32; 5] = [1, 2, 4, 8, 16];
/// Repeats per design.
pub const REPEATS: u32 = 5;
/// New orders per minute of the two designs at each rung.
pub const NOPM: [[f64; 5]; 2] =
    [[1900.0, 3700.0, 6900.0, 11_800.0, 15_600.0], [1150.0, 2100.0, 3500.0, 5200.0, 6100.0]];

/// How large the time lines are.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Series per run.
    pub series: usize,
    /// Buckets per series.
    pub buckets: usize,
    /// Runs that have time lines at all.
    pub runs: usize,
}

/// The analysis.
pub fn analysis(size: Size) -> Analysis {
    let runs = runs();
    Analysis {
        format: ANALYSIS_FORMAT,
        study: study(),
        workload: Workload {
            name: "tpcc".into(),
            counted: "new orders".into(),
            unit: "NOPM".into(),
            types: vec!["new_order".into()],
            rate: "new orders per minute".into(),
            rate_unit: "1/min".into(),
            notice: "derived from TPC-C".into(),
            is_job: false,
        },
        verdict: verdict(),
        axes: Vec::new(),
        databases: Vec::new(),
        designs: designs(),
        comparisons: comparisons(),
        rungs: rungs(),
        peaks: peaks(),
        bottlenecks: bottlenecks(),
        validity: validity(),
        causal_checks: vec![causal_check()],
        searches: searches(),
        block_loads: vec![block_loads()],
        curves: curves(),
        operations: operations(),
        distributions: distributions(),
        windows: windows(&runs),
        timelines: timelines(&runs, size),
        checks: checks(runs.len()),
        findings: findings(),
        confounds: confounds(),
        settings: settings(),
        sources: sources(),
        emulation: emulation(runs.len()),
        driver: driver(),
        published: published(),
        host: json!({ "hostname": "bench-1", "kernel": "6.1.0", "cpu_count": 2, "memory_bytes": 8_589_934_592u64 }),
        software: json!({ "underlay": "0.1.0", "postgresql": "15.14" }),
        method: method(),
        runs,
    }
}

/// Noise in `-1..=1` that depends on nothing but `key`.
pub fn noise(key: u64) -> f64 {
    let mut mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 32;
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A number over five runs that differ by some percent.
pub fn estimate(value: f64, spread: f64, key: u64) -> Estimate {
    let runs: Vec<f64> =
        (0..u64::from(REPEATS)).map(|run| value * (1.0 + spread * noise(key * 31 + run))).collect();
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let half = mean * spread;
    Estimate {
        value: Some(mean),
        low: Some(mean - half),
        high: Some(mean + half),
        basis: Basis::Runs,
        runs: runs.into_iter().map(Some).collect(),
    }
}

/// An atlas of the invented analysis, of a study that could not be run, and of a job that is host-limited.
pub fn atlas(size: Size) -> Atlas {
    let done = entry(("paper/x1", "x1.sqlite"), &analysis(size), &FullSize::default(), None);
    let mut limited = job(size);
    for row in limited.validity.iter_mut().filter(|row| row.users == 16) {
        row.outcome = Validity::HostLimited;
    }
    let job = entry(("paper/x3", "x3.sqlite"), &limited, &FullSize::default(), None);
    let failed =
        missing("paper/x2", "A second test", "What else?", "not run here: no server".into());
    let blocks = rate_curves(size);
    let blocks = entry(("paper/x4", "x4.sqlite"), &blocks, &FullSize::default(), None);
    Atlas::new(vec![done, failed, job, blocks])
}

/// The analysis as that of block loads, of whose rate curves points are published. That of the second design ends below 1 ms.
pub fn rate_curves(size: Size) -> Analysis {
    let mut blocks = analysis(size);
    blocks.workload.name = "block".into();
    let series = |metric: &str, design, printed, own| Published {
        database: String::new(),
        design,
        metric: metric.into(),
        users: vec![16],
        values: vec![printed],
        unit: String::new(),
        rungs: vec![Some(16)],
        ours: vec![own],
        given: false,
        experiment: "X4".into(),
        source: "an invented paper, figure 12".into(),
        note: String::new(),
    };
    blocks.published = vec![
        series("headline", 0, 160e3, Some(20e3)),
        series("headline", 1, 320e3, Some(45e3)),
        series("rate_at_1ms", 0, 120e3, Some(17e3)),
        series("rate_at_1ms", 1, 320e3, Some(38e3)),
        series("latency_at_peak_ns", 0, 5e6, Some(4e6)),
        series("latency_at_peak_ns", 1, 0.8e6, Some(2e6)),
    ];
    blocks
}

/// The analysis as that of a job: one published value per design, and one of its own.
fn job(size: Size) -> Analysis {
    let mut job = analysis(size);
    job.workload.is_job = true;
    let result = |design, printed, own| Published {
        database: String::new(),
        design,
        metric: "headline".into(),
        users: vec![16],
        values: vec![printed],
        unit: String::new(),
        rungs: vec![Some(16)],
        ours: vec![Some(own)],
        given: false,
        experiment: "X3".into(),
        source: "an invented paper, figure 11".into(),
        note: String::new(),
    };
    job.published = vec![result(0, 1_587.3, 2_900.0), result(1, 1_470.6, 2_500.0)];
    job
}

fn study() -> Study {
    Study {
        name: "example".into(),
        title: "Example: one database, two drives".into(),
        question:
            "Does an NVMe drive make the same PostgreSQL faster than a SATA drive, and by how much?"
                .into(),
        deviations: vec!["PostgreSQL takes the place of an invented database.".into()],
        scale: "1/16".into(),
        evidence: EvidenceKind::Emulated,
        seed: "20240501".into(),
        identity: "9f2c41d07ab3e6d5".repeat(4),
        started_wall_ns: 1_763_600_000_000_000_000,
        finished_wall_ns: Some(1_763_606_000_000_000_000),
        status: "finished".into(),
        sessions: 1,
        time_dilation: 1,
    }
}

fn verdict() -> Verdict {
    Verdict {
        headline: "NVMe makes 2.6 times as many new orders per minute as SATA at 16 users.".into(),
        answer: Answer::Winner,
        support: vec![
            "15,600 against 6,100 new orders per minute; the 95 % interval of the ratio is 2.4 to 2.7, from 5 pairs of runs.".into(),
            "SATA waits for reads of the data volume for 46 % of its time; NVMe is limited by the processors.".into(),
        ],
        support_aspects: vec![Aspect::HowMuch, Aspect::Why],
        confidence: Confidence::High,
        confidence_reasons: vec!["5 pairs of interleaved runs agree".into(), "the checks hold".into()],
        winner: Some(0),
        against: Some(1),
        ratio: Some(Ratio {
            value: 2.56,
            low: Some(2.4),
            high: Some(2.7),
            host_low: Some(2.3),
            host_high: Some(2.8),
        }),
        validity: Some(Validity::Valid),
        users: Some(16),
    }
}

/// The highest rung of NVMe is bounded, its others and those of SATA are valid.
fn validity() -> Vec<RungValidity> {
    let class = |class: &str, excess_ns: f64| ClassExcess {
        class: class.into(),
        ios_per_second: 1_200.0,
        modelled_mean_ns: Some(90_000.0),
        actual_mean_ns: Some(96_000.0),
        excess_per_transaction_ns: Some(excess_ns),
    };
    let row = |design: usize, users: u32, late: f64, reached: f64| {
        let outcome = if late > 0.05 { Validity::Bounded } else { Validity::Valid };
        RungValidity {
            design,
            users,
            outcome,
            text: format!("{}: a sentence about the host's share", outcome.as_str()),
            no_device: false,
            excess: vec![class("log", 12_000.0), class("read", 31_000.0), class("data-write", 0.0)],
            late_share: Some(late),
            early_share: Some(0.0),
            throughput: Some(HostFactors { low: 1.0, high: 1.0 / (1.0 - late) }),
            response: Some(HostFactors { low: 1.0 - late, high: 1.0 }),
            ceiling: (users == 16).then(|| Ceiling {
                source: "null-twin".into(),
                headline: Some(25_000.0),
                reached: Some(reached),
            }),
        }
    };
    let of = |(design, users): (usize, u32)| match (design, users) {
        (0, 16) => row(0, 16, 0.08, 0.62),
        _ => row(design, users, 0.02, 0.24),
    };
    (0..2).flat_map(|design| USERS.map(|users| (design, users))).map(of).collect()
}

fn designs() -> Vec<Design> {
    let design = |name: &str, title: &str, link: &str| Design {
        name: name.into(),
        title: title.into(),
        description:
            "A drive with power-loss protection; its numbers are fitted to published read data."
                .into(),
        of: name.into(),
        of_title: title.into(),
        coordinates: Vec::new(),
        evidence: EvidenceKind::Emulated,
        facts: vec![
            ("Link".into(), link.into()),
            ("Data volume".into(), "4 GiB, ext4".into()),
            ("WAL volume".into(), "2 GiB, ext4".into()),
        ],
    };
    vec![design("nvme", "NVMe drive", "3.9 GB/s"), design("sata", "SATA drive", "0.55 GB/s")]
}

fn comparisons() -> Vec<Comparison> {
    USERS
        .iter()
        .enumerate()
        .map(|(rung, users)| {
            let ratio = NOPM[1][rung] / NOPM[0][rung];
            Comparison {
                a: 0,
                b: 1,
                scope: Scope::Rung,
                users: Some(*users),
                metric: "headline".into(),
                ratio: Some(ratio),
                low: Some(ratio * 0.95),
                high: Some(ratio * 1.05),
                host_low: Some(ratio * 0.93),
                host_high: Some(ratio * 1.07),
                pairs: 5,
                method: RatioMethod::PairedLogRatio,
                p: Some(0.0004),
                p_adjusted: Some(0.002),
                p_permutation: Some(0.0625),
                p_equivalence: Some(1.0),
                published: None,
                published_given: false,
                repeats_needed: None,
                outcome: Outcome::Worse,
                text: format!(
                    "At {users} users SATA makes {:.0} % fewer new orders than NVMe.",
                    (1.0 - ratio) * 100.0
                ),
            }
        })
        .collect()
}

fn peaks() -> Vec<Peak> {
    (0..2)
        .map(|design| Peak {
            design,
            users: 16,
            headline: estimate(NOPM[design][4], 0.04, design as u64),
            exceeds_limit: None,
        })
        .collect()
}

fn bottlenecks() -> Vec<Bottleneck> {
    (0..2).flat_map(|design| USERS.iter().map(move |users| bottleneck(design, *users))).collect()
}

fn causal_check() -> CausalCheck {
    let around = |value: f64| Reaction { value, low: value - 0.08, high: value + 0.08 };
    let sensitivity = |resource: &str, share: f64| {
        let ratio = 1.0 / (1.0 - share / 6.0);
        Sensitivity {
            resource: resource.into(),
            periods: 3,
            throughput: around(share),
            p_adjusted: if share > 0.1 { 0.001 } else { 0.8 },
            p95: Some(around(share * 1.1)),
            what_if: Some(WhatIf {
                predicted: around(ratio),
                measured: (resource != "client").then(|| around(ratio - 0.01)),
            }),
        }
    };
    CausalCheck {
        design: 1,
        users: *USERS.last().expect("there are rungs"),
        run: 1,
        factor: 2.0,
        period_s: 0.75,
        resources: vec![
            sensitivity("data-read", 0.52),
            sensitivity("log", 0.2),
            sensitivity("client", 0.03),
            sensitivity("data-write", 0.01),
        ],
        not_perturbed: vec![NotPerturbed {
            resource: "cpu".into(),
            reason: "the server has no control group with a CPU limit on this host".into(),
        }],
        class: Some("data-read".into()),
        tied: Vec::new(),
        agreement: Agreement::Confirmed,
        named: vec!["data-read".into()],
        sentence:
            "confirmed by experiment: throughput falls 0.52 % [0.44, 0.6] per 1 % slower data reads"
                .into(),
    }
}

fn bottleneck(design: usize, users: u32) -> Bottleneck {
    const CLASSES: [TimeClass; 10] = [
        TimeClass::Driver,
        TimeClass::Client,
        TimeClass::Cpu,
        TimeClass::RunQueue,
        TimeClass::Log,
        TimeClass::DataRead,
        TimeClass::DataWrite,
        TimeClass::Lock,
        TimeClass::Latch,
        TimeClass::Other,
    ];
    const SHARES: [[f64; 10]; 2] = [
        [0.05, 0.04, 0.42, 0.12, 0.14, 0.1, 0.03, 0.06, 0.02, 0.02],
        [0.02, 0.02, 0.16, 0.03, 0.21, 0.46, 0.05, 0.03, 0.01, 0.01],
    ];
    let part = |class: TimeClass, share: f64| BudgetPart {
        class,
        sessions: share * f64::from(users),
        share,
        per_transaction_ns: Some(share * [9e6, 22e6][design]),
    };
    let mut budget: Vec<BudgetPart> =
        CLASSES.into_iter().zip(SHARES[design]).map(|(class, share)| part(class, share)).collect();
    budget.sort_by(|a, b| b.share.total_cmp(&a.share));
    let gate = |id: &str, title: &str, state, text: &str| Gate {
        id: id.into(),
        title: title.into(),
        state,
        text: text.into(),
    };
    Bottleneck {
        design,
        users,
        class: ["cpu", "data-read"][design].into(),
        sentence: [
            "Processors limit it: 54 % of the session time is on a processor or waiting for one.",
            "Reads of the data volume limit it: sessions spend 46 % of their time waiting for them.",
        ][design].into(),
        mode: [LimitMode::Capacity, LimitMode::Latency][design],
        confidence: [Confidence::Medium, Confidence::High][design],
        budget,
        closure: Some(0.98),
        lock_holders: vec![part(TimeClass::DataRead, 0.7), part(TimeClass::Cpu, 0.3)],
        ruled_out: vec![
            RuledOut { class: "load-generator".into(), reason: "it used 5 % of one processor".into() },
            RuledOut { class: "lock".into(), reason: "3 % of the session time".into() },
        ],
        gates: vec![
            gate("G1", "Little's law holds", GateState::Passed, "0.4 % off, limit 3 %"),
            gate("G4", "few gaps in the samples", GateState::Soft, "1.2 % missing, limit 1 %"),
            gate("G5", "no interference", GateState::Failed, "steal 2.3 %, limit 1 %"),
            gate("G7", "bytes agree", GateState::NotJudged, "no counters"),
        ],
    }
}

fn checks(runs: usize) -> Vec<Check> {
    let mut checks = Vec::new();
    for run in 0..runs {
        for moment in ["before", "after"] {
            for condition in 1..=12 {
                let broken = run == 3 && moment == "after" && condition == 5;
                checks.push(Check {
                    run,
                    moment: moment.into(),
                    id: format!("C{condition}"),
                    title: format!("condition {condition} of clause 3.3.2"),
                    outcome: if broken { "violated" } else { "ok" }.into(),
                    rows: broken.then_some(12),
                    detail: broken
                        .then(|| "warehouse 3, district 7: 31 open orders, 30 rows".into()),
                });
            }
        }
    }
    checks
}

fn findings() -> Vec<Finding> {
    let finding = |severity, code: &str, text: &str| Finding {
        severity,
        code: code.into(),
        text: text.into(),
        design: None,
        run: None,
        users: None,
    };
    vec![
        Finding {
            run: Some(3),
            ..finding(
                FindingSeverity::Invalid,
                "check-violated",
                "Condition C5 does not hold after the run.",
            )
        },
        Finding {
            design: Some(1),
            users: Some(16),
            ..finding(
                FindingSeverity::Warning,
                "not-steady",
                "Throughput drifted by 4.1 % over the measured window.",
            )
        },
        finding(
            FindingSeverity::Information,
            "working-set",
            "The data is 2.1 times as large as the cache.",
        ),
    ]
}

fn confounds() -> Vec<Confound> {
    let confound = |path: &str, values: [Option<&str>; 2], asked| Confound {
        path: path.into(),
        values: values.map(|value| value.map(str::to_string)).into(),
        asked,
    };
    vec![
        confound(
            "design.datastore.emulated.devices.0.profile.link.read-bytes-per-second",
            [Some("3.9 GB/s"), Some("0.55 GB/s")],
            true,
        ),
        confound("engine.settings.wal_compression", [Some("lz4"), None], false),
    ]
}

fn settings() -> Vec<Setting> {
    (0..120)
        .map(|index| Setting {
            group: ["plan", "engine", "host"][index % 3].into(),
            path: format!(
                "{}.{index}",
                ["procedure.measure", "settings.shared_buffers", "memory_bytes"][index % 3]
            ),
            value: ["60 s", "128MB", "8589934592"][index % 3].into(),
            origin: ["example.toml:12", "in force", "default"][index % 3].into(),
            design: (index % 7 == 0).then_some(1),
        })
        .collect()
}

fn sources() -> Vec<Source> {
    let source = |name: &str, layer: &str, status: &str, reason: Option<&str>| Source {
        run: 0,
        name: name.into(),
        layer: layer.into(),
        status: status.into(),
        reason: reason.map(str::to_string),
        series: 12,
        ticks: 420,
        longest_gap_s: Some(1.1),
    };
    vec![
        source("host_cpu", "host", "available", None),
        source("pressure", "host", "absent", Some("this kernel has no pressure stall information")),
        source("postgres", "database", "degraded", Some("pg_stat_io exists from version 16 on")),
    ]
}

fn emulation(runs: usize) -> Vec<Emulation> {
    (0..runs)
        .map(|run| Emulation {
            run,
            valid: Some(run != 2),
            reason: (run == 2).then(|| "lateness p99 is 14 % of the modelled latency".into()),
            host_limited_share: Some(0.004),
            modelled_p50_ns: Some(90_000),
            modelled_p99_ns: Some(400_000),
            lateness_p50_ns: Some(3_000),
            lateness_p99_ns: Some(if run == 2 { 56_000 } else { 21_000 }),
        })
        .collect()
}

fn published() -> Vec<Published> {
    let series = |design, values: [f64; 4]| Published {
        database: String::new(),
        design,
        metric: "tpm".into(),
        users: vec![1, 8, 21, 89],
        values: values.into(),
        unit: String::new(),
        rungs: vec![Some(1), Some(8), Some(21), None],
        ours: vec![Some(20e3), Some(120e3), Some(180e3), None],
        given: false,
        experiment: String::new(),
        source: "an invented paper, figure 1".into(),
        note: "other hosts".into(),
    };
    vec![series(0, [42e3, 372e3, 698e3, 1463e3]), series(1, [13e3, 168e3, 394e3, 738e3])]
}

fn method() -> Method {
    let metric = |name: &str, title: &str, unit: &str| Metric {
        name: name.into(),
        title: title.into(),
        unit: unit.into(),
        better: Direction::Higher,
        definition: "counted in the measured window".into(),
    };
    Method {
        metrics: vec![
            metric("headline", "New orders per minute", "1/min"),
            metric("tpm", "Transactions per minute", "1/min"),
            metric("tpm_per_user", "TPM per user", "1/min"),
            metric("cpu_idle", "CPU idle", "share"),
            metric("server_cores", "CPU of the server", "cores"),
            metric("read_iops", "Reads", "1/s"),
            metric("write_iops", "Writes", "1/s"),
            metric("read_bytes_per_second", "Read", "bytes/s"),
            metric("read_latency_ns", "Read latency, block layer", "ns"),
        ],
        definitions: vec![("NOPM".into(), "committed new-order transactions per minute".into())],
        disclaimer:
            "The workload is derived from TPC-C and not comparable with published TPC results."
                .into(),
        deviations: vec!["Keying and think times are left out.".into()],
    }
}
