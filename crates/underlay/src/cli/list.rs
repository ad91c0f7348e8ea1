//! `underlay list`: built-in studies, designs, devices, workloads, block loads and engines.

use crate::lab::installs;
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use underlay_study::{
    Builtin, EngineKind, builtin_designs, builtin_devices, builtin_io_profiles, builtin_studies,
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
    if arguments.json {
        let listed: serde_json::Map<String, Value> = kinds
            .iter()
            .map(|kind| {
                let entries: Vec<Value> = kind
                    .entries()
                    .into_iter()
                    .map(|(name, title)| json!({ "name": name, "title": title }))
                    .collect();
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
        }
    }
    Ok(())
}
