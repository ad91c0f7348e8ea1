//! Latency per transaction type: exact merges of histograms, never averages of percentiles.

use underlay_core::{Histogram, RootSeed};
use underlay_record::StoredHistogram;

use crate::analysis::{Basis, Distribution, Estimate, LatencyRow};
use crate::observed::{WindowFacts, merged};
use crate::statistics::{QuantileEstimate, quantile_intervals};
use crate::transaction_types::{response_limit_ns, type_order};
use crate::workload_view::{ALL_REQUESTS, WorkloadView};

const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Shares at which a distribution is drawn: denser towards the tail.
const SHARES: [f64; 26] = [
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97,
    0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999, 1.0,
];

/// The transaction types that occur in `windows`, in the order of the standard. Load generators report all
/// types that a workload knows; those that never ran are omitted.
fn types<'a>(windows: &[&'a WindowFacts]) -> Vec<&'a str> {
    let asked = windows.iter().flat_map(|window| &window.types);
    let mut names: Vec<&str> = asked
        .filter(|(_, facts)| facts.completed > 0 || facts.errors > 0)
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_by_key(|name| (type_order(name), *name));
    names.dedup();
    names
}

/// The latencies of one rung. `seed` makes the bootstrap the same on every reading.
pub(crate) fn rows(
    windows: &[&WindowFacts],
    workload: &WorkloadView,
    seed: RootSeed,
) -> Vec<LatencyRow> {
    let types = types(windows);
    let mut rows: Vec<LatencyRow> =
        types.iter().map(|name| row(windows, (*name, &[*name]), seed)).collect();
    // Requests of several kinds are also reported together, as by the command; transaction types of a database are not comparable.
    let counted: Vec<&str> = types.into_iter().filter(|name| workload.counts(name)).collect();
    if workload.is_block_load() && counted.len() > 1 {
        rows.push(row(windows, (ALL_REQUESTS, &counted), seed));
    }
    rows
}

/// The distributions of one rung.
pub(crate) fn distributions(windows: &[&WindowFacts]) -> Vec<Distribution> {
    let Some(first) = windows.first() else { return Vec::new() };
    types(windows)
        .into_iter()
        .filter_map(|name| {
            let union = merged(windows.iter().flat_map(|window| blocks(window, name)));
            let shares: Vec<f64> =
                SHARES.into_iter().filter(|share| is_resolved(*share, union.count())).collect();
            let nanos = shares.iter().filter_map(|share| union.quantile(*share)).collect();
            (!union.is_empty()).then(|| Distribution {
                design: first.design,
                users: first.users,
                transaction: name.to_string(),
                count: union.count(),
                shares,
                nanos,
            })
        })
        .collect()
}

/// Whether a share lies within what so many values can resolve: at least one value above it.
fn is_resolved(share: f64, count: u64) -> bool {
    share == 1.0 || (1.0 - share) * count as f64 >= 1.0
}

/// The row of some types together.
fn row(windows: &[&WindowFacts], (name, types): (&str, &[&str]), seed: RootSeed) -> LatencyRow {
    let all: Vec<Histogram> = windows.iter().flat_map(|window| blocks_of(window, types)).collect();
    let mut random = seed.stream("report/bootstrap", type_order(name) as u64);
    let quantiles = quantile_intervals(&all, &QUANTILES, &mut random);
    let per_run: Vec<Histogram> = windows
        .chunk_by(|a, b| a.run == b.run)
        .map(|windows| {
            let blocks = windows
                .iter()
                .flat_map(|window| types.iter().flat_map(move |name| blocks(window, name)));
            merged(blocks)
        })
        .collect();
    let mut union = Histogram::new();
    per_run.iter().for_each(|histogram| union.merge(histogram));
    let facts = || {
        windows
            .iter()
            .flat_map(|window| types.iter().filter_map(move |name| window.types.get(*name)))
    };
    let estimates: Vec<Estimate> = QUANTILES
        .iter()
        .zip(quantiles)
        .map(|(q, found)| {
            let runs = per_run.iter().map(|run| run.quantile(*q).map(|ns| ns as f64)).collect();
            estimate(found, runs)
        })
        .collect();
    let [p50, p95, p99] =
        <[Estimate; 3]>::try_from(estimates).expect("there is one estimate per quantile");
    LatencyRow {
        transaction: name.to_string(),
        count: union.count(),
        p50,
        p95,
        p99,
        mean_ns: union.mean(),
        max_ns: union.max(),
        service_p99_ns: merged(facts().map(|facts| &facts.service)).quantile(0.99),
        errors: facts().map(|facts| facts.errors).sum(),
    }
}

fn estimate(found: Option<QuantileEstimate>, runs: Vec<Option<f64>>) -> Estimate {
    let interval = found.and_then(|found| found.interval);
    Estimate {
        value: found.map(|found| found.value as f64),
        low: interval.map(|(low, _)| low as f64),
        high: interval.map(|(_, high)| high as f64),
        basis: if interval.is_some() { Basis::Bootstrap } else { Basis::None },
        runs,
    }
}

fn blocks<'a>(
    window: &'a WindowFacts,
    name: &str,
) -> impl Iterator<Item = &'a StoredHistogram> + use<'a> {
    window.types.get(name).into_iter().flat_map(|facts| &facts.blocks)
}

/// The blocks of some types of a window, those of the same time as one.
fn blocks_of(window: &WindowFacts, types: &[&str]) -> Vec<Histogram> {
    let of = |name: &&str| blocks(window, name).map(StoredHistogram::decoded);
    let mut union: Vec<Histogram> = Vec::new();
    for name in types {
        for (position, block) in of(name).enumerate() {
            match union.get_mut(position) {
                Some(sum) => sum.merge(&block),
                None => union.push(block),
            }
        }
    }
    union
}

/// The type whose 90th percentile exceeds the limit of the standard in these windows, if one does.
pub(crate) fn exceeds_limit(windows: &[&WindowFacts]) -> Option<String> {
    types(windows)
        .into_iter()
        .find(|name| {
            let p90 = merged(windows.iter().flat_map(|window| blocks(window, name))).quantile(0.9);
            let limit = response_limit_ns(name);
            p90.zip(limit).is_some_and(|(p90, limit)| p90 > limit)
        })
        .map(str::to_string)
}
