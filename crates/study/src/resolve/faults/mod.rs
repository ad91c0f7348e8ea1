//! Scheduled faults: which keys belong to which kind, when they happen, and whether every design concerned has what they name.
//!
//! In reading order: one fault with its keys and its moment (here), the designs it names and what they are made of
//! ([`targets`]), and the whole schedule on trial ([`trial`]).

mod placed;
mod targets;
mod timeline;
mod trial;

use underlay_core::{Bytes, Nanos};
use underlay_model::DeviceProfile;

use self::placed::{Placed, place};
use super::chosen::Layer;
use super::cluster;
use super::moment::{self, MomentKeys};
use super::procedure_choice::ProcedureChoice;
use super::resolver::Resolver;
use crate::entry::{Entry, Section};
use crate::exact;
use crate::fault_plan::{FaultAction, FaultKind, FaultPlan, PolicyChange};
use crate::file;
use crate::limits::{TORN_KEEP, TORN_UNIT};
use crate::plan::{DesignPlan, Origin, Setting};
use crate::problem::position;
use crate::suggest::listed;

/// All faults that are in order, and do not contradict each other.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    designs: &[DesignPlan],
    procedure: &ProcedureChoice,
) -> Vec<FaultPlan> {
    let Entry::Given { value: sections, .. } = &resolver.file.fault else { return Vec::new() };
    // Of a block load they were refused.
    if resolver.is_block_load() {
        return Vec::new();
    }
    let mut placed = Vec::new();
    for section in sections.iter().filter(|section| !section.refused) {
        let found = fault(resolver, section, designs, procedure);
        placed.extend(found.map(|plan| Placed { plan, span: place(section) }));
    }
    if let Some(plan) = &procedure.plan {
        trial::check_overlaps(resolver, &placed, designs, plan);
        trial::refuse_failures_of_filled(resolver, &placed, designs);
        trial::try_faults(resolver, &placed, designs, plan);
        trial::doubt_promises(resolver, &placed, designs, plan);
    }
    // A fault of designs that the command line left out does not happen.
    placed.retain(|fault| !fault.plan.designs.is_empty());
    for (number, Placed { plan, .. }) in placed.iter_mut().enumerate() {
        if let FaultAction::DiskGroupAdded { group, .. } = &mut plan.action {
            group.name = format!("added-{}", number + 1);
        }
        resolver.provenance.push(Setting {
            path: format!("fault[{number}]"),
            value: written(plan),
            origin: Origin::File { line: plan.line },
        });
    }
    placed.into_iter().map(|placed| placed.plan).collect()
}

fn fault(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    designs: &[DesignPlan],
    procedure: &ProcedureChoice,
) -> Option<FaultPlan> {
    if section.kind.is_absent() {
        let example = "add for example kind = \"host-lost\", host = \"host-1\"";
        fault_lacks(resolver, section, "kind", example);
    }
    if section.at.is_absent() {
        fault_lacks(resolver, section, "at", "add for example at = \"20s\"");
    }
    let kind = section.kind.get().copied();
    if let Some(kind) = kind {
        check_keys(resolver, section, kind);
    }
    let keys = MomentKeys {
        what: "a fault",
        at: &section.at,
        phase: &section.phase,
        users: &section.users,
    };
    let moment = moment::resolve(resolver, &keys, procedure);
    let action = kind.and_then(|kind| action(resolver, section, kind));
    let concerned = targets::concerned(resolver, section, kind, designs);
    match (&action, kind) {
        (Some(action), _) => targets::check_targets(resolver, section, action, &concerned, designs),
        (None, Some(kind)) => {
            targets::check_names(resolver, section, keys_of(kind), &concerned, designs)
        }
        (None, None) => {}
    }
    let (phase, users) = moment?;
    Some(FaultPlan {
        action: action?,
        at: *section.at.get()?,
        phase,
        users,
        lasts: section.lasts.get().copied(),
        designs: concerned,
        line: position(resolver.text, place(section).start).0,
    })
}

fn fault_lacks(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    key: &str,
    remedy: &str,
) {
    resolver.report.add(
        Some(place(section)),
        "missing-key",
        format!("the fault does not say its `{key}`"),
        format!("`{key}` is missing"),
        remedy,
    );
}

/// Keys that say nothing about a fault of this kind.
fn check_keys(resolver: &mut Resolver<'_>, section: &Section<file::Fault>, kind: FaultKind) {
    let keys = keys_of(kind);
    let given = [
        ("lasts", section.lasts.span()),
        ("host", section.host.span()),
        ("hosts", section.hosts.span()),
        ("device", section.device.span()),
        ("volume", section.volume.span()),
        ("factor", section.factor.span()),
        ("probability", section.probability.span()),
        ("bits", section.bits.span()),
        ("keep", section.keep.span()),
        ("policy", section.policy.span.clone()),
        ("disk-group", section.disk_group.span.clone()),
        ("to", section.to.span()),
        ("profile", section.profile.span()),
    ];
    let allowed = || keys.iter().copied().chain(kind.can_last().then_some("lasts"));
    for (key, span) in given {
        let Some(span) = span.filter(|_| allowed().all(|known| known != key)) else { continue };
        let (label, help) = match key {
            "lasts" => (
                "it is a single act, and nothing mends it".to_string(),
                "remove `lasts`".to_string(),
            ),
            _ => (
                format!("not a key of {kind}"),
                match allowed().count() {
                    0 => format!("remove `{key}`"),
                    _ => format!("{kind} takes {}", listed(allowed())),
                },
            ),
        };
        resolver.report.at(
            &span,
            "conflict",
            format!("`{key}` does not belong to a fault of kind {kind}"),
            label,
            help,
        );
    }
    if let Entry::Given { value: Nanos::ZERO, span } = &section.lasts {
        resolver.report.at(
            span,
            "out-of-range",
            "`lasts` is zero",
            "the fault would be mended before it is seen",
            "write for example lasts = \"30s\", or leave it out",
        );
    }
}

/// What happens, once everything it takes is there.
fn action(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
    kind: FaultKind,
) -> Option<FaultAction> {
    for key in keys_of(kind).iter().filter(|key| is_required(kind, key)) {
        let absent = match *key {
            "host" => section.host.is_absent(),
            "hosts" => section.hosts.is_absent(),
            "device" => section.device.is_absent(),
            "volume" => section.volume.is_absent(),
            "factor" => section.factor.is_absent(),
            "probability" => section.probability.is_absent(),
            "policy" => !section.policy.is_present(),
            "to" => section.to.is_absent(),
            "profile" => section.profile.is_absent(),
            _ => !section.disk_group.is_present(),
        };
        if absent {
            resolver.report.add(
                Some(place(section)),
                "missing-key",
                format!("a fault of kind {kind} does not say its `{key}`"),
                format!("`{key}` is missing"),
                format!("add for example {}", example(key)),
            );
        }
    }
    let text = |entry: &Entry<String>| entry.get().cloned();
    Some(match kind {
        FaultKind::DeviceSlow => FaultAction::DeviceSlow {
            device: text(&section.device)?,
            factor: *section.factor.get()?,
        },
        FaultKind::DeviceStuck => FaultAction::DeviceStuck { device: text(&section.device)? },
        FaultKind::DeviceErroring => FaultAction::DeviceErroring {
            device: text(&section.device)?,
            probability: *section.probability.get()?,
        },
        FaultKind::DeviceLost => FaultAction::DeviceLost { device: text(&section.device)? },
        FaultKind::HostLost => FaultAction::HostLost { host: text(&section.host)? },
        FaultKind::HostFrozen => FaultAction::HostFrozen { host: text(&section.host)? },
        FaultKind::HostsPartitioned => {
            let hosts = section.hosts.get()?.clone();
            if hosts.is_empty() {
                resolver.report.add(
                    section.hosts.span(),
                    "empty",
                    "the partition has no hosts",
                    "an empty list",
                    "name the hosts that reach only each other",
                );
                return None;
            }
            FaultAction::HostsPartitioned { hosts }
        }
        FaultKind::BitRot => FaultAction::BitRot {
            volume: text(&section.volume)?,
            // The range was checked on reading.
            bits: match &section.bits {
                Entry::Refused => return None,
                bits => bits.get().copied().unwrap_or(1) as u32,
            },
        },
        FaultKind::TornWrite => FaultAction::TornWrite {
            volume: text(&section.volume)?,
            keep: keep(resolver, section)?,
        },
        FaultKind::PowerCut => FaultAction::PowerCut,
        FaultKind::PolicyChange => FaultAction::PolicyChange {
            volume: match &section.volume {
                Entry::Refused => return None,
                volume => text(volume),
            },
            change: policy_change(resolver, section)?,
        },
        FaultKind::DiskGroupAdded => FaultAction::DiskGroupAdded {
            host: text(&section.host)?,
            group: Box::new(added_group(resolver, section)?),
        },
        FaultKind::DeviceAdded => FaultAction::DeviceAdded {
            group: text(&section.to)?,
            profile: Box::new(added_device(resolver, section)?),
        },
    })
}

fn keep(resolver: &mut Resolver<'_>, section: &Section<file::Fault>) -> Option<Bytes> {
    let (keep, span) = match &section.keep {
        Entry::Refused => return None,
        Entry::Absent => return Some(TORN_UNIT),
        Entry::Given { value, span } => (*value, span),
    };
    if TORN_KEEP.contains(&keep.0) && keep.0.is_multiple_of(TORN_UNIT.0) {
        return Some(keep);
    }
    resolver.report.at(
        span,
        "out-of-range",
        "`keep` is not what a torn write can store",
        format!("{keep} is not a multiple of 512 bytes below 64 KiB"),
        "write for example keep = \"512B\"",
    );
    None
}

fn policy_change(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
) -> Option<PolicyChange> {
    let policy = &section.policy;
    if !policy.is_present() || policy.refused {
        return None;
    }
    let k = u64::from(resolver.scale.divisor);
    // The ranges were checked on reading, so all of these are small.
    let small = |entry: &Entry<u64>| entry.get().map(|value| *value as u8);
    let change = PolicyChange {
        failures_to_tolerate: small(&policy.failures_to_tolerate),
        method: policy.method.get().copied(),
        stripe_width: small(&policy.stripe_width),
        iops_limit: policy.iops_limit.get().map(|limit| (limit / k).max(1) as u32),
        checksum: policy.checksum.get().copied(),
        space_reservation_percent: small(&policy.space_reservation_percent),
    };
    if change == PolicyChange::default() {
        resolver.report.add(
            policy.span.clone(),
            "empty",
            "the policy change changes nothing",
            "no key of a policy",
            "add for example failures-to-tolerate = 2",
        );
        return None;
    }
    Some(change)
}

fn added_device(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
) -> Option<DeviceProfile> {
    let mut rows = Vec::new();
    let device = section.profile.get()?;
    let added = cluster::group_device(resolver, device, Layer::File, "fault.profile", &mut rows);
    resolver.provenance.extend(rows);
    added
}

fn added_group(
    resolver: &mut Resolver<'_>,
    section: &Section<file::Fault>,
) -> Option<underlay_model::DiskGroupSpec> {
    let group = &section.disk_group;
    if !group.is_present() {
        return None;
    }
    let mut rows = Vec::new();
    let groups = cluster::equal_groups(resolver, group, Layer::File, "fault.disk-group", &mut rows);
    resolver.provenance.extend(rows);
    let mut groups = groups?;
    if groups.len() != 1 {
        resolver.report.add(
            group.count.span(),
            "conflict",
            "one fault adds one disk group",
            format!("{} disk groups", groups.len()),
            "write a [[fault]] for each",
        );
        return None;
    }
    groups.pop()
}

/// What the keys of a kind are, beside `at`, `phase`, `users`, `designs` and `lasts`.
fn keys_of(kind: FaultKind) -> &'static [&'static str] {
    match kind {
        FaultKind::DeviceSlow => &["device", "factor"],
        FaultKind::DeviceErroring => &["device", "probability"],
        FaultKind::DeviceStuck | FaultKind::DeviceLost => &["device"],
        FaultKind::HostLost | FaultKind::HostFrozen => &["host"],
        FaultKind::HostsPartitioned => &["hosts"],
        FaultKind::BitRot => &["volume", "bits"],
        FaultKind::TornWrite => &["volume", "keep"],
        FaultKind::PowerCut => &[],
        FaultKind::PolicyChange => &["volume", "policy"],
        FaultKind::DiskGroupAdded => &["host", "disk-group"],
        FaultKind::DeviceAdded => &["to", "profile"],
    }
}

fn is_required(kind: FaultKind, key: &str) -> bool {
    !matches!((kind, key), (FaultKind::PolicyChange, "volume") | (_, "bits" | "keep"))
}

fn example(key: &str) -> &'static str {
    match key {
        "host" => "host = \"host-1\"",
        "hosts" => "hosts = [\"host-1\", \"host-2\"]",
        "device" => "device = \"ssd\", or in a cluster device = \"host-1/group-1/disk0\"",
        "volume" => "volume = \"data\"",
        "factor" => "factor = 10.0",
        "probability" => "probability = 0.01",
        "policy" => "policy = { failures-to-tolerate = 2 }",
        "to" => "to = \"host-1/group-1\"",
        "profile" => "profile = \"p4500-2000\"",
        _ => "disk-group = { cache = \"p4800x-375\", capacity = [\"p4500-2000\"] }",
    }
}

/// A fault in one line, for the table of values.
fn written(plan: &FaultPlan) -> String {
    format!("{} {} at {}", plan.action.kind(), plan.action.target(), exact::time(plan.at))
}
