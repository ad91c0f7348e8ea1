//! The tables of a device profile in text form.
//!
//! Key names are those of the model's fields, so that a violated rule of the model names the key.

use underlay_core::{Bytes, Nanos};
use underlay_model::{Basis, Duplex};

use crate::entry::{Entry, Section};
use crate::section::*;

section! {
    /// One storage device in few numbers.
    pub(crate) struct Profile as "Profile" {
        /// Short name: lower case letters, digits, `-` and `.`.
        "name" name: Entry<String> = One(text());
        /// The device in words.
        "description" description: Entry<String> = One(text());
        /// Where the numbers come from.
        "source" source: Entry<String> = One(text());
        /// How the numbers were obtained.
        "basis" basis: Entry<Basis> = One(word::<Basis>());
        /// Mean relative error of the model against what it was fitted to, in percent.
        "fit-error-percent" fit_error_percent: Entry<f64> = One(number(0.0..=1e6));
        /// Capacity of the device.
        "capacity" capacity: Entry<Bytes> = One(size());
        /// What stores the data: exactly one kind.
        "medium" medium: Section<MediumFile> = table::<MediumFile>();
        /// The cable between host and device.
        "link" link: Section<LinkFile> = table::<LinkFile>();
        /// The memory that acknowledges writes early.
        "write-buffer" write_buffer: Section<BufferFile> = table::<BufferFile>();
        /// Fixed cost of a flush command.
        "flush" flush: Entry<Nanos> = One(time());
        /// Whether the write buffer survives a power cut.
        "power-loss-protected" power_loss_protected: Entry<bool> = One(boolean());
        /// The device is one part in so many of what the other keys describe: its rates are
        /// divided, the
        /// time of a request that finds it idle is not. 1 when absent.
        "divisor" divisor: Entry<u32> = One(count(1..=4096));
    }
}

section! {
    /// What stores the data: exactly one kind.
    pub(crate) struct MediumFile as "Medium" {
        /// Nothing takes time.
        "instant" instant: Section<Instant> = table::<Instant>();
        /// Parallel units without moving parts.
        "flash" flash: Section<FlashFile> = table::<FlashFile>();
        /// One arm over rotating platters.
        "disk" disk: Section<DiskFile> = table::<DiskFile>();
    }
    limits { "maxProperties": 1 }
}

section! {
    /// A medium without any delay; an empty table.
    pub(crate) struct Instant as "Instant" {}
}

section! {
    /// Parallel units behind one command stage.
    pub(crate) struct FlashFile as "Flash" {
        /// Serial command stage per read: 1 / maximum random reads per second.
        "read-command" read_command: Entry<Nanos> = One(time());
        /// Serial command stage per write.
        "write-command" write_command: Entry<Nanos> = One(time());
        /// Fixed part of every read that occupies nothing.
        "base" base: Entry<Nanos> = One(time());
        /// Number of parallel units.
        "units" units: Entry<u32> = One(count(1..=4096));
        /// Consecutive bytes that live in one unit; a power of two.
        "unit-bytes" unit_bytes: Entry<Bytes> = One(size());
        /// Mean time that a read occupies its unit.
        "read-service" read_service: Entry<Nanos> = One(time());
        /// Coefficient of variation of that time.
        "read-service-cv" read_service_cv: Entry<f64> = One(number(0.0..=3.0));
        /// Probability of a slow read.
        "slow-probability" slow_probability: Entry<f64> = One(number(0.0..=1.0));
        /// Additional time of a slow read.
        "slow" slow: Entry<Nanos> = One(time());
        /// Time that one program operation occupies a unit.
        "program" program: Entry<Nanos> = One(time());
        /// Bytes of a sequential stream that one program operation stores; of scattered writes, as much less as they drain slower.
        "program-bytes" program_bytes: Entry<Bytes> = One(size());
    }
}

section! {
    /// One arm over rotating platters.
    pub(crate) struct DiskFile as "Disk" {
        /// Controller time per command.
        "command" command: Entry<Nanos> = One(time());
        /// The shortest seek.
        "seek-shortest" seek_shortest: Entry<Nanos> = One(time());
        /// Growth of the seek time with the square root of the distance.
        "seek-span" seek_span: Entry<Nanos> = One(time());
        /// Rotations per minute.
        "rotations-per-minute" rotations_per_minute: Entry<u32> = One(count(1000..=100_000));
        /// Bytes per second under the head, written as a size: "200MB".
        "media-bytes-per-second" media_bytes_per_second: Entry<u64> = One(rate());
        /// Commands among which the drive chooses the nearest.
        "queue-depth" queue_depth: Entry<u32> = One(count(1..=256));
    }
}

section! {
    /// The cable between host and device.
    pub(crate) struct LinkFile as "Link" {
        /// Bytes per second from the device, written as a size: "520MB".
        "read-bytes-per-second" read_bytes_per_second: Entry<u64> = One(rate());
        /// Bytes per second to the device, written as a size.
        "write-bytes-per-second" write_bytes_per_second: Entry<u64> = One(rate());
        /// `half`: both directions share the cable.
        "duplex" duplex: Entry<Duplex> = One(word::<Duplex>());
    }
}

section! {
    /// The memory that acknowledges writes early.
    pub(crate) struct BufferFile as "WriteBuffer" {
        /// Size of the buffer.
        "capacity" capacity: Entry<Bytes> = One(size());
        /// Latency of a buffered write of up to 4 KiB.
        "latency" latency: Entry<Nanos> = One(time());
        /// Additional latency per further 4 KiB.
        "latency-per-4k" latency_per_4k: Entry<Nanos> = One(time());
        /// Steady drain of sequential writes per second, written as a size.
        "drain-sequential-bytes-per-second" drain_sequential_bytes_per_second: Entry<u64> =
            One(rate());
        /// Steady drain of scattered writes per second, written as a size.
        "drain-random-bytes-per-second" drain_random_bytes_per_second: Entry<u64> = One(rate());
        /// Bytes a fresh device takes at the sequential rate before it slows down.
        "fresh-budget" fresh_budget: Entry<Bytes> = One(size());
    }
}

impl MediumFile {
    pub(super) fn kind_refused(&self) -> bool {
        self.instant.refused || self.flash.refused || self.disk.refused
    }
}
