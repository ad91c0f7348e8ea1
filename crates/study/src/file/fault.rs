//! `[[fault]]`: something that breaks, or changes, at a moment of every run.

use underlay_core::{Bytes, Nanos};

use super::cluster::{DiskGroup, Policy};
use super::group_device::{GroupDevice, group_device};
use crate::entry::{Entry, Section};
use crate::fault_plan::{FaultKind, FaultPhase};
use crate::section::*;

section! {
    /// Something that breaks, or changes, at a moment of every run of the designs it concerns.
    pub(crate) struct Fault as "Fault" {
        /// What happens.
        "kind" kind: Entry<FaultKind> = One(word::<FaultKind>());
        /// When, since the beginning of the phase.
        "at" at: Entry<Nanos> = One(time());
        /// The phase. `measure`, when left out.
        "phase" phase: Entry<FaultPhase> = One(word::<FaultPhase>());
        /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last
        /// one, when left out.
        "users" users: Entry<u32> = One(count(1..=100_000));
        /// After this time it is mended. At the end of the load, when left out.
        "lasts" lasts: Entry<Nanos> = One(time());
        /// Names of the designs of this study that it happens to. All of them, when left out.
        "designs" designs: Entry<Vec<String>> = One(list("names of designs", text()));
        /// The host of `host-lost`, `host-frozen` and `disk-group-added`.
        "host" host: Entry<String> = One(text());
        /// The hosts of `hosts-partitioned`.
        "hosts" hosts: Entry<Vec<String>> = One(list("names of hosts", text()));
        /// The device: its name in the design, or `HOST/GROUP/cache`, `HOST/GROUP/disk0` and so on
        /// in a cluster.
        "device" device: Entry<String> = One(text());
        /// The volume of `bit-rot`, `torn-write` and `policy-change`.
        "volume" volume: Entry<String> = One(text());
        /// How many times as long everything takes on a slow device.
        "factor" factor: Entry<f64> = One(number(1.0..=1e6));
        /// How often an erroring device fails: 0.01 = one request in a hundred.
        "probability" probability: Entry<f64> = One(number(0.0..=1.0));
        /// Bits that flip, each in a block of its own.
        "bits" bits: Entry<u64> = One(whole(1..=1000));
        /// What a torn write stores: a multiple of 512 bytes below 64 KiB.
        "keep" keep: Entry<Bytes> = One(size());
        /// What of the policy changes.
        "policy" policy: Section<Policy> = table::<Policy>();
        /// The disk group that is added.
        "disk-group" disk_group: Section<DiskGroup> = table::<DiskGroup>();
        /// The disk group that gets a device, `HOST/GROUP`.
        "to" to: Entry<String> = One(text());
        /// The device that is added: a device profile, or a table as in a disk group.
        "profile" profile: Entry<Section<GroupDevice>> = One(group_device());
    }
    written_for {
        "type" => "kind", "fault" => "kind", "after" => "at", "when" => "at", "rung" => "users",
        "for" => "lasts", "duration" => "lasts", "design" => "designs", "group" => "disk-group",
    }
    limits { "required": ["kind", "at"] }
}
