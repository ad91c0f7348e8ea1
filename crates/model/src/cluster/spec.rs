//! What a cluster is made of: hosts in fault domains, their disk groups, the network, and the settings.
//!
//! A specification holds values and checks them; [`super::Cluster`] is what behaves.

use super::stack::Stack;
use crate::disk_group::DiskGroupSpec;
use crate::profile::DeviceProfile;
use underlay_core::{Bytes, Nanos};

/// A whole cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// The hosts; at least one with a disk group.
    pub hosts: Vec<HostSpec>,
    /// The network between them.
    pub network: NetworkSpec,
    /// Everything that is not hardware.
    pub settings: ClusterSettings,
}

/// One host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Unique in the cluster.
    pub name: String,
    /// The fault domain (rack, blade chassis); a host without one is a fault domain of its own.
    pub fault_domain: Option<String>,
    /// Up to 5 disk groups; none for a host that only holds witnesses.
    pub groups: Vec<DiskGroupSpec>,
}

/// The network between hosts: a full-duplex link per host to a switch that is never the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkSpec {
    /// One way, from the sender's stack to the receiver's. Range 0 to 1 s.
    pub latency: Nanos,
    /// Each direction of each host's link; 1 MB/s to 1 TB/s.
    pub bytes_per_second: u64,
    /// The links are one part in so many of that, and so is each host's storage stack; see
    /// [`crate::DeviceProfile::divisor`]. 1 = all of it. Range 1 to 4096.
    pub divisor: u32,
}

/// Everything that is not hardware. Defaults: [`ClusterSettings::default`], each with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterSettings {
    /// Stripe unit and granule of delta tracking: a power of two, 64 KiB to 1 MiB.
    pub stripe_unit: Bytes,
    /// Largest component; a longer object is spread over more of them.
    pub component_limit: Bytes,
    /// Most components on one host.
    pub components_per_host: u32,
    /// How long an absent component may come back before it is rebuilt elsewhere.
    pub repair_delay: Nanos,
    /// Silence after which a host counts as gone; requests to it wait that long.
    pub failure_detection: Nanos,
    /// How long a device may be stuck before it counts as failed.
    pub device_timeout: Nanos,
    /// Read errors after which a device counts as failed; one failed write is enough.
    pub device_read_errors: u32,
    /// Bytes of one resync I/O; decides the neighbours' latency. 4 KiB to the stripe unit.
    pub resync_slice: Bytes,
    /// Resync I/Os in flight towards one disk group, 1 to 64.
    pub resync_window: u32,
    /// Fullness of a device above which components are moved away, in percent.
    pub rebalance_full_percent: u8,
    /// Difference in fullness between two devices above which components are moved; none = never. Moving stops at half
    /// of it.
    pub rebalance_variance_percent: Option<u8>,
    /// How often fullness is looked at.
    pub rebalance_interval: Nanos,
    /// What requests cost on the host that owns their volume.
    pub stack: Stack,
    /// Processor time of the object's owner per I/O, as latency.
    pub owner_overhead: Nanos,
    /// Processor time of computing or verifying the checksum of 4 KiB, as latency.
    pub checksum_overhead_per_4k: Nanos,
}

impl Default for ClusterSettings {
    /// The published system's values where public: 255 GB and 9,000 components (product documentation),
    /// 80 % and 30 % (rebalance documentation), 1 MiB stripe unit and 60 minutes of repair delay (recalled).
    /// Assumed: 5 s of silence, 10 s of a stuck device, 64 KiB slices and a window of 4 (from a scheduler study
    /// in virtual time), no overheads.
    fn default() -> ClusterSettings {
        ClusterSettings {
            stripe_unit: Bytes::from_mib(1),
            component_limit: Bytes(255_000_000_000),
            components_per_host: 9_000,
            repair_delay: Nanos::from_secs(3_600),
            failure_detection: Nanos::from_secs(5),
            device_timeout: Nanos::from_secs(10),
            device_read_errors: 10,
            resync_slice: Bytes::from_kib(64),
            resync_window: 4,
            rebalance_full_percent: 80,
            rebalance_variance_percent: Some(30),
            rebalance_interval: Nanos::from_secs(60),
            stack: Stack::NONE,
            owner_overhead: Nanos::ZERO,
            checksum_overhead_per_4k: Nanos::ZERO,
        }
    }
}

/// One violated rule of a cluster specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {rule}")]
pub struct ClusterProblem {
    /// Where: `host "a"`, `settings.resync-window`.
    pub place: String,
    /// What it must hold.
    pub rule: String,
}

impl ClusterSpec {
    /// Every rule the specification violates; empty means usable.
    pub fn problems(&self) -> Vec<ClusterProblem> {
        let mut problems = Vec::new();
        if self.hosts.iter().all(|host| host.groups.is_empty()) {
            problem(&mut problems, "hosts", "at least one host needs a disk group");
        }
        for (index, host) in self.hosts.iter().enumerate() {
            if self.hosts[..index].iter().any(|other| other.name == host.name) {
                let place = format!("host \"{}\"", host.name);
                problem(&mut problems, &place, "an earlier host has the same name");
            }
            problems.extend(host.problems());
        }
        let network = &self.network;
        if !(1_000_000..=1_000_000_000_000).contains(&network.bytes_per_second) {
            problem(&mut problems, "network.bytes-per-second", "use 1 MB/s to 1 TB/s");
        }
        if network.latency > Nanos::from_secs(1) {
            problem(&mut problems, "network.latency", "use 0 to 1 s");
        }
        if !(1..=4096).contains(&network.divisor) {
            problem(&mut problems, "network.divisor", "use 1 to 4096");
        }
        self.settings.check(&mut problems);
        problems
    }
}

impl ClusterSpec {
    /// Whether nothing in it takes time, except that links move bytes one after the other.
    pub fn is_instant(&self) -> bool {
        let mut devices = self
            .hosts
            .iter()
            .flat_map(|host| &host.groups)
            .flat_map(|group| std::iter::once(&group.cache).chain(&group.capacity));
        self.network.latency == Nanos::ZERO
            && self.settings.stack == Stack::NONE
            && self.settings.owner_overhead == Nanos::ZERO
            && self.settings.checksum_overhead_per_4k == Nanos::ZERO
            && devices.all(DeviceProfile::is_instant)
    }
}

impl HostSpec {
    /// Every rule the host alone violates.
    pub fn problems(&self) -> Vec<ClusterProblem> {
        let mut problems = Vec::new();
        let place = format!("host \"{}\"", self.name);
        if self.groups.len() > 5 {
            problem(&mut problems, &place, "a host has up to 5 disk groups");
        }
        for group in &self.groups {
            for found in group.problems() {
                problem(&mut problems, &place, &found.to_string());
            }
        }
        problems
    }
}

impl ClusterSettings {
    fn check(&self, problems: &mut Vec<ClusterProblem>) {
        let unit = self.stripe_unit.0;
        if !unit.is_power_of_two() || !(64 << 10..=1 << 20).contains(&unit) {
            let rule = "use a power of two from 64 KiB to 1 MiB";
            problem(problems, "settings.stripe-unit", rule);
        }
        let slice = self.resync_slice.0;
        if !slice.is_multiple_of(4096) || !(4096..=unit).contains(&slice) {
            let rule = "use a multiple of 4 KiB up to the stripe unit";
            problem(problems, "settings.resync-slice", rule);
        }
        if !(1..=64).contains(&self.resync_window) {
            problem(problems, "settings.resync-window", "use 1 to 64");
        }
        if self.component_limit.0 < unit {
            problem(problems, "settings.component-limit", "use at least the stripe unit");
        }
        if !(1..=100).contains(&self.rebalance_full_percent) {
            problem(problems, "settings.rebalance-full-percent", "use 1 to 100");
        }
        if self.rebalance_variance_percent.is_some_and(|percent| !(1..=100).contains(&percent)) {
            problem(problems, "settings.rebalance-variance-percent", "use 1 to 100 or none");
        }
        if self.stack.per_io > Nanos::from_millis(10) {
            problem(problems, "settings.stack", "use at most 10 ms");
        }
        if self.rebalance_interval == Nanos::ZERO {
            problem(problems, "settings.rebalance-interval", "use more than 0 s");
        }
    }
}

fn problem(problems: &mut Vec<ClusterProblem>, place: &str, rule: &str) {
    problems.push(ClusterProblem { place: place.to_string(), rule: rule.to_string() });
}
