//! What to say when the database refuses something that the command's user has no right to: the statements that grant all that the
//! command needs.
//!
//! The server judges what is lacking, in its own words; nothing is granted here.

use underlay_database::rights::{Steps, grants};
use underlay_database::{SessionError, Target};

use super::{Arguments, Workload, connection, foreign};
use crate::stop::Stop;

/// An error of a session, which `text` says; remembers whether a right is lacking.
pub(super) fn session_failed(error: &SessionError, text: String) -> Stop {
    if error.is_denial() { Stop::denied(text) } else { Stop::run_failed(text) }
}

/// Adds to the end of a command for want of a right what would have to be granted.
pub(super) fn explain(arguments: &Arguments, target: &Target, stop: Stop) -> Stop {
    if !stop.is_denial() {
        return stop;
    }
    let workload = foreign::tables_of(arguments.workload);
    let wanted = grants(target, workload, steps(arguments));
    // What the server does not tell is left out: what it refused has been said.
    let Ok(Ok(statements)) = connection::runtime().map(|runtime| runtime.block_on(wanted)) else {
        return stop;
    };
    let lines: Vec<String> = statements.iter().map(|sql| format!("    {sql}")).collect();
    stop.with_hint(format!(
        "what this command needs, for somebody who may grant it:\n{}",
        lines.join("\n")
    ))
}

fn steps(arguments: &Arguments) -> Steps {
    let Arguments { load, check, drop, .. } = *arguments;
    let run = arguments.runs();
    let bulk = arguments.workload == Workload::Sysbench && run && arguments.wants_bulk_tables();
    Steps { load, run, check, drop, bulk }
}
