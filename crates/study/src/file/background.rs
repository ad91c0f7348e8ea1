//! `[[background]]`: work alongside the users.

use underlay_core::{Bytes, Nanos};

use crate::entry::{Entry, Section};
use crate::fault_plan::FaultPhase;
use crate::section::*;

section! {
    /// Work alongside the users in every run of the designs it concerns: exactly one of `load`
    /// and `copy`.
    pub(crate) struct Background as "Background" {
        /// What records and pages call it: lower case letters, digits and `-`.
        "name" name: Entry<String> = One(text());
        /// A block load on a file of its own on each volume.
        "load" load: Section<Load> = table::<Load>();
        /// A copy of a volume in large blocks, as a replication of a snapshot makes it.
        "copy" copy: Section<Copy> = table::<Copy>();
        /// When it begins, since the beginning of the phase. At once, when left out.
        "at" at: Entry<Nanos> = One(time());
        /// The phase. `measure`, when left out.
        "phase" phase: Entry<FaultPhase> = One(word::<FaultPhase>());
        /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last
        /// one, when left out.
        "users" users: Entry<u32> = One(count(1..=100_000));
        /// After this time it is stopped. When it is done or the load has ended, when left out.
        "lasts" lasts: Entry<Nanos> = One(time());
        /// Names of the designs of this study that have it. All of them, when left out.
        "designs" designs: Entry<Vec<String>> = One(list("names of designs", text()));
    }
    written_for {
        "after" => "at", "rung" => "users", "for" => "lasts", "duration" => "lasts",
        "design" => "designs", "io" => "load", "replication" => "copy",
    }
    limits { "required": ["name"] }
}

section! {
    /// A block load.
    pub(crate) struct Load as "Load" {
        /// A block load: an `[[io-profile]]` of this study, or a built-in one (`underlay list io-
        /// profiles`).
        "profile" profile: Entry<String> = One(text());
        /// The volumes.
        "volumes" volumes: Entry<Vec<String>> = One(list("names of volumes", text()));
        /// Size of the file on each volume. 128 MiB, when left out.
        "working-set" working_set: Entry<Bytes> = One(size());
    }
    limits { "required": ["profile", "volumes"] }
}

section! {
    /// A copy of a volume.
    pub(crate) struct Copy as "Copy" {
        /// The volume that is read.
        "from" from: Entry<String> = One(text());
        /// The volume that the copy is written to. It leaves the datastore, when left out.
        "to" to: Entry<String> = One(text());
        /// Size of the file it is written to, over and over. 128 MiB, when left out.
        "space" space: Entry<Bytes> = One(size());
        /// Size of a request: 4 KiB to 4 MiB. 1 MiB, when left out.
        "block-size" block_size: Entry<Bytes> = One(size());
        /// Requests in flight. 4, when left out.
        "queue-depth" queue_depth: Entry<u64> = One(whole(1..=64));
        /// Most bytes per second. As fast as it goes, when left out.
        "bytes-per-second" bytes_per_second: Entry<Bytes> = One(size());
    }
    limits { "required": ["from"] }
}
