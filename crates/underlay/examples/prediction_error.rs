//! How far predictions are from what is then measured: a study of three emulated designs and four rungs per workload and
//! engine. The first design is the record that `underlay predict` is given; the other two are predicted and compared with
//! their own measurement.
//!
//! Printed per rung: measured and predicted throughput and p95 of what the workload counts, and the class most of the
//! sessions' time went to.
//! The first design's rows show the plain simulation with the demands of the record. The sum is the median and the largest error.
//!
//! Runs the program itself, so `underlay` must be built in the same profile. Needs root and the engine's programs.
//!
//! `cargo run --release -p underlay --example prediction_error -- [--engine postgresql|mariadb]...
//! [--workload tpcc|sysbench|dvdstore]... [--repeats N] [--measure SECONDS] [--keep DIR] [--json FILE]`

use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

type Failure = Box<dyn Error>;

/// 0.9 GB of data over less memory, on parts of three devices that two processors can load.
const STUDY: &str = r#"
name = "prediction-error"
question = "How far are predictions from what is measured?"

[engine]
kind = "ENGINE"
memory-limit = "MEMORY"

[engine.settings]
SETTINGS

[volumes]
data = { capacity = "3GiB" }
wal = { capacity = "1536MiB" }
backup = { capacity = "1GiB" }

[[design]]
use = "kingston-nvme"
name = "nvme"

[design.datastore.emulated]
devices = [{ name = "nvme", profile = "dc1500m-960", overrides = { divisor = 16 } }]

[[design]]
use = "kingston-sata-5200eco"
name = "sata"

[design.datastore.emulated]
devices = [{ name = "sata", profile = "5200eco-1920", overrides = { divisor = 16 } }]

[[design]]
use = "kingston-sata-dc500m"
name = "quarter"

[design.datastore.emulated]
devices = [{ name = "quarter", profile = "dc500m-1920", overrides = { divisor = 4 } }]

WORKLOAD

[procedure]
users = [1, 4, 8, 16]
warm-up = "3s"
ramp-up = "1s"
null-twin = false
"#;
/// About 0.9 GB each.
const WORKLOADS: [(&str, &str); 3] = [
    ("tpcc", "[workload.tpcc]\nwarehouses = 8\nhome-warehouse = \"drawn\""),
    ("sysbench", "[workload.sysbench]\ntables = 8\ntable-size = 400_000"),
    ("dvdstore", "[workload.dvdstore]\ndb-size = \"20MB\""),
];
/// The design that is measured, and those that are predicted.
const MEASURED: &str = "nvme";
const PREDICTED: [&str; 2] = ["sata", "quarter"];

struct Options {
    engines: Vec<String>,
    workloads: Vec<String>,
    repeats: u32,
    measure_s: u32,
    keep: Option<PathBuf>,
    json: Option<PathBuf>,
}

/// A rung of a design: what was measured and what was predicted.
struct Point {
    engine: String,
    workload: String,
    design: String,
    users: u64,
    /// In the workload's unit, such as NOPM.
    throughput: [f64; 2],
    p95_ms: [f64; 2],
    /// The bottleneck: observed, simulated.
    bottleneck: [String; 2],
}

impl Point {
    fn error(pair: [f64; 2]) -> f64 {
        pair[1] / pair[0] - 1.0
    }

    /// Whether the record and the simulation name the same bottleneck; `None` where the record names none.
    fn is_same_bottleneck(&self) -> Option<bool> {
        let [observed, simulated] = &self.bottleneck;
        let resource = match observed.as_str() {
            "cpu" | "cpu-limit" | "cpu-starved" | "run-queue" => "processors",
            "log" | "log-behind-data" => "log writes",
            "data-read" => "page reads",
            "data-write" => "page writes",
            "lock" => "row locks",
            "client" | "driver" | "driver-limit" | "load-generator" => "client",
            "client-network" => "client network",
            "connections" => "connections",
            _ => return None,
        };
        Some(simulated.starts_with(resource))
    }

    fn as_json(&self) -> Value {
        json!({
            "engine": self.engine,
            "workload": self.workload,
            "design": self.design,
            "users": self.users,
            "is_predicted": self.design != MEASURED,
            "measured": { "throughput": self.throughput[0], "p95_ms": self.p95_ms[0], "bottleneck": self.bottleneck[0] },
            "is_same_bottleneck": self.is_same_bottleneck(),
            "predicted": { "throughput": self.throughput[1], "p95_ms": self.p95_ms[1], "bottleneck": self.bottleneck[1] },
        })
    }
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let scratch = tempfile::tempdir()?;
    let folder = options.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder)?;
    let mut points = Vec::new();
    for workload in &options.workloads {
        for engine in &options.engines {
            points.extend(of_engine(engine, workload, folder, &options)?);
        }
    }
    println!(
        "\nengine      workload  design   users   measured  predicted  error    p95 ms measured  predicted  error   bottleneck"
    );
    for point in &points {
        println!(
            "{:<11} {:<9} {:<8} {:>5} {:>10.0} {:>10.0} {:>+5.0} % {:>18.1} {:>10.1} {:>+5.0} %   {} / {}",
            point.engine,
            point.workload,
            point.design,
            point.users,
            point.throughput[0],
            point.throughput[1],
            100.0 * Point::error(point.throughput),
            point.p95_ms[0],
            point.p95_ms[1],
            100.0 * Point::error(point.p95_ms),
            point.bottleneck[0],
            point.bottleneck[1]
        );
    }
    for (what, is_predicted) in
        [("simulated with demands of the record", false), ("predicted", true)]
    {
        let of: Vec<&Point> =
            points.iter().filter(|point| (point.design != MEASURED) == is_predicted).collect();
        let errors = |pair: &dyn Fn(&Point) -> [f64; 2]| {
            let mut errors: Vec<f64> =
                of.iter().map(|point| Point::error(pair(point)).abs()).collect();
            errors.sort_by(f64::total_cmp);
            let last = errors.last().copied().unwrap_or(f64::NAN);
            (100.0 * median(&errors), 100.0 * last)
        };
        let (throughput, p95) = (errors(&|point| point.throughput), errors(&|point| point.p95_ms));
        println!(
            "{what}, {} points: throughput error {:.0} % median, {:.0} % at most; p95 {:.0} % median, {:.0} % at most",
            of.len(),
            throughput.0,
            throughput.1,
            p95.0,
            p95.1
        );
    }
    let predicted = points.iter().filter(|point| point.design != MEASURED);
    let named: Vec<bool> = predicted.filter_map(Point::is_same_bottleneck).collect();
    println!(
        "bottleneck of predicted points: {} of {} that the record names are the same",
        named.iter().filter(|is_same| **is_same).count(),
        named.len()
    );
    if let Some(file) = options.json {
        let all: Vec<Value> = points.iter().map(Point::as_json).collect();
        std::fs::write(file, serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        length => (sorted[(length - 1) / 2] + sorted[length / 2]) / 2.0,
    }
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        engines: Vec::new(),
        workloads: Vec::new(),
        repeats: 1,
        measure_s: 10,
        keep: None,
        json: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--engine" => options.engines.push(value),
            "--workload" => options.workloads.push(value),
            "--repeats" => options.repeats = value.parse()?,
            "--measure" => options.measure_s = value.parse()?,
            "--keep" => options.keep = Some(value.into()),
            "--json" => options.json = Some(value.into()),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    if options.engines.is_empty() {
        options.engines = vec!["postgresql".to_string(), "mariadb".to_string()];
    }
    if options.workloads.is_empty() {
        options.workloads = vec!["tpcc".to_string()];
    }
    Ok(options)
}

/// The output of the program, which is in the folder above this example's.
fn underlay(arguments: &[&str]) -> Result<Value, Failure> {
    let own = std::env::current_exe()?;
    let profile = own.parent().and_then(Path::parent).ok_or("no folder of the profile")?;
    let output = Command::new(profile.join("underlay")).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn of_engine(
    engine: &str,
    workload: &str,
    folder: &Path,
    options: &Options,
) -> Result<Vec<Point>, Failure> {
    let tables = WORKLOADS.iter().find(|(name, _)| *name == workload);
    let (_, tables) = tables.ok_or_else(|| format!("unknown workload {workload}"))?;
    // MariaDB's checks of 0.9 GB take more memory beside its buffer pool.
    let (memory, settings) = match engine {
        "mariadb" => ("512MiB", "innodb_buffer_pool_size = \"192M\""),
        _ => (
            "320MiB",
            "shared_buffers = \"96MB\"\ncheckpoint_timeout = \"30s\"\nmax_wal_size = \"1GB\"",
        ),
    };
    let study = folder.join(format!("{workload}-{engine}.toml"));
    let text = STUDY.replace("ENGINE", engine).replace("MEMORY", memory);
    std::fs::write(&study, text.replace("SETTINGS", settings).replace("WORKLOAD", tables))?;
    let record = folder.join(format!("{workload}-{engine}.sqlite"));
    let (study, record) = (study.to_string_lossy(), record.to_string_lossy());
    let repeats = options.repeats.to_string();
    let measure = format!("{}s", options.measure_s);
    let analysis = underlay(&[
        "run",
        &study,
        "--out",
        &record,
        "--no-progress",
        "--json",
        "--repeats",
        &repeats,
        "--measure",
        &measure,
    ])?;
    let mut arguments = vec!["predict", &record, "--json", "--measured", MEASURED];
    PREDICTED.iter().for_each(|design| arguments.extend(["--design", design]));
    let predicted = underlay(&arguments)?;
    let mut points = Vec::new();
    for rung in predicted["own"]["rungs"].as_array().ok_or("no rungs")? {
        let simulated = [&rung["simulated"], &rung["simulated_p95_ns"]];
        points.push(point([engine, workload, MEASURED], rung, simulated, &analysis)?);
    }
    for design in predicted["designs"].as_array().ok_or("no designs")? {
        let name = design["design"].as_str().ok_or("no name")?;
        for rung in design["rungs"].as_array().ok_or("no rungs")? {
            let values = [&rung["predicted"]["value"], &rung["p95_ns"]["value"]];
            points.push(point([engine, workload, name], rung, values, &analysis)?);
        }
    }
    Ok(points)
}

/// Sets what was predicted of a rung beside what was measured.
fn point(
    [engine, workload, design]: [&str; 3],
    rung: &Value,
    [throughput, p95_ns]: [&Value; 2],
    analysis: &Value,
) -> Result<Point, Failure> {
    let users = rung["users"].as_u64().ok_or("no users")?;
    let designs = analysis["designs"].as_array().ok_or("no designs")?;
    let number = designs.iter().position(|it| it["name"] == design).ok_or("an unknown design")?;
    let is_it = |it: &&Value| it["design"] == number && it["users"] == users;
    let list = |key: &str| analysis[key].as_array().map_or(&[][..], Vec::as_slice);
    let measured = list("rungs").iter().find(is_it).ok_or("a rung that was not measured")?;
    let latencies = measured["latencies"].as_array().ok_or("no latencies")?;
    let counted = &analysis["workload"]["types"][0];
    let counted = latencies.iter().find(|row| row["transaction"] == *counted);
    let counted = counted.ok_or("nothing that the workload counts")?;
    let observed = list("bottlenecks").iter().find(is_it);
    let observed = observed.and_then(|it| it["class"].as_str()).unwrap_or("none");
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("not a number: {value}"));
    Ok(Point {
        engine: engine.to_string(),
        workload: workload.to_string(),
        design: design.to_string(),
        users,
        throughput: [number(&measured["metrics"]["headline"]["value"])?, number(throughput)?],
        p95_ms: [number(&counted["p95"]["value"])? / 1e6, number(p95_ns)? / 1e6],
        bottleneck: [observed.to_string(), rung["bottleneck"].as_str().unwrap_or("").to_string()],
    })
}
