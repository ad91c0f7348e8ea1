//! The searches of a record, from the documents of its runs.
//!
//! Nothing in here fails: what a document does not say is absent.

use serde_json::Value;
use underlay_record::conventions::document;

use crate::analysis::{RateSearch, RateStep};
use crate::digest::Digest;

/// All searches, in the order of execution.
pub(crate) fn all(digest: &Digest) -> Vec<RateSearch> {
    let search = |(position, documents): (&usize, &std::collections::BTreeMap<String, Value>)| {
        let said = documents.get(document::RATE_SEARCH)?;
        let run = digest.runs.get(*position)?;
        let found = &said["found"];
        let begin_ns = run.begin.0;
        Some(RateSearch {
            run: *position,
            design: run.design as usize,
            repeat: run.repeat,
            slo: said["slo"].as_str().unwrap_or_default().to_string(),
            quantile: said["quantile"].as_f64(),
            limit_ns: said["limit_ns"].as_u64(),
            found: found["kind"].as_str().unwrap_or_default().to_string(),
            holds_per_second: found["holds_per_second"].as_f64(),
            fails_per_second: found["fails_per_second"].as_f64(),
            steps: said["steps"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|said| step(said, begin_ns))
                .collect(),
        })
    };
    digest.documents.iter().filter_map(search).collect()
}

fn step(said: &Value, begin_ns: u64) -> Option<RateStep> {
    let seconds = |key: &str| Some(said[key].as_u64()?.saturating_sub(begin_ns) as f64 / 1e9);
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_string();
    Some(RateStep {
        rate_per_second: said["rate_per_second"].as_f64()?,
        delivered_per_second: said["delivered_per_second"].as_f64(),
        observed_ns: said["observed_ns"].as_u64(),
        late_share: said["late_share"].as_f64(),
        late_share_low: said["late_share_low"].as_f64(),
        late_share_high: said["late_share_high"].as_f64(),
        verdict: text("verdict"),
        holds: said["holds"].as_bool(),
        by_point_estimate: said["by_point_estimate"].as_bool().unwrap_or(false),
        purpose: text("purpose"),
        begin_s: seconds("begin_ns"),
        end_s: seconds("end_ns"),
    })
}
