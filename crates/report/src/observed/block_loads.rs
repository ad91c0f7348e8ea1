//! The loads of block I/O that the document of a run lists.
//!
//! Nothing in here fails: what a document does not say is absent.

use serde_json::Value;

use crate::analysis::BlockLoad;

/// The loads that a document has, in their order.
pub(crate) fn block_loads(said: &Value) -> Vec<BlockLoad> {
    said["loads"].as_array().into_iter().flatten().filter_map(load).collect()
}

fn load(said: &Value) -> Option<BlockLoad> {
    let number = |key: &str| said[key].as_u64();
    Some(BlockLoad {
        label: said["label"].as_str()?.to_string(),
        in_flight: number("in_flight")?,
        counts: said["counts"].as_bool().unwrap_or(true),
        offered_per_second: said["offered_per_second"].as_f64(),
        done_per_second: said["done_per_second"].as_f64()?,
        bytes_per_second: said["bytes_per_second"].as_f64()?,
        mean_ns: said["mean_ns"].as_f64(),
        p50_ns: number("p50_ns"),
        p95_ns: number("p95_ns"),
        p99_ns: number("p99_ns"),
        p999_ns: number("p999_ns"),
        saturated: said["saturated"].as_bool(),
        ended_early: said["interrupted"] == true || said["failure"].is_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::load;
    use serde_json::json;

    #[test]
    fn what_is_not_said_is_absent_and_a_load_without_a_rate_is_none() {
        let said = json!({
            "label": "70 %", "in_flight": 32, "counts": false, "offered_per_second": 700.0,
            "done_per_second": 690.0, "bytes_per_second": 2.8e6, "p99_ns": 4_000_000, "saturated": true,
        });
        let read = load(&said).expect("a load");
        assert_eq!(
            (read.offered_per_second, read.p99_ns, read.p50_ns),
            (Some(700.0), Some(4_000_000), None)
        );
        assert_eq!((read.saturated, read.ended_early, read.counts), (Some(true), false, false));
        assert_eq!(load(&json!({ "label": "load", "in_flight": 1 })), None);
    }
}
