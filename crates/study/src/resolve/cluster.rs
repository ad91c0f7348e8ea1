//! A hyper-converged cluster: hosts and disk groups written out, its policy checked, its volumes placed on trial.

use std::ops::Range;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy, Stack,
};
use underlay_model::scheduler::{Policy as ResyncPolicy, SchedulerSpec};
use underlay_model::{DeviceProfile, DiskGroupSpec, Reduction, ReductionCosts};

use super::chosen::{Chosen, Layer, Pick};
use super::design_draft::Draft;
use super::device_profile::known_profile;
use super::placement;
use super::resolver::Resolver;
use super::volume_choice::VolumeChoice;
use crate::entry::{Entry, Section};
use crate::exact;
use crate::file::cluster::{Cluster as ClusterFile, DiskGroup, Host};
use crate::file::group_device::GroupDevice;
use crate::plan::{
    ClusterPlan, DatastoreKind, HostCompute, Origin, ReductionKind, ResyncKind, Scale, Setting,
};
use crate::problem::position;
use underlay_core::Words;

/// Of the latency watermarks, which are settings of the releases that had them (recalled).
const WATERMARK_LOW: Nanos = Nanos::from_millis(5);
const WATERMARK_HIGH: Nanos = Nanos::from_millis(20);
const WATERMARK_INTERVAL: Nanos = Nanos::from_secs(1);
const WATERMARK_STEP: u64 = 10_000_000;
/// The limits of a rate that is not given.
const RESYNC_RATE: u64 = 50_000_000;

/// Decides what the cluster of a design is.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<DatastoreKind> {
    let path = format!("{path}.datastore.cluster");
    let file = &draft.file.datastore.cluster;
    let base = draft.base.map(|(name, design)| (name, &design.datastore.cluster));
    let mut keys = ClusterKeys { path: &path, file, base, rows, compute: Vec::new() };
    let hosts = hosts(resolver, draft, &mut keys);
    let latency =
        key(resolver, &mut keys, "network.latency", |c| &c.network.latency, |v| exact::time(*v));
    let rate = key(
        resolver,
        &mut keys,
        "network.bytes-per-second",
        |c| &c.network.bytes_per_second,
        |v| exact::size(Bytes(*v)),
    );
    let network = network(resolver, draft, latency, rate);
    let policy = policy(resolver, &mut keys);
    let scheduler = scheduler(resolver, &mut keys);
    let reduction =
        key(resolver, &mut keys, "reduction", |c| &c.reduction, |v| v.as_str().to_string())
            .map_or(ReductionKind::Off, |chosen| chosen.value);
    let defaults = ClusterSettings::default();
    let time = |v: &Nanos| exact::time(*v);
    let repair_delay = key(resolver, &mut keys, "repair-delay", |c| &c.repair_delay, time)
        .map_or(defaults.repair_delay, |chosen| chosen.value);
    let owner_overhead = key(resolver, &mut keys, "owner-overhead", |c| &c.owner_overhead, time)
        .map_or(defaults.owner_overhead, |chosen| chosen.value);
    let stack =
        key(resolver, &mut keys, "stack", |c| &c.stack, time).map_or(
            Stack::NONE,
            |cost| match cost.value {
                Nanos::ZERO => Stack::NONE,
                per_io => Stack::copying(per_io, reduction != ReductionKind::Off),
            },
        );
    let (mut hosts, network) = (hosts?, network?);
    for group in hosts.iter_mut().flat_map(|host| &mut host.groups) {
        group.scheduler = scheduler;
        group.reduction = match reduction {
            ReductionKind::Off => Reduction::Off,
            ReductionKind::DedupeCompress => Reduction::DedupeCompress(ReductionCosts::DEFAULT),
        };
    }
    let k = u64::from(resolver.scale.divisor);
    let component_limit = Bytes((defaults.component_limit.0 / k).max(defaults.stripe_unit.0));
    let settings = ClusterSettings {
        repair_delay,
        stack,
        owner_overhead,
        component_limit,
        resync_slice: scheduler.slice,
        resync_window: scheduler.window,
        ..defaults
    };
    let spec = ClusterSpec { hosts, network, settings };
    // The range was checked on reading.
    let fill_percent = resolver.file.start.fill_percent.get().map(|percent| *percent as u8);
    let problems = spec.problems();
    for problem in &problems {
        resolver.report.add(
            place(file, draft),
            "out-of-range",
            format!("the cluster of design `{}` cannot be built: {problem}", draft.name.value),
            problem.rule.clone(),
            "change the cluster",
        );
    }
    let compute = keys.compute;
    let plan = ClusterPlan { spec, policy, fill_percent, compute };
    problems.is_empty().then(|| DatastoreKind::Cluster(Box::new(plan)))
}

/// Places the volumes on a cluster of that kind, and says why where that is not possible.
pub(super) fn check_placement(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    plan: &ClusterPlan,
    volumes: &[VolumeChoice],
) {
    // What specification and policy violate was reported when they were made.
    if !plan.policy.problems().is_empty() {
        return;
    }
    let Ok(mut cluster) = Cluster::new(plan.spec.clone(), RootSeed(0)) else { return };
    for volume in volumes {
        let (name, capacity) = (volume.name(), volume.capacity());
        if let Err(refusal) = cluster.create_volume(Nanos::ZERO, name, capacity, plan.policy) {
            resolver.report.add(
                draft
                    .file
                    .datastore
                    .cluster
                    .policy
                    .span
                    .clone()
                    .or_else(|| place(&draft.file.datastore.cluster, draft)),
                "cannot-be-placed",
                format!(
                    "volume `{name}` cannot be placed on the cluster of design `{}`",
                    draft.name.value
                ),
                refusal.to_string(),
                "change the policy, the volumes or the hosts",
            );
            return;
        }
    }
    let Some(percent) = plan.fill_percent else { return };
    let filled = cluster.fill(Nanos::ZERO, percent);
    let full = filled.and_then(|()| {
        let mut volumes = cluster.volumes().collect::<Vec<_>>().into_iter();
        volumes.try_for_each(|volume| cluster.assume_written(volume))
    });
    if let Err(refusal) = full {
        resolver.report.add(
            resolver.file.start.fill_percent.span(),
            "cannot-be-placed",
            format!(
                "the volumes do not fit the cluster of design `{}` next to other data on \
                 {percent} % of each capacity device",
                draft.name.value
            ),
            refusal.to_string(),
            "write a smaller `fill-percent`, or smaller volumes",
        );
    }
}

fn hosts(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    keys: &mut ClusterKeys<'_, '_>,
) -> Option<Vec<HostSpec>> {
    let (file, base) = (keys.file, keys.base);
    let (layer, sections) = match (&file.hosts, base) {
        (Entry::Refused, _) => return None,
        (Entry::Given { value, .. }, _) => (Layer::File, value.as_slice()),
        (Entry::Absent, Some((name, base))) => {
            (Layer::Builtin(name), base.hosts.get().map_or(&[][..], Vec::as_slice))
        }
        (Entry::Absent, None) => (Layer::File, &[][..]),
    };
    if sections.is_empty() {
        resolver.report.add(
            file.hosts.span().or_else(|| place(file, draft)),
            "missing-key",
            format!("the cluster of design `{}` has no hosts", draft.name.value),
            "a cluster needs at least one",
            "add hosts = [{ name = \"host\", count = 4, disk-groups = [{ cache = \"p4800x-375\", capacity = \
             [\"p4500-2000\"] }] }]",
        );
        return None;
    }
    let mut hosts: Vec<HostSpec> = Vec::new();
    let mut complete = true;
    for section in sections {
        let Some(found) = equal_hosts(resolver, layer, section, keys) else {
            complete = false;
            continue;
        };
        if let Some(twice) =
            found.iter().find(|host| hosts.iter().any(|known| known.name == host.name))
        {
            resolver.report.add(
                section.name.span().or_else(|| section.span.clone()),
                "duplicate-name",
                format!("two hosts of design `{}` are called `{}`", draft.name.value, twice.name),
                "already taken",
                "give each host a `name` of its own, or use `count`",
            );
            complete = false;
        }
        hosts.extend(found);
    }
    complete.then_some(hosts)
}

/// The hosts that one entry stands for.
fn equal_hosts(
    resolver: &mut Resolver<'_>,
    layer: Layer<'_>,
    section: &Section<Host>,
    keys: &mut ClusterKeys<'_, '_>,
) -> Option<Vec<HostSpec>> {
    if section.refused {
        return None;
    }
    let missing = |report: &mut crate::report::Report, what: &str, example: &str| {
        report.add(
            section.span.clone(),
            "missing-key",
            format!("a host does not say its {what}"),
            format!("{what} missing"),
            format!("add {example}"),
        );
    };
    if section.name.is_absent() {
        missing(&mut resolver.report, "name", "name = \"host\"");
    }
    if section.disk_groups.is_absent() {
        let example = "disk-groups = [{ cache = \"p4800x-375\", capacity = [\"p4500-2000\"] }]";
        missing(&mut resolver.report, "disk groups", example);
    }
    let host = section.name.get().map_or("", String::as_str);
    let mut groups = Vec::new();
    let mut complete = section.count != Entry::Refused && section.fault_domain != Entry::Refused;
    for group in section.disk_groups.get().map_or(&[][..], Vec::as_slice) {
        let path = format!("{}.hosts.{host}.disk-groups", keys.path);
        match equal_groups(resolver, group, layer, &path, keys.rows) {
            Some(found) => groups.extend(found),
            None => complete = false,
        }
    }
    let name = section.name.get()?;
    section.disk_groups.get()?;
    if !complete {
        return None;
    }
    for (number, group) in groups.iter_mut().enumerate() {
        group.name = format!("group-{}", number + 1);
    }
    let count = section.count.get().copied().unwrap_or(1);
    if let Pick::Found(chosen) =
        resolver.pick(&format!("{}.hosts.{name}", keys.path), &[(layer, &section.name)])
    {
        keys.rows.push(chosen.setting(format!("{count} x {}", described(&groups))));
    }
    let host = |number: u64| HostSpec {
        name: if count == 1 { name.clone() } else { format!("{name}-{number}") },
        fault_domain: section.fault_domain.get().cloned(),
        groups: groups.clone(),
    };
    let hosts: Vec<HostSpec> = (1..=count).map(host).collect();
    compute(resolver, layer, section, (name, &hosts), keys)?;
    Some(hosts)
}

/// What each of these equal hosts gives the databases that are placed on it.
fn compute(
    resolver: &mut Resolver<'_>,
    layer: Layer<'_>,
    section: &Section<Host>,
    (name, hosts): (&str, &[HostSpec]),
    keys: &mut ClusterKeys<'_, '_>,
) -> Option<()> {
    let path = |key: &str| format!("{}.hosts.{name}.{key}", keys.path);
    let cores = resolver.pick(&path("cores"), &[(layer, &section.cores)]);
    let threads = resolver.pick(&path("threads-per-core"), &[(layer, &section.threads_per_core)]);
    let memory = resolver.pick(&path("memory"), &[(layer, &section.memory)]);
    if cores == Pick::Refused || threads == Pick::Refused || memory == Pick::Refused {
        return None;
    }
    let threads = threads.found();
    if threads.is_some() && cores == Pick::Absent {
        resolver.report.add(
            section.threads_per_core.span().or_else(|| section.span.clone()),
            "conflict",
            format!("host `{name}` says the threads of its cores, and not how many it has"),
            "without `cores` its databases have no limit that threads could raise",
            "add for example cores = 24, or remove `threads-per-core`",
        );
        return None;
    }
    let (divisor, is_scaled) = (f64::from(resolver.scale.divisor), resolver.scale != Scale::FULL);
    let cores = cores.found().map(|full| match is_scaled {
        true => full.scaled(full.value / divisor, full.value.to_string()),
        false => full,
    });
    let memory = memory.found().map(|full| match is_scaled {
        true => {
            let size = crate::scale::size(full.value, resolver.scale, Bytes::ZERO);
            full.scaled(size, exact::size(full.value))
        }
        false => full,
    });
    keys.rows.extend(cores.as_ref().map(|cores| cores.setting(cores.value.to_string())));
    keys.rows.extend(threads.as_ref().map(|threads| threads.setting(threads.value.to_string())));
    keys.rows.extend(memory.as_ref().map(|memory| memory.setting(exact::size(memory.value))));
    let (cores, memory) = (cores.map(|it| it.value), memory.map(|it| it.value));
    // The range was checked on reading.
    let threads_per_core = threads.map_or(1, |threads| threads.value as u32);
    if cores.is_some() || memory.is_some() {
        let compute = |host: &HostSpec| HostCompute {
            host: host.name.clone(),
            cores,
            threads_per_core,
            // That of the design's server, which is decided later.
            core_speed: 1.0,
            memory,
        };
        keys.compute.extend(hosts.iter().map(compute));
    }
    Some(())
}

/// Reports hosts that limit databases where neither they nor hosts with the same limits have one: of equal hosts, which one entry
/// describes, some may be without.
pub(super) fn check_compute(resolver: &mut Resolver<'_>, draft: &Draft<'_>, plan: &ClusterPlan) {
    let limits = |it: &HostCompute| (it.cores, it.threads_per_core, it.memory);
    let is_placed = |it: &HostCompute| placement::is_placed(resolver, &draft.name.value, &it.host);
    let is_used = |it: &HostCompute| {
        plan.compute.iter().any(|other| limits(other) == limits(it) && is_placed(other))
    };
    let idle = plan.compute.iter().find(|it| !is_used(it));
    // A database that was refused is on no host.
    let Some(HostCompute { host, .. }) = idle.filter(|_| resolver.report.is_empty()) else {
        return;
    };
    resolver.report.add(
        place(&draft.file.datastore.cluster, draft),
        "conflict",
        format!("host `{host}` of design `{}` limits no database", draft.name.value),
        "its `cores` and `memory` are those of the databases placed on it",
        "place a [[database]] on it with `per-host` or `hosts`, or remove `cores` and `memory`",
    );
}

/// The disk groups that one entry stands for; their names come later. What differs from the profiles of their devices is
/// noted below `path`.
pub(super) fn equal_groups(
    resolver: &mut Resolver<'_>,
    section: &Section<DiskGroup>,
    layer: Layer<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<Vec<DiskGroupSpec>> {
    if section.refused {
        return None;
    }
    for (key, absent, example) in [
        ("cache", section.cache.is_absent(), "cache = \"p4800x-375\""),
        ("capacity", section.capacity.is_absent(), "capacity = [\"p4500-2000\"]"),
    ] {
        if absent {
            resolver.report.add(
                section.span.clone(),
                "missing-key",
                format!("a disk group does not say its `{key}`"),
                format!("`{key}` is missing"),
                format!("add {example}"),
            );
        }
    }
    let mut member = |device: &Section<GroupDevice>, name: &str| {
        group_device(resolver, device, layer, &format!("{path}.{name}"), rows)
    };
    let cache = section.cache.get().and_then(|device| member(device, "cache"));
    let span = section.capacity.span();
    let devices = section.capacity.get()?.iter().enumerate();
    let capacity: Vec<Option<DeviceProfile>> =
        devices.map(|(disk, device)| member(device, &format!("disk{disk}"))).collect();
    let capacity: Vec<DeviceProfile> = capacity.into_iter().collect::<Option<_>>()?;
    let most = DiskGroupSpec::CAPACITY_DEVICES_MAX;
    if !(1..=most).contains(&capacity.len()) {
        resolver.report.add(
            span,
            "out-of-range",
            format!("a disk group has {} capacity devices", capacity.len()),
            format!("1 to {most}"),
            "a group is one cache device and 1 to 7 capacity devices; use several groups for more",
        );
        return None;
    }
    let count = match &section.count {
        Entry::Refused => return None,
        count => count.get().copied().unwrap_or(1),
    };
    let group = DiskGroupSpec::new("group", cache?, capacity);
    Some(vec![group; count as usize])
}

/// A device of a disk group, with what differs from its profile, scaled.
pub(super) fn group_device(
    resolver: &mut Resolver<'_>,
    section: &Section<GroupDevice>,
    layer: Layer<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<DeviceProfile> {
    if section.refused || section.overrides.refused {
        return None;
    }
    if section.profile.is_absent() {
        resolver.report.add(
            section.span.clone(),
            "missing-key",
            "a device of a disk group does not say its `profile`",
            "`profile` is missing",
            "add profile = \"dc1500m-960\"",
        );
    }
    let full = known_profile(resolver, section.profile.get()?, section.profile.span())?;
    let own_span = section.overrides.span.clone().filter(|_| layer == Layer::File);
    let path = format!("{path}.overrides");
    let (full, places) = crate::file::profile::lower(
        &section.overrides,
        Some(&full),
        own_span,
        &path,
        &mut resolver.report,
    )?;
    for (key, span) in places.into_iter().filter(|_| layer == Layer::File) {
        let origin = Origin::File { line: position(resolver.text, span.start).0 };
        let value = resolver.text[span].trim_matches('"').to_string();
        rows.push(Setting { path: format!("{path}.{key}"), value, origin });
    }
    Some(crate::scale::device(&full, resolver.scale).profile)
}

fn network(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    latency: Option<Chosen<Nanos>>,
    rate: Option<Chosen<u64>>,
) -> Option<NetworkSpec> {
    let network = &draft.file.datastore.cluster.network;
    for (key, absent, example) in [
        ("latency", latency.is_none(), "latency = \"20us\""),
        ("bytes-per-second", rate.is_none(), "bytes-per-second = \"1250MB\""),
    ] {
        let refused = network.refused
            || match key {
                "latency" => network.latency == Entry::Refused,
                _ => network.bytes_per_second == Entry::Refused,
            };
        if absent && !refused {
            resolver.report.add(
                network.span.clone().or_else(|| place(&draft.file.datastore.cluster, draft)),
                "missing-key",
                format!("the network of design `{}` does not say its `{key}`", draft.name.value),
                format!("`{key}` is missing"),
                format!("add {example} under datastore.cluster.network"),
            );
        }
    }
    Some(NetworkSpec {
        latency: latency?.value,
        bytes_per_second: rate?.value,
        divisor: resolver.scale.divisor,
    })
}

fn policy(resolver: &mut Resolver<'_>, keys: &mut ClusterKeys<'_, '_>) -> Policy {
    let number = |v: &u64| v.to_string();
    let default = Policy::DEFAULT;
    let failures = key(
        resolver,
        keys,
        "policy.failures-to-tolerate",
        |c| &c.policy.failures_to_tolerate,
        number,
    );
    let method =
        key(resolver, keys, "policy.method", |c| &c.policy.method, |v| v.word().to_string());
    let width = key(resolver, keys, "policy.stripe-width", |c| &c.policy.stripe_width, number);
    let limit = key(resolver, keys, "policy.iops-limit", |c| &c.policy.iops_limit, number);
    let checksum =
        key(resolver, keys, "policy.checksum", |c| &c.policy.checksum, |v| v.word().to_string());
    let reservation = key(
        resolver,
        keys,
        "policy.space-reservation-percent",
        |c| &c.policy.space_reservation_percent,
        number,
    );
    let k = u64::from(resolver.scale.divisor);
    // The ranges were checked on reading, so all of these are small.
    let small =
        |chosen: Option<Chosen<u64>>, default: u8| chosen.map_or(default, |c| c.value as u8);
    let policy = Policy {
        failures_to_tolerate: small(failures, default.failures_to_tolerate),
        method: method.map_or(default.method, |chosen| chosen.value),
        stripe_width: small(width, default.stripe_width),
        iops_limit: limit.map(|chosen| (chosen.value / k).max(1) as u32),
        checksum: checksum.map_or(default.checksum, |chosen| chosen.value),
        space_reservation_percent: small(reservation, default.space_reservation_percent),
    };
    for problem in policy.problems() {
        resolver.report.add(
            keys.file.policy.span.clone().or_else(|| keys.file.span.clone()),
            "conflict",
            "the policy of the cluster contradicts itself",
            problem.to_string(),
            "change `failures-to-tolerate` or `method`",
        );
    }
    policy
}

fn scheduler(resolver: &mut Resolver<'_>, keys: &mut ClusterKeys<'_, '_>) -> SchedulerSpec {
    let number = |v: &u64| v.to_string();
    let kind =
        key(resolver, keys, "resync.policy", |c| &c.resync.policy, |v| v.as_str().to_string())
            .map_or(ResyncKind::Adaptive, |chosen| chosen.value);
    let floor = key(resolver, keys, "resync.floor-percent", |c| &c.resync.floor_percent, number);
    let size = |v: &u64| exact::size(Bytes(*v));
    let rate = key(resolver, keys, "resync.bytes-per-second", |c| &c.resync.bytes_per_second, size)
        .map_or(RESYNC_RATE, |chosen| chosen.value);
    let slice = key(resolver, keys, "resync.slice", |c| &c.resync.slice, |v| exact::size(*v));
    let window = key(resolver, keys, "resync.window", |c| &c.resync.window, number);
    let rate = (rate / u64::from(resolver.scale.divisor)).max(64 << 10);
    let policy = match kind {
        ResyncKind::Adaptive => ResyncPolicy::Adaptive {
            resync_floor: floor.map_or(0.20, |chosen| chosen.value as f64 / 100.0),
        },
        ResyncKind::None => ResyncPolicy::None,
        ResyncKind::StaticLimit => ResyncPolicy::StaticLimit { bytes_per_second: rate },
        ResyncKind::LatencyWatermark => ResyncPolicy::LatencyWatermark {
            low: WATERMARK_LOW,
            high: WATERMARK_HIGH,
            interval: WATERMARK_INTERVAL,
            step_bytes_per_second: WATERMARK_STEP,
            floor_bytes_per_second: rate,
        },
    };
    SchedulerSpec {
        policy,
        slice: slice.map_or(SchedulerSpec::DEFAULT.slice, |chosen| chosen.value),
        window: window.map_or(SchedulerSpec::DEFAULT.window, |chosen| chosen.value as u32),
    }
}

/// One key of the cluster: the file's, or the built-in design's; noted where it came from.
fn key<T: Clone>(
    resolver: &mut Resolver<'_>,
    keys: &mut ClusterKeys<'_, '_>,
    key: &str,
    of: impl Fn(&ClusterFile) -> &Entry<T>,
    written: impl Fn(&T) -> String,
) -> Option<Chosen<T>> {
    let mut layers = vec![(Layer::File, of(keys.file))];
    if let Some((name, base)) = keys.base {
        layers.push((Layer::Builtin(name), of(base)));
    }
    let chosen = resolver.pick(&format!("{}.{key}", keys.path), &layers).found()?;
    keys.rows.push(chosen.setting(written(&chosen.value)));
    Some(chosen)
}

/// Where the keys of a cluster come from and are noted.
struct ClusterKeys<'a, 'r> {
    path: &'a str,
    file: &'a Section<ClusterFile>,
    base: Option<(&'static str, &'static Section<ClusterFile>)>,
    rows: &'r mut Vec<Setting>,
    /// Of the hosts so far.
    compute: Vec<HostCompute>,
}

fn place(file: &Section<ClusterFile>, draft: &Draft<'_>) -> Option<Range<usize>> {
    file.span.clone().or_else(|| draft.file.span.clone())
}

/// Disk groups in words: `2 groups of p4800x-375 over 2 x p4500-2000`.
pub(crate) fn described(groups: &[DiskGroupSpec]) -> String {
    let one = |group: &DiskGroupSpec| {
        let mut capacity: Vec<(usize, &str)> = Vec::new();
        for profile in &group.capacity {
            match capacity.last_mut() {
                Some((count, name)) if *name == profile.name => *count += 1,
                _ => capacity.push((1, &profile.name)),
            }
        }
        let capacity: Vec<String> =
            capacity.iter().map(|(count, name)| format!("{count} x {name}")).collect();
        format!("{} over {}", group.cache.name, capacity.join(" + "))
    };
    let mut counted: Vec<(usize, String)> = Vec::new();
    for text in groups.iter().map(one) {
        match counted.last_mut() {
            Some((count, known)) if *known == text => *count += 1,
            _ => counted.push((1, text)),
        }
    }
    let texts: Vec<String> = counted
        .into_iter()
        .map(|(count, text)| match count {
            1 => format!("1 group of {text}"),
            count => format!("{count} groups of {text}"),
        })
        .collect();
    if texts.is_empty() { "no disk group, only witnesses".to_string() } else { texts.join(", ") }
}
