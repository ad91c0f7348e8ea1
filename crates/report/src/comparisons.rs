//! Comparisons of designs: per rung and at their peaks, paired by repeat.

use crate::analysis::{Comparison, Direction, Outcome, Peak, RatioMethod, Scope};
use crate::estimates::by_run;
use crate::ladder::Group;
use crate::metrics::{HEADLINE, LATENCY, RATE_AT_LIMIT, RESTORED, metric_named};
use crate::observed::{WindowFacts, merged};
use crate::plan_view::PlanView;
use crate::statistics::{
    RatioEstimate, correct_families, equivalence_p, mean, paired_log_ratio, repeats_needed,
    sign_flip_p, welch_log_ratio, within_pairs,
};
use crate::wording::{count, factor, factor_interval, percent};
use crate::workload_view::WorkloadView;

/// Designs that differ by less than this may be called the same, if the tests say so. Also the width of an interval
/// that is worth more repeats.
pub(crate) const EQUIVALENCE_MARGIN: f64 = 0.05;
/// Chance of a false alarm that is accepted, of a whole study.
pub(crate) const SIGNIFICANT_P: f64 = 0.05;
/// The same of a single interval where the number of repeats was decided by the intervals seen: stopping when
/// one is narrow favours those that are narrow by luck. At this level 93 % to 97 % of them hold the
/// true ratio (`sequential_intervals_keep_their_coverage`).
const SEQUENTIAL_P: f64 = 0.04;

/// The chance that an interval of this record misses the true ratio, as it is computed.
pub(crate) fn interval_alpha(plan: &PlanView<'_>) -> f64 {
    if plan.repeats_until().is_some() { SEQUENTIAL_P } else { SIGNIFICANT_P }
}

/// What designs are compared by, whatever the workload.
const COMPARED: [&str; 2] = [HEADLINE, LATENCY];

/// Whether runs of different records are compared by this metric.
pub(crate) fn is_compared_between_records(metric: &str) -> bool {
    metric == RESTORED || COMPARED.contains(&metric)
}

/// A number of one run.
#[derive(Clone, Debug)]
struct RunValue {
    repeat: u32,
    value: f64,
    /// The same in each second, if it is their mean; otherwise empty.
    seconds: Vec<f64>,
}

/// Every one of these pairs of designs: throughput and latency per common rung, throughput at the peaks.
///
/// The throughput at the highest common rung is the main comparison of a pair: it is fixed before any
/// number is seen. It and all others are corrected together, so that at most 5 % of the studies of
/// equal designs call any of them different ([`correct_families`]).
pub(crate) fn all(
    groups: &[Group<'_>],
    peaks: &[Peak],
    pairs: &[(usize, usize)],
    (titles, workload): (&[String], &WorkloadView),
    alpha: f64,
) -> Vec<Comparison> {
    // The rate of a curve at its limit is compared where curves have one, restores where there are any.
    let has_curves = has(groups, |window| window.load.rate_at_limit);
    let has_restores = has(groups, |window| window.load.restore_bytes_per_second);
    let mut ladders: Vec<Vec<Comparison>> = pairs
        .iter()
        .map(|&pair| {
            let at_rungs = |metric| at_rungs(groups, pair, (metric, workload), alpha);
            let metrics = COMPARED
                .into_iter()
                .chain(has_curves.then_some(RATE_AT_LIMIT))
                .chain(has_restores.then_some(RESTORED));
            let mut ladder: Vec<Comparison> = metrics.flat_map(at_rungs).collect();
            ladder.extend(at_peaks(groups, peaks, pair, (workload, alpha)));
            ladder
        })
        .collect();
    correct(ladders.iter_mut());
    let mut comparisons: Vec<Comparison> = ladders.into_iter().flatten().collect();
    conclude(&mut comparisons, titles, workload);
    comparisons
}

/// Whether the interval of every main ratio (throughput at the highest common rung of one of these pairs of designs) is within
/// `share` of it. Not while a pair has none. Nothing is corrected: it is about widths.
pub(crate) fn main_ratios_are_within(
    groups: &[Group<'_>],
    pairs: &[(usize, usize)],
    workload: &WorkloadView,
    (share, alpha): (f64, f64),
) -> bool {
    pairs.iter().all(|&pair| {
        let ladder = at_rungs(groups, pair, (HEADLINE, workload), alpha);
        let main = main_position(&ladder).and_then(|top| ladder[top].half_width());
        main.is_some_and(|half_width| half_width <= share)
    })
}

/// Two designs of different records, whose runs are not paired: per common rung, as positions 0 and 1. What follows is
/// concluded together with the other pairs of the two records ([`conclude_unpaired`]).
pub(crate) fn unpaired_ladder(
    a: &[Group<'_>],
    b: &[Group<'_>],
    workload: &WorkloadView,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let has_restores =
        [a, b].iter().any(|side| has(side, |window| window.load.restore_bytes_per_second));
    for metric in COMPARED.into_iter().chain(has_restores.then_some(RESTORED)) {
        comparisons.extend(a.iter().filter_map(|base| {
            let other = b.iter().find(|group| group.users == base.users)?;
            let of = |group| values(group, metric, workload).iter().map(|run| run.value).collect();
            let mut comparison = compare_unpaired(of(base), of(other), metric);
            comparison.users = Some(base.users);
            Some(comparison)
        }));
    }
    comparisons
}

/// Corrects the ladders of all pairs of designs of two records together, and concludes.
pub(crate) fn conclude_unpaired(
    ladders: &mut [(&mut Vec<Comparison>, [String; 2])],
    workload: &WorkloadView,
) {
    correct(ladders.iter_mut().map(|(ladder, _)| &mut **ladder));
    for (ladder, titles) in ladders {
        conclude(ladder, titles, workload);
    }
}

fn compare_unpaired(a: Vec<f64>, b: Vec<f64>, metric: &str) -> Comparison {
    let estimate = welch_log_ratio(&a, &b, SIGNIFICANT_P);
    let means = mean(&a).filter(|a| *a > 0.0).zip(mean(&b)).map(|(a, b)| b / a);
    let runs = a.len().min(b.len());
    Comparison {
        method: if estimate.is_some() { RatioMethod::Welch } else { RatioMethod::Single },
        pairs: 0,
        ..comparison((0, 1), metric, (estimate, means), (runs, SIGNIFICANT_P))
    }
}

/// Whether any window has a number.
fn has(groups: &[Group<'_>], number: impl Fn(&WindowFacts) -> Option<f64>) -> bool {
    let mut windows = groups.iter().flat_map(|group| &group.windows);
    windows.any(|window| number(window).is_some())
}

fn at_rungs(
    groups: &[Group<'_>],
    (a, b): (usize, usize),
    (metric, workload): (&str, &WorkloadView),
    alpha: f64,
) -> Vec<Comparison> {
    let of_design = |design: usize| groups.iter().filter(move |group| group.design == design);
    of_design(a)
        .filter_map(|base| {
            let other = of_design(b).find(|group| group.users == base.users)?;
            let values = (values(base, metric, workload), values(other, metric, workload));
            let mut comparison = compare((a, b), values, metric, alpha);
            comparison.users = Some(base.users);
            Some(comparison)
        })
        .collect()
}

fn at_peaks(
    groups: &[Group<'_>],
    peaks: &[Peak],
    (a, b): (usize, usize),
    (workload, alpha): (&WorkloadView, f64),
) -> Option<Comparison> {
    let values_of = |design: usize| {
        let peak = peaks.iter().find(|peak| peak.design == design)?;
        let group =
            groups.iter().find(|group| group.design == design && group.users == peak.users)?;
        Some(values(group, HEADLINE, workload))
    };
    let mut comparison = compare((a, b), (values_of(a)?, values_of(b)?), HEADLINE, alpha);
    comparison.scope = Scope::Peak;
    Some(comparison)
}

fn values(group: &Group<'_>, metric: &str, workload: &WorkloadView) -> Vec<RunValue> {
    let value = |windows: &[&WindowFacts]| match metric {
        LATENCY => {
            let counted = windows.iter().flat_map(|window| &window.types);
            let counted = counted.filter(|(name, _)| workload.counts(name));
            let blocks = counted.flat_map(|(_, facts)| &facts.blocks);
            merged(blocks).quantile(0.95).map(|ns| ns as f64)
        }
        RATE_AT_LIMIT => by_run(windows, |window| window.load.rate_at_limit).pop().flatten(),
        RESTORED => by_run(windows, |window| window.load.restore_bytes_per_second).pop().flatten(),
        _ => by_run(windows, |window| window.load.headline).pop().flatten(),
    };
    group
        .windows
        .chunk_by(|a, b| a.run == b.run)
        .filter_map(|run| {
            let is_mean = metric == HEADLINE && run.iter().all(|part| part.headline_is_counted);
            let ticks = run.iter().filter(|_| is_mean).flat_map(|part| &part.headline_ticks);
            Some(RunValue {
                repeat: run.first()?.repeat,
                value: value(run)?,
                seconds: ticks.copied().collect(),
            })
        })
        .collect()
}

/// The runs of the same repeat that have a value, as (base, other).
fn matched<'a>(base: &'a [RunValue], other: &'a [RunValue]) -> Vec<(&'a RunValue, &'a RunValue)> {
    base.iter()
        .filter_map(|run| Some((run, other.iter().find(|other| other.repeat == run.repeat)?)))
        .filter(|(a, b)| a.value > 0.0 && b.value > 0.0)
        .collect()
}

fn paired(pairs: &[(&RunValue, &RunValue)], alpha: f64) -> Option<RatioEstimate> {
    let values: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a.value, b.value)).collect();
    let seconds: Vec<(&[f64], &[f64])> =
        pairs.iter().map(|(a, b)| (&*a.seconds, &*b.seconds)).collect();
    paired_log_ratio(&values, within_pairs(&seconds), alpha)
}

/// The comparison without its outcome, which depends on the others of the study.
fn compare(
    (a, b): (usize, usize),
    (base, other): (Vec<RunValue>, Vec<RunValue>),
    metric: &str,
    alpha: f64,
) -> Comparison {
    let pairs = matched(&base, &other);
    let estimate = paired(&pairs, alpha);
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b.value / a.value).ln()).collect();
    let single = pairs.first().map(|(a, b)| b.value / a.value);
    Comparison {
        method: if estimate.is_some() { RatioMethod::PairedLogRatio } else { RatioMethod::Single },
        pairs: pairs.len(),
        p_permutation: if estimate.is_some() { sign_flip_p(&logs) } else { None },
        ..comparison((a, b), metric, (estimate, single), (pairs.len(), alpha))
    }
}

/// `repeats` are those that the estimate is made of.
fn comparison(
    (a, b): (usize, usize),
    metric: &str,
    (estimate, single): (Option<RatioEstimate>, Option<f64>),
    (repeats, alpha): (usize, f64),
) -> Comparison {
    // An interval that is wider than 95 % has a p value that is as much larger.
    let as_wide = |p: f64| (p * SIGNIFICANT_P / alpha).min(1.0);
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
        p: estimate.map(|estimate| as_wide(estimate.p)),
        p_adjusted: None,
        p_permutation: None,
        p_equivalence: estimate
            .map(|estimate| as_wide(equivalence_p(&estimate, EQUIVALENCE_MARGIN))),
        repeats_needed: estimate
            .and_then(|estimate| repeats_needed(&estimate, repeats, EQUIVALENCE_MARGIN, alpha)),
        published: None,
        published_given: false,
        outcome: Outcome::Missing,
        text: String::new(),
    }
}

/// Corrects the p values of everything that is compared, one ladder per pair of designs.
fn correct<'a>(ladders: impl Iterator<Item = &'a mut Vec<Comparison>>) {
    let (mut main, mut others, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for ladder in ladders {
        let top = main_position(ladder);
        let rungs: Vec<(Option<f64>, Option<f64>)> = ladder
            .iter()
            .filter(|comparison| comparison.scope == Scope::Rung && comparison.metric == HEADLINE)
            .map(|comparison| (comparison.ratio, comparison.p))
            .collect();
        let tested = ladder.iter_mut().enumerate().filter(|(_, comparison)| comparison.p.is_some());
        for (position, comparison) in tested {
            let is_rung = rungs.contains(&(comparison.ratio, comparison.p));
            match comparison.scope {
                Scope::Rung if Some(position) == top => main.push(comparison),
                // Peaks at the same rung are the comparison of that rung, and no further one.
                Scope::Peak if is_rung => again.push(comparison),
                Scope::Rung | Scope::Peak => others.push(comparison),
            }
        }
    }
    let raw = |family: &[&mut Comparison]| -> Vec<f64> {
        family.iter().filter_map(|comparison| comparison.p).collect()
    };
    let (corrected_main, corrected_others) = correct_families(&raw(&main), &raw(&others));
    let corrected = corrected_main.into_iter().chain(corrected_others);
    let mut tested: Vec<&mut Comparison> = main.into_iter().chain(others).collect();
    for (comparison, p) in tested.iter_mut().zip(corrected) {
        comparison.p_adjusted = Some(p);
    }
    for peak in again {
        let pair = (peak.a, peak.b, peak.ratio, peak.p);
        let rung = tested.iter().find(|rung| (rung.a, rung.b, rung.ratio, rung.p) == pair);
        peak.p_adjusted = rung.and_then(|rung| rung.p_adjusted);
    }
}

/// The main comparison of a ladder: throughput at the highest rung that both designs have.
pub(crate) fn main_position(ladder: &[Comparison]) -> Option<usize> {
    let is_headline = |comparison: &Comparison| {
        comparison.scope == Scope::Rung
            && comparison.metric == HEADLINE
            && comparison.ratio.is_some()
    };
    let headlines = ladder.iter().enumerate().filter(|(_, comparison)| is_headline(comparison));
    headlines.max_by_key(|(_, comparison)| comparison.users).map(|(position, _)| position)
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
    if is_equal_by_chance(comparison) {
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
        RATE_AT_LIMIT => format!("the {} below 1 ms of", workload.rate_words()),
        RESTORED => "the MB restored per second of".to_string(),
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
    let conclusion = conclusion(comparison);
    format!("{b} has {}{interval} {what} {a}{at}{conclusion}", factor(ratio))
}

/// How the text of a comparison ends.
fn conclusion(comparison: &Comparison) -> String {
    match comparison.outcome {
        Outcome::Undecided if is_equal_by_chance(comparison) => {
            format!(": not shown to be the same within {}", percent(EQUIVALENCE_MARGIN))
        }
        Outcome::Undecided => format!(": no difference shown{}", more_repeats(comparison)),
        Outcome::Suggested => {
            ": not confirmed after correction for the number of comparisons".to_string()
        }
        Outcome::Equivalent => format!(": the same within {}", percent(EQUIVALENCE_MARGIN)),
        Outcome::Single => ": one pair of runs, no interval possible".to_string(),
        _ => String::new(),
    }
}

/// Whether chance alone cannot hide a difference.
fn is_equal_by_chance(comparison: &Comparison) -> bool {
    comparison.p_equivalence.is_some_and(|p| p < SIGNIFICANT_P)
}

/// Whether an interval of a ratio has no difference that matters.
pub(crate) fn is_equal((low, high): (f64, f64)) -> bool {
    low >= (1.0 + EQUIVALENCE_MARGIN).recip() && high <= 1.0 + EQUIVALENCE_MARGIN
}

/// Takes back that two designs are the same, where chance cannot hide a difference, but something else can.
pub(crate) fn not_shown_equal(comparison: &mut Comparison) {
    if comparison.outcome != Outcome::Equivalent {
        return;
    }
    comparison.text.truncate(comparison.text.len() - conclusion(comparison).len());
    comparison.outcome = Outcome::Undecided;
    comparison.text.push_str(&conclusion(comparison));
}

/// `; about 14 repeats would narrow the interval to 5 %`. Nothing where it is as narrow already.
pub(crate) fn more_repeats(comparison: &Comparison) -> String {
    if is_equal_by_chance(comparison) {
        return String::new();
    }
    comparison.repeats_needed.map_or_else(String::new, |n| {
        let needed = count(n as u64, "repeat");
        format!("; about {needed} would narrow the interval to {}", percent(EQUIVALENCE_MARGIN))
    })
}

#[cfg(test)]
mod error_rates;

#[cfg(test)]
mod tests {
    use super::{RunValue, compare, conclude, correct, outcome};
    use crate::analysis::{Comparison, Outcome};
    use crate::workload_view::WorkloadView;

    fn runs(values: &[f64]) -> Vec<RunValue> {
        let run = |(repeat, value): (usize, &f64)| RunValue {
            repeat: repeat as u32,
            value: *value,
            seconds: Vec::new(),
        };
        values.iter().enumerate().map(run).collect()
    }

    fn compared(a: &[f64], b: &[f64], metric: &str) -> Comparison {
        compare((0, 1), (runs(a), runs(b)), metric, super::SIGNIFICANT_P)
    }

    fn ladder(rungs: &[(Vec<f64>, Vec<f64>)]) -> Vec<Comparison> {
        let at_rung = |(users, (a, b)): (usize, &(Vec<f64>, Vec<f64>))| Comparison {
            users: Some(users as u32),
            ..compared(a, b, "headline")
        };
        let mut ladder: Vec<Comparison> = rungs.iter().enumerate().map(at_rung).collect();
        correct([&mut ladder].into_iter());
        ladder
    }

    #[test]
    fn pairs_are_matched_by_repeat() {
        let run = |repeat, value| RunValue { repeat, value, seconds: Vec::new() };
        let base = vec![run(0, 100.0), run(1, 50.0), run(2, 1.0)];
        let other = vec![run(1, 100.0), run(0, 200.0)];
        let found = compare((0, 1), (base, other), "headline", 0.05);
        assert_eq!(found.pairs, 2);
        assert!((found.ratio.unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_main_comparison_hardly_pays_for_the_others() {
        let equal = (vec![100.0, 101.0, 99.0], vec![108.0, 96.0, 100.0]);
        let double = (vec![100.0, 101.0, 99.0], vec![205.0, 197.0, 201.0]);
        let found = ladder(&[equal.clone(), equal.clone(), equal.clone(), double.clone()]);
        assert!(found[3].p_adjusted.unwrap() <= found[3].p.unwrap() * 1.2501, "{:?}", found[3]);
        assert_eq!(outcome(&found[3]), Outcome::Better);
        assert_eq!(outcome(&found[0]), Outcome::Undecided);
        // Another rung pays more, and is found all the same where the difference is large.
        let found = ladder(&[double, equal]);
        assert_eq!(outcome(&found[0]), Outcome::Better);
        assert_eq!(outcome(&found[1]), Outcome::Undecided);
    }

    #[test]
    fn what_does_not_survive_the_correction_is_only_suggested() {
        // p of about 0.03 in each of nine rungs, as two repeats give at best.
        let ahead = (vec![100.0, 100.0], vec![194.0, 206.0]);
        let found = ladder(&vec![ahead; 10]);
        assert_eq!(outcome(&found[0]), Outcome::Suggested, "{:?}", found[0]);
        assert_eq!(outcome(&found[9]), Outcome::Better, "{:?}", found[9]);
    }

    #[test]
    fn less_latency_is_better() {
        let mut ladder =
            vec![compared(&[10e6, 11e6, 10.5e6], &[5e6, 5.4e6, 5.2e6], super::LATENCY)];
        correct([&mut ladder].into_iter());
        assert_eq!(outcome(&ladder[0]), Outcome::Better);
    }

    #[test]
    fn the_same_is_an_answer_and_undecided_says_what_would_decide() {
        let titles = ["A".to_string(), "B".to_string()];
        let concluded = |a: &[f64], b: &[f64]| {
            let mut ladder = ladder(&[(a.to_vec(), b.to_vec())]);
            conclude(&mut ladder, &titles, &WorkloadView::of(&serde_json::Value::Null));
            ladder.remove(0)
        };
        let same = concluded(&[100.0, 101.0, 99.0, 100.0], &[101.0, 101.5, 100.5, 100.0]);
        assert_eq!(same.outcome, Outcome::Equivalent);
        assert!(same.text.ends_with(": the same within 5 %"), "{}", same.text);
        let open = concluded(&[100.0, 104.0, 96.0], &[101.0, 98.0, 107.0]);
        assert_eq!(open.outcome, Outcome::Undecided);
        let needed = open.repeats_needed.unwrap();
        assert!((10..40).contains(&needed), "{needed}");
        let advice = format!("; about {needed} repeats would narrow the interval to 5 %");
        assert!(open.text.ends_with(&advice), "{}", open.text);
    }

    #[test]
    fn one_pair_and_none() {
        let single = compared(&[100.0], &[200.0], "headline");
        assert_eq!((outcome(&single), single.low), (Outcome::Single, None));
        let missing = compared(&[], &[200.0], "headline");
        assert_eq!(outcome(&missing), Outcome::Missing);
    }
}
