//! Keeping what the consistency checks of a run found.

use underlay_record::{Check, CheckMoment};

use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;
use crate::lab::workload::Checked;
use crate::stop::{Stop, chain};

/// Writes what checks found to the record, and tells the observer.
pub fn keep(
    results: &[Checked],
    (log, moment): (RunLog<'_>, CheckMoment),
    observer: &mut dyn Observer,
) -> Result<(), Stop> {
    for result in results {
        let Checked { id, title, outcome, .. } = result.clone();
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
    /// At least one is violated or could not be made; the first in words.
    Broken(String),
}

impl Verified {
    /// What checks amount to.
    pub fn of(checks: &[Checked]) -> Verified {
        match checks.iter().find(|result| !result.holds()) {
            None => Verified::Clean,
            Some(result) => Verified::Broken(result.describe()),
        }
    }
}
