//! The names that the writer and the readers of a record have agreed on.
//!
//! A record accepts other names too; these are the ones that reports look for. A reader tolerates
//! the absence of every one of them.
//!
//! **Times.** Everything lies on the clock of the run, which begins at 0. What covers a time (a tick of the load generator, a
//! histogram, a window of session samples) carries its begin and its end. What is read at a moment (counters and gauges
//! of a source) carries the begin and the end of the *reading*, which is short, and covers the time up to it: an increase belongs
//! to the time between two readings. Readings are due at whole seconds. A reader draws each in the second that contains the
//! middle of its interval, so that effects of an event are drawn neither before it nor a second late.

/// What belongs to one of several databases of a run is recorded under the name of the database, a slash and the name that it has in
/// a run of one: `oltp-1/new_order`, `oltp-1/postgres`, `oltp-1/engine`. So are transactions, documents of a run, sources, checks and
/// the histograms of [`histogram_scope::DRIVER`]. Under the plain names are the totals: counts and distributions of all databases
/// together; of their servers what they have in common.
pub const OF_DATABASE: char = '/';

/// Names of [`crate::Document`]s.
pub mod document {
    /// Per run: settings of the database engine in force, object `name -> value` (text or
    /// `{"value": .., "source": ..}`; under time dilation also `"server_value"`, which the server was given for `value`).
    pub const ENGINE_SETTINGS: &str = "engine-settings";
    /// Of the execution, where it is not in real time: `factor` (how many times longer than its design time, in which all
    /// times of runs are), `asked` (`auto` or the factor), and of `auto` what decided.
    pub const TIME_DILATION: &str = "time-dilation";
    /// Per run: engine, version, server programs, data size in bytes (`"data_bytes"`).
    pub const ENGINE: &str = "engine";
    /// Per run: the datastore as opened: `volumes`, each `name`, `path`, `block_device` (null when its file system has no single
    /// one), `owns_block_device` (whether the device serves nothing else; older records do not say), `capacity_bytes`,
    /// `file_system`.
    pub const DATASTORE: &str = "datastore";
    /// Per run: the emulation's verdict on its own timing: `valid`, `reason`, `host_limited_share`,
    /// `floor_ns`, `compensation_ns` (of reads). Its histograms are stored under
    /// [`super::histogram_scope::TIMING`].
    pub const TIMING: &str = "timing";
    /// Per run: the driver's totals at its end: outages, unknown and lost commits, totals; and `commits`: how transactions of
    /// each type were committed, `type -> {"by": .., "count": ..}`, `by` one of [`super::commits_by`]. Older records have no `commits`,
    /// those of jobs an empty one.
    pub const DRIVER: &str = "driver";
    /// Per run with a client that is not as always: `place` (`host`, `local`, `remote`), `round_trip_ns`,
    /// `bytes_per_second`, `connections` (null where there is none); of a remote one `network`: what passed it from its
    /// start to the end of the run: `round_trips`, `delay_ns` (time that it held up connections), `late_mean_ns` (host
    /// time, per piece, beyond what it should have), `bytes_to_server`, `bytes_to_client`, `cpu_ns`, `has_priority`.
    pub const CLIENT: &str = "client";
    /// Per run: the collector's totals at its end: missed ticks, its own cost.
    pub const COLLECTOR: &str = "collector";
    /// Per run: limits that the host could not enforce: array of `{limit, reason, remedy}`.
    pub const UNENFORCED: &str = "unenforced";
    /// Per run with scheduled faults: their times and consequences: `verdict` (`survived`, `down`, `lost`),
    /// `tolerated`, `failures_at_once`, `promise_exceeded_by`, `faults`, `database_down`.
    pub const FAULTS: &str = "faults";
    /// Per run with background work: for each, `name`, `text`, `began_ns`, `ended_ns`, `complete`, `reads`,
    /// `writes`, `read_bytes`, `write_bytes`, `errors`. Latencies are stored under [`super::histogram_scope::BACKGROUND`].
    pub const BACKGROUND: &str = "background";
    /// Per run with a search for the highest rate that meets a latency target: `slo`, `quantile`, `limit_ns`, `found`
    /// (`kind`: `rate`, `at-least` or `nothing`; `holds_per_second`, `fails_per_second`), `conclusion` (a sentence), `steps`: each
    /// `rate_per_second`, `measured_ns`, `delivered_per_second`, `transactions`, `observed_ns`, `late_share` with its bounds,
    /// `verdict`, `connections_lost`, `holds`, `by_point_estimate`, `purpose`, `begin_ns`, `end_ns`.
    pub const RATE_SEARCH: &str = "rate-search";
    /// Per run with a causal check: `users`, `factor`, `reaction_ns`, `periods`: in their order, each `resource` (null where nothing
    /// was changed), `factor` (times the service time; below 1 it was faster), `begin_ns` and `end_ns` (of what counts, the
    /// reaction to the change left out); `not_perturbed`: each `resource`, `reason`.
    pub const CAUSAL_CHECK: &str = "causal-check";
    /// Per run of a block load: `loads`, in the order in which they ran, each `label`, `in_flight`, `counts` (whether it belongs to
    /// what is reported: not a point of a curve, nor a round before the steady ones), `offered_per_second` (null in a closed
    /// loop), `done_per_second`, `bytes_per_second`, `mean_ns`, `p50_ns`, `p95_ns`, `p99_ns`, `p999_ns` (of response times from
    /// the intended start), `saturated` (null of a load that ended before its time), `due` and `undelivered` (requests of an
    /// open loop), `errors`, `interrupted`, `failure`, `begin_ns`, `end_ns` (of the measured time); `loads_planned`: of a curve;
    /// `interrupted`, `failure`; `generator_busy`; `result`: what is reported, as the command's `--json` has it, null of a curve;
    /// `steady`: null where it was not asked or could not be judged; `steady_state`: `rounds`, `rounds_max`, `range_share`,
    /// `excursion_share`, null where it was not asked. In the ticks of its run the requests that completed after the
    /// measured time are in the distributions of its last second, and in no count.
    pub const BLOCK_LOAD: &str = "block-load";
    /// Per run whose headline is concluded, not counted: `value`, in the unit of the plan's `outcome`; null when there is none.
    /// Of backups also `backup` and `restore` (null without), each `count`, `bytes_per_second`, `seconds` (the mean of one), and
    /// `operations`, in their order: `kind` (`backup` or `restore`), `cycle`, `begin_ns`, `end_ns`, `bytes`.
    pub const OUTCOME: &str = "outcome";
    /// Per simulated run: `rungs`, each `users`, `measured_ns`, `planned_ns`, `ended_early` (its throughput was known), `precision`
    /// (half the width of the 95 % interval of throughput, as a share; null of short windows).
    pub const SIMULATION: &str = "simulation";
    /// Per execution: how the template database was loaded.
    pub const LOAD: &str = "load";
}

/// How transactions of a type are committed, in [`document::DRIVER`]: what an engine's counters make of them.
pub mod commits_by {
    /// Explicit COMMIT or ROLLBACK, by the session or within a procedure.
    pub const EXPLICIT: &str = "commit";
    /// Autocommit statements; `count` of them for each transaction.
    pub const AUTOCOMMIT: &str = "statement";
}

/// Scopes of [`crate::HistogramRow`]s.
pub mod histogram_scope {
    /// Per tick; name `<volume>.<operation>` (`data.read`): latency as the datastore saw it.
    pub const DATASTORE: &str = "datastore";
    /// Per tick; name `group.<host>/<group>.<class>.<operation>` (`group.h0/g0.vm.read`): latency of the requests of a class to
    /// a disk group of a cluster; `device.<host>/<group>/<device>.<operation>`: of the requests to a device. Disk groups of
    /// a host are merged for the host's.
    pub const CLUSTER: &str = "cluster";
    /// Per tick; name [`super::DISPATCH_LAG`]: actual minus intended dispatch of the load generator;
    /// [`super::CONNECTION_WAIT`]: what transactions waited for a connection, one value for each that had to wait. There is none
    /// of a tick in which none waited.
    pub const DRIVER: &str = "driver";
    /// Per run; name `<work>.read` or `<work>.write`: latency of background work, from the intended start.
    pub const BACKGROUND: &str = "background";
    /// Per run or tick; names [`super::LATENESS`] and [`super::MODELLED`].
    pub const TIMING: &str = "timing";
}

/// Name of the histogram of the load generator's lateness.
pub const DISPATCH_LAG: &str = "dispatch_lag";
/// Name of the histogram of waits for a connection that users share.
pub const CONNECTION_WAIT: &str = "connection_wait";
/// Name of the histogram of actual completion minus modelled deadline.
pub const LATENESS: &str = "lateness";
/// Name of the histogram of modelled latency.
pub const MODELLED: &str = "modelled";

/// Kinds of [`crate::Event`]s.
pub mod event {
    /// A checkpoint of the database began.
    pub const CHECKPOINT_BEGIN: &str = "checkpoint-begin";
    /// A checkpoint of the database ended.
    pub const CHECKPOINT_END: &str = "checkpoint-end";
    /// A scheduled fault happened; data carries `number`, `kind`, `target`, and `until_ns` where its end is planned.
    pub const FAULT: &str = "fault";
    /// A fault was repaired; data carries its `number`.
    pub const REPAIR: &str = "repair";
    /// The database was started again after a fault took it down; data carries `until_ns`.
    pub const RECOVERY: &str = "recovery";
    /// Resynchronisation of the datastore began or ended.
    pub const RESYNC: &str = "resync";
    /// A part of the datastore changed its state: a host, a device, a component, a volume.
    pub const STORAGE: &str = "storage";
    /// Background work began; data carries its `name`.
    pub const BACKGROUND: &str = "background";
    /// Background work ended; data carries its `name`.
    pub const BACKGROUND_END: &str = "background-end";
    /// The mix of transactions was changed; data carries `until_ns` where its end is planned.
    pub const WEIGHTS: &str = "weights";
    /// A resource was slowed, or made faster, by a causal check; data carries `resource`, `factor`, `until_ns`.
    pub const PERTURBATION: &str = "perturbation";
    /// A step of a search began; data carries its `rate_per_second`.
    pub const RATE: &str = "rate";
    /// A backup or restore of a job; data carries `until_ns`. Derived by reports from the outcome.
    pub const OPERATION: &str = "operation";
    /// The memory of the server was full of pages for the first time. Derived by reports.
    pub const MEMORY_FULL: &str = "memory-full";
    /// The job of a database was done, beside the users of others.
    pub const JOB_DONE: &str = "job-done";
    /// The load generator lost the database; data may carry `until_ns`.
    pub const OUTAGE: &str = "outage";
    /// A note of a sampler.
    pub const NOTE: &str = "note";
}

/// Codes of [`crate::Finding`]s that the lab writes. Reports derive more from the data.
pub mod finding {
    /// A limit of the plan could not be enforced on this host.
    pub const LIMIT_NOT_ENFORCED: &str = "limit-not-enforced";
    /// The emulation did not keep the modelled latency. Written by older versions alone: reports bound what it changed.
    pub const NOT_TIMING_VALID: &str = "not-timing-valid";
    /// A design cannot be told from this host. Derived by reports.
    pub const HOST_LIMITED: &str = "host-limited";
    /// The host may have changed a result by more than a little, and the interval with its share says by how much. Derived by
    /// reports.
    pub const BOUNDED: &str = "bounded";
    /// The record does not say how much of the I/O times was the host's. Derived by reports.
    pub const VALIDITY_UNKNOWN: &str = "validity-unknown";
    /// The database fits into the cache given to it.
    pub const DATA_FITS_CACHE: &str = "data-fits-cache";
    /// No acknowledged data was lost to the scheduled faults, and the database stayed up.
    pub const FAULTS_SURVIVED: &str = "faults-survived";
    /// Scheduled faults took the database down; no acknowledged data was lost.
    pub const FAULT_TOOK_DATABASE_DOWN: &str = "fault-took-database-down";
    /// Scheduled faults lost acknowledged data.
    pub const FAULT_LOST_DATA: &str = "fault-lost-data";
    /// A scheduled fault was not injected.
    pub const FAULT_DID_NOT_HAPPEN: &str = "fault-did-not-happen";
    /// Copies were still being made at the end of the longest time that the study waits for them.
    pub const RESYNC_NOT_DONE: &str = "resync-not-done";
    /// The job of a database was stopped with the users of others, before it was done.
    pub const JOB_STOPPED: &str = "job-stopped";
    /// The job of a database was done before the users of others had been measured.
    pub const JOB_DONE_EARLY: &str = "job-done-early";
    /// Summary of background work.
    pub const BACKGROUND: &str = "background";
    /// A search found no rate, or not the highest one.
    pub const RATE_SEARCH: &str = "rate-search";
    /// Volumes have no block device to themselves. Derived by reports.
    pub const SHARED_DEVICE: &str = "shared-device";
    /// The main ratio is as precise as the study asked for.
    pub const PRECISION_REACHED: &str = "precision-reached";
    /// It is not, after as many repeats as the study allows.
    pub const PRECISION_MISSED: &str = "precision-missed";
    /// A setting trades durability for speed.
    pub const NOT_DURABLE: &str = "not-durable";
    /// The network before the server may be later than the study says.
    pub const NETWORK_NOT_PROMPT: &str = "network-not-prompt";
    /// What the numbers of a simulation rest on.
    pub const SIMULATED: &str = "simulated";
    /// The execution was not in real time.
    pub const TIME_DILATION: &str = "time-dilation";
    /// A design needs a larger factor than `auto` chooses, so the host's share is above the aim.
    pub const TIME_DILATION_LIMITED: &str = "time-dilation-limited";
}

/// Series of the source [`source::DRIVER`].
pub mod driver_series {
    /// Counter, ns: CPU time of all threads of the load generator.
    pub const CPU: &str = "cpu";
    /// Counter, ns: time in which its busiest thread was running or runnable; of each tick the busiest
    /// thread of that tick.
    pub const BUSIEST_THREAD: &str = "busiest_thread.awake";
    /// Counter, ns of design time: answers that users left untaken because the sessions would still have been at work on the
    /// slower processors of a dilated design.
    pub const HELD_BACK: &str = "held_back";
    /// Gauge: users configured.
    pub const USERS_ACTIVE: &str = "users.active";
    /// Gauge: open sessions, also those of users that are not active.
    pub const SESSIONS: &str = "sessions";
    /// Gauge: users in a transaction.
    pub const USERS_IN_TRANSACTION: &str = "users.in_transaction";
    /// Gauge: users in the same attempt for longer than one second.
    pub const USERS_STALLED: &str = "users.stalled";
    /// Counter: open-loop arrivals that fell due.
    pub const ARRIVALS_DUE: &str = "arrivals.due";
    /// Counter: open-loop arrivals dropped because the queue was full.
    pub const ARRIVALS_OVERFLOWED: &str = "arrivals.overflowed";
    /// Gauge: open-loop arrivals waiting for a user.
    pub const ARRIVALS_QUEUED: &str = "arrivals.queued";
    /// Gauge, bytes: resident memory of the process.
    pub const MEMORY: &str = "memory.resident";

    /// Counter, transactions: those of a type whose processor time in the server was measured, one per millisecond and thread of
    /// the load generator at most. None where the server is on another host. Older records do not have it.
    pub fn server_cpu_transactions(kind: &str) -> String {
        format!("types.{kind}.server_cpu.transactions")
    }

    /// Counter, ns: processor time of the process or thread that worked for their sessions.
    pub fn server_cpu(kind: &str) -> String {
        format!("types.{kind}.server_cpu")
    }
}

/// Series of the source [`source::CLIENT_NETWORK`], all counters: what passed the network of a remote client. Times are the
/// design's own, but CPU time.
pub mod client_network_series {
    /// Answers to requests.
    pub const ROUND_TRIPS: &str = "round_trips";
    /// Time that connections were held up by the network, both ways, ns.
    pub const DELAY: &str = "delay";
    /// Bytes from the client.
    pub const TO_SERVER: &str = "to_server.bytes";
    /// Bytes from the server.
    pub const TO_CLIENT: &str = "to_client.bytes";
    /// CPU time of what stands for the network, ns.
    pub const CPU: &str = "cpu";
}

/// Series of the source [`source::DATASTORE`] of an emulated run, per [`IoClass`](underlay_core::IoClass): requests that a model was asked about.
///
/// The increase of [`io_series::actual`] less that of [`io_series::modelled`] is the host's share: what I/O took beyond
/// (negative: short of) what the modelled device takes. In the design's time, as all times of a datastore. Older records have none.
pub mod io_series {
    use underlay_core::IoClass;

    /// Counter: requests.
    pub fn ios(class: IoClass) -> String {
        format!("io.{}.ios", class.as_str())
    }

    /// Counter, ns: what the model said, queueing included.
    pub fn modelled(class: IoClass) -> String {
        format!("io.{}.modelled", class.as_str())
    }

    /// Counter, ns: what it took, the path through the host included.
    pub fn actual(class: IoClass) -> String {
        format!("io.{}.actual", class.as_str())
    }
}

/// Names of the sources of ticks.
pub mod source {
    /// CPU time of the host, per state.
    pub const HOST_CPU: &str = "host_cpu";
    /// Memory of the host.
    pub const MEMORY: &str = "memory";
    /// Pressure stall information.
    pub const PRESSURE: &str = "pressure";
    /// Network counters.
    pub const NETWORK: &str = "network";
    /// Block devices of the volumes.
    pub const BLOCK: &str = "block";
    /// The control group of the database.
    pub const CGROUP: &str = "cgroup";
    /// CPU and run-queue time per process group.
    pub const PROCESS: &str = "process";
    /// Samples of sessions and what they wait for.
    pub const WAITS: &str = "waits";
    /// Statistics views of PostgreSQL.
    pub const POSTGRES: &str = "postgres";
    /// Status counters of MariaDB.
    pub const MARIADB: &str = "mariadb";
    /// The datastore's own counters.
    pub const DATASTORE: &str = "datastore";
    /// Background work: `<work>.reads`, `.writes`, `.read_bytes`, `.write_bytes`, `.errors`, counted as requests complete.
    /// Older records have `.bytes`, of both, in which a block load was counted when a second of its own was over.
    pub const BACKGROUND: &str = "background";
    /// The load generator's own counters, as of its last tick: they date from the latest end of a tick of
    /// transactions before the reading.
    pub const DRIVER: &str = "driver";
    /// The network before the server, of a remote client.
    pub const CLIENT_NETWORK: &str = "client_network";
    /// Underlay's own cost.
    pub const UNDERLAY: &str = "underlay";
}
