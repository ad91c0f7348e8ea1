//! Comparisons of designs: per rung and at their peaks, paired by repeat.

use crate::analysis::{Comparison, Direction, Outcome, Peak, RatioMethod, Scope};
use crate::estimates::by_run;
use crate::ladder::Group;
use crate::method::metric_named;
use crate::observed::WindowFacts;
use crate::statistics::{
    RatioEstimate, equivalence_p, holm, mean, paired_log_ratio, sign_flip_p, welch_log_ratio,
};
use crate::wording::{factor, factor_interval};
use crate::workload_view::WorkloadView;

/// Designs that differ by less than this may be called equal, if the tests say so.
pub(crate) const EQUIVALENCE_MARGIN: f64 = 0.03;
/// Chance of a false alarm that is accepted.
pub(crate) const SIGNIFICANT_P: f64 = 0.05;

/// The metric of latency comparisons.
pub(crate) const LATENCY: &str = "headline_p95_ns";

/// What designs are compared by.
pub(crate) const COMPARED: [&str; 2] = ["headline", LATENCY];

/// A number of one run.
#[derive(Clone, Copy, Debug)]
struct RunValue {
    repeat: u32,
    value: f64,
}

/// Every pair of designs: throughput and latency per common rung, throughput at the peaks.
///
/// The highest common rung is the primary comparison of a pair: it is fixed before any number is seen, so
/// it is only corrected for the number of pairs. The other rungs are a family of their own, corrected
/// among themselves. In this way the main question does not pay for the others, and neither family
/// has more than 5 % of false alarms.
pub(crate) fn all(
    groups: &[Group<'_>],
    peaks: &[Peak],
    (titles, workload): (&[String], &WorkloadView),
) -> Vec<Comparison> {
    let pairs: Vec<(usize, usize)> =
        (0..titles.len()).flat_map(|a| (a + 1..titles.len()).map(move |b| (a, b))).collect();
    let mut comparisons = Vec::new();
    for metric in COMPARED {
        let mut ladders: Vec<Vec<Comparison>> =
            pairs.iter().map(|pair| at_rungs(groups, *pair, (metric, workload))).collect();
        correct(ladders.iter_mut().filter_map(|ladder| ladder.last_mut()).collect());
        for ladder in &mut ladders {
            correct_secondary(ladder);
        }
        comparisons.extend(ladders.into_iter().flatten());
    }
    let mut at_peaks: Vec<Comparison> =
        pairs.iter().filter_map(|pair| at_peaks(groups, peaks, *pair, workload)).collect();
    correct(at_peaks.iter_mut().collect());
    comparisons.append(&mut at_peaks);
    conclude(&mut comparisons, titles, workload);
    comparisons.sort_by_key(|comparison| (comparison.a, comparison.b));
    comparisons
}

/// Two designs of different records, whose runs are not paired: per common rung, as positions 0 and 1.
pub(crate) fn unpaired_ladder(
    a: &[Group<'_>],
    b: &[Group<'_>],
    (titles, workload): (&[String], &WorkloadView),
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for metric in COMPARED {
        let mut ladder: Vec<Comparison> = a
            .iter()
            .filter_map(|base| {
                let other = b.iter().find(|group| group.users == base.users)?;
                let of =
                    |group| values(group, metric, workload).iter().map(|run| run.value).collect();
                let mut comparison = compare_unpaired(of(base), of(other), metric);
                comparison.users = Some(base.users);
                Some(comparison)
            })
            .collect();
        correct(ladder.last_mut().into_iter().collect());
        correct_secondary(&mut ladder);
        comparisons.append(&mut ladder);
    }
    conclude(&mut comparisons, titles, workload);
    comparisons
}

fn compare_unpaired(a: Vec<f64>, b: Vec<f64>, metric: &str) -> Comparison {
    let estimate = welch_log_ratio(&a, &b);
    let means = mean(&a).filter(|a| *a > 0.0).zip(mean(&b)).map(|(a, b)| b / a);
    Comparison {
        method: if estimate.is_some() { RatioMethod::Welch } else { RatioMethod::Single },
        pairs: 0,
        ..comparison((0, 1), metric, estimate, means)
    }
}

fn at_rungs(
    groups: &[Group<'_>],
    (a, b): (usize, usize),
    (metric, workload): (&str, &WorkloadView),
) -> Vec<Comparison> {
    let of_design = |design: usize| groups.iter().filter(move |group| group.design == design);
    of_design(a)
        .filter_map(|base| {
            let other = of_design(b).find(|group| group.users == base.users)?;
            let values = (values(base, metric, workload), values(other, metric, workload));
            let mut comparison = compare((a, b), values, metric);
            comparison.users = Some(base.users);
            Some(comparison)
        })
        .collect()
}

fn at_peaks(
    groups: &[Group<'_>],
    peaks: &[Peak],
    (a, b): (usize, usize),
    workload: &WorkloadView,
) -> Option<Comparison> {
    let values_of = |design: usize| {
        let peak = peaks.iter().find(|peak| peak.design == design)?;
        let group =
            groups.iter().find(|group| group.design == design && group.users == peak.users)?;
        Some(values(group, "headline", workload))
    };
    let mut comparison = compare((a, b), (values_of(a)?, values_of(b)?), "headline");
    comparison.scope = Scope::Peak;
    Some(comparison)
}

fn values(group: &Group<'_>, metric: &str, workload: &WorkloadView) -> Vec<RunValue> {
    let value = |windows: &[&WindowFacts]| match metric {
        LATENCY => {
            let mut union = underlay_core::Histogram::new();
            let counted = windows.iter().flat_map(|window| &window.types);
            let counted = counted.filter(|(name, _)| workload.counts(name));
            let blocks = counted.flat_map(|(_, facts)| &facts.blocks);
            blocks.for_each(|block| union.merge(&block.decoded()));
            union.quantile(0.95).map(|ns| ns as f64)
        }
        _ => by_run(windows, |window| window.load.headline).pop().flatten(),
    };
    group
        .windows
        .chunk_by(|a, b| a.run == b.run)
        .filter_map(|run| Some(RunValue { repeat: run.first()?.repeat, value: value(run)? }))
        .collect()
}

/// The comparison without its outcome, which depends on the others of its family.
fn compare(
    (a, b): (usize, usize),
    (base, other): (Vec<RunValue>, Vec<RunValue>),
    metric: &str,
) -> Comparison {
    let pairs: Vec<(f64, f64)> = base
        .iter()
        .filter_map(|run| {
            let twin = other.iter().find(|other| other.repeat == run.repeat)?;
            Some((run.value, twin.value))
        })
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let estimate = paired_log_ratio(&pairs);
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let single = pairs.first().map(|(a, b)| b / a);
    Comparison {
        method: if estimate.is_some() { RatioMethod::PairedLogRatio } else { RatioMethod::Single },
        pairs: pairs.len(),
        p_permutation: if estimate.is_some() { sign_flip_p(&logs) } else { None },
        ..comparison((a, b), metric, estimate, single)
    }
}

fn comparison(
    (a, b): (usize, usize),
    metric: &str,
    estimate: Option<RatioEstimate>,
    single: Option<f64>,
) -> Comparison {
    Comparison {
        a,
        b,
        scope: Scope::Rung,
        users: None,
        metric: metric.to_string(),
        ratio: estimate.map(|estimate| estimate.ratio).or(single),
        low: estimate.map(|estimate| estimate.low),
        high: estimate.map(|estimate| estimate.high),
        host_low: None,
        host_high: None,
        pairs: 0,
        method: RatioMethod::Single,
        p: estimate.map(|estimate| estimate.p),
        p_adjusted: None,
        p_permutation: None,
        p_equivalence: estimate.map(|estimate| equivalence_p(&estimate, EQUIVALENCE_MARGIN)),
        outcome: Outcome::Missing,
        text: String::new(),
    }
}

/// Corrects the p values of a family of comparisons.
fn correct(family: Vec<&mut Comparison>) {
    let raw: Vec<f64> = family.iter().filter_map(|comparison| comparison.p).collect();
    let mut corrected = holm(&raw).into_iter();
    for comparison in family.into_iter().filter(|comparison| comparison.p.is_some()) {
        comparison.p_adjusted = corrected.next();
    }
}

/// Corrects all but the last of a ladder, which has been corrected before.
fn correct_secondary(ladder: &mut [Comparison]) {
    if let Some((_, secondary)) = ladder.split_last_mut() {
        correct(secondary.iter_mut().collect());
    }
}

fn conclude(family: &mut [Comparison], titles: &[String], workload: &WorkloadView) {
    for comparison in family {
        comparison.outcome = outcome(comparison);
        comparison.text = text(comparison, titles, workload);
    }
}

fn outcome(comparison: &Comparison) -> Outcome {
    let Some(ratio) = comparison.ratio else { return Outcome::Missing };
    let Some(p) = comparison.p_adjusted else { return Outcome::Single };
    if comparison.p_equivalence.is_some_and(|p| p < SIGNIFICANT_P) {
        return Outcome::Equivalent;
    }
    if p >= SIGNIFICANT_P {
        let alone = comparison.p.is_some_and(|p| p < SIGNIFICANT_P);
        return if alone { Outcome::Suggested } else { Outcome::Undecided };
    }
    let lower_is_better = comparison.metric == LATENCY
        || metric_named(&comparison.metric).is_some_and(|metric| metric.better == Direction::Lower);
    if (ratio > 1.0) != lower_is_better { Outcome::Better } else { Outcome::Worse }
}

fn text(comparison: &Comparison, titles: &[String], workload: &WorkloadView) -> String {
    let (a, b) = (&titles[comparison.a], &titles[comparison.b]);
    let Some(ratio) = comparison.ratio else {
        return format!("{a} and {b} have no common repeat");
    };
    let what = match comparison.metric.as_str() {
        "headline" => format!("the {} of", workload.rate_words()),
        LATENCY => format!("the p95 latency of {} of", workload.counted),
        _ => "the value of".to_string(),
    };
    let at = match (comparison.scope, comparison.users) {
        (Scope::Peak, _) => " at their peaks".to_string(),
        (_, Some(users)) => workload.at(users),
        (_, None) => String::new(),
    };
    let interval = match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!(" {}", factor_interval(low, high)),
        _ => String::new(),
    };
    let conclusion = match comparison.outcome {
        Outcome::Undecided => ": no difference shown",
        Outcome::Suggested => ": not confirmed after correction for the number of rungs",
        Outcome::Equivalent => ": equal within 3 %",
        Outcome::Single => ": one pair of runs, no interval possible",
        _ => "",
    };
    format!("{b} has {}{interval} {what} {a}{at}{conclusion}", factor(ratio))
}

#[cfg(test)]
mod tests {
    use super::{RunValue, compare, correct, correct_secondary, outcome};
    use crate::analysis::{Comparison, Outcome};
    use crate::synthetic_series::{normal, stream};

    fn runs(values: &[f64]) -> Vec<RunValue> {
        values
            .iter()
            .enumerate()
            .map(|(repeat, value)| RunValue { repeat: repeat as u32, value: *value })
            .collect()
    }

    fn ladder(rungs: &[(Vec<f64>, Vec<f64>)]) -> Vec<Comparison> {
        let mut ladder: Vec<Comparison> =
            rungs.iter().map(|(a, b)| compare((0, 1), (runs(a), runs(b)), "headline")).collect();
        correct(ladder.last_mut().into_iter().collect());
        correct_secondary(&mut ladder);
        ladder
    }

    #[test]
    fn pairs_are_matched_by_repeat() {
        let base = vec![
            RunValue { repeat: 0, value: 100.0 },
            RunValue { repeat: 1, value: 50.0 },
            RunValue { repeat: 2, value: 1.0 },
        ];
        let other =
            vec![RunValue { repeat: 1, value: 100.0 }, RunValue { repeat: 0, value: 200.0 }];
        let found = compare((0, 1), (base, other), "headline");
        assert_eq!(found.pairs, 2);
        assert!((found.ratio.unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_primary_rung_does_not_pay_for_the_others() {
        let equal = (vec![100.0, 101.0, 99.0], vec![108.0, 96.0, 100.0]);
        let double = (vec![100.0, 101.0, 99.0], vec![205.0, 197.0, 201.0]);
        let found = ladder(&[equal.clone(), double.clone()]);
        assert_eq!(found[1].p_adjusted, found[1].p);
        assert_eq!(outcome(&found[1]), Outcome::Better);
        assert_eq!(outcome(&found[0]), Outcome::Undecided);
        // Each family is corrected separately.
        let found = ladder(&[double, equal]);
        assert_eq!(outcome(&found[0]), Outcome::Better);
        assert_eq!(outcome(&found[1]), Outcome::Undecided);
    }

    #[test]
    fn what_does_not_survive_the_correction_is_only_suggested() {
        // p of 0.02 to 0.04 in each of nine rungs, as two repeats give at best.
        let ahead = (vec![100.0, 100.0], vec![194.0, 206.0]);
        let found = ladder(&vec![ahead; 10]);
        assert_eq!(outcome(&found[0]), Outcome::Suggested, "{:?}", found[0]);
        assert_eq!(outcome(&found[9]), Outcome::Better, "{:?}", found[9]);
    }

    #[test]
    fn ladders_of_equal_designs_raise_few_alarms() {
        let alarm = |found: &Comparison| matches!(outcome(found), Outcome::Better | Outcome::Worse);
        let (mut primary, mut secondary) = (0, 0);
        for seed in 0..2000 {
            let mut random = stream("ladder", seed);
            let mut side = || (0..5).map(|_| 1000.0 + 40.0 * normal(&mut random)).collect();
            let rungs: Vec<(Vec<f64>, Vec<f64>)> = (0..6).map(|_| (side(), side())).collect();
            let found = ladder(&rungs);
            primary += usize::from(alarm(&found[5]));
            secondary += usize::from(found[..5].iter().any(alarm));
        }
        assert!(primary <= 125 && secondary <= 125, "{primary}, {secondary} of 2000");
    }

    #[test]
    fn less_latency_is_better() {
        let mut found = compare(
            (0, 1),
            (runs(&[10e6, 11e6, 10.5e6]), runs(&[5e6, 5.4e6, 5.2e6])),
            super::LATENCY,
        );
        correct(vec![&mut found]);
        assert_eq!(outcome(&found), Outcome::Better);
    }

    #[test]
    fn one_pair_and_none() {
        let single = compare((0, 1), (runs(&[100.0]), runs(&[200.0])), "headline");
        assert_eq!((outcome(&single), single.low), (Outcome::Single, None));
        let missing = compare((0, 1), (runs(&[]), runs(&[200.0])), "headline");
        assert_eq!(outcome(&missing), Outcome::Missing);
    }
}
