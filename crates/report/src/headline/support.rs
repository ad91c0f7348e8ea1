//! The sentences below the headline: how much, how late, why, how sure, and the other designs.

use super::results::{Contest, Results, find, oriented};
use crate::analysis::{
    Agreement, Answer, Aspect, BudgetPart, Comparison, HostFactors, LatencyRow, LimitMode, Outcome,
    Ratio, Rung, TimeClass, Validity, Verdict,
};
use crate::axes::Apart;
use crate::busy_parts;
use crate::metrics::RESTORED;
use crate::transaction_types::type_title;
use crate::verdict::bottleneck::class_title;
use crate::verdict::causal;
use crate::wording::{
    amount, count, factor, factor_interval, list, percent, sentence_case, time_ns,
};

/// Difference of a class's share between designs that explains anything.
const TELLING: f64 = 0.05;

/// Says the sentences below the headline.
pub(super) fn support(
    verdict: &mut Verdict,
    results: &Results<'_>,
    contest: Contest,
    comparison: &Comparison,
) {
    let Contest { best, next, users, axis } = contest;
    verdict.say(Aspect::HowMuch, [absolute(results, contest)]);
    verdict.say(Aspect::HowMuch, peaks(results, contest));
    verdict.say(Aspect::HowMuch, latency(results, contest));
    verdict.say(Aspect::HowMuch, restores(results, contest));
    // Without a difference there is nothing to explain.
    if matches!(verdict.answer, Answer::Winner | Answer::NotRepeated) {
        verdict.say(Aspect::Why, why(results, contest));
    }
    verdict.say(Aspect::Why, bottleneck_sentence(results, next, users));
    for design in [best, next] {
        verdict.say(Aspect::Why, busy_parts_sentence(results, design, users));
    }
    verdict.say(Aspect::HowSure, lower_bound(results, contest));
    verdict.say(Aspect::HowSure, how_sure(comparison));
    for design in [best, next] {
        verdict.say(Aspect::HowSure, validity_sentence(results, design, users));
    }
    verdict.say(Aspect::HowSure, ceiling_designs(results, contest));
    match axis {
        None => verdict.say(Aspect::HowMuch, others(results, contest)),
        Some(axis) => {
            verdict.say(Aspect::HowMuch, along(results, contest, axis));
            verdict.say(Aspect::HowMuch, designs_at_points(results, contest, axis));
        }
    }
    verdict.say(Aspect::Published, published(results, contest, comparison));
}

/// `On NVMe compared with 8 GiB of memory: 1.5x 16 GiB of memory, 2.1x 32 GiB of memory.` Once per design, and per point of the
/// other axes.
fn along(results: &Results<'_>, contest: Contest, axis: usize) -> Vec<String> {
    let axes = results.axes;
    let firsts = (0..results.designs.len()).filter(|it| axes.coordinates(*it)[axis] == 0);
    let line = |first: usize| {
        let others: Vec<usize> =
            axes.along(first, axis).into_iter().filter(|other| *other != first).collect();
        // The headline has said it.
        let is_said = matches!(others[..], [_]) && [contest.best, contest.next].contains(&first);
        let texts: Vec<String> = others
            .into_iter()
            .filter_map(|other| {
                let comparison = find(results, first, other, "headline", Some(contest.users))?;
                let ratio = oriented(comparison, other)?;
                let phrase = axes.phrase(other, axis);
                Some(format!("{} {phrase}{}", times(&ratio), doubt(comparison)))
            })
            .collect();
        (!texts.is_empty() && !is_said).then(|| {
            format!(
                "On {} compared with {}: {}.",
                axes.other_points(first, axis),
                axes.phrase(first, axis),
                list(&texts)
            )
        })
    };
    firsts.filter_map(line).collect()
}

/// `At 8 GiB of memory: NVMe 2.0x SATA.` Once per point, where there are several designs.
fn designs_at_points(results: &Results<'_>, contest: Contest, axis: usize) -> Vec<String> {
    let axes = results.axes;
    let at_point = |variant: usize| {
        let designs = (0..results.designs.len())
            .filter(|other| axes.apart(variant, *other) == Some(Apart::Design))
            .filter(|other| !results.has_no_device(*other));
        let texts: Vec<String> = designs
            .filter_map(|other| {
                let comparison = find(results, variant, other, "headline", Some(contest.users))?;
                let ratio = oriented(comparison, variant)?;
                let title = axes.design_title(other);
                Some(format!("{} {title}{}", times(&ratio), doubt(comparison)))
            })
            .collect();
        (!texts.is_empty()).then(|| {
            format!(
                "At {}: {} does {}.",
                axes.phrase(variant, axis),
                axes.other_points(variant, axis),
                list(&texts)
            )
        })
    };
    axes.along(contest.best, axis).into_iter().filter_map(at_point).collect()
}

/// `2.1x [1.9, 2.3]`.
fn times(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{} {}", factor(ratio.value), factor_interval(low, high))
        }
        _ => factor(ratio.value),
    }
}

/// What keeps a ratio from being a difference.
fn doubt(comparison: &Comparison) -> &'static str {
    match comparison.outcome {
        Outcome::Undecided | Outcome::Suggested | Outcome::Single => " (no difference shown)",
        Outcome::Equivalent => " (equal)",
        _ => "",
    }
}

/// `Published: NVMe has 1.08x the result of SATA.` With a remark where that is no evidence.
fn published(results: &Results<'_>, contest: Contest, comparison: &Comparison) -> Option<String> {
    let ratio = comparison.published.filter(|ratio| *ratio > 0.0)?;
    let ratio = if comparison.b == contest.best { ratio } else { 1.0 / ratio };
    let title = |design: usize| &results.designs[design].title;
    let given = match comparison.published_given {
        true => " One side was fitted to that, or is set by the study: it confirms nothing.",
        false => "",
    };
    Some(format!(
        "Published: {} has {} the result of {}.{given}",
        title(contest.best),
        factor(ratio),
        title(contest.next)
    ))
}

/// `New orders per minute at 16 users: NVMe 12,345 [12,000, 12,700], SATA 5,900 [...].`
fn absolute(results: &Results<'_>, contest: Contest) -> String {
    let number = |design: usize| {
        let headline = rung(results, design, contest.users)?.metrics.get("headline")?.clone();
        let interval = match (headline.low, headline.high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", amount(low), amount(high)),
            _ => String::new(),
        };
        Some(format!("{} {}{interval}", results.designs[design].title, amount(headline.value?)))
    };
    let numbers: Vec<String> =
        [contest.best, contest.next].into_iter().filter_map(number).collect();
    format!(
        "{}{}: {}.",
        sentence_case(&results.workload.rate_words()),
        results.workload.at(contest.users),
        numbers.join(", ")
    )
}

fn rung<'a>(results: &Results<'a>, design: usize, users: u32) -> Option<&'a Rung> {
    results.rungs.iter().find(|rung| (rung.design, rung.users) == (design, users))
}

/// Each at its own best rung, where that is not the rung of the headline for both.
fn peaks(results: &Results<'_>, contest: Contest) -> Option<String> {
    let peak = |design: usize| results.peaks.iter().find(|peak| peak.design == design);
    let (best, next) = (peak(contest.best)?, peak(contest.next)?);
    if best.users == contest.users && next.users == contest.users {
        return None;
    }
    let ratio = find(results, contest.best, contest.next, "headline", None)
        .and_then(|comparison| oriented(comparison, contest.best))?;
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" {}", factor_interval(low, high)),
        _ => String::new(),
    };
    Some(format!(
        "At their peaks, {} does {} at {} and {} does {} at {}: {}{interval}.",
        results.designs[contest.best].title,
        amount(best.headline.value?),
        count(u64::from(best.users), "user"),
        results.designs[contest.next].title,
        amount(next.headline.value?),
        count(u64::from(next.users), "user"),
        factor(ratio.value)
    ))
}

fn latency(results: &Results<'_>, contest: Contest) -> Option<String> {
    let workload = results.workload;
    let best = rung(results, contest.best, contest.users)?;
    let kind = workload.main_type(best.latencies.iter().map(|row| row.transaction.as_str()))?;
    let p95 = |design: usize| {
        let row: &LatencyRow = rung(results, design, contest.users)?
            .latencies
            .iter()
            .find(|row| row.transaction == kind)?;
        row.p95.value
    };
    // If several types are counted, one is reported, by its name.
    let counted = best.latencies.iter().filter(|row| workload.counts(&row.transaction)).count();
    let what = match counted {
        1 => workload.counted.clone(),
        _ => format!("{} ({})", workload.counted, type_title(kind)),
    };
    // Of a bounded design: between what the host may have added and saved.
    let number = |design: usize| {
        let value = p95(design)?;
        let row = results.validity_of(design, contest.users);
        let bounds =
            row.filter(|row| row.outcome == Validity::Bounded).and_then(|row| row.response);
        let bounds = bounds.map_or_else(String::new, |HostFactors { low, high }| {
            let (low, high) = (time_ns(value * low), time_ns(value * high));
            format!(" ({low} to {high} with the host's share)")
        });
        Some(format!("{}{bounds} on {}", time_ns(value), results.designs[design].title))
    };
    Some(format!(
        "p95 response time of {what}: {}, {}.",
        number(contest.best)?,
        number(contest.next)?
    ))
}

/// `Restores: NVMe 1,400 MB/s, SATA 650 MB/s: 2.15 x [2.1, 2.2].`
fn restores(results: &Results<'_>, contest: Contest) -> Option<String> {
    let comparison = find(results, contest.best, contest.next, RESTORED, Some(contest.users))?;
    let ratio = oriented(comparison, contest.best)?;
    let number = |design: usize| {
        let rate = rung(results, design, contest.users)?.metrics.get(RESTORED)?.value?;
        Some(format!("{} {} MB/s", results.designs[design].title, amount(rate / 1e6)))
    };
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" {}", factor_interval(low, high)),
        _ => String::new(),
    };
    Some(format!(
        "Restores: {}, {}: {}{interval}.",
        number(contest.best)?,
        number(contest.next)?,
        factor(ratio.value)
    ))
}

/// The class of session time whose share differs most.
fn why(results: &Results<'_>, contest: Contest) -> Option<String> {
    let budget = |design: usize| {
        let found = results.bottleneck_of(design, contest.users)?;
        (!found.budget.is_empty()).then_some(found)
    };
    let (best, next) = (budget(contest.best)?, budget(contest.next)?);
    let (class, [of_next, of_best]) = differing(&next.budget, &best.budget)?;
    Some(format!(
        "Sessions spend {} of their time {} on {}, {} on {}.",
        percent(of_next),
        class_title(class),
        results.designs[contest.next].title,
        percent(of_best),
        results.designs[contest.best].title
    ))
}

/// The class that has more of the sessions' time in `next` than in `best`, by most, with both shares; `None` where that is not
/// telling.
fn differing(next: &[BudgetPart], best: &[BudgetPart]) -> Option<(TimeClass, [f64; 2])> {
    // The log behind data writes is the log, as the sentence about the bottleneck counts it.
    let whole = |class: TimeClass| match class {
        TimeClass::LogBehindData => TimeClass::Log,
        class => class,
    };
    let share = |budget: &[BudgetPart], class: TimeClass| -> f64 {
        let parts = budget.iter().filter(|part| whole(part.class) == class);
        parts.map(|part| part.share).sum()
    };
    let classes = next.iter().chain(best).map(|part| whole(part.class));
    classes
        .filter(|class| !matches!(class, TimeClass::Client | TimeClass::Other))
        .map(|class| (class, [share(next, class), share(best, class)]))
        .max_by(|a, b| (a.1[0] - a.1[1]).total_cmp(&(b.1[0] - b.1[1])))
        .filter(|(_, [next, best])| next - best >= TELLING)
}

/// What limits a design: what sampling names, and what an experiment at the same rung says of that. Without one it is called
/// *observed*.
pub(super) fn bottleneck_sentence(
    results: &Results<'_>,
    design: usize,
    users: u32,
) -> Option<String> {
    let found = results.bottleneck_of(design, users)?;
    let title = &results.designs[design].title;
    let explained = match found.mode {
        LimitMode::Latency => "; throughput still grows with more users",
        LimitMode::Capacity => "; more users hardly increase throughput",
        LimitMode::Unknown => "",
    };
    let (name, tested) = match results.check_of(design, users) {
        None => ("Observed bottleneck", String::new()),
        Some(check) => match (check.agreement, &check.class) {
            // The experiment names something else, names what sampling could not, or contradicts it.
            (Agreement::ByExperiment, Some(_)) | (Agreement::NotConfirmed, _) => {
                return Some(format!("Bottleneck of {title}, {}{explained}.", check.sentence));
            }
            (Agreement::Confirmed, _) => {
                ("Bottleneck", format!("; {}", causal::confirmation(check, found)))
            }
            (Agreement::TooShort, _) => (
                "Observed bottleneck",
                "; the causal check was too short to confirm it".to_string(),
            ),
            (Agreement::Observed, _) => (
                "Observed bottleneck",
                "; not tested by experiment, as it cannot be slowed here".to_string(),
            ),
            (Agreement::ByExperiment, None) => (
                "Observed bottleneck",
                "; no resource that was slowed matters noticeably".to_string(),
            ),
        },
    };
    (found.class != "inconclusive")
        .then(|| format!("{name} of {title}: {}{explained}{tested}.", found.sentence))
}

/// What of the hosts of a design's cluster is busy.
pub(super) fn busy_parts_sentence(
    results: &Results<'_>,
    design: usize,
    users: u32,
) -> Option<String> {
    let title = &results.designs[design].title;
    busy_parts::sentence(&rung(results, design, users)?.busy_parts, title)
}

/// What a search says of the better design whose limit was not found.
fn lower_bound(results: &Results<'_>, contest: Contest) -> Option<String> {
    results.is_lower_bound(contest.best).then(|| {
        let title = &results.designs[contest.best].title;
        format!("The load generator was saturated before {title} reached its limit: the ratio is a lower bound.")
    })
}

/// Whether a design or this host was measured.
pub(super) fn validity_sentence(
    results: &Results<'_>,
    design: usize,
    users: u32,
) -> Option<String> {
    let row = results.validity_of(design, users)?;
    Some(format!("{} is {}.", results.designs[design].title, row.text))
}

/// What designs without a device are: `No delay has no device: at 16 users it does 1.6x of NVMe, which is this host's ceiling.`
fn ceiling_designs(results: &Results<'_>, contest: Contest) -> Option<String> {
    let others = (0..results.designs.len())
        .filter(|design| ![contest.best, contest.next].contains(design))
        .filter(|design| results.has_no_device(*design));
    let texts: Vec<String> = others
        .filter_map(|design| {
            let comparison = find(results, contest.best, design, "headline", Some(contest.users))?;
            let ratio = oriented(comparison, design)?;
            let title = |design: usize| &results.designs[design].title;
            Some(format!(
                "{} has no device: its {} of {} is this host's ceiling",
                title(design),
                factor(ratio.value),
                title(contest.best)
            ))
        })
        .collect();
    (!texts.is_empty()).then(|| format!("{}.", list(&texts)))
}

fn how_sure(comparison: &Comparison) -> Option<String> {
    let p = comparison.p_adjusted?;
    let p = if p < 0.001 { "p < 0.001".to_string() } else { format!("p = {p:.3}") };
    Some(format!(
        "{} of interleaved runs, t test on the logarithms of their ratios: {p}.",
        count(comparison.pairs as u64, "pair")
    ))
}

/// The other designs against the best one.
fn others(results: &Results<'_>, contest: Contest) -> Option<String> {
    let texts: Vec<String> = (0..results.designs.len())
        .filter(|design| *design != contest.best && *design != contest.next)
        .filter(|design| !results.has_no_device(*design))
        .filter_map(|design| {
            let comparison = find(results, contest.best, design, "headline", Some(contest.users))?;
            let ratio = oriented(comparison, contest.best)?;
            let title = &results.designs[design].title;
            Some(format!("{} {title}{}", factor(ratio.value), doubt(comparison)))
        })
        .collect();
    let best = &results.designs[contest.best].title;
    (!texts.is_empty())
        .then(|| format!("{best} compared with the other designs: {}.", list(&texts)))
}

#[cfg(test)]
mod tests {
    use super::differing;
    use crate::analysis::{BudgetPart, TimeClass};

    fn budget(parts: &[(TimeClass, f64)]) -> Vec<BudgetPart> {
        let part = |(class, share): &(TimeClass, f64)| BudgetPart {
            class: *class,
            sessions: share * 16.0,
            share: *share,
            per_transaction_ns: None,
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn the_log_is_counted_with_what_it_waits_for() {
        use TimeClass::{Cpu, Log, LogBehindData};
        let sata = budget(&[(Log, 0.31), (LogBehindData, 0.31), (Cpu, 0.1)]);
        let nvme = budget(&[(Log, 0.12), (LogBehindData, 0.2), (Cpu, 0.4)]);
        let (class, [of_sata, of_nvme]) = differing(&sata, &nvme).unwrap();
        assert_eq!(class, Log);
        assert!((of_sata - 0.62).abs() < 1e-9 && (of_nvme - 0.32).abs() < 1e-9);
        assert_eq!(differing(&sata, &sata), None, "nothing differs");
    }
}
