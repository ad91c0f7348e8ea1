//! The search for the highest rate that meets a latency target: merging and checking.
//!
//! Its first rate is that of the workload's open loop, which is decided, and scaled, with the workload.

use underlay_core::Nanos;
use underlay_workload::objective::Objective;

use super::chosen::{Chosen, Layer, Pick};
use super::resolver::Resolver;
use super::time_range::check_time;
use super::workload::WorkloadChoice;
use crate::entry::Entry;
use crate::exact;
use crate::limits::{SEARCH_MEASURE, SEARCH_SETTLE};
use crate::plan::SearchPlan;

/// Decides about `[procedure.search]`: `Some(None)` is no search, `None` one that is refused.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    users: Option<&Chosen<Vec<u32>>>,
    workload: Option<&WorkloadChoice>,
) -> Option<Option<SearchPlan>> {
    let file = resolver.file;
    let section = &file.procedure.search;
    if section.refused {
        return None;
    }
    if !section.is_present() {
        return Some(None);
    }
    let default = &resolver.defaults.procedure.search;
    let objective = objective(resolver);
    let resolution = [(Layer::File, &section.resolution), (Layer::Default, &default.resolution)];
    let resolution = resolver.pick("procedure.search.resolution", &resolution).found();
    let settle = search_time(resolver, "settle", &section.settle, &default.settle);
    let measure = search_time(resolver, "measure", &section.measure, &default.measure);
    if let Some(settle) = &settle {
        check_time(resolver, settle, &SEARCH_SETTLE);
    }
    if let Some(measure) = &measure {
        check_time(resolver, measure, &SEARCH_MEASURE);
    }
    if let Some(users) = users
        && users.value.len() > 1
    {
        users.problem(
            &mut resolver.report,
            "conflict",
            "a search has one number of users",
            "it changes the rate, not the users: they bound what can be in progress at once",
            "write for example users = [64]",
        );
    }
    if workload.is_some_and(|workload| workload.first_rate().is_none()) {
        resolver.report.add(
            section.span.clone(),
            "conflict",
            "a search offers rates, but the users follow the answers",
            "the workload has no rate",
            "add `pacing.open` with `rate-per-second`, the first rate to try, to the workload",
        );
    }
    let (objective, resolution) = (objective?, resolution?);
    let (settle, measure) = (settle?, measure?);
    resolver.provenance.extend([
        objective.setting(objective.value.to_string()),
        resolution.setting(resolution.value.to_string()),
        settle.setting(exact::time(settle.value)),
        measure.setting(exact::time(measure.value)),
    ]);
    Some(Some(SearchPlan {
        objective: objective.value,
        resolution: resolution.value,
        settle: settle.value,
        measure: measure.value,
    }))
}

fn objective(resolver: &mut Resolver<'_>) -> Option<Chosen<Objective>> {
    let section = &resolver.file.procedure.search;
    let text = match resolver.pick("procedure.search.slo", &[(Layer::File, &section.slo)]) {
        Pick::Found(text) => text,
        Pick::Refused => return None,
        Pick::Absent => {
            resolver.report.add(
                section.span.clone(),
                "missing-key",
                "the search has no latency target",
                "`slo` is missing",
                "add for example slo = \"p99=10ms\"",
            );
            return None;
        }
    };
    match text.value.parse::<Objective>() {
        Ok(objective) => Some(text.with(objective)),
        Err(error) => {
            text.problem(
                &mut resolver.report,
                "out-of-range",
                error.to_string(),
                "not a quantile and its limit",
                "write the quantile in percent, and the time with its unit",
            );
            None
        }
    }
}

fn search_time(
    resolver: &mut Resolver<'_>,
    key: &str,
    file: &Entry<Nanos>,
    default: &Entry<Nanos>,
) -> Option<Chosen<Nanos>> {
    let layers = [(Layer::File, file), (Layer::Default, default)];
    resolver.pick(&format!("procedure.search.{key}"), &layers).found()
}
