//! The plan as JSON, for the record and for programs, and the way back to study and options.
//!
//! Numbers carry their unit in their name (`measure_ns`, `capacity_bytes`). Device profiles and the study
//! keep the form of their files. A plan is not read back value by value: a resumed study is planned again
//! from the recorded text and options, which gives the same plan or a reason why not.

mod faults;

mod design;
mod engine;
mod values;
mod workload;

use serde_json::{Value, json};
use underlay_core::Bytes;

use crate::finding::Finding;
use crate::json_value::ToJson;
use crate::options::PlanOptions;
use crate::parse::Study;
use crate::plan::{
    AxisPlan, AxisPoint, AxisUnit, DatabasePart, DatabasePlan, DesignPlan, Estimates, Origin, Plan,
    ProcedurePlan, PublishedSeries, Setting, Sizes, VariantPlan, WorkloadPlan,
};
use crate::problem::Source;

use design::design;
use engine::engine;
use values::values_of;
use workload::{background, outcome, weights, workload};

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
    let has_server = plan.workload.kind.block().is_none();
    let mut whole = json!({
        "format": PLAN_FORMAT,
        "name": plan.name,
        "title": plan.title,
        "question": plan.question,
        "seed": plan.seed.0,
        "evidence": if plan.is_mixed_evidence() { "mixed" } else { plan.evidence.as_str() },
        "scale": plan.scale.to_string(),
        "full_size": sizes(&plan.full_size),
        "size": sizes(&plan.size),
        "engine": has_server.then(|| engine(&plan.engine)),
        "designs": designs(plan),
        "workload": workload(&plan.workload),
        "procedure": plan.procedure.to_json(),
        "outcome": outcome(&plan.workload, &plan.procedure),
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
        "options": plan.options.to_json(),
    });
    if !plan.deviations.is_empty() {
        whole["deviations"] = json!(plan.deviations);
    }
    if !plan.axes.is_empty() {
        whole["axes"] = plan.axes.iter().map(axis).collect();
    }
    if plan.has_named_databases() {
        let described = |one: &DatabasePlan| database(one, &plan.procedure);
        whole["databases"] = plan.databases.iter().map(described).collect();
    }
    whole
}

/// One of several databases, with what it is in each design.
fn database(database: &DatabasePlan, procedure: &ProcedurePlan) -> Value {
    let part = |part: &DatabasePart| {
        json!({
            "design": part.design,
            "engine": engine(&part.engine),
            "client": part.client.to_json(),
            "volumes": part.volumes.iter().map(design::volume).collect::<Vec<_>>(),
            "host": part.host,
        })
    };
    let mut described = json!({
        "name": database.name,
        "engine": engine(&database.engine),
        "workload": workload(&database.workload),
        "full_size": sizes(&database.full_size),
        "size": sizes(&database.size),
        "designs": database.parts.iter().map(part).collect::<Vec<_>>(),
    });
    if database.is_job() {
        described["outcome"] = outcome(&database.workload, procedure);
    }
    described
}

/// The designs. Of a study with axes, each also says where it lies on them, and what of the rest is its own.
fn designs(plan: &Plan) -> Vec<Value> {
    let own = own_parts(plan);
    let has_server = plan.workload.kind.block().is_none();
    let one = |one: &DesignPlan| {
        let mut written = design(one, has_server);
        if let Some(variant) = &one.variant {
            written["variant"] = self::variant(plan, variant);
            for (key, values) in &own {
                written[key] = values[variant.point].clone();
            }
        }
        written
    };
    plan.designs.iter().map(one).collect()
}

/// The parts of a plan, beside its designs, that differ between its points: key, and its value at each point.
fn own_parts(plan: &Plan) -> Vec<(String, Vec<Value>)> {
    // Of designs and their runs the merged plan has all; the server and its sizes are the designs'.
    const OF_DESIGNS: [&str; 3] = ["engine", "size", "full_size"];
    let part = |point: &Plan| {
        let mut part = plan_json(&Plan {
            designs: Vec::new(),
            axes: Vec::new(),
            schedule: Vec::new(),
            weights: Vec::new(),
            background: Vec::new(),
            faults: Vec::new(),
            published: Vec::new(),
            findings: Vec::new(),
            provenance: Vec::new(),
            ..point.clone()
        });
        part["estimates"] = json!({
            "database_bytes": point.estimates.database.0,
            "working_set_ratio": point.estimates.working_set_ratio,
        });
        part
    };
    let parts: Vec<Value> = plan.points.iter().map(part).collect();
    let keys = parts.first().and_then(Value::as_object).into_iter().flat_map(|part| part.keys());
    let keys = keys.filter(|key| !OF_DESIGNS.contains(&key.as_str()));
    let own = keys.filter(|key| parts.windows(2).any(|two| two[0][*key] != two[1][*key]));
    own.map(|key| (key.clone(), parts.iter().map(|part| part[key].clone()).collect())).collect()
}

fn variant(plan: &Plan, variant: &VariantPlan) -> Value {
    let at = plan.axes.iter().zip(&variant.coordinates);
    let at = at.map(|(axis, point)| (axis.name.clone(), axis.points[*point].name.as_str().into()));
    json!({
        "design": variant.design,
        "design_title": variant.design_title,
        "at": Value::Object(at.collect()),
    })
}

fn axis(axis: &AxisPlan) -> Value {
    let point = |point: &AxisPoint| {
        let set = point.set.iter().map(|(path, value)| (path.clone(), value.as_str().into()));
        json!({
            "name": point.name,
            "label": point.label,
            "phrase": point.phrase,
            "number": point.number,
            "set": Value::Object(set.collect()),
        })
    };
    json!({
        "name": axis.name,
        "keys": axis.keys,
        "unit": axis.unit.map(AxisUnit::as_str),
        "points": axis.points.iter().map(point).collect::<Vec<_>>(),
    })
}

/// What is run and how it is measured, as a plan has them: of a run that no study describes.
pub fn measurement_json(workload: &WorkloadPlan, measured: &ProcedurePlan) -> Value {
    json!({
        "workload": self::workload(workload),
        "procedure": measured.to_json(),
        "outcome": outcome(workload, measured),
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
    let options = PlanOptions::from_json(options).map_err(RecordedPlanError::Damaged)?;
    Ok((source, options))
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
    let mut published = json!({
        "design": series.design,
        "metric": series.metric,
        "unit": series.unit,
        "factor": series.factor,
        "users": series.users,
        "values": series.values,
        "experiment": series.experiment,
        "source": series.source,
        "note": series.note,
    });
    if series.given {
        published["given"] = true.into();
    }
    if !series.database.is_empty() {
        published["database"] = series.database.as_str().into();
    }
    if !series.at.is_empty() {
        let at = series.at.iter().map(|(axis, point)| (axis.clone(), point.as_str().into()));
        published["at"] = Value::Object(at.collect());
    }
    published
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

/// The quantities above are written as plain numbers, which must hold them.
const _: () = assert!(size_of::<Bytes>() == size_of::<u64>());

#[cfg(test)]
mod tests {
    use super::{RecordedPlanError, plan_json, recorded_study};
    use crate::{HostView, PlanOptions, Repeats, Scale, builtin_studies, check, plan};
    use serde_json::json;
    use underlay_core::Nanos;

    fn options() -> PlanOptions {
        PlanOptions {
            size: None,
            scale: Some(Scale { divisor: 4 }),
            repeats: Some(Repeats::Exactly(2)),
            users: Some(vec![1, 3]),
            cache_warm_up: Some(Nanos::from_secs(3)),
            warm_up: Some(Nanos::from_secs(7)),
            ramp_up: Some(Nanos::from_secs(2)),
            // Long enough for the faults of the shipped studies.
            measure: Some(Nanos::from_secs(30)),
            time_dilation: None,
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
            let is_job = ["batch", "backup", "warehouse"]
                .iter()
                .any(|job| builtin.text.contains(&format!("[workload.{job}]")));
            // And of a block load what only databases have.
            let is_block_load = builtin.text.contains("[workload.block]");
            // A job next to users is carried out at one number of them.
            let has_job_beside = builtin.text.contains("\nworkload.backup");
            let given = match (is_job, is_block_load) {
                (false, false) if has_job_beside => PlanOptions { users: None, ..options() },
                (true, _) => PlanOptions {
                    users: None,
                    cache_warm_up: None,
                    warm_up: None,
                    ramp_up: None,
                    ..options()
                },
                (_, true) => {
                    PlanOptions { users: None, cache_warm_up: None, server_bin: None, ..options() }
                }
                (false, false) => options(),
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
        assert_eq!(recorded_study(&recorded), Err(RecordedPlanError::Damaged("scale")));
    }
}
