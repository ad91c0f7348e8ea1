//! Faults that a study schedules: what breaks, when, for how long, and in which designs.
//!
//! Part of the plan, therefore without serde. Names of hosts, devices and volumes were checked against every design concerned
//! when the plan was made.

use std::fmt;
use underlay_core::words;

use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{Checksum, Method, Policy};
use underlay_model::{DeviceProfile, DiskGroupSpec};

words! {
    /// The kinds of faults that a study can name.
    pub enum FaultKind: "kind of fault" {
        /// Everything a device does takes longer.
        DeviceSlow = "device-slow",
        /// A device accepts requests and answers none.
        DeviceStuck = "device-stuck",
        /// A device fails some requests.
        DeviceErroring = "device-erroring",
        /// A device is gone.
        DeviceLost = "device-lost",
        /// A host lost its power, or crashed.
        HostLost = "host-lost",
        /// A host answers nothing, and loses nothing.
        HostFrozen = "host-frozen",
        /// Some hosts reach each other and no other host.
        HostsPartitioned = "hosts-partitioned",
        /// Stored bits of a volume flip silently.
        BitRot = "bit-rot",
        /// A write to a volume is stored in part, and reported as done.
        TornWrite = "torn-write",
        /// The power of the whole datastore, and of the database's host, is cut.
        PowerCut = "power-cut",
        /// Volumes get another policy.
        PolicyChange = "policy-change",
        /// A host gets one disk group more.
        DiskGroupAdded = "disk-group-added",
        /// A disk group gets one capacity device more.
        DeviceAdded = "device-added",
    }
}

impl FaultKind {
    /// Whether it ends when its time is over. The others are single acts.
    pub const fn can_last(self) -> bool {
        !matches!(
            self,
            FaultKind::BitRot
                | FaultKind::TornWrite
                | FaultKind::PolicyChange
                | FaultKind::DiskGroupAdded
                | FaultKind::DeviceAdded
        )
    }

    /// Whether it happens to single devices too, and not only to clusters.
    pub const fn fits_devices(self) -> bool {
        matches!(
            self,
            FaultKind::DeviceSlow
                | FaultKind::DeviceStuck
                | FaultKind::DeviceErroring
                | FaultKind::DeviceLost
                | FaultKind::PowerCut
        )
    }
}

words! {
    /// The phase of a run in which a fault happens.
    pub enum FaultPhase: "phase" {
        /// Before the load.
        Settle = "settle",
        /// While load rises for the first time.
        WarmUp = "warm-up",
        /// While users rise to a rung.
        RampUp = "ramp-up",
        /// In the measured window of a rung.
        Measure = "measure",
    }
}

impl FaultPhase {
    /// Whether it happens once per rung of the ladder.
    pub const fn is_per_rung(self) -> bool {
        matches!(self, FaultPhase::RampUp | FaultPhase::Measure)
    }
}

/// One scheduled fault.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// What happens, and to what.
    pub action: FaultAction,
    /// Since the beginning of the phase.
    pub at: Nanos,
    /// The phase.
    pub phase: FaultPhase,
    /// Users of the rung, for phases that come once per rung.
    pub users: Option<u32>,
    /// After this time it is mended; `None` = when the load has ended, or not at all for single acts.
    pub lasts: Option<Nanos>,
    /// Indices of the designs it happens to. Not empty.
    pub designs: Vec<usize>,
    /// Line of the study file, from 1.
    pub line: usize,
}

/// What happens, and to what.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// Everything the device does takes `factor` times as long.
    DeviceSlow {
        /// `HOST/GROUP/disk0` in a cluster, the device's name elsewhere.
        device: String,
        /// More than 1.
        factor: f64,
    },
    /// The device accepts requests and answers none.
    DeviceStuck {
        /// The device.
        device: String,
    },
    /// The device fails requests with this probability.
    DeviceErroring {
        /// The device.
        device: String,
        /// 0 to 1.
        probability: f64,
    },
    /// The device is gone. In a cluster an empty one takes its place when it is mended.
    DeviceLost {
        /// The device.
        device: String,
    },
    /// The host lost its power, or crashed.
    HostLost {
        /// The host.
        host: String,
    },
    /// The host answers nothing.
    HostFrozen {
        /// The host.
        host: String,
    },
    /// These hosts reach each other and no other host.
    HostsPartitioned {
        /// The hosts.
        hosts: Vec<String>,
    },
    /// This many stored bits of one copy of the volume flip.
    BitRot {
        /// The volume.
        volume: String,
        /// Bits, each in another block.
        bits: u32,
    },
    /// The next write to one copy of the volume stores only its first bytes.
    TornWrite {
        /// The volume.
        volume: String,
        /// Bytes that are stored, a multiple of 512.
        keep: Bytes,
    },
    /// Datastore and database lose their power.
    PowerCut,
    /// The volume, or every volume, gets another policy.
    PolicyChange {
        /// `None` = every volume.
        volume: Option<String>,
        /// What changes.
        change: PolicyChange,
    },
    /// The host gets one disk group more.
    DiskGroupAdded {
        /// The host.
        host: String,
        /// The group, scaled and named.
        group: Box<DiskGroupSpec>,
    },
    /// The disk group gets one empty capacity device more.
    DeviceAdded {
        /// `HOST/GROUP`.
        group: String,
        /// The device, scaled.
        profile: Box<DeviceProfile>,
    },
}

/// What of a policy changes; the rest stays as the design has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// Failures of hosts or devices that lose nothing.
    pub failures_to_tolerate: Option<u8>,
    /// By copies or by parity.
    pub method: Option<Method>,
    /// Capacity devices over which each copy is spread.
    pub stripe_width: Option<u8>,
    /// Largest rate, scaled.
    pub iops_limit: Option<u32>,
    /// Whether blocks carry a checksum.
    pub checksum: Option<Checksum>,
    /// Share set aside.
    pub space_reservation_percent: Option<u8>,
}

impl PolicyChange {
    /// The policy after the change.
    pub fn of(&self, policy: &Policy) -> Policy {
        Policy {
            failures_to_tolerate: self.failures_to_tolerate.unwrap_or(policy.failures_to_tolerate),
            method: self.method.unwrap_or(policy.method),
            stripe_width: self.stripe_width.unwrap_or(policy.stripe_width),
            iops_limit: self.iops_limit.or(policy.iops_limit),
            checksum: self.checksum.unwrap_or(policy.checksum),
            space_reservation_percent: self
                .space_reservation_percent
                .unwrap_or(policy.space_reservation_percent),
        }
    }
}

impl FaultAction {
    /// Its kind.
    pub const fn kind(&self) -> FaultKind {
        match self {
            FaultAction::DeviceSlow { .. } => FaultKind::DeviceSlow,
            FaultAction::DeviceStuck { .. } => FaultKind::DeviceStuck,
            FaultAction::DeviceErroring { .. } => FaultKind::DeviceErroring,
            FaultAction::DeviceLost { .. } => FaultKind::DeviceLost,
            FaultAction::HostLost { .. } => FaultKind::HostLost,
            FaultAction::HostFrozen { .. } => FaultKind::HostFrozen,
            FaultAction::HostsPartitioned { .. } => FaultKind::HostsPartitioned,
            FaultAction::BitRot { .. } => FaultKind::BitRot,
            FaultAction::TornWrite { .. } => FaultKind::TornWrite,
            FaultAction::PowerCut => FaultKind::PowerCut,
            FaultAction::PolicyChange { .. } => FaultKind::PolicyChange,
            FaultAction::DiskGroupAdded { .. } => FaultKind::DiskGroupAdded,
            FaultAction::DeviceAdded { .. } => FaultKind::DeviceAdded,
        }
    }

    /// Whether something stops to serve or to hold what it held: what a policy counts as a failure.
    pub const fn is_failure(&self) -> bool {
        matches!(
            self,
            FaultAction::DeviceStuck { .. }
                | FaultAction::DeviceErroring { .. }
                | FaultAction::DeviceLost { .. }
                | FaultAction::HostLost { .. }
                | FaultAction::HostFrozen { .. }
                | FaultAction::HostsPartitioned { .. }
        )
    }

    /// What it happens to, in words: the host, the device, the volume.
    pub fn target(&self) -> String {
        match self {
            FaultAction::DeviceSlow { device, .. }
            | FaultAction::DeviceStuck { device }
            | FaultAction::DeviceErroring { device, .. }
            | FaultAction::DeviceLost { device } => device.clone(),
            FaultAction::HostLost { host }
            | FaultAction::HostFrozen { host }
            | FaultAction::DiskGroupAdded { host, .. } => host.clone(),
            FaultAction::DeviceAdded { group, .. } => group.clone(),
            FaultAction::HostsPartitioned { hosts } => hosts.join(", "),
            FaultAction::BitRot { volume, .. } | FaultAction::TornWrite { volume, .. } => {
                volume.clone()
            }
            FaultAction::PowerCut => "everything".to_string(),
            FaultAction::PolicyChange { volume, .. } => {
                volume.clone().unwrap_or_else(|| "all volumes".to_string())
            }
        }
    }

    /// What happens, in words: `host h0 is lost`.
    pub fn described(&self) -> String {
        match self {
            FaultAction::DeviceSlow { device, factor } => {
                format!("device {device} takes {factor} times as long")
            }
            FaultAction::DeviceStuck { device } => format!("device {device} is stuck"),
            FaultAction::DeviceErroring { device, probability } => {
                format!("device {device} fails {} % of its requests", probability * 100.0)
            }
            FaultAction::DeviceLost { device } => format!("device {device} is lost"),
            FaultAction::HostLost { host } => format!("host {host} is lost"),
            FaultAction::HostFrozen { host } => format!("host {host} is frozen"),
            FaultAction::HostsPartitioned { hosts } => {
                format!("{} reach only each other", hosts.join(", "))
            }
            FaultAction::BitRot { volume, bits } => {
                format!("{bits} bits of one copy of volume {volume} flip")
            }
            FaultAction::TornWrite { volume, keep } => {
                format!("a write to one copy of volume {volume} stores only {keep}")
            }
            FaultAction::PowerCut => "the power is cut".to_string(),
            FaultAction::PolicyChange { volume, change } => {
                let of = volume
                    .as_ref()
                    .map_or_else(|| "all volumes".to_string(), |volume| format!("volume {volume}"));
                format!("{of} get another policy: {change}")
            }
            FaultAction::DeviceAdded { group, profile } => {
                format!("disk group {group} gets a capacity device: {}", profile.name)
            }
            FaultAction::DiskGroupAdded { host, group } => {
                let capacity: Vec<&str> =
                    group.capacity.iter().map(|profile| profile.name.as_str()).collect();
                format!(
                    "host {host} gets disk group {}: {} over {}",
                    group.name,
                    group.cache.name,
                    capacity.join(" + ")
                )
            }
        }
    }

    /// What mends it, in words; `None` where nothing does.
    pub fn mended(&self) -> Option<String> {
        Some(match self {
            FaultAction::DeviceSlow { device, .. }
            | FaultAction::DeviceStuck { device }
            | FaultAction::DeviceErroring { device, .. } => format!("device {device} works again"),
            FaultAction::DeviceLost { device } => format!("device {device} is mended"),
            FaultAction::HostLost { host } | FaultAction::HostFrozen { host } => {
                format!("host {host} is back")
            }
            FaultAction::HostsPartitioned { hosts } => {
                format!("{} reach the others again", hosts.join(", "))
            }
            FaultAction::PowerCut => "the power is back".to_string(),
            FaultAction::BitRot { .. }
            | FaultAction::TornWrite { .. }
            | FaultAction::PolicyChange { .. }
            | FaultAction::DiskGroupAdded { .. }
            | FaultAction::DeviceAdded { .. } => return None,
        })
    }
}

impl fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.map(|method| match method {
            Method::Mirror => "by copies",
            Method::ErasureCoding => "by parity",
        });
        let checksum = self.checksum.map(|checksum| match checksum {
            Checksum::On => "checksums on",
            Checksum::Off => "checksums off",
        });
        let parts = [
            self.failures_to_tolerate.map(|n| format!("{n} failures tolerated")),
            method.map(str::to_string),
            self.stripe_width.map(|width| format!("stripe width {width}")),
            self.iops_limit.map(|limit| format!("limit {limit} I/Os per second")),
            checksum.map(str::to_string),
            self.space_reservation_percent.map(|percent| format!("{percent} % reserved")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
