//! What the load generator and the database counted in a measured window.
//!
//! Absent sources give `None`, never zero.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_core::Histogram;
use underlay_record::conventions::{document, driver_series, source};

use super::block_loads::block_loads;
use super::commits;
use super::operations::latency_of_operations;
use super::rate_curve::{Crossing, crossing, latency_at_peak};
use super::run::ObservedRun;
use super::type_facts::TypeFacts;
use super::window::{MeasuredWindow, merged, per};
use crate::plan_view::{Pacing, PlanView};
use crate::transaction_types::key_think_seconds;
use crate::workload_view::{HeadlineKind, WorkloadView};

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
    /// Mean response time at that maximum, nanoseconds.
    pub(crate) latency_at_peak_ns: Option<f64>,
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

/// The load of a window whose types are known.
pub(super) fn load(
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
        counter_was_reset: commits::was_reset(window),
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
        latency_at_peak_ns: block.latency_at_peak_ns,
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
    latency_at_peak_ns: Option<f64>,
}

impl BlockWindow {
    fn of(window: &MeasuredWindow<'_>) -> BlockWindow {
        let Some(said) = window.run.documents.get(document::BLOCK_LOAD) else {
            return BlockWindow::default();
        };
        let begin = window.interval.begin.0;
        let listed = said["loads"].as_array().map_or(&[][..], Vec::as_slice);
        let load = listed.iter().find(|load| load["begin_ns"].as_u64() == Some(begin));
        let loads = block_loads(said);
        BlockWindow {
            bytes_per_second: load.and_then(|load| load["bytes_per_second"].as_f64()),
            rate_at_limit: match crossing(&loads) {
                Some(Crossing::At(rate)) => Some(rate),
                Some(Crossing::Beyond(_) | Crossing::Never) | None => None,
            },
            latency_at_peak_ns: latency_at_peak(&loads),
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
