//! How the numbers are made: transaction types, metrics, definitions, disclaimer.

use crate::analysis::{Direction, Method, Metric};
use crate::comparisons::RESTORED;
use crate::wording::sentence_case;
use crate::workload_view::{HeadlineKind, WorkloadView};

/// The transaction type whose rate is the result.
pub(crate) const NEW_ORDER: &str = "new_order";

/// A TPC-C transaction type as reports know it.
struct TransactionKind {
    name: &'static str,
    /// Keying time of clause 5.2.5.7, seconds.
    keying_s: f64,
    /// Mean think time of clause 5.2.5.7, seconds.
    think_s: f64,
    /// Limit of the 90th percentile of the response time of clause 5.2.5.3, seconds.
    limit_s: f64,
}

const KINDS: [TransactionKind; 5] = [
    TransactionKind { name: NEW_ORDER, keying_s: 18.0, think_s: 12.0, limit_s: 5.0 },
    TransactionKind { name: "payment", keying_s: 3.0, think_s: 12.0, limit_s: 5.0 },
    TransactionKind { name: "order_status", keying_s: 2.0, think_s: 10.0, limit_s: 5.0 },
    TransactionKind { name: "delivery", keying_s: 2.0, think_s: 5.0, limit_s: 5.0 },
    TransactionKind { name: "stock_level", keying_s: 2.0, think_s: 5.0, limit_s: 20.0 },
];

/// Position of a transaction type in the order of the standard; unknown ones come last.
pub(crate) fn type_order(name: &str) -> usize {
    KINDS.iter().position(|kind| kind.name == name).unwrap_or(KINDS.len())
}

/// A transaction type for readers: `new order`.
pub(crate) fn type_title(name: &str) -> String {
    name.replace('_', " ")
}

/// Mean keying plus think time of the standard, seconds; 0 for unknown types.
pub(crate) fn key_think_seconds(name: &str) -> f64 {
    KINDS.iter().find(|kind| kind.name == name).map_or(0.0, |kind| kind.keying_s + kind.think_s)
}

/// The standard's limit of the 90th percentile of the response time, nanoseconds.
pub(crate) fn response_limit_ns(name: &str) -> Option<u64> {
    KINDS.iter().find(|kind| kind.name == name).map(|kind| (kind.limit_s * 1e9) as u64)
}

/// The method of a report about this workload.
pub(crate) fn method(workload: &WorkloadView) -> Method {
    let is_tpcc = workload.name == "tpcc";
    let rate = workload.rate_words();
    let done = if workload.is_block_load() { "completed" } else { "committed" };
    let headline = match is_tpcc {
        true => "committed new-order transactions per minute; those rolled back on purpose (1 %) do not count"
            .to_string(),
        false => match &workload.headline {
            HeadlineKind::Job { definition } => definition.clone(),
            HeadlineKind::Counted | HeadlineKind::Searched { .. } => format!("{done} {rate}"),
        },
    };
    let named = |metric: Metric| match metric.name.as_str() {
        "headline" => Metric {
            title: sentence_case(&rate),
            unit: workload.rate_unit().to_string(),
            definition: match &workload.headline {
                HeadlineKind::Counted => {
                    format!(
                        "{done} {} of the window, per {}",
                        workload.counted,
                        workload.period_word()
                    )
                }
                HeadlineKind::Searched { condition } => format!(
                    "the highest rate of {} that a search found, per {}, {condition}",
                    workload.counted,
                    workload.period_word()
                ),
                HeadlineKind::Job { definition } => definition.clone(),
            },
            ..metric
        },
        "headline_p95_ns" => Metric {
            title: format!("p95 of {}", workload.counted),
            definition: format!("95th percentile of the response time of the {}", workload.counted),
            ..metric
        },
        _ => metric,
    };
    let definitions =
        DEFINITIONS.iter().map(|(term, meaning)| (term.to_string(), meaning.to_string()));
    Method {
        metrics: METRICS
            .iter()
            .chain(BACKUP_METRICS.iter().filter(|_| workload.is_backup()))
            .map(metric)
            .map(named)
            .collect(),
        definitions: std::iter::once((workload.unit.clone(), headline))
            .chain(definitions)
            .collect(),
        disclaimer: match is_tpcc {
            true => DISCLAIMER.to_string(),
            false if workload.notice.is_empty() => String::new(),
            false => sentence_case(&format!("{}.", workload.notice.trim_end_matches('.'))),
        },
        deviations: match is_tpcc {
            true => DEVIATIONS
                .iter()
                .map(|text| text.to_string())
                .chain(workload.deviations.iter().map(|text| format!("{}.", sentence_case(text))))
                .collect(),
            false => Vec::new(),
        },
    }
}

/// The metric with this name.
pub(crate) fn metric_named(name: &str) -> Option<Metric> {
    METRICS.iter().chain(&BACKUP_METRICS).find(|row| row.0 == name).map(metric)
}

type MetricRow = (&'static str, &'static str, &'static str, Direction, &'static str);

fn metric(row: &MetricRow) -> Metric {
    Metric {
        name: row.0.to_string(),
        title: row.1.to_string(),
        unit: row.2.to_string(),
        better: row.3,
        definition: row.4.to_string(),
    }
}

const DISCLAIMER: &str = "The workload is derived from the TPC-C benchmark. It is not TPC-C: it has not been \
    audited, it deviates from the standard as listed, and its numbers must not be compared with published TPC \
    results. New orders per minute (NOPM) are not tpmC.";

const DEVIATIONS: [&str; 8] = [
    "Terminals are virtual users in one program; there is no remote terminal emulator.",
    "Keying and think times are omitted or shortened unless the study sets their multiplier to 1. Far fewer users \
     load the system than the standard requires per warehouse.",
    "The measured window lasts minutes, not two hours, and need not contain the checkpoints the standard requires.",
    "Deliveries are executed when they are issued, not queued for deferred execution.",
    "Space for 60 days of growth is not configured, and no price is reported.",
    "Durability is not proven by cutting the power of the measured system during the run; power cuts of emulated \
     devices are tested separately.",
    "A transaction may take one round trip, through a server-side function; the study can ask for single statements \
     instead.",
    "Response times are measured at the load generator from the intended start; they exclude the display time of a \
     terminal.",
];

const DEFINITIONS: [(&str, &str); 12] = [
    (
        "TPM",
        "transactions per minute as counted by the engine. PostgreSQL: commits and rollbacks of the database, \
         except those of Underlay's samplers. MariaDB: COMMIT and ROLLBACK statements; for a load of autocommit \
         statements only, Handler_commit, provided that no session issues BEGIN, COMMIT or ROLLBACK and the binary \
         log is off. Engines count differently: do not compare TPM between engines. Unknown if connections were \
         lost in the window, because a restarted server counts from 0",
    ),
    (
        "response time",
        "from the intended start of a transaction to its end; in an open loop this \
         includes waiting for a free user",
    ),
    ("service time", "from the actual start of the last attempt to its end"),
    (
        "run",
        "one design in one repeat: restored, started, warmed up, measured at each number of users, \
         stopped, checked. Runs are the unit of repetition: only intervals over runs cover run-to-run variation",
    ),
    (
        "interval",
        "95 % confidence interval: over runs by Student's t; within a single run by ten batch means, which does \
         not cover run-to-run variation; for percentiles by a bootstrap over blocks of 10 s",
    ),
    (
        "ratio",
        "of paired runs (same repeat): geometric mean, with Student's t on the logarithms, no narrower than the \
         variation within the runs allows; p values are corrected for all comparisons of the study, of which throughput \
         at the highest common rung is the main one",
    ),
    ("no difference shown", "the interval of the ratio includes 1; this does not prove equality"),
    ("the same within 5 %", "both one-sided tests reject a difference beyond 5 %"),
    (
        "time budget",
        "mean number of sessions in each state, from session samples, with CPU and run-queue time from \
         the scheduler; the sum must match the number of users within 10 %",
    ),
    (
        "bottleneck",
        "found by fixed rules over the time budget; if a gate fails, there is no verdict",
    ),
    (
        "latency-bound, capacity-bound",
        "latency-bound: throughput grows with the number of users (exponent of at least 0.7 from the previous rung), \
         so a faster resource or more users help. Capacity-bound: it does not (at most 0.3), so only more of the \
         resource, or less work, helps",
    ),
    (
        "steady",
        "no step, no trend of 2 % or more and no long warm-up inside the window, as far as its \
         length allows a judgement",
    ),
];

/// Of a job that takes backups.
const BACKUP_METRICS: [MetricRow; 5] = {
    use Direction::{Higher, Lower};
    [
        (
            "backup_s",
            "Time of a backup",
            "s",
            Lower,
            "mean time from the start of the engine's program until the backup is durable",
        ),
        (
            "restore_s",
            "Time of a restore",
            "s",
            Lower,
            "mean time until the restored copy, ready to be started, is durable",
        ),
        (
            RESTORED,
            "Restored",
            "bytes/s",
            Higher,
            "bytes of all restored copies over the time that the restores took",
        ),
        (
            "backup_latency_ns",
            "I/O of a backup",
            "ns",
            Lower,
            "mean time of a read of the volume `data` or a write to the volume `backup` while backups are taken",
        ),
        (
            "restore_latency_ns",
            "I/O of a restore",
            "ns",
            Lower,
            "mean time of a read of the volume `backup` or a write to the volume `data` during restores",
        ),
    ]
};

const METRICS: [MetricRow; 45] = {
    use Direction::{Higher, Lower, Neither};
    [
        ("headline", "Headline", "", Higher, "what the workload counts"),
        (
            "headline_p95_ns",
            "Headline p95",
            "ns",
            Lower,
            "95th percentile of the response time of what the headline counts",
        ),
        (
            "job_s",
            "Duration",
            "s",
            Lower,
            "time from the job's begin to its end; of a warehouse, of the measured power run and the throughput run",
        ),
        (
            "tpm",
            "Transactions per minute",
            "1/min",
            Higher,
            "commits and rollbacks as counted by the engine",
        ),
        ("tpm_per_user", "TPM per user", "1/min", Higher, "TPM divided by the number of users"),
        (
            "transactions_per_second",
            "Transactions per second",
            "1/s",
            Higher,
            "completed transactions of all types, counted by the load generator",
        ),
        (
            "error_share",
            "Failed attempts",
            "share",
            Lower,
            "attempts that ended in an error, over all attempts",
        ),
        (
            "cpu_idle",
            "CPU idle",
            "share",
            Neither,
            "share of the time in which the host's processors were idle or waiting for I/O",
        ),
        (
            "server_cpu_idle",
            "CPU idle of the server's limit",
            "share",
            Neither,
            "share of the processors that the server may use (its CPU limit) that it left idle and could have had",
        ),
        (
            "cpu_iowait",
            "CPU waiting for I/O",
            "share",
            Neither,
            "the part of the idle time with I/O outstanding",
        ),
        ("cpu_steal", "CPU steal", "share", Lower, "time that the hypervisor gave to other guests"),
        (
            "server_cores",
            "CPU of the server",
            "cores",
            Neither,
            "processors used by the database server",
        ),
        (
            "server_cpu_use",
            "CPU use of the server",
            "share",
            Neither,
            "processors used by the database server, as a share of those that it may use: its CPU limit, or the host's",
        ),
        (
            "driver_cores",
            "CPU of the load generator",
            "cores",
            Lower,
            "processors used by the load generator",
        ),
        (
            "client_network_ns",
            "Client's network per transaction",
            "ns",
            Lower,
            "time that the modelled network of a remote client held up a transaction, both ways",
        ),
        (
            "client_round_trips",
            "Round trips per transaction",
            "round trips",
            Neither,
            "answers of the server that passed the network of a remote client, per transaction",
        ),
        (
            "connection_wait_ns",
            "Wait for a connection",
            "ns",
            Lower,
            "what a transaction waited for one of the connections that users share, on average; part of its response time",
        ),
        (
            "datastore_cores",
            "CPU of the datastore",
            "cores",
            Neither,
            "processors used by the emulated datastore",
        ),
        (
            "interference_cores",
            "CPU of other processes",
            "cores",
            Lower,
            "busy processors not accounted for by known processes; includes kernel threads of the export path",
        ),
        (
            "server_run_queue",
            "Server waiting for CPU",
            "sessions",
            Lower,
            "mean number of server processes that are runnable but not running",
        ),
        (
            "log_bytes_per_second",
            "Log written",
            "bytes/s",
            Neither,
            "bytes of log (WAL) per second",
        ),
        (
            "cache_hit_share",
            "Buffer hits",
            "share",
            Neither,
            "share of block requests served from the database's buffer pool",
        ),
        (
            "bytes_per_second",
            "Bytes",
            "bytes/s",
            Higher,
            "bytes read and written per second, counted by the block load generator",
        ),
        (
            "rate_at_1ms",
            "I/Os per second at 1 ms",
            "1/s",
            Higher,
            "rate at which the mean response time reaches 1 ms, interpolated between the points of the rate curve",
        ),
        (
            "datastore_read_iops",
            "Reads, all volumes",
            "1/s",
            Neither,
            "reads completed by the block devices of all databases",
        ),
        (
            "datastore_write_iops",
            "Writes, all volumes",
            "1/s",
            Neither,
            "writes completed by the block devices of all databases",
        ),
        (
            "datastore_read_latency_ns",
            "Read latency, all volumes",
            "ns",
            Lower,
            "mean time of a read of any volume, from queueing to completion",
        ),
        (
            "datastore_write_latency_ns",
            "Write latency, all volumes",
            "ns",
            Lower,
            "mean time of a write to any volume, from queueing to completion",
        ),
        ("read_iops", "Reads", "1/s", Neither, "reads completed by the volume's block device"),
        ("write_iops", "Writes", "1/s", Neither, "writes completed by the volume's block device"),
        ("flush_iops", "Flushes", "1/s", Neither, "flushes completed by the volume's block device"),
        (
            "read_bytes_per_second",
            "Read",
            "bytes/s",
            Neither,
            "bytes read from the volume's block device",
        ),
        (
            "write_bytes_per_second",
            "Written",
            "bytes/s",
            Neither,
            "bytes written to the volume's block device",
        ),
        (
            "read_latency_ns",
            "Read latency, block layer",
            "ns",
            Lower,
            "mean time of a read from queueing to completion",
        ),
        (
            "write_latency_ns",
            "Write latency, block layer",
            "ns",
            Lower,
            "mean time of a write from queueing to completion",
        ),
        ("flush_latency_ns", "Flush latency, block layer", "ns", Lower, "mean time of a flush"),
        (
            "queue_length",
            "Requests outstanding",
            "requests",
            Neither,
            "mean number of requests queued or in service",
        ),
        (
            "datastore_read_mean_ns",
            "Read latency, datastore (mean)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_read_p50_ns",
            "Read latency, datastore (p50)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_read_p99_ns",
            "Read latency, datastore (p99)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_write_mean_ns",
            "Write latency, datastore (mean)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_write_p50_ns",
            "Write latency, datastore (p50)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_write_p99_ns",
            "Write latency, datastore (p99)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_flush_p50_ns",
            "Flush latency, datastore (p50)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
        (
            "datastore_flush_p99_ns",
            "Flush latency, datastore (p99)",
            "ns",
            Lower,
            "measured by the datastore itself",
        ),
    ]
};

#[cfg(test)]
mod tests {
    use super::{key_think_seconds, metric_named, response_limit_ns, type_order};

    #[test]
    fn the_standards_times() {
        assert_eq!(key_think_seconds("new_order"), 30.0);
        assert_eq!(response_limit_ns("stock_level"), Some(20_000_000_000));
        assert_eq!(key_think_seconds("other"), 0.0);
        assert!(type_order("new_order") < type_order("stock_level"));
        assert!(metric_named("headline").is_some() && metric_named("tpmc").is_none());
    }
}
