//! Tables that Underlay did not create where the workload's tables go: refused, unless the user repeats the place's name with
//! `--replace-foreign`; then what is dropped is listed, and dropped.
//!
//! Nothing is asked: the program runs without a terminal too. The name cannot be a habit, because it holds the
//! database's.

use serde_json::{Value, json};
use underlay_database::Engine;
use underlay_database::schema_ownership::{Afterwards, ForeignSchema, OwnershipError, clear, look};

use super::command::{Action, Command, given_up};
use crate::lab::workload::{Access, session_failed, stopped};
use crate::stop::Stop;

/// Removes what `--replace-foreign` names; what to print of it. None where the option is not given.
///
/// # Errors
/// Before anything is touched when the name is another one, when there is nothing to replace, and when what is there can
/// never be replaced.
pub(super) fn replace(
    command: &Command<'_>,
    Access { runtime, target, .. }: Access<'_>,
    afterwards: Afterwards,
) -> Result<Option<Value>, Stop> {
    let Some(name) = &command.common.replace_foreign else { return Ok(None) };
    let workload = command.tables;
    let given_up = |stop| given_up(command, Action::Drop, stop);
    let found = runtime
        .block_on(look(target, workload))
        .map_err(|error| given_up(stopped("look for tables", error)))?;
    let found = found.ok_or_else(|| {
        Stop::bad_input(format!(
            "--replace-foreign {name}: there are no tables of the workload that Underlay did not create; omit the \
             option"
        ))
    })?;
    if found.name != *name {
        return Err(Stop::bad_input(format!(
            "--replace-foreign {name}: the name of the {} whose tables would be replaced is `{}`",
            kind(target.engine),
            found.name
        )));
    }
    // Before it is done, and whatever the form of the result.
    for line in in_words(target.engine, &found) {
        errln!("{line}");
    }
    let refused = |error| match error {
        OwnershipError::Session(error) => {
            let kept = match target.engine {
                Engine::Postgresql => "; nothing was removed",
                Engine::Mariadb => "",
            };
            let text = format!("could not remove the tables of {}: {error}{kept}", found.name);
            session_failed(&error, text)
        }
        error => stopped("remove the tables", error),
    };
    let cleared = runtime.block_on(clear(target, workload, &found, afterwards));
    cleared.map_err(|error| given_up(refused(error)))?;
    Ok(Some(json!({
        "place": found.name,
        "tables": found.tables.iter().map(|table| json!({ "name": table.name, "rows": table.rows }))
            .collect::<Vec<_>>(),
        "routines": found.routines,
        "others_kept": found.others,
    })))
}

/// What goes and what stays.
fn in_words(engine: Engine, found: &ForeignSchema) -> Vec<String> {
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
        lines.push(format!("  kept (other tables, views, sequences): {}", found.others));
    }
    lines
}

fn kind(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "schema",
        Engine::Mariadb => "database",
    }
}
