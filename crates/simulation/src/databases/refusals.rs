//! What of a study cannot be simulated: every reason, before anything runs.

use std::collections::BTreeSet;
use underlay_study::{DatabasePlan, DatastoreKind, EngineKind, Mode, Plan, WorkloadKind};

use super::background;
use super::mapping::{self, Assumptions};
use super::storage::joins_before_load;

/// Every reason why the plan cannot be simulated, each once; empty where it can.
pub fn problems(plan: &Plan, assumed: &Assumptions) -> Vec<String> {
    let mut found = BTreeSet::new();
    for point in plan.plans() {
        of_plan(point, &mut found);
        background::problems(point, &mut found);
        for database in &point.databases {
            of_database(database, &mut found);
        }
        for design in &plan.designs {
            if let DatastoreKind::Path { .. } = design.kind {
                let name = &design.name;
                found.insert(format!("design `{name}` is real storage, which has no model"));
            }
        }
    }
    if found.is_empty() {
        // What is wrong with values is only known where the words are.
        let points = plan.plans();
        for (position, design) in plan.designs.iter().enumerate() {
            let point = points[plan.point_of(position)];
            let users = point.procedure.most_users();
            found
                .extend(mapping::scenario(point, design, users, assumed).err().unwrap_or_default());
        }
    }
    found.into_iter().collect()
}

/// What of a plan is not simulated, whatever its workload is.
pub(crate) fn of_plan(plan: &Plan, found: &mut BTreeSet<String>) {
    let has = [
        (
            "faults other than devices and disk groups that join in `settle`",
            !plan.faults.iter().all(joins_before_load),
        ),
        ("changes of the mix", !plan.weights.is_empty()),
        ("a search for a rate", plan.procedure.search.is_some()),
        ("a causal check", plan.procedure.causal.is_some()),
    ];
    let asked = has.iter().filter(|(_, is_asked)| *is_asked);
    found
        .extend(asked.map(|(what, _)| format!("the study has {what}, which is not simulated yet")));
}

fn of_database(database: &DatabasePlan, found: &mut BTreeSet<String>) {
    let of = match database.name.as_str() {
        "" => String::new(),
        name => format!("database `{name}`: "),
    };
    match &database.workload.kind {
        WorkloadKind::Tpcc(tpcc) if tpcc.mode == Mode::Procedures => {}
        WorkloadKind::Tpcc(_) => {
            found.insert(format!(
                "{of}only TPC-C in procedures is simulated, not single statements"
            ));
        }
        WorkloadKind::Sysbench(_)
        | WorkloadKind::Dvdstore(_)
        | WorkloadKind::Backup(_)
        | WorkloadKind::Batch(_) => {}
        WorkloadKind::Block(_) => {
            found.insert(format!("{of}a block load is simulated alone, not beside databases"));
        }
        WorkloadKind::Warehouse(_) => {
            let mut engines = database.parts.iter().map(|part| part.engine.kind);
            if engines.any(|engine| engine == EngineKind::Mariadb) {
                found.insert(format!(
                    "{of}the queries of a warehouse are simulated on PostgreSQL only: MariaDB's \
                     plans were not measured"
                ));
            }
        }
    }
    for part in &database.parts {
        match part.engine.kind {
            EngineKind::Postgresql if part.engine.is_switched_off("fsync") => {
                found.insert(format!("{of}fsync is off, which is not simulated"));
            }
            EngineKind::Postgresql | EngineKind::Mariadb => {}
            EngineKind::Mysql => {
                let title = part.engine.kind.title();
                found.insert(format!("{of}{title} is not simulated, PostgreSQL and MariaDB are"));
            }
        }
    }
}
