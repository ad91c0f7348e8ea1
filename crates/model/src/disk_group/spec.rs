//! What a disk group is made of: its devices and the settings of what lies between them.

use crate::profile::DeviceProfile;
use crate::scheduler::{SchedulerProblem, SchedulerSpec};
use underlay_core::{Bytes, Nanos};

/// One disk group: a cache device and one to seven capacity devices.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskGroupSpec {
    /// Unique among the groups of a seed; selects the random streams.
    pub name: String,
    /// The device that takes all writes.
    pub cache: DeviceProfile,
    /// The devices that keep the data, 1 to [`DiskGroupSpec::CAPACITY_DEVICES_MAX`].
    pub capacity: Vec<DeviceProfile>,
    /// The part of the cache device that buffers writes.
    pub write_buffer: WriteBufferSpec,
    /// How a filling buffer holds back those who write.
    pub congestion: CongestionSpec,
    /// How classes of I/O share the devices.
    pub scheduler: SchedulerSpec,
    /// Deduplication and compression at destage.
    pub reduction: Reduction,
    /// Used part of each device, the cache first, for seek distances; empty = all of every device.
    pub extents: Vec<Bytes>,
}

/// The write buffer of a disk group: a log on the cache device.
///
/// Real thresholds are not published. A buffer that is 30 % used without destaging is the documented
/// symptom of a stopped elevator, hence the start; the others are assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteBufferSpec {
    /// Bytes that can be buffered; at most [`WriteBufferSpec::LOGICAL_LIMIT`] are used of what the device
    /// has. At least 1 MiB.
    pub usable: Bytes,
    /// Used share at which the elevator starts. 0 to 1.
    pub elevator_start: f64,
    /// Used share at which it stops again, at most `elevator_start`.
    pub elevator_stop: f64,
    /// Used share from which it works as fast as the devices allow; between the start and here its pace
    /// grows. At least `elevator_start`.
    pub elevator_unthrottle: f64,
    /// Contiguous bytes destaged at once at most; a multiple of 4 KiB, 4 KiB to 16 MiB.
    pub elevator_run: Bytes,
    /// Runs under way per capacity device at full pace. 1 to 1024.
    pub elevator_window: u32,
}

impl WriteBufferSpec {
    /// All-flash groups buffer at most this, however large the cache device is (vSAN up to 7.0).
    pub const LOGICAL_LIMIT: Bytes = Bytes(600_000_000_000);

    /// The buffer on a cache device of this size, with the usual thresholds.
    pub fn on(cache_capacity: Bytes) -> WriteBufferSpec {
        WriteBufferSpec {
            usable: cache_capacity.min(WriteBufferSpec::LOGICAL_LIMIT),
            elevator_start: 0.30,
            elevator_stop: 0.25,
            elevator_unthrottle: 0.50,
            elevator_run: Bytes::from_kib(64),
            elevator_window: 32,
        }
    }
}

/// How a filling write buffer holds back those who write.
///
/// The value is 0 up to `low_fill` and grows evenly to 255 at `high_fill`. The delay it causes is random and
/// exponential: U(0, 2) x (2^(value / 32) - 1) x unit, where the unit is the time in which the elevator
/// destages one write. So the value settles where the writers, however many, are as fast as the elevator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionSpec {
    /// Used share of the buffer above which writes are delayed. 0 to 1.
    pub low_fill: f64,
    /// Used share at which the delay is longest; above `low_fill`, at most 1.
    pub high_fill: f64,
    /// The unit while nothing is known about the elevator's pace, and its lower bound. 1 us to 1 s.
    pub unit_min: Nanos,
    /// No write is delayed longer. 1 us to 100 s.
    pub delay_max: Nanos,
}

impl CongestionSpec {
    /// From 60 % to 95 % of the buffer (assumed; the real limits are not published).
    pub const DEFAULT: CongestionSpec = CongestionSpec {
        low_fill: 0.60,
        high_fill: 0.95,
        unit_min: Nanos::from_micros(5),
        delay_max: Nanos::from_secs(1),
    };
}

/// Deduplication and compression at destage, per disk group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// Blocks are stored as they are.
    Off,
    /// Blocks of 4 KiB are deduplicated, unique ones compressed.
    DedupeCompress(ReductionCosts),
}

/// What deduplication and compression cost beside the space they save.
///
/// The counters of the real system (hits and misses of a hash map, an address map and a bitmap, metadata
/// reads and writes, transactions) show that the price is metadata I/O on the capacity devices. The
/// shares are assumed: none is published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReductionCosts {
    /// Time in which the group's processor fingerprints one block of 4 KiB; one block at a time. 0 to 1 ms.
    pub fingerprint: Nanos,
    /// Time in which it compresses one block that is new to the group, likewise. 0 to 1 ms.
    pub compress: Nanos,
    /// Share of look-ups of a fingerprint that are answered from memory; the rest read 4 KiB. 0 to 1.
    pub hash_map_hit: f64,
    /// Share of look-ups of an address that are answered from memory; the rest read 4 KiB. 0 to 1.
    pub address_map_hit: f64,
    /// Metadata blocks of 4 KiB written per destaged block: transaction, maps and bitmap, many blocks
    /// sharing one write. 0 to 8.
    pub metadata_writes_per_block: f64,
    /// Stored bytes per destaged byte, until [`super::DiskGroup::set_reduction_observed`] tells better. 0 to 1.
    pub stored_bytes_per_destaged_byte: f64,
    /// Share of blocks that are new to the group, likewise. 0 to 1.
    pub unique_share: f64,
}

impl ReductionCosts {
    /// One core of 2.1 GHz, the clock printed for the processors of the published test beds: SHA-1 in 3.54 cycles per
    /// byte (the figure for Skylake in the comments of OpenSSL's assembler), LZ4 in 6.28 (780 MB/s at 4.9 GHz, the
    /// benchmark on LZ4's own page). Assumed: nine look-ups of ten answered from memory, a quarter of a metadata block
    /// per data block; data that is halved.
    pub const DEFAULT: ReductionCosts = ReductionCosts {
        fingerprint: Nanos(6_900),
        compress: Nanos(12_250),
        hash_map_hit: 0.90,
        address_map_hit: 0.90,
        metadata_writes_per_block: 0.25,
        stored_bytes_per_destaged_byte: 0.5,
        unique_share: 0.8,
    };
}

/// A setting of a disk group that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DiskGroupProblem {
    /// None or too many.
    #[error("disk group `{group}` has {count} capacity devices; give it 1 to 7")]
    CapacityDevices {
        /// The group.
        group: String,
        /// How many.
        count: usize,
    },
    /// A profile with problems of its own.
    #[error("disk group `{group}`, device {member}: {problem}")]
    Profile {
        /// The group.
        group: String,
        /// 0 = the cache device.
        member: usize,
        /// What is wrong with it.
        problem: crate::ProfileProblem,
    },
    /// A setting out of its range.
    #[error("disk group `{group}`: `{field}` is {value}; {rule}")]
    Setting {
        /// The group.
        group: String,
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it must hold.
        rule: &'static str,
    },
    /// A setting of the scheduler.
    #[error("disk group `{group}`: {problem}")]
    Scheduler {
        /// The group.
        group: String,
        /// What is wrong.
        problem: SchedulerProblem,
    },
}

impl DiskGroupSpec {
    /// Most capacity devices of a group (vSAN 6.0 to 7.0).
    pub const CAPACITY_DEVICES_MAX: usize = 7;

    /// A group with the usual settings.
    pub fn new(name: &str, cache: DeviceProfile, capacity: Vec<DeviceProfile>) -> DiskGroupSpec {
        DiskGroupSpec {
            name: name.to_string(),
            write_buffer: WriteBufferSpec::on(cache.capacity),
            cache,
            capacity,
            congestion: CongestionSpec::DEFAULT,
            scheduler: SchedulerSpec::DEFAULT,
            reduction: Reduction::Off,
            extents: Vec::new(),
        }
    }

    /// Every rule the group violates; empty means usable.
    pub fn problems(&self) -> Vec<DiskGroupProblem> {
        let mut problems = Vec::new();
        let group = || self.name.clone();
        let count = self.capacity.len();
        if !(1..=DiskGroupSpec::CAPACITY_DEVICES_MAX).contains(&count) {
            problems.push(DiskGroupProblem::CapacityDevices { group: group(), count });
        }
        for (member, profile) in std::iter::once(&self.cache).chain(&self.capacity).enumerate() {
            let of_member = profile.problems().into_iter();
            problems.extend(of_member.map(|problem| DiskGroupProblem::Profile {
                group: group(),
                member,
                problem,
            }));
        }
        let of_scheduler = self.scheduler.problems().into_iter();
        problems.extend(
            of_scheduler.map(|problem| DiskGroupProblem::Scheduler { group: group(), problem }),
        );
        for (field, value, rule, holds) in self.settings() {
            if !holds {
                problems.push(DiskGroupProblem::Setting { group: group(), field, value, rule });
            }
        }
        problems
    }

    /// Each setting with its rule and whether it holds.
    fn settings(&self) -> Vec<(&'static str, String, &'static str, bool)> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let buffer = &self.write_buffer;
        let congestion = &self.congestion;
        let run = buffer.elevator_run.0;
        let mut settings = vec![
            (
                "write-buffer.usable",
                buffer.usable.to_string(),
                "use 1 MiB up to the capacity of the cache device",
                ((1 << 20)..=self.cache.capacity.0).contains(&buffer.usable.0),
            ),
            (
                "write-buffer.elevator-start",
                buffer.elevator_start.to_string(),
                "stop <= start <= unthrottle, all between 0 and 1",
                share(buffer.elevator_stop)
                    && share(buffer.elevator_unthrottle)
                    && buffer.elevator_stop <= buffer.elevator_start
                    && buffer.elevator_start <= buffer.elevator_unthrottle,
            ),
            (
                "write-buffer.elevator-run",
                buffer.elevator_run.to_string(),
                "use a multiple of 4 KiB from 4 KiB to 16 MiB",
                (4096..=16 << 20).contains(&run) && run.is_multiple_of(4096),
            ),
            (
                "write-buffer.elevator-window",
                buffer.elevator_window.to_string(),
                "use 1 to 1024",
                (1..=1024).contains(&buffer.elevator_window),
            ),
            (
                "congestion.low-fill",
                congestion.low_fill.to_string(),
                "low < high, both between 0 and 1",
                share(congestion.low_fill)
                    && share(congestion.high_fill)
                    && congestion.low_fill < congestion.high_fill,
            ),
            (
                "congestion.unit-min",
                congestion.unit_min.to_string(),
                "use 1 us to 1 s",
                (1_000..=1_000_000_000).contains(&congestion.unit_min.0),
            ),
            (
                "congestion.delay-max",
                congestion.delay_max.to_string(),
                "use 1 us to 100 s",
                (1_000..=100_000_000_000).contains(&congestion.delay_max.0),
            ),
            (
                "extents",
                self.extents.len().to_string(),
                "name all devices or none, the cache first",
                self.extents.is_empty() || self.extents.len() == 1 + self.capacity.len(),
            ),
        ];
        if let Reduction::DedupeCompress(costs) = &self.reduction {
            settings.push((
                "reduction",
                format!("{costs:?}"),
                "use shares of 0 to 1, times per block of 0 to 1 ms, and 0 to 8 metadata writes",
                costs.fingerprint.max(costs.compress) <= Nanos::from_millis(1)
                    && share(costs.hash_map_hit)
                    && share(costs.address_map_hit)
                    && share(costs.stored_bytes_per_destaged_byte)
                    && share(costs.unique_share)
                    && (0.0..=8.0).contains(&costs.metadata_writes_per_block),
            ));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskGroupProblem, DiskGroupSpec, Reduction, ReductionCosts, WriteBufferSpec};
    use crate::builtin;
    use underlay_core::Bytes;

    fn spec() -> DiskGroupSpec {
        let profile = |name| builtin::find(name).expect("built in");
        DiskGroupSpec::new("g", profile("dc1500m-960"), vec![profile("5200eco-1920")])
    }

    #[test]
    fn usual_settings_are_usable_and_the_buffer_is_bounded() {
        assert_eq!(spec().problems(), []);
        assert_eq!(spec().write_buffer.usable, WriteBufferSpec::LOGICAL_LIMIT);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let mut spec = spec();
        spec.capacity.clear();
        spec.cache.capacity = Bytes(0);
        spec.write_buffer.elevator_stop = 0.9;
        spec.congestion.high_fill = f64::NAN;
        spec.scheduler.window = 0;
        spec.extents = vec![Bytes(1)];
        spec.reduction = Reduction::DedupeCompress(ReductionCosts {
            unique_share: 2.0,
            ..ReductionCosts::DEFAULT
        });
        let texts: Vec<_> = spec.problems().iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 7, "{texts:#?}");
        assert!(matches!(spec.problems()[0], DiskGroupProblem::CapacityDevices { count: 0, .. }));
        assert!(texts.iter().all(|text| text.starts_with("disk group `g`")), "{texts:#?}");
    }
}
