//! The description of one storage device by few numbers: what a datasheet or a calibration gives.
//!
//! A profile says *how long* things take and *what is durable*, nothing else. It holds values, no
//! behaviour: [`crate::Device`] is what behaves. Every number has a unit in its name or its type and
//! a documented range; [`DeviceProfile::problems`] reports all violations at once.
//!
//! What is deliberately left out: wear, temperature, garbage collection below the level of a steady
//! drain rate, error rates. They would need parameters nobody publishes.

mod problem;
mod rules;

pub use problem::ProfileProblem;
use std::ops::RangeInclusive;
use underlay_core::words;
use underlay_core::{Bytes, Nanos};

/// One device, described.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceProfile {
    /// Short name used in study files: lower case letters, digits, `-` and `.`.
    pub name: String,
    /// The device in words, for people.
    pub description: String,
    /// Where the numbers come from, one sentence per group of numbers.
    pub source: String,
    /// How the numbers were obtained.
    pub basis: Basis,
    /// Mean relative error of the model against the targets it was fitted to, in percent; none when
    /// nothing was fitted.
    pub fit_error_percent: Option<f64>,
    /// Capacity of the device, which volumes placed on it must not exceed together.
    pub capacity: Bytes,
    /// What stores the data, and how long that takes.
    pub medium: Medium,
    /// The cable: how fast bytes move between host and device.
    pub link: Option<Link>,
    /// The memory that acknowledges writes before the medium has them; none = writes go through.
    pub write_buffer: Option<WriteBuffer>,
    /// Fixed cost of a flush command, beyond waiting for what must become durable. Range 0 to 1 s.
    pub flush: Nanos,
    /// Whether the write buffer survives a power cut. If so, every acknowledged write is durable and a
    /// flush waits for nothing; if not, a flush waits until the buffer is drained.
    pub power_loss_protected: bool,
    /// The device is one part in so many of what the numbers above describe; 1 = all of it. Every stage
    /// (commands, units or arm, link, drain) passes so much less, so the rates fall by this factor, while a
    /// request that finds the device idle takes as long as ever, and so does a burst (see [`crate::stage`]). Sizes
    /// (capacity, buffer) are not divided by it. Range 1 to 4096.
    pub divisor: u32,
    /// Equal drives that all hold the same (RAID-1); 1 = a single drive. [`crate::Store`] keeps the copies; a lone
    /// [`crate::Device`] is one of them. Range 1 to [`DeviceProfile::COPIES_MAX`].
    pub copies: u32,
}

impl DeviceProfile {
    /// Most copies of a mirror.
    pub const COPIES_MAX: u32 = 4;
}

words! {
    /// How the numbers of a profile were obtained.
    pub enum Basis: "basis" {
        /// Derived from a datasheet by the rule of [`Flash::from_datasheet`].
        Datasheet = "datasheet",
        /// Fitted to published or measured latency distributions.
        Fitted = "fitted",
        /// Assumed, for want of anything better, or made up on purpose (no delay at all).
        Assumed = "assumed",
    }
}

/// What stores the data.
#[derive(Clone, Debug, PartialEq)]
pub enum Medium {
    /// Nothing takes time. For measuring what the export itself costs.
    Instant,
    /// Parallel units without moving parts: NAND flash, 3D XPoint, NVDIMM.
    Flash(Flash),
    /// One arm over rotating platters.
    Disk(Disk),
}

/// Parallel units behind one command stage.
///
/// A read passes the command stage (serial), then the unit that holds its address (parallel,
/// hashed, lognormal service), then a fixed pipelined part that occupies nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// Time of the serial command stage per read: 1 / maximum random read rate. Range 1 ns to 1 s.
    pub read_command: Nanos,
    /// Time of the serial command stage per write. Range 1 ns to 1 s.
    pub write_command: Nanos,
    /// Firmware and bus: added to every read, occupies nothing. Range 0 to 1 s.
    pub base: Nanos,
    /// Number of parallel units. Range 1 to 4096.
    pub units: u32,
    /// Bytes of consecutive addresses that live in the same unit; a power of two, 512 B to 16 MiB.
    pub unit_bytes: u32,
    /// Mean time a read occupies its unit. Range 1 ns to 10 s.
    pub read_service: Nanos,
    /// Coefficient of variation of that time (lognormal). Range 0 to 3.
    pub read_service_cv: f64,
    /// Probability that a read is slow (retry, disturb, collision with cleaning). Range 0 to 1.
    pub slow_probability: f64,
    /// Additional unit time of a slow read, times a uniform 0.5..1.5. Range 0 to 10 s.
    pub slow: Nanos,
    /// Time a write occupies a unit: per [`Flash::program_bytes`] while the buffer drains, per
    /// `unit_bytes` of a request when there is no buffer. Range 0 to 10 s.
    pub program: Nanos,
    /// Bytes of a sequential stream that one program operation of a draining buffer stores. Of scattered writes it stores as
    /// much less as they drain slower: the rest of it is data that cleaning moves. Range 512 B to 16 MiB.
    pub program_bytes: u32,
}

/// A single arm over rotating platters.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Controller time per command. Range 0 to 1 s.
    pub command: Nanos,
    /// Seek time of the shortest seek. Range 0 to 1 s.
    pub seek_shortest: Nanos,
    /// Seek time grows from the shortest by this much times the square root of the distance as a share
    /// of the whole capacity. Range 0 to 1 s.
    pub seek_span: Nanos,
    /// Rotations per minute. Range 1,000 to 100,000.
    pub rotations_per_minute: u32,
    /// Rate at which bytes pass under the head. Range 1 MB/s to 10 GB/s.
    pub media_bytes_per_second: u64,
    /// Commands among which the drive may choose the nearest. Range 1 to 256.
    pub queue_depth: u32,
}

/// The cable between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes per second from device to host. Range 1 MB/s to 1 TB/s.
    pub read_bytes_per_second: u64,
    /// Bytes per second from host to device. Range 1 MB/s to 1 TB/s.
    pub write_bytes_per_second: u64,
    /// Whether both directions share the cable.
    pub duplex: Duplex,
}

words! {
    /// Whether the two directions of a link share its bandwidth.
    pub enum Duplex: "duplex" {
        /// One direction at a time (SATA).
        Half = "half",
        /// Independent directions (PCIe, SAS).
        Full = "full",
    }
}

/// The memory in front of the medium that acknowledges writes early and drains at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Size. A write that does not fit waits for the drain. Range 64 KiB to 64 GiB.
    pub capacity: Bytes,
    /// Latency of a buffered write of up to 4 KiB. Range 0 to 1 s.
    pub latency: Nanos,
    /// Additional latency per further 4 KiB of the same write. Range 0 to 1 ms.
    pub latency_per_4k: Nanos,
    /// Steady drain of long sequential runs, bytes per second. Range 1 MB/s to 1 TB/s.
    pub drain_sequential_bytes_per_second: u64,
    /// Steady drain of scattered 4 KiB writes, bytes per second. Range 10 KB/s to 1 TB/s, at most the
    /// sequential one.
    pub drain_random_bytes_per_second: u64,
    /// Bytes that a fresh device takes at the sequential rate before the random rate applies; 0 = the
    /// device is in its steady state from the start.
    pub fresh_budget: Bytes,
}

/// Datasheet figures from which a flash profile can be derived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashDatasheet {
    /// Maximum random 4 KiB read rate, per second.
    pub read_iops: f64,
    /// Typical random 4 KiB read latency at queue depth 1.
    pub read_latency: Nanos,
    /// Share of that latency spent in the unit: 0.6 for NAND, 0.75 for 3D XPoint.
    pub service_share: f64,
    /// Fewest units ever assumed: 8 for SATA drives, 1 otherwise.
    pub units_min: u32,
    /// Unit time of one program operation.
    pub program: Nanos,
    /// Sequential write rate, bytes per second.
    pub write_bytes_per_second: u64,
}

impl Flash {
    /// The midpoint derivation for devices of which only the datasheet is known.
    ///
    /// `cap = 1 / IOPS`, `S = share x L`, `base = L - S - cap`, `C = ceil(1.5 x IOPS x S)`, coefficient of
    /// variation 0.15, slow reads 0.5 % x 60 us. `program bytes = program x write rate / C`: a buffer that drains
    /// occupies all units, as the rates of writes are those of a drive that does nothing else. That is the linear model of mixed
    /// loads of Klimovic, Litz and Kozyrakis, "ReFlex" (ASPLOS 2017). Three fitted drives scatter widely around it (S/L
    /// 0.44 to 0.87; C / (IOPS x S) 1.02 to 2.03), so such a profile is labelled [`Basis::Datasheet`].
    pub fn from_datasheet(sheet: &FlashDatasheet) -> Flash {
        let latency_ns = sheet.read_latency.0 as f64;
        let command_ns = 1e9 / sheet.read_iops;
        let service_ns = sheet.service_share * latency_ns;
        let units = (1.5 * sheet.read_iops * service_ns / 1e9).ceil() as u32;
        let units = units.max(sheet.units_min);
        Flash {
            read_command: Nanos(command_ns.round() as u64),
            write_command: Nanos(command_ns.round() as u64),
            base: Nanos((latency_ns - service_ns - command_ns).max(0.0).round() as u64),
            units,
            unit_bytes: 16 << 10,
            read_service: Nanos(service_ns.round() as u64),
            read_service_cv: 0.15,
            slow_probability: 0.005,
            slow: Nanos::from_micros(60),
            program: sheet.program,
            program_bytes: program_bytes(sheet.program, sheet.write_bytes_per_second, units),
        }
    }
}

/// What one program operation may store, bytes.
pub(crate) const PROGRAM_BYTES: RangeInclusive<u32> = 512..=16 << 20;

/// Bytes that each program operation stores where all units together store so many per second. Operations that take no time
/// are as large as the usual page of all planes.
pub(crate) fn program_bytes(program: Nanos, bytes_per_second: u64, units: u32) -> u32 {
    if program == Nanos::ZERO {
        return 64 << 10;
    }
    let bytes = program.0 as f64 / 1e9 * bytes_per_second as f64 / f64::from(units.max(1));
    (bytes.round() as u32).clamp(*PROGRAM_BYTES.start(), *PROGRAM_BYTES.end())
}

impl DeviceProfile {
    /// Whether a power cut takes nothing that it acknowledged.
    pub fn is_durable(&self) -> bool {
        self.power_loss_protected || self.write_buffer.is_none()
    }

    /// Whether nothing in the profile takes time.
    pub fn is_instant(&self) -> bool {
        self.medium == Medium::Instant
            && self.link.is_none()
            && self.write_buffer.is_none()
            && self.flush == Nanos::ZERO
    }

    /// Bytes of acknowledged writes that a power cut can take away at most: the size of an unprotected
    /// write buffer. Zero when every acknowledged write is durable.
    pub fn volatile_bytes(&self) -> Bytes {
        match &self.write_buffer {
            Some(buffer) if !self.power_loss_protected => buffer.capacity,
            _ => Bytes::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Basis, Duplex, Flash, FlashDatasheet, Medium};
    use crate::builtin;
    use underlay_core::{Bytes, Nanos};

    #[test]
    fn all_problems_are_reported_at_once() {
        let mut profile = builtin::find("dc1500m-960").expect("built in");
        profile.name = "DC 1500".to_string();
        profile.capacity = Bytes(0);
        profile.flush = Nanos::from_secs(2);
        let Medium::Flash(flash) = &mut profile.medium else { panic!("flash") };
        flash.units = 0;
        flash.read_service_cv = f64::NAN;
        let link = profile.link.as_mut().expect("link");
        link.read_bytes_per_second = 0;
        let buffer = profile.write_buffer.as_mut().expect("buffer");
        buffer.drain_random_bytes_per_second = buffer.drain_sequential_bytes_per_second + 1;
        let fields: Vec<_> = profile.problems().into_iter().map(|p| p.field).collect();
        assert_eq!(
            fields,
            [
                "name",
                "capacity",
                "flush",
                "medium.units",
                "medium.read-service-cv",
                "link.read-bytes-per-second",
                "write-buffer.drain-random-bytes-per-second",
            ]
        );
    }

    #[test]
    fn problems_read_as_sentences() {
        let mut profile = builtin::find("hdd-7200").expect("built in");
        let Medium::Disk(disk) = &mut profile.medium else { panic!("disk") };
        disk.queue_depth = 0;
        assert_eq!(profile.problems()[0].to_string(), "`medium.queue-depth` is 0; use 1 to 256");
    }

    #[test]
    fn datasheet_rule_gives_the_published_table() {
        // The DC1500M 1.92 TB row of the derivation table: cap 1.96, base 36, S 57, C 44.
        let flash = Flash::from_datasheet(&FlashDatasheet {
            read_iops: 510_000.0,
            read_latency: Nanos::from_micros(95),
            service_share: 0.6,
            units_min: 1,
            program: Nanos::from_micros(200),
            write_bytes_per_second: 2_700_000_000,
        });
        assert_eq!(flash.read_command, Nanos(1961));
        assert_eq!(flash.read_service, Nanos::from_micros(57));
        assert_eq!(flash.base, Nanos(36_039));
        assert_eq!(flash.units, 44);
        // 44 units that store 12,273 bytes in 200 us store 2.7 GB/s.
        assert_eq!(flash.program_bytes, 12_273);
    }

    #[test]
    fn words_round_trip() {
        for basis in [Basis::Datasheet, Basis::Fitted, Basis::Assumed] {
            assert_eq!(Basis::from_word(basis.as_str()), Some(basis));
        }
        for duplex in [Duplex::Half, Duplex::Full] {
            assert_eq!(Duplex::from_word(duplex.as_str()), Some(duplex));
        }
        assert_eq!(Basis::from_word("guessed"), None);
    }
}
