//! Where the client works, and what its way to the server costs a transaction.

use underlay_record::conventions::document;

use crate::analysis::{Finding, FindingSeverity};
use crate::ladder::Group;
use crate::observed::{DRIVER, WindowFacts};
use crate::statistics::mean;
use crate::wording::{amount, percent, time_ns};

use super::evidence::Evidence;
use super::finding::finding;
use super::grouped::{above, grouped};

/// Waits for a connection that are a smaller share of the response time than this are not mentioned.
const WAIT_SHARE: f64 = 0.01;

pub(super) fn clients(evidence: &Evidence<'_>) -> Vec<Finding> {
    let findings = [within_limits(evidence), network(evidence), shared_connections(evidence)];
    findings.into_iter().flatten().collect()
}

fn information(code: &str, text: String) -> Finding {
    finding(FindingSeverity::Information, code, text)
}

/// The mean of a number over the windows of a group that have it.
fn pooled(group: &Group<'_>, of: impl Fn(&WindowFacts) -> Option<f64>) -> Option<f64> {
    mean(&group.windows.iter().filter_map(|window| of(window)).collect::<Vec<_>>())
}

fn within_limits(evidence: &Evidence<'_>) -> Option<Finding> {
    let cores = |window: &WindowFacts| {
        let cores = window.driver.cores.or_else(|| window.cpu.on_cpu.get(DRIVER).copied());
        cores.filter(|_| window.client.is_local)
    };
    grouped(
        evidence,
        |group| pooled(group, cores),
        |places, largest| {
            let text = format!(
                "the client works within the limits of the server: {places}; up to {} processors of the server's are its",
                amount(largest)
            );
            information("client-within-limits", text)
        },
    )
}

fn network(evidence: &Evidence<'_>) -> Option<Finding> {
    let round_trips = evidence
        .groups
        .iter()
        .filter_map(|group| pooled(group, |window| window.client.round_trips))
        .max_by(f64::total_cmp)
        .unwrap_or(0.0);
    let late = evidence
        .digest
        .documents
        .values()
        .filter_map(|documents| documents.get(document::CLIENT))
        .filter_map(|client| client["network"]["late_mean_ns"].as_f64())
        .max_by(f64::total_cmp)
        .map_or(String::new(), |late| {
            format!("; messages were delivered up to {} late on average", time_ns(late))
        });
    grouped(
        evidence,
        |group| pooled(group, WindowFacts::network_per_transaction_ns),
        |places, largest| {
            let text = format!(
                "the client's network takes up to {} of a transaction, in up to {} round trips: {places}{late}",
                time_ns(largest),
                amount(round_trips)
            );
            information("client-network", text)
        },
    )
}

fn shared_connections(evidence: &Evidence<'_>) -> Option<Finding> {
    let share = |window: &WindowFacts| {
        let response_s = window.load.response_s.filter(|response| *response > 0.0)?;
        Some(window.client.connection_wait_s? / response_s)
    };
    grouped(
        evidence,
        |group| above(group, WAIT_SHARE, share),
        |places, largest| {
            let text = format!(
                "users waited for one of the connections that they share, up to {} of their response time: {places}",
                percent(largest)
            );
            information("connection-wait", text)
        },
    )
}
