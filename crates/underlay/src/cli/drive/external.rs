//! What a workload adds to the lab, so that its tables can live in a database of the user's: taking them over, dropping them,
//! checking them. It knows no workload.

use std::time::Instant;

use serde_json::Value;
use underlay_core::Nanos;
use underlay_record::CheckMoment;

use super::command::Command;
use super::page_json;
use crate::lab::external::Checks;
use crate::lab::workload::{Access, Checked, Loaded, Subject};
use crate::stop::Stop;

/// What a workload's database needs that Underlay does not manage.
pub(super) trait External: Subject {
    /// Takes over size and seed of what is there.
    fn adopt(&mut self, command: &Command<'_>, access: Access<'_>) -> Result<(), Stop>;

    /// Drops the population, also an incomplete one; in words what was dropped.
    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop>;

    /// What was loaded, in words and as members of the JSON object.
    fn describe_load(&self, loaded: &Loaded) -> (String, Value);

    /// Runs, and reports what came of it.
    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop>;

    /// Makes the checks alone.
    fn check_alone(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let check = |access| self.check(access, CheckMoment::After, None);
        check_alone(self, command, check, access)
    }

    /// Checks as JSON.
    fn checks_json(&self, checks: &Checks) -> Value {
        checks.results.iter().map(page_json::check).collect()
    }
}

/// Makes checks and prints what each found.
pub(super) fn check_alone<'a, S: External + ?Sized>(
    subject: &S,
    command: &Command<'_>,
    check: impl FnOnce(Access<'a>) -> Result<Vec<Checked>, Stop>,
    access: Access<'a>,
) -> Result<(Value, Result<(), Stop>), Stop> {
    let began = Instant::now();
    let results = check(access)?;
    let checks = Checks { results, duration: began.elapsed() };
    for check in &checks.results {
        command.say(&format!("  {}", check.describe()));
    }
    command.say(&format!(
        "{} checks in {}, {} failed",
        checks.results.len(),
        Nanos::from(checks.duration),
        checks.failed().count()
    ));
    Ok((subject.checks_json(&checks), checks.verdict("")))
}

/// What a removal found.
pub(super) enum Dropped {
    /// This was dropped.
    Done(String),
    /// There was nothing, which is an error where it was the only thing asked for.
    Nothing(Stop),
}
