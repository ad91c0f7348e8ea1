//! Backups and restores, cycle by cycle, over the runs of each design. Where several databases take them, a run has their mean.

use std::collections::BTreeMap;

use crate::analysis::Operation;
use crate::digest::Digest;
use crate::estimates::over_runs;
use crate::observed::ObservedOperation;
use crate::statistics::mean;

/// One row per design, kind and cycle: all backups of a design, then its restores.
pub(crate) fn all(digest: &Digest) -> Vec<Operation> {
    let mut rows: BTreeMap<(usize, &str, u32), Vec<&ObservedOperation>> = BTreeMap::new();
    for operation in &digest.operations {
        let key = (operation.design, operation.kind.as_str(), operation.cycle);
        rows.entry(key).or_default().push(operation);
    }
    rows.into_iter()
        .map(|((design, kind, cycle), operations)| {
            let mut by_run: BTreeMap<usize, Vec<&ObservedOperation>> = BTreeMap::new();
            for operation in operations {
                by_run.entry(operation.run).or_default().push(operation);
            }
            let over = |of: &dyn Fn(&ObservedOperation) -> Option<f64>| {
                let of_run = |operations: &Vec<&ObservedOperation>| {
                    let values: Option<Vec<f64>> =
                        operations.iter().map(|operation| of(operation)).collect();
                    mean(&values?)
                };
                over_runs(by_run.values().map(of_run).collect(), None)
            };
            Operation {
                design,
                kind: kind.to_string(),
                cycle,
                seconds: over(&|operation| Some(operation.seconds())),
                bytes_per_second: over(&ObservedOperation::bytes_per_second),
                read_latency_ns: over(&|operation| operation.read_latency_ns),
                write_latency_ns: over(&|operation| operation.write_latency_ns),
            }
        })
        .collect()
}
