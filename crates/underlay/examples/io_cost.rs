//! What a request of `underlay io` costs and shows, beside fio with io_uring on the same file, in turn (A B B A).
//!
//! Random 4 KiB reads with direct I/O at queue depths 1 and 32: requests per second, processor time per request,
//! and percentiles of a closed loop. Then a target that is frozen for 4 of 20 seconds under 1,000 requests per
//! second: what each of the two says its 99th percentile was (needs root; skipped with a word otherwise).
//!
//! `cargo run --release -p underlay --example io_cost -- [--file FILE] [--seconds N] [--rounds N] [--json FILE]
//! [--frozen SECONDS]`

use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use underlay_blockio::Target;
use underlay_blockio::load::{LoadJob, LoadSpec, OnError, run_load, write_all};
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_study::find_io_profile;
use underlay_workload::block::{Concurrency, Content, ContentSpec, Pace};

const SIZE: Bytes = Bytes::from_mib(1024);
const DEPTHS: [u32; 2] = [1, 32];
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
const WARM_UP: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error>;

/// One measurement of one of the two.
struct Run {
    iops: f64,
    /// Processor time per request, ns.
    processor: f64,
    /// In the order of [`QUANTILES`], ns.
    quantiles: Vec<f64>,
}

fn main() -> Result<(), Failure> {
    let installed = Command::new("fio").arg("--version").output().is_ok();
    if !installed {
        eprintln!("skip: fio is not installed, there is nothing to compare with");
        return Ok(());
    }
    let seconds: u64 = argument("--seconds").map_or(Ok(5), |text| text.parse())?;
    let rounds: usize = argument("--rounds").map_or(Ok(2), |text| text.parse())?;
    let frozen: u64 = argument("--frozen").map_or(Ok(20), |text| text.parse())?;
    let given = argument("--file").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("underlay-io-cost-{}", std::process::id()));
    let path = given.clone().unwrap_or_else(|| own.clone());
    let outcome = compare(&path, given.is_none(), seconds, rounds);
    if given.is_none() {
        let _ = std::fs::remove_file(&own);
    }
    let mut result = json!({ "depths": outcome? });
    if frozen > 0 {
        result["frozen"] = frozen_target(frozen)?;
    }
    if let Some(path) = argument("--json") {
        std::fs::write(path, format!("{result:#}"))?;
    }
    Ok(())
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next()?;
    arguments.next()
}

fn compare(path: &Path, create: bool, seconds: u64, rounds: usize) -> Result<Vec<Value>, Failure> {
    if create {
        let target = Target::create(path, SIZE)?;
        let content = Content::new(ContentSpec::NOISE, RootSeed(1))?;
        write_all(&target, SIZE, &content, 1, None, &mut |_| true)?;
    }
    println!(
        "{:>5}  {:>10} {:>10} {:>6}   {:>9} {:>9} {:>6}   ratios of p50, p90, p99, p99.9",
        "depth", "io /s", "fio /s", "ratio", "io CPU", "fio CPU", "ratio"
    );
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(our_run(path, depth, seconds)?);
            theirs.push(fio_run(path, depth, seconds)?);
            theirs.push(fio_run(path, depth, seconds)?);
            ours.push(our_run(path, depth, seconds)?);
        }
        let ratio = |of: &dyn Fn(&Run) -> f64| median(&ours, of) / median(&theirs, of);
        let quantiles: Vec<f64> =
            (0..QUANTILES.len()).map(|place| ratio(&|run| run.quantiles[place])).collect();
        let (iops, processor) = (ratio(&|run| run.iops), ratio(&|run| run.processor));
        println!(
            "{depth:>5}  {:>10.0} {:>10.0} {iops:>6.3}   {:>6.0} ns {:>6.0} ns {processor:>6.3}   {}",
            median(&ours, &|run| run.iops),
            median(&theirs, &|run| run.iops),
            median(&ours, &|run| run.processor),
            median(&theirs, &|run| run.processor),
            quantiles.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ")
        );
        let all = |runs: &[Run]| {
            let one = |run: &Run| json!({ "iops": run.iops, "processor_ns": run.processor, "quantiles_ns": run.quantiles });
            runs.iter().map(one).collect::<Vec<_>>()
        };
        rows.push(json!({
            "queue_depth": depth,
            "iops_ratio": iops,
            "processor_ratio": processor,
            "quantiles": QUANTILES.map(|(name, _)| name),
            "quantile_ratios": quantiles,
            "underlay": all(&ours),
            "fio": all(&theirs),
        }));
    }
    Ok(rows)
}

fn median(runs: &[Run], of: &dyn Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

fn our_run(path: &Path, depth: u32, seconds: u64) -> Result<Run, Failure> {
    let target = Target::open(path)?;
    let workload = find_io_profile("4k-random-read").ok_or("built in")?.merged();
    let job = LoadJob {
        target: 0,
        name: "all".to_string(),
        workload: &workload,
        working_set: target.size().min(SIZE),
        concurrency: Concurrency { threads: 1, queue_depth: depth },
        pace: Pace::CLOSED,
    };
    let spec = LoadSpec {
        targets: vec![&target],
        verifiers: &[],
        jobs: vec![job],
        content: Content::new(ContentSpec::NOISE, RootSeed(1))?,
        dilation: Dilation::NONE,
        warm_up: WARM_UP,
        measure: Duration::from_secs(seconds),
        seed: RootSeed(2),
        workers_max: 1,
        on_error: OnError::Stop,
        spin: Duration::ZERO,
        gauge: None,
    };
    let result = run_load(&spec, &mut |_| {}, &mut || false)?;
    let all = result.total(|_| true);
    let quantile = |(_, at): &(&str, f64)| all.response.quantile(*at).unwrap_or(0) as f64;
    Ok(Run {
        iops: result.iops(),
        processor: result.cost.processor.0 as f64 / all.in_window as f64,
        quantiles: QUANTILES.iter().map(quantile).collect(),
    })
}

fn fio(arguments: &[String]) -> Result<Value, Failure> {
    let output = Command::new("fio").args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.find('{').ok_or_else(|| {
        format!("fio said no JSON: {text}{}", String::from_utf8_lossy(&output.stderr))
    })?;
    let parsed: Value = serde_json::from_str(&text[begin..])?;
    Ok(parsed["jobs"][0].clone())
}

fn fio_arguments(path: &Path, seconds: u64) -> Vec<String> {
    let fixed = [
        "--name=peer",
        "--rw=randread",
        "--bs=4k",
        "--ioengine=io_uring",
        "--direct=1",
        "--time_based",
        "--norandommap",
        "--randrepeat=0",
        "--lat_percentiles=1",
        "--percentile_list=50:90:99:99.9",
        "--output-format=json",
    ];
    let mut arguments: Vec<String> = fixed.map(str::to_string).to_vec();
    arguments.push(format!("--filename={}", path.display()));
    arguments.push(format!("--runtime={seconds}"));
    arguments
}

fn fio_run(path: &Path, depth: u32, seconds: u64) -> Result<Run, Failure> {
    let mut arguments = fio_arguments(path, seconds);
    arguments.push(format!("--iodepth={depth}"));
    arguments.push(format!("--size={}", SIZE.0));
    arguments.push(format!("--ramp_time={}ms", WARM_UP.as_millis()));
    let job = fio(&arguments)?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let read = &job["read"];
    let percentile = |place: &str| number(&read["lat_ns"]["percentile"][place]);
    // In percent of one processor over the measured time.
    let busy = number(&job["usr_cpu"]) + number(&job["sys_cpu"]);
    let runtime_ns = number(&read["runtime"]) * 1e6;
    Ok(Run {
        iops: number(&read["iops"]),
        processor: busy / 100.0 * runtime_ns / number(&read["total_ios"]),
        quantiles: ["50.000000", "90.000000", "99.000000", "99.900000"].map(percentile).to_vec(),
    })
}

/// A fifth of the time nothing is answered: an emulated device that is stuck.
fn frozen_target(seconds: u64) -> Result<Value, Failure> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 || !Path::new("/dev/fuse").exists() {
        eprintln!("skip: freezing a target needs root and /dev/fuse");
        return Ok(Value::Null);
    }
    let program = std::env::current_exe()?;
    let folder =
        program.parent().and_then(Path::parent).ok_or("examples lie below the programs")?;
    let store = Store {
        program: folder.join("underlay"),
        directory: std::env::temp_dir().join(format!("underlay-io-frozen-{}", std::process::id())),
    };
    let created =
        store.volume("create", &["data", "--size", "1GiB", "--device", "dc1500m-960", "--json"])?;
    let device = created["link"].as_str().ok_or("no device")?.to_string();
    let mut row =
        json!({ "seconds": seconds, "frozen_seconds": seconds / 5, "rate_per_second": 1000 });
    let time = format!("{seconds}s");
    let ours = [
        "io",
        "4k-random-read",
        &device,
        "--rate",
        "1000",
        "--duration",
        &time,
        "--warm-up",
        "0s",
        "--json",
    ];
    let ours = store.frozen(Command::new(&store.program).args(ours), seconds)?;
    let response = &ours["result"]["all"]["response_ns"];
    row["underlay_p99_ns"] = response["p99"].clone();
    let mut arguments = fio_arguments(Path::new(&device), seconds);
    arguments.extend(["--iodepth=128", "--rate_iops=1000"].map(str::to_string));
    let job = store.frozen(Command::new("fio").args(&arguments), seconds)?;
    row["fio_p99_ns"] = job["jobs"][0]["read"]["lat_ns"]["percentile"]["99.000000"].clone();
    let shown = |value: &Value| value.as_f64().map_or(f64::NAN, |ns| ns / 1e6);
    println!(
        "frozen for {} of {seconds} s at 1,000 per second: p99 {:.1} ms; fio says {:.1} ms",
        seconds / 5,
        shown(&row["underlay_p99_ns"]),
        shown(&row["fio_p99_ns"])
    );
    Ok(row)
}

/// An emulated datastore of this example.
struct Store {
    program: PathBuf,
    directory: PathBuf,
}

impl Store {
    fn volume(&self, command: &str, arguments: &[&str]) -> Result<Value, Failure> {
        let mut program = Command::new(&self.program);
        program.args(["volume", command]).arg(&self.directory).args(arguments);
        let output = program.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("underlay volume {command}: {said}").into());
        }
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// Runs a load, and freezes the device for a fifth of it after two fifths.
    fn frozen(&self, load: &mut Command, seconds: u64) -> Result<Value, Failure> {
        let fifth = Duration::from_millis(seconds * 200);
        let child = load.stdout(std::process::Stdio::piped()).spawn()?;
        std::thread::sleep(fifth * 2);
        self.volume("fault", &["stuck", "dc1500m-960"])?;
        std::thread::sleep(fifth);
        self.volume("fault", &["mend", "dc1500m-960"])?;
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let begin = text.find('{').ok_or("no JSON")?;
        Ok(serde_json::from_str(&text[begin..])?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.volume("stop", &["--force"]);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
