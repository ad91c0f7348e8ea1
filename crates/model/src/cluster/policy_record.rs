//! A policy as it is stored, there and back.
//!
//! What is not here: whether a stored policy can be used (`state_checking`).

use super::policy::{Checksum, Method, Policy};
use super::state::PolicyRecord;

pub(super) fn policy_from(record: PolicyRecord) -> Policy {
    Policy {
        failures_to_tolerate: record.failures_to_tolerate,
        method: if record.erasure_coding { Method::ErasureCoding } else { Method::Mirror },
        stripe_width: record.stripe_width,
        iops_limit: record.iops_limit,
        checksum: if record.checksum { Checksum::On } else { Checksum::Off },
        space_reservation_percent: record.space_reservation_percent,
    }
}

pub(super) fn policy_record(policy: &Policy) -> PolicyRecord {
    PolicyRecord {
        failures_to_tolerate: policy.failures_to_tolerate,
        erasure_coding: policy.method == Method::ErasureCoding,
        stripe_width: policy.stripe_width,
        iops_limit: policy.iops_limit,
        checksum: policy.checksum == Checksum::On,
        space_reservation_percent: policy.space_reservation_percent,
    }
}
