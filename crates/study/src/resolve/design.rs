//! The storage designs: names, the built-ins they start from, and what makes them worth comparing.

use underlay_core::Evidence;

use super::chosen::{Layer, pick};
use super::client::{self, ClientChoice};
use super::cluster;
use super::datastore;
use super::design_draft::{Draft, drafts};
use super::design_names::design_names;
use super::engine::{self, EngineChoice};
use super::placement;
use super::procedure_choice::ProcedureChoice;
use super::resolver::Resolver;
use super::server;
use super::volume_choice::VolumeChoice;
use super::volumes;
use super::workload::WorkloadChoice;
use crate::background_plan::BackgroundPlan;
use crate::builtin;
use crate::entry::Entry;
use crate::fault_plan::FaultPlan;
use crate::file::Design;
use crate::finding::Severity;
use crate::plan::{ClientPlan, DatastoreKind, DesignPlan, Setting, VolumePlan};
use crate::suggest::{listed, nearest};

/// All designs that are in order, after the command line's choice among them.
pub(super) fn designs(
    resolver: &mut Resolver<'_>,
    (engine, client): (&EngineChoice, &ClientChoice),
    workload: Option<&WorkloadChoice>,
    procedure: &ProcedureChoice,
) -> Vec<DesignPlan> {
    let Some(sections) = resolver.file.design.get() else {
        if resolver.file.design.is_absent() {
            no_design(resolver);
        }
        server::check_engine(resolver, engine, client, procedure);
        return Vec::new();
    };
    if sections.is_empty() {
        no_design(resolver);
    }
    let drafts = drafts(resolver, sections);
    check_wanted(resolver);
    let wanted: Vec<&Draft<'_>> =
        drafts.iter().filter(|draft| is_wanted(resolver, &draft.name.value)).collect();
    let mut plans = Vec::new();
    for draft in &wanted {
        plans.extend(resolve(resolver, draft, (engine, client), workload, procedure));
    }
    if wanted.is_empty() {
        server::check_engine(resolver, engine, client, procedure);
    }
    let clients: Vec<ClientPlan> = plans.iter().map(|plan| plan.client).collect();
    client::check_study_client(resolver, client, &clients);
    plans
}

/// Where the volumes of the only design live, without a study around it.
pub(crate) fn design_alone(resolver: &mut Resolver<'_>) -> Option<DatastoreKind> {
    let sections = resolver.file.design.get()?;
    let drafts = drafts(resolver, sections);
    let draft = drafts.first()?;
    let kind = datastore::resolve(
        resolver,
        draft,
        &format!("design.{}", draft.name.value),
        &mut Vec::new(),
    )?;
    resolver.report.is_empty().then_some(kind)
}

fn no_design(resolver: &mut Resolver<'_>) {
    resolver.report.add(
        Some(0..0),
        "missing-key",
        "the study has no storage design",
        "[[design]] is missing",
        format!(
            "add two or more, for example [[design]] with use = \"kingston-nvme\"; built-in are {}",
            listed(builtin::design_names())
        ),
    );
}

fn is_wanted(resolver: &Resolver<'_>, name: &str) -> bool {
    resolver.options.designs.as_ref().is_none_or(|wanted| wanted.iter().any(|w| w == name))
}

fn check_wanted(resolver: &mut Resolver<'_>) {
    let Some(wanted) = &resolver.options.designs else { return };
    let names: Vec<String> = design_names(resolver).into_iter().flatten().collect();
    for wanted in wanted.iter().filter(|wanted| !names.contains(wanted)) {
        let known = names.iter().map(String::as_str);
        let help = match nearest(wanted, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the designs are {}", listed(known)),
        };
        resolver.report.add(
            None,
            "unknown-name",
            format!("`--designs` names `{wanted}`, which the study does not have"),
            "",
            help,
        );
    }
}

fn resolve(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    (study_engine, study_client): (&EngineChoice, &ClientChoice),
    workload: Option<&WorkloadChoice>,
    procedure: &ProcedureChoice,
) -> Option<DesignPlan> {
    let path = format!("design.{}", draft.name.value);
    let mut rows: Vec<Setting> = Vec::new();
    let title = design_text(resolver, draft, &path, "title", |design| &design.title, &mut rows);
    let description =
        design_text(resolver, draft, &path, "description", |design| &design.description, &mut rows);
    let source = design_text(resolver, draft, &path, "source", |design| &design.source, &mut rows);
    let kind = datastore::resolve(resolver, draft, &path, &mut rows);
    let own_volumes = volumes::resolve(resolver, draft, &path, kind.as_ref(), &mut rows);
    let volumes = placement::volumes_of_all(resolver, &draft.name.value, own_volumes.as_deref());
    let (engine, overrides) = match resolver.is_block_load() {
        true => (study_engine.clone(), Vec::new()),
        false => design_engine(resolver, draft, &path, study_engine, &mut rows),
    };
    let own_client = design_client(resolver, draft, &path, &mut rows);
    let client = own_client.over(study_client);
    server::check_engine(resolver, &engine, &client, procedure);
    client::check_client(resolver, (&client, &own_client), &engine, workload, procedure);
    if let (Some(kind), Some(volumes), Some(own_volumes)) = (&kind, &volumes, &own_volumes) {
        // What one of several databases needs is checked with what all of them need.
        if !resolver.is_member() {
            volumes::check_capacity(resolver, kind, volumes);
        }
        volumes::check_contents(resolver, own_volumes, &engine, workload);
        if let (DatastoreKind::Cluster(plan), false) = (kind, resolver.is_member()) {
            cluster::check_placement(resolver, draft, plan, volumes);
            cluster::check_compute(resolver, draft, plan);
        }
    }
    if let Some(own_volumes) = own_volumes {
        resolver.own_volumes.push((draft.name.value.clone(), own_volumes));
    }
    resolver.provenance.extend(rows);
    let (kind, volumes) = (kind?, volumes?);
    Some(DesignPlan {
        title: title.unwrap_or_else(|| draft.name.value.clone()),
        name: draft.name.value.clone(),
        description: description.unwrap_or_default(),
        source: source.unwrap_or_default(),
        based_on: draft.base.map(|(name, _)| name.to_string()),
        evidence: match kind {
            DatastoreKind::Path { .. } => Evidence::Measured,
            DatastoreKind::Emulated { .. } | DatastoreKind::Cluster(_) => Evidence::Emulated,
        },
        volume_hosts: match &kind {
            DatastoreKind::Cluster(plan) => {
                placement::volume_hosts(resolver, &draft.name.value, &plan.spec, volumes.len())
            }
            DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => Vec::new(),
        },
        kind: on_cores_of(kind, &engine),
        volumes: volumes.into_iter().map(VolumeChoice::plan).collect(),
        engine: engine.plan()?,
        engine_overrides: overrides,
        client: client.plan(),
        variant: None,
    })
}

/// The datastore on hosts whose cores are as fast as the server's.
fn on_cores_of(mut kind: DatastoreKind, engine: &EngineChoice) -> DatastoreKind {
    if let DatastoreKind::Cluster(plan) = &mut kind {
        plan.compute.iter_mut().for_each(|host| host.core_speed = engine.core_speed());
    }
    kind
}

fn design_text(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    key: &str,
    entry: impl Fn(&Design) -> &Entry<String>,
    rows: &mut Vec<Setting>,
) -> Option<String> {
    let path = format!("{path}.{key}");
    let mut layers = vec![(Layer::File, entry(draft.file))];
    if let Some((name, base)) = draft.base {
        layers.push((Layer::Builtin(name), entry(base)));
    }
    let mut chosen = pick(resolver.text, &path, &layers).found()?;
    if key == "title" && draft.shares_title {
        // Reports call designs by their titles.
        chosen.value = format!("{} ({})", chosen.value, draft.name.value);
    }
    // Long texts stand in the plan; the table needs only the titles.
    if key == "title" {
        rows.push(chosen.setting(chosen.value.clone()));
    }
    Some(chosen.value)
}

fn design_engine(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    study_engine: &EngineChoice,
    rows: &mut Vec<Setting>,
) -> (EngineChoice, Vec<String>) {
    let mut layers = vec![(Layer::File, &draft.file.engine.content)];
    if let Some((name, base)) = draft.base {
        layers.push((Layer::Builtin(name), &base.engine.content));
    }
    let own = engine::resolve(resolver, &format!("{path}.engine"), &layers).scaled(resolver.scale);
    own.record(rows);
    let overrides = own.decided();
    (own.over(study_engine), overrides)
}

fn design_client(
    resolver: &mut Resolver<'_>,
    draft: &Draft<'_>,
    path: &str,
    rows: &mut Vec<Setting>,
) -> ClientChoice {
    let mut layers = vec![(Layer::File, &draft.file.client.content)];
    if let Some((name, base)) = draft.base {
        layers.push((Layer::Builtin(name), &base.client.content));
    }
    let own = client::resolve(resolver, &format!("{path}.client"), &layers);
    own.record(rows);
    own
}

/// Designs that make no comparison; faults can be all that designs differ in.
pub(super) fn doubt_designs(
    resolver: &mut Resolver<'_>,
    plans: &[DesignPlan],
    background: &[BackgroundPlan],
    faults: &[FaultPlan],
) {
    if let [only] = plans
        && resolver.axes.is_empty()
    {
        resolver.finding(
            Severity::Warning,
            "single-design",
            format!("`{}` is the only design: nothing is compared", only.name),
            "add a second [[design]]",
            None,
        );
    }
    for (index, plan) in plans.iter().enumerate() {
        for (before, earlier) in plans[..index].iter().enumerate() {
            let mut concerned = faults
                .iter()
                .map(|fault| &fault.designs)
                .chain(background.iter().map(|work| &work.designs));
            let treated_alike =
                concerned.all(|designs| designs.contains(&before) == designs.contains(&index));
            if same(earlier, plan) && treated_alike {
                resolver.finding(
                    Severity::Warning,
                    "identical-designs",
                    format!("designs `{}` and `{}` differ in nothing", earlier.name, plan.name),
                    "fine for finding out how large chance differences are; otherwise change one of them",
                    None,
                );
            }
        }
    }
    let mixed = plans.iter().any(|plan| plan.evidence != plans[0].evidence);
    if mixed {
        resolver.finding(
            Severity::Warning,
            "mixed-evidence",
            "measured and emulated designs are compared with each other",
            "read the comparison as a check of the emulation, not of the storage",
            None,
        );
    }
}

/// Whether two designs are the same but for their names.
fn same(a: &DesignPlan, b: &DesignPlan) -> bool {
    let kind = match (&a.kind, &b.kind) {
        (DatastoreKind::Path { directory: a }, DatastoreKind::Path { directory: b }) => a == b,
        (
            DatastoreKind::Emulated { devices: a, link: l, durability: x, backing: p },
            DatastoreKind::Emulated { devices: b, link: m, durability: y, backing: q },
        ) => {
            let equal = a.iter().map(|(_, d)| d).eq(b.iter().map(|(_, d)| d));
            equal && l == m && x == y && p == q
        }
        (DatastoreKind::Cluster(a), DatastoreKind::Cluster(b)) => a == b,
        _ => false,
    };
    let volume = |volume: &VolumePlan| (volume.name.clone(), volume.capacity, volume.file_system);
    let servers = a.engine == b.engine && a.client == b.client;
    kind && servers && a.volumes.iter().map(volume).eq(b.volumes.iter().map(volume))
}
