//! Several databases under test at once: each is resolved as if it were the study's only one, then the study around all of them.
//!
//! A `[[database]]` says what differs from the study's own `[engine]`, `[client]`, `[volumes]` and `[workload]`. Its study is the
//! text with these tables laid over them, so that every key and every check of a database holds here too, and no other part of
//! the resolver knows that there are several. Volumes, which all databases share a datastore for, are then checked together.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use underlay_core::Bytes;

use super::names::unsafe_because;
use super::procedure_keys::{Load, names_without_meaning};
use super::resolver::Resolver;
use super::role::{Member, Role};
use super::volume_choice::VolumeChoice;
use crate::entry::{Entry, Section};
use crate::file;
use crate::finding::{Finding, Severity};
use crate::host_view::HostView;
use crate::limits::DATABASES;
use crate::options::PlanOptions;
use crate::plan::{
    AxisPlan, DatabasePart, DatabasePlan, DatastoreKind, DesignPlan, EngineKind, HostCompute, Plan,
    Setting, volume_name,
};
use crate::problem::{Source, position};
use crate::reader::Keys;
use crate::report::Report;
use crate::section::Table;
use crate::suggest::listed;

/// A `[[database]]` that was resolved: one or several equal databases.
struct Resolved<'f> {
    /// As the study calls it.
    name: String,
    section: &'f file::Database,
    plan: Option<Plan>,
    volumes: Vec<(String, Vec<VolumeChoice>)>,
    span: Range<usize>,
}

/// Resolves a study, which `document` is the text of and `file` the content.
pub(crate) fn resolve(
    source: &Source,
    (document, file): (&DeTable<'_>, &file::Study),
    (options, axes): (&PlanOptions, &[AxisPlan]),
    host: &HostView<'_>,
    mut report: Report,
) -> (Option<Plan>, Report) {
    let Some(sections) = file.database.get() else {
        let mut resolver = Resolver::new(source, file, (options, axes), host, report);
        let plan = super::plan(&mut resolver);
        return (plan, resolver.report);
    };
    if sections.is_empty() {
        report.add(
            file.database.span(),
            "empty",
            "`database` is an empty list",
            "no database is named",
            "remove it, or write [[database]] with a name",
        );
    }
    let mut resolved = Vec::new();
    let (mut first_study, mut kind) = (None, None);
    let without_users = without_users(options);
    for (position, section) in sections.iter().enumerate() {
        let Some(name) = name_of(section, &mut report) else { continue };
        let Some(mut table) = laid_over(document, position) else { continue };
        let whole = table.clone();
        for of_all in OF_ALL {
            table.remove(of_all);
        }
        let is_job = is_job(&table);
        if is_job {
            keep_what_jobs_have(&mut table, document, position);
        }
        let study = read(&table, &mut report);
        let span = section.span.clone().unwrap_or(0..0);
        if !adds_up(&study, &mut kind, (&name, &span), &mut report) {
            continue;
        }
        if first_study.is_none() && !is_job {
            first_study = Some(read(&whole, &mut report));
        }
        let context = (if is_job { &without_users } else { options }, axes);
        let mut resolver = Resolver::new(source, &study, context, host, Report::default());
        resolver.role = Role::Member;
        let plan = super::plan(&mut resolver);
        let volumes = std::mem::take(&mut resolver.own_volumes);
        report.absorb(std::mem::take(&mut resolver.report));
        resolved.push(Resolved { name, section: &section.content, plan, volumes, span });
    }
    let Some(study) = first_study else {
        if let Some(first) = resolved.first() {
            report.at(
                &first.span,
                "conflict",
                "no database has users",
                "jobs run alongside the users of other databases, while those are measured",
                "give one of the databases users, or study the job with one database",
            );
        }
        return (None, report);
    };
    refuse_what_is_of_one(&resolved, file, &mut report);
    let members = members(&resolved, &mut report);
    let mut resolver = Resolver::new(source, &study, (options, axes), host, report);
    resolver.role = Role::Whole(&members);
    let mut plan = super::plan(&mut resolver);
    let mut report = std::mem::take(&mut resolver.report);
    if let Some(plan) = &mut plan {
        refuse_several_rungs(plan, file, &mut report);
        check_host(plan, &resolved, source, host, &mut report);
        plan.provenance = provenance(std::mem::take(&mut plan.provenance), &resolved);
        add_findings(plan, &resolved);
    }
    (plan.filter(|_| report.is_empty()), report)
}

/// The name of a `[[database]]`; `None` where it has none that can be used.
fn name_of(section: &Section<file::Database>, report: &mut Report) -> Option<String> {
    let refused = [&section.count, &section.per_host].into_iter().any(|it| *it == Entry::Refused);
    let file::Database { engine, client, volumes, workload, .. } = &section.content;
    // What is no table cannot be laid over one.
    let no_table = engine.refused || client.refused || volumes.refused || workload.refused;
    if section.refused || refused || no_table || section.hosts == Entry::Refused {
        return None;
    }
    let (name, span) = match &section.name {
        Entry::Refused => return None,
        Entry::Given { value, span } => (value, span),
        Entry::Absent => {
            report.add(
                section.span.clone(),
                "missing-key",
                "a database has no name",
                "`name` is missing",
                "add for example name = \"oltp\"",
            );
            return None;
        }
    };
    let reason = match name.contains('.') {
        // A dot ends the name of a volume in names of series.
        true => Some("contains '.'".to_string()),
        false => unsafe_because(name),
    };
    if let Some(reason) = reason {
        report.at(
            span,
            "unsafe-name",
            format!("`{name}` cannot be the name of a database"),
            reason,
            "use lower case letters, digits, `-` and `_`",
        );
        return None;
    }
    Some(name.clone())
}

/// Whether the workload of a study is a job.
fn is_job(table: &DeTable<'_>) -> bool {
    let Some(DeValue::Table(workload)) = table.get("workload").map(Spanned::get_ref) else {
        return false;
    };
    JOBS.iter().any(|job| workload.contains_key(*job))
}

/// Workloads that end by themselves.
const JOBS: [&str; 3] = ["batch", "warehouse", "backup"];
/// What a procedure says of users alone, or of how long they are measured, besides the plain keys that a job has not.
const OF_USERS: [&str; 7] =
    ["users", "warm-up-users", "measure", "search", "causal-check", "what-if", "cool-down"];

/// Takes what the study says of users and their clients out of the study of a job.
fn keep_what_jobs_have<'t>(table: &mut DeTable<'t>, document: &DeTable<'t>, position: usize) {
    table.remove("weights");
    if let Some(DeValue::Table(procedure)) = table.get_mut("procedure").map(Spanned::get_mut) {
        for of_users in OF_USERS.into_iter().chain(names_without_meaning(Load::Job)) {
            procedure.remove(of_users);
        }
    }
    // Its own client alone, which is refused where a job has none.
    table.remove("client");
    if let Some(own) = of_database(document, position)
        && let Some((key, client)) = own.get_key_value("client")
    {
        table.insert(key.clone(), client.clone());
    }
}

/// The options for the study of a job: those that say how users are measured are for the others.
fn without_users(options: &PlanOptions) -> PlanOptions {
    PlanOptions { users: None, warm_up: None, ramp_up: None, measure: None, ..options.clone() }
}

/// What names volumes of any database, or results of all of them: resolved with the whole study.
const OF_ALL: [&str; 4] = ["background", "fault", "io-profile", "published"];

fn read(table: &DeTable<'_>, report: &mut Report) -> file::Study {
    let mut found = Report::default();
    let mut keys = Keys::new(table, "", &mut found);
    let study = file::Study::read(&mut keys);
    keys.finish();
    report.absorb(found);
    study
}

/// The study as if the database at this position were its only one.
fn laid_over<'t>(document: &DeTable<'t>, position: usize) -> Option<DeTable<'t>> {
    Some(with_tables_of(document, of_database(document, position)?))
}

/// The tables of the database at this position.
fn of_database<'d, 't>(document: &'d DeTable<'t>, position: usize) -> Option<&'d DeTable<'t>> {
    let DeValue::Array(databases) = document.get("database")?.get_ref() else { return None };
    let DeValue::Table(own) = databases.get(position)?.get_ref() else { return None };
    Some(own)
}

/// A study with the tables of a database laid over its own.
fn with_tables_of<'t>(document: &DeTable<'t>, own: &DeTable<'t>) -> DeTable<'t> {
    let mut study = document.clone();
    let shared_kind = kind_of(document).unwrap_or_else(|| EngineKind::default().to_string());
    if kind_of(own).is_some_and(|kind| kind != shared_kind)
        && let Some(DeValue::Table(engine)) = study.get_mut("engine").map(Spanned::get_mut)
    {
        // Versions, programs and settings are those of another server.
        for of_another in ["version", "server-bin", "settings"] {
            engine.remove(of_another);
        }
    }
    if let Some(DeValue::Table(workload)) = own.get("workload").map(Spanned::get_ref)
        && let Some(DeValue::Table(shared)) = study.get_mut("workload").map(Spanned::get_mut)
    {
        // Users follow one kind of workload; a database with another one has nothing of the study's.
        let others: Vec<String> = shared
            .iter()
            .map(|(kind, _)| kind.get_ref().to_string())
            .filter(|kind| !workload.contains_key(kind.as_str()))
            .collect();
        for kind in others.iter().filter(|_| !workload.is_empty()) {
            shared.remove(kind.as_str());
        }
    }
    for (key, value) in own.iter() {
        if ["engine", "client", "volumes", "workload"].contains(&&**key.get_ref()) {
            lay(&mut study, key, value);
        }
    }
    study
}

/// The engine that a table names.
fn kind_of(table: &DeTable<'_>) -> Option<String> {
    let DeValue::Table(engine) = table.get("engine")?.get_ref() else { return None };
    match engine.get("kind")?.get_ref() {
        DeValue::String(kind) => Some(kind.to_string()),
        _ => None,
    }
}

/// Lays a value over what a table has; of tables each of their values.
fn lay<'t>(
    table: &mut DeTable<'t>,
    key: &Spanned<std::borrow::Cow<'t, str>>,
    value: &Spanned<DeValue<'t>>,
) {
    let name: &str = key.get_ref();
    if let DeValue::Table(own) = value.get_ref()
        && let Some(DeValue::Table(shared)) = table.get_mut(name).map(Spanned::get_mut)
    {
        own.iter().for_each(|(key, value)| lay(shared, key, value));
        return;
    }
    // The key is where its value is, which inserting alone would not change.
    table.remove(name);
    table.insert(key.clone(), value.clone());
}

/// Whether what a database does adds up with what those before it do; `first` is their kind of workload. Jobs are counted beside
/// the users and in no total. Reports what does not add up.
fn adds_up(
    study: &file::Study,
    first: &mut Option<&'static str>,
    (name, span): (&str, &Range<usize>),
    report: &mut Report,
) -> bool {
    let file::Workload { tpcc, sysbench, dvdstore, block, .. } = &study.workload.content;
    let of_users = [
        ("tpcc", tpcc.is_present()),
        ("sysbench", sysbench.is_present()),
        ("dvdstore", dvdstore.is_present()),
    ];
    let kind = of_users.into_iter().find(|(_, is_present)| *is_present).map(|(kind, _)| kind);
    let (message, label) = if block.is_present() {
        ("a block load has no database", "it loads the volumes of a design as they are")
    } else if first.is_some() && kind.is_some() && kind != *first {
        (
            "the databases have different kinds of workload",
            "their transactions do not add up to a total",
        )
    } else {
        *first = first.or(kind);
        return true;
    };
    report.at(
        span,
        "conflict",
        format!("{message} (database `{name}`)"),
        label,
        "give all databases users of the same kind of workload, or write a study for each",
    );
    false
}

/// Reports that jobs are carried out once, and not again for each number of users.
fn refuse_several_rungs(plan: &Plan, file: &file::Study, report: &mut Report) {
    let Some(job) = plan.databases.iter().find(|database| database.is_job()) else { return };
    let users = &plan.procedure.users;
    if users.len() > 1 {
        report.add(
            file.procedure.users.span(),
            "conflict",
            format!(
                "database `{}` has a job, and the users of the others rise {} times",
                job.name,
                users.len()
            ),
            "a job runs once per run, alongside one number of users",
            format!("write users = [{}]", users.last().copied().unwrap_or(1)),
        );
    }
    if !plan.procedure.time_dilation.is_none() {
        report.add(
            file.procedure.time_dilation.span(),
            "conflict",
            format!("database `{}` has a job, which cannot be slowed down", job.name),
            "time dilation is for studies of users alone",
            "remove procedure.time-dilation",
        );
    }
}

/// Reports what a study asks of one server alone.
fn refuse_what_is_of_one(resolved: &[Resolved<'_>], file: &file::Study, report: &mut Report) {
    let mut plans = resolved.iter().filter_map(|one| one.plan.as_ref());
    let Some(first) = plans.find(|plan| plan.workload.kind.job_sessions().is_none()) else {
        return;
    };
    let (asked, measured) = (&file.procedure, &first.procedure);
    let causal = asked.causal_check.span().or_else(|| asked.what_if.span());
    let one_server = [
        (measured.search.is_some(), asked.search.span.clone(), "search"),
        (measured.causal.is_some(), causal, "causal-check"),
    ];
    for (_, span, key) in one_server.into_iter().filter(|(is_asked, _, _)| *is_asked) {
        report.add(
            span,
            "conflict",
            format!("`procedure.{key}` has no meaning for several databases"),
            "it changes the load or the processors of one server and watches that server",
            "remove it, or write a study with one database",
        );
    }
}

/// The databases of all `[[database]]`.
fn members(resolved: &[Resolved<'_>], report: &mut Report) -> Vec<Member> {
    let most = usize::try_from(*DATABASES.end()).unwrap_or(usize::MAX);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut members = Vec::new();
    for one in resolved {
        let places = places(one, report);
        let numbers = places.iter().map(|(_, hosts)| hosts.len()).max();
        for number in 0..numbers.unwrap_or(1) {
            let name = match one.section.is_numbered() {
                true => format!("{}-{}", one.name, number + 1),
                false => one.name.clone(),
            };
            if !taken.insert(name.clone()) {
                let place = one.section.name.span().unwrap_or_else(|| one.span.clone());
                report.at(
                    &place,
                    "duplicate-name",
                    format!("two databases have the name `{name}`"),
                    "the second one",
                    "give each [[database]] a `name` of its own, or one of them a `count`",
                );
            }
            let host_in = |design: &str| {
                let of = places.iter().find(|(of, _)| of == design)?;
                of.1.get(number).cloned()
            };
            members.push(member(one, &name, host_in));
        }
    }
    let is_planned = resolved.iter().all(|one| one.plan.is_some());
    if members.is_empty()
        && is_planned
        && report.is_empty()
        && let Some(first) = resolved.first()
    {
        report.at(
            &first.span,
            "empty",
            "no database is left",
            "`per-host` is 0",
            "write 1 or more",
        );
    }
    if members.len() > most
        && let Some(last) = resolved.last()
    {
        report.at(
            &last.span,
            "out-of-range",
            format!("the study has {} databases", members.len()),
            format!("at most {most} can be under test at once"),
            "lower `count` or `per-host`",
        );
    }
    members
}

/// The databases of a `[[database]]` in each design: one entry for each of them, with the host that it is placed on.
fn places(one: &Resolved<'_>, report: &mut Report) -> Vec<(String, Vec<Option<String>>)> {
    let section = one.section;
    let Some(plan) = &one.plan else { return Vec::new() };
    let names = plan.designs.iter().map(|design| design.name.clone());
    if !section.is_placed() {
        let count = section.count.get().copied().unwrap_or(1);
        return names.map(|name| (name, vec![None; count as usize])).collect();
    }
    let mut refuse = |message: String, label: &str, help: &str| {
        report.at(&one.span, "conflict", message, label, help);
    };
    if !section.count.is_absent() {
        refuse(
            format!("database `{}` has a `count` and a place", one.name),
            "their number follows from the hosts",
            "keep `count`, or `per-host` and `hosts`",
        );
        return Vec::new();
    }
    let per_host = section.per_host.get().copied().unwrap_or(1);
    let mut places = Vec::new();
    for design in &plan.designs {
        let DatastoreKind::Cluster(cluster) = &design.kind else {
            refuse(
                format!("database `{}` cannot be placed on a host of `{}`", one.name, design.name),
                "this design is not a cluster and has no hosts",
                "write `count` instead of `per-host` and `hosts`",
            );
            continue;
        };
        let hosts: Vec<&String> = cluster.spec.hosts.iter().map(|host| &host.name).collect();
        let chosen = section.hosts.get();
        let unknown = chosen.and_then(|chosen| chosen.iter().find(|host| !hosts.contains(host)));
        if let Some(unknown) = unknown {
            refuse(
                format!("design `{}` has no host `{unknown}`", design.name),
                &format!("its hosts are {}", listed(hosts.iter().map(|host| host.as_str()))),
                "name hosts that every design has, or write `per-host` without `hosts`",
            );
            continue;
        }
        let on = hosts.into_iter().filter(|host| chosen.is_none_or(|it| it.contains(host)));
        let on = on.flat_map(|host| (0..per_host).map(move |_| Some(host.clone())));
        places.push((design.name.clone(), on.collect()));
    }
    places
}

/// A database, which is in a design where that has a place for it.
fn member(
    one: &Resolved<'_>,
    name: &str,
    host_in: impl Fn(&str) -> Option<Option<String>>,
) -> Member {
    let volumes = one
        .volumes
        .iter()
        .filter(|(design, _)| one.plan.is_none() || host_in(design).is_some())
        .map(|(design, volumes)| {
            let volumes = volumes.iter().map(|volume| volume.of_database(name)).collect();
            (design.clone(), volumes)
        })
        .collect();
    let plan = one.plan.as_ref().and_then(|plan| plan.databases.first()).cloned();
    let named = |mut plan: DatabasePlan| {
        plan.parts.retain_mut(|part| {
            for volume in &mut part.volumes {
                volume.name = volume_name(name, &volume.name);
            }
            let host = host_in(&part.design);
            part.host = host.clone().flatten();
            host.is_some()
        });
        DatabasePlan { name: name.to_string(), ..plan }
    };
    Member { volumes, plan: plan.map(named) }
}

/// What all databases take of the host together.
fn check_host(
    plan: &mut Plan,
    resolved: &[Resolved<'_>],
    source: &Source,
    host: &HostView<'_>,
    report: &mut Report,
) {
    let span = resolved.last().map(|last| last.span.clone());
    let line = span.as_ref().map(|span| position(&source.text, span.start).0);
    for design in &plan.designs {
        let parts = || plan.databases.iter().filter_map(|database| database.part(design));
        let limits = parts().filter_map(|part| part.engine.memory_limit);
        let memory = Bytes(limits.fold(0, |sum: u64, limit| sum.saturating_add(limit.0)));
        if memory > host.memory {
            report.add(
                span.clone(),
                "larger-than-host",
                format!("the memory limits of all databases are more than the host has ({memory})"),
                format!("the host has {}", host.memory),
                "lower engine.memory-limit or `count`, or choose a smaller --scale",
            );
        }
        check_hosts_of(design, parts(), span.as_ref(), report);
        let cpus: f64 = parts().filter_map(|part| part.engine.whole_cpus()).sum();
        if cpus > f64::from(host.cpus) {
            let finding = Finding {
                severity: Severity::Warning,
                code: "processors-shared",
                text: format!(
                    "the databases may use {cpus} processors together, the host has {}: they take them from each other",
                    host.cpus
                ),
                remedy: "lower engine.cpus or `count`, unless that is what the study asks"
                    .to_string(),
                line,
            };
            if !plan.findings.contains(&finding) {
                plan.findings.push(finding);
            }
        }
    }
}

/// A database against the host of the cluster that it is placed on.
fn check_hosts_of<'p>(
    design: &DesignPlan,
    parts: impl Iterator<Item = &'p DatabasePart>,
    span: Option<&Range<usize>>,
    report: &mut Report,
) {
    let DatastoreKind::Cluster(cluster) = &design.kind else { return };
    for part in parts {
        let host = cluster.compute.iter().find(|it| part.host.as_ref() == Some(&it.host));
        let Some(compute) = host else { continue };
        let HostCompute { host, memory, .. } = compute;
        let too_many = part.engine.cpus.zip(compute.threads()).filter(|(own, all)| own > all);
        let too_much = part.engine.memory_limit.zip(*memory).filter(|(own, all)| own > all);
        let (what, label) = match (too_many, too_much) {
            (Some((own, all)), _) => ("processors", format!("{own} of {all}")),
            (None, Some((own, all))) => ("memory", format!("{own} of {all}")),
            (None, None) => continue,
        };
        report.add(
            span.cloned(),
            "larger-than-host",
            format!(
                "a database may use more {what} than host `{host}` of design `{}` has",
                design.name
            ),
            label,
            "lower engine.cpus or engine.memory-limit, or raise `cores` or `memory` of the host",
        );
        // Hosts are often equal.
        return;
    }
}

/// The doubts of each database that are not those of the first one.
fn add_findings(plan: &mut Plan, resolved: &[Resolved<'_>]) {
    for one in resolved {
        for finding in one.plan.iter().flat_map(|plan| &plan.findings) {
            if !plan.findings.contains(finding) {
                let text = format!("database `{}`: {}", one.name, finding.text);
                plan.findings.push(Finding { text, ..finding.clone() });
            }
        }
    }
    plan.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

/// Each value with its origin: once where it is the same for all databases, else per `[[database]]`.
fn provenance(whole: Vec<Setting>, resolved: &[Resolved<'_>]) -> Vec<Setting> {
    let row_of = |one: &Resolved<'_>, path: &str| {
        one.plan.as_ref()?.provenance.iter().find(|row| row.path == path).cloned()
    };
    let mut rows = Vec::new();
    let mut done: BTreeSet<String> = BTreeSet::new();
    let of_databases =
        resolved.iter().flat_map(|one| one.plan.iter()).flat_map(|it| &it.provenance);
    for row in whole.iter().chain(of_databases) {
        if !done.insert(row.path.clone()) {
            continue;
        }
        // A job has no users, and says nothing of how they are measured.
        let is_of_users = row.path.starts_with("procedure.");
        let says = |one: &&Resolved<'_>| {
            let own = one.plan.as_ref().filter(|_| is_of_users);
            own.is_none_or(|plan| plan.workload.kind.job_sessions().is_none())
        };
        let each: Vec<(&str, Option<Setting>)> = resolved
            .iter()
            .filter(says)
            .map(|one| (one.name.as_str(), row_of(one, &row.path)))
            .collect();
        if each.windows(2).all(|two| two[0].1 == two[1].1) {
            rows.push(row.clone());
            continue;
        }
        for (database, own) in each {
            rows.extend(
                own.map(|own| Setting { path: format!("database.{database}.{}", own.path), ..own }),
            );
        }
    }
    rows
}
