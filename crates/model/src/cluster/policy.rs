//! The storage policy of a volume: what it survives, how it is spread, what it may use.
//!
//! The rules are those of the hyper-converged system of the published studies (storage-policy rules of its
//! administration guide): failures to tolerate by mirroring or erasure coding, stripes per object, I/O limit on
//! normalised I/O, checksum, space reservation. Left out: flash read-cache reservation (hybrid only) and force
//! provisioning, which would make a volume that does not keep its promise.

use super::geometry::SetKind;
use std::fmt;
use underlay_core::words;

/// What a volume asks of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Failures of hosts, fault domains or devices that lose nothing. 0 to 2.
    pub failures_to_tolerate: u8,
    /// How that is reached.
    pub method: Method,
    /// Capacity devices over which each replica is spread. 1 to 12.
    pub stripe_width: u8,
    /// Largest rate of normalised I/Os (32 KiB units, rounded up) per second; none = unlimited.
    pub iops_limit: Option<u32>,
    /// Whether blocks carry a checksum that is verified on each read.
    pub checksum: Checksum,
    /// Share of the volume's size that is set aside at creation. 0 to 100.
    pub space_reservation_percent: u8,
}

words! {
    /// How failures are tolerated.
    pub enum Method: "method" {
        /// Copies: `failures + 1` replicas and `failures` witnesses.
        Mirror = "mirror",
        /// Parity: 3 + 1 for one failure (RAID-5), 4 + 2 for two (RAID-6).
        ErasureCoding = "erasure-coding",
    }
}

words! {
    /// Whether blocks carry a checksum.
    pub enum Checksum: "checksum" {
        /// CRC-32C per 4 KiB, verified on read, repaired from a replica or parity.
        On = "on",
        /// None: a corrupted block is returned as it is.
        Off = "off",
    }
}

/// Why a policy makes no sense on any cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// More failures than supported.
    #[error("failures-to-tolerate is {0}; use 0 to 2")]
    Failures(u8),
    /// Erasure coding without a failure to tolerate.
    #[error("erasure coding tolerates 1 or 2 failures; use mirroring for 0")]
    ParityOfNothing,
    /// Stripe width out of range.
    #[error("stripe-width is {0}; use 1 to 12")]
    StripeWidth(u8),
    /// A limit nothing passes.
    #[error("an iops-limit of 0 allows no I/O; omit it or use 1 or more")]
    LimitZero,
    /// More than everything.
    #[error("space-reservation-percent is {0}; use 0 to 100")]
    Reservation(u8),
}

impl Policy {
    /// One failure tolerated by mirroring, one stripe, thin, checksums on, no limit.
    pub const DEFAULT: Policy = Policy {
        failures_to_tolerate: 1,
        method: Method::Mirror,
        stripe_width: 1,
        iops_limit: None,
        checksum: Checksum::On,
        space_reservation_percent: 0,
    };

    /// Every rule the policy violates; empty means usable.
    pub fn problems(&self) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        if self.failures_to_tolerate > 2 {
            problems.push(PolicyProblem::Failures(self.failures_to_tolerate));
        }
        if self.method == Method::ErasureCoding && self.failures_to_tolerate == 0 {
            problems.push(PolicyProblem::ParityOfNothing);
        }
        if !(1..=12).contains(&self.stripe_width) {
            problems.push(PolicyProblem::StripeWidth(self.stripe_width));
        }
        if self.iops_limit == Some(0) {
            problems.push(PolicyProblem::LimitZero);
        }
        if self.space_reservation_percent > 100 {
            problems.push(PolicyProblem::Reservation(self.space_reservation_percent));
        }
        problems
    }

    /// How one row of the object is protected.
    ///
    /// # Panics
    /// If the policy has [`Policy::problems`].
    pub fn set_kind(&self) -> SetKind {
        match (self.method, self.failures_to_tolerate) {
            (Method::Mirror, failures @ 0..=2) => SetKind::Mirror { copies: failures + 1 },
            (Method::ErasureCoding, 1) => SetKind::Parity { data: 3, parity: 1 },
            (Method::ErasureCoding, 2) => SetKind::Parity { data: 4, parity: 2 },
            _ => panic!("the policy was checked"),
        }
    }

    /// Witnesses: components without data that only vote.
    pub const fn witnesses(&self) -> u8 {
        match self.method {
            Method::Mirror => self.failures_to_tolerate,
            Method::ErasureCoding => 0,
        }
    }

    /// Fault domains that must exist: 2n + 1 for mirroring, 4 for RAID-5, 6 for RAID-6.
    pub fn fault_domains_needed(&self) -> usize {
        usize::from(self.set_kind().members()) + usize::from(self.witnesses())
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.method, self.failures_to_tolerate) {
            (Method::Mirror, 0) => f.write_str("no redundancy"),
            (Method::Mirror, 1) => f.write_str("RAID-1"),
            (Method::Mirror, failures) => write!(f, "RAID-1 with {failures} failures to tolerate"),
            (Method::ErasureCoding, 1) => f.write_str("RAID-5"),
            (Method::ErasureCoding, _) => f.write_str("RAID-6"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Method, Policy, PolicyProblem};

    #[test]
    fn fault_domains_follow_the_published_table() {
        let needed = |failures_to_tolerate, method| {
            Policy { failures_to_tolerate, method, ..Policy::DEFAULT }.fault_domains_needed()
        };
        assert_eq!(needed(0, Method::Mirror), 1);
        assert_eq!(needed(1, Method::Mirror), 3);
        assert_eq!(needed(2, Method::Mirror), 5);
        assert_eq!(needed(1, Method::ErasureCoding), 4);
        assert_eq!(needed(2, Method::ErasureCoding), 6);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let policy = Policy {
            failures_to_tolerate: 3,
            method: Method::Mirror,
            stripe_width: 13,
            iops_limit: Some(0),
            space_reservation_percent: 101,
            ..Policy::DEFAULT
        };
        assert_eq!(
            policy.problems(),
            [
                PolicyProblem::Failures(3),
                PolicyProblem::StripeWidth(13),
                PolicyProblem::LimitZero,
                PolicyProblem::Reservation(101),
            ]
        );
    }
}
