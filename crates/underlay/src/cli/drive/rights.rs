//! What to say when the database refuses something that the command's user has no right to: the statements that grant all that the
//! command needs.
//!
//! The server decides which rights are missing; nothing is granted here.

use underlay_database::rights::{Steps, grants};

use super::command::Command;
use crate::lab::workload::Access;
use crate::stop::Stop;

/// Adds to the end of a command for want of a right what would have to be granted.
pub(super) fn explain(command: &Command<'_>, access: Access<'_>, stop: Stop) -> Stop {
    if !stop.is_denial() {
        return stop;
    }
    let wanted = grants(access.target, command.tables, steps(command));
    // What the server does not tell is left out: what it refused has been reported.
    let Ok(statements) = access.runtime.block_on(wanted) else { return stop };
    let lines: Vec<String> = statements.iter().map(|sql| format!("    {sql}")).collect();
    stop.with_hint(format!(
        "rights that this command needs, for an administrator to grant:\n{}",
        lines.join("\n")
    ))
}

fn steps(command: &Command<'_>) -> Steps {
    let (run, load) = (command.runs(), command.loading.load);
    let (check, drop) = (command.common.check, command.common.drop);
    Steps { load, run, check, drop, bulk: run && command.inserts_in_bulk }
}
