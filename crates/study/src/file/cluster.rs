//! `datastore.cluster`: a hyper-converged cluster.

use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{Checksum, Method};

use crate::entry::{Entry, Section};
use crate::file::group_device::{GroupDevice, group_device};
use crate::limits::{CPUS, THREADS_PER_CORE};
use crate::plan::{ReductionKind, ResyncKind};
use crate::section::*;

section! {
    /// A hyper-converged cluster: one datastore over the disk groups of several hosts.
    pub(crate) struct Cluster as "Cluster" {
        /// The hosts, here or in the built-in design.
        "hosts" hosts: Entry<Vec<Section<Host>>> = tables::<Host>();
        /// The network between them.
        "network" network: Section<Network> = table::<Network>();
        /// What every volume of the design survives, and how it is spread.
        "policy" policy: Section<Policy> = table::<Policy>();
        /// Deduplication and compression of data as it leaves the write buffer.
        "reduction" reduction: Entry<ReductionKind> = One(word::<ReductionKind>());
        /// How rebuilding shares the devices with the volumes.
        "resync" resync: Section<Resync> = table::<Resync>();
        /// How long an absent component may come back before it is rebuilt elsewhere.
        "repair-delay" repair_delay: Entry<Nanos> = One(time());
        /// How far apart requests enter the storage stack of a host: per copy of a write, four times that for one
        /// under RAID-5, six under RAID-6. It holds 32 of them, so that a request is in it for 32 times that; each
        /// byte adds 0.19 ns, and one that is read and reduced 0.47 ns. None, when left out.
        "stack" stack: Entry<Nanos> = One(time());
        /// Processor time of a volume's owner per request, as latency.
        "owner-overhead" owner_overhead: Entry<Nanos> = One(time());
    }
    written_for {
        "nodes" => "hosts", "host" => "hosts", "ftt" => "policy", "dedupe" => "reduction",
        "scheduler" => "resync",
    }
}

section! {
    /// One host, or several equal ones.
    pub(crate) struct Host as "Host" {
        /// Name; with a count, `-1`, `-2` and so on are appended.
        "name" name: Entry<String> = One(text());
        /// How many equal hosts. 1, when left out.
        "count" count: Entry<u64> = One(whole(1..=64));
        /// Hosts of one fault domain may fail together. Each host is its own, when left out.
        "fault-domain" fault_domain: Entry<String> = One(text());
        /// Processors of each host, which the databases placed on it share. No limit, when left out.
        "cores" cores: Entry<f64> = One(number(CPUS));
        /// Hardware threads of each core. With 2, the databases on a host get 1.18 times what its
        /// cores alone give, and one of them may use as many processors as there are threads. 1, when
        /// left out.
        "threads-per-core" threads_per_core: Entry<u64> = One(whole(THREADS_PER_CORE));
        /// Memory of each host, which the databases placed on it share. No limit, when left out.
        "memory" memory: Entry<Bytes> = One(size());
        /// Its disk groups: 1 to 5; an empty list makes a host that only holds witnesses.
        "disk-groups" disk_groups: Entry<Vec<Section<DiskGroup>>> = tables::<DiskGroup>();
    }
    written_for {
        "groups" => "disk-groups", "cpus" => "cores", "memory-limit" => "memory",
        "threads" => "threads-per-core", "hyper-threading" => "threads-per-core",
    }
    limits { "required": ["name", "disk-groups"] }
}

section! {
    /// One disk group, or several equal ones.
    pub(crate) struct DiskGroup as "DiskGroup" {
        /// Device profile of the cache device; `underlay list devices` shows them. A table changes
        /// values: { profile = "p4800x-375", overrides = { flush = "20us" } }.
        "cache" cache: Entry<Section<GroupDevice>> = One(group_device());
        /// Device profiles of the capacity devices: 1 to 7, each as for the cache device.
        "capacity" capacity: Entry<Vec<Section<GroupDevice>>> =
            One(list("device profiles", group_device()));
        /// How many equal disk groups per host. 1, when left out.
        "count" count: Entry<u64> = One(whole(1..=5));
    }
    limits { "required": ["cache", "capacity"] }
}

section! {
    /// The network between hosts.
    pub(crate) struct Network as "Network" {
        /// One way, from the sender's stack to the receiver's.
        "latency" latency: Entry<Nanos> = One(time());
        /// Each direction of each host's link per second, written as a size: 10 Gbit/s = "1250MB".
        "bytes-per-second" bytes_per_second: Entry<u64> = One(rate());
    }
    written_for {
        "bandwidth" => "bytes-per-second",
    }
}

section! {
    /// What a volume survives, and how it is spread.
    pub(crate) struct Policy as "Policy" {
        /// Failures of hosts or devices that lose nothing.
        "failures-to-tolerate" failures_to_tolerate: Entry<u64> = One(whole(0..=2));
        /// By copies or by parity.
        "method" method: Entry<Method> = One(word::<Method>());
        /// Capacity devices over which each copy is spread.
        "stripe-width" stripe_width: Entry<u64> = One(whole(1..=12));
        /// Largest rate per volume in requests of 32 KiB per second. Unlimited, when left out.
        "iops-limit" iops_limit: Entry<u64> = One(whole(1..=u64::from(u32::MAX)));
        /// Whether blocks carry a checksum that is verified on each read.
        "checksum" checksum: Entry<Checksum> = One(word::<Checksum>());
        /// Share of a volume that is set aside at creation.
        "space-reservation-percent" space_reservation_percent: Entry<u64> = One(whole(0..=100));
    }
    written_for {
        "ftt" => "failures-to-tolerate", "stripes" => "stripe-width", "raid" => "method",
    }
}

section! {
    /// How rebuilding shares the devices with the volumes.
    pub(crate) struct Resync as "Resync" {
        /// `adaptive` (releases from 6.7), `none`, `static-limit` or `latency-watermark` (older
        /// ones).
        "policy" policy: Entry<ResyncKind> = One(word::<ResyncKind>());
        /// Share that rebuilding keeps under the adaptive policy.
        "floor-percent" floor_percent: Entry<u64> = One(whole(0..=90));
        /// The limit of `static-limit` per second, and the lowest rate of `latency-watermark`,
        /// written as a size.
        "bytes-per-second" bytes_per_second: Entry<u64> = One(rate());
        /// Bytes of one piece.
        "slice" slice: Entry<Bytes> = One(size());
        /// Pieces under way per disk group.
        "window" window: Entry<u64> = One(whole(1..=64));
    }
}
