//! The volumes of a design: merging, scaling, and whether they fit what is below and what they hold.

use std::collections::BTreeMap;

use underlay_core::Bytes;
use underlay_model::DeviceProfile;

use super::chosen::{Chosen, Layer, Pick};
use super::datastore;
use super::design_draft::Draft;
use super::engine::EngineChoice;
use super::resolver::Resolver;
use super::server;
use super::volume_choice::VolumeChoice;
use super::workload::WorkloadChoice;
use crate::estimate;
use crate::exact;
use crate::file::{Volume, Volumes};
use crate::finding::Severity;
use crate::limits::{EXT4_MIN, XFS_MIN};
use crate::plan::{DatastoreKind, FileSystem, Origin, Scale, Setting, WorkloadKind};
use crate::scale;
use crate::suggest::{listed, nearest};

/// Decides about the volumes of a design.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    kind: Option<&DatastoreKind>,
    rows: &mut Vec<Setting>,
) -> Option<Vec<VolumeChoice>> {
    let mut volumes = Vec::new();
    let is_readable = !draft.file.volumes.refused && !resolver.file.volumes.refused;
    let mut complete = is_readable;
    for (position, name) in Volumes::NAMES.into_iter().enumerate() {
        let own = draft.file.volumes.at(position);
        let shared = resolver.file.volumes.at(position);
        if own.refused || shared.refused {
            complete = false;
        } else if own.is_present() || shared.is_present() {
            match volume(resolver, draft, path, position, kind, rows) {
                Some(volume) => volumes.extend(volume),
                None => complete = false,
            }
        } else if position < Volumes::REQUIRED && is_readable && !resolver.is_block_load() {
            missing_volume(resolver, draft, name);
        }
    }
    if complete && volumes.is_empty() {
        missing_volume(resolver, draft, Volumes::NAMES[0]);
    }
    complete.then_some(volumes)
}

fn missing_volume(resolver: &mut Resolver<'_>, draft: &Draft<'_>, name: &str) {
    let purpose = match name {
        "wal" => "the log",
        "backup" => "backups",
        _ => "data",
    };
    resolver.report.add(
        draft.file.span.clone(),
        "missing-volume",
        format!("design `{}` names no volume for {purpose} (`{name}`)", draft.name.value),
        format!("no `{name}` here, and none under [volumes]"),
        format!("add {name} = {{ capacity = \"2GiB\" }} under [volumes], for all designs"),
    );
}

fn volume(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    position: usize,
    kind: Option<&DatastoreKind>,
    rows: &mut Vec<Setting>,
) -> Option<Vec<VolumeChoice>> {
    let name = Volumes::NAMES[position];
    let path = format!("{path}.volumes.{name}");
    let own = draft.file.volumes.at(position);
    let shared = resolver.file.volumes.at(position);
    let default = resolver.defaults.volumes.at(position);
    let base = draft.base.map(|(name, base)| (Layer::Builtin(name), base.volumes.at(position)));
    let capacity = resolver.pick(
        &format!("{path}.capacity"),
        &[(Layer::File, &own.capacity), (Layer::File, &shared.capacity)],
    );
    if capacity.is_absent() {
        resolver.report.add(
            own.span.clone().or_else(|| shared.span.clone()),
            "missing-key",
            format!("volume `{name}` has no size"),
            "`capacity` is missing",
            "add for example capacity = \"4GiB\"",
        );
    }
    let mut devices = vec![(Layer::File, &own.device), (Layer::File, &shared.device)];
    let mut systems = vec![(Layer::File, &own.file_system), (Layer::File, &shared.file_system)];
    if let Some((layer, base)) = base {
        devices.push((layer, &base.device));
        systems.push((layer, &base.file_system));
    }
    systems.push((Layer::Default, &default.file_system));
    let device = resolver.pick(&format!("{path}.device"), &devices);
    let file_system = resolver.pick(&format!("{path}.file-system"), &systems).found();
    let device = match kind {
        Some(DatastoreKind::Emulated { devices, .. }) => {
            Some(device_of_volume(resolver, draft, devices, device, &path)?)
        }
        Some(DatastoreKind::Path { .. }) => {
            let why = ("lies in a directory and has no devices", "a directory has no devices");
            check_no_device(resolver, draft, own, why);
            None
        }
        Some(DatastoreKind::Cluster(_)) => {
            let why = ("is a cluster, which places volumes itself", "decided by the policy");
            check_no_device(resolver, draft, own, why);
            None
        }
        None => None,
    };
    let (full, file_system) = (capacity.found()?, file_system?);
    let capacity = scale_capacity(resolver, &full, file_system.value);
    rows.push(capacity.setting(exact::size(capacity.value)));
    if matches!(kind, Some(DatastoreKind::Emulated { .. } | DatastoreKind::Cluster(_))) {
        rows.extend(device.as_ref().map(|c| c.setting(c.value.clone())));
        rows.push(file_system.setting(file_system.value.as_str().to_string()));
    }
    check_least_capacity(resolver, name, &capacity, file_system.value);
    let count = [(Layer::File, &own.count), (Layer::File, &shared.count)];
    let count = match resolver.pick(&format!("{path}.count"), &count) {
        Pick::Refused => return None,
        Pick::Absent => {
            let name = name.to_string();
            return Some(vec![VolumeChoice { name, capacity, device, file_system }]);
        }
        Pick::Found(count) => scaled_count(resolver, &count)?,
    };
    rows.push(count.setting(count.value.to_string()));
    let numbered = |number: u64| VolumeChoice {
        name: format!("{name}-{number}"),
        capacity: capacity.clone(),
        device: device.clone(),
        file_system: file_system.clone(),
    };
    Some((1..=count.value).map(numbered).collect())
}

/// The number of equal volumes at the size of the plan.
fn scaled_count(resolver: &mut Resolver<'_>, full: &Chosen<u64>) -> Option<Chosen<u64>> {
    if !resolver.is_block_load() {
        full.problem(
            &mut resolver.report,
            "conflict",
            format!("{} has no meaning for a database", full.called()),
            "a database has one volume of each kind",
            "remove it, or choose the workload [workload.block]",
        );
        return None;
    }
    let divisor = u64::from(resolver.volume_scale.count);
    if divisor == 1 {
        return Some(full.clone());
    }
    let count = ((full.value + divisor / 2) / divisor).max(1);
    Some(full.scaled(count, full.value.to_string()))
}

/// The device a volume lies on, among `devices`.
fn device_of_volume(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    devices: &[(String, DeviceProfile)],
    device: Pick<String>,
    path: &str,
) -> Option<Chosen<String>> {
    let device = match device {
        Pick::Refused => return None,
        Pick::Absent => {
            let (value, path) = (devices.first()?.0.clone(), format!("{path}.device"));
            return Some(Chosen { value, path, origin: Origin::Default, span: None });
        }
        Pick::Found(device) => device,
    };
    let names = || devices.iter().map(|(name, _)| name.as_str());
    if names().any(|name| name == device.value) {
        return Some(device);
    }
    let label = match nearest(&device.value, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "not a device of this design".to_string(),
    };
    device.problem(
        &mut resolver.report,
        "unknown-name",
        format!("design `{}` has no device `{}`", draft.name.value, device.value),
        label,
        format!("its devices are {}", listed(names())),
    );
    None
}

/// Reports a device that the design itself names for a volume that does not lie on one. `[volumes]` may name
/// one for the other designs of the study.
fn check_no_device(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    own: &Volume,
    (what, label): (&str, &'static str),
) {
    if let Some(span) = own.device.span() {
        resolver.report.at(
            &span,
            "conflict",
            format!("design `{}` {what}", draft.name.value),
            label,
            "remove `device`",
        );
    }
}

fn scale_capacity(
    resolver: &Resolver<'_>,
    full: &Chosen<Bytes>,
    file_system: FileSystem,
) -> Chosen<Bytes> {
    if resolver.scale == Scale::FULL {
        return full.clone();
    }
    let size = resolver.volume_scale.size;
    let scaled = scale::size(full.value, size, least(file_system).min(full.value));
    full.scaled(scaled, exact::size(full.value))
}

fn check_least_capacity(
    resolver: &mut Resolver<'_>,
    name: &str,
    capacity: &Chosen<Bytes>,
    system: FileSystem,
) {
    let least = least(system);
    if capacity.value < least {
        capacity.problem(
            &mut resolver.report,
            "out-of-range",
            format!("volume `{name}` is too small for a file system"),
            format!("{} is below the {least} that {} needs", capacity.value, system.as_str()),
            format!("write at least \"{}\"", exact::size(least)),
        );
    }
}

/// Volumes against their devices and against the host.
pub(super) fn check_capacity(
    resolver: &mut Resolver<'_>,
    kind: &DatastoreKind,
    volumes: &[VolumeChoice],
) {
    if let DatastoreKind::Emulated { devices, .. } = kind {
        for (name, profile) in devices {
            let on_device: Vec<&VolumeChoice> = volumes
                .iter()
                .filter(|volume| volume.device.as_ref().is_some_and(|d| d.value == *name))
                .collect();
            let total = total(on_device.iter().copied());
            if total > u128::from(profile.capacity.0) {
                too_large(
                    resolver,
                    &on_device,
                    "larger-than-device",
                    &format!("device `{name}` has {}", profile.capacity),
                    "",
                );
            }
        }
    }
    let (free, place) = datastore::free_space(resolver, kind);
    let needed = total(volumes);
    if needed > u128::from(free.0) {
        let help = server::scale_help(resolver, needed as f64 / free.0.max(1) as f64);
        let all: Vec<&VolumeChoice> = volumes.iter().collect();
        too_large(
            resolver,
            &all,
            "larger-than-free-space",
            &format!("{place} has {free} free"),
            &help,
        );
    }
}

fn too_large(
    resolver: &mut Resolver<'_>,
    volumes: &[&VolumeChoice],
    code: &'static str,
    limit: &str,
    help: &str,
) {
    let Some(largest) = volumes.iter().max_by_key(|volume| volume.capacity.value) else {
        return;
    };
    let needed = Bytes(u64::try_from(total(volumes.iter().copied())).unwrap_or(u64::MAX));
    let names = listed(volumes.iter().map(|volume| volume.name.as_str()));
    largest.capacity.problem(
        &mut resolver.report,
        code,
        format!("the volumes {names} need {needed}, {limit}"),
        "the largest of them",
        format!("make the volumes smaller{help}"),
    );
}

/// Volumes against what they have to hold.
pub(super) fn check_contents(
    resolver: &mut Resolver<'_>,
    volumes: &[VolumeChoice],
    engine: &EngineChoice,
    workload: Option<&WorkloadChoice>,
) {
    if let Some(WorkloadKind::Block(block)) = workload.map(WorkloadChoice::kind) {
        return check_files(resolver, volumes, block.working_set);
    }
    if resolver.is_block_load() {
        return;
    }
    let by_name: BTreeMap<&str, &VolumeChoice> =
        volumes.iter().map(|volume| (volume.name.as_str(), volume)).collect();
    if let (Some(wal), Some(max)) = (by_name.get("wal"), engine.log_size()) {
        check_wal(resolver, wal, max, engine);
    }
    let Some(workload) = workload else { return };
    let database = estimate::database(&workload.kind());
    if matches!(workload.kind(), WorkloadKind::Backup(_)) {
        check_backup_volumes(resolver, &by_name, database, workload);
        return;
    }
    if let Some(data) = by_name.get("data") {
        check_data(resolver, data, database, workload);
    }
    if let Some(backup) = by_name.get("backup")
        && backup.capacity.value < database
    {
        let capacity = backup.capacity.value;
        resolver.finding(
            Severity::Note,
            "backup-volume-small",
            format!(
                "the volume `backup` ({capacity}) does not hold a backup of the database (about \
                 {database})"
            ),
            "enlarge it before the study takes backups",
            backup.capacity.line(resolver.text),
        );
    }
}

/// Volumes against the files of a block load.
fn check_files(resolver: &mut Resolver<'_>, volumes: &[VolumeChoice], working_set: Bytes) {
    for volume in volumes {
        let usable = estimate::usable(volume.capacity.value);
        if working_set > usable {
            let kind = volume.name.split('-').next().unwrap_or_default();
            volume.capacity.problem(
                &mut resolver.report,
                "working-set-too-large",
                format!("the working set does not fit the volume `{kind}`"),
                format!("{working_set} are asked for, it holds about {usable}"),
                "enlarge the volume, or lower working-set of [workload.block]",
            );
        }
    }
}

/// The volume `data` holds the database and, where it is restored, a copy; the volume `backup` one backup at a time.
fn check_backup_volumes(
    resolver: &mut Resolver<'_>,
    by_name: &BTreeMap<&str, &VolumeChoice>,
    database: Bytes,
    workload: &WorkloadChoice,
) {
    let kind = workload.kind();
    let (restored, backup) = estimate::copies(&kind);
    let on_data =
        if restored == Bytes::ZERO { "the database" } else { "the database and its restored copy" };
    for (name, contents, needed) in [
        ("data", on_data, estimate::saturating_sum(database, restored)),
        ("backup", "a backup of the database", backup),
    ] {
        let Some(volume) = by_name.get(name) else { continue };
        let usable = estimate::usable(volume.capacity.value);
        if needed <= usable {
            continue;
        }
        let shares = if name == "data" && restored > Bytes::ZERO { 2 } else { 1 };
        let fitting = estimate::population_in(Bytes(usable.0 / shares), &kind);
        let enlarge = format!("make it at least {}", exact_mib(needed));
        let help = match workload.smaller(fitting) {
            None => enlarge,
            Some(smaller) => format!("{enlarge}, or write {smaller}"),
        };
        volume.capacity.problem(
            &mut resolver.report,
            "database-too-large",
            format!("the volume `{name}` does not hold {contents}"),
            format!("about {needed}, {} holds about {usable}", volume.capacity.value),
            help,
        );
    }
}

fn check_data(
    resolver: &mut Resolver<'_>,
    data: &VolumeChoice,
    database: Bytes,
    workload: &WorkloadChoice,
) {
    let usable = estimate::usable(data.capacity.value);
    if database > usable {
        let kind = workload.kind();
        let fitting = estimate::population_in(usable, &kind);
        let message = format!("{} do not fit the volume `data`", kind.population());
        let volume =
            format!("make the volume at least {}, to have room to grow", exact_mib(database));
        let help = match workload.smaller(fitting) {
            None => volume,
            Some(smaller) => format!("{volume}, or write {smaller}"),
        };
        data.capacity.problem(
            &mut resolver.report,
            "database-too-large",
            message,
            format!("about {database} of data, {} holds about {usable}", data.capacity.value),
            help,
        );
    } else if database.0 > usable.0 / 4 * 3 {
        resolver.finding(
            Severity::Warning,
            "data-volume-tight",
            format!(
                "about {database} of data on the volume `data`, which holds about {usable}: new \
                 orders may fill it"
            ),
            "enlarge the volume by half",
            data.capacity.line(resolver.text),
        );
    }
}

fn check_wal(resolver: &mut Resolver<'_>, wal: &VolumeChoice, max: Bytes, engine: &EngineChoice) {
    let usable = estimate::usable(wal.capacity.value);
    let dialect = engine.dialect();
    let name = dialect.log.0;
    let decided = match engine.setting(name) {
        Some(_) => "",
        None => " (the server's default)",
    };
    if max > usable {
        let fitting = Bytes((usable.0 / 3 * 2) >> 20 << 20);
        wal.capacity.problem(
            &mut resolver.report,
            "log-volume-small",
            "the log does not fit its volume",
            format!("{name} is {max}{decided}, {} holds about {usable}", wal.capacity.value),
            format!(
                "enlarge the volume, or set {name} = \"{}\" under [engine.settings]",
                (dialect.size_text)(fitting)
            ),
        );
    } else if dialect.log_may_grow && max.0 > usable.0 / 4 * 3 {
        resolver.finding(
            Severity::Warning,
            "log-volume-tight",
            format!(
                "{name} of {max}{decided} on the volume `wal`, which holds about {usable}: \
                 the server may exceed {name} for a while"
            ),
            "leave a third of the volume free",
            wal.capacity.line(resolver.text),
        );
    }
}

fn total<'v>(volumes: impl IntoIterator<Item = &'v VolumeChoice>) -> u128 {
    volumes.into_iter().map(|volume| u128::from(volume.capacity.value.0)).sum()
}

fn least(file_system: FileSystem) -> Bytes {
    match file_system {
        FileSystem::Ext4 => EXT4_MIN,
        FileSystem::Xfs => XFS_MIN,
    }
}

/// A data size with room to grow, as a text for the file.
fn exact_mib(database: Bytes) -> String {
    let mib = (database.0 / 2 * 3).div_ceil(1 << 20);
    format!("\"{mib}MiB\"")
}
