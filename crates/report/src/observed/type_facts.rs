//! What one transaction type did in a measured window.

use std::collections::{BTreeMap, BTreeSet};

use underlay_record::StoredHistogram;

use super::window::{MeasuredWindow, merged};

/// Length of a block of the bootstrap, seconds: longer than the autocorrelation of most databases.
const BLOCK_S: f64 = 10.0;

/// Blocks per window and type at most, so that long windows stay affordable.
const MOST_BLOCKS: usize = 40;

/// And at least, if the window has as many ticks: shorter blocks are better than none.
const FEWEST_BLOCKS: usize = 5;

/// One transaction type.
#[derive(Clone, Debug)]
pub(crate) struct TypeFacts {
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    /// Response times per block of time.
    pub(crate) blocks: Vec<StoredHistogram>,
    /// Service times of the whole window.
    pub(crate) service: StoredHistogram,
}

/// The types of a window, by name.
pub(super) fn types(window: &MeasuredWindow<'_>) -> BTreeMap<String, TypeFacts> {
    let names: BTreeSet<&str> =
        window.transactions().map(|tick| tick.transaction.as_str()).collect();
    names
        .into_iter()
        .map(|name| {
            let ticks: Vec<_> =
                window.transactions().filter(|tick| tick.transaction == name).collect();
            let size = block_ticks(window.interval.seconds(), ticks.len());
            let facts = TypeFacts {
                completed: ticks.iter().map(|tick| tick.committed + tick.rolled_back).sum(),
                errors: ticks.iter().flat_map(|tick| tick.errors.values()).sum(),
                blocks: ticks
                    .chunks(size)
                    .map(|block| (&merged(block.iter().map(|tick| &tick.response))).into())
                    .collect(),
                service: (&merged(ticks.iter().map(|tick| &tick.service))).into(),
            };
            (name.to_string(), facts)
        })
        .collect()
}

/// Ticks per block.
fn block_ticks(window_s: f64, ticks: usize) -> usize {
    let blocks = ((window_s / BLOCK_S) as usize).clamp(FEWEST_BLOCKS, MOST_BLOCKS);
    ticks.div_ceil(blocks).max(1)
}
