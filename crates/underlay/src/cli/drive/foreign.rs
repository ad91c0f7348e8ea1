//! What somebody else has where the workload's tables go: refused, unless the user repeats the place's name with
//! `--replace-foreign`; then it is said what goes, and it goes. Also what can be done with such tables as they are.
//!
//! Nothing is asked: the program runs without a terminal too. The name cannot be a habit, because it holds the
//! database's.

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use underlay_database::place::{Afterwards, ForeignPlace, PlaceError, WorkloadTables, clear, look};
use underlay_database::{Engine, Target};

use super::{Action, Arguments, Workload, given_up, rights};
use crate::stop::{Stop, chain};

/// What is wrong with the options about tables of others.
pub(super) fn meaningless_options(arguments: &Arguments) -> Vec<String> {
    let workload = arguments.workload;
    let mut wrong = Vec::new();
    if arguments.foreign_tables {
        let why = match workload {
            Workload::Sysbench => None,
            Workload::Tpcc if arguments.check && !arguments.run => None,
            Workload::Tpcc => Some(
                "tables of others can be checked only (--check): the transactions need Underlay's functions and \
                 what its loads draw names and numbers from",
            ),
            Workload::Dvdstore | Workload::Batch | Workload::Warehouse => Some(
                "its checks compare with the rows that Underlay generates, and its runs count on them: tables of others \
                 can neither be checked nor driven",
            ),
        };
        wrong.extend(why.map(|why| format!("--foreign-tables: {why}")));
    }
    let makes_tables = arguments.load || (workload == Workload::Batch && arguments.runs());
    if arguments.replace_foreign.is_some() && !makes_tables && !arguments.drop {
        wrong.push(
            "--replace-foreign says what --load or --drop (of batch: a run) may replace, and neither is asked for"
                .to_string(),
        );
    }
    wrong
}

/// Removes what `--replace-foreign` names; what to print of it. None where the option is not given.
///
/// # Errors
/// Before anything is touched when the name is another one, when there is nothing to replace, and when what is there can
/// never be replaced.
pub(super) fn replace(
    arguments: &Arguments,
    target: &Target,
    afterwards: Afterwards,
) -> Result<Option<Value>, Stop> {
    let Some(name) = &arguments.replace_foreign else { return Ok(None) };
    let runtime =
        Runtime::new().map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
    let workload = tables_of(arguments.workload);
    let stopped = |stop| given_up(arguments, Action::Drop, stop);
    let found = runtime.block_on(look(target, workload)).map_err(|error| stopped(stop(error)))?;
    let found = found.ok_or_else(|| {
        Stop::bad_input(format!(
            "--replace-foreign {name}: there is nothing of somebody else's where the workload's tables go; leave the \
             option out"
        ))
    })?;
    if found.name != *name {
        return Err(Stop::bad_input(format!(
            "--replace-foreign {name}: the {} whose tables would be replaced is called `{}`",
            kind(target.engine),
            found.name
        )));
    }
    // Before it is done, and whatever the form of the result.
    for line in in_words(target.engine, &found) {
        errln!("{line}");
    }
    let refused = |error| match error {
        PlaceError::Session(error) => {
            let kept = match target.engine {
                Engine::Postgresql => "; nothing was removed",
                Engine::Mariadb => "",
            };
            let text = format!("could not remove the tables of {}: {error}{kept}", found.name);
            rights::session_failed(&error, text)
        }
        error => stop(error),
    };
    let cleared = runtime.block_on(clear(target, workload, &found, afterwards));
    cleared.map_err(|error| stopped(refused(error)))?;
    Ok(Some(json!({
        "place": found.name,
        "tables": found.tables.iter().map(|table| json!({ "name": table.name, "rows": table.rows }))
            .collect::<Vec<_>>(),
        "routines": found.routines,
        "others_kept": found.others,
    })))
}

/// What goes and what stays.
fn in_words(engine: Engine, found: &ForeignPlace) -> Vec<String> {
    let (kind, name) = (kind(engine), &found.name);
    let mut lines = vec![match found.tables.len() + found.routines.len() {
        0 => format!(
            "using the {kind} `{name}`, which underlay did not create; nothing is dropped there"
        ),
        _ => format!("dropping from the {kind} `{name}`, which underlay did not create:"),
    }];
    lines.extend(
        found.tables.iter().map(|table| format!("  table {}: {} rows", table.name, table.rows)),
    );
    lines.extend(found.routines.iter().map(|routine| format!("  routine {routine}")));
    if found.others > 0 {
        lines.push(format!("  what stays (other tables, views, sequences): {}", found.others));
    }
    lines
}

fn kind(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "schema",
        Engine::Mariadb => "database",
    }
}

pub(super) fn tables_of(workload: Workload) -> WorkloadTables {
    match workload {
        Workload::Tpcc => WorkloadTables::Tpcc,
        Workload::Sysbench => WorkloadTables::Sysbench,
        Workload::Dvdstore => WorkloadTables::Dvdstore,
        Workload::Batch => WorkloadTables::Batch,
        Workload::Warehouse => WorkloadTables::Warehouse,
    }
}

/// What the user can mend is bad input; a database that does not answer is not.
fn stop(error: PlaceError) -> Stop {
    match &error {
        PlaceError::Session(session) => rights::session_failed(session, chain(&error)),
        _ => Stop::bad_input(chain(&error)),
    }
}
