//! CPU time of processes, of the kernel's workers, and of the whole host, from /proc.

use std::fs;

/// Ticks are 10 ms on every Linux that matters here; the benchmarks run for seconds.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds that a process has used, user and system, all threads; 0 when it is gone.
pub fn process_seconds(pid: u32) -> f64 {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(0.0, |text| seconds_of(&text))
}

/// CPU seconds of the kernel's unbound workers: those that serve loop devices, among others.
pub fn kernel_worker_seconds() -> f64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0.0 };
    processes
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|text| text.contains("(kworker/u"))
        .map(|text| seconds_of(&text))
        .sum()
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
