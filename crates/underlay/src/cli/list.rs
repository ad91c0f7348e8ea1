//! `underlay list`: built-in studies, designs, devices, workloads, block loads and engines.

use crate::lab::installs;
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use underlay_core::Nanos;
use underlay_study::{
    Builtin, EngineKind, HostView, Plan, PlanOptions, StudySize, builtin_designs, builtin_devices,
    builtin_io_profiles, builtin_studies, check,
};

/// Arguments of `underlay list`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this kind.
    #[arg(value_enum)]
    kind: Option<Kind>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Studies,
    Designs,
    Devices,
    Workloads,
    IoProfiles,
    Engines,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Studies,
        Kind::Designs,
        Kind::Devices,
        Kind::Workloads,
        Kind::IoProfiles,
        Kind::Engines,
    ];

    const fn word(self) -> &'static str {
        match self {
            Kind::Studies => "studies",
            Kind::Designs => "designs",
            Kind::Devices => "devices",
            Kind::Workloads => "workloads",
            Kind::IoProfiles => "io-profiles",
            Kind::Engines => "engines",
        }
    }

    /// Name and title of each.
    fn entries(self) -> Vec<(String, String)> {
        let titles = |list: &[Builtin]| {
            list.iter().map(|builtin| (builtin.name.clone(), builtin.title.clone())).collect()
        };
        match self {
            Kind::Studies => titles(builtin_studies()),
            Kind::Designs => titles(builtin_designs()),
            Kind::Devices => titles(builtin_devices()),
            Kind::Workloads => WORKLOADS
                .iter()
                .map(|(name, title)| (name.to_string(), title.to_string()))
                .collect(),
            Kind::IoProfiles => titles(builtin_io_profiles()),
            Kind::Engines => EngineKind::ALL
                .into_iter()
                .map(|kind| {
                    let found: Vec<String> = installs(kind, None)
                        .iter()
                        .map(|install| {
                            format!("{} in {}", install.version(), install.bin_dir().display())
                        })
                        .collect();
                    let found = match found.is_empty() {
                        true => "none found on this host".to_string(),
                        false => found.join(", "),
                    };
                    let versions = match kind {
                        EngineKind::Postgresql => "13 to 18",
                        EngineKind::Mariadb => "10.6 and newer",
                        EngineKind::Mysql => "8 and newer",
                    };
                    let title = format!("{} {versions}; here: {found}", kind.title());
                    (kind.as_str().to_string(), title)
                })
                .collect(),
        }
    }
}

/// `[workload.NAME]` of a study; also `underlay drive NAME`, but for block loads, which have `underlay io`, and backups.
pub(super) const WORKLOADS: [(&str, &str); 7] = [
    ("tpcc", "Order entry, derived from TPC-C; not comparable with published TPC results"),
    ("sysbench", "Sysbench's OLTP scripts, on tables compatible with sysbench"),
    ("dvdstore", "A web shop after DVD Store 3: browsing, reviews, purchases"),
    ("batch", "Batch insertion: rows per transaction, or COPY and LOAD DATA"),
    (
        "warehouse",
        "Decision support, derived from TPC-H; not comparable with published TPC-H results",
    ),
    ("block", "A block load on the volumes, without a database; `underlay list io-profiles`"),
    ("backup", "Backup and restore cycles by the engine's own programs; in studies only"),
];

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let kinds: Vec<Kind> = arguments.kind.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind]);
    let is_alone = kinds.len() == 1;
    if arguments.json {
        let listed: serde_json::Map<String, Value> = kinds
            .iter()
            .map(|kind| {
                let entries: Vec<Value> = match kind {
                    Kind::Studies => builtin_studies().iter().map(study_json).collect(),
                    _ => kind
                        .entries()
                        .into_iter()
                        .map(|(name, title)| json!({ "name": name, "title": title }))
                        .collect(),
                };
                (kind.word().to_string(), Value::from(entries))
            })
            .collect();
        outln!("{:#}", Value::from(listed));
        return Ok(());
    }
    for kind in kinds {
        outln!("{}", kind.word());
        let entries = kind.entries();
        let widest = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, title) in entries {
            outln!("  {name:widest$}  {title}");
            // Of one kind there is room to say more.
            let study = builtin_studies().iter().find(|study| study.name == name);
            if let Some(study) = study.filter(|_| is_alone && kind == Kind::Studies) {
                for line in details(&Facts::of(study)) {
                    outln!("  {:widest$}  {line}", "");
                }
            }
        }
    }
    Ok(())
}

/// What a study asks, which kinds of evidence it gives, and how long it takes.
struct Facts {
    question: String,
    evidence: Vec<&'static str>,
    duration: Option<Nanos>,
    /// None when it has no laptop size.
    laptop: Option<Nanos>,
}

impl Facts {
    fn of(study: &Builtin) -> Facts {
        let planned = |size: Option<StudySize>, host: HostView<'_>| -> Option<Plan> {
            let options = PlanOptions { size, ..PlanOptions::default() };
            check(&study.source(), &options, &host).ok().map(|(_, plan)| plan)
        };
        let full = planned(None, HostView::unlimited());
        let laptop = planned(Some(StudySize::Laptop), HostView::laptop());
        let mut evidence: Vec<&'static str> = Vec::new();
        for design in full.iter().flat_map(|plan| &plan.designs) {
            if !evidence.contains(&design.evidence.as_str()) {
                evidence.push(design.evidence.as_str());
            }
        }
        if full.as_ref().is_some_and(|plan| plan.workload.kind.block().is_some()) {
            // By `underlay run --simulate`.
            evidence.push("simulated");
        }
        Facts {
            question: full.as_ref().map(|plan| plan.question.clone()).unwrap_or_default(),
            evidence,
            duration: full.map(|plan| plan.estimates.duration),
            laptop: laptop.map(|plan| plan.estimates.duration),
        }
    }
}

fn details(facts: &Facts) -> Vec<String> {
    let full = facts.duration.map_or_else(|| "unknown".to_string(), |time| time.to_string());
    let laptop = facts.laptop.map_or_else(String::new, |time| format!(", on a laptop {time}"));
    vec![facts.question.clone(), format!("{}; about {full}{laptop}", facts.evidence.join(" or "))]
}

fn study_json(study: &Builtin) -> Value {
    let facts = Facts::of(study);
    json!({
        "name": study.name,
        "title": study.title,
        "question": facts.question,
        "evidence": facts.evidence,
        "duration_ns": facts.duration.map(|time| time.0),
        "laptop_duration_ns": facts.laptop.map(|time| time.0),
    })
}
