//! A design of a plan as JSON.

use serde_json::{Value, json};
use underlay_model::cluster::{ClusterSpec, HostSpec};
use underlay_model::{DeviceProfile, DiskGroupSpec};

use crate::json_value::ToJson;
use crate::plan::{ClientPlan, ClusterPlan, DatastoreKind, DesignPlan, HostCompute, VolumePlan};
use crate::profile_text::profile_toml;
use underlay_core::Words;

use super::engine::engine;
use super::values::values_of;

/// A design; `has_server` = its engine is started.
pub(super) fn design(design: &DesignPlan, has_server: bool) -> Value {
    let mut detail = json!({
        "name": design.name,
        "title": design.title,
        "description": design.description,
        "source": design.source,
        "based_on": design.based_on,
        "evidence": design.evidence.as_str(),
        "datastore": datastore(&design.kind),
        "volumes": design.volumes.iter().map(volume).collect::<Vec<_>>(),
        "engine": has_server.then(|| engine(&design.engine)),
        "engine_overrides": design.engine_overrides,
    });
    if let DatastoreKind::Cluster(cluster) = &design.kind {
        let name = |host: &u32| cluster.spec.hosts[*host as usize].name.as_str();
        detail["volume_hosts"] = design.volume_hosts.iter().map(name).collect();
    }
    if design.client != ClientPlan::default() {
        detail["client"] = design.client.to_json();
    }
    detail
}

pub(super) fn datastore(kind: &DatastoreKind) -> Value {
    match kind {
        DatastoreKind::Path { directory } => json!({ "path": { "directory": directory } }),
        DatastoreKind::Emulated { devices, link, durability, backing } => {
            let mut emulated = json!({
                "devices": devices.iter().map(device).collect::<Vec<_>>(),
                "durability": durability.as_str(),
                "backing": backing,
            });
            if let Some(link) = link {
                emulated["link"] = json!({
                    "bytes_per_second": link.bytes_per_second,
                    "latency_ns": link.latency.0,
                    "divisor": link.divisor,
                });
            }
            json!({ "emulated": emulated })
        }
        DatastoreKind::Cluster(plan) => json!({ "cluster": cluster(plan) }),
    }
}

fn device((name, profile): &(String, DeviceProfile)) -> Value {
    let mut device = json!({ "name": name, "profile": values_of(&profile_toml(profile)) });
    if profile.copies > 1 {
        device["copies"] = profile.copies.into();
    }
    device
}

pub(super) fn cluster(plan: &ClusterPlan) -> Value {
    let group = |group: &DiskGroupSpec| {
        let capacity = group.capacity.iter().map(|profile| values_of(&profile_toml(profile)));
        json!({
            "name": group.name,
            "cache": values_of(&profile_toml(&group.cache)),
            "capacity": capacity.collect::<Vec<_>>(),
            "write_buffer_bytes": group.write_buffer.usable.0,
        })
    };
    let host = |host: &HostSpec| {
        json!({
            "name": host.name,
            "fault_domain": host.fault_domain,
            "disk_groups": host.groups.iter().map(group).collect::<Vec<_>>(),
        })
    };
    let ClusterSpec { hosts, network, settings } = &plan.spec;
    let policy = &plan.policy;
    let mut cluster = json!({
        "hosts": hosts.iter().map(host).collect::<Vec<_>>(),
        "network": {
            "latency_ns": network.latency.0,
            "bytes_per_second": network.bytes_per_second,
            "divisor": network.divisor,
        },
        "policy": {
            "failures_to_tolerate": policy.failures_to_tolerate,
            "method": policy.method.word(),
            "stripe_width": policy.stripe_width,
            "iops_limit": policy.iops_limit,
            "checksum": policy.checksum.word(),
            "space_reservation_percent": policy.space_reservation_percent,
        },
        "repair_delay_ns": settings.repair_delay.0,
        "stack_ns_per_io": settings.stack.per_io.0,
        "owner_overhead_ns": settings.owner_overhead.0,
        "resync_slice_bytes": settings.resync_slice.0,
        "resync_window": settings.resync_window,
    });
    if let Some(percent) = plan.fill_percent {
        cluster["fill_percent"] = percent.into();
    }
    if !plan.compute.is_empty() {
        let compute = |it: &HostCompute| {
            let memory = it.memory.map(|memory| memory.0);
            let mut compute = json!({ "host": it.host, "cpus": it.cpus(), "memory_bytes": memory });
            if it.core_speed != 1.0 {
                compute["core_speed"] = it.core_speed.into();
            }
            if it.threads_per_core > 1 {
                compute["cores"] = it.cores.into();
                compute["threads_per_core"] = it.threads_per_core.into();
            }
            compute
        };
        cluster["compute"] = plan.compute.iter().map(compute).collect();
    }
    cluster
}

pub(super) fn volume(volume: &VolumePlan) -> Value {
    json!({
        "name": volume.name,
        "capacity_bytes": volume.capacity.0,
        "device": volume.device,
        "file_system": volume.file_system.as_str(),
    })
}
