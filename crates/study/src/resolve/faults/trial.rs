//! The whole schedule on trial: faults that get in each other's way, changes that the model refuses, and promises that
//! the schedule exceeds.

use underlay_core::{Nanos, RootSeed};
use underlay_model::cluster::{Cluster, DeviceId, Fault, HostId, ReturnedContent};

use super::placed::Placed;
use super::targets::is_known;
use super::timeline::{Window, window};
use crate::fault_plan::{FaultAction, FaultPlan};
use crate::finding::Severity;
use crate::plan::{ClusterPlan, DatastoreKind, DesignPlan, ProcedurePlan};
use crate::problem::position;
use crate::resolve::resolver::Resolver;

/// Two faults of one part at the same time could not be told apart, nor mended one by one.
pub(super) fn check_overlaps(
    resolver: &mut Resolver<'_>,
    faults: &[Placed],
    designs: &[DesignPlan],
    procedure: &ProcedurePlan,
) {
    for (number, later) in faults.iter().enumerate() {
        for earlier in &faults[..number] {
            let (first, second) =
                (window(&earlier.plan, procedure), window(&later.plan, procedure));
            let shared =
                later.plan.designs.iter().find(|design| earlier.plan.designs.contains(design));
            let Some(design) = shared else { continue };
            if !first.overlaps(second) || !collide(&earlier.plan, &later.plan) {
                continue;
            }
            let line = position(resolver.text, earlier.span.start).0;
            resolver.report.at(
                &later.span,
                "conflict",
                format!(
                    "{} while {} in design `{}`",
                    later.plan.action.described(),
                    earlier.plan.action.described(),
                    designs[*design].name
                ),
                format!("the fault in line {line} is still in force"),
                "change `at` or `lasts`, so that one ends before the other begins",
            );
        }
    }
}

/// Other data has one copy: a device or a host that fails would take some of it away for good, and a power cut what was
/// just moved.
pub(super) fn refuse_failures_of_filled(
    resolver: &mut Resolver<'_>,
    faults: &[Placed],
    designs: &[DesignPlan],
) {
    let loses = |action: &FaultAction| action.is_failure() || *action == FaultAction::PowerCut;
    for fault in faults.iter().filter(|fault| loses(&fault.plan.action)) {
        let is_filled = |index: &&usize| {
            let kind = &designs[**index].kind;
            matches!(kind, DatastoreKind::Cluster(plan) if plan.fill_percent.is_some())
        };
        let Some(design) = fault.plan.designs.iter().find(is_filled) else { continue };
        resolver.report.at(
            &fault.span,
            "conflict",
            format!(
                "{} in design `{}`, which begins filled with other data",
                fault.plan.action.described(),
                designs[*design].name
            ),
            "other data has one copy, and may be lost",
            "remove `start.fill-percent`, or choose a fault that loses nothing",
        );
    }
}

/// Carries the schedule out on the model, without load, and reports what it refuses.
pub(super) fn try_faults(
    resolver: &mut Resolver<'_>,
    faults: &[Placed],
    designs: &[DesignPlan],
    procedure: &ProcedurePlan,
) {
    if !resolver.report.is_empty() {
        return;
    }
    for (index, design) in designs.iter().enumerate() {
        let DatastoreKind::Cluster(plan) = &design.kind else { continue };
        let concerned: Vec<&Placed> =
            faults.iter().filter(|fault| fault.plan.designs.contains(&index)).collect();
        if concerned.is_empty() || !concerned.iter().all(|fault| is_known(fault, design)) {
            continue;
        }
        for (fault, refusal) in refusals(plan, design, &concerned, procedure) {
            resolver.report.at(
                &fault.span,
                "cannot-happen",
                format!(
                    "in design `{}` it is not possible that {}",
                    design.name,
                    fault.plan.action.described()
                ),
                refusal,
                "change the fault, or name the designs it happens to with `designs`",
            );
        }
    }
}

/// Says where more fails at once than the policy promises to survive.
pub(super) fn doubt_promises(
    resolver: &mut Resolver<'_>,
    faults: &[Placed],
    designs: &[DesignPlan],
    procedure: &ProcedurePlan,
) {
    if !resolver.report.is_empty() {
        return;
    }
    for (index, design) in designs.iter().enumerate() {
        let of_design: Vec<&Placed> =
            faults.iter().filter(|fault| fault.plan.designs.contains(&index)).collect();
        for fault in &of_design {
            let mirrored = copies(&design.kind, &fault.plan.action);
            let (tolerated, whose) = match (&design.kind, mirrored) {
                (DatastoreKind::Cluster(plan), _) => (
                    usize::from(plan.policy.failures_to_tolerate),
                    "as many as its policy tolerates",
                ),
                (_, Some(copies)) => (copies - 1, "as many as its mirror tolerates"),
                _ => (0, "none, which is what single devices tolerate"),
            };
            let at_once = match mirrored {
                Some(copies) => failed_copies(&of_design, fault, procedure, copies),
                None => failures_at(&of_design, fault, procedure),
            };
            if at_once > tolerated {
                resolver.finding(
                    Severity::Note,
                    "beyond-the-promise",
                    format!(
                        "when {} in design `{}`, failures in force are {at_once}, and not {whose}: unless \
                         what failed before was rebuilt by then, the database may go down or lose data, \
                         which the run will say",
                        fault.plan.action.described(),
                        design.name
                    ),
                    "intended? Otherwise let faults end earlier, or raise `failures-to-tolerate`",
                    Some(fault.plan.line),
                );
            }
        }
    }
}

/// Whether mending one would mend, or be undone by, the other.
fn collide(a: &FaultPlan, b: &FaultPlan) -> bool {
    let power = |fault: &FaultPlan| fault.action == FaultAction::PowerCut;
    if power(a) || power(b) {
        return true;
    }
    let (of_a, of_b) = (parts(&a.action), parts(&b.action));
    // A mirrored device is also its copies; hosts are not their devices.
    let holds = |device: &str, copy: &str| {
        copy.strip_prefix(device).is_some_and(|copy| copy.starts_with("/disk"))
    };
    of_a.iter().any(|a| of_b.iter().any(|b| a == b || holds(a, b) || holds(b, a)))
}

/// Hosts and devices that the fault takes hold of.
fn parts(action: &FaultAction) -> Vec<&str> {
    match action {
        FaultAction::DeviceSlow { device, .. }
        | FaultAction::DeviceStuck { device }
        | FaultAction::DeviceErroring { device, .. }
        | FaultAction::DeviceLost { device } => vec![device],
        FaultAction::HostLost { host } | FaultAction::HostFrozen { host } => vec![host],
        FaultAction::HostsPartitioned { hosts } => hosts.iter().map(String::as_str).collect(),
        FaultAction::BitRot { .. }
        | FaultAction::TornWrite { .. }
        | FaultAction::PowerCut
        | FaultAction::PolicyChange { .. }
        | FaultAction::DiskGroupAdded { .. }
        | FaultAction::DeviceAdded { .. } => Vec::new(),
    }
}

/// Hosts that fail, or hold what fails, when the fault happens: those in force together count once per host.
fn failures_at(faults: &[&Placed], at: &Placed, procedure: &ProcedurePlan) -> usize {
    let begin = window(&at.plan, procedure).begin;
    if failed_hosts(&at.plan.action).is_empty() {
        return 0;
    }
    let mut hosts: Vec<&str> = faults
        .iter()
        .filter(|fault| {
            let Window { begin: from, end } = window(&fault.plan, procedure);
            from <= begin && begin < end
        })
        .flat_map(|fault| failed_hosts(&fault.plan.action))
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.len()
}

/// How many copies the device of a fault has, where these are more than one.
fn copies(kind: &DatastoreKind, action: &FaultAction) -> Option<usize> {
    let DatastoreKind::Emulated { devices, .. } = kind else { return None };
    let target = *failed_hosts(action).first()?;
    let (_, profile) = devices.iter().find(|(name, _)| name == target)?;
    (profile.copies > 1).then_some(profile.copies as usize)
}

/// Copies of a mirrored device that do not serve when the fault happens to it.
fn failed_copies(
    faults: &[&Placed],
    at: &Placed,
    procedure: &ProcedurePlan,
    copies: usize,
) -> usize {
    let begin = window(&at.plan, procedure).begin;
    let device = failed_hosts(&at.plan.action);
    let mut failed: Vec<&str> = faults
        .iter()
        .filter(|fault| {
            let Window { begin: from, end } = window(&fault.plan, procedure);
            from <= begin && begin < end && failed_hosts(&fault.plan.action) == device
        })
        .flat_map(|fault| parts(&fault.plan.action))
        .collect();
    failed.sort_unstable();
    failed.dedup();
    match failed.iter().any(|part| device.contains(part)) {
        // The device itself, with all its copies.
        true => copies,
        false => failed.len(),
    }
}

fn failed_hosts(action: &FaultAction) -> Vec<&str> {
    if action.is_failure() {
        parts(action).into_iter().map(|part| part.split('/').next().unwrap_or(part)).collect()
    } else {
        Vec::new()
    }
}

enum Act<'a> {
    Happen(&'a Placed),
    Mend(&'a Placed),
}

fn refusals<'a>(
    plan: &ClusterPlan,
    design: &DesignPlan,
    faults: &[&'a Placed],
    procedure: &ProcedurePlan,
) -> Vec<(&'a Placed, String)> {
    let Ok(mut cluster) = Cluster::new(plan.spec.clone(), RootSeed(0)) else { return Vec::new() };
    for volume in &design.volumes {
        let placed = cluster.create_volume(Nanos::ZERO, &volume.name, volume.capacity, plan.policy);
        if placed.is_err() {
            // Reported where the volumes were placed.
            return Vec::new();
        }
    }
    let mut acts: Vec<(Nanos, Act<'_>)> = Vec::new();
    for fault in faults {
        let Window { begin, end } = window(&fault.plan, procedure);
        acts.push((begin, Act::Happen(fault)));
        if fault.plan.action.kind().can_last() {
            acts.push((end, Act::Mend(fault)));
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    let mut refused = Vec::new();
    for (at, act) in acts {
        let (fault, outcome) = match act {
            Act::Happen(fault) => (fault, happen(&mut cluster, at, plan, &fault.plan.action)),
            Act::Mend(fault) => (fault, mend(&mut cluster, at, &fault.plan.action)),
        };
        if let Err(reason) = outcome {
            refused.push((fault, reason));
        }
    }
    refused
}

fn happen(
    cluster: &mut Cluster,
    now: Nanos,
    plan: &ClusterPlan,
    action: &FaultAction,
) -> Result<(), String> {
    let fault = match action {
        FaultAction::DeviceSlow { device, factor } => {
            Fault::DeviceSlow { device: find_device(cluster, device)?, factor: *factor }
        }
        FaultAction::DeviceStuck { device } => {
            Fault::DeviceStuck { device: find_device(cluster, device)? }
        }
        FaultAction::DeviceErroring { device, probability } => Fault::DeviceErroring {
            device: find_device(cluster, device)?,
            probability: *probability,
        },
        FaultAction::DeviceLost { device } => {
            Fault::DeviceLost { device: find_device(cluster, device)? }
        }
        FaultAction::HostLost { host } => Fault::HostLost { host: find_host(cluster, host)? },
        FaultAction::HostFrozen { host } => Fault::HostFrozen { host: find_host(cluster, host)? },
        FaultAction::HostsPartitioned { hosts } => {
            let hosts: Result<Vec<HostId>, String> =
                hosts.iter().map(|host| find_host(cluster, host)).collect();
            Fault::HostsPartitioned { hosts: hosts? }
        }
        FaultAction::PowerCut => Fault::PowerCut,
        // Nothing is stored yet, so that there is nothing to refuse.
        FaultAction::BitRot { .. } | FaultAction::TornWrite { .. } => return Ok(()),
        FaultAction::PolicyChange { volume, change } => {
            let volumes: Vec<_> = match volume {
                Some(name) => cluster.find_volume(name).into_iter().collect(),
                None => cluster.volumes().collect(),
            };
            let policy = change.of(&plan.policy);
            return volumes
                .into_iter()
                .try_for_each(|volume| cluster.set_policy(now, volume, policy))
                .map_err(|refusal| refusal.to_string());
        }
        FaultAction::DeviceAdded { group, profile } => {
            let found = cluster.find_group(group);
            let found = found.ok_or_else(|| format!("there is no disk group `{group}`"))?;
            return cluster.add_device(now, found, profile).map(|_| ()).map_err(|problems| {
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            });
        }
        FaultAction::DiskGroupAdded { host, group } => {
            let host = find_host(cluster, host)?;
            let added = cluster.add_group(now, host, &plan.joining(group));
            return added.map(|_| ()).map_err(|problems| {
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            });
        }
    };
    cluster.inject(now, fault).map_err(|problem| problem.to_string())
}

fn mend(cluster: &mut Cluster, now: Nanos, action: &FaultAction) -> Result<(), String> {
    let faults = match action {
        FaultAction::DeviceSlow { device, .. }
        | FaultAction::DeviceStuck { device }
        | FaultAction::DeviceErroring { device, .. } => {
            let device = find_device(cluster, device)?;
            vec![Fault::DeviceReturned { device, content: ReturnedContent::Kept }]
        }
        FaultAction::DeviceLost { device } => {
            let device = find_device(cluster, device)?;
            vec![Fault::DeviceReturned { device, content: ReturnedContent::Blank }]
        }
        FaultAction::HostLost { host } | FaultAction::HostFrozen { host } => {
            vec![Fault::HostReturned { host: find_host(cluster, host)? }]
        }
        FaultAction::HostsPartitioned { hosts } => hosts
            .iter()
            .map(|host| Ok(Fault::HostReturned { host: find_host(cluster, host)? }))
            .collect::<Result<_, String>>()?,
        FaultAction::PowerCut => vec![Fault::PowerOn],
        FaultAction::BitRot { .. }
        | FaultAction::TornWrite { .. }
        | FaultAction::PolicyChange { .. }
        | FaultAction::DiskGroupAdded { .. }
        | FaultAction::DeviceAdded { .. } => Vec::new(),
    };
    faults
        .into_iter()
        .try_for_each(|fault| cluster.inject(now, fault))
        .map_err(|problem| problem.to_string())
}

fn find_host(cluster: &Cluster, name: &str) -> Result<HostId, String> {
    cluster.find_host(name).ok_or_else(|| format!("there is no host `{name}`"))
}

fn find_device(cluster: &Cluster, name: &str) -> Result<DeviceId, String> {
    cluster.find_device(name).ok_or_else(|| format!("there is no device `{name}`"))
}
