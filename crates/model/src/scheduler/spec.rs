//! The settings of a scheduler: the policy and the size of what it hands out.

use underlay_core::{Bytes, Nanos};

/// On whose behalf an I/O is done. Each class has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoClass {
    /// Virtual machines, that is: the volumes' users.
    Vm,
    /// Resynchronisation: rebuild, repair, rebalance, policy changes.
    Resync,
    /// What the datastore keeps about the data: maps, checksums, object headers.
    Metadata,
    /// The namespace: directories and descriptors of volumes.
    Namespace,
}

impl IoClass {
    /// All classes, in the order used by counters.
    pub const ALL: [IoClass; 4] =
        [IoClass::Vm, IoClass::Resync, IoClass::Metadata, IoClass::Namespace];

    /// The word used in series names and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            IoClass::Vm => "vm",
            IoClass::Resync => "resync",
            IoClass::Metadata => "metadata",
            IoClass::Namespace => "namespace",
        }
    }

    /// Position in [`IoClass::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How the classes share a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Virtual machines first, resynchronisation at least `resync_floor` of the bytes while both wait, all of
    /// the bandwidth for a class that is alone (vSAN 6.7 and later).
    Adaptive {
        /// Guaranteed share of resynchronisation, 0 to 0.9; what is left is the virtual machines' share.
        resync_floor: f64,
    },
    /// Order of arrival, whatever the class; resynchronisation in the pieces it comes in (vSAN 6.0 to 6.6).
    None,
    /// Order of arrival, and resynchronisation limited to a rate (the manual throttle of vSAN 6.0 to 6.6).
    StaticLimit {
        /// Bytes per second of resynchronisation per device, at least 64 KiB.
        bytes_per_second: u64,
    },
    /// Order of arrival, and resynchronisation limited to a rate that is halved while the latency of virtual
    /// machines is above `high`, and raised by `step_bytes_per_second` per interval while it is below `low`
    /// (the automatic throttle of vSAN 6.2 and 6.5 patches and of 6.6.1).
    LatencyWatermark {
        /// Mean latency below which the rate grows.
        low: Nanos,
        /// Mean latency above which the rate is halved.
        high: Nanos,
        /// How often the latency is looked at. 1 ms to 1 h.
        interval: Nanos,
        /// Growth per interval.
        step_bytes_per_second: u64,
        /// The rate is never set lower than this, at least 64 KiB per second.
        floor_bytes_per_second: u64,
    },
}

impl Policy {
    /// The policy of current releases.
    pub const ADAPTIVE: Policy = Policy::Adaptive { resync_floor: 0.20 };
}

/// Settings of the scheduler of a disk group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerSpec {
    /// How the classes share.
    pub policy: Policy,
    /// Largest piece of resynchronisation that is sent to a device at once, under the adaptive policy. A
    /// multiple of 4 KiB, 4 KiB to 16 MiB.
    pub slice: Bytes,
    /// Pieces of resynchronisation at one device at once while virtual machines use it too. 1 to 1024.
    pub window: u32,
}

impl SchedulerSpec {
    /// Adaptive, slices of 64 KiB, a window of 4.
    pub const DEFAULT: SchedulerSpec =
        SchedulerSpec { policy: Policy::ADAPTIVE, slice: Bytes::from_kib(64), window: 4 };

    /// Every rule the settings violate; empty means usable.
    pub fn problems(&self) -> Vec<SchedulerProblem> {
        let mut problems = Vec::new();
        let slice = self.slice.0;
        if !(4096..=16 << 20).contains(&slice) || !slice.is_multiple_of(4096) {
            problems.push(SchedulerProblem::Slice(self.slice));
        }
        if !(1..=1024).contains(&self.window) {
            problems.push(SchedulerProblem::Window(self.window));
        }
        let slowest = 64 << 10;
        match self.policy {
            Policy::Adaptive { resync_floor } if !(0.0..=0.9).contains(&resync_floor) => {
                problems.push(SchedulerProblem::Floor(resync_floor));
            }
            Policy::StaticLimit { bytes_per_second } if bytes_per_second < slowest => {
                problems.push(SchedulerProblem::Rate(bytes_per_second));
            }
            Policy::LatencyWatermark { floor_bytes_per_second, .. }
                if floor_bytes_per_second < slowest =>
            {
                problems.push(SchedulerProblem::Rate(floor_bytes_per_second));
            }
            Policy::LatencyWatermark { low, high, .. } if low > high => {
                problems.push(SchedulerProblem::Watermarks { low, high });
            }
            Policy::LatencyWatermark { interval, .. }
                if !(1_000_000..=3_600_000_000_000).contains(&interval.0) =>
            {
                problems.push(SchedulerProblem::Interval(interval));
            }
            _ => {}
        }
        problems
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchedulerProblem {
    /// Slices out of range.
    #[error("the resync slice is {0}; use a multiple of 4 KiB from 4 KiB to 16 MiB")]
    Slice(Bytes),
    /// Window out of range.
    #[error("the resync window is {0}; use 1 to 1024")]
    Window(u32),
    /// Floor out of range.
    #[error("the resync floor is {0}; use 0 to 0.9")]
    Floor(f64),
    /// A rate so low that a slice takes seconds.
    #[error("resync is limited to {0} bytes per second; use at least 65536")]
    Rate(u64),
    /// Watermarks the wrong way round.
    #[error("the low latency watermark {low} is above the high one {high}; swap them")]
    Watermarks {
        /// The lower.
        low: Nanos,
        /// The higher.
        high: Nanos,
    },
    /// Interval out of range.
    #[error("the latency is checked every {0}; use 1 ms to 1 h")]
    Interval(Nanos),
}

#[cfg(test)]
mod tests {
    use super::{Policy, SchedulerProblem, SchedulerSpec};
    use underlay_core::{Bytes, Nanos};

    #[test]
    fn problems_are_found() {
        assert_eq!(SchedulerSpec::DEFAULT.problems(), []);
        let policy = Policy::LatencyWatermark {
            low: Nanos::from_millis(5),
            high: Nanos::from_millis(1),
            interval: Nanos::from_secs(1),
            step_bytes_per_second: 1 << 20,
            floor_bytes_per_second: 1 << 20,
        };
        let spec = SchedulerSpec { policy, slice: Bytes(1000), window: 0 };
        assert_eq!(
            spec.problems(),
            [
                SchedulerProblem::Slice(Bytes(1000)),
                SchedulerProblem::Window(0),
                SchedulerProblem::Watermarks {
                    low: Nanos::from_millis(5),
                    high: Nanos::from_millis(1)
                },
            ]
        );
        let floor = SchedulerSpec {
            policy: Policy::Adaptive { resync_floor: f64::NAN },
            ..SchedulerSpec::DEFAULT
        };
        assert_eq!(floor.problems().len(), 1);
    }
}
