//! CPU time of processes, of the kernel's workers, and of the whole host, from /proc.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;

/// Ticks are 10 ms on every Linux that matters here; the benchmarks run for seconds.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds that a process has used, user and system, all threads; 0 when it is gone.
pub fn process_seconds(pid: u32) -> f64 {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(0.0, |text| seconds_of(&text))
}

/// CPU seconds of each of the kernel's unbound workers: those that serve loop devices, among others.
pub fn kernel_workers() -> HashMap<OsString, f64> {
    let Ok(processes) = fs::read_dir("/proc") else { return HashMap::new() };
    processes
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("stat")).ok()?;
            text.contains("(kworker/u").then(|| (entry.file_name(), seconds_of(&text)))
        })
        .collect()
}

/// What they used in between. Workers come and go; one that went takes its time with it.
pub fn kernel_worker_seconds(begin: &HashMap<OsString, f64>, end: &HashMap<OsString, f64>) -> f64 {
    end.iter().map(|(worker, used)| used - begin.get(worker).unwrap_or(&0.0)).sum()
}

/// User and system time in a line of `/proc/<pid>/stat`.
fn seconds_of(text: &str) -> f64 {
    // The command name may contain anything, so count from its closing parenthesis.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// CPU seconds of all CPUs together: not idle, and stolen by the hypervisor.
pub fn host_seconds() -> (f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let at = |index: usize| fields.get(index).copied().unwrap_or(0.0) / TICKS_PER_SECOND;
    // user, nice, system, idle, iowait, irq, softirq, steal
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}
