//! Intervals of quantiles: bootstrap over blocks of time.
//!
//! Seconds are correlated, so whole blocks of time are drawn with replacement and their histograms merged
//! exactly; the quantile of each resample is one draw. Percentile interval, seeded, therefore the
//! same on every reading of a record.

use rand::RngExt;
use rand_pcg::Pcg64;
use underlay_core::Histogram;

/// Resamples: enough for the ends of a 95 % interval.
const RESAMPLES: usize = 400;
/// Blocks below which the bootstrap means nothing.
const FEWEST_BLOCKS: usize = 5;

/// A quantile with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileEstimate {
    /// The quantile of the merged histogram.
    pub value: u64,
    /// The 95 % interval; `None` with too few blocks.
    pub interval: Option<(u64, u64)>,
}

/// The quantiles `qs` (shares in `0..=1`) of the union of `blocks`, one histogram per block of time.
///
/// `None` entries when nothing was counted.
pub fn quantile_intervals(
    blocks: &[Histogram],
    qs: &[f64],
    random: &mut Pcg64,
) -> Vec<Option<QuantileEstimate>> {
    let mut union = Histogram::new();
    blocks.iter().for_each(|block| union.merge(block));
    let draws: Vec<Vec<u64>> = if blocks.len() < FEWEST_BLOCKS || union.is_empty() {
        vec![Vec::new(); qs.len()]
    } else {
        drawn_quantiles(&Counts::of(blocks, &union), qs, random)
    };
    qs.iter()
        .zip(draws)
        .map(|(q, mut drawn)| {
            drawn.sort_unstable();
            Some(QuantileEstimate { value: union.quantile(*q)?, interval: middle_95(&drawn) })
        })
        .collect()
}

/// The counts of all blocks over the buckets that any of them uses: a fraction of all buckets, so that
/// hundreds of resamples stay cheap.
struct Counts {
    /// Middle of each bucket, ascending, within the exact extremes.
    values: Vec<u64>,
    /// Per block: (position of the bucket, count).
    blocks: Vec<Vec<(usize, u64)>>,
}

impl Counts {
    fn of(blocks: &[Histogram], union: &Histogram) -> Counts {
        let lows: Vec<u64> = union.buckets().map(|(low, ..)| low).collect();
        let (least, most) = (union.min().unwrap_or(0), union.max().unwrap_or(u64::MAX));
        let counted = |block: &Histogram| {
            block
                .buckets()
                .filter_map(|(low, _, n)| Some((lows.binary_search(&low).ok()?, n)))
                .collect()
        };
        Counts {
            values: union
                .buckets()
                .map(|(low, width, _)| (low + (width - 1) / 2).clamp(least, most))
                .collect(),
            blocks: blocks.iter().map(counted).collect(),
        }
    }
}

/// Per quantile: its value in each resample that counted anything.
fn drawn_quantiles(counts: &Counts, qs: &[f64], random: &mut Pcg64) -> Vec<Vec<u64>> {
    let mut draws = vec![Vec::with_capacity(RESAMPLES); qs.len()];
    let mut sums = vec![0u64; counts.values.len()];
    for _ in 0..RESAMPLES {
        sums.fill(0);
        for _ in 0..counts.blocks.len() {
            for (bucket, n) in &counts.blocks[random.random_range(0..counts.blocks.len())] {
                sums[*bucket] += n;
            }
        }
        let total: u64 = sums.iter().sum();
        for (q, drawn) in qs.iter().zip(&mut draws) {
            drawn.extend(ranked(&sums, (q * total as f64).ceil() as u64, &counts.values));
        }
    }
    draws
}

/// The value at a rank (from 1); `None` when nothing was counted.
fn ranked(sums: &[u64], rank: u64, values: &[u64]) -> Option<u64> {
    let mut seen = 0;
    sums.iter().zip(values).find_map(|(n, value)| {
        seen += n;
        (*n > 0 && seen >= rank).then_some(*value)
    })
}

fn middle_95(sorted: &[u64]) -> Option<(u64, u64)> {
    let last = sorted.len().checked_sub(1)? as f64;
    Some((sorted[(last * 0.025).floor() as usize], sorted[(last * 0.975).ceil() as usize]))
}

#[cfg(test)]
mod tests {
    use super::quantile_intervals;
    use crate::synthetic_series::{exponential, stream};
    use underlay_core::Histogram;

    /// Blocks of exponential latencies with mean 1 ms.
    fn blocks(seed: u64, blocks: usize, per_block: usize) -> Vec<Histogram> {
        let mut random = stream("latency", seed);
        (0..blocks)
            .map(|_| {
                let mut histogram = Histogram::new();
                (0..per_block).for_each(|_| histogram.record(exponential(&mut random, 1e6) as u64));
                histogram
            })
            .collect()
    }

    #[test]
    fn covers_the_true_quantile() {
        let truth = [(0.5, 1e6 * 2f64.ln()), (0.99, 1e6 * 100f64.ln())];
        let mut covered = [0, 0];
        for seed in 0..150 {
            let qs: Vec<f64> = truth.iter().map(|(q, _)| *q).collect();
            let found =
                quantile_intervals(&blocks(seed, 30, 200), &qs, &mut stream("bootstrap", seed));
            for (position, (_, value)) in truth.iter().enumerate() {
                let (low, high) = found[position].unwrap().interval.unwrap();
                // A bucket is up to 0.8 % wide.
                if (low as f64 * 0.992..=high as f64 * 1.008).contains(value) {
                    covered[position] += 1;
                }
            }
        }
        for (position, covered) in covered.iter().enumerate() {
            assert!((132..=150).contains(covered), "{:?}: {covered} of 150", truth[position]);
        }
    }

    #[test]
    fn is_reproducible_and_needs_blocks() {
        let blocks = blocks(1, 20, 50);
        let of = |seed| quantile_intervals(&blocks, &[0.95], &mut stream("bootstrap", seed));
        assert_eq!(of(7), of(7));
        let few = quantile_intervals(&blocks[..4], &[0.95], &mut stream("bootstrap", 1));
        assert_eq!(few[0].unwrap().interval, None);
        assert_eq!(quantile_intervals(&[], &[0.5], &mut stream("bootstrap", 1)), vec![None]);
    }
}
