//! What the load generator did to the evidence.

use underlay_core::Nanos;
use underlay_record::conventions::document;

use crate::analysis::{Finding, FindingSeverity};
use crate::ladder::Group;
use crate::wording::{count, percent, time_ns};

use super::evidence::Evidence;
use super::finding::{finding, of, warning};
use super::grouped::{above, grouped, places};

/// Dispatch later than this at the 99th percentile is not on time.
const LATE_DISPATCH: Nanos = Nanos::from_millis(20);

/// Load generators that take more of the host than this are mentioned.
const DRIVER_SHARE: f64 = 0.25;

pub(super) fn load_generator(evidence: &Evidence<'_>) -> Vec<Finding> {
    let load_of = |group: &Group<'_>| {
        evidence.driver.iter().find(|load| (load.design, load.users) == (group.design, group.users))
    };
    let late = |group: &Group<'_>| {
        let lag = load_of(group)?.dispatch_lag_p99_ns?;
        (lag > LATE_DISPATCH.0).then_some(lag as f64)
    };
    let large = |group: &Group<'_>| load_of(group)?.share_of_host.filter(|s| *s > DRIVER_SHARE);
    let late = grouped(evidence, late, |places, largest| {
        let text = format!(
            "the load generator dispatched late: {places} (dispatch lag p99 up to {}); it did not get CPU \
             time when it needed it",
            time_ns(largest)
        );
        warning("dispatch-lag", text)
    });
    let large = grouped(evidence, large, |places, largest| {
        let text = format!(
            "the load generator used up to {} of the host's processors: {places}",
            percent(largest)
        );
        finding(FindingSeverity::Information, "driver-share", text)
    });
    saturated_generator(evidence).into_iter().chain(late).chain(large).collect()
}

pub(super) fn saturated_generator(evidence: &Evidence<'_>) -> Option<Finding> {
    let by_verdict = evidence
        .bottlenecks
        .iter()
        .filter(|bottleneck| bottleneck.class == "load-generator")
        .map(|bottleneck| (bottleneck.design, bottleneck.users));
    let by_load = evidence
        .driver
        .iter()
        .filter(|load| load.saturated == Some(true))
        .map(|load| (load.design, load.users));
    let limited: Vec<(usize, u32)> = by_verdict.chain(by_load).collect();
    (!limited.is_empty()).then(|| {
        let text = format!(
            "the load generator was saturated: {}; these numbers do not measure the database",
            places(evidence.digest, &limited)
        );
        warning("generator-saturated", text)
    })
}

pub(super) fn load(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| window.load.shortfall),
        |places, largest| {
            let text = format!(
                "up to {} of the requested load was not delivered: {places}; latencies are those of \
                 a lighter load",
                percent(largest)
            );
            finding(FindingSeverity::Invalid, "load-not-delivered", text)
        },
    ));
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| Some(window.load.error_share)),
        |places, largest| {
            let text = format!("up to {} of the attempts failed: {places}", percent(largest));
            warning("errors", text)
        },
    ));
    findings.extend(grouped(
        evidence,
        |group| group.windows.iter().any(|window| window.load.counter_was_reset).then_some(0.0),
        |places, _| {
            let text = format!(
                "TPM is unknown where connections were lost, because a restarted server counts from 0: {places}"
            );
            finding(FindingSeverity::Information, "tpm-unknown", text)
        },
    ));
    // A block load reports every failed request (see `block_load`), so this share would repeat it.
    if evidence.digest.workload.is_block_load() {
        findings.retain(|finding: &Finding| finding.code != "errors");
    }
    for (run, documents) in &evidence.digest.documents {
        let outages = documents.get(document::DRIVER).and_then(|said| said["outages"].as_u64());
        if let Some(outages) = outages.filter(|outages| *outages > 0) {
            let text = format!(
                "the load generator lost its connection to the database {} in {}",
                count(outages, "time"),
                evidence.digest.run_words(*run)
            );
            findings.push(of(warning("outage", text), *run, evidence.digest));
        }
    }
    findings
}
