//! The record of a run on an external database: kept where `--record` asks for it, otherwise gone with the command.
//!
//! What runs write into it is the lab's; here is what the run is: one design, the database, of which nothing is known but its
//! address and its versions.

use serde_json::{Value, json};
use underlay_core::Evidence;
use underlay_host::host_facts;
use underlay_record::{Design, Manifest, OpenError, Recorder};
use underlay_study::measurement_json;

use super::command::Command;
use crate::lab::external::ExternalPlan;
use crate::lab::workload::{Access, Subject};
use crate::stop::{Stop, chain};

/// Refuses a file that exists, before anything is touched.
pub(super) fn refuse_existing(command: &Command<'_>) -> Result<(), Stop> {
    match &command.common.record {
        Some(path) if path.exists() => {
            Err(Stop::bad_input(format!("`{}` exists already", path.display()))
                .with_hint("name another file with --record"))
        }
        _ => Ok(()),
    }
}

/// Creates the record of a run. Says whether it is kept.
pub(super) fn create<S: Subject>(
    command: &Command<'_>,
    access: Access<'_>,
    subject: &S,
    plan: &ExternalPlan,
) -> Result<(Recorder, bool), Stop> {
    let target = access.target;
    let address = target.to_string();
    let database = json!({
        "engine": target.engine.to_string(),
        "address": address,
        "database": target.database,
    });
    let mut content = measurement_json(&plan.workload, &plan.procedure);
    content["command"] = "drive".into();
    content["external"] = database.clone();
    if let Some(connections) = plan.connections {
        content["designs"] = json!([{ "client": { "connections": connections } }]);
    }
    let manifest = Manifest {
        study_name: format!("drive-{}", command.name),
        title: format!("{} on {address}", subject.population()),
        question: "What does this database do under this load?".to_string(),
        evidence: Evidence::Measured,
        seed: plan.workload.seed,
        identity: subject.identity(target.engine),
        started_wall_ns: crate::lab::wall_clock_ns(),
        plan: content,
        host: serde_json::to_value(host_facts()).unwrap_or(Value::Null),
        software: json!({
            "underlay": env!("CARGO_PKG_VERSION"),
            "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        }),
    };
    let created = match &command.common.record {
        Some(path) => Recorder::create(path, &manifest),
        None => Recorder::create_temporary(&manifest),
    };
    let mut recorder = created.map_err(|error: OpenError| Stop::host(chain(&error)))?;
    let design = Design {
        index: 0,
        name: "database".to_string(),
        title: address,
        description: "a database that Underlay does not manage".to_string(),
        evidence: Evidence::Measured,
        detail: database,
    };
    recorder.add_design(&design).map_err(|error| Stop::host(chain(&error)))?;
    Ok((recorder, command.common.record.is_some()))
}
