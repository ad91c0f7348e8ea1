//! CPU time of processes and of the whole host, from /proc.

use std::fs;

/// Ticks are 10 ms on every Linux that matters here; the benchmarks run for seconds.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds that a process has used, user and system, all threads; 0 when it is gone.
pub fn process_seconds(pid: u32) -> f64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0.0 };
    // The command name may contain anything, so count from its closing parenthesis.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// CPU seconds that were not idle on all CPUs together, and those stolen by the hypervisor.
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
