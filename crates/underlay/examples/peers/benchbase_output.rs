//! What BenchBase leaves in its folder of results, read: the summary and the row per transaction.

use serde_json::Value;

/// How long the measured load was, from `*.summary.json`.
pub fn measured_seconds(summary: &str) -> Option<f64> {
    let summary: Value = serde_json::from_str(summary).ok()?;
    Some(summary["Elapsed Time (nanoseconds)"].as_f64()? / 1e9)
}

/// Latencies of a type in us, ascending, from `*.raw.csv`: the columns are found by their names.
pub fn latencies_us(raw: &str, kind: &str) -> Option<Vec<u64>> {
    let mut lines = raw.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    let (name, latency) = (column("Transaction Name")?, column("Latency (microseconds)")?);
    let mut latencies = Vec::new();
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        if *values.get(name)? == kind {
            latencies.push(values.get(latency)?.trim().parse().ok()?);
        }
    }
    latencies.sort_unstable();
    Some(latencies)
}

/// The smallest value that at least this share of all values does not exceed.
pub fn quantile(ascending: &[u64], share: f64) -> Option<u64> {
    let rank = (ascending.len() as f64 * share).ceil() as usize;
    ascending.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::{latencies_us, measured_seconds, quantile};

    const SUMMARY: &str = r#"{
        "Start timestamp (milliseconds)": 1795336860123,
        "Current Timestamp (milliseconds)": 1795336871456,
        "Elapsed Time (nanoseconds)": 10000912345,
        "DBMS Type": "POSTGRES",
        "DBMS Version": "PostgreSQL 15.18",
        "Benchmark Type": "tpcc",
        "Final State": "EXIT",
        "Measured Requests": 4821,
        "isolation": "TRANSACTION_SERIALIZABLE",
        "scalefactor": "1",
        "terminals": "2",
        "Latency Distribution": { "Median Latency (microseconds)": 3211, "99th Percentile Latency (microseconds)": 15002 },
        "Throughput (requests/second)": 482.05,
        "Goodput (requests/second)": 479.95
    }"#;

    const RAW: &str = "\
Transaction Type Index,Transaction Name,Start Time (microseconds),Latency (microseconds),Worker Id (start number),Phase Id (index in config file)
1,NewOrder,1795336860.200100,5210,0,0
2,Payment,1795336860.200900,1900,1,0
1,NewOrder,1795336860.206000,4100,0,0
1,NewOrder,1795336860.211000,9000,1,0
";

    #[test]
    fn a_summary_is_read() {
        assert_eq!(measured_seconds(SUMMARY), Some(10.000912345));
        assert_eq!(measured_seconds("{}"), None);
        assert_eq!(measured_seconds("not JSON"), None);
    }

    #[test]
    fn latencies_are_those_of_one_type() {
        assert_eq!(latencies_us(RAW, "NewOrder"), Some(vec![4100, 5210, 9000]));
        assert_eq!(latencies_us(RAW, "Delivery"), Some(vec![]));
        assert_eq!(latencies_us("a,b\n1,2\n", "NewOrder"), None);
        // A row that was cut off is no measurement.
        let cut = &RAW[..RAW.len() - 12];
        assert_eq!(latencies_us(cut, "NewOrder"), None);
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(
            [0.5, 0.95, 0.99].map(|share| quantile(&values, share)),
            [100, 190, 198].map(Some)
        );
        assert_eq!(quantile(&[7], 0.5), Some(7));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
