//! Background work: what it does, when, and whether every design concerned has the volumes and the space.

use std::collections::HashSet;
use std::ops::Range;

use underlay_core::{Bytes, Nanos};

use super::io_profiles;
use super::moment::{self, MomentKeys};
use super::procedure_choice::ProcedureChoice;
use super::resolver::{OwnIoProfiles, Resolver};
use crate::background_plan::{BackgroundPlan, BackgroundWork, CopyPlan};
use crate::entry::{Entry, Section};
use crate::estimate;
use crate::exact;
use crate::fault_plan::{FaultAction, FaultPlan};
use crate::file::background::{Background, Copy, Load};
use crate::plan::{DatastoreKind, DesignPlan, Origin, Setting, WorkloadKind};
use crate::problem::position;

/// Size of a file of background work that does not say it.
const SPACE: Bytes = Bytes::from_mib(128);
/// Smallest file of background work: what block I/O accepts as a target.
const SPACE_MIN: Bytes = Bytes::from_mib(16);
/// Size of a request of a copy that does not say it, and what can be said.
const BLOCK: Bytes = Bytes::from_mib(1);
const BLOCK_MIN: Bytes = Bytes::from_kib(4);
const BLOCK_MAX: Bytes = Bytes::from_mib(4);
/// Requests in flight of a copy that does not say it.
const QUEUE_DEPTH: u32 = 4;

/// All background work that is in order.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    designs: &[DesignPlan],
    procedure: &ProcedureChoice,
    workload: Option<&WorkloadKind>,
) -> Vec<BackgroundPlan> {
    let file = resolver.file;
    let own = io_profiles::resolve(resolver);
    let Entry::Given { value: sections, .. } = &file.background else { return Vec::new() };
    // Beside a block load it was refused.
    if resolver.is_block_load() {
        return Vec::new();
    }
    let mut plans = Vec::new();
    let mut names = HashSet::new();
    for section in sections.iter().filter(|section| !section.refused) {
        let name = background_name(resolver, section, &mut names);
        let keys = MomentKeys {
            what: "background work",
            at: &section.at,
            phase: &section.phase,
            users: &section.users,
        };
        let moment = moment::resolve(resolver, &keys, procedure);
        let concerned =
            moment::designs_named(resolver, "the background work", &section.designs, designs);
        let work = work(resolver, section, &own);
        let touched = Touched::by(section, work.as_ref());
        // Where no design is meant that exists, any shows whether there are such volumes at all.
        let in_place_of_unknown =
            moment::names_unknown_designs(resolver, &section.designs).then(|| {
                designs.iter().position(|design| touched.is_within(design)).unwrap_or_default()
            });
        let looked_at = match in_place_of_unknown {
            Some(index) if concerned.is_empty() && !designs.is_empty() => vec![index],
            _ => concerned.clone(),
        };
        for index in looked_at {
            check_work(resolver, section, &touched, &designs[index], workload);
        }
        let (Some(name), Some((phase, users)), Some(work)) = (name, moment, work) else {
            continue;
        };
        plans.push(BackgroundPlan {
            name,
            work,
            at: section.at.get().copied().unwrap_or(Nanos::ZERO),
            phase,
            users,
            lasts: section.lasts.get().copied(),
            designs: concerned,
            line: position(resolver.text, place(section).start).0,
        });
    }
    // Of designs that the command line left out there is no run.
    plans.retain(|plan| !plan.designs.is_empty());
    for (number, plan) in plans.iter().enumerate() {
        resolver.provenance.push(Setting {
            path: format!("background[{number}]"),
            value: format!("{} at {}", plan.name, exact::time(plan.at)),
            origin: Origin::File { line: plan.line },
        });
    }
    plans
}

/// After a power cut volumes are remounted, while background work keeps files on them open.
pub(super) fn refuse_background_with_power_cuts(
    resolver: &mut Resolver<'_>,
    background: &[BackgroundPlan],
    faults: &[FaultPlan],
) {
    let cuts = |design: &usize| {
        let cut = |fault: &&FaultPlan| fault.action == FaultAction::PowerCut;
        faults.iter().filter(cut).any(|fault| fault.designs.contains(design))
    };
    let file = resolver.file;
    let Entry::Given { value: sections, .. } = &file.background else { return };
    for plan in background.iter().filter(|plan| plan.designs.iter().any(cuts)) {
        let section = sections.iter().find(|section| section.name.get() == Some(&plan.name));
        resolver.report.add(
            section.map(place),
            "conflict",
            format!("the design of `{}` loses its power", plan.name),
            "it keeps files open on volumes that are remounted after a power cut",
            "name other designs with `designs`, or schedule another fault",
        );
    }
}

fn background_name(
    resolver: &mut Resolver<'_>,
    section: &Section<Background>,
    names: &mut HashSet<String>,
) -> Option<String> {
    let Entry::Given { value: name, span } = &section.name else {
        if section.name.is_absent() {
            resolver.report.add(
                Some(place(section)),
                "missing-key",
                "the background work has no name",
                "`name` is missing",
                "add for example name = \"nightly-copy\"",
            );
        }
        return None;
    };
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if name.is_empty() || !name.chars().all(|letter| fits(letter) || letter == '-') {
        resolver.report.at(
            span,
            "bad-name",
            format!("`{name}` cannot be the name of background work"),
            "it becomes part of file names",
            "use lower case letters, digits and `-`",
        );
        return None;
    }
    if !names.insert(name.clone()) {
        resolver.report.at(
            span,
            "duplicate-name",
            format!("two kinds of background work are called `{name}`"),
            "the second one",
            "give it another name",
        );
    }
    Some(name.clone())
}

fn work(
    resolver: &mut Resolver<'_>,
    section: &Section<Background>,
    own: &OwnIoProfiles,
) -> Option<BackgroundWork> {
    match (section.load.is_present(), section.copy.is_present()) {
        (true, false) => block_load(resolver, &section.load, own),
        (false, true) => copy_plan(resolver, &section.copy),
        (both, _) => {
            resolver.report.add(
                Some(place(section)),
                if both { "conflict" } else { "missing-key" },
                match both {
                    true => "background work is either a `load` or a `copy`",
                    false => "the background work does not say what it does",
                },
                match both {
                    true => "it names both",
                    false => "`load` or `copy` is missing",
                },
                "write for example copy = { from = \"data\" }, or load = { profile = \"sql\", volumes = [\"data\"] }",
            );
            None
        }
    }
}

fn block_load(
    resolver: &mut Resolver<'_>,
    section: &Section<Load>,
    own: &OwnIoProfiles,
) -> Option<BackgroundWork> {
    if section.refused {
        return None;
    }
    let span = section.span.clone();
    if section.profile.is_absent() {
        resolver.report.add(
            span.clone(),
            "missing-key",
            "the load does not say its `profile`",
            "`profile` is missing",
            "add for example profile = \"sql-80-20\"",
        );
    }
    if section.volumes.is_absent() {
        resolver.report.add(
            span,
            "missing-key",
            "the load does not say its `volumes`",
            "`volumes` is missing",
            "add for example volumes = [\"data\"]",
        );
    }
    let profile = io_profiles::io_profile(resolver, &section.profile, own)?;
    let working_set = space(resolver, &section.working_set, "working-set")?;
    Some(BackgroundWork::Load {
        profile: Box::new(profile),
        volumes: section.volumes.get()?.clone(),
        working_set: scaled_space(resolver, working_set),
    })
}

fn copy_plan(resolver: &mut Resolver<'_>, section: &Section<Copy>) -> Option<BackgroundWork> {
    if section.refused {
        return None;
    }
    if section.from.is_absent() {
        resolver.report.add(
            section.span.clone(),
            "missing-key",
            "the copy does not say which volume it is of",
            "`from` is missing",
            "add for example from = \"data\"",
        );
    }
    let block_size = size_or(&section.block_size, BLOCK)?;
    let fits = (BLOCK_MIN..=BLOCK_MAX).contains(&block_size);
    if !fits || !block_size.0.is_multiple_of(BLOCK_MIN.0) {
        resolver.report.add(
            section.block_size.span(),
            "out-of-range",
            "`block-size` is not the size of a request",
            format!("{block_size} is not a multiple of 4 KiB from 4 KiB to 4 MiB"),
            "write for example block-size = \"1MiB\"",
        );
        return None;
    }
    let space = space(resolver, &section.space, "space")?;
    let k = u64::from(resolver.scale.divisor);
    Some(BackgroundWork::Copy(CopyPlan {
        from: section.from.get()?.clone(),
        to: match &section.to {
            Entry::Refused => return None,
            to => to.get().cloned(),
        },
        space: scaled_space(resolver, space),
        block_size,
        queue_depth: match &section.queue_depth {
            Entry::Refused => return None,
            depth => depth.get().map_or(QUEUE_DEPTH, |depth| *depth as u32),
        },
        bytes_per_second: match &section.bytes_per_second {
            Entry::Refused => return None,
            rate => rate.get().map(|rate| (rate.0 / k).max(1)),
        },
    }))
}

/// The size of a file, checked.
fn space(resolver: &mut Resolver<'_>, entry: &Entry<Bytes>, key: &str) -> Option<Bytes> {
    let space = size_or(entry, SPACE)?;
    if space >= SPACE_MIN {
        return Some(space);
    }
    resolver.report.add(
        entry.span(),
        "out-of-range",
        format!("`{key}` is too small for a file that blocks are written to"),
        format!("{space} is less than {SPACE_MIN}"),
        format!("write for example {key} = \"128MiB\""),
    );
    None
}

/// Files carry volume, and are scaled like everything that does.
fn scaled_space(resolver: &Resolver<'_>, space: Bytes) -> Bytes {
    crate::scale::size(space, resolver.scale, SPACE_MIN)
}

/// Whether a design has the volumes, and they the space.
fn check_work(
    resolver: &mut Resolver<'_>,
    section: &Section<Background>,
    touched: &Touched,
    design: &DesignPlan,
    workload: Option<&WorkloadKind>,
) {
    if let Some(from) = &touched.copied {
        check_volume(resolver, section, from, design);
        if matches!(design.kind, DatastoreKind::Path { .. }) {
            resolver.report.add(
                Some(place(section)),
                "conflict",
                format!("volumes of the design `{}` cannot be copied block by block", design.name),
                "they are directories, without a block device of their own",
                "use `load`, or name the other designs with `designs`",
            );
        }
    }
    for (volume, space) in &touched.written {
        let Some(capacity) = check_volume(resolver, section, volume, design) else { continue };
        let used = match (volume.as_str(), workload) {
            ("data", Some(workload)) => estimate::database(workload),
            _ => Bytes::ZERO,
        };
        let usable = estimate::usable(capacity);
        if Bytes(used.0.saturating_add(space.0)) > usable {
            resolver.report.add(
                Some(place(section)),
                "out-of-range",
                format!("the volume `{volume}` of `{}` has no room for {space} more", design.name),
                format!("it holds about {usable}"),
                "enlarge it, or write a smaller working-set or space",
            );
        }
    }
}

fn check_volume(
    resolver: &mut Resolver<'_>,
    section: &Section<Background>,
    name: &str,
    design: &DesignPlan,
) -> Option<Bytes> {
    let found = design.volumes.iter().find(|volume| volume.name == name);
    if found.is_none() {
        let known: Vec<&str> = design.volumes.iter().map(|volume| volume.name.as_str()).collect();
        resolver.report.add(
            Some(place(section)),
            "unknown-name",
            format!("the design `{}` has no volume `{name}`", design.name),
            "named by this background work",
            format!("use one of {}", crate::suggest::listed(known.into_iter())),
        );
    }
    found.map(|volume| volume.capacity)
}

/// The volumes of background work, also of work that is wrong in something else.
struct Touched {
    /// The one that is copied.
    copied: Option<String>,
    /// Those that files are written to, and how much.
    written: Vec<(String, Bytes)>,
}

impl Touched {
    /// By the work, or by what can be read of it.
    fn by(section: &Section<Background>, work: Option<&BackgroundWork>) -> Touched {
        if let Some(work) = work {
            let owned = |(volume, space): (&str, Bytes)| (volume.to_string(), space);
            return Touched {
                copied: match work {
                    BackgroundWork::Copy(copy) => Some(copy.from.clone()),
                    BackgroundWork::Load { .. } => None,
                },
                written: work.space().into_iter().map(owned).collect(),
            };
        }
        let (load, copy) = (&section.load, &section.copy);
        // Which of both is meant cannot be known.
        if load.is_present() && copy.is_present() {
            return Touched { copied: None, written: Vec::new() };
        }
        let size = |entry: &Entry<Bytes>| size_or(entry, SPACE).unwrap_or(Bytes::ZERO);
        let volumes = load.volumes.get().into_iter().flatten();
        let to_load = volumes.map(|volume| (volume.clone(), size(&load.working_set)));
        let to_copy = copy.to.get().map(|volume| (volume.clone(), size(&copy.space)));
        Touched { copied: copy.from.get().cloned(), written: to_load.chain(to_copy).collect() }
    }

    /// Whether a design has all of the volumes.
    fn is_within(&self, design: &DesignPlan) -> bool {
        let mut names = self.written.iter().map(|(volume, _)| volume).chain(&self.copied);
        names.all(|name| design.volumes.iter().any(|volume| volume.name == *name))
    }
}

/// A size that may be left out; `None` = it was refused.
fn size_or(entry: &Entry<Bytes>, default: Bytes) -> Option<Bytes> {
    match entry {
        Entry::Refused => None,
        Entry::Absent => Some(default),
        Entry::Given { value, .. } => Some(*value),
    }
}

fn place(section: &Section<Background>) -> Range<usize> {
    section.span.clone().unwrap_or(0..0)
}
