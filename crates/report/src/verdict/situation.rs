//! The numbers of one rung of one design, over all its windows: what gates and rules look at.

use crate::analysis::SteadyState;
use crate::observed::{CpuFacts, DRIVER, SharedDevice, WindowFacts, of_server};
use crate::plan_view::{Pacing, PlanView};
use crate::statistics::mean;
use crate::verdict::time_budget::{Sampled, TimeBudget};
use crate::volume_names::is_log_volume;
use crate::workload_view::WorkloadView;

/// One rung.
#[derive(Clone, Debug)]
pub(crate) struct Situation {
    pub(crate) users: f64,
    /// Sessions with the server: of users who share connections, fewer than users.
    pub(crate) sessions: f64,
    /// Whether the load generator works within the server's limits.
    pub(crate) client_is_local: bool,
    /// Whether it runs until it is done: its window is as long as it takes.
    pub(crate) is_job: bool,
    pub(crate) pacing: Pacing,
    pub(crate) completed_per_second: f64,
    /// Mean response time, seconds.
    pub(crate) response_s: Option<f64>,
    /// Mean keying and think time, seconds.
    pub(crate) think_s: Option<f64>,
    /// Share of the response time spent waiting for one of the connections that users share, if they do.
    pub(crate) connection_wait_share: Option<f64>,
    pub(crate) error_share: f64,
    pub(crate) database_per_second: Option<f64>,
    /// What the client completed in the same span.
    pub(crate) alongside_per_second: Option<f64>,
    /// The busiest second of a window over its mean second; at least 1.
    pub(crate) burst: f64,
    pub(crate) budget: Option<TimeBudget>,
    pub(crate) wait_samples: u64,
    pub(crate) idle_share: Option<f64>,
    pub(crate) steal_share: Option<f64>,
    /// Busy processors that no known process explains, as a share of the host.
    pub(crate) interference_share: Option<f64>,
    /// Processors that the server used, with a load generator within its limits.
    pub(crate) server_cores: Option<f64>,
    /// Processors that the server may use.
    pub(crate) server_allotment: Option<f64>,
    pub(crate) pressure_share: Option<f64>,
    /// Time in which the driver's busiest thread ran or wanted to, as a share.
    pub(crate) driver_busiest_share: Option<f64>,
    pub(crate) longest_gap_s: Option<f64>,
    pub(crate) window_s: f64,
    pub(crate) steady: Vec<SteadyState>,
    pub(crate) log_bytes_per_second: Option<f64>,
    /// Bytes written to the log's volume, if known.
    pub(crate) log_volume_bytes_per_second: Option<f64>,
    /// The device that the log's volume has not to itself.
    pub(crate) log_device_shared: Option<SharedDevice>,
    /// The modelled device that log and data share.
    pub(crate) log_device: Option<String>,
    /// Share of the time in which the server was stopped by its CPU limit.
    pub(crate) server_throttled: Option<f64>,
    /// The same of the load generator.
    pub(crate) driver_throttled: Option<f64>,
    /// d ln(throughput) / d ln(users) around this rung.
    pub(crate) slope: Option<f64>,
}

impl Situation {
    /// Pools the windows of one rung. `windows` must not be empty.
    pub(crate) fn of(
        windows: &[&WindowFacts],
        steady: Vec<SteadyState>,
        (plan, workload): (&PlanView, &WorkloadView),
        slope: Option<f64>,
    ) -> Situation {
        let design = windows.first().map_or(0, |window| window.design);
        let log_device = plan.device_of_log_and_data(design);
        let budgets: Vec<TimeBudget> = windows
            .iter()
            .filter_map(|w| {
                Some(TimeBudget::of(&Sampled {
                    waits: w.waits.as_ref()?,
                    cpu: &w.cpu,
                    driver: &w.driver,
                    io: &w.io,
                    log_behind_data: w.log_behind_data.filter(|_| log_device.is_some()),
                    network: w.client.network,
                    users: w.all_users(),
                }))
            })
            .collect();
        let pooled = |of: &dyn Fn(&WindowFacts) -> Option<f64>| {
            mean(&windows.iter().filter_map(|w| of(w)).collect::<Vec<f64>>())
        };
        // A mean per transaction is weighted by the transactions of each window: the product of plain means of
        // throughput and response time is not the number of users when runs differ.
        let per_transaction = |of: &dyn Fn(&WindowFacts) -> Option<f64>| {
            let known = windows.iter().filter_map(|w| Some((of(w)?, w.load.completed_per_second)));
            let (sum, weight) = known.fold((0.0, 0.0), |(sum, weight), (value, rate)| {
                (sum + value * rate, weight + rate)
            });
            (weight > 0.0).then(|| sum / weight)
        };
        let host_cores = pooled(&|w| w.cpu.host_cores);
        let users = windows.first().map_or(0.0, |w| w.all_users());
        let client = windows.first().map(|w| w.client).unwrap_or_default();
        Situation {
            users,
            sessions: client.connections.map_or(users, |connections| connections.min(users)),
            client_is_local: client.is_local,
            is_job: workload.is_job(),
            pacing: plan.pacing(design),
            completed_per_second: pooled(&|w| Some(w.load.completed_per_second)).unwrap_or(0.0),
            response_s: per_transaction(&|w| w.load.response_s),
            think_s: per_transaction(&|w| w.load.think_s),
            connection_wait_share: pooled(&|w| {
                let response_s = w.load.response_s.filter(|response| *response > 0.0)?;
                Some(w.client.connection_wait_s? / response_s)
            }),
            error_share: pooled(&|w| Some(w.load.error_share)).unwrap_or(0.0),
            database_per_second: pooled(&|w| w.load.database_per_second),
            alongside_per_second: pooled(&|w| w.load.alongside_per_second),
            burst: windows.iter().map(|w| burst(&w.headline_ticks)).fold(1.0, f64::max),
            budget: TimeBudget::mean(&budgets),
            wait_samples: windows.iter().filter_map(|w| w.waits.as_ref()).map(|w| w.samples).sum(),
            idle_share: pooled(&|w| w.cpu.idle_share),
            steal_share: pooled(&|w| w.cpu.steal_share),
            interference_share: pooled(&|w| share_of_host(&w.cpu, w.cpu.interference_cores())),
            server_cores: pooled(&|w| {
                let of_client = w.cpu.on_cpu.get(DRIVER).filter(|_| w.client.is_local);
                Some(of_server(&w.cpu.on_cpu)? + of_client.copied().unwrap_or(0.0))
            }),
            server_allotment: plan.server_cpus(design).or(host_cores),
            pressure_share: pooled(&|w| w.cpu.pressure_share),
            driver_busiest_share: pooled(&|w| w.driver.busiest_share),
            longest_gap_s: windows.iter().filter_map(|w| w.longest_gap_s).max_by(f64::total_cmp),
            window_s: windows.iter().map(|w| w.interval.seconds()).fold(f64::INFINITY, f64::min),
            steady,
            log_bytes_per_second: pooled(&|w| w.load.log_bytes_per_second),
            log_volume_bytes_per_second: pooled(&WindowFacts::log_volume_bytes_per_second),
            log_device_shared: windows.iter().find_map(|w| {
                let mut shared = w.volumes.values().filter_map(|volume| volume.shared.as_ref());
                shared.find(|shared| shared.volumes.iter().any(|on| is_log_volume(on))).cloned()
            }),
            log_device,
            server_throttled: pooled(&|w| w.cpu.server_throttled),
            driver_throttled: pooled(&|w| w.cpu.driver_throttled),
            slope,
        }
    }

    /// The user number that sessions are compared with, without those that think.
    pub(crate) fn thinking_users(&self) -> f64 {
        self.think_s.unwrap_or(0.0) * self.completed_per_second
    }
}

fn share_of_host(cpu: &CpuFacts, cores: Option<f64>) -> Option<f64> {
    Some(cores? / cpu.host_cores?)
}

/// The largest over the mean.
fn burst(ticks: &[f64]) -> f64 {
    let sum: f64 = ticks.iter().sum();
    let largest = ticks.iter().copied().fold(0.0, f64::max);
    if sum > 0.0 { largest * ticks.len() as f64 / sum } else { 1.0 }
}
