//! Whether time dilation changes answers: one study on a device that this host can emulate in real time, at the factors
//! 1, 2, 4, 8, in every second round backwards: throughput, p95 and the budget of the sessions' time. Limited by storage, or
//! by half a processor.
//!
//! Runs the program itself, so `underlay` must be built in the same profile. Needs root and the engine's programs.
//!
//! `cargo run --release -p underlay --example time_dilation -- [--engine postgresql|mariadb] [--limit storage|cpu]
//! [--rounds N] [--measure SECONDS] [--json FILE]`

use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const FACTORS: [u32; 4] = [1, 2, 4, 8];
/// Two intervals between PostgreSQL's checkpoints: every window sees as many.
const MEASURE_S: u32 = 60;
/// Classes of time below this share of the budget are left out.
const SHOWN: f64 = 0.01;

type Failure = Box<dyn Error>;

/// What limits a study.
struct Limit {
    memory: &'static str,
    /// Of the server's own cache.
    cache: &'static str,
    cpus: &'static str,
    /// Part of a SATA SSD.
    divisor: u32,
}

/// Pages that do not fit memory, on a sixteenth of a SATA SSD.
const STORAGE: Limit = Limit { memory: "384MiB", cache: "32", cpus: "", divisor: 16 };
/// Everything in memory, and half a processor.
const CPU: Limit = Limit { memory: "1GiB", cache: "512", cpus: "cpus = 0.5", divisor: 1 };

/// Four users.
const STUDY: &str = r#"
name = "time-dilation"
question = "Does time dilation change answers?"

[engine]
kind = "ENGINE"
memory-limit = "MEMORY"
CPUS

[engine.settings]
SETTINGS

[volumes]
data = { capacity = "2GiB" }
wal = { capacity = "1GiB" }
backup = { capacity = "512MiB" }

[[design]]
use = "kingston-sata-5200eco"
name = "sata"

[design.datastore.emulated]
devices = [{ name = "sata", profile = "5200eco-1920", overrides = { divisor = DIVISOR } }]

[workload.tpcc]
warehouses = 4

[procedure]
users = [4]
warm-up = "4s"
ramp-up = "1s"
repeats = 1
"#;

struct Options {
    engine: String,
    limit: Limit,
    rounds: usize,
    measure_s: u32,
    json: Option<PathBuf>,
}

/// One run.
struct Run {
    factor: u32,
    nopm: f64,
    p95_ms: f64,
    /// Class of time and its share.
    budget: Vec<(String, f64)>,
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let folder = tempfile::tempdir()?;
    let study = study(&options);
    let path = folder.path().join("study.toml");
    std::fs::write(&path, study)?;
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        let mut factors = FACTORS;
        if round % 2 == 1 {
            factors.reverse();
        }
        for factor in factors {
            let record = folder.path().join(format!("{round}-{factor}.sqlite"));
            let run = measure(&path, &record, factor, options.measure_s)?;
            println!(
                "factor {factor}: {:.0} NOPM, p95 {:.1} ms, {}",
                run.nopm,
                run.p95_ms,
                words(&run.budget)
            );
            runs.push(run);
        }
    }
    let rows = FACTORS.map(|factor| row(&runs, factor));
    println!("\n{}, means of {} rounds, and ratios to factor 1", options.engine, options.rounds);
    for row in &rows {
        println!(
            "factor {}: {:.0} NOPM ({:.2} x), p95 {:.1} ms ({:.2} x), {}",
            row.factor,
            row.nopm,
            row.nopm / rows[0].nopm,
            row.p95_ms,
            row.p95_ms / rows[0].p95_ms,
            words(&row.budget)
        );
    }
    if let Some(file) = options.json {
        let rows: Vec<Value> = rows.iter().map(as_json).collect();
        let all: Vec<Value> = runs.iter().map(as_json).collect();
        let result = json!({ "engine": options.engine, "factors": rows, "runs": all });
        std::fs::write(file, serde_json::to_string_pretty(&result)?)?;
    }
    Ok(())
}

fn study(options: &Options) -> String {
    let Limit { memory, cache, cpus, divisor } = options.limit;
    let settings = match options.engine.as_str() {
        "mariadb" => format!("innodb_buffer_pool_size = \"{cache}M\""),
        _ => format!(
            "shared_buffers = \"{cache}MB\"\ncheckpoint_timeout = \"30s\"\nmax_wal_size = \"640MB\""
        ),
    };
    STUDY
        .replace("ENGINE", &options.engine)
        .replace("SETTINGS", &settings)
        .replace("MEMORY", memory)
        .replace("CPUS", cpus)
        .replace("DIVISOR", &divisor.to_string())
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        engine: "postgresql".to_string(),
        limit: STORAGE,
        rounds: 1,
        measure_s: MEASURE_S,
        json: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--engine" => options.engine = value,
            "--limit" => {
                options.limit = match value.as_str() {
                    "storage" => STORAGE,
                    "cpu" => CPU,
                    other => return Err(format!("no study is limited by {other}").into()),
                }
            }
            "--rounds" => options.rounds = value.parse()?,
            "--measure" => options.measure_s = value.parse()?,
            "--json" => options.json = Some(value.into()),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

/// The program beside this example's folder.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let profile = own.parent().and_then(Path::parent).ok_or("no folder of the profile")?;
    Ok(profile.join("underlay"))
}

fn measure(study: &Path, record: &Path, factor: u32, measure_s: u32) -> Result<Run, Failure> {
    let output = Command::new(program()?)
        .arg("run")
        .arg(study)
        .args(["--no-progress", "--json", "--time-dilation", &factor.to_string()])
        .args(["--measure", &format!("{measure_s}s")])
        .arg("--out")
        .arg(record)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let analysis: Value = serde_json::from_slice(&output.stdout)?;
    let rung = &analysis["rungs"][0];
    let mut latencies = rung["latencies"].as_array().ok_or("no latencies")?.iter();
    let new_order = latencies.find(|row| row["transaction"] == "new_order").ok_or("no orders")?;
    let budget = analysis["bottlenecks"][0]["budget"].as_array().ok_or("no budget")?;
    Ok(Run {
        factor,
        nopm: rung["metrics"]["headline"]["value"].as_f64().ok_or("no headline")?,
        p95_ms: new_order["p95"]["value"].as_f64().ok_or("no p95")? / 1e6,
        budget: budget
            .iter()
            .filter_map(|part| Some((part["class"].as_str()?.to_string(), part["share"].as_f64()?)))
            .collect(),
    })
}

/// The mean of the runs at a factor.
fn row(runs: &[Run], factor: u32) -> Run {
    let of_factor: Vec<&Run> = runs.iter().filter(|run| run.factor == factor).collect();
    let count = of_factor.len().max(1) as f64;
    let mean =
        |value: &dyn Fn(&Run) -> f64| of_factor.iter().map(|run| value(run)).sum::<f64>() / count;
    let classes = of_factor.first().map_or(&[][..], |run| &run.budget);
    let share = |class: &str, run: &Run| {
        run.budget.iter().find(|(name, _)| name == class).map_or(0.0, |(_, share)| *share)
    };
    Run {
        factor,
        nopm: mean(&|run| run.nopm),
        p95_ms: mean(&|run| run.p95_ms),
        budget: classes
            .iter()
            .map(|(class, _)| (class.clone(), mean(&|run| share(class, run))))
            .collect(),
    }
}

fn words(budget: &[(String, f64)]) -> String {
    let shown = budget.iter().filter(|(_, share)| *share >= SHOWN);
    let parts: Vec<String> =
        shown.map(|(class, share)| format!("{class} {:.0} %", share * 100.0)).collect();
    parts.join(", ")
}

fn as_json(run: &Run) -> Value {
    let budget: Value =
        run.budget.iter().map(|(class, share)| (class.clone(), json!(share))).collect();
    json!({ "factor": run.factor, "nopm": run.nopm, "p95_ms": run.p95_ms, "budget": budget })
}
