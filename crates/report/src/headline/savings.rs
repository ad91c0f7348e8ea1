//! What the winning design saves: users and processors for the same work, and devices of the other kind that would be
//! needed in its place.
//!
//! Everything is read off measured rungs. What is deliberately not here: prices, and any curve between rungs.

use super::results::{Contest, Results, find, oriented};
use crate::analysis::{LimitMode, Outcome, Ratio, Rung};
use crate::axes::Apart;
use crate::wording::{amount, count};

/// Processor time per transaction that differs by less than this share is not worth a sentence.
const NOTICEABLE: f64 = 0.1;
/// The classes of bottleneck that a device accounts for.
const OF_DEVICES: [&str; 4] = ["log", "log-behind-data", "data-read", "data-write"];

/// A sentence each.
pub(super) fn savings(results: &Results<'_>, contest: Contest, ratio: &Ratio) -> Vec<String> {
    let users_do_it = results.workload.has_sessions() && !results.workload.is_job();
    if !users_do_it {
        return Vec::new();
    }
    let mut of_devices: Vec<String> = devices(results, contest, ratio).into_iter().collect();
    // The others that are shown to be behind, too.
    for other in 0..results.designs.len() {
        let contest = Contest { next: other, ..contest };
        let ratio = (contest.next != contest.best).then(|| shown_ahead(results, contest)).flatten();
        let text = ratio.and_then(|ratio| devices(results, contest, &ratio));
        of_devices.extend(text.filter(|text| !of_devices.contains(text)));
    }
    same_work(results, contest).into_iter().chain(of_devices).collect()
}

/// How far the best design is ahead of the other one at these users, if that is shown.
fn shown_ahead(results: &Results<'_>, contest: Contest) -> Option<Ratio> {
    let Contest { best, next, users, .. } = contest;
    let is_other_design = results.axes.apart(best, next) == Some(Apart::Design);
    let comparison =
        find(results, best, next, "headline", Some(users)).filter(|_| is_other_design)?;
    let ratio = oriented(comparison, best)?;
    let is_shown = matches!(comparison.outcome, Outcome::Better | Outcome::Worse);
    (is_shown && ratio.value > 1.0).then_some(ratio)
}

/// `NVMe reaches the peak of SATA, 2,605 new orders per minute at 16 users, with 4 users or fewer. Its server then needs
/// 0.12 processors instead of 0.21 if each transaction takes the processor time that it takes with 4 users.`
///
/// The rung of the winner is the first that does as much: how many users fewer would do, nobody has measured.
fn same_work(results: &Results<'_>, contest: Contest) -> Option<String> {
    let peak = results.peaks.iter().find(|peak| peak.design == contest.next)?;
    let work = peak.headline.value.filter(|work| *work > 0.0)?;
    let rungs = results.rungs.iter().filter(|rung| rung.design == contest.best);
    let enough = rungs.filter(|rung| value(rung, "headline").is_some_and(|done| done >= work));
    let rung = enough.min_by_key(|rung| rung.users)?;
    if rung.users > peak.users {
        return None;
    }
    let (best, next) =
        (results.title_in(contest, contest.best), results.title_in(contest, contest.next));
    let users = count(u64::from(rung.users), "user");
    let peak_of_next = format!(
        "the peak of {next}, {} {}{}",
        amount(work),
        results.workload.rate_words(),
        results.workload.at(peak.users)
    );
    let at_peak =
        results.rungs.iter().find(|it| (it.design, it.users) == (peak.design, peak.users))?;
    let processors = cores_for(work, rung)
        .zip(value(at_peak, "server_cores"))
        .filter(|(cores, instead_of)| (cores / instead_of - 1.0).abs() >= NOTICEABLE)
        .map(|(cores, instead_of)| {
            format!(
                "needs {} processors instead of {} if each transaction takes the processor time that it \
                 takes with {users}",
                amount(cores),
                amount(instead_of)
            )
        });
    match (rung.users < peak.users, processors) {
        (true, None) => Some(format!("{best} reaches {peak_of_next}, with {users} or fewer.")),
        (true, Some(needs)) => Some(format!(
            "{best} reaches {peak_of_next}, with {users} or fewer. Its server then {needs}."
        )),
        (false, Some(needs)) => Some(format!("For {peak_of_next}, the server of {best} {needs}.")),
        (false, None) => None,
    }
}

/// Processors of the server for so much work, at the cost of a rung.
fn cores_for(work: f64, rung: &Rung) -> Option<f64> {
    Some(value(rung, "server_cores")? / value(rung, "headline")? * work)
}

/// `It would take 7 to 9 of 5200-eco-1920 to do what 1 of dc1500m-960 does, if ...`, or why more of them would not do it: single
/// requests take that long, or something else of their hosts is busy all the time.
/// Said only between designs of one device model each, whose number alone could make up for the difference.
fn devices(results: &Results<'_>, contest: Contest, ratio: &Ratio) -> Option<String> {
    if contest.axis.is_some() {
        return None;
    }
    let models = |design: usize| match &results.plan.device_models(design)[..] {
        [(name, number)] => Some((name.clone(), *number)),
        _ => None,
    };
    let (best, next) = (models(contest.best)?, models(contest.next)?);
    if best.0 == next.0 {
        return None;
    }
    let limit = results.limit_of(contest.next, contest.users)?;
    if !OF_DEVICES.contains(&limit) {
        return None;
    }
    let rung = results
        .rungs
        .iter()
        .find(|rung| (rung.design, rung.users) == (contest.next, contest.users))?;
    let title = results.title_in(contest, contest.next);
    if let Some(full) = rung.busy_parts.first() {
        return Some(format!(
            "More of {} would not make up for it: the {} of {} limits {title}, not its devices.",
            next.0, full.kind, full.host
        ));
    }
    let mode = results.bottleneck_of(contest.next, contest.users)?.mode;
    // As in the headline: with what the host may have changed.
    let (low, high) = (ratio.low?, ratio.high?);
    let low = ratio.host_low.map_or(low, |host| host.min(low));
    let range = (low, ratio.host_high.map_or(high, |host| host.max(high)));
    number_sentence(mode, title, (&best, &next), range)
}

/// What more of the device `next` would do; `best` and `next` are a model and how many a design has of it.
fn number_sentence(
    mode: LimitMode,
    title: &str,
    (best, next): (&(String, u64), &(String, u64)),
    (low, high): (f64, f64),
) -> Option<String> {
    match mode {
        LimitMode::Unknown => None,
        LimitMode::Latency => Some(format!(
            "More of {} would hardly make up for it: the sessions of {title} wait for single requests, \
             which more devices do not shorten.",
            next.0
        )),
        LimitMode::Capacity => {
            let needed = |times: f64| (next.1 as f64 * times).ceil();
            let (low, high) = (needed(low), needed(high));
            let range = if low < high { format!("{low} to {high}") } else { format!("{low}") };
            Some(format!(
                "It would take {range} of {} to do what {} of {} does, if throughput grew with their number \
                 and nothing else limited it.",
                next.0, best.1, best.0
            ))
        }
    }
}

fn value(rung: &Rung, metric: &str) -> Option<f64> {
    rung.metrics.get(metric)?.value.filter(|value| *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::number_sentence;
    use crate::analysis::LimitMode;

    #[test]
    fn devices_are_counted_where_their_capacity_limits() {
        let best = ("dc1500m-960".to_string(), 1);
        let says = |mode, number, range| {
            let next = ("5200eco-1920".to_string(), number);
            number_sentence(mode, "SATA", (&best, &next), range)
        };
        let needed = |number, range| says(LimitMode::Capacity, number, range).unwrap();
        assert!(needed(1, (6.2, 8.4)).starts_with("It would take 7 to 9 of 5200eco-1920 to do"));
        assert!(
            needed(3, (2.1, 2.2)).starts_with("It would take 7 of 5200eco-1920 to do what 1 of")
        );
        assert_eq!(says(LimitMode::Unknown, 1, (6.2, 8.4)), None);
        let latency = says(LimitMode::Latency, 1, (6.2, 8.4)).unwrap();
        assert!(latency.contains("the sessions of SATA wait for single requests"), "{latency}");
    }
}
