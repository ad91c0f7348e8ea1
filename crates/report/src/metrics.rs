//! The metrics of a report: names, titles, units, directions and definitions.
//!
//! What it deliberately does not do: compute any of them.

use crate::analysis::{Direction, Metric};

/// The metric of the main comparisons.
pub(crate) const HEADLINE: &str = "headline";

/// The metric of latency comparisons.
pub(crate) const LATENCY: &str = "headline_p95_ns";

/// The metric of restores, of a job that takes backups.
pub(crate) const RESTORED: &str = "restore_bytes_per_second";

/// The metric of rate curves: the rate at which the mean response time reaches its limit.
pub(crate) const RATE_AT_LIMIT: &str = "rate_at_1ms";

/// The mean response time at the maximum that a rate curve was measured from.
pub(crate) const LATENCY_AT_PEAK: &str = "latency_at_peak_ns";

/// The metrics of every workload, in the order of pages.
pub(crate) fn metrics() -> impl Iterator<Item = Metric> {
    METRICS.iter().map(metric)
}

/// What a job that takes backups has in addition.
pub(crate) fn backup_metrics() -> impl Iterator<Item = Metric> {
    BACKUP_METRICS.iter().map(metric)
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

const METRICS: [MetricRow; 48] = {
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
            "latency_at_peak_ns",
            "Latency at the peak",
            "ns",
            Lower,
            "mean response time at the maximum of the rate curve: a closed loop, in which it equals the service time",
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
        (
            "resync_iops",
            "Resync under load",
            "1/s",
            Neither,
            "reads and writes of resync on the cluster's devices in the measured window",
        ),
        (
            "resync_alone_iops",
            "Resync alone",
            "1/s",
            Neither,
            "reads and writes of resync on the cluster's devices before the load begins",
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
    use super::metric_named;

    #[test]
    fn metrics_are_found_by_name() {
        assert!(metric_named("headline").is_some() && metric_named("tpmc").is_none());
    }
}
