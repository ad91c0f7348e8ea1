//! Whether a run on an external database is a result: its checks, and whether it was cut short. Judges no rate and no latency.

use crate::exit_code;
use crate::lab::external::Finished;
use crate::lab::interrupt;
use crate::lab::workload::Subject;
use crate::stop::Stop;

/// What else than a broken database violates a check after a run.
const NOT_ALONE: &str = "the checks know only the transactions of this command: if another program wrote to these \
     tables during the run, such as a second `underlay drive`, that looks like a violation";

/// The verdict of a run, from the first reason that makes it no result to the last.
pub(super) fn verdict_of_run<S: Subject>(
    finished: &Finished<S>,
    interrupted: &str,
) -> Result<(), Stop> {
    let checked = match &finished.checked_after {
        Ok(checks) => checks.verdict(" after the run").map_err(|stop| match stop.code() {
            exit_code::CHECK_VIOLATED => stop.with_hint(NOT_ALONE),
            _ => stop,
        }),
        Err(stop) => Err(stop.clone()),
    };
    let interrupted =
        if interrupt::requested() { Err(Stop::interrupted(interrupted)) } else { Ok(()) };
    checked.and(interrupted)
}
