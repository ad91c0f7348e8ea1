//! Who used the processors in a measured window, and who had to wait for one.
//!
//! Absent sources give `None`, never zero.

use std::collections::BTreeMap;

use underlay_record::conventions::{OF_DATABASE, source};

use super::process_trees::{DRIVER, of_server};
use super::window::{MeasuredWindow, per};
use crate::plan_view::PlanView;

/// Who used the processors. Cores = CPU-seconds per second.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuFacts {
    /// Processors of the host.
    pub(crate) host_cores: Option<f64>,
    /// Idle or waiting for I/O, as a share.
    pub(crate) idle_share: Option<f64>,
    /// Of the processors that the server may use, the share that it used.
    pub(crate) server_use_share: Option<f64>,
    /// Of the processors that the server may use, where those are fewer than the host's: the share that was idle.
    pub(crate) server_idle_share: Option<f64>,
    pub(crate) iowait_share: Option<f64>,
    pub(crate) steal_share: Option<f64>,
    /// Interrupts, cores: not attributable to a process.
    pub(crate) interrupt_cores: Option<f64>,
    /// Running, per process tree, cores.
    pub(crate) on_cpu: BTreeMap<String, f64>,
    /// Runnable without a processor, per process tree, sessions.
    pub(crate) run_queue: BTreeMap<String, f64>,
    /// Share of the time in which at least one task had no processor.
    pub(crate) pressure_share: Option<f64>,
    /// CPU time of the threads that serve sessions, cores.
    pub(crate) sessions_on_cpu: Option<f64>,
    /// Share of the time in which the server was stopped by its CPU limit.
    pub(crate) server_throttled: Option<f64>,
    /// The same of the load generator and of what runs in its group.
    pub(crate) driver_throttled: Option<f64>,
}

impl CpuFacts {
    /// Cores that are neither idle nor in use by a known process or an interrupt.
    pub(crate) fn interference_cores(&self) -> Option<f64> {
        if self.on_cpu.is_empty() {
            return None;
        }
        let busy = self.host_cores? * (1.0 - self.idle_share? - self.steal_share.unwrap_or(0.0));
        let own: f64 = self.on_cpu.values().sum();
        Some((busy - own - self.interrupt_cores.unwrap_or(0.0)).max(0.0))
    }
}

/// The processors in a window.
pub(super) fn cpu(window: &MeasuredWindow<'_>, plan: &PlanView) -> CpuFacts {
    const STATES: [&str; 8] =
        ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let cores = |state: &str| Some(window.rate(source::HOST_CPU, &format!("cpu.{state}"))? / 1e9);
    let total: f64 = STATES.iter().filter_map(|state| cores(state)).sum();
    let share = |state: &str| per(cores(state)?, total);
    let interrupts = ["irq", "softirq"].iter().filter_map(|state| cores(state)).sum();
    let cores_of_host = total.round().max(1.0);
    let idle_share = share("idle").map(|idle| idle + share("iowait").unwrap_or(0.0));
    let on_cpu = per_process(window, "on_cpu");
    let host_cores = (total > 0.0).then_some(total);
    let limit = plan.server_cpus(window.run.run.design as usize);
    // A limit beyond the host's processors, such as that of a study at paper size, is none.
    let usable = limit.into_iter().chain(host_cores).reduce(f64::min);
    CpuFacts {
        host_cores,
        idle_share,
        server_use_share: of_server(&on_cpu).zip(usable).and_then(|(used, of)| per(used, of)),
        server_idle_share: limit.filter(|limit| *limit < cores_of_host).and_then(|limit| {
            let of_client = match plan.has_local_client(window.run.run.design as usize) {
                true => on_cpu.get(DRIVER).copied().unwrap_or(0.0),
                false => 0.0,
            };
            let left = limit - of_server(&on_cpu)? - of_client;
            Some((left.min(idle_share? * cores_of_host) / limit).max(0.0))
        }),
        iowait_share: share("iowait"),
        steal_share: share("steal"),
        interrupt_cores: (total > 0.0).then_some(interrupts),
        on_cpu,
        run_queue: per_process(window, "run_queue"),
        pressure_share: window.rate(source::PRESSURE, "cpu.some").map(|us| us / 1e6),
        sessions_on_cpu: window.rate(source::WAITS, "sessions.on_cpu").map(|ns| ns / 1e9),
        server_throttled: throttled(window, source::CGROUP, "cpu", cores_of_host),
        driver_throttled: throttled(window, source::UNDERLAY, "limit", cores_of_host),
    }
}

/// Share of the time in which a group was stopped by its CPU limit.
///
/// The kernel adds up the times of all processors on which tasks of the group were waiting. That is the share itself
/// if they wait on one, and as many times as much if they wait on several: how many is not recorded. A
/// group that used up its limit by running on `cores` of them at once was stopped for the rest of the period, which
/// is the most it can have been.
fn throttled(window: &MeasuredWindow<'_>, source: &str, prefix: &str, cores: f64) -> Option<f64> {
    let rate = |name: &str| window.rate(source, &format!("{prefix}.{name}"));
    let (periods, stopped) = (rate("periods")?, rate("throttled.periods")?);
    let time = rate("throttled.time")? / 1e9;
    if periods <= 0.0 || time <= 0.0 {
        return Some(0.0);
    }
    let used = match source {
        source::CGROUP => rate("usage")? / 1e9,
        _ => window.rate(source, "process.cpu")? / 1e9,
    };
    let most = (stopped / periods).min(1.0) * (1.0 - (used / cores).min(1.0));
    let least = (time / cores).min(1.0);
    Some(most.min(time).max(least).min(1.0))
}

/// Nanoseconds per second of a counter of every process tree, in cores. Trees of several databases are one of their kind.
pub(super) fn per_process(window: &MeasuredWindow<'_>, counter: &str) -> BTreeMap<String, f64> {
    let Some(ticks) = window.run.sources.get(source::PROCESS) else { return BTreeMap::new() };
    let suffix = format!(".{counter}");
    let rates = ticks.names().filter_map(|name| {
        let process = name.strip_suffix(&suffix)?.rsplit(OF_DATABASE).next()?;
        let rate = ticks.series(name)?.rate(window.span())?;
        Some((process.to_string(), rate / 1e9))
    });
    let mut cores = BTreeMap::new();
    for (process, rate) in rates {
        *cores.entry(process).or_default() += rate;
    }
    cores
}
