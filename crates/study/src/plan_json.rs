//! The plan as JSON, for the record and for programs, and the way back to study and options.
//!
//! Numbers carry their unit in their name (`measure_ns`, `capacity_bytes`). Device profiles and the study
//! keep the form of their files. A plan is not read back value by value: a resumed study is planned again
//! from the recorded text and options, which gives the same plan or a reason why not.

mod faults;

use serde_json::{Map, Value, json};
use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{ClusterSpec, HostSpec};
use underlay_model::{DeviceProfile, DiskGroupSpec};
use underlay_workload::dvdstore::Behaviour;

use crate::background_plan::BackgroundPlan;
use crate::finding::Finding;
use crate::options::PlanOptions;
use crate::parse::Study;
use crate::plan::{
    ClusterPlan, DatastoreKind, DesignPlan, EnginePlan, Estimates, Origin, Pacing, Plan,
    PublishedSeries, Scale, Setting, Sizes, VolumePlan, WorkloadKind,
};
use crate::problem::Source;
use crate::profile_text::profile_toml;
use crate::weights_plan::WeightsPlan;
use crate::words::Words;

/// Version of the JSON form. It grows when a reader of the former version would misunderstand.
pub const PLAN_FORMAT: u64 = 1;

/// Why a recorded plan cannot be planned again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordedPlanError {
    /// Written by another version.
    #[error("the plan has format {0}, this program knows format {PLAN_FORMAT}")]
    UnknownFormat(u64),
    /// Not a plan, or a damaged one.
    #[error("the recorded plan has no usable `{0}`")]
    Damaged(&'static str),
}

/// The plan as JSON.
pub fn plan_json(plan: &Plan) -> Value {
    let procedure = &plan.procedure;
    json!({
        "format": PLAN_FORMAT,
        "name": plan.name,
        "title": plan.title,
        "question": plan.question,
        "seed": plan.seed.0,
        "evidence": plan.evidence.as_str(),
        "scale": plan.scale.to_string(),
        "full_size": sizes(&plan.full_size),
        "size": sizes(&plan.size),
        "engine": engine(&plan.engine),
        "designs": plan.designs.iter().map(design).collect::<Vec<_>>(),
        "workload": workload(plan),
        "procedure": {
            "users": procedure.users,
            "settle_ns": procedure.settle.0,
            "warm_up_ns": procedure.warm_up.0,
            "ramp_up_ns": procedure.ramp_up.0,
            "measure_ns": procedure.measure.0,
            "search": procedure.search.as_ref().map(|search| json!({
                "slo": search.objective.to_string(),
                "quantile": search.objective.quantile,
                "limit_ns": search.objective.limit.0,
                "resolution": search.resolution,
                "settle_ns": search.settle.0,
                "measure_ns": search.measure.0,
            })),
            "repeats": procedure.repeats,
            "order": procedure.order.as_str(),
        },
        "outcome": outcome(plan),
        "weights": plan.weights.iter().map(|change| weights(plan, change)).collect::<Vec<_>>(),
        "background": plan.background.iter().map(|work| background(plan, work)).collect::<Vec<_>>(),
        "faults": plan.faults.iter().map(|fault| faults::fault(plan, fault)).collect::<Vec<_>>(),
        "schedule": plan
            .schedule
            .iter()
            .map(|run| json!({ "design": run.design, "repeat": run.repeat }))
            .collect::<Vec<_>>(),
        "estimates": estimates(&plan.estimates),
        "published": plan.published.iter().map(published).collect::<Vec<_>>(),
        "findings": plan.findings.iter().map(finding).collect::<Vec<_>>(),
        "provenance": plan.provenance.iter().map(setting).collect::<Vec<_>>(),
        "study": { "name": plan.source.name, "text": plan.source.text },
        "options": options_json(&plan.options),
    })
}

/// A study file as JSON: its text, and its values as the file has them.
pub fn study_json(study: &Study) -> Value {
    let source = study.source();
    json!({ "name": source.name, "text": source.text, "values": values_of(&source.text) })
}

/// The text and the options that a recorded plan was made from.
///
/// # Errors
/// When the JSON is not a plan of a known format.
pub fn recorded_study(plan: &Value) -> Result<(Source, PlanOptions), RecordedPlanError> {
    match plan["format"].as_u64() {
        Some(PLAN_FORMAT) => {}
        Some(other) => return Err(RecordedPlanError::UnknownFormat(other)),
        None => return Err(RecordedPlanError::Damaged("format")),
    }
    let text = |key: &str| plan["study"][key].as_str().map(str::to_string);
    let source = Source {
        name: text("name").ok_or(RecordedPlanError::Damaged("study.name"))?,
        text: text("text").ok_or(RecordedPlanError::Damaged("study.text"))?,
    };
    let options = plan["options"].as_object().ok_or(RecordedPlanError::Damaged("options"))?;
    Ok((source, options_from(options)?))
}

fn sizes(sizes: &Sizes) -> Value {
    json!({
        "cpus": sizes.cpus,
        "memory_limit_bytes": sizes.memory_limit.map(|limit| limit.0),
        "population": { "count": sizes.population.count, "unit": sizes.population.unit },
        "database_bytes": sizes.database.0,
        "users": sizes.users,
    })
}

fn engine(engine: &EnginePlan) -> Value {
    json!({
        "kind": engine.kind.as_str(),
        "version": engine.version,
        "settings": engine.settings,
        "memory_limit_bytes": engine.memory_limit.map(|limit| limit.0),
        "cpus": engine.cpus,
        "server_bin": engine.server_bin,
    })
}

fn design(design: &DesignPlan) -> Value {
    json!({
        "name": design.name,
        "title": design.title,
        "description": design.description,
        "source": design.source,
        "based_on": design.based_on,
        "evidence": design.evidence.as_str(),
        "datastore": datastore(&design.kind),
        "volumes": design.volumes.iter().map(volume).collect::<Vec<_>>(),
        "engine": engine(&design.engine),
        "engine_overrides": design.engine_overrides,
    })
}

fn datastore(kind: &DatastoreKind) -> Value {
    match kind {
        DatastoreKind::Path { directory } => json!({ "path": { "directory": directory } }),
        DatastoreKind::Emulated { devices, durability, backing } => {
            let device = |(name, profile): &(String, DeviceProfile)| {
                let profile = values_of(&profile_toml(profile));
                json!({ "name": name, "profile": profile })
            };
            json!({ "emulated": {
                "devices": devices.iter().map(device).collect::<Vec<_>>(),
                "durability": durability.as_str(),
                "backing": backing,
            } })
        }
        DatastoreKind::Cluster(plan) => json!({ "cluster": cluster(plan) }),
    }
}

fn cluster(plan: &ClusterPlan) -> Value {
    let group = |group: &DiskGroupSpec| {
        let capacity = group.capacity.iter().map(|profile| values_of(&profile_toml(profile)));
        json!({
            "name": group.name,
            "cache": values_of(&profile_toml(&group.cache)),
            "capacity": capacity.collect::<Vec<_>>(),
            "write_buffer_bytes": group.write_buffer.usable.0,
        })
    };
    let host = |host: &HostSpec| {
        json!({
            "name": host.name,
            "fault_domain": host.fault_domain,
            "disk_groups": host.groups.iter().map(group).collect::<Vec<_>>(),
        })
    };
    let ClusterSpec { hosts, network, settings } = &plan.spec;
    let policy = &plan.policy;
    json!({
        "hosts": hosts.iter().map(host).collect::<Vec<_>>(),
        "network": { "latency_ns": network.latency.0, "bytes_per_second": network.bytes_per_second },
        "policy": {
            "failures_to_tolerate": policy.failures_to_tolerate,
            "method": policy.method.word(),
            "stripe_width": policy.stripe_width,
            "iops_limit": policy.iops_limit,
            "checksum": policy.checksum.word(),
            "space_reservation_percent": policy.space_reservation_percent,
        },
        "repair_delay_ns": settings.repair_delay.0,
        "owner_overhead_ns": settings.owner_overhead.0,
        "resync_slice_bytes": settings.resync_slice.0,
        "resync_window": settings.resync_window,
    })
}

fn volume(volume: &VolumePlan) -> Value {
    json!({
        "name": volume.name,
        "capacity_bytes": volume.capacity.0,
        "device": volume.device,
        "file_system": volume.file_system.as_str(),
    })
}

fn workload(plan: &Plan) -> Value {
    let workload = &plan.workload;
    let pacing = match workload.pacing {
        Pacing::Closed { key_think } => json!({ "closed": { "key_think": key_think } }),
        Pacing::Open { rate_per_second, arrivals } => json!({ "open": {
            "rate_per_second": rate_per_second,
            "arrivals": arrivals.as_str(),
        } }),
        Pacing::Job => json!({ "job": {} }),
    };
    let mut content = match &workload.kind {
        WorkloadKind::Tpcc(tpcc) => json!({
            "warehouses": tpcc.warehouses,
            "mode": tpcc.mode.as_str(),
            "profile": tpcc.profile.as_str(),
            "entropy_percent": tpcc.entropy,
        }),
        WorkloadKind::Sysbench(sysbench) => json!({
            "script": sysbench.script.as_str(),
            "tables": sysbench.tables,
            "table_size": sysbench.table_size,
            "distribution": sysbench.distribution.as_str(),
            "range_size": sysbench.range_size,
        }),
        WorkloadKind::Dvdstore(dvdstore) => json!({
            "db_size": dvdstore.size.to_string(),
            "customers": dvdstore.size.customers(),
            "products": dvdstore.size.products(),
            "behaviour": behaviour(&dvdstore.behaviour),
        }),
        WorkloadKind::Batch(batch) => json!({
            "rows": batch.rows,
            "mode": batch.mode.as_str(),
            "sessions": batch.sessions,
        }),
        WorkloadKind::Warehouse(warehouse) => json!({
            "scale": warehouse.scale.factor(),
            "streams": warehouse.streams,
        }),
    };
    content["pacing"] = pacing;
    content["seed"] = workload.seed.0.into();
    content["statement_timeout_ns"] = workload.statement_timeout.0.into();
    let shape = workload.kind.shape();
    content["shape"] = json!({
        "types": shape.types,
        "headline": {
            "types": shape.headline.types.iter().map(|kind| shape.types[*kind]).collect::<Vec<_>>(),
            "counted": shape.headline.counted,
            "unit": shape.headline.unit,
            "period_ns": shape.headline.period.0,
        },
        "notice": shape.notice,
    });
    json!({ shape.name: content })
}

fn behaviour(behaviour: &Behaviour) -> Value {
    json!({
        "pct_newcustomers": behaviour.pct_newcustomers,
        "pct_newmember": behaviour.pct_newmember,
        "n_searches": behaviour.n_searches,
        "search_batch_size": behaviour.search_batch_size,
        "search_depth": behaviour.search_depth,
        "n_reviews": behaviour.n_reviews,
        "pct_newreviews": behaviour.pct_newreviews,
        "pct_newhelpfulness": behaviour.pct_newhelpfulness,
        "n_line_items": behaviour.n_line_items,
        "ds2_mode": behaviour.ds2_mode,
    })
}

/// What is concluded of each run, where its headline is not what its transactions add up to.
fn outcome(plan: &Plan) -> Value {
    let shape = plan.workload.kind.shape();
    if plan.workload.kind.job_sessions().is_some() {
        return json!({
            "kind": "job",
            "counted": shape.headline.counted,
            "unit": shape.headline.unit,
            "period_ns": shape.headline.period.0,
        });
    }
    let search = plan.procedure.search.as_ref();
    search.map_or(Value::Null, |search| {
        json!({
            "kind": "rate-search",
            "types": shape.types,
            "counted": "transactions",
            "unit": "TPS",
            "period_ns": 1_000_000_000u64,
            "condition": format!("within {}", search.objective),
        })
    })
}

fn weights(plan: &Plan, change: &WeightsPlan) -> Value {
    let designs: Vec<&str> =
        change.designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    json!({
        "set": change.text,
        "at_ns": change.at.0,
        "phase": change.phase.as_str(),
        "users": change.users,
        "lasts_ns": change.lasts.map(|lasts| lasts.0),
        "designs": designs,
        "line": change.line,
    })
}

fn background(plan: &Plan, background: &BackgroundPlan) -> Value {
    let designs: Vec<&str> =
        background.designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    json!({
        "name": background.name,
        "text": background.work.described(),
        "at_ns": background.at.0,
        "phase": background.phase.as_str(),
        "users": background.users,
        "lasts_ns": background.lasts.map(|lasts| lasts.0),
        "designs": designs,
        "line": background.line,
    })
}

fn estimates(estimates: &Estimates) -> Value {
    json!({
        "load_ns": estimates.load.0,
        "run_ns": estimates.run.0,
        "duration_ns": estimates.duration.0,
        "database_bytes": estimates.database.0,
        "disk_templates_bytes": estimates.disk_templates.0,
        "disk_volumes_bytes": estimates.disk_volumes.0,
        "disk_volumes_worst_bytes": estimates.disk_volumes_worst.0,
        "disk_bytes": estimates.disk.0,
        "memory_bytes": estimates.memory.0,
        "working_set_ratio": estimates.working_set_ratio,
    })
}

fn published(series: &PublishedSeries) -> Value {
    json!({
        "design": series.design,
        "metric": series.metric,
        "users": series.users,
        "values": series.values,
        "source": series.source,
        "note": series.note,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.as_str(),
        "code": finding.code,
        "text": finding.text,
        "remedy": finding.remedy,
        "line": finding.line,
    })
}

fn setting(setting: &Setting) -> Value {
    json!({ "path": setting.path, "value": setting.value, "origin": origin(&setting.origin) })
}

fn origin(decided: &Origin) -> Value {
    match decided {
        Origin::File { line } => json!({ "file": { "line": line } }),
        Origin::Default => json!("default"),
        Origin::Builtin { name } => json!({ "built-in": { "name": name } }),
        Origin::CommandLine { option } => json!({ "command-line": { "option": option } }),
        Origin::Scale { full, of } => json!({ "scale": { "full": full, "of": origin(of) } }),
    }
}

fn options_json(options: &PlanOptions) -> Value {
    json!({
        "scale": options.scale.map(|scale| scale.to_string()),
        "repeats": options.repeats,
        "users": options.users,
        "warm_up_ns": options.warm_up.map(|time| time.0),
        "ramp_up_ns": options.ramp_up.map(|time| time.0),
        "measure_ns": options.measure.map(|time| time.0),
        "seed": options.seed,
        "designs": options.designs,
        "server_bin": options.server_bin,
        "out": options.out,
    })
}

fn options_from(options: &Map<String, Value>) -> Result<PlanOptions, RecordedPlanError> {
    let time = |key| Ok(number(options, key)?.map(Nanos));
    let small =
        |number: u64, key| u32::try_from(number).map_err(|_| RecordedPlanError::Damaged(key));
    let scale = match text(options, "scale")? {
        None => None,
        Some(scale) => {
            Some(scale.parse::<Scale>().map_err(|_| RecordedPlanError::Damaged("options.scale"))?)
        }
    };
    let repeats = number(options, "repeats")?;
    let users = list(options, "users")?
        .map(|users| {
            let user = |user: &Value| {
                let number = user.as_u64().ok_or(RecordedPlanError::Damaged("options.users"))?;
                small(number, "options.users")
            };
            users.iter().map(user).collect::<Result<Vec<u32>, _>>()
        })
        .transpose()?;
    let designs = list(options, "designs")?
        .map(|names| {
            let name = |name: &Value| name.as_str().map(str::to_string);
            let names: Option<Vec<String>> = names.iter().map(name).collect();
            names.ok_or(RecordedPlanError::Damaged("options.designs"))
        })
        .transpose()?;
    Ok(PlanOptions {
        scale,
        repeats: repeats.map(|number| small(number, "options.repeats")).transpose()?,
        users,
        warm_up: time("warm_up_ns")?,
        ramp_up: time("ramp_up_ns")?,
        measure: time("measure_ns")?,
        seed: number(options, "seed")?,
        designs,
        server_bin: text(options, "server_bin")?.map(Into::into),
        out: text(options, "out")?.map(Into::into),
    })
}

fn number(
    options: &Map<String, Value>,
    key: &'static str,
) -> Result<Option<u64>, RecordedPlanError> {
    optional(options, key, Value::as_u64)
}

fn text<'v>(
    options: &'v Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'v str>, RecordedPlanError> {
    optional(options, key, Value::as_str)
}

fn list<'v>(
    options: &'v Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'v Vec<Value>>, RecordedPlanError> {
    optional(options, key, Value::as_array)
}

/// A value that may be null or absent, but not of another type.
fn optional<'v, T>(
    options: &'v Map<String, Value>,
    key: &'static str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Result<Option<T>, RecordedPlanError> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or(RecordedPlanError::Damaged(key)),
    }
}

/// The values of a TOML text that is known to be right.
fn values_of(text: &str) -> Value {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or(Value::Null)
}

/// The quantities above are written as plain numbers, which must hold them.
const _: () = assert!(size_of::<Bytes>() == size_of::<u64>());

#[cfg(test)]
mod tests {
    use super::{RecordedPlanError, plan_json, recorded_study};
    use crate::{HostView, PlanOptions, Scale, builtin_studies, check, plan};
    use serde_json::json;
    use underlay_core::Nanos;

    fn options() -> PlanOptions {
        PlanOptions {
            scale: Some(Scale { divisor: 4 }),
            repeats: Some(2),
            users: Some(vec![1, 3]),
            warm_up: Some(Nanos::from_secs(7)),
            ramp_up: Some(Nanos::from_secs(2)),
            // Long enough for the faults of the shipped studies.
            measure: Some(Nanos::from_secs(30)),
            seed: Some(99),
            designs: None,
            server_bin: Some("/opt/bin".into()),
            out: Some("x.record".into()),
        }
    }

    #[test]
    fn a_recorded_plan_gives_the_same_plan() {
        for builtin in builtin_studies() {
            let host = HostView::unlimited();
            // What only users have is refused for a job.
            let is_job = builtin.text.contains("[workload.batch]");
            let given = match is_job {
                true => PlanOptions { users: None, warm_up: None, ramp_up: None, ..options() },
                false => options(),
            };
            let (study, first) = check(&builtin.source(), &given, &host).expect("shipped");
            let recorded = plan_json(&first);
            let (source, recorded_options) = recorded_study(&recorded).expect("just written");
            assert_eq!(&source, study.source());
            assert_eq!(recorded_options, given);
            let again = plan(&study, &recorded_options, &host).expect("planned before");
            assert_eq!(plan_json(&again), recorded);
        }
    }

    #[test]
    fn damage_is_named() {
        assert_eq!(recorded_study(&json!({})), Err(RecordedPlanError::Damaged("format")));
        assert_eq!(
            recorded_study(&json!({ "format": 2 })),
            Err(RecordedPlanError::UnknownFormat(2))
        );
        let mut recorded = json!({
            "format": 1, "study": { "name": "a", "text": "" }, "options": { "repeats": "x" },
        });
        assert_eq!(recorded_study(&recorded), Err(RecordedPlanError::Damaged("repeats")));
        recorded["options"] = json!({ "scale": "2" });
        assert_eq!(recorded_study(&recorded), Err(RecordedPlanError::Damaged("options.scale")));
    }
}
