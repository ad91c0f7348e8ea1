//! What is shown of a run of users, and the rates that follow from it. How it looks, for people or for programs, is decided
//! elsewhere.

use serde_json::{Map, Value};
use underlay_core::Nanos;
use underlay_driver::DriveSummary;

use super::options::{Mixes, UserLoad};
use crate::lab::external::Reading;
use crate::lab::ladder::Window;
use crate::lab::searched::Searched;

/// What a workload adds to the page.
#[derive(Default)]
pub(super) struct Added {
    /// Lines after the headline.
    pub(super) said: Vec<String>,
    /// Lines at the end: checks, identity, size.
    pub(super) ended: Vec<String>,
    /// Members of the JSON object.
    pub(super) members: Map<String, Value>,
}

/// A run of users, as the page needs it.
pub(super) struct Shown<'a> {
    pub(super) users: &'a UserLoad,
    pub(super) window: &'a Window,
    pub(super) search: Option<&'a Searched>,
    pub(super) readings: Option<(Reading, Reading)>,
    pub(super) mixes: &'a Mixes,
    /// Of users who think: the transactions that had ended when the window began, where those were fewer than users.
    pub(super) early: Option<u64>,
}

/// The headline with what was rolled back as the workload intends it, where there was any: some peers count so.
pub(super) fn rate_with_rollbacks(measured: &Window) -> Option<f64> {
    let headline = &measured.tick.shape.headline;
    let types = || headline.types.iter().filter_map(|kind| measured.tick.types.get(*kind));
    let rolled_back: u64 = types().map(|kind| kind.rolled_back).sum();
    let committed: u64 = types().map(|kind| kind.committed).sum();
    (rolled_back > 0).then(|| headline.rate(committed + rolled_back, measured.tick.length()))
}

/// What the database itself counted.
pub(super) struct DatabaseRates {
    /// The headline by a sequence of its own.
    pub(super) headline: Option<f64>,
    /// The engine's transactions per minute; none where its counters may have been reset during the run.
    pub(super) tpm: Option<f64>,
    /// What they are.
    pub(super) tpm_is: &'static str,
}

/// None where it could not be asked at both ends.
pub(super) fn database_rates<B>(
    shown: &Shown<'_>,
    summary: &DriveSummary<B>,
) -> Option<DatabaseRates> {
    let (first, last) = shown.readings.as_ref()?;
    let measured = shown.window;
    let length: Nanos = last.at.saturating_duration_since(first.at).into();
    let headline = &measured.tick.shape.headline;
    let counted = last
        .counted
        .zip(first.counted)
        .map(|(last, first)| headline.rate(last.saturating_sub(first), length));
    // Counters live in the server's memory: after a restart they count from 0 and may exceed their old values.
    let transactions = last.engine.since(&first.engine).filter(|_| summary.outages.is_empty());
    let per_minute = |count: u64| count as f64 * 60.0 / length.as_secs_f64().max(f64::MIN_POSITIVE);
    Some(DatabaseRates {
        headline: counted,
        tpm: transactions.map(|(count, _)| per_minute(count)),
        tpm_is: transactions.map_or(last.engine.definition(), |(_, definition)| definition),
    })
}
