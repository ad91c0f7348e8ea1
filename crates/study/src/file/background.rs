//! `[[background]]`: work beside the users.

use schemars::JsonSchema;
use underlay_core::{Bytes, Nanos};

use crate::entry::{Entry, Section};
use crate::fault_plan::FaultPhase;
use crate::reader::Keys;
use crate::schema::{Size, Time};
use crate::words::Word;

/// Work beside the users in every run of the designs it concerns: exactly one of `load` and `copy`.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["name"]))]
pub(crate) struct Background {
    /// What records and pages call it: lower case letters, digits and `-`.
    pub name: Entry<String>,
    /// A block load on a file of its own on each volume.
    pub load: Section<Load>,
    /// A copy of a volume in large blocks, as a replication of a snapshot makes it.
    pub copy: Section<Copy>,
    /// When it begins, since the beginning of the phase. At once, when left out.
    #[schemars(with = "Time")]
    pub at: Entry<Nanos>,
    /// The phase. `measure`, when left out.
    #[schemars(with = "Word<FaultPhase>")]
    pub phase: Entry<FaultPhase>,
    /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last one, when left out.
    #[schemars(range(min = 1, max = 100_000))]
    pub users: Entry<u32>,
    /// After this time it is stopped. When it is done or the load has ended, when left out.
    #[schemars(with = "Time")]
    pub lasts: Entry<Nanos>,
    /// Names of the designs of this study that have it. All of them, when left out.
    pub designs: Entry<Vec<String>>,
}

/// A block load.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["profile", "volumes"]))]
pub(crate) struct Load {
    /// A block load: an `[[io-profile]]` of this study, or a built-in one (`underlay list io-profiles`).
    pub profile: Entry<String>,
    /// The volumes.
    pub volumes: Entry<Vec<String>>,
    /// Size of the file on each volume. 128 MiB, when left out.
    #[schemars(with = "Size")]
    pub working_set: Entry<Bytes>,
}

/// A copy of a volume.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["from"]))]
pub(crate) struct Copy {
    /// The volume that is read.
    pub from: Entry<String>,
    /// The volume that the copy is written to. It leaves the datastore, when left out.
    pub to: Entry<String>,
    /// Size of the file it is written to, over and over. 128 MiB, when left out.
    #[schemars(with = "Size")]
    pub space: Entry<Bytes>,
    /// Size of a request: 4 KiB to 4 MiB. 1 MiB, when left out.
    #[schemars(with = "Size")]
    pub block_size: Entry<Bytes>,
    /// Requests in flight. 4, when left out.
    #[schemars(range(min = 1, max = 64))]
    pub queue_depth: Entry<u64>,
    /// Most bytes per second. As fast as it goes, when left out.
    #[schemars(with = "Size")]
    pub bytes_per_second: Entry<Bytes>,
}

/// Reads one of them.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Background {
    keys.alias("after", "at");
    keys.alias("rung", "users");
    keys.alias("for", "lasts");
    keys.alias("duration", "lasts");
    keys.alias("design", "designs");
    keys.alias("io", "load");
    keys.alias("replication", "copy");
    Background {
        name: keys.take("name", |item, report| item.text(report)),
        load: keys.section("load", |keys| Load {
            profile: keys.take("profile", |item, report| item.text(report)),
            volumes: keys.take("volumes", |item, report| {
                item.list(report, "names of volumes", |item, report| item.text(report))
            }),
            working_set: keys.take("working-set", |item, report| item.size(report)),
        }),
        copy: keys.section("copy", |keys| Copy {
            from: keys.take("from", |item, report| item.text(report)),
            to: keys.take("to", |item, report| item.text(report)),
            space: keys.take("space", |item, report| item.size(report)),
            block_size: keys.take("block-size", |item, report| item.size(report)),
            queue_depth: keys.take("queue-depth", |item, report| item.integer(report, 1..=64)),
            bytes_per_second: keys.take("bytes-per-second", |item, report| item.size(report)),
        }),
        at: keys.take("at", |item, report| item.time(report)),
        phase: keys.take("phase", |item, report| item.word(report)),
        users: keys.take("users", |item, report| item.count(report)),
        lasts: keys.take("lasts", |item, report| item.time(report)),
        designs: keys.take("designs", |item, report| {
            item.list(report, "names of designs", |item, report| item.text(report))
        }),
    }
}
