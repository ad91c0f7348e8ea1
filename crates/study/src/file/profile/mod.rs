//! The text form of a device profile: the overrides of a device in a study, or a file of its own.
//!
//! Key names are those of the model's fields, so that a violated rule of the model names the key.

mod lowering;

use schemars::JsonSchema;
use underlay_core::{Bytes, Nanos};
use underlay_model::{Basis, Duplex};

use crate::entry::{Entry, Section};
use crate::reader::Keys;
use crate::schema::{Size, Time};
use crate::words::Word;

pub(crate) use lowering::lower;

/// One storage device in few numbers.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Profile {
    /// Short name: lower case letters, digits, `-` and `.`.
    pub name: Entry<String>,
    /// The device in words.
    pub description: Entry<String>,
    /// Where the numbers come from.
    pub source: Entry<String>,
    /// How the numbers were obtained.
    #[schemars(with = "Word<Basis>")]
    pub basis: Entry<Basis>,
    /// Mean relative error of the model against what it was fitted to, in percent.
    #[schemars(range(min = 0))]
    pub fit_error_percent: Entry<f64>,
    /// Capacity of the device.
    #[schemars(with = "Size")]
    pub capacity: Entry<Bytes>,
    /// What stores the data: exactly one kind.
    pub medium: Section<MediumFile>,
    /// The cable between host and device.
    pub link: Section<LinkFile>,
    /// The memory that acknowledges writes early.
    pub write_buffer: Section<BufferFile>,
    /// Fixed cost of a flush command.
    #[schemars(with = "Time")]
    pub flush: Entry<Nanos>,
    /// Whether the write buffer survives a power cut.
    pub power_loss_protected: Entry<bool>,
    /// The device is one part in so many of what the other keys describe: its rates are divided, the
    /// time of a request that finds it idle is not. 1 when absent.
    #[schemars(range(min = 1, max = 4096))]
    pub divisor: Entry<u32>,
}

/// What stores the data: exactly one kind.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Medium")]
#[schemars(extend("maxProperties" = 1))]
pub(crate) struct MediumFile {
    /// Nothing takes time.
    pub instant: Section<Instant>,
    /// Parallel units without moving parts.
    pub flash: Section<FlashFile>,
    /// One arm over rotating platters.
    pub disk: Section<DiskFile>,
}

/// A medium without any delay; an empty table.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Instant {}

/// Parallel units behind one command stage.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Flash")]
pub(crate) struct FlashFile {
    /// Serial command stage per read: 1 / maximum random reads per second.
    #[schemars(with = "Time")]
    pub read_command: Entry<Nanos>,
    /// Serial command stage per write.
    #[schemars(with = "Time")]
    pub write_command: Entry<Nanos>,
    /// Fixed part of every read that occupies nothing.
    #[schemars(with = "Time")]
    pub base: Entry<Nanos>,
    /// Number of parallel units.
    #[schemars(range(min = 1, max = 4096))]
    pub units: Entry<u32>,
    /// Consecutive bytes that live in one unit; a power of two.
    #[schemars(with = "Size")]
    pub unit_bytes: Entry<Bytes>,
    /// Mean time that a read occupies its unit.
    #[schemars(with = "Time")]
    pub read_service: Entry<Nanos>,
    /// Coefficient of variation of that time.
    #[schemars(range(min = 0, max = 3))]
    pub read_service_cv: Entry<f64>,
    /// Probability of a slow read.
    #[schemars(range(min = 0, max = 1))]
    pub slow_probability: Entry<f64>,
    /// Additional time of a slow read.
    #[schemars(with = "Time")]
    pub slow: Entry<Nanos>,
    /// Time that one program operation occupies a unit.
    #[schemars(with = "Time")]
    pub program: Entry<Nanos>,
    /// Bytes that one program operation stores.
    #[schemars(with = "Size")]
    pub program_bytes: Entry<Bytes>,
}

/// One arm over rotating platters.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Disk")]
pub(crate) struct DiskFile {
    /// Controller time per command.
    #[schemars(with = "Time")]
    pub command: Entry<Nanos>,
    /// The shortest seek.
    #[schemars(with = "Time")]
    pub seek_shortest: Entry<Nanos>,
    /// Growth of the seek time with the square root of the distance.
    #[schemars(with = "Time")]
    pub seek_span: Entry<Nanos>,
    /// Rotations per minute.
    #[schemars(range(min = 1000, max = 100_000))]
    pub rotations_per_minute: Entry<u32>,
    /// Bytes per second under the head, written as a size: "200MB".
    #[schemars(with = "Size")]
    pub media_bytes_per_second: Entry<u64>,
    /// Commands among which the drive chooses the nearest.
    #[schemars(range(min = 1, max = 256))]
    pub queue_depth: Entry<u32>,
}

/// The cable between host and device.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "Link")]
pub(crate) struct LinkFile {
    /// Bytes per second from the device, written as a size: "520MB".
    #[schemars(with = "Size")]
    pub read_bytes_per_second: Entry<u64>,
    /// Bytes per second to the device, written as a size.
    #[schemars(with = "Size")]
    pub write_bytes_per_second: Entry<u64>,
    /// `half`: both directions share the cable.
    #[schemars(with = "Word<Duplex>")]
    pub duplex: Entry<Duplex>,
}

/// The memory that acknowledges writes early.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, rename = "WriteBuffer")]
pub(crate) struct BufferFile {
    /// Size of the buffer.
    #[schemars(with = "Size")]
    pub capacity: Entry<Bytes>,
    /// Latency of a buffered write of up to 4 KiB.
    #[schemars(with = "Time")]
    pub latency: Entry<Nanos>,
    /// Additional latency per further 4 KiB.
    #[schemars(with = "Time")]
    pub latency_per_4k: Entry<Nanos>,
    /// Steady drain of sequential writes per second, written as a size.
    #[schemars(with = "Size")]
    pub drain_sequential_bytes_per_second: Entry<u64>,
    /// Steady drain of scattered writes per second, written as a size.
    #[schemars(with = "Size")]
    pub drain_random_bytes_per_second: Entry<u64>,
    /// Bytes a fresh device takes at the sequential rate before it slows down.
    #[schemars(with = "Size")]
    pub fresh_budget: Entry<Bytes>,
}

/// Reads a profile.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Profile {
    Profile {
        name: keys.take("name", |item, report| item.text(report)),
        description: keys.take("description", |item, report| item.text(report)),
        source: keys.take("source", |item, report| item.text(report)),
        basis: keys.take("basis", |item, report| item.word(report)),
        fit_error_percent: keys
            .take("fit-error-percent", |item, report| item.number(report, 0.0..=1e6)),
        capacity: keys.take("capacity", |item, report| item.size(report)),
        medium: keys.section("medium", read_medium),
        link: keys.section("link", read_link),
        write_buffer: keys.section("write-buffer", read_buffer),
        flush: keys.take("flush", |item, report| item.time(report)),
        power_loss_protected: keys
            .take("power-loss-protected", |item, report| item.boolean(report)),
        divisor: keys.take("divisor", |item, report| item.count(report)),
    }
}

fn read_medium(keys: &mut Keys<'_, '_>) -> MediumFile {
    MediumFile {
        instant: keys.section("instant", |_| Instant {}),
        flash: keys.section("flash", read_flash),
        disk: keys.section("disk", read_disk),
    }
}

fn read_flash(keys: &mut Keys<'_, '_>) -> FlashFile {
    FlashFile {
        read_command: keys.take("read-command", |item, report| item.time(report)),
        write_command: keys.take("write-command", |item, report| item.time(report)),
        base: keys.take("base", |item, report| item.time(report)),
        units: keys.take("units", |item, report| item.count(report)),
        unit_bytes: keys.take("unit-bytes", |item, report| item.size(report)),
        read_service: keys.take("read-service", |item, report| item.time(report)),
        read_service_cv: keys
            .take("read-service-cv", |item, report| item.number(report, 0.0..=3.0)),
        slow_probability: keys
            .take("slow-probability", |item, report| item.number(report, 0.0..=1.0)),
        slow: keys.take("slow", |item, report| item.time(report)),
        program: keys.take("program", |item, report| item.time(report)),
        program_bytes: keys.take("program-bytes", |item, report| item.size(report)),
    }
}

fn read_disk(keys: &mut Keys<'_, '_>) -> DiskFile {
    DiskFile {
        command: keys.take("command", |item, report| item.time(report)),
        seek_shortest: keys.take("seek-shortest", |item, report| item.time(report)),
        seek_span: keys.take("seek-span", |item, report| item.time(report)),
        rotations_per_minute: keys.take("rotations-per-minute", |item, report| item.count(report)),
        media_bytes_per_second: keys
            .take("media-bytes-per-second", |item, report| item.rate(report)),
        queue_depth: keys.take("queue-depth", |item, report| item.count(report)),
    }
}

fn read_link(keys: &mut Keys<'_, '_>) -> LinkFile {
    LinkFile {
        read_bytes_per_second: keys.take("read-bytes-per-second", |item, report| item.rate(report)),
        write_bytes_per_second: keys
            .take("write-bytes-per-second", |item, report| item.rate(report)),
        duplex: keys.take("duplex", |item, report| item.word(report)),
    }
}

fn read_buffer(keys: &mut Keys<'_, '_>) -> BufferFile {
    BufferFile {
        capacity: keys.take("capacity", |item, report| item.size(report)),
        latency: keys.take("latency", |item, report| item.time(report)),
        latency_per_4k: keys.take("latency-per-4k", |item, report| item.time(report)),
        drain_sequential_bytes_per_second: keys
            .take("drain-sequential-bytes-per-second", |item, report| item.rate(report)),
        drain_random_bytes_per_second: keys
            .take("drain-random-bytes-per-second", |item, report| item.rate(report)),
        fresh_budget: keys.take("fresh-budget", |item, report| item.size(report)),
    }
}

impl MediumFile {
    fn kind_refused(&self) -> bool {
        self.instant.refused || self.flash.refused || self.disk.refused
    }
}
