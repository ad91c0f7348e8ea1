//! The notes that the command of a block load prints with its numbers, for the report of its record.

use underlay_record::conventions::document;

use crate::analysis::{BlockLoads, Finding, FindingSeverity};
use crate::block_loads;
use crate::digest::Digest;
use crate::wording::{count, percent};

use super::finding::{finding, of, warning};

/// Share of the requests that fell due and were never started from which on a load is not what was asked for: that at which
/// the command ends with an exit code of its own.
const UNDELIVERED: f64 = 0.01;

pub(super) fn block_loads(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for loads in block_loads::all(digest) {
        let found = [
            delivery(&loads),
            steadiness(&loads),
            interruption(&loads),
            errors(&loads),
            generator(&loads),
            page_cache(&loads, digest),
        ];
        findings.extend(found.into_iter().flatten().map(|found| of(found, loads.run, digest)));
    }
    findings
}

/// Whether this run's steadiness was judged over its rounds.
pub(super) fn is_judged(digest: &Digest, run: usize) -> bool {
    let documents = digest.documents.get(&run);
    let said = documents.and_then(|documents| documents.get(document::BLOCK_LOAD));
    said.is_some_and(|said| said["steady"].is_boolean())
}

fn delivery(loads: &BlockLoads) -> Option<Finding> {
    let Some(delivery) = &loads.delivery else { return undelivered_by_rate(loads) };
    let share = delivery.undelivered as f64 / delivery.due as f64;
    let text = format!(
        "{} of {} requests that were due were never started ({}): the target did not keep up",
        delivery.undelivered,
        delivery.due,
        percent(share)
    );
    match delivery.undelivered {
        0 => None,
        _ if share > UNDELIVERED => Some(finding(
            FindingSeverity::Invalid,
            "load-not-delivered",
            format!("{text}; response times cover only the started requests"),
        )),
        _ => Some(finding(FindingSeverity::Information, "delivery", text)),
    }
}

/// Records of before requests that were due were counted: the rate that was done tells.
fn undelivered_by_rate(loads: &BlockLoads) -> Option<Finding> {
    let curve = loads.loads.iter().any(|load| load.offered_per_second.is_some() && !load.counts);
    let saturated = |load: &&crate::analysis::BlockLoad| load.saturated == Some(true);
    let load = loads.loads.iter().filter(|load| load.counts && !curve).find(saturated)?;
    let text = format!(
        "only {:.0} of {:.0} offered requests per second completed: the target did not keep up; response times are \
         those of a lighter load",
        load.done_per_second, load.offered_per_second?
    );
    Some(finding(FindingSeverity::Invalid, "load-not-delivered", text))
}

fn steadiness(loads: &BlockLoads) -> Option<Finding> {
    let numbers = loads.steady_state.as_ref();
    let asked = numbers.is_some() || loads.steady.is_some();
    let rounds = numbers.map_or(loads.loads.len() as u64, |state| state.rounds);
    let words = numbers
        .and_then(|state| Some((state.range_share?, state.excursion_share?)))
        .map_or(String::new(), |(range, line)| {
            let (range, line) = (100.0 * range, 100.0 * line);
            format!(
                " (last five rounds: range {range:.1} % of the mean, limit 20 %; trend {line:.1} %, limit 10 %)"
            )
        });
    match loads.steady {
        Some(true) => Some(finding(
            FindingSeverity::Information,
            "steady-state",
            format!("steady state: reached after {}{words}", count(rounds, "round")),
        )),
        Some(false) => Some(warning(
            "steady-state-not-reached",
            format!(
                "steady state: NOT reached after {}{words}; the reported mean covers rounds that differ",
                count(rounds, "round")
            ),
        )),
        None => asked.then(|| {
            warning(
                "steady-state-not-judged",
                format!("steady state: not judged, {rounds} of at least 5 rounds"),
            )
        }),
    }
}

fn interruption(loads: &BlockLoads) -> Option<Finding> {
    let done = loads.loads.iter().filter(|load| !load.ended_early).count();
    let text = match (loads.planned, loads.steady_state.is_some()) {
        (Some(planned), _) => {
            format!("the curve was interrupted: {done} of {planned} loads completed")
        }
        (None, true) => format!(
            "the load was interrupted after {}: results cover the time until then",
            count(done as u64, "whole round")
        ),
        (None, false) => "the load was interrupted: results cover the time until then".to_string(),
    };
    loads.interrupted.then(|| warning("interrupted", text))
}

fn errors(loads: &BlockLoads) -> Option<Finding> {
    let text =
        format!("{} failed; rates and response times exclude them", count(loads.errors, "request"));
    (loads.errors > 0).then(|| warning("errors", text))
}

fn generator(loads: &BlockLoads) -> Option<Finding> {
    let text = "a load generator worker used a whole processor: the host, not the storage, may be the bottleneck";
    loads.generator_busy.then(|| warning("generator-saturated", text.to_string()))
}

fn page_cache(loads: &BlockLoads, digest: &Digest) -> Option<Finding> {
    let text = "the load used the page cache: the results include memory speed";
    let detail = &digest.designs.get(loads.design)?.detail;
    (detail["direct"] == false).then(|| warning("page-cache", text.to_string()))
}
