//! Running fio and reading what it found. fio is the judge: none of its numbers come from us.
//!
//! Percentiles are of the total latency (submission and completion): where submission completes inline,
//! completion latency alone means nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::cpu;
use super::site::Failure;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub file: &'a Path,
    pub size_mib: u64,
    /// `randread`, `randwrite`, `randrw` (70 % reads).
    pub pattern: &'a str,
    pub queue_depth: u32,
    pub seconds: u64,
    /// Processes whose CPU time is the server's.
    pub servers: &'a [u32],
}

/// The reads or the writes of a job.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub iops: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
}

/// What came out. Latencies are those of the reads where a job has reads, else those of the writes.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub reads: Side,
    pub writes: Side,
    /// Reads and writes.
    pub iops: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    /// CPU time per request: the load generator, the servers, the kernel's workers.
    pub cpu_us: [f64; 3],
    /// Share of the host's CPUs, 0..=1, that went to none of these: unrelated work and interrupts.
    pub unrelated: f64,
    /// CPU share of the host that was stolen, 0..=1 of all CPUs.
    pub steal: f64,
}

/// Mean of one figure over several turns.
pub fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

/// Fills the file, so that later runs touch nothing for the first time.
pub fn lay_out(file: &Path, size_mib: u64) -> Result<(), Failure> {
    let mut command = base(file, size_mib);
    command.args(["--rw=write", "--bs=1M", "--iodepth=4", "--end_fsync=1"]);
    run(command).map(drop)
}

/// Runs a job.
pub fn measure(job: &Job<'_>) -> Result<Outcome, Failure> {
    let mut command = base(job.file, job.size_mib);
    command.args([
        format!("--rw={}", job.pattern),
        "--bs=4k".to_string(),
        format!("--iodepth={}", job.queue_depth),
        format!("--runtime={}", job.seconds),
        "--time_based=1".to_string(),
        "--ramp_time=1".to_string(),
        "--norandommap=1".to_string(),
        "--randrepeat=0".to_string(),
        "--rwmixread=70".to_string(),
        "--lat_percentiles=1".to_string(),
        "--clat_percentiles=0".to_string(),
        "--percentile_list=50:99:99.9".to_string(),
    ]);
    let servers = || job.servers.iter().map(|pid| cpu::process_seconds(*pid)).sum::<f64>();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // The same span as fio's measured one, as well as can be seen from outside.
    std::thread::sleep(Duration::from_millis(1_300));
    let (server_begin, workers_begin) = (servers(), cpu::kernel_workers());
    let host_begin = cpu::host_seconds();
    std::thread::sleep(Duration::from_millis(job.seconds * 1_000 - 600));
    let (server_end, workers_end) = (servers(), cpu::kernel_workers());
    let host_end = cpu::host_seconds();
    let output = child.wait_with_output()?;
    let result = parse(&output)?;
    let job_numbers = &result["jobs"][0];
    let (reads, writes) = (side(&job_numbers["read"]), side(&job_numbers["write"]));
    let first = if job.pattern == "randwrite" { writes } else { reads };
    let iops = reads.iops + writes.iops;
    let span = job.seconds as f64 - 0.6;
    let requests = iops * span;
    let fio_us = (number(&job_numbers["usr_cpu"]) + number(&job_numbers["sys_cpu"])) * 1e4 / iops;
    let server_us = (server_end - server_begin) * 1e6 / requests;
    let workers_us = cpu::kernel_worker_seconds(&workers_begin, &workers_end) * 1e6 / requests;
    let cpus = std::thread::available_parallelism()?.get() as f64;
    let related_us = fio_us + server_us + workers_us;
    let unrelated_seconds = host_end.0 - host_begin.0 - related_us * requests / 1e6;
    Ok(Outcome {
        reads,
        writes,
        iops,
        mean_us: first.mean_us,
        p50_us: first.p50_us,
        p99_us: first.p99_us,
        p999_us: first.p999_us,
        cpu_us: [fio_us, server_us, workers_us],
        unrelated: (unrelated_seconds / span / cpus).max(0.0),
        steal: (host_end.1 - host_begin.1) / span / cpus,
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Percentiles are of the total latency; a side without requests has no numbers.
fn side(numbers: &Value) -> Side {
    let latency = &numbers["lat_ns"];
    let percentile = |name: &str| number(&latency["percentile"][name]) / 1e3;
    Side {
        iops: number(&numbers["iops"]),
        mean_us: number(&latency["mean"]) / 1e3,
        p50_us: percentile("50.000000"),
        p99_us: percentile("99.000000"),
        p999_us: percentile("99.900000"),
    }
}

/// Whether fio is there.
pub fn is_installed() -> bool {
    Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn base(file: &Path, size_mib: u64) -> Command {
    let mut command = Command::new("fio");
    command.args([
        "--name=judge",
        "--ioengine=io_uring",
        "--direct=1",
        "--thread=1",
        "--output-format=json",
    ]);
    command.arg(format!("--filename={}", file.display())).arg(format!("--size={size_mib}m"));
    command
}

fn run(mut command: Command) -> Result<Value, Failure> {
    parse(&command.output()?)
}

fn parse(output: &std::process::Output) -> Result<Value, Failure> {
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    // fio may print notes before the JSON.
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.find('{').ok_or("fio printed no JSON")?;
    Ok(serde_json::from_str(&text[begin..])?)
}
