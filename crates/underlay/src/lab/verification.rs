//! Making the consistency checks of a run and keeping what they found.

use tokio::runtime::Runtime;
use underlay_database::Target;
use underlay_record::{Check, CheckMoment};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;
use crate::lab::workload::Subject;

/// Makes all checks, writes them to the record and tells the observer. Returns whether all hold.
pub fn verify<S: Subject>(
    (subject, runtime): (&S, &Runtime),
    target: &Target,
    run: Option<(&S::Before, &S::Accounting)>,
    (log, moment): (RunLog<'_>, CheckMoment),
    observer: &mut dyn Observer,
) -> Result<Verified, Abort> {
    let results = subject.check(runtime, target, moment, run)?;
    for result in &results {
        log.recorder
            .lock()
            .check(&Check {
                run: log.run,
                moment,
                id: result.id.clone(),
                title: result.title.clone(),
                outcome: result.outcome.clone(),
            })
            .during("write the record")?;
    }
    let failed = results.iter().filter(|result| !result.holds()).count();
    observer.notice(&Event::Checked { moment, checks: results.len(), failed });
    Ok(match results.iter().find(|result| !result.holds()) {
        None => Verified::Clean,
        Some(result) => Verified::Broken(result.describe()),
    })
}

/// Whether the data is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Every check was made and holds.
    Clean,
    /// At least one is violated or could not be made; the first in words.
    Broken(String),
}
