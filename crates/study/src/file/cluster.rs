//! `datastore.cluster`: a hyper-converged cluster.

use schemars::JsonSchema;
use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{Checksum, Method};

use crate::entry::{Entry, Section};
use crate::plan::{ReductionKind, ResyncKind};
use crate::reader::Keys;
use crate::schema::{Size, Time};
use crate::words::Word;

/// A hyper-converged cluster: one datastore over the disk groups of several hosts.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Cluster {
    /// The hosts, here or in the built-in design.
    pub hosts: Entry<Vec<Section<Host>>>,
    /// The network between them.
    pub network: Section<Network>,
    /// What every volume of the design survives, and how it is spread.
    pub policy: Section<Policy>,
    /// Deduplication and compression of data as it leaves the write buffer.
    #[schemars(with = "Word<ReductionKind>")]
    pub reduction: Entry<ReductionKind>,
    /// How rebuilding shares the devices with the volumes.
    pub resync: Section<Resync>,
    /// How long an absent component may come back before it is rebuilt elsewhere.
    #[schemars(with = "Time")]
    pub repair_delay: Entry<Nanos>,
    /// Processor time of a volume's owner per request, as latency.
    #[schemars(with = "Time")]
    pub owner_overhead: Entry<Nanos>,
}

/// One host, or several equal ones.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Host")]
#[schemars(extend("x-required" = ["name", "disk-groups"]))]
pub(crate) struct Host {
    /// Name; with a count, `-1`, `-2` and so on are appended.
    pub name: Entry<String>,
    /// How many equal hosts. 1, when left out.
    #[schemars(range(min = 1, max = 64))]
    pub count: Entry<u64>,
    /// Hosts of one fault domain may fail together. Each host is its own, when left out.
    pub fault_domain: Entry<String>,
    /// Its disk groups: 1 to 5; an empty list makes a host that only holds witnesses.
    pub disk_groups: Entry<Vec<Section<DiskGroup>>>,
}

/// One disk group, or several equal ones.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "DiskGroup")]
#[schemars(extend("x-required" = ["cache", "capacity"]))]
pub(crate) struct DiskGroup {
    /// Device profile of the cache device; `underlay list devices` shows them.
    pub cache: Entry<String>,
    /// Device profiles of the capacity devices: 1 to 7.
    pub capacity: Entry<Vec<String>>,
    /// How many equal disk groups per host. 1, when left out.
    #[schemars(range(min = 1, max = 5))]
    pub count: Entry<u64>,
}

/// The network between hosts.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Network")]
pub(crate) struct Network {
    /// One way, from the sender's stack to the receiver's.
    #[schemars(with = "Time")]
    pub latency: Entry<Nanos>,
    /// Each direction of each host's link per second, written as a size: 10 Gbit/s = "1250MB".
    #[schemars(with = "Size")]
    pub bytes_per_second: Entry<u64>,
}

/// What a volume survives, and how it is spread.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Policy")]
pub(crate) struct Policy {
    /// Failures of hosts or devices that lose nothing.
    #[schemars(range(min = 0, max = 2))]
    pub failures_to_tolerate: Entry<u64>,
    /// By copies or by parity.
    #[schemars(with = "Word<Method>")]
    pub method: Entry<Method>,
    /// Capacity devices over which each copy is spread.
    #[schemars(range(min = 1, max = 12))]
    pub stripe_width: Entry<u64>,
    /// Largest rate per volume in requests of 32 KiB per second. Unlimited, when left out.
    #[schemars(range(min = 1))]
    pub iops_limit: Entry<u64>,
    /// Whether blocks carry a checksum that is verified on each read.
    #[schemars(with = "Word<Checksum>")]
    pub checksum: Entry<Checksum>,
    /// Share of a volume that is set aside at creation.
    #[schemars(range(min = 0, max = 100))]
    pub space_reservation_percent: Entry<u64>,
}

/// How rebuilding shares the devices with the volumes.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Resync")]
pub(crate) struct Resync {
    /// `adaptive` (releases from 6.7), `none`, `static-limit` or `latency-watermark` (older ones).
    #[schemars(with = "Word<ResyncKind>")]
    pub policy: Entry<ResyncKind>,
    /// Share that rebuilding keeps under the adaptive policy.
    #[schemars(range(min = 0, max = 90))]
    pub floor_percent: Entry<u64>,
    /// The limit of `static-limit` per second, and the lowest rate of `latency-watermark`, written as a size.
    #[schemars(with = "Size")]
    pub bytes_per_second: Entry<u64>,
    /// Bytes of one piece.
    #[schemars(with = "Size")]
    pub slice: Entry<Bytes>,
    /// Pieces under way per disk group.
    #[schemars(range(min = 1, max = 64))]
    pub window: Entry<u64>,
}

/// Reads a cluster.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Cluster {
    keys.alias("nodes", "hosts");
    keys.alias("host", "hosts");
    keys.alias("ftt", "policy");
    keys.alias("dedupe", "reduction");
    keys.alias("scheduler", "resync");
    Cluster {
        hosts: keys.sections("hosts", read_host),
        network: keys.section("network", |keys| {
            keys.alias("bandwidth", "bytes-per-second");
            Network {
                latency: keys.take("latency", |item, report| item.time(report)),
                bytes_per_second: keys.take("bytes-per-second", |item, report| item.rate(report)),
            }
        }),
        policy: keys.section("policy", read_policy),
        reduction: keys.take("reduction", |item, report| item.word(report)),
        resync: keys.section("resync", |keys| Resync {
            policy: keys.take("policy", |item, report| item.word(report)),
            floor_percent: keys.take("floor-percent", |item, report| item.integer(report, 0..=90)),
            bytes_per_second: keys.take("bytes-per-second", |item, report| item.rate(report)),
            slice: keys.take("slice", |item, report| item.size(report)),
            window: keys.take("window", |item, report| item.integer(report, 1..=64)),
        }),
        repair_delay: keys.take("repair-delay", |item, report| item.time(report)),
        owner_overhead: keys.take("owner-overhead", |item, report| item.time(report)),
    }
}

fn read_host(keys: &mut Keys<'_, '_>) -> Host {
    keys.alias("groups", "disk-groups");
    Host {
        name: keys.take("name", |item, report| item.text(report)),
        count: keys.take("count", |item, report| item.integer(report, 1..=64)),
        fault_domain: keys.take("fault-domain", |item, report| item.text(report)),
        disk_groups: keys.sections("disk-groups", read_disk_group),
    }
}

/// Reads a disk group.
pub(crate) fn read_disk_group(keys: &mut Keys<'_, '_>) -> DiskGroup {
    DiskGroup {
        cache: keys.take("cache", |item, report| item.text(report)),
        capacity: keys.take("capacity", |item, report| {
            item.list(report, "device profiles", |item, report| item.text(report))
        }),
        count: keys.take("count", |item, report| item.integer(report, 1..=5)),
    }
}

/// Reads a policy.
pub(crate) fn read_policy(keys: &mut Keys<'_, '_>) -> Policy {
    keys.alias("ftt", "failures-to-tolerate");
    keys.alias("stripes", "stripe-width");
    keys.alias("raid", "method");
    Policy {
        failures_to_tolerate: keys
            .take("failures-to-tolerate", |item, report| item.integer(report, 0..=2)),
        method: keys.take("method", |item, report| item.word(report)),
        stripe_width: keys.take("stripe-width", |item, report| item.integer(report, 1..=12)),
        iops_limit: keys
            .take("iops-limit", |item, report| item.integer(report, 1..=u64::from(u32::MAX))),
        checksum: keys.take("checksum", |item, report| item.word(report)),
        space_reservation_percent: keys
            .take("space-reservation-percent", |item, report| item.integer(report, 0..=100)),
    }
}
