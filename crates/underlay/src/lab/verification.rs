//! Keeping what the consistency checks of a run found, and naming the crash behind what could not be done.

use std::time::{Duration, Instant};

use underlay_database::managed::{Liveness, Server};
use underlay_record::{Check, CheckMoment, CheckOutcome};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;
use crate::lab::workload::Checked;
use crate::stop::{Stop, chain};

/// How long a server has to say that it crashed after a check could not be made. A client sees its connection close
/// before the server's main process has noticed and logged why.
const CRASH_REPORTED_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at its log meanwhile.
const CRASH_PAUSE: Duration = Duration::from_millis(20);

/// Writes what checks found to the record, and tells the observer.
pub fn keep(
    results: &[Checked],
    (log, moment): (RunLog<'_>, CheckMoment),
    observer: &mut dyn Observer,
) -> Result<(), Stop> {
    for result in results {
        let Checked { id, title, outcome, .. } = result.clone();
        let id = log.recorded(&id);
        log.recorder.lock().check(&Check { run: log.run, moment, id, title, outcome }).map_err(
            |error| Stop::host(format!("could not write the record: {}", chain(&error))),
        )?;
    }
    let failed = results.iter().filter(|result| !result.holds()).count();
    observer.notice(&Event::Checked { moment, checks: results.len(), failed });
    Ok(())
}

/// Whether the data is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Every check was made and holds.
    Clean,
    /// At least one is violated, or could not be made although nothing kept the server from answering; the first in words.
    Broken(String),
}

impl Verified {
    /// What checks amount to, of a server that crashed for this reason, if it did.
    ///
    /// # Errors
    /// Checks that a crash prevented: it is then unknown whether the data is right.
    pub fn of(checks: &[Checked], crash: Option<&str>) -> Result<Verified, Abort> {
        let is_violated =
            |result: &&Checked| matches!(result.outcome, CheckOutcome::Violated { .. });
        let not_holding = || checks.iter().filter(|result| !result.holds());
        match (not_holding().find(is_violated).or_else(|| not_holding().next()), crash) {
            (None, _) => Ok(Verified::Clean),
            (Some(result), Some(crash)) if !is_violated(&result) => Err(crashed(crash)),
            (Some(result), _) => Ok(Verified::Broken(result.describe())),
        }
    }
}

/// Why the server, or all of its sessions, ended unexpectedly, if that happened since the last call.
fn crash_of(server: &mut Server) -> Result<Option<String>, Abort> {
    match server.liveness().during("look after the database server")? {
        Liveness::Died(log) => Ok(Some(log.headline())),
        Liveness::Running | Liveness::Stopped => Ok(server.crash()),
    }
}

/// The same of several servers, waited for until it happens or `limit` has passed, as long as one has not ended.
fn crash_within(servers: &mut [&mut Server], limit: Duration) -> Result<Option<String>, Abort> {
    let until = Instant::now() + limit;
    loop {
        for server in servers.iter_mut() {
            if let Some(crash) = crash_of(server)? {
                return Ok(Some(crash));
            }
        }
        let may_crash = servers.iter().any(|server| server.pid().is_some());
        if !may_crash || Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(CRASH_PAUSE);
    }
}

/// What kept a load from beginning: a crash of one of its servers, if there was one. They have a moment to say so.
pub fn kept_from_beginning(failure: Abort, servers: &mut [&mut Server]) -> Abort {
    let Abort::Failed(_) = &failure else { return failure };
    match crash_within(servers, CRASH_REPORTED_WITHIN) {
        Ok(Some(crash)) => {
            Abort::Failed(format!("the database server crashed before the load began: {crash}"))
        }
        // What is known is the failure.
        Ok(None) | Err(_) => failure,
    }
}

/// Why the server, or all of its sessions, ended unexpectedly, if that happened before these checks ended. Where
/// one could not be made, the server has a moment to say why.
///
/// # Errors
/// Its process could not be looked after.
pub fn crash_behind(
    checks: &Result<Vec<Checked>, Stop>,
    server: &mut Server,
) -> Result<Option<String>, Abort> {
    let is_made = |check: &Checked| !matches!(check.outcome, CheckOutcome::Failed { .. });
    let are_made = checks.as_ref().is_ok_and(|checks| checks.iter().all(is_made));
    let limit = if are_made { Duration::ZERO } else { CRASH_REPORTED_WITHIN };
    crash_within(&mut [server], limit)
}

/// The checks that were made, of a server that crashed for this reason, if it did.
///
/// # Errors
/// None could be made: by the crash, if there was one.
pub fn made(
    checks: Result<Vec<Checked>, Stop>,
    crash: Option<&str>,
) -> Result<Vec<Checked>, Abort> {
    checks.map_err(|stop| match (Abort::from(stop), crash) {
        (Abort::Failed(_), Some(crash)) => crashed(crash),
        (abort, _) => abort,
    })
}

fn crashed(crash: &str) -> Abort {
    Abort::Failed(format!("the database server crashed while its data was checked: {crash}"))
}

#[cfg(test)]
mod tests {
    use super::{Verified, made};
    use crate::lab::abort::Abort;
    use crate::lab::workload::Checked;
    use crate::stop::Stop;
    use serde_json::Value;
    use underlay_record::CheckOutcome;

    fn check(id: &str, outcome: CheckOutcome) -> Checked {
        Checked { id: id.to_string(), title: "sums".to_string(), outcome, detail: Value::Null }
    }

    #[test]
    fn checks_that_a_crash_ended_say_nothing_about_the_data() {
        let lost = check("c1", CheckOutcome::Failed { error: "connection closed".to_string() });
        let wrong = check("c2", CheckOutcome::Violated { rows: 1, example: "row 1".to_string() });
        let crash = Some("signal 9");
        let both = [check("c0", CheckOutcome::Ok), lost.clone(), wrong];
        assert_eq!(Verified::of(&both[..1], crash), Ok(Verified::Clean));
        let Err(Abort::Failed(reason)) = Verified::of(&both[..2], crash) else {
            panic!("a crash is no violation")
        };
        assert!(reason.contains("crashed") && reason.contains("signal 9"), "{reason}");
        let none_made = || Err(Stop::run_failed("connection closed".to_string()));
        assert_eq!(made(none_made(), crash), Err(Abort::Failed(reason)));
        let Err(other) = made(none_made(), None) else { panic!("nothing was checked") };
        assert!(!format!("{other:?}").contains("crashed"), "{other:?}");
        // What was seen to be wrong is wrong.
        for crash in [crash, None] {
            let Ok(Verified::Broken(reason)) = Verified::of(&both, crash) else { panic!() };
            assert!(reason.starts_with("c2"), "{reason}");
        }
        // A server that answers and cannot make a check has lost what the check looks at.
        assert!(matches!(Verified::of(&[lost], None), Ok(Verified::Broken(_))));
    }
}
