//! What the sampler of control groups declares, and from which file each series comes.

use super::parse::Extract;
use crate::declare::{SamplerDoc, SeriesDoc};
use crate::samplers::pressure::Kind;
use underlay_core::series::Layer;

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "cgroup",
    layer: Layer::Host,
    reads: "memory.*, cpu.stat, cpuacct.*, blkio.throttle.*, io.stat, *.pressure of the server's group",
    costs: "95 us",
    needs: "a control group for the server; version 1 has no pressure",
    traps: &[
        "memory.usage includes the page cache that the server's reads and writes filled: reaching the limit is normal, failures and refaults are the news",
        "version 1 charges buffered writes to the root group: io.write.* then shows direct writes only. Without a limit in force some kernels count nothing: io.* is then missing",
        "io.* is the sum over devices: what goes through a stacked device (device mapper) is counted there and at the disk beneath",
        "shared buffers are charged to the process that touched a page first, and stay in memory.shared",
        "cpu.user and cpu.system of version 1 come in steps of 10 ms; cpu.usage is exact",
    ],
    series: &[
        SeriesDoc::gauge(
            "memory.usage",
            "bytes",
            "memory charged to the group, page cache included",
        ),
        SeriesDoc::gauge("memory.limit", "bytes", "its limit; missing when there is none"),
        SeriesDoc::counter(
            "memory.failures",
            "events",
            "charges that hit the limit and had to reclaim",
        ),
        SeriesDoc::gauge("memory.cache", "bytes", "page cache and shared memory of the group"),
        SeriesDoc::gauge("memory.rss", "bytes", "anonymous memory of the group"),
        SeriesDoc::gauge("memory.mapped", "bytes", "mapped file pages"),
        SeriesDoc::gauge(
            "memory.shared",
            "bytes",
            "shared memory and tmpfs: the server's shared buffers",
        ),
        SeriesDoc::gauge("memory.dirty", "bytes", "page cache waiting to be written"),
        SeriesDoc::gauge("memory.writeback", "bytes", "page cache being written"),
        SeriesDoc::counter(
            "memory.refaults.file",
            "pages",
            "file pages read again soon after being evicted: the working set does not fit",
        ),
        SeriesDoc::counter("memory.faults.major", "events", "page faults that read from a device"),
        SeriesDoc::counter(
            "memory.oom_kills",
            "events",
            "processes of the group killed for lack of memory",
        ),
        SeriesDoc::counter("cpu.usage", "ns", "CPU time of the group"),
        SeriesDoc::counter("cpu.user", "ns", "part of it in user mode")
            .quantum("10 ms on version 1"),
        SeriesDoc::counter("cpu.system", "ns", "part of it in the kernel")
            .quantum("10 ms on version 1"),
        SeriesDoc::counter(
            "cpu.periods",
            "periods",
            "enforcement periods in which the group wanted to run",
        ),
        SeriesDoc::counter(
            "cpu.throttled.periods",
            "periods",
            "of these, periods in which it was stopped by its limit",
        ),
        SeriesDoc::counter(
            "cpu.throttled.time",
            "ns",
            "time in which its CPUs were stopped by its limit",
        ),
        SeriesDoc::counter("io.read.bytes", "bytes", "read from block devices by the group"),
        SeriesDoc::counter("io.write.bytes", "bytes", "written to block devices by the group"),
        SeriesDoc::counter("io.read.ios", "ios", "reads from block devices by the group"),
        SeriesDoc::counter("io.write.ios", "ios", "writes to block devices by the group"),
        SeriesDoc::counter(
            "pressure.cpu.some",
            "us",
            "time in which a task of the group had no CPU",
        ),
        SeriesDoc::counter(
            "pressure.cpu.full",
            "us",
            "time in which all its non-idle tasks had no CPU",
        ),
        SeriesDoc::counter(
            "pressure.memory.some",
            "us",
            "time in which a task of the group waited for memory",
        ),
        SeriesDoc::counter(
            "pressure.memory.full",
            "us",
            "time in which all its non-idle tasks waited for memory",
        ),
        SeriesDoc::counter(
            "pressure.io.some",
            "us",
            "time in which a task of the group waited for I/O",
        ),
        SeriesDoc::counter(
            "pressure.io.full",
            "us",
            "time in which all its non-idle tasks waited for I/O",
        ),
    ],
};

/// Microseconds, and ticks of 10 ms, in nanoseconds.
const MICROSECOND: f64 = 1e3;
const TICK: f64 = 1e7;

/// File, series, how. Of several entries for a series the first whose file offers it is taken, so
/// that recursive counters come before plain ones.
pub(super) const ENTRIES: &[(&str, &str, Extract)] = &[
    ("memory.usage_in_bytes", "memory.usage", Extract::Number),
    ("memory.current", "memory.usage", Extract::Number),
    ("memory.limit_in_bytes", "memory.limit", Extract::Limit),
    ("memory.max", "memory.limit", Extract::Limit),
    ("memory.failcnt", "memory.failures", Extract::Number),
    ("memory.events", "memory.failures", Extract::Key(&["max"], 1.0)),
    ("memory.stat", "memory.cache", Extract::Key(&["total_cache", "cache", "file"], 1.0)),
    ("memory.stat", "memory.rss", Extract::Key(&["total_rss", "rss", "anon"], 1.0)),
    (
        "memory.stat",
        "memory.mapped",
        Extract::Key(&["total_mapped_file", "mapped_file", "file_mapped"], 1.0),
    ),
    ("memory.stat", "memory.shared", Extract::Key(&["total_shmem", "shmem"], 1.0)),
    ("memory.stat", "memory.dirty", Extract::Key(&["total_dirty", "dirty", "file_dirty"], 1.0)),
    (
        "memory.stat",
        "memory.writeback",
        Extract::Key(&["total_writeback", "writeback", "file_writeback"], 1.0),
    ),
    (
        "memory.stat",
        "memory.refaults.file",
        Extract::Key(
            &[
                "total_workingset_refault_file",
                "workingset_refault_file",
                "total_workingset_refault",
                "workingset_refault",
            ],
            1.0,
        ),
    ),
    ("memory.stat", "memory.faults.major", Extract::Key(&["total_pgmajfault", "pgmajfault"], 1.0)),
    ("memory.events", "memory.oom_kills", Extract::Key(&["oom_kill"], 1.0)),
    ("memory.oom_control", "memory.oom_kills", Extract::Key(&["oom_kill"], 1.0)),
    ("cpuacct.usage", "cpu.usage", Extract::Number),
    ("cpu.stat", "cpu.usage", Extract::Key(&["usage_usec"], MICROSECOND)),
    ("cpuacct.stat", "cpu.user", Extract::Key(&["user"], TICK)),
    ("cpu.stat", "cpu.user", Extract::Key(&["user_usec"], MICROSECOND)),
    ("cpuacct.stat", "cpu.system", Extract::Key(&["system"], TICK)),
    ("cpu.stat", "cpu.system", Extract::Key(&["system_usec"], MICROSECOND)),
    ("cpu.stat", "cpu.periods", Extract::Key(&["nr_periods"], 1.0)),
    ("cpu.stat", "cpu.throttled.periods", Extract::Key(&["nr_throttled"], 1.0)),
    ("cpu.stat", "cpu.throttled.time", Extract::Key(&["throttled_time"], 1.0)),
    ("cpu.stat", "cpu.throttled.time", Extract::Key(&["throttled_usec"], MICROSECOND)),
    ("blkio.throttle.io_service_bytes_recursive", "io.read.bytes", Extract::PerDevice("Read")),
    ("blkio.throttle.io_service_bytes", "io.read.bytes", Extract::PerDevice("Read")),
    ("io.stat", "io.read.bytes", Extract::Assigned("rbytes")),
    ("blkio.throttle.io_service_bytes_recursive", "io.write.bytes", Extract::PerDevice("Write")),
    ("blkio.throttle.io_service_bytes", "io.write.bytes", Extract::PerDevice("Write")),
    ("io.stat", "io.write.bytes", Extract::Assigned("wbytes")),
    ("blkio.throttle.io_serviced_recursive", "io.read.ios", Extract::PerDevice("Read")),
    ("blkio.throttle.io_serviced", "io.read.ios", Extract::PerDevice("Read")),
    ("io.stat", "io.read.ios", Extract::Assigned("rios")),
    ("blkio.throttle.io_serviced_recursive", "io.write.ios", Extract::PerDevice("Write")),
    ("blkio.throttle.io_serviced", "io.write.ios", Extract::PerDevice("Write")),
    ("io.stat", "io.write.ios", Extract::Assigned("wios")),
    ("cpu.pressure", "pressure.cpu.some", Extract::Pressure(Kind::Some)),
    ("cpu.pressure", "pressure.cpu.full", Extract::Pressure(Kind::Full)),
    ("memory.pressure", "pressure.memory.some", Extract::Pressure(Kind::Some)),
    ("memory.pressure", "pressure.memory.full", Extract::Pressure(Kind::Full)),
    ("io.pressure", "pressure.io.some", Extract::Pressure(Kind::Some)),
    ("io.pressure", "pressure.io.full", Extract::Pressure(Kind::Full)),
];
