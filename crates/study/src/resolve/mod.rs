//! From file types to the plan: layers are merged, options and scale applied, everything is checked.
//!
//! A section is a function in a file of its own; here is their order. Nothing stops at the first problem.
//! A part that cannot be resolved is `None` and silences the checks that would need it; a plan exists only
//! when no problem was found.

mod background;
mod block_procedure;
mod chosen;
mod client;
pub(crate) mod cluster;
pub(crate) mod databases;
mod datastore;
pub(crate) mod design;
mod design_draft;
mod design_names;
mod device_profile;
mod engine;
mod faults;
mod io_profiles;
mod job_procedure;
mod moment;
mod names;
mod placement;
mod plan_lints;
mod procedure;
mod procedure_choice;
mod procedure_keys;
mod published;
mod repeats;
mod resolver;
mod role;
mod schedule;
mod search;
mod server;
mod start;
mod time_dilation;
mod time_range;
mod volume_choice;
mod volume_scale;
mod volumes;
mod weights;
mod workload;

use underlay_core::{Bytes, Evidence, RootSeed};

use crate::estimate;
use crate::plan::{DatabasePart, DatabasePlan, DesignPlan, EnginePlan, Plan, Sizes, WorkloadPlan};

use chosen::{Chosen, Layer};
pub(crate) use names::{proposed, unsafe_because};
pub(crate) use resolver::Resolver;
use role::Role;
pub(crate) use schedule::schedule;

/// The weaker of two kinds counts for the whole study.
const _: () = assert!((Evidence::Measured as u8) < Evidence::Emulated as u8);

/// The plan, unless there is any problem.
pub fn plan(resolver: &mut Resolver<'_>) -> Option<Plan> {
    let identity = identity(resolver);
    let seed = seed(resolver);
    let full_engine = engine::of_study(resolver);
    let engine = full_engine.scaled_whole(resolver.scale);
    if !resolver.is_block_load() {
        engine.record(&mut resolver.provenance);
    }
    let client = client::of_study(resolver);
    let full_workload = workload::resolve(resolver);
    let workload = full_workload.as_ref().map(|full| workload::scale(resolver, full));
    let procedure = procedure::resolve(resolver, workload.as_ref());
    let designs = design::designs(resolver, (&engine, &client), workload.as_ref(), &procedure);
    start::resolve(resolver, &designs);
    let kind = workload.as_ref().map(|workload| workload.kind());
    let weights = weights::resolve(resolver, &designs, &procedure, kind.as_ref());
    let background = background::resolve(resolver, &designs, &procedure, kind.as_ref());
    let faults = faults::resolve(resolver, &designs, &procedure);
    background::refuse_background_with_power_cuts(resolver, &background, &faults);
    time_dilation::check(resolver, procedure.time_dilation.as_ref(), &designs, &background);
    // One of several databases knows neither the faults nor the background work that designs may differ in.
    if !matches!(resolver.role, Role::Member) {
        design::doubt_designs(resolver, &designs, &background, &faults);
    }
    let published = published::resolve(resolver);
    if let Some(repeats) = &procedure.repeats {
        let points: usize = resolver.axes.iter().map(|axis| axis.points.len()).product();
        repeats::check_repeats_of(resolver, repeats, designs.len() * points);
    }

    let (name, title, question) = identity?;
    let (full_workload, workload) = (full_workload?, workload?);
    let (procedure, ladder) = (procedure.plan?, procedure.ladder?);
    if !resolver.report.is_empty() || designs.is_empty() {
        return None;
    }
    let workload_plan = workload.plan(seed?);
    let full_size = Sizes {
        cpus: full_engine.cpus(),
        memory_limit: full_engine.memory_limit(),
        population: full_workload.kind().population(),
        database: estimate::database(&full_workload.kind()),
        users: ladder.full,
    };
    let size = Sizes {
        cpus: engine.cpus(),
        memory_limit: engine.memory_limit(),
        population: workload_plan.kind.population(),
        database: estimate::database(&workload_plan.kind),
        users: procedure.users.clone(),
    };
    let engine = engine.plan()?;
    let databases = databases(resolver, &designs, (&engine, &workload_plan), (&full_size, &size));
    let (full_size, size) = (sum_of(&databases, full_size, true), sum_of(&databases, size, false));
    let mut plan = Plan {
        name,
        title,
        question,
        deviations: resolver.file.deviations.get().cloned().unwrap_or_default(),
        seed: RootSeed(seed?),
        evidence: designs.iter().map(|design| design.evidence).max()?,
        engine,
        schedule: schedule(designs.len(), &procedure, RootSeed(seed?)),
        workload: workload_plan,
        databases,
        procedure,
        weights,
        background,
        faults,
        scale: resolver.scale,
        full_size,
        size,
        estimates: estimate::Estimates::default(),
        published,
        findings: Vec::new(),
        out: resolver.options.out.clone(),
        provenance: Vec::new(),
        source: resolver.source.clone(),
        options: resolver.options.clone(),
        designs,
        axes: Vec::new(),
        points: Vec::new(),
    };
    plan.estimates = estimate::estimates(&plan, resolver.host);
    plan_lints::check(resolver, &plan);
    if !resolver.report.is_empty() {
        return None;
    }
    plan.findings = std::mem::take(&mut resolver.findings);
    plan.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    plan.provenance = std::mem::take(&mut resolver.provenance);
    Some(plan)
}

/// The databases of the plan: those that were resolved before, or the only one.
fn databases(
    resolver: &Resolver<'_>,
    designs: &[DesignPlan],
    (engine, workload): (&EnginePlan, &WorkloadPlan),
    (full_size, size): (&Sizes, &Sizes),
) -> Vec<DatabasePlan> {
    if let Role::Whole(members) = resolver.role {
        return members.iter().flat_map(|member| member.plan.clone()).collect();
    }
    let part = |design: &DesignPlan| DatabasePart {
        design: design.name.clone(),
        engine: design.engine.clone(),
        client: design.client,
        volumes: design.volumes.clone(),
        host: None,
    };
    vec![DatabasePlan {
        name: String::new(),
        engine: engine.clone(),
        workload: workload.clone(),
        full_size: full_size.clone(),
        size: size.clone(),
        parts: designs.iter().map(part).collect(),
    }]
}

fn identity(resolver: &mut Resolver<'_>) -> Option<(String, String, String)> {
    let name = resolver.require("name", &resolver.file.name, "name = \"my-study\"");
    let question =
        resolver.require("question", &resolver.file.question, "question = \"Does ...?\"");
    let title = resolver.pick("title", &[(Layer::File, &resolver.file.title)]).found();
    if let Some(name) = &name {
        names::check(resolver, name);
    }
    if let Some(question) = &question
        && question.value.trim().is_empty()
    {
        question.problem(
            &mut resolver.report,
            "empty",
            "`question` is empty",
            "a study without a question has no answer",
            "ask what the comparison is to show",
        );
        return None;
    }
    let (name, question) = (name?, question?);
    for chosen in [Some(&name), title.as_ref(), Some(&question)].into_iter().flatten() {
        resolver.provenance.push(chosen.setting(chosen.value.clone()));
    }
    let title = title.map_or_else(|| name.value.clone(), |title| title.value);
    Some((name.value, title, question.value))
}

fn seed(resolver: &mut Resolver<'_>) -> Option<u64> {
    let seed = match resolver.options.seed {
        Some(seed) => Chosen::command_line(seed, "seed", "--seed"),
        None => resolver
            .pick(
                "seed",
                &[(Layer::File, &resolver.file.seed), (Layer::Default, &resolver.defaults.seed)],
            )
            .found()?,
    };
    resolver.provenance.push(seed.setting(seed.value.to_string()));
    Some(seed.value)
}

/// What all databases have together: `size` where there is one. Its users are those of each.
fn sum_of(databases: &[DatabasePlan], size: Sizes, is_full: bool) -> Sizes {
    let sizes: Vec<&Sizes> = databases
        .iter()
        .map(|database| if is_full { &database.full_size } else { &database.size })
        .collect();
    if sizes.len() < 2 {
        return size;
    }
    let limits = sizes.iter().map(|size| size.memory_limit);
    let mut population = size.population;
    let alike = sizes.iter().filter(|size| size.population.unit == population.unit);
    population.count = alike.map(|size| size.population.count).sum();
    Sizes {
        cpus: sizes.iter().map(|size| size.cpus).sum(),
        memory_limit: limits
            .map(|limit| limit.map(|limit| limit.0))
            .sum::<Option<u64>>()
            .map(Bytes),
        population,
        database: Bytes(sizes.iter().map(|size| size.database.0).sum()),
        users: size.users,
    }
}
