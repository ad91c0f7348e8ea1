//! What one measured window says, in numbers: the input of ladders, budgets and gates.
//!
//! Absent sources give `None`, never zero.

use std::collections::BTreeMap;

use underlay_core::IoClass;
use underlay_record::Interval;

use super::client_facts::{ClientFacts, DriverFacts, client, driver};
use super::cpu_facts::{CpuFacts, cpu};
use super::host_parts::host_parts;
use super::io_facts::{IoFacts, io, log_behind_data};
use super::load_facts::{LoadFacts, load};
use super::stages::{ResyncRates, resync_rates};
use super::type_facts::{TypeFacts, types};
use super::volume_facts::{VolumeFacts, volumes};
use super::waits::WaitSummary;
use super::window::{MeasuredWindow, per};
use crate::plan_view::PlanView;
use crate::statistics::{MeanInterval, batch_means};
use crate::volume_names::is_log_volume;
use crate::workload_view::{HeadlineKind, WorkloadView};

/// The numbers of one window.
#[derive(Clone, Debug)]
pub(crate) struct WindowFacts {
    /// Position of the run among all runs of the record.
    pub(crate) run: usize,
    pub(crate) design: usize,
    pub(crate) repeat: u32,
    pub(crate) users: u32,
    /// Databases that have so many users each.
    pub(crate) databases: u32,
    pub(crate) interval: Interval,
    /// Begin of the run on its clock, seconds.
    pub(crate) run_begin_s: f64,
    pub(crate) load: LoadFacts,
    /// What the headline counts, per its period, in each tick: what steadiness is judged by.
    pub(crate) headline_ticks: Vec<f64>,
    /// Whether the headline is the mean of its ticks; otherwise it was concluded.
    pub(crate) headline_is_counted: bool,
    pub(crate) types: BTreeMap<String, TypeFacts>,
    pub(crate) cpu: CpuFacts,
    pub(crate) driver: DriverFacts,
    pub(crate) client: ClientFacts,
    pub(crate) waits: Option<WaitSummary>,
    pub(crate) volumes: BTreeMap<String, VolumeFacts>,
    /// Share of the time for which parts of a cluster's hosts are occupied, by position in [`super::HOST_PARTS`] and host.
    pub(crate) host_parts: BTreeMap<(usize, String), f64>,
    pub(crate) resync: ResyncRates,
    /// What modelled I/O took; empty where nothing is modelled, and in older records.
    pub(crate) io: BTreeMap<IoClass, IoFacts>,
    /// Share of the log's modelled time in which it waited for data writes of its device.
    pub(crate) log_behind_data: Option<f64>,
    /// Longest time without a tick of any source, seconds.
    pub(crate) longest_gap_s: Option<f64>,
}

impl WindowFacts {
    /// What the network of a remote client held up a transaction, nanoseconds.
    pub(crate) fn network_per_transaction_ns(&self) -> Option<f64> {
        per(self.client.network? * 1e9, self.load.completed_per_second)
    }

    /// Adds what only the servers of several databases say, of the same window: what they counted together. Nothing of what one of
    /// them did not say.
    pub(crate) fn add_up(&mut self, databases: &[&WindowFacts]) {
        let sum = |of: &dyn Fn(&WindowFacts) -> Option<f64>| {
            let sum: Option<f64> = databases.iter().map(|one| of(one)).sum();
            sum.filter(|_| !databases.is_empty())
        };
        self.databases = u32::try_from(databases.len()).unwrap_or(u32::MAX).max(1);
        let load = &mut self.load;
        load.tpm = load.tpm.or_else(|| sum(&|one| one.load.tpm));
        load.database_per_second =
            load.database_per_second.or_else(|| sum(&|one| one.load.database_per_second));
        load.alongside_per_second =
            load.alongside_per_second.or_else(|| sum(&|one| one.load.alongside_per_second));
        load.log_bytes_per_second =
            load.log_bytes_per_second.or_else(|| sum(&|one| one.load.log_bytes_per_second));
        let lookups = sum(&|one| one.load.cache_lookups_per_second);
        let hits = sum(&|one| Some(one.load.cache_hit_share? * one.load.cache_lookups_per_second?));
        load.cache_hit_share = load.cache_hit_share.or_else(|| per(hits?, lookups?));
        let cpu = &mut self.cpu;
        cpu.sessions_on_cpu = cpu.sessions_on_cpu.or_else(|| sum(&|one| one.cpu.sessions_on_cpu));
        // Each has a limit of its own; what the limits of hosts do to all databases on them is in no group of a database.
        let mean_of = f64::from(self.databases);
        cpu.server_throttled =
            cpu.server_throttled.or_else(|| Some(sum(&|one| one.cpu.server_throttled)? / mean_of));
        self.add_up_clients(databases);
    }

    /// Connections and networks of all clients.
    fn add_up_clients(&mut self, databases: &[&WindowFacts]) {
        if databases.is_empty() {
            return;
        }
        let completed = self.load.completed_per_second;
        let client = &mut self.client;
        client.is_local = databases.iter().all(|one| one.client.is_local);
        // Where users share no connections, each has its own.
        let is_shared = databases.iter().any(|one| one.client.connections.is_some());
        let users = |one: &WindowFacts| f64::from(one.users);
        let sessions = |one: &&WindowFacts| {
            one.client.connections.map_or(users(one), |connections| connections.min(users(one)))
        };
        client.connections = is_shared.then(|| databases.iter().map(sessions).sum());
        let sum = |of: &dyn Fn(&WindowFacts) -> Option<f64>| {
            databases.iter().filter_map(|one| of(one)).reduce(|a, b| a + b)
        };
        client.network = sum(&|one| one.client.network);
        client.round_trips =
            sum(&|one| Some(one.client.round_trips? * one.load.completed_per_second))
                .and_then(|rate| per(rate, completed));
        client.connection_wait_s =
            sum(&|one| Some(one.client.connection_wait_s? * one.load.completed_per_second))
                .and_then(|waited| per(waited, completed));
    }

    /// Bytes written to the volumes of all logs, per second.
    pub(crate) fn log_volume_bytes_per_second(&self) -> Option<f64> {
        let logs = self.volumes.iter().filter(|(name, _)| is_log_volume(name));
        let mut written =
            logs.map(|(_, volume)| volume.metrics.get("write_bytes_per_second").copied().flatten());
        let first = written.next()??;
        written.try_fold(first, |sum, one| Some(sum + one?))
    }

    /// Users of all databases.
    pub(crate) fn all_users(&self) -> f64 {
        f64::from(self.users) * f64::from(self.databases)
    }

    /// The interval of a headline that is counted, from the windows of one run alone.
    pub(crate) fn headline_within(windows: &[&WindowFacts]) -> Option<MeanInterval> {
        let ticks: Vec<f64> =
            windows.iter().flat_map(|window| &window.headline_ticks).copied().collect();
        let counted = windows.iter().all(|window| window.headline_is_counted);
        counted.then(|| batch_means(&ticks)).flatten()
    }

    pub(crate) fn of(
        window: &MeasuredWindow<'_>,
        plan: &PlanView,
        workload: &WorkloadView,
    ) -> WindowFacts {
        let types = types(window);
        let design = window.run.run.design as usize;
        let load = load(window, &types, (plan, workload), design);
        let client = client(window, plan, load.completed_per_second);
        let sources = window.run.sources.values();
        WindowFacts {
            run: window.run.position,
            design,
            repeat: window.run.run.repeat,
            users: window.users,
            databases: 1,
            interval: window.interval,
            run_begin_s: window.run.begin_s(),
            load,
            headline_ticks: window
                .ticks(workload)
                .values()
                // A job has a begin and an end, and no state that it could be steady in.
                .filter(|tick| tick.seconds > 0.0 && !workload.is_job())
                .map(|tick| tick.counted as f64 * workload.period_s / tick.seconds)
                .collect(),
            headline_is_counted: workload.headline == HeadlineKind::Counted,
            types,
            cpu: cpu(window, plan),
            driver: driver(window),
            client,
            waits: WaitSummary::of(window.waits()),
            volumes: volumes(window),
            host_parts: host_parts(window),
            resync: resync_rates(window),
            log_behind_data: log_behind_data(window),
            io: io(window),
            longest_gap_s: sources
                .filter_map(|ticks| ticks.longest_gap(window.span()))
                .max_by(f64::total_cmp),
        }
    }
}
