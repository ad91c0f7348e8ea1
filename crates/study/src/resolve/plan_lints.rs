//! Doubts about the whole plan: does it measure what it asks, and does it fit the host?

use underlay_core::{Bytes, Nanos};

use super::resolver::Resolver;
use super::server;
use crate::dialect::Dialect;
use crate::estimate::{self, saturating_sum};
use crate::finding::Severity;
use crate::plan::{Plan, WorkloadKind};
use crate::postgresql;

/// Adds the findings that need the complete plan.
pub(super) fn check(resolver: &mut Resolver<'_>, plan: &Plan) {
    doubt_cache(resolver, plan);
    doubt_working_set(resolver, plan);
    if plan.workload.kind.block().is_none() {
        doubt_checkpoints(resolver, plan);
    }
    doubt_disk(resolver, plan);
    doubt_memory_of_host(resolver, plan);
    doubt_duration(resolver, plan);
}

fn doubt_cache(resolver: &mut Resolver<'_>, plan: &Plan) {
    let Some(larger) = plan.workload.kind.read_again() else { return };
    for design in &plan.designs {
        let cache = design.engine.memory_limit.unwrap_or(Bytes(u64::MAX)).min(resolver.host.memory);
        let database = estimate::database(&plan.workload.kind);
        if cache == Bytes(u64::MAX) || database > cache {
            continue;
        }
        let place = match design.engine.memory_limit {
            Some(limit) if limit <= resolver.host.memory => "the memory limit",
            _ => "the memory of the host",
        };
        resolver.finding(
            Severity::Warning,
            "fits-cache",
            format!(
                "the database (about {database}) fits {place} ({cache}): after the warm-up hardly \
                 anything is read from storage"
            ),
            format!("raise {larger}, or lower engine.memory-limit to a third of the database"),
            None,
        );
    }
}

/// A ladder over homes that are fixed varies two things: load, and how much of the database is touched.
fn doubt_working_set(resolver: &mut Resolver<'_>, plan: &Plan) {
    let WorkloadKind::Tpcc(tpcc) = &plan.workload.kind else { return };
    let users = &plan.procedure.users;
    let (Some(&first), Some(&last)) = (users.iter().min(), users.iter().max()) else { return };
    let reached = |users| tpcc.home_warehouse.reachable(tpcc.warehouses, users);
    let (few, many) = (reached(first), reached(last));
    let is_read_from_storage = plan.estimates.working_set_ratio.is_some_and(|ratio| ratio > 1.0);
    if few == many || !is_read_from_storage {
        return;
    }
    resolver.finding(
        Severity::Warning,
        "working-set-grows",
        format!(
            "the working set grows with users: {first} reach {few} of {} warehouses, {last} reach {many}, so \
             that a rung changes both the load and what memory holds",
            tpcc.warehouses
        ),
        format!(
            "write home-warehouse = \"drawn\" in [workload.tpcc], or begin the ladder at {} users",
            tpcc.warehouses
        ),
        None,
    );
}

fn doubt_checkpoints(resolver: &mut Resolver<'_>, plan: &Plan) {
    // Nobody changes a page while backups are taken.
    if matches!(plan.workload.kind, WorkloadKind::Backup(_)) {
        return;
    }
    // InnoDB writes dirty pages back all the time, as its log fills.
    let Some((name, default)) = Dialect::of(plan.engine.kind).checkpoint_timeout else {
        return;
    };
    let timeout = plan
        .engine
        .settings
        .get(name)
        .and_then(|text| postgresql::time(text, 1_000_000_000))
        .unwrap_or(default);
    let procedure = &plan.procedure;
    if plan.workload.kind.job_sessions().is_some() {
        // How long it takes is what the run is to show; `measure` is only how long it may.
        resolver.finding(
            Severity::Note,
            "no-checkpoint",
            format!(
                "checkpoint_timeout is {timeout}: a job that is done sooner leaves dirty pages that \
                 have not been written back"
            ),
            "lower checkpoint_timeout, or make the job larger",
            None,
        );
        return;
    }
    let rungs = procedure.users.len() as u64;
    let loaded = Nanos(procedure.warm_up.0 + rungs * (procedure.ramp_up.0 + procedure.measure.0));
    if loaded < timeout {
        resolver.finding(
            Severity::Warning,
            "no-checkpoint",
            format!(
                "load lasts {loaded} per run and checkpoint_timeout is {timeout}: writing dirty pages \
                 back is left out of what is measured"
            ),
            "lower checkpoint_timeout, or lengthen warm-up and measure",
            None,
        );
    } else if procedure.measure < timeout {
        resolver.finding(
            Severity::Note,
            "checkpoint-in-some-windows",
            format!(
                "windows of {} and checkpoint_timeout of {timeout}: some windows hold a checkpoint, \
                 others none",
                procedure.measure
            ),
            "measure at least as long as checkpoint_timeout where the budget allows",
            None,
        );
    }
}

fn doubt_disk(resolver: &mut Resolver<'_>, plan: &Plan) {
    let free = resolver.host.free_space;
    let estimates = &plan.estimates;
    let worst = saturating_sum(estimates.disk_templates, estimates.disk_volumes_worst);
    if estimates.disk > free {
        resolver.report.add(
            None,
            "larger-than-free-space",
            format!("the study needs about {} of disk, the host has {free} free", estimates.disk),
            "",
            format!(
                "{} for the loaded database that runs start from, {} for the volumes of a run{}",
                estimates.disk_templates,
                estimates.disk_volumes,
                server::scale_help(resolver, estimates.disk.0 as f64 / free.0.max(1) as f64)
            ),
        );
    } else if worst > free {
        resolver.finding(
            Severity::Note,
            "disk-tight",
            format!("completely filled volumes would need {worst}, the host has {free} free"),
            format!("about {} are expected to be used", estimates.disk),
            None,
        );
    }
}

fn doubt_memory_of_host(resolver: &mut Resolver<'_>, plan: &Plan) {
    let (needed, host) = (plan.estimates.memory, resolver.host.memory);
    if needed > host {
        resolver.finding(
            Severity::Warning,
            "host-memory-tight",
            format!(
                "server, load generator and emulated devices want about {needed}, the host has \
                 {host}"
            ),
            "lower engine.memory-limit or the top of the ladder",
            None,
        );
    }
}

fn doubt_duration(resolver: &mut Resolver<'_>, plan: &Plan) {
    const LONG: Nanos = Nanos::from_secs(24 * 3600);
    if plan.estimates.duration > LONG {
        resolver.finding(
            Severity::Note,
            "long",
            format!("the study takes about {}", plan.estimates.duration),
            "a killed study resumes at its last finished step; --repeats, --users and --measure \
             shorten it",
            None,
        );
    }
}
