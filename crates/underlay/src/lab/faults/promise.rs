//! Whether what happened is within what a design promises to survive. Pure.
//!
//! A policy that tolerates n failures promises that nothing acknowledged is lost while at most n hosts fail at the same
//! time. A failure counts until all data of its host is complete again, there or rebuilt elsewhere. Silent damage counts to
//! the end: it is unknown which blocks were read, found damaged and repaired. A policy that promises more counts from the
//! start of the next run only, one that promises less at once. A mirrored device promises to survive the loss of all its
//! copies but one; failures of several such devices are no more than those of each.

use std::collections::BTreeMap;

use underlay_core::Nanos;
use underlay_model::cluster::Checksum;
use underlay_study::{DatastoreKind, DesignPlan, Durability, FaultAction};

/// How silent damage is named among the failures.
const SILENT: &str = "silent damage to ";

/// Failures of one run against the design's promise.
#[derive(Debug)]
pub struct Promise {
    tolerated: usize,
    hosts: usize,
    /// How long a failure may stay unnoticed, so that everything seems to be in order.
    noticed_after: Nanos,
    protects_from_rot: bool,
    keeps_what_was_flushed: bool,
    /// Mirrored devices that volumes lie on, with the number of their copies.
    mirrors: BTreeMap<String, usize>,
    /// Failures that those of them tolerate which something happened to.
    of_mirrors: usize,
    /// Hosts that failed and were not yet known to be made good, with the time of their last failure.
    failed: BTreeMap<String, Nanos>,
    at_once: usize,
    exceeded_by: Option<String>,
}

impl Promise {
    /// The promise of a design.
    pub fn of(design: &DesignPlan) -> Promise {
        let (tolerated, hosts, noticed_after, protects_from_rot) = match &design.kind {
            DatastoreKind::Cluster(plan) => {
                let settings = &plan.spec.settings;
                (
                    usize::from(plan.policy.failures_to_tolerate),
                    plan.spec.hosts.len(),
                    settings.failure_detection.max(settings.device_timeout) + Nanos::from_secs(1),
                    plan.policy.failures_to_tolerate > 0 && plan.policy.checksum == Checksum::On,
                )
            }
            _ => (0, 1, Nanos::ZERO, false),
        };
        let mirrors: BTreeMap<String, usize> = match &design.kind {
            DatastoreKind::Emulated { devices, .. } => devices
                .iter()
                .filter(|(_, profile)| profile.copies > 1)
                .map(|(name, profile)| (name.clone(), profile.copies as usize))
                .collect(),
            _ => BTreeMap::new(),
        };
        let keeps_what_was_flushed =
            !matches!(design.kind, DatastoreKind::Emulated { durability: Durability::Lying, .. });
        Promise {
            tolerated,
            hosts,
            noticed_after,
            protects_from_rot,
            keeps_what_was_flushed,
            mirrors,
            of_mirrors: 0,
            failed: BTreeMap::new(),
            at_once: 0,
            exceeded_by: None,
        }
    }

    /// Says what is about to happen at `now`, while `impaired` components are not in order.
    pub fn note(&mut self, action: &FaultAction, now: Nanos, impaired: usize) {
        if impaired == 0 {
            let noticed_after = self.noticed_after;
            self.failed
                .retain(|name, since| name.starts_with(SILENT) || *since + noticed_after > now);
        }
        if let FaultAction::PolicyChange { change, .. } = action {
            let promised = change.failures_to_tolerate.map_or(self.tolerated, usize::from);
            self.tolerated = self.tolerated.min(promised);
        }
        for host in self.failing(action) {
            self.failed.insert(host, now);
        }
        let tolerated = self.tolerated_of(action);
        let failed = match self.mirror_of(action) {
            Some(device) => self.failed.keys().filter(|name| is_part_of(name, device)).count(),
            None => self.failed.len(),
        };
        self.at_once = self.at_once.max(failed);
        if self.mirror_of(action).is_some() {
            self.of_mirrors = self.of_mirrors.max(tolerated);
        }
        let unkept = match action {
            FaultAction::BitRot { .. } | FaultAction::TornWrite { .. }
                if !self.protects_from_rot =>
            {
                true
            }
            FaultAction::PowerCut => !self.keeps_what_was_flushed,
            FaultAction::DeviceSlow { .. }
            | FaultAction::DiskGroupAdded { .. }
            | FaultAction::DeviceAdded { .. } => false,
            _ => failed > tolerated,
        };
        if unkept && self.exceeded_by.is_none() {
            self.exceeded_by = Some(action.described());
        }
    }

    /// The first fault that was more than the design promises to survive.
    pub fn exceeded_by(&self) -> Option<&str> {
        self.exceeded_by.as_deref()
    }

    /// Failures that the design tolerates.
    pub fn tolerated(&self) -> usize {
        self.tolerated.max(self.of_mirrors)
    }

    /// The most failures that were in force at once.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// The mirrored device that an action happens to.
    fn mirror_of<'a>(&'a self, action: &FaultAction) -> Option<&'a str> {
        let target = action.target();
        self.mirrors.keys().find(|device| is_part_of(&target, device)).map(String::as_str)
    }

    fn tolerated_of(&self, action: &FaultAction) -> usize {
        let copies = self.mirror_of(action).and_then(|device| self.mirrors.get(device));
        copies.map_or(self.tolerated, |copies| copies - 1)
    }

    /// Hosts that fail with it; a device stands for its host, on which redundancy never relies twice.
    fn failing(&self, action: &FaultAction) -> Vec<String> {
        match action {
            FaultAction::BitRot { volume, .. } | FaultAction::TornWrite { volume, .. } => {
                vec![format!("{SILENT}{volume}")]
            }
            action if !action.is_failure() => Vec::new(),
            // The smaller side is what the others lose.
            FaultAction::HostsPartitioned { hosts } if hosts.len() * 2 <= self.hosts => {
                hosts.clone()
            }
            FaultAction::HostsPartitioned { hosts } => {
                (0..self.hosts.saturating_sub(hosts.len())).map(|n| format!("other {n}")).collect()
            }
            other => {
                let target = other.target();
                if let Some(copies) = self.mirrors.get(&target) {
                    return (0..*copies).map(|copy| format!("{target}/disk{copy}")).collect();
                }
                if self.mirror_of(other).is_some() {
                    return vec![target];
                }
                vec![target.split('/').next().unwrap_or(&target).to_string()]
            }
        }
    }
}

/// Whether a name is that of a device, or of one of its copies.
fn is_part_of(name: &str, device: &str) -> bool {
    name.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.starts_with("/disk"))
}

#[cfg(test)]
mod tests {
    use super::Promise;
    use std::collections::BTreeMap;
    use underlay_core::Nanos;
    use underlay_study::{FaultAction, PolicyChange};

    fn promise(tolerated: usize) -> Promise {
        Promise {
            tolerated,
            hosts: 4,
            noticed_after: Nanos::from_secs(5),
            protects_from_rot: tolerated > 0,
            keeps_what_was_flushed: true,
            mirrors: BTreeMap::new(),
            of_mirrors: 0,
            failed: BTreeMap::new(),
            at_once: 0,
            exceeded_by: None,
        }
    }

    fn lost(host: &str) -> FaultAction {
        FaultAction::HostLost { host: host.to_string() }
    }

    #[test]
    fn a_second_failure_counts_unless_the_first_was_made_good() {
        let mut kept = promise(1);
        kept.note(&lost("a"), Nanos::from_secs(1), 0);
        kept.note(&lost("b"), Nanos::from_secs(100), 0);
        assert_eq!((kept.at_once(), kept.exceeded_by()), (1, None));

        let mut rebuilding = promise(1);
        rebuilding.note(&lost("a"), Nanos::from_secs(1), 0);
        rebuilding.note(&lost("b"), Nanos::from_secs(100), 3);
        assert_eq!((rebuilding.at_once(), rebuilding.exceeded_by()), (2, Some("host b is lost")));

        // So soon after the first, it has not been noticed yet.
        let mut unnoticed = promise(1);
        unnoticed.note(&lost("a"), Nanos::from_secs(1), 0);
        unnoticed.note(&lost("b"), Nanos::from_secs(3), 0);
        assert_eq!(unnoticed.at_once(), 2);
    }

    #[test]
    fn a_weaker_policy_promises_less_at_once_and_a_stronger_one_nothing_yet() {
        let change = |failures| FaultAction::PolicyChange {
            volume: None,
            change: PolicyChange {
                failures_to_tolerate: Some(failures),
                ..PolicyChange::default()
            },
        };
        let (mut weaker, mut stronger) = (promise(1), promise(1));
        weaker.note(&change(0), Nanos::ZERO, 0);
        weaker.note(&lost("a"), Nanos::from_secs(9), 0);
        assert_eq!((weaker.tolerated(), weaker.exceeded_by()), (0, Some("host a is lost")));
        stronger.note(&change(2), Nanos::ZERO, 0);
        assert_eq!((stronger.tolerated(), stronger.exceeded_by()), (1, None));
    }

    #[test]
    fn devices_count_with_their_host_and_partitions_with_their_smaller_side() {
        let mut one_host = promise(1);
        let device = "a/group-1/disk0".to_string();
        one_host.note(&FaultAction::DeviceLost { device: device.clone() }, Nanos::ZERO, 0);
        one_host.note(&lost("a"), Nanos::ZERO, 1);
        assert_eq!(one_host.at_once(), 1);

        let mut slow = promise(0);
        slow.note(&FaultAction::DeviceSlow { device, factor: 9.0 }, Nanos::ZERO, 0);
        slow.note(&FaultAction::PowerCut, Nanos::ZERO, 0);
        assert_eq!((slow.at_once(), slow.exceeded_by()), (0, None));

        let mut partition = promise(1);
        let hosts = ["a", "b", "c"].map(str::to_string).to_vec();
        partition.note(&FaultAction::HostsPartitioned { hosts }, Nanos::ZERO, 0);
        assert_eq!((partition.at_once(), partition.exceeded_by()), (1, None));
    }

    #[test]
    fn a_mirror_survives_all_copies_but_one() {
        let mirrored = || Promise { mirrors: [("log".to_string(), 2)].into(), ..promise(0) };
        let lost = |device: &str| FaultAction::DeviceLost { device: device.to_string() };
        let mut one = mirrored();
        one.note(&lost("log/disk0"), Nanos::from_secs(1), 0);
        assert_eq!((one.at_once(), one.tolerated(), one.exceeded_by()), (1, 1, None));
        // It is back and complete before the other one fails.
        one.note(&lost("log/disk1"), Nanos::from_secs(90), 0);
        assert_eq!((one.at_once(), one.exceeded_by()), (1, None));

        let mut both = mirrored();
        both.note(&lost("log/disk0"), Nanos::from_secs(1), 0);
        both.note(&lost("log/disk1"), Nanos::from_secs(90), 1);
        assert_eq!((both.at_once(), both.exceeded_by()), (2, Some("device log/disk1 is lost")));
        let mut whole = mirrored();
        whole.note(&lost("log"), Nanos::from_secs(1), 0);
        assert_eq!((whole.at_once(), whole.exceeded_by()), (2, Some("device log is lost")));
        // A device without copies, in the same design.
        let mut single = mirrored();
        single.note(&lost("data"), Nanos::from_secs(1), 0);
        assert_eq!(single.exceeded_by(), Some("device data is lost"));
    }

    #[test]
    fn rot_is_survived_with_a_second_copy_and_checksums() {
        let rot = FaultAction::BitRot { volume: "data".to_string(), bits: 1 };
        let (mut alone, mut mirrored) = (promise(0), promise(1));
        alone.note(&rot, Nanos::ZERO, 0);
        mirrored.note(&rot, Nanos::ZERO, 0);
        assert!(alone.exceeded_by().is_some() && mirrored.exceeded_by().is_none());
        // The good copy of a damaged block goes with its host, however much later.
        mirrored.note(&lost("a"), Nanos::from_secs(900), 0);
        assert_eq!((mirrored.at_once(), mirrored.exceeded_by()), (2, Some("host a is lost")));
    }
}
