//! What the sampler of processes declares: its series, its costs, its traps.

use crate::declare::{SamplerDoc, SeriesDoc};
use underlay_core::series::Layer;

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "process",
    layer: Layer::Host,
    reads: "/proc/<pid>/{stat,schedstat,io,task/*/children} of every member of the tree",
    costs: "11 us per process, 8 us in a tree of more than 256",
    needs: "the same user or root for the I/O counters; CONFIG_SCHED_INFO for nanoseconds and the run queue",
    traps: &[
        "a member that lives and ends between two ticks is not seen, except its I/O if its parent waited for it",
        "write.bytes counts pages made dirty, not what a device wrote; write.cancelled is what was deleted before being written",
        "rss counts shared memory once per process: for a server with shared buffers use source cgroup",
        "a process inherits the I/O of children it waited for, also of the root of another tree. A driver's read and write counters jump when its server ends",
        "CPU time and run queue of a member after its last sighting are lost: at most one interval",
    ],
    series: &[
        SeriesDoc::counter(
            "<process>.on_cpu",
            "ns",
            "time on a CPU of all members, present and past",
        ),
        SeriesDoc::counter("<process>.run_queue", "ns", "time runnable but without a CPU"),
        SeriesDoc::counter(
            "<process>.major_faults",
            "events",
            "page faults that read from a device",
        ),
        SeriesDoc::counter(
            "<process>.read.chars",
            "bytes",
            "bytes returned by read calls, from cache or not, sockets included",
        ),
        SeriesDoc::counter(
            "<process>.write.chars",
            "bytes",
            "bytes handed to write calls, sockets included",
        ),
        SeriesDoc::counter("<process>.read.calls", "calls", "read calls"),
        SeriesDoc::counter("<process>.write.calls", "calls", "write calls"),
        SeriesDoc::counter("<process>.read.bytes", "bytes", "bytes fetched from block devices"),
        SeriesDoc::counter(
            "<process>.write.bytes",
            "bytes",
            "bytes of page cache made dirty, and direct writes",
        ),
        SeriesDoc::counter(
            "<process>.write.cancelled",
            "bytes",
            "dirty bytes thrown away before being written",
        ),
        SeriesDoc::gauge(
            "<process>.rss",
            "bytes",
            "resident memory, shared pages counted once per process",
        )
        .quantum("one page"),
        SeriesDoc::gauge("<process>.threads", "threads", "threads now"),
        SeriesDoc::gauge(
            "<process>.processes",
            "processes",
            "members now; 0 when the tree has ended",
        ),
    ],
};
