//! The answer to the study's question, in one sentence, with how much, how sure and why.

mod confidence;
mod results;
mod savings;
mod support;

use underlay_record::conventions::finding as code;

use crate::analysis::{
    Answer, Aspect, Confidence, Finding, FindingSeverity, Outcome, Ratio, Scope, Validity, Verdict,
};
use crate::axes::Apart;
use crate::comparisons::EQUIVALENCE_MARGIN;
use crate::wording::{amount, factor, factor_interval, percent, sentence_case};

pub(crate) use results::Results;

use confidence::confidence;
use results::{Contest, ONE_RUN_EACH, find, host_explains, oriented};
use savings::savings;
use support::{bottleneck_sentence, busy_parts_sentence, support, validity_sentence};

/// What sampling and what an experiment call a load generator that is the limit.
const OF_THE_LOAD_GENERATOR: [&str; 2] = ["load-generator", "client"];

/// The answer.
pub(crate) fn verdict(results: &Results<'_>) -> Verdict {
    let mut measured: Vec<usize> = results.rungs.iter().map(|rung| rung.design).collect();
    measured.dedup();
    // What has no device shows what the others could reach; it is no answer to which of them is ahead.
    let with_device: Vec<usize> =
        measured.iter().copied().filter(|design| !results.has_no_device(*design)).collect();
    if with_device.len() >= 2 {
        measured = with_device;
    }
    match measured[..] {
        [] => silent(Answer::NoData, "No measurements yet".to_string()),
        _ if invalid(results).is_some() => invalid_verdict(results),
        [only] => single(results, only),
        _ => match contest(results, &measured) {
            Some(contest) => compared(results, contest),
            None => silent(
                Answer::NotComparable,
                match results.workload.is_block_load() {
                    true => {
                        "The designs are not comparable: no number of requests in flight was measured on all of \
                         them"
                    }
                    false => {
                        "The designs are not comparable: no user count was measured on all of them"
                    }
                }
                .to_string(),
            ),
        },
    }
}

/// A verdict of a sentence alone. Its case is not changed: a design's title may begin it, and titles are what their
/// owners call them.
fn silent(answer: Answer, headline: String) -> Verdict {
    Verdict {
        headline,
        answer,
        support: Vec::new(),
        support_aspects: Vec::new(),
        confidence: Confidence::None,
        confidence_reasons: Vec::new(),
        winner: None,
        against: None,
        ratio: None,
        validity: None,
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
    let mut verdict = silent(Answer::Invalid, format!("The results are invalid: {}", why[0]));
    verdict.say(Aspect::HowSure, why[1..].iter().map(|text| sentence_case(text)));
    verdict
}

fn single(results: &Results<'_>, design: usize) -> Verdict {
    let title = &results.designs[design].title;
    let peak = results.peaks.iter().find(|peak| peak.design == design);
    let headline = match peak.and_then(|peak| Some((peak, peak.headline.value?))) {
        Some((peak, headline)) if results.is_host_limited(design, peak.users) => format!(
            "This host, not a device, does {} {}{} ({})",
            amount(headline),
            results.workload.rate_words(),
            results.workload.at(peak.users),
            evidence_words(results, &[design])
        ),
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
    verdict.validity = results.validity_of(design, users).map(|row| row.outcome);
    verdict.say(Aspect::Why, bottleneck_sentence(results, design, users));
    verdict.say(Aspect::Why, busy_parts_sentence(results, design, users));
    verdict.say(Aspect::HowSure, validity_sentence(results, design, users));
    verdict
}

/// The two best designs at the highest number of users that all designs were measured with. With axes the best variant and,
/// along the first axis, the point that the others are compared with; where that is the best one, the best of the others.
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
    let (best, axes) = (ranking[0].0, results.axes);
    for axis in 0..axes.list.len() {
        let line = axes.along(best, axis);
        let others =
            || ranking[1..].iter().map(|(design, _)| *design).filter(|it| line.contains(it));
        let first = others().find(|other| axes.coordinates(*other)[axis] == 0);
        let is_first = axes.coordinates(best)[axis] == 0;
        if let Some(next) = if is_first { others().next() } else { first } {
            return Some(Contest { best, next, users, axis: Some(axis) });
        }
    }
    let mut others = ranking[1..].iter().map(|(design, _)| *design);
    let next = others.find(|other| axes.apart(best, *other) == Some(Apart::Design))?;
    Some(Contest { best, next, users, axis: None })
}

fn compared(results: &Results<'_>, contest: Contest) -> Verdict {
    let Contest { best, next, users, .. } = contest;
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
    let validity = results.outcome_of(contest);
    let explained =
        matches!(comparison.outcome, Outcome::Better | Outcome::Worse) && host_explains(comparison);
    let answer = match (&obstacle, comparison.outcome) {
        (Some(_), _) | (_, Outcome::Missing) => Answer::NotComparable,
        _ if validity == Some(Validity::HostLimited) || explained => Answer::HostLimited,
        (None, Outcome::Better | Outcome::Worse) => Answer::Winner,
        (None, Outcome::Equivalent) => Answer::Equivalent,
        (None, Outcome::Undecided | Outcome::Suggested) => Answer::NoDifferenceShown,
        (None, Outcome::Single) => Answer::NotRepeated,
    };
    let is_ahead = matches!(answer, Answer::Winner | Answer::NotRepeated);
    let saved = match is_ahead && !host_explains(comparison) {
        true => savings(results, contest, &ratio),
        false => Vec::new(),
    };
    let mut verdict = Verdict {
        headline: headline(results, contest, &ratio, answer, obstacle),
        answer,
        support: Vec::new(),
        support_aspects: Vec::new(),
        confidence: Confidence::None,
        confidence_reasons: Vec::new(),
        winner: (answer == Answer::Winner).then_some(best),
        against: Some(next),
        ratio: Some(ratio),
        // What the host may explain is not known of any design.
        validity: if explained { Some(Validity::HostLimited) } else { validity },
        users: Some(users),
    };
    support(&mut verdict, results, contest, comparison);
    verdict.say(Aspect::Savings, saved);
    (verdict.confidence, verdict.confidence_reasons) =
        confidence(results, (contest, answer), comparison);
    verdict
}

/// Why the numbers of the contest do not measure what they should.
fn obstacle(results: &Results<'_>, contest: Contest) -> Option<String> {
    [contest.best, contest.next]
        .into_iter()
        .find_map(|design| {
            results
                .limit_of(design, contest.users)
                .filter(|limit| OF_THE_LOAD_GENERATOR.contains(limit))
                .map(|_| {
                    format!(
                        "the load generator was the bottleneck on {}",
                        results.designs[design].title
                    )
                })
        })
        .or_else(|| {
            // What is behind may in truth be ahead.
            results.is_lower_bound(contest.next).then(|| {
                let title = &results.designs[contest.next].title;
                format!(
                    "the load generator was saturated before the highest rate of {title} was found"
                )
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
    let (best, next) =
        (results.title_in(contest, contest.best), results.title_in(contest, contest.next));
    let on = contest.axis.map_or_else(String::new, |axis| {
        format!(" on {}", results.axes.other_points(contest.best, axis))
    });
    let at = format!("{on}{}", results.workload.at(contest.users));
    let kind = evidence_words(results, &[contest.best, contest.next]);
    let rate = results.workload.rate_words();
    let times = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{} {}", factor(ratio.value), factor_interval(low, high))
        }
        _ => factor(ratio.value),
    };
    let times = match with_host(results, contest, ratio) {
        Some(wider) if ratio.low.is_some() => format!("{times} by chance, {wider}"),
        Some(wider) => format!("{times}, {wider}"),
        None => times,
    };
    match answer {
        Answer::HostLimited => host_limited(results, contest, &times, &kind),
        Answer::Winner => {
            format!("{best} does {times} the {rate} of {next}{at} ({kind})")
        }
        Answer::Equivalent => format!(
            "{best} and {next} are the same within {}{at}: {times} the {rate} ({kind}){}",
            percent(EQUIVALENCE_MARGIN),
            elsewhere(results, contest)
        ),
        Answer::NotRepeated => {
            format!("{best} did {times} the {rate} of {next}{at} ({kind}), {ONE_RUN_EACH}")
        }
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

/// `[4.0, 6.4] with the host's share`, where that is not about the same as by chance.
fn with_host(results: &Results<'_>, contest: Contest, ratio: &Ratio) -> Option<String> {
    let is_bounded = [contest.best, contest.next].into_iter().any(|design| {
        results
            .validity_of(design, contest.users)
            .is_some_and(|row| row.outcome == Validity::Bounded)
    });
    let (low, high) = ratio.host_low.zip(ratio.host_high).filter(|_| is_bounded)?;
    Some(format!("{} with the host's share", factor_interval(low, high)))
}

/// What can be said where the host was measured: a design that cannot be told from it does not get the credit.
fn host_limited(results: &Results<'_>, contest: Contest, times: &str, kind: &str) -> String {
    let title = |design: usize| results.designs[design].title.as_str();
    let (at, rate) = (results.workload.at(contest.users), results.workload.rate_words());
    let limited = |design: usize| results.is_host_limited(design, contest.users);
    match (limited(contest.best), limited(contest.next)) {
        (true, false) => format!(
            "This host does {times} the {rate} of {}{at}, and the design ahead of it is not \
             distinguishable from this host ({kind})",
            title(contest.next)
        ),
        (true, true) => format!(
            "No design is distinguishable from this host{at}: the two best differ by {times} ({kind})"
        ),
        (false, true) => format!(
            "The designs cannot be ranked{at}: the second best is not distinguishable from this host; \
             {times} between the two best ({kind})"
        ),
        (false, false) => format!(
            "The host's share may explain the difference between {} and {}{at}: {times} ({kind})",
            title(contest.best),
            title(contest.next)
        ),
    }
}

/// Where the designs do differ although they do not at the top: a ladder that ends in a common limit,
/// the processors for example, would otherwise hide what the storage does below it. What was not confirmed
/// after the correction for the number of rungs is no more of a difference here than in the table, and what this host did is
/// no more an answer here than in the headline.
fn elsewhere(results: &Results<'_>, contest: Contest) -> String {
    let (a, b) = (contest.best.min(contest.next), contest.best.max(contest.next));
    let ahead: Vec<(usize, f64, u32)> = results
        .comparisons
        .iter()
        .filter(|c| (c.a, c.b) == (a, b) && c.metric == "headline" && c.scope == Scope::Rung)
        .filter(|c| matches!(c.outcome, Outcome::Better | Outcome::Worse) && !host_explains(c))
        .filter_map(|c| {
            let (ratio, users) = (c.ratio?, c.users?);
            if [a, b].into_iter().any(|design| results.is_host_limited(design, users)) {
                return None;
            }
            Some(if ratio > 1.0 { (b, ratio, users) } else { (a, 1.0 / ratio, users) })
        })
        .collect();
    let Some((leader, ratio, users)) = ahead.iter().copied().max_by(|x, y| x.1.total_cmp(&y.1))
    else {
        return String::new();
    };
    let fewer = match results.workload.is_block_load() {
        true => "with fewer requests in flight",
        false => "at fewer users",
    };
    if ahead.iter().any(|(design, ..)| *design != leader) {
        return format!("; the order changes {fewer}");
    }
    format!(
        "; {fewer} {} is ahead, by up to {}{}",
        results.designs[leader].title,
        factor(ratio),
        results.workload.at(users)
    )
}

/// `emulated`, or `NVMe emulated, SATA measured; validity unknown; designs differ in more than storage`.
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
    if results.time_dilation > 1 {
        words.push_str(&format!(", time dilation {}", results.time_dilation));
    }
    if found(code::VALIDITY_UNKNOWN) {
        words.push_str("; validity unknown");
    }
    if found("confounded") {
        words.push_str(match results.axes.is_empty() {
            true => "; designs differ in more than storage",
            false => "; more differs than what was asked",
        });
    }
    words
}
