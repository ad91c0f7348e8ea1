//! What one measured window says, in numbers: the input of ladders, budgets and gates.
//!
//! Absent sources give `None`, never zero.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use underlay_core::{Histogram, IoClass};
use underlay_record::conventions::{
    CONNECTION_WAIT, DISPATCH_LAG, OF_DATABASE, client_network_series, document, driver_series,
    histogram_scope, io_series, source,
};
use underlay_record::{Interval, StoredHistogram};

use super::block_loads::block_loads;
use super::commits;
use super::devices::{CountedDevice, SharedDevice, counted_devices};
use super::host_parts::host_parts;
use super::operations::latency_of_operations;
use super::process_trees::{DRIVER, of_server};
use super::rate_curve::{Crossing, crossing};
use super::run::ObservedRun;
use super::waits::WaitSummary;
use super::window::{MeasuredWindow, merged};
use crate::plan_view::{Pacing, PlanView};
use crate::statistics::{MeanInterval, batch_means};
use crate::transaction_types::key_think_seconds;
use crate::volume_names::{is_data_volume, is_log_volume};
use crate::workload_view::{HeadlineKind, WorkloadView};

/// Length of a block of the bootstrap, seconds: longer than the autocorrelation of most databases.
const BLOCK_S: f64 = 10.0;
/// Blocks per window and type at most, so that long windows stay affordable.
const MOST_BLOCKS: usize = 40;
/// And at least, if the window has as many ticks: shorter blocks are better than none.
const FEWEST_BLOCKS: usize = 5;
/// Bytes of a sector in the kernel's statistics, whatever the device's sector is.
const SECTOR_BYTES: f64 = 512.0;
const NS_PER_MS: f64 = 1e6;
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
    /// What modelled I/O took; empty where nothing is modelled, and in older records.
    pub(crate) io: BTreeMap<IoClass, IoFacts>,
    /// Share of the log's modelled time in which it waited for data writes of its device.
    pub(crate) log_behind_data: Option<f64>,
    /// Longest time without a tick of any source, seconds.
    pub(crate) longest_gap_s: Option<f64>,
}

/// What the load generator saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadFacts {
    /// Seconds covered by ticks.
    pub(crate) seconds: f64,
    pub(crate) headline: Option<f64>,
    /// What the headline counts, per second.
    pub(crate) counted_per_second: Option<f64>,
    /// Transactions per minute as the engine counts them; `None` also where `counter_was_reset`.
    pub(crate) tpm: Option<f64>,
    /// The engine counts, but connections were lost in the window: a server that restarts counts from 0.
    pub(crate) counter_was_reset: bool,
    /// Transactions carried out to the end, per second; of a job, whose rows are none, what it did.
    pub(crate) completed_per_second: f64,
    /// The same, where it is of transactions.
    pub(crate) transactions_per_second: Option<f64>,
    /// Mean response time, seconds.
    pub(crate) response_s: Option<f64>,
    /// Mean keying and think time per transaction, seconds; `None` in an open loop.
    pub(crate) think_s: Option<f64>,
    /// Attempts that ended in an error, over all attempts.
    pub(crate) error_share: f64,
    /// Commits and rollbacks per second of the workload's database.
    pub(crate) database_per_second: Option<f64>,
    /// Transactions that the client completed per second in the same span.
    pub(crate) alongside_per_second: Option<f64>,
    /// Open loop: arrivals that fell due and were not carried out, as a share.
    pub(crate) shortfall: Option<f64>,
    /// Bytes of log written per second.
    pub(crate) log_bytes_per_second: Option<f64>,
    /// Blocks found in the database's own cache, as a share.
    pub(crate) cache_hit_share: Option<f64>,
    /// Blocks looked for in it, per second.
    pub(crate) cache_lookups_per_second: Option<f64>,
    /// Bytes read and written per second, of a block load.
    pub(crate) bytes_per_second: Option<f64>,
    /// I/Os per second at which the mean response time reaches 1 ms, where the window's load found the maximum of a curve.
    pub(crate) rate_at_limit: Option<f64>,
    /// What a job took, seconds; `None` where its result does not say it.
    pub(crate) job_s: Option<f64>,
    /// Mean time of a backup, seconds.
    pub(crate) backup_s: Option<f64>,
    /// Mean time of a restore, seconds.
    pub(crate) restore_s: Option<f64>,
    /// Bytes of all restores over the time that they took.
    pub(crate) restore_bytes_per_second: Option<f64>,
    /// Mean time of an I/O of a backup, nanoseconds.
    pub(crate) backup_latency_ns: Option<f64>,
    /// Mean time of an I/O of a restore, nanoseconds.
    pub(crate) restore_latency_ns: Option<f64>,
}

/// One transaction type.
#[derive(Clone, Debug)]
pub(crate) struct TypeFacts {
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    /// Response times per block of time.
    pub(crate) blocks: Vec<StoredHistogram>,
    /// Service times of the whole window.
    pub(crate) service: StoredHistogram,
}

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

/// The load generator itself.
#[derive(Clone, Debug)]
pub(crate) struct DriverFacts {
    pub(crate) cores: Option<f64>,
    /// Open sessions: users that are not active yet keep theirs, idle.
    pub(crate) sessions: Option<f64>,
    /// Time in which its busiest thread ran or wanted to, as a share.
    pub(crate) busiest_share: Option<f64>,
    /// Actual minus intended dispatch, nanoseconds.
    pub(crate) lag: StoredHistogram,
}

/// Where the load generator works, and what lies between it and the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFacts {
    /// Whether it works within the server's limits.
    pub(crate) is_local: bool,
    /// Connections that the users share, if they do.
    pub(crate) connections: Option<f64>,
    /// What a transaction waited for one of them on average, seconds; `None` where they are not shared.
    pub(crate) connection_wait_s: Option<f64>,
    /// Connections that the network of a remote client held up on average.
    pub(crate) network: Option<f64>,
    /// Answers that passed it per transaction.
    pub(crate) round_trips: Option<f64>,
}

/// I/O of one class that a model was asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IoFacts {
    pub(crate) per_second: f64,
    /// What the model said, seconds of all requests per second.
    pub(crate) modelled: f64,
    /// What they took, in the same way.
    pub(crate) actual: f64,
}

/// One volume, as the kernel's block layer and as the datastore saw it; or a device that volumes share.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeFacts {
    /// Metric name -> number.
    pub(crate) metrics: BTreeMap<&'static str, Option<f64>>,
    /// Whose the numbers of the block layer are, if not the volume's.
    pub(crate) shared: Option<SharedDevice>,
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
            log_behind_data: log_behind_data(window),
            io: io(window),
            longest_gap_s: sources
                .filter_map(|ticks| ticks.longest_gap(window.span()))
                .max_by(f64::total_cmp),
        }
    }
}

fn types(window: &MeasuredWindow<'_>) -> BTreeMap<String, TypeFacts> {
    let names: BTreeSet<&str> =
        window.transactions().map(|tick| tick.transaction.as_str()).collect();
    names
        .into_iter()
        .map(|name| {
            let ticks: Vec<_> =
                window.transactions().filter(|tick| tick.transaction == name).collect();
            let size = block_ticks(window.interval.seconds(), ticks.len());
            let facts = TypeFacts {
                completed: ticks.iter().map(|tick| tick.committed + tick.rolled_back).sum(),
                errors: ticks.iter().flat_map(|tick| tick.errors.values()).sum(),
                blocks: ticks
                    .chunks(size)
                    .map(|block| (&merged(block.iter().map(|tick| &tick.response))).into())
                    .collect(),
                service: (&merged(ticks.iter().map(|tick| &tick.service))).into(),
            };
            (name.to_string(), facts)
        })
        .collect()
}

/// Ticks per block.
fn block_ticks(window_s: f64, ticks: usize) -> usize {
    let blocks = ((window_s / BLOCK_S) as usize).clamp(FEWEST_BLOCKS, MOST_BLOCKS);
    ticks.div_ceil(blocks).max(1)
}

fn load(
    window: &MeasuredWindow<'_>,
    types: &BTreeMap<String, TypeFacts>,
    (plan, workload): (&PlanView, &WorkloadView),
    design: usize,
) -> LoadFacts {
    let ticks = window.ticks(workload);
    let cache = cache(window);
    let seconds = ticks.values().map(|tick| tick.seconds).sum();
    let counted: u64 = ticks.values().map(|tick| tick.counted).sum();
    let completed: u64 = types.values().map(|facts| facts.completed).sum();
    let errors: u64 = types.values().map(|facts| facts.errors).sum();
    let response = responses(types.values());
    let due = window.rate(source::DRIVER, driver_series::ARRIVALS_DUE).filter(|due| *due > 0.0);
    let completed_per_second = per(completed as f64, seconds).unwrap_or(0.0);
    let counted_by_both = commits::of(window);
    let block = BlockWindow::of(window);
    let outcome = |kind: &str, number: &str| {
        window.run.documents.get(document::OUTCOME)?[kind][number].as_f64()
    };
    LoadFacts {
        seconds,
        headline: match workload.headline {
            HeadlineKind::Counted => per(counted as f64 * workload.period_s, seconds),
            HeadlineKind::Searched { .. } | HeadlineKind::Job { .. } => {
                let said = window.run.documents.get(document::OUTCOME);
                said.and_then(|said| said["value"].as_f64())
            }
        },
        counted_per_second: per(counted as f64, seconds),
        // Nobody sends transactions while backups are taken.
        tpm: counted_by_both
            .filter(|_| !workload.is_backup())
            .map(|both| both.database_per_second * 60.0),
        counter_was_reset: commits::began_anew(window),
        completed_per_second,
        // A job is rated by what it came to: a second rate beside it, over a window that has its begin and the moment
        // in which its end was seen, would only contradict it.
        transactions_per_second: (!workload.is_job()).then_some(completed_per_second),
        response_s: response.mean().map(|ns| ns / 1e9),
        think_s: think_seconds(types, plan.pacing(design)),
        error_share: per(errors as f64, (errors + completed) as f64).unwrap_or(0.0),
        database_per_second: counted_by_both.map(|both| both.database_per_second),
        alongside_per_second: counted_by_both.map(|both| both.client_per_second),
        shortfall: due.map(|due| (1.0 - completed_per_second / due).max(0.0)),
        log_bytes_per_second: log_rate(window),
        cache_hit_share: cache.and_then(|(hits, lookups)| per(hits, lookups)),
        cache_lookups_per_second: cache.map(|(_, lookups)| lookups),
        bytes_per_second: block.bytes_per_second,
        rate_at_limit: block.rate_at_limit,
        job_s: job_seconds(window.run),
        backup_s: outcome("backup", "seconds"),
        restore_s: outcome("restore", "seconds"),
        restore_bytes_per_second: outcome("restore", "bytes_per_second"),
        backup_latency_ns: latency_of_operations(window.run, "backup"),
        restore_latency_ns: latency_of_operations(window.run, "restore"),
    }
}

/// What a job took: a batch as a whole, a warehouse in its measured power run and in its throughput run.
fn job_seconds(run: &ObservedRun) -> Option<f64> {
    let said = run.documents.get(document::OUTCOME)?;
    let took = |part: &Value| part["duration_ns"].as_u64();
    let parts = || [took(&said["power"]), took(&said["throughput"])].into_iter().flatten();
    let nanos = took(said).or_else(|| parts().reduce(|a, b| a + b))?;
    Some(nanos as f64 / 1e9)
}

/// What the results of a run's block loads say of a window.
#[derive(Default)]
struct BlockWindow {
    bytes_per_second: Option<f64>,
    rate_at_limit: Option<f64>,
}

impl BlockWindow {
    fn of(window: &MeasuredWindow<'_>) -> BlockWindow {
        let Some(said) = window.run.documents.get(document::BLOCK_LOAD) else {
            return BlockWindow::default();
        };
        let begin = window.interval.begin.0;
        let listed = said["loads"].as_array().map_or(&[][..], Vec::as_slice);
        let load = listed.iter().find(|load| load["begin_ns"].as_u64() == Some(begin));
        let crossing = crossing(&block_loads(said));
        BlockWindow {
            bytes_per_second: load.and_then(|load| load["bytes_per_second"].as_f64()),
            rate_at_limit: match crossing {
                Some(Crossing::At(rate)) => Some(rate),
                Some(Crossing::Beyond(_) | Crossing::Never) | None => None,
            },
        }
    }
}

fn responses<'a>(types: impl Iterator<Item = &'a TypeFacts>) -> Histogram {
    merged(types.flat_map(|facts| &facts.blocks))
}

/// Mean keying and think time per transaction: the standard's means, weighted by the achieved mix.
fn think_seconds(types: &BTreeMap<String, TypeFacts>, pacing: Pacing) -> Option<f64> {
    let factor = match pacing {
        Pacing::Closed { key_think } => key_think,
        Pacing::Open | Pacing::Unknown => return None,
    };
    let weighted: f64 =
        types.iter().map(|(name, facts)| facts.completed as f64 * key_think_seconds(name)).sum();
    let completed: u64 = types.values().map(|facts| facts.completed).sum();
    per(weighted * factor, completed as f64)
}

fn log_rate(window: &MeasuredWindow<'_>) -> Option<f64> {
    ["wal.position", "wal.wal_bytes", "wal.bytes"]
        .iter()
        .find_map(|series| window.rate(source::POSTGRES, series))
        .or_else(|| window.rate(source::MARIADB, "status.innodb_lsn_current"))
        .or_else(|| window.rate(source::MARIADB, "status.innodb_os_log_written"))
}

/// Blocks found in the database's own cache and blocks looked for in it, per second.
fn cache(window: &MeasuredWindow<'_>) -> Option<(f64, f64)> {
    let pool = |name| window.rate(source::MARIADB, name);
    if let (Some(requests), Some(reads)) =
        (pool("status.innodb_buffer_pool_read_requests"), pool("status.innodb_buffer_pool_reads"))
    {
        return Some((requests - reads, requests));
    }
    let rate = |series| window.rate(source::POSTGRES, series);
    let (hit, read) = (rate("database.blks_hit")?, rate("database.blks_read")?);
    Some((hit, hit + read))
}

fn cpu(window: &MeasuredWindow<'_>, plan: &PlanView) -> CpuFacts {
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

/// Share of the log's modelled time in which it waited for data writes, if log and data lie on one device.
fn log_behind_data(window: &MeasuredWindow<'_>) -> Option<f64> {
    let rate = |name: &str| window.rate(source::DATASTORE, name);
    let log = rate(&io_series::modelled(IoClass::Log))? / 1e9;
    // Others' part of the bytes that the log's requests can have waited for: buffers drain in order.
    let ticks = window.run.sources.get(source::DATASTORE)?;
    let volumes: Vec<&str> = ticks
        .names()
        .filter_map(|name| name.strip_prefix("volume.")?.strip_suffix(".write.bytes"))
        .collect();
    let written = |is_one: fn(&str) -> bool| {
        let mut of = volumes.iter().filter(|volume| is_one(volume));
        let first = rate(&format!("volume.{}.write.bytes", of.next()?))?;
        of.try_fold(first, |sum, volume| Some(sum + rate(&format!("volume.{volume}.write.bytes"))?))
    };
    let (own, others) = (written(is_log_volume)?, written(is_data_volume)?);
    let logs = volumes.iter().filter(|volume| is_log_volume(volume));
    let queued: f64 = logs
        .flat_map(|log| {
            ["write", "flush"].map(|operation| format!("volume.{log}.{operation}.queue"))
        })
        .filter_map(|series| rate(&series))
        .sum();
    let part = per(others, own + others).unwrap_or(0.0);
    Some(per(queued / 1e9 * part, log).unwrap_or(0.0).min(1.0))
}

/// Nanoseconds per second of a counter of every process tree, in cores. Trees of several databases are one of their kind.
fn per_process(window: &MeasuredWindow<'_>, counter: &str) -> BTreeMap<String, f64> {
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

fn driver(window: &MeasuredWindow<'_>) -> DriverFacts {
    let rate = |series| window.rate(source::DRIVER, series).map(|ns| ns / 1e9);
    DriverFacts {
        cores: rate(driver_series::CPU)
            .or_else(|| per_process(window, "on_cpu").get("driver").copied()),
        sessions: window.mean(source::DRIVER, driver_series::SESSIONS),
        busiest_share: rate(driver_series::BUSIEST_THREAD),
        lag: (&window.merged_histogram(histogram_scope::DRIVER, DISPATCH_LAG)).into(),
    }
}

fn client(window: &MeasuredWindow<'_>, plan: &PlanView, completed_per_second: f64) -> ClientFacts {
    let design = window.run.run.design as usize;
    let network = |series| window.rate(source::CLIENT_NETWORK, series);
    let connections = plan.connections(design);
    let waits = window.merged_histogram(histogram_scope::DRIVER, CONNECTION_WAIT);
    // Those that did not have to wait are in no histogram, but count.
    let completed = completed_per_second * window.interval.seconds();
    ClientFacts {
        is_local: plan.has_local_client(design),
        connections,
        connection_wait_s: connections.and_then(|_| per(waits.sum() as f64 / 1e9, completed)),
        network: network(client_network_series::DELAY).map(|ns| ns / 1e9),
        round_trips: network(client_network_series::ROUND_TRIPS)
            .and_then(|rate| per(rate, completed_per_second)),
    }
}

/// Of every class, or of none.
fn io(window: &MeasuredWindow<'_>) -> BTreeMap<IoClass, IoFacts> {
    let rate = |series: String| window.rate(source::DATASTORE, &series);
    let of = |class: IoClass| {
        let facts = IoFacts {
            per_second: rate(io_series::ios(class))?,
            modelled: rate(io_series::modelled(class))? / 1e9,
            actual: rate(io_series::actual(class))? / 1e9,
        };
        Some((class, facts))
    };
    IoClass::ALL.into_iter().map(of).collect::<Option<_>>().unwrap_or_default()
}

fn volumes(window: &MeasuredWindow<'_>) -> BTreeMap<String, VolumeFacts> {
    let devices = counted_devices(window.run);
    let of_datastore = window.histograms().filter(|row| row.scope == histogram_scope::DATASTORE);
    let mut names: BTreeSet<String> =
        of_datastore.filter_map(|row| Some(row.name.split_once('.')?.0.to_string())).collect();
    names.extend(devices.iter().map(|device| device.name.clone()));
    names
        .into_iter()
        .map(|name| {
            let device = devices.iter().find(|device| device.name == name);
            let facts = volume(window, &name, device);
            (name, facts)
        })
        .collect()
}

/// Requests per second of an operation (`read`, `write`) of a volume, or of the device that it shares, and their mean time in
/// nanoseconds.
pub(super) fn requests_of_volume(
    window: &MeasuredWindow<'_>,
    name: &str,
    operation: &str,
) -> Option<(f64, f64)> {
    let devices = counted_devices(window.run);
    let shares = |device: &&CountedDevice| {
        device.shared.as_ref().is_some_and(|shared| shared.volumes.iter().any(|on| on == name))
    };
    let device =
        devices.iter().find(|device| device.name == name).or_else(|| devices.iter().find(shares));
    let metrics = volume(window, name, device).metrics;
    let of =
        |metric: &str| metrics.get(format!("{operation}_{metric}").as_str()).copied().flatten();
    let of_block_layer = of("iops").zip(of("latency_ns"));
    of_block_layer.or_else(|| {
        let seen =
            window.merged_histogram(histogram_scope::DATASTORE, &format!("{name}.{operation}"));
        Some((per(seen.count() as f64, window.interval.seconds())?, seen.mean()?))
    })
}

fn volume(
    window: &MeasuredWindow<'_>,
    volume: &str,
    device: Option<&CountedDevice>,
) -> VolumeFacts {
    let rate = |field: &str| window.rate(source::BLOCK, &format!("{}.{field}", device?.prefix));
    let latency = |operation: &str| {
        let ios = rate(&format!("{operation}.ios"))?;
        per(rate(&format!("{operation}.time"))? * NS_PER_MS, ios)
    };
    let bytes = |operation: &str| Some(rate(&format!("{operation}.sectors"))? * SECTOR_BYTES);
    let datastore = |operation: &str| {
        window.merged_histogram(histogram_scope::DATASTORE, &format!("{volume}.{operation}"))
    };
    let (reads, writes, flushes) = (datastore("read"), datastore("write"), datastore("flush"));
    let quantile = |histogram: &Histogram, q| histogram.quantile(q).map(|ns| ns as f64);
    let metrics = BTreeMap::from([
        ("read_iops", rate("read.ios")),
        ("write_iops", rate("write.ios")),
        ("flush_iops", rate("flush.ios")),
        ("read_bytes_per_second", bytes("read")),
        ("write_bytes_per_second", bytes("write")),
        ("read_latency_ns", latency("read")),
        ("write_latency_ns", latency("write")),
        ("flush_latency_ns", latency("flush")),
        // Milliseconds of waiting per second, over 1000, are requests outstanding.
        ("queue_length", rate("queue_time").map(|ms| ms / 1e3)),
        ("datastore_read_mean_ns", reads.mean()),
        ("datastore_read_p50_ns", quantile(&reads, 0.5)),
        ("datastore_read_p99_ns", quantile(&reads, 0.99)),
        ("datastore_write_mean_ns", writes.mean()),
        ("datastore_write_p50_ns", quantile(&writes, 0.5)),
        ("datastore_write_p99_ns", quantile(&writes, 0.99)),
        ("datastore_flush_p50_ns", quantile(&flushes, 0.5)),
        ("datastore_flush_p99_ns", quantile(&flushes, 0.99)),
    ]);
    VolumeFacts { metrics, shared: device.and_then(|device| device.shared.clone()) }
}

fn per(amount: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| amount / of)
}
