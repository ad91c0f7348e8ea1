//! Where the volumes of a design live: a directory of the host, or modelled devices.

use std::ops::Range;
use std::path::{Path, PathBuf};

use underlay_core::{Bytes, Nanos, Words};
use underlay_model::{DeviceProfile, HostLink, mirror, stripe_set};

use super::chosen::{Chosen, Layer, Pick};
use super::cluster;
use super::design_draft::Draft;
use super::device_profile::known_profile;
use super::names;
use super::resolver::Resolver;
use crate::entry::{Entry, Section};
use crate::exact;
use crate::file::{self, Device};
use crate::finding::Severity;
use crate::host_view::DirectoryState;
use crate::plan::{DatastoreKind, Durability, Layout, Origin, Scale, Setting};
use crate::problem::position;
use crate::scale;

/// Decides where the volumes of a design live.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<DatastoreKind> {
    let file = &draft.file.datastore;
    if file.refused || file.path.refused || file.emulated.refused || file.cluster.refused {
        return None;
    }
    let named = [
        ("path", &file.path.span),
        ("emulated", &file.emulated.span),
        ("cluster", &file.cluster.span),
    ];
    let named: Vec<(&str, &Range<usize>)> =
        named.iter().filter_map(|(key, span)| Some((*key, span.as_ref()?))).collect();
    if let [(first, _), (second, span), ..] = named[..] {
        resolver.report.at(
            span,
            "conflict",
            format!("design `{}` names both `{first}` and `{second}`", draft.name.value),
            "volumes live in one place",
            "keep one of them",
        );
        return None;
    }
    // What the file itself names replaces whatever the built-in design names.
    let own = !named.is_empty();
    let base = draft.base.map(|(name, design)| (name, &design.datastore));
    let base_has_path = base.is_some_and(|(_, base)| base.path.is_present());
    let base_has_devices = base.is_some_and(|(_, base)| base.emulated.is_present());
    let base_has_cluster = base.is_some_and(|(_, base)| base.cluster.is_present());
    if file.path.is_present() || (!own && base_has_path) {
        return path_store(resolver, draft, path, rows);
    }
    if file.emulated.is_present() || (!own && base_has_devices) {
        return emulated(resolver, draft, path, rows);
    }
    if file.cluster.is_present() || (!own && base_has_cluster) {
        return cluster::resolve(resolver, draft, path, rows);
    }
    resolver.report.add(
        file.span.clone().or_else(|| draft.file.span.clone()),
        "missing-key",
        format!("design `{}` does not say where its volumes live", draft.name.value),
        "no datastore",
        "add datastore.path.directory = \"/mnt/...\", or datastore.emulated.devices = \
         [{ name = \"ssd\", profile = \"dc1500m-960\" }], or use = \"kingston-nvme\"",
    );
    None
}

fn path_store(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<DatastoreKind> {
    let store = &draft.file.datastore.path;
    let path = format!("{path}.datastore.path.directory");
    let mut layers = vec![(Layer::File, &store.directory)];
    if let Some((name, base)) = draft.base {
        layers.push((Layer::Builtin(name), &base.datastore.path.directory));
    }
    let directory = match resolver.pick(&path, &layers) {
        Pick::Found(directory) => directory,
        Pick::Refused => return None,
        Pick::Absent => {
            resolver.report.add(
                store.span.clone(),
                "missing-key",
                format!("design `{}` does not say which directory", draft.name.value),
                "`directory` is missing",
                "add directory = \"/mnt/...\"",
            );
            return None;
        }
    };
    rows.push(directory.setting(directory.value.clone()));
    if resolver.scale != Scale::FULL {
        resolver.finding(
            Severity::Warning,
            "path-not-scaled",
            format!(
                "design `{}` lies on storage of this host, which keeps its full speed at scale {}",
                draft.name.value, resolver.scale
            ),
            "compare it only with designs that were not scaled either",
            directory.line(resolver.text),
        );
    }
    check_directory(resolver, &directory, "datastore");
    // One that is not there keeps no other problem of the design from being found.
    Some(DatastoreKind::Path { directory: PathBuf::from(&directory.value) })
}

/// The directory must be absolute, exist and take files.
fn check_directory(resolver: &mut Resolver<'_>, directory: &Chosen<String>, what: &str) {
    let path = Path::new(&directory.value);
    let (label, help) = if !path.is_absolute() {
        (
            "not an absolute path".to_string(),
            "start with `/`: a record must say where it was measured",
        )
    } else {
        match (resolver.host.directory)(path) {
            DirectoryState::Usable { .. } => return,
            DirectoryState::Missing => {
                ("does not exist".to_string(), "create it, or mount the device there first")
            }
            DirectoryState::NotADirectory => (
                "is not a directory".to_string(),
                "name a directory; a block device must be formatted and mounted first",
            ),
            DirectoryState::NotWritable => (
                "cannot be written to".to_string(),
                "give yourself write access, or run Underlay as root",
            ),
        }
    };
    directory.problem(
        &mut resolver.report,
        "no-directory",
        format!("the directory of the {what}, \"{}\", cannot be used", directory.value),
        label,
        help,
    );
}

fn emulated(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<DatastoreKind> {
    let path = format!("{path}.datastore.emulated");
    let devices = devices(resolver, draft, &path, rows);
    let file = &draft.file.datastore.emulated;
    let base = draft.base.map(|(name, design)| (name, &design.datastore.emulated));
    let default = resolver
        .defaults
        .design
        .get()
        .and_then(|designs| designs.first())
        .map(|design| &design.datastore.emulated);
    let link = host_link(resolver, draft, &path, rows);
    let mut durability = vec![(Layer::File, &file.durability)];
    let mut backing = vec![(Layer::File, &file.backing)];
    if let Some((name, base)) = base {
        durability.push((Layer::Builtin(name), &base.durability));
        backing.push((Layer::Builtin(name), &base.backing));
    }
    durability.extend(default.map(|default| (Layer::Default, &default.durability)));
    let durability = resolver.pick(&format!("{path}.durability"), &durability).found();
    let backing = resolver.pick(&format!("{path}.backing"), &backing).found();
    rows.extend(durability.as_ref().map(|c| c.setting(c.value.as_str().to_string())));
    if let Some(backing) = &backing {
        rows.push(backing.setting(backing.value.clone()));
        check_directory(resolver, backing, "backing files");
    }
    if let Some(durability) = &durability {
        doubt_durability(resolver, draft, durability);
    }
    Some(DatastoreKind::Emulated {
        devices: devices?,
        link: link?,
        durability: durability?.value,
        backing: backing.map(|backing| PathBuf::from(backing.value)),
    })
}

/// The link between host and devices: the outer `None` = one that cannot be used.
fn host_link(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<Option<HostLink>> {
    let file = &draft.file.datastore.emulated;
    let mut rates = vec![(Layer::File, &file.link)];
    let mut latencies = vec![(Layer::File, &file.link_latency)];
    if let Some((name, base)) = draft.base {
        let base = &base.datastore.emulated;
        rates.push((Layer::Builtin(name), &base.link));
        latencies.push((Layer::Builtin(name), &base.link_latency));
    }
    let rate = match resolver.pick(&format!("{path}.link"), &rates) {
        Pick::Refused => return None,
        found => found.found(),
    };
    let latency = match resolver.pick(&format!("{path}.link-latency"), &latencies) {
        Pick::Refused => return None,
        found => found.found(),
    };
    rows.extend(rate.as_ref().map(|c| c.setting(format!("{}/s", exact::size(Bytes(c.value))))));
    rows.extend(latency.as_ref().map(|c| c.setting(exact::time(c.value))));
    let Some(rate) = rate else {
        let Some(latency) = latency else { return Some(None) };
        latency.problem(
            &mut resolver.report,
            "conflict",
            format!("design `{}` has a latency of a link, and no link", draft.name.value),
            "there is no `link`",
            "add for example link = \"1600MB\", or remove `link-latency`",
        );
        return None;
    };
    let link = HostLink {
        bytes_per_second: rate.value,
        latency: latency.as_ref().map_or(Nanos::ZERO, |latency| latency.value),
        divisor: resolver.scale.divisor,
    };
    let Some(problem) = link.problem() else { return Some(Some(link)) };
    let (report, message) = (
        &mut resolver.report,
        format!("the link of design `{}` cannot be modelled", draft.name.value),
    );
    let help = "write for example link = \"1600MB\" for 16 Gbit/s Fibre Channel";
    match latency {
        Some(latency) if HostLink::RATES.contains(&rate.value) => {
            latency.problem(report, "out-of-range", message, problem, help);
        }
        _ => rate.problem(report, "out-of-range", message, problem, help),
    }
    None
}

fn doubt_durability(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    durability: &Chosen<Durability>,
) {
    if durability.value == Durability::Lying {
        resolver.finding(
            Severity::Warning,
            "lying-device",
            format!(
                "design `{}` acknowledges flushes without carrying them out: commits are faster \
                 than any honest device, and a power cut loses them",
                draft.name.value
            ),
            "remove `durability` unless the study asks what a lying device does",
            durability.line(resolver.text),
        );
    }
}

/// The devices of a design; those of the file replace those of the built-in.
fn devices(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<Vec<(String, DeviceProfile)>> {
    let file = &draft.file.datastore.emulated;
    let (layer, sections) = match (&file.devices, draft.base) {
        (Entry::Refused, _) => return None,
        (Entry::Given { value, .. }, _) => (Layer::File, value.as_slice()),
        (Entry::Absent, Some((name, base))) => {
            let devices = base.datastore.emulated.devices.get();
            (Layer::Builtin(name), devices.map_or(&[][..], Vec::as_slice))
        }
        (Entry::Absent, None) => (Layer::File, &[][..]),
    };
    if sections.is_empty() {
        resolver.report.add(
            file.devices.span().or_else(|| file.span.clone()),
            "missing-key",
            format!("design `{}` has no device", draft.name.value),
            "an emulated datastore needs at least one",
            "add devices = [{ name = \"ssd\", profile = \"dc1500m-960\" }]",
        );
        return None;
    }
    let mut devices: Vec<(String, DeviceProfile)> = Vec::new();
    let mut complete = true;
    for section in sections {
        match device(resolver, layer, section, path, rows) {
            Some((name, profile)) => {
                if devices.iter().any(|(known, _)| *known == name) {
                    resolver.report.add(
                        section.name.span().filter(|_| layer == Layer::File),
                        "duplicate-name",
                        format!("two devices of design `{}` are called `{name}`", draft.name.value),
                        "already taken",
                        "give each device a `name` of its own",
                    );
                }
                devices.push((name, profile));
            }
            None => complete = false,
        }
    }
    complete.then_some(devices)
}

fn device(
    resolver: &mut Resolver<'_>,
    layer: Layer<'_>,
    section: &Section<Device>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> Option<(String, DeviceProfile)> {
    if section.refused {
        return None;
    }
    let name = of_device(resolver, section, "name", &section.name, "name = \"ssd\"");
    let profile =
        of_device(resolver, section, "profile", &section.profile, "profile = \"dc1500m-960\"");
    let path = match &name {
        Some(name) => format!("{path}.devices.{name}"),
        None => format!("{path}.devices"),
    };
    if let Pick::Found(name) = resolver.pick(&format!("{path}.name"), &[(layer, &section.name)]) {
        names::check(resolver, &name);
    }
    let known = profile
        .as_deref()
        .and_then(|profile| known_profile(resolver, profile, section.profile.span()));
    let (profile, places) = file::profile::lower(
        &section.overrides,
        Some(&known?),
        section.overrides.span.clone().filter(|_| layer == Layer::File),
        &format!("{path}.overrides"),
        &mut resolver.report,
    )?;
    if section.overrides.refused {
        return None;
    }
    let chosen = resolver.pick(&format!("{path}.profile"), &[(layer, &section.profile)]).found()?;
    let (members, layout) = member_count(resolver, section)?;
    let overridden = if section.overrides.is_present() { " with overrides" } else { "" };
    let (count, mirrored) = match (members, layout) {
        (1, _) => (String::new(), ""),
        (members, Layout::Stripe) => (format!("{members} x "), ""),
        (members, Layout::Mirror) => (format!("{members} x "), ", mirrored"),
    };
    rows.push(chosen.setting(format!("{count}{}{overridden}{mirrored}", chosen.value)));
    for (key, span) in places.into_iter().filter(|_| layer == Layer::File) {
        let origin = Origin::File { line: position(resolver.text, span.start).0 };
        let value = resolver.text[span].trim_matches('"').to_string();
        rows.push(Setting { path: format!("{path}.overrides.{key}"), value, origin });
    }
    let profile = match layout {
        Layout::Stripe => stripe_of(resolver, profile, members, section)?,
        Layout::Mirror => mirror_of(resolver, profile, members, section)?,
    };
    Some((name?, scale_device(resolver, profile, &chosen)))
}

/// How many drives make up the device, and how.
fn member_count(resolver: &mut Resolver<'_>, section: &Section<Device>) -> Option<(u32, Layout)> {
    if section.members == Entry::Refused || section.layout == Entry::Refused {
        return None;
    }
    // The range was checked on reading.
    let members = section.members.get().map(|members| *members as u32);
    let layout = section.layout.get().copied();
    let (Some(layout), Some(span)) = (layout, section.layout.span()) else {
        return Some((members.unwrap_or(1), Layout::Stripe));
    };
    let members = members.unwrap_or(match layout {
        Layout::Stripe => 1,
        Layout::Mirror => 2,
    });
    if members == 1 {
        resolver.report.at(
            &span,
            "conflict",
            format!("a {} needs more than one device", layout.word()),
            "there is one member",
            "write for example members = 2, or remove `layout`",
        );
        return None;
    }
    Some((members, layout))
}

fn mirror_of(
    resolver: &mut Resolver<'_>,
    profile: DeviceProfile,
    members: u32,
    section: &Section<Device>,
) -> Option<DeviceProfile> {
    let set = mirror(&profile, members);
    if set.is_none() {
        resolver.report.add(
            section.members.span().or_else(|| section.span.clone()),
            "out-of-range",
            format!("{members} devices of profile `{}` cannot be mirrored", profile.name),
            format!("at most {} copies", DeviceProfile::COPIES_MAX),
            "write members = 2 for a pair",
        );
    }
    set
}

fn stripe_of(
    resolver: &mut Resolver<'_>,
    profile: DeviceProfile,
    members: u32,
    section: &Section<Device>,
) -> Option<DeviceProfile> {
    let set = stripe_set(&profile, members);
    if set.is_none() {
        resolver.report.add(
            section.members.span().or_else(|| section.span.clone()),
            "conflict",
            format!("{members} devices of profile `{}` cannot be striped", profile.name),
            "arms of rotating disks do not add up",
            "leave `members` out, or use a profile without moving parts",
        );
    }
    set
}

fn scale_device(
    resolver: &mut Resolver<'_>,
    full: DeviceProfile,
    chosen: &Chosen<String>,
) -> DeviceProfile {
    let scaled = scale::device(&full, resolver.scale);
    if let Some(compromise) = scaled.compromise {
        resolver.finding(
            Severity::Warning,
            "scaled-device",
            format!("device {} at scale {}: {compromise}", full.name, resolver.scale),
            "choose a larger scale if what one session does matters",
            chosen.line(resolver.text),
        );
    }
    if let Some(problem) = scaled.profile.problems().first() {
        chosen.problem(
            &mut resolver.report,
            "out-of-range",
            format!("device {} cannot be scaled to {}", full.name, resolver.scale),
            problem.to_string(),
            "choose a larger scale",
        );
    }
    scaled.profile
}

fn of_device(
    resolver: &mut Resolver<'_>,
    section: &Section<Device>,
    key: &str,
    entry: &Entry<String>,
    example: &str,
) -> Option<String> {
    if entry.is_absent() {
        resolver.report.add(
            section.span.clone(),
            "missing-key",
            format!("a device does not say its `{key}`"),
            format!("`{key}` is missing"),
            format!("add {example}"),
        );
    }
    entry.get().cloned()
}

/// The free space behind a datastore, and what to call the place.
pub(super) fn free_space(resolver: &Resolver<'_>, kind: &DatastoreKind) -> (Bytes, String) {
    let directory = match kind {
        DatastoreKind::Path { directory } => Some(directory),
        DatastoreKind::Emulated { backing, .. } => backing.as_ref(),
        DatastoreKind::Cluster(_) => None,
    };
    match directory {
        None => (resolver.host.free_space, "the host".to_string()),
        Some(directory) => match (resolver.host.directory)(directory) {
            DirectoryState::Usable { free } => (free, format!("\"{}\"", directory.display())),
            // Reported where the directory is checked.
            _ => (Bytes(u64::MAX), String::new()),
        },
    }
}
