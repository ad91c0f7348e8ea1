//! The answer to the study's question, in one sentence, with how much, how sure and why.

use crate::analysis::{
    Answer, Bottleneck, Comparison, Confidence, Design, Finding, FindingSeverity, LatencyRow,
    LimitMode, Outcome, Peak, Ratio, Rung, Scope, TimeClass, Verdict,
};
use crate::comparisons::EQUIVALENCE_MARGIN;
use crate::method::type_title;
use crate::verdict::bottleneck::class_title;
use crate::wording::{
    amount, count, factor, factor_interval, list, percent, sentence_case, time_ns,
};
use crate::workload_view::WorkloadView;

/// Pairs from which on the answer may be called certain.
const ENOUGH_PAIRS: usize = 5;
/// Difference of a class's share between designs that explains anything.
const TELLING: f64 = 0.05;

/// What the headline is made from.
pub(crate) struct Results<'a> {
    pub(crate) designs: &'a [Design],
    pub(crate) rungs: &'a [Rung],
    pub(crate) peaks: &'a [Peak],
    pub(crate) comparisons: &'a [Comparison],
    pub(crate) bottlenecks: &'a [Bottleneck],
    pub(crate) findings: &'a [Finding],
    pub(crate) workload: &'a WorkloadView,
}

/// Two designs at the rung of the headline; `best` has the higher mean.
#[derive(Clone, Copy)]
struct Contest {
    best: usize,
    next: usize,
    users: u32,
}

/// The answer.
pub(crate) fn verdict(results: &Results<'_>) -> Verdict {
    let mut measured: Vec<usize> = results.rungs.iter().map(|rung| rung.design).collect();
    measured.dedup();
    match measured[..] {
        [] => silent(Answer::NoData, "no measured window is there yet".to_string()),
        _ if invalid(results).is_some() => invalid_verdict(results),
        [only] => single(results, only),
        _ => match contest(results, &measured) {
            Some(contest) => compared(results, contest),
            None => silent(
                Answer::NotComparable,
                "the designs are not comparable: no number of users was measured on all of them"
                    .to_string(),
            ),
        },
    }
}

fn silent(answer: Answer, headline: String) -> Verdict {
    Verdict {
        headline: sentence_case(&headline),
        answer,
        support: Vec::new(),
        confidence: Confidence::None,
        confidence_reasons: Vec::new(),
        winner: None,
        against: None,
        ratio: None,
        users: None,
    }
}

fn invalid<'a>(results: &Results<'a>) -> Option<&'a Finding> {
    results.findings.iter().find(|finding| finding.severity == FindingSeverity::Invalid)
}

fn invalid_verdict(results: &Results<'_>) -> Verdict {
    let why: Vec<String> = results
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Invalid)
        .map(|finding| finding.text.clone())
        .collect();
    let mut verdict = silent(Answer::Invalid, format!("the results are invalid: {}", why[0]));
    verdict.support = why[1..].iter().map(|text| sentence_case(text)).collect();
    verdict
}

fn single(results: &Results<'_>, design: usize) -> Verdict {
    let title = &results.designs[design].title;
    let peak = results.peaks.iter().find(|peak| peak.design == design);
    let headline = match peak.and_then(|peak| Some((peak, peak.headline.value?))) {
        Some((peak, headline)) => format!(
            "{title} does {} {}{} ({})",
            amount(headline),
            results.workload.rate_words(),
            results.workload.at(peak.users),
            evidence_words(results, &[design])
        ),
        None => format!("{title} has no throughput to report"),
    };
    let mut verdict = silent(Answer::SingleDesign, headline);
    verdict.users = peak.map(|peak| peak.users);
    let users = peak.map_or(0, |peak| peak.users);
    verdict.support.extend(bottleneck_sentence(results, design, users));
    verdict
}

/// The two best designs at the highest number of users that all designs were measured with.
fn contest(results: &Results<'_>, measured: &[usize]) -> Option<Contest> {
    let headline = |design: usize, users: u32| {
        let rung = results.rungs.iter().find(|r| (r.design, r.users) == (design, users))?;
        rung.metrics.get("headline")?.value
    };
    let users = results
        .rungs
        .iter()
        .map(|rung| rung.users)
        .filter(|users| measured.iter().all(|design| headline(*design, *users).is_some()))
        .max()?;
    let mut ranking: Vec<(usize, f64)> =
        measured.iter().filter_map(|design| Some((*design, headline(*design, users)?))).collect();
    ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some(Contest { best: ranking[0].0, next: ranking[1].0, users })
}

fn compared(results: &Results<'_>, contest: Contest) -> Verdict {
    let Contest { best, next, users } = contest;
    let comparison = find(results, best, next, "headline", Some(users));
    let ratio = comparison.and_then(|comparison| oriented(comparison, best));
    let (Some(comparison), Some(ratio)) = (comparison, ratio) else {
        let text = format!(
            "{} and {} are not comparable: they have no repeat in common",
            results.designs[best].title, results.designs[next].title
        );
        return silent(Answer::NotComparable, text);
    };
    let obstacle = obstacle(results, contest);
    let answer = match (&obstacle, comparison.outcome) {
        (Some(_), _) | (_, Outcome::Missing) => Answer::NotComparable,
        (None, Outcome::Better | Outcome::Worse) => Answer::Winner,
        (None, Outcome::Equivalent) => Answer::Equivalent,
        (None, Outcome::Undecided | Outcome::Suggested) => Answer::NoDifferenceShown,
        (None, Outcome::Single) => Answer::NotRepeated,
    };
    let mut verdict = Verdict {
        headline: headline(results, contest, &ratio, answer, obstacle),
        answer,
        support: support(results, contest, comparison, answer),
        confidence: Confidence::None,
        confidence_reasons: Vec::new(),
        winner: (answer == Answer::Winner).then_some(best),
        against: Some(next),
        ratio: Some(ratio),
        users: Some(users),
    };
    (verdict.confidence, verdict.confidence_reasons) = confidence(results, answer, comparison);
    verdict
}

/// Why the numbers of the contest do not measure what they should.
fn obstacle(results: &Results<'_>, contest: Contest) -> Option<String> {
    [contest.best, contest.next].into_iter().find_map(|design| {
        results
            .bottlenecks
            .iter()
            .find(|b| (b.design, b.users) == (design, contest.users))
            .filter(|b| b.class == "load-generator")
            .map(|_| {
                format!("the load generator was the limit on {}", results.designs[design].title)
            })
    })
}

fn headline(
    results: &Results<'_>,
    contest: Contest,
    ratio: &Ratio,
    answer: Answer,
    obstacle: Option<String>,
) -> String {
    let title = |design: usize| results.designs[design].title.as_str();
    let (best, next) = (title(contest.best), title(contest.next));
    let at = results.workload.at(contest.users);
    let kind = evidence_words(results, &[contest.best, contest.next]);
    let rate = results.workload.rate_words();
    let times = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{} {}", factor(ratio.value), factor_interval(low, high))
        }
        _ => factor(ratio.value),
    };
    match answer {
        Answer::Winner => {
            format!("{best} does {times} the {rate} of {next}{at} ({kind})")
        }
        Answer::Equivalent => format!(
            "{best} and {next} are equal within {}{at}: {times} the {rate} ({kind}){}",
            percent(EQUIVALENCE_MARGIN),
            elsewhere(results, contest)
        ),
        Answer::NotRepeated => format!(
            "{best} did {times} the {rate} of {next}{at} ({kind}), in one run each: chance is \
             not ruled out"
        ),
        Answer::NotComparable => format!(
            "{best} and {next} are not comparable{at}: {} ({kind})",
            obstacle.unwrap_or_else(|| "a result is missing".to_string())
        ),
        _ => format!(
            "No difference shown between {best} and {next}{at}: {times} ({kind}){}",
            elsewhere(results, contest)
        ),
    }
}

/// Where the designs do differ although they do not at the top: a ladder that ends in a common limit,
/// the processors for example, would otherwise hide what the storage does below it.
fn elsewhere(results: &Results<'_>, contest: Contest) -> String {
    let (a, b) = (contest.best.min(contest.next), contest.best.max(contest.next));
    let ahead: Vec<(usize, f64, u32)> = results
        .comparisons
        .iter()
        .filter(|c| (c.a, c.b) == (a, b) && c.metric == "headline" && c.scope == Scope::Rung)
        .filter(|c| matches!(c.outcome, Outcome::Better | Outcome::Worse | Outcome::Suggested))
        .filter_map(|c| {
            let (ratio, users) = (c.ratio?, c.users?);
            Some(if ratio > 1.0 { (b, ratio, users) } else { (a, 1.0 / ratio, users) })
        })
        .collect();
    let Some((leader, ratio, users)) = ahead.iter().copied().max_by(|x, y| x.1.total_cmp(&y.1))
    else {
        return String::new();
    };
    if ahead.iter().any(|(design, ..)| *design != leader) {
        return "; at fewer users the order changes".to_string();
    }
    format!(
        "; at fewer users {} is ahead, by up to {} at {}",
        results.designs[leader].title,
        factor(ratio),
        count(u64::from(users), "user")
    )
}

/// `emulated`, or `NVMe emulated, SATA measured; not timing-valid; more than the storage differs`.
fn evidence_words(results: &Results<'_>, designs: &[usize]) -> String {
    let word = |design: usize| results.designs[design].evidence.as_str();
    let first = word(designs[0]);
    let mut words = if designs.iter().all(|design| word(*design) == first) {
        first.to_string()
    } else {
        let each: Vec<String> = designs
            .iter()
            .map(|design| format!("{} {}", results.designs[*design].title, word(*design)))
            .collect();
        each.join(", ")
    };
    let found = |code: &str| {
        results.findings.iter().any(|finding| {
            finding.code == code && finding.design.is_none_or(|design| designs.contains(&design))
        })
    };
    if found("not-timing-valid") {
        words.push_str("; not timing-valid");
    }
    if found("confounded") {
        words.push_str("; more than the storage differs");
    }
    words
}

fn find<'a>(
    results: &Results<'a>,
    x: usize,
    y: usize,
    metric: &str,
    users: Option<u32>,
) -> Option<&'a Comparison> {
    results.comparisons.iter().find(|comparison| {
        (comparison.a, comparison.b) == (x.min(y), x.max(y))
            && comparison.metric == metric
            && comparison.users == users
            && (comparison.scope == Scope::Peak) == users.is_none()
    })
}

/// The ratio of a comparison, with `over` as the numerator.
fn oriented(comparison: &Comparison, over: usize) -> Option<Ratio> {
    let value = comparison.ratio?;
    if comparison.b == over {
        return Some(Ratio { value, low: comparison.low, high: comparison.high });
    }
    Some(Ratio {
        value: 1.0 / value,
        low: comparison.high.map(f64::recip),
        high: comparison.low.map(f64::recip),
    })
}

fn support(
    results: &Results<'_>,
    contest: Contest,
    comparison: &Comparison,
    answer: Answer,
) -> Vec<String> {
    let mut support = vec![absolute(results, contest)];
    support.extend(peaks(results, contest));
    support.extend(latency(results, contest));
    // Without a difference there is nothing to explain.
    if matches!(answer, Answer::Winner | Answer::NotRepeated) {
        support.extend(why(results, contest));
    }
    support.extend(bottleneck_sentence(results, contest.next, contest.users));
    support.extend(how_sure(comparison));
    support.extend(others(results, contest));
    support
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
        "At their peaks {} does {} at {} and {} does {} at {}: {}{interval}.",
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
    // Of a mix that counts several types, one is told, by its name.
    let counted = best.latencies.iter().filter(|row| workload.counts(&row.transaction)).count();
    let what = match counted {
        1 => workload.counted.clone(),
        _ => format!("{} ({})", workload.counted, type_title(kind)),
    };
    Some(format!(
        "95 % of the {what} take at most {} on {} and {} on {}.",
        time_ns(p95(contest.best)?),
        results.designs[contest.best].title,
        time_ns(p95(contest.next)?),
        results.designs[contest.next].title
    ))
}

/// The class of session time whose share differs most.
fn why(results: &Results<'_>, contest: Contest) -> Option<String> {
    let budget = |design: usize| {
        let found =
            results.bottlenecks.iter().find(|b| (b.design, b.users) == (design, contest.users))?;
        (!found.budget.is_empty()).then_some(found)
    };
    let (best, next) = (budget(contest.best)?, budget(contest.next)?);
    let share = |bottleneck: &Bottleneck, class: TimeClass| {
        bottleneck.budget.iter().find(|part| part.class == class).map_or(0.0, |part| part.share)
    };
    let (class, difference) = next
        .budget
        .iter()
        .chain(&best.budget)
        .map(|part| part.class)
        .filter(|class| !matches!(class, TimeClass::Client | TimeClass::Other))
        .map(|class| (class, share(next, class) - share(best, class)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (difference >= TELLING).then(|| {
        format!(
            "On {} the sessions spend {} of their time {}, on {} {}.",
            results.designs[contest.next].title,
            percent(share(next, class)),
            class_title(class),
            results.designs[contest.best].title,
            percent(share(best, class))
        )
    })
}

fn bottleneck_sentence(results: &Results<'_>, design: usize, users: u32) -> Option<String> {
    let found = results.bottlenecks.iter().find(|b| (b.design, b.users) == (design, users))?;
    let explained = match found.mode {
        LimitMode::Latency => ": throughput still grows with the users",
        LimitMode::Capacity => ": more users bring no more throughput",
        LimitMode::Unknown => "",
    };
    (found.class != "inconclusive").then(|| {
        format!("What limits {}: {}{explained}.", results.designs[design].title, found.sentence)
    })
}

fn how_sure(comparison: &Comparison) -> Option<String> {
    let p = comparison.p_adjusted?;
    let p = if p < 0.001 { "p < 0.001".to_string() } else { format!("p = {p:.3}") };
    Some(format!(
        "{} of interleaved runs, Student's t over the logarithms of their ratios: {p}.",
        count(comparison.pairs as u64, "pair")
    ))
}

/// The other designs against the best one.
fn others(results: &Results<'_>, contest: Contest) -> Option<String> {
    let texts: Vec<String> = (0..results.designs.len())
        .filter(|design| *design != contest.best && *design != contest.next)
        .filter_map(|design| {
            let comparison = find(results, contest.best, design, "headline", Some(contest.users))?;
            let ratio = oriented(comparison, contest.best)?;
            let shown = match comparison.outcome {
                Outcome::Undecided | Outcome::Suggested | Outcome::Single => {
                    " (no difference shown)"
                }
                Outcome::Equivalent => " (equal)",
                _ => "",
            };
            let title = &results.designs[design].title;
            Some(format!("{} that of {title}{shown}", factor(ratio.value)))
        })
        .collect();
    let best = &results.designs[contest.best].title;
    (!texts.is_empty()).then(|| format!("{best} also does {}.", list(&texts)))
}

fn confidence(
    results: &Results<'_>,
    answer: Answer,
    comparison: &Comparison,
) -> (Confidence, Vec<String>) {
    if !matches!(answer, Answer::Winner | Answer::Equivalent) {
        let reason = match answer {
            Answer::NotRepeated => "one run per design",
            Answer::NoDifferenceShown => "the interval includes 1",
            _ => "the numbers do not answer the question",
        };
        return (Confidence::None, vec![reason.to_string()]);
    }
    let mut reasons = vec![format!(
        "{}, the interval {}",
        count(comparison.pairs as u64, "pair"),
        if answer == Answer::Winner { "excludes 1" } else { "lies within 3 % of 1" }
    )];
    let doubts: Vec<&Finding> = results
        .findings
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Warning && is_doubt(&finding.code))
        .collect();
    reasons.extend(doubts.iter().map(|finding| finding.text.clone()));
    let level = if !doubts.is_empty() {
        Confidence::Low
    } else if comparison.pairs < ENOUGH_PAIRS {
        Confidence::Medium
    } else {
        Confidence::High
    };
    (level, reasons)
}

/// Whether a finding casts doubt on which design is ahead.
fn is_doubt(code: &str) -> bool {
    matches!(
        code,
        "not-timing-valid"
            | "host-limited"
            | "confounded"
            | "mixed-evidence"
            | "not-steady"
            | "steal"
            | "interference"
            | "generator-saturated"
            | "dispatch-lag"
            | "errors"
            | "outage"
            | "not-checked"
            | "check-failed"
            | "limit-not-enforced"
            | "memory-limit-unenforced"
            | "cpu-limit-unenforced"
    )
}
