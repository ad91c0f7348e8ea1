//! `[[fault]]`: something that breaks, or changes, at a moment of every run.

use schemars::JsonSchema;
use underlay_core::{Bytes, Nanos};

use super::cluster::{DiskGroup, Policy, read_disk_group, read_policy};
use crate::entry::{Entry, Section};
use crate::fault_plan::{FaultKind, FaultPhase};
use crate::reader::Keys;
use crate::schema::{Size, Time};
use crate::words::Word;

/// Something that breaks, or changes, at a moment of every run of the designs it concerns.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["kind", "at"]))]
pub(crate) struct Fault {
    /// What happens.
    #[schemars(with = "Word<FaultKind>")]
    pub kind: Entry<FaultKind>,
    /// When, since the beginning of the phase.
    #[schemars(with = "Time")]
    pub at: Entry<Nanos>,
    /// The phase. `measure`, when left out.
    #[schemars(with = "Word<FaultPhase>")]
    pub phase: Entry<FaultPhase>,
    /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last one, when left out.
    #[schemars(range(min = 1, max = 100_000))]
    pub users: Entry<u32>,
    /// After this time it is mended. At the end of the load, when left out.
    #[schemars(with = "Time")]
    pub lasts: Entry<Nanos>,
    /// Names of the designs of this study that it happens to. All of them, when left out.
    pub designs: Entry<Vec<String>>,
    /// The host of `host-lost`, `host-frozen` and `disk-group-added`.
    pub host: Entry<String>,
    /// The hosts of `hosts-partitioned`.
    pub hosts: Entry<Vec<String>>,
    /// The device: its name in the design, or `HOST/GROUP/cache`, `HOST/GROUP/disk0` and so on in a cluster.
    pub device: Entry<String>,
    /// The volume of `bit-rot`, `torn-write` and `policy-change`.
    pub volume: Entry<String>,
    /// How many times as long everything takes on a slow device.
    #[schemars(range(min = 1.0, max = 1_000_000.0))]
    pub factor: Entry<f64>,
    /// How often an erroring device fails: 0.01 = one request in a hundred.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: Entry<f64>,
    /// Bits that flip, each in a block of its own.
    #[schemars(range(min = 1, max = 1000))]
    pub bits: Entry<u64>,
    /// What a torn write stores: a multiple of 512 bytes below 64 KiB.
    #[schemars(with = "Size")]
    pub keep: Entry<Bytes>,
    /// What of the policy changes.
    pub policy: Section<Policy>,
    /// The disk group that is added.
    pub disk_group: Section<DiskGroup>,
}

/// Reads one fault.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Fault {
    keys.alias("type", "kind");
    keys.alias("fault", "kind");
    keys.alias("after", "at");
    keys.alias("when", "at");
    keys.alias("rung", "users");
    keys.alias("for", "lasts");
    keys.alias("duration", "lasts");
    keys.alias("design", "designs");
    keys.alias("group", "disk-group");
    Fault {
        kind: keys.take("kind", |item, report| item.word(report)),
        at: keys.take("at", |item, report| item.time(report)),
        phase: keys.take("phase", |item, report| item.word(report)),
        users: keys.take("users", |item, report| item.count(report)),
        lasts: keys.take("lasts", |item, report| item.time(report)),
        designs: keys.take("designs", |item, report| {
            item.list(report, "names of designs", |item, report| item.text(report))
        }),
        host: keys.take("host", |item, report| item.text(report)),
        hosts: keys.take("hosts", |item, report| {
            item.list(report, "names of hosts", |item, report| item.text(report))
        }),
        device: keys.take("device", |item, report| item.text(report)),
        volume: keys.take("volume", |item, report| item.text(report)),
        factor: keys.take("factor", |item, report| item.number(report, 1.0..=1e6)),
        probability: keys.take("probability", |item, report| item.number(report, 0.0..=1.0)),
        bits: keys.take("bits", |item, report| item.integer(report, 1..=1000)),
        keep: keys.take("keep", |item, report| item.size(report)),
        policy: keys.section("policy", read_policy),
        disk_group: keys.section("disk-group", read_disk_group),
    }
}
