//! The designs that a fault names, and what they are made of.

use std::ops::Range;

use super::placed::{Placed, place};
use crate::entry::Section;
use crate::fault_plan::{FaultAction, FaultKind};
use crate::file;
use crate::plan::{DatastoreKind, DesignPlan};
use crate::resolve::moment;
use crate::resolve::resolver::Resolver;
use crate::suggest::{listed, nearest};

use underlay_model::cluster::ClusterSpec;
use underlay_model::device_names;

/// The designs that a fault happens to, of those that are carried out.
pub(super) fn concerned(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    kind: Option<FaultKind>,
    designs: &[DesignPlan],
) -> Vec<usize> {
    let found = moment::designs_named(resolver, "the fault", &section.designs, designs);
    let Some(kind) = kind else { return Vec::new() };
    for index in &found {
        check_fits(resolver, section, kind, &designs[*index]);
    }
    found
}

/// Whether such a thing can happen to that kind of datastore at all.
fn check_fits(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    kind: FaultKind,
    design: &DesignPlan,
) {
    let label = match &design.kind {
        DatastoreKind::Cluster(_) => return,
        DatastoreKind::Emulated { .. } if kind.fits_devices() => return,
        DatastoreKind::Emulated { .. } => "its devices are not a cluster",
        DatastoreKind::Path { .. } => "its storage is real, and Underlay breaks only its own",
    };
    let span = section.designs.span().or_else(|| section.kind.span());
    resolver.report.add(
        span.or_else(|| Some(place(section))),
        "conflict",
        format!("{kind} cannot happen to design `{}`", design.name),
        label,
        "name the designs that it happens to with `designs`",
    );
}

/// Whether every design has what the fault names.
pub(super) fn check_targets(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    action: &FaultAction,
    concerned: &[usize],
    designs: &[DesignPlan],
) {
    for design in concerned.iter().map(|index| &designs[*index]) {
        match action {
            FaultAction::DeviceSlow { device, .. }
            | FaultAction::DeviceStuck { device }
            | FaultAction::DeviceErroring { device, .. }
            | FaultAction::DeviceLost { device } => {
                let known = devices_of(&design.kind);
                check_known(resolver, device, &known, section.device.span(), "device", design);
            }
            FaultAction::HostLost { host }
            | FaultAction::HostFrozen { host }
            | FaultAction::DiskGroupAdded { host, .. } => {
                let known = hosts_of(&design.kind);
                check_known(resolver, host, &known, section.host.span(), "host", design);
            }
            FaultAction::DeviceAdded { group, .. } => {
                let known = groups_of(&design.kind);
                check_known(resolver, group, &known, section.to.span(), "disk group", design);
            }
            FaultAction::HostsPartitioned { hosts } => {
                let known = hosts_of(&design.kind);
                for host in hosts {
                    check_known(resolver, host, &known, section.hosts.span(), "host", design);
                }
                if !known.is_empty() && known.iter().all(|host| hosts.contains(host)) {
                    resolver.report.add(
                        section.hosts.span(),
                        "conflict",
                        format!("the partition has all hosts of design `{}`", design.name),
                        "no host is left on the other side",
                        "leave some hosts out",
                    );
                }
            }
            FaultAction::BitRot { volume, .. }
            | FaultAction::TornWrite { volume, .. }
            | FaultAction::PolicyChange { volume: Some(volume), .. } => {
                let known: Vec<String> =
                    design.volumes.iter().map(|volume| volume.name.clone()).collect();
                check_known(resolver, volume, &known, section.volume.span(), "volume", design);
            }
            FaultAction::PowerCut | FaultAction::PolicyChange { volume: None, .. } => {}
        }
    }
}

/// The same of a fault that is wrong in something else: what it names is there or is not all the same.
pub(super) fn check_names(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    keys: &[&str],
    concerned: &[usize],
    designs: &[DesignPlan],
) {
    for design in concerned.iter().map(|index| &designs[*index]) {
        let volumes = design.volumes.iter().map(|volume| volume.name.clone()).collect();
        for (key, entry, known) in [
            ("device", &section.device, devices_of(&design.kind)),
            ("host", &section.host, hosts_of(&design.kind)),
            ("volume", &section.volume, volumes),
            ("to", &section.to, groups_of(&design.kind)),
        ] {
            if let Some(name) = entry.get().filter(|_| keys.contains(&key)) {
                let what = if key == "to" { "disk group" } else { key };
                check_known(resolver, name, &known, entry.span(), what, design);
            }
        }
    }
}

fn check_known(
    resolver: &mut Resolver<'_>,
    name: &str,
    known: &[String],
    span: Option<Range<usize>>,
    what: &str,
    design: &DesignPlan,
) {
    // A design without any was refused as a whole.
    if known.is_empty() || known.iter().any(|known| known == name) {
        return;
    }
    let words = || known.iter().map(String::as_str);
    let label = match nearest(name, words()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("no {what} of that design has this name"),
    };
    resolver.report.add(
        span,
        "unknown-name",
        format!("design `{}` has no {what} `{name}`", design.name),
        label,
        format!("use one of {}", listed(words())),
    );
}

/// Whether a design has everything that its faults name: if not, that was reported.
pub(super) fn is_known(fault: &Placed, design: &DesignPlan) -> bool {
    let has = |known: Vec<String>, name: &String| known.contains(name);
    match &fault.plan.action {
        FaultAction::DeviceSlow { device, .. }
        | FaultAction::DeviceStuck { device }
        | FaultAction::DeviceErroring { device, .. }
        | FaultAction::DeviceLost { device } => has(devices_of(&design.kind), device),
        FaultAction::HostLost { host }
        | FaultAction::HostFrozen { host }
        | FaultAction::DiskGroupAdded { host, .. } => has(hosts_of(&design.kind), host),
        FaultAction::DeviceAdded { group, .. } => has(groups_of(&design.kind), group),
        FaultAction::HostsPartitioned { hosts } => {
            hosts.iter().all(|host| has(hosts_of(&design.kind), host))
        }
        FaultAction::BitRot { volume, .. }
        | FaultAction::TornWrite { volume, .. }
        | FaultAction::PolicyChange { volume: Some(volume), .. } => {
            design.volumes.iter().any(|known| known.name == *volume)
        }
        FaultAction::PowerCut | FaultAction::PolicyChange { volume: None, .. } => true,
    }
}

fn hosts_of(kind: &DatastoreKind) -> Vec<String> {
    match kind {
        DatastoreKind::Cluster(plan) => {
            plan.spec.hosts.iter().map(|host| host.name.clone()).collect()
        }
        DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => Vec::new(),
    }
}

/// As the model names them.
fn groups_of(kind: &DatastoreKind) -> Vec<String> {
    let DatastoreKind::Cluster(plan) = kind else { return Vec::new() };
    let hosts = plan.spec.hosts.iter();
    hosts
        .flat_map(|host| host.groups.iter().map(move |group| (host, group)))
        .map(|(host, group)| format!("{}/{}", host.name, group.name))
        .collect()
}

fn devices_of(kind: &DatastoreKind) -> Vec<String> {
    match kind {
        DatastoreKind::Cluster(plan) => cluster_devices(&plan.spec),
        DatastoreKind::Emulated { devices, .. } => {
            devices.iter().flat_map(|(name, profile)| device_names(name, profile)).collect()
        }
        DatastoreKind::Path { .. } => Vec::new(),
    }
}

/// As the model names them.
fn cluster_devices(spec: &ClusterSpec) -> Vec<String> {
    let groups =
        spec.hosts.iter().flat_map(|host| host.groups.iter().map(move |group| (host, group)));
    groups
        .flat_map(|(host, group)| {
            let prefix = format!("{}/{}", host.name, group.name);
            let disks = (0..group.capacity.len()).map(|disk| format!("disk{disk}"));
            std::iter::once("cache".to_string())
                .chain(disks)
                .map(move |device| format!("{prefix}/{device}"))
        })
        .collect()
}
