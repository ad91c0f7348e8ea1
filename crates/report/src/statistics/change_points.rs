//! Level changes within a window, or over records: e-divisive candidates, confirmed by t-tests.
//!
//! E-divisive (Matteson and James 2014) finds where the energy distance between the two sides is largest. As in
//! the open-source Hunter, the permutation test is replaced by a t-test, which is deterministic and
//! fast; unlike there, the degrees of freedom are those of the *effective* sample size, because seconds
//! of a database are correlated and would otherwise turn every slow wave into a step.

use super::drift::averaged;
use super::effective_samples::effective_samples;
use super::mean::mean;
use super::student::two_sided_p;

/// What counts as a change.
#[derive(Clone, Copy)]
struct Rules {
    /// Values on each side of a change, at least.
    shortest_side: usize,
    /// Values below which nothing is looked for.
    fewest: usize,
    /// A change must have a smaller p than this.
    significant_p: f64,
}

/// Seconds of a window. The p is small, because the position was chosen to look different.
const OF_A_WINDOW: Rules = Rules { shortest_side: 8, fewest: 32, significant_p: 0.001 };
/// Records of a study: few, and each the mean of long windows.
const OF_RECORDS: Rules = Rules { shortest_side: 3, fewest: FEWEST_RECORDS, significant_p: 0.01 };
/// Records below which no change is looked for.
pub const FEWEST_RECORDS: usize = 6;
/// And a change must be at least this large, relative to the level before it.
const SMALLEST_CHANGE: f64 = 0.03;

/// A level change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Position of the first value of the new level.
    pub index: usize,
    /// New level over old level, minus 1.
    pub relative: f64,
    /// p of "no change".
    pub p: f64,
}

/// The level changes of a series, ascending; empty of fewer than 32 values.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    found(values, &OF_A_WINDOW)
}

/// The level changes of a short series whose values are means of their own, such as one per record; empty of fewer than
/// [`FEWEST_RECORDS`].
pub fn change_points_of_few(values: &[f64]) -> Vec<ChangePoint> {
    found(values, &OF_RECORDS)
}

fn found(values: &[f64], rules: &Rules) -> Vec<ChangePoint> {
    if values.len() < rules.fewest {
        return Vec::new();
    }
    let points = averaged(values);
    let mut splits = Vec::new();
    divide(&points, 0, rules, &mut splits);
    splits.sort_unstable();
    let kept = confirmed(&points, splits, rules);
    let scale = values.len() as f64 / points.len() as f64;
    let mut found = Vec::with_capacity(kept.len());
    for (position, split) in kept.iter().enumerate() {
        let begin = if position == 0 { 0 } else { kept[position - 1] };
        let end = kept.get(position + 1).copied().unwrap_or(points.len());
        let (left, right) = (&points[begin..*split], &points[*split..end]);
        if let Some((relative, p)) = step(left, right, Independence::Estimated) {
            found.push(ChangePoint { index: (*split as f64 * scale) as usize, relative, p });
        }
    }
    found
}

/// Adds the split of `points` and, recursively, those of its two sides.
fn divide(points: &[f64], offset: usize, rules: &Rules, splits: &mut Vec<usize>) {
    let Some(split) = best_split(points, rules.shortest_side) else { return };
    let (left, right) = points.split_at(split);
    // Permissive here: other steps still inside the two sides look like correlation, which would hide
    // this one. What is not real is dropped when all candidates are known.
    if !step(left, right, Independence::Assumed).is_some_and(|step| rules.accept(step)) {
        return;
    }
    splits.push(offset + split);
    divide(left, offset, rules, splits);
    divide(right, offset + split, rules, splits);
}

/// Drops the least significant split until all that remain are significant between their neighbours.
fn confirmed(points: &[f64], mut splits: Vec<usize>, rules: &Rules) -> Vec<usize> {
    loop {
        let weakest = (0..splits.len())
            .map(|i| {
                let begin = if i == 0 { 0 } else { splits[i - 1] };
                let end = splits.get(i + 1).copied().unwrap_or(points.len());
                let (left, right) = (&points[begin..splits[i]], &points[splits[i]..end]);
                let step = step(left, right, Independence::Estimated);
                (i, step.filter(|step| rules.accept(*step)).map_or(1.0, |(_, p)| p))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match weakest {
            Some((i, p)) if p >= rules.significant_p => splits.remove(i),
            _ => return splits,
        };
    }
}

/// Where the scaled energy distance between left and right is largest.
fn best_split(points: &[f64], shortest_side: usize) -> Option<usize> {
    let n = points.len();
    if n < 2 * shortest_side {
        return None;
    }
    // Sums of |difference| within left, within right and across, moved one value at a time.
    let distances_to = |range: &[f64], value: f64| -> f64 {
        range.iter().map(|other| (other - value).abs()).sum()
    };
    let mut within_left = 0.0;
    let mut within_right: f64 = (0..n).map(|i| distances_to(&points[i + 1..], points[i])).sum();
    let mut across = 0.0;
    let mut best = (0.0, None);
    for split in 1..n {
        let value = points[split - 1];
        let to_left = distances_to(&points[..split - 1], value);
        let to_right = distances_to(&points[split..], value);
        within_left += to_left;
        within_right -= to_right;
        across += to_right - to_left;
        if split < shortest_side || n - split < shortest_side {
            continue;
        }
        let (a, b) = (split as f64, (n - split) as f64);
        let energy = 2.0 * across / (a * b)
            - 2.0 * within_left / (a * (a - 1.0))
            - 2.0 * within_right / (b * (b - 1.0));
        let statistic = energy * a * b / (a + b);
        if statistic > best.0 {
            best = (statistic, Some(split));
        }
    }
    best.1
}

impl Rules {
    fn accept(&self, (relative, p): (f64, f64)) -> bool {
        p < self.significant_p && relative.abs() >= SMALLEST_CHANGE
    }
}

/// Whether values count as independent of each other.
#[derive(Clone, Copy)]
enum Independence {
    Assumed,
    Estimated,
}

/// Relative change from left to right, and its p: a pooled t-test on effective sample sizes, times the
/// number of independent positions among which this one was chosen (Bonferroni).
fn step(left: &[f64], right: &[f64], independence: Independence) -> Option<(f64, f64)> {
    let (before, after) = (mean(left)?, mean(right)?);
    let relative = if before == 0.0 { f64::INFINITY } else { after / before - 1.0 };
    let residuals: Vec<f64> = left
        .iter()
        .map(|value| value - before)
        .chain(right.iter().map(|value| value - after))
        .collect();
    let n = residuals.len() as f64;
    let independent = match independence {
        Independence::Assumed => n,
        Independence::Estimated => effective_samples(&residuals)?,
    };
    let worth = independent / n;
    let spread = residuals.iter().map(|value| value * value).sum::<f64>() / (n - 2.0);
    let error = spread * (1.0 / (left.len() as f64 * worth) + 1.0 / (right.len() as f64 * worth));
    if error == 0.0 {
        return Some((relative, if after == before { 1.0 } else { 0.0 }));
    }
    let degrees = (independent - 2.0).max(1.0);
    let p = two_sided_p((after - before) / error.sqrt(), degrees);
    Some((relative, (p * independent).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::{change_points, change_points_of_few};
    use crate::synthetic_series::{ar1, stream};

    fn stepping(seed: u64, length: usize, steps: &[(usize, f64)]) -> Vec<f64> {
        let noise = ar1(&mut stream("step", seed), length, 0.7, 1.0, 0.04);
        noise
            .iter()
            .enumerate()
            .map(|(i, noise)| {
                let level: f64 =
                    steps.iter().filter(|(at, _)| i >= *at).map(|(_, factor)| factor).product();
                noise * level
            })
            .collect()
    }

    #[test]
    fn finds_a_late_step() {
        for seed in 0..20 {
            let found = change_points(&stepping(seed, 1200, &[(900, 0.8)]));
            assert!(
                found.iter().any(|point| point.index.abs_diff(900) <= 10
                    && (-0.25..=-0.15).contains(&point.relative)),
                "seed {seed}: {found:?}"
            );
        }
    }

    #[test]
    fn finds_two_steps() {
        let found = change_points(&stepping(3, 600, &[(200, 0.7), (400, 1.5)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].index.abs_diff(200) <= 6 && found[1].index.abs_diff(400) <= 6);
    }

    #[test]
    fn rarely_finds_steps_that_are_not_there() {
        for length in [60, 120, 600] {
            let false_alarms = (0..200)
                .filter(|seed| !change_points(&stepping(*seed, length, &[])).is_empty())
                .count();
            assert!(false_alarms <= 10, "{false_alarms} of 200 at {length}");
        }
    }

    /// One value per record: independent, off by 3 %.
    fn records(seed: u64, length: usize, steps: &[(usize, f64)]) -> Vec<f64> {
        let noise = ar1(&mut stream("records", seed), length, 0.0, 1.0, 0.03);
        let level = |i: usize| -> f64 {
            steps.iter().filter(|(at, _)| i >= *at).map(|(_, factor)| factor).product()
        };
        noise.iter().enumerate().map(|(i, noise)| noise * level(i)).collect()
    }

    #[test]
    fn finds_a_step_of_twenty_percent_in_ten_records() {
        let found = (0..100)
            .filter(|seed| {
                let found = change_points_of_few(&records(*seed, 10, &[(6, 0.8)]));
                found.len() == 1 && found[0].index == 6
            })
            .count();
        assert!(found >= 85, "{found} of 100");
    }

    #[test]
    fn rarely_finds_steps_in_steady_records() {
        for length in [6, 10, 30] {
            let alarms = (0..400)
                .filter(|seed| !change_points_of_few(&records(*seed, length, &[])).is_empty())
                .count();
            assert!(alarms <= 20, "{alarms} of 400 at {length}");
        }
        assert!(change_points_of_few(&[1.0, 1.0, 1.0, 9.0, 9.0]).is_empty());
    }

    #[test]
    fn short_and_constant_series_have_none() {
        assert!(change_points(&[1.0; 31]).is_empty());
        assert!(change_points(&[1.0; 100]).is_empty());
    }
}
