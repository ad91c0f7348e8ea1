//! Scheduled faults as JSON.

use serde_json::{Map, Value, json};

use crate::fault_plan::{FaultAction, FaultPlan, PolicyChange};
use crate::plan::Plan;
use crate::profile_text::profile_toml;
use underlay_core::Words;

/// One fault; designs by name.
pub(super) fn fault(plan: &Plan, fault: &FaultPlan) -> Value {
    let designs: Vec<&str> =
        fault.designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    let mut value = json!({
        "kind": fault.action.kind().as_str(),
        "text": fault.action.described(),
        "at_ns": fault.at.0,
        "phase": fault.phase.as_str(),
        "users": fault.users,
        "lasts_ns": fault.lasts.map(|lasts| lasts.0),
        "designs": designs,
        "line": fault.line,
    });
    if let (Value::Object(value), Value::Object(detail)) = (&mut value, detail(&fault.action)) {
        value.extend(detail);
    }
    value
}

fn detail(action: &FaultAction) -> Value {
    match action {
        FaultAction::DeviceSlow { device, factor } => json!({ "device": device, "factor": factor }),
        FaultAction::DeviceStuck { device } | FaultAction::DeviceLost { device } => {
            json!({ "device": device })
        }
        FaultAction::DeviceErroring { device, probability } => {
            json!({ "device": device, "probability": probability })
        }
        FaultAction::HostLost { host } | FaultAction::HostFrozen { host } => {
            json!({ "host": host })
        }
        FaultAction::HostsPartitioned { hosts } => json!({ "hosts": hosts }),
        FaultAction::BitRot { volume, bits } => json!({ "volume": volume, "bits": bits }),
        FaultAction::TornWrite { volume, keep } => {
            json!({ "volume": volume, "keep_bytes": keep.0 })
        }
        FaultAction::PowerCut => Value::Object(Map::new()),
        FaultAction::PolicyChange { volume, change } => {
            json!({ "volume": volume, "policy": policy(change) })
        }
        FaultAction::DeviceAdded { group, profile } => {
            json!({ "group": group, "profile": super::values_of(&profile_toml(profile)) })
        }
        FaultAction::DiskGroupAdded { host, group } => {
            let profile = |profile| super::values_of(&profile_toml(profile));
            json!({
                "host": host,
                "disk_group": {
                    "name": group.name,
                    "cache": profile(&group.cache),
                    "capacity": group.capacity.iter().map(profile).collect::<Vec<_>>(),
                },
            })
        }
    }
}

fn policy(change: &PolicyChange) -> Value {
    json!({
        "failures_to_tolerate": change.failures_to_tolerate,
        "method": change.method.map(Words::word),
        "stripe_width": change.stripe_width,
        "iops_limit": change.iops_limit,
        "checksum": change.checksum.map(Words::word),
        "space_reservation_percent": change.space_reservation_percent,
    })
}
