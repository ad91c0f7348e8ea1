//! What the winning design saves: users and processors for the same work, and devices of the other kind that would be
//! needed in its place. Of block loads only the latter.
//!
//! Everything is read off measured rungs. What is deliberately not here: prices, and any curve between rungs.

use super::results::{Contest, ONE_RUN_EACH, Results, find, host_explains, oriented};
use crate::analysis::{LimitMode, Outcome, Ratio, Rung};
use crate::axes::Apart;
use crate::wording::{amount, count};

/// Processor time per transaction that differs by less than this share is not worth a sentence.
const NOTICEABLE: f64 = 0.1;
/// The classes of bottleneck that a device accounts for.
const OF_DEVICES: [&str; 4] = ["log", "log-behind-data", "data-read", "data-write"];
/// The finding of a run whose load generator may be the limit.
const GENERATOR_SATURATED: &str = "generator-saturated";

/// A model of a device, and how many of it a design has.
type Devices = (String, u64);

/// A sentence each.
pub(super) fn savings(results: &Results<'_>, contest: Contest, ratio: &Ratio) -> Vec<String> {
    let users_do_it = results.workload.has_sessions() && !results.workload.is_job();
    if !users_do_it && !results.workload.is_block_load() {
        return Vec::new();
    }
    let mut of_devices: Vec<String> = devices(results, contest, ratio).into_iter().collect();
    // The others that are behind, too.
    for other in 0..results.designs.len() {
        let contest = Contest { next: other, ..contest };
        let ratio = (contest.next != contest.best).then(|| ahead(results, contest)).flatten();
        let text = ratio.and_then(|ratio| devices(results, contest, &ratio));
        of_devices.extend(text.filter(|text| !of_devices.contains(text)));
    }
    // Requests in flight cost nobody anything, and a block load has no server.
    let is_repeated = ratio.low.is_some();
    let of_work = (users_do_it && is_repeated).then(|| same_work(results, contest)).flatten();
    of_work.into_iter().chain(of_devices).collect()
}

/// How far the best design is ahead of the other one at these users, if that is shown or there is one run of each.
fn ahead(results: &Results<'_>, contest: Contest) -> Option<Ratio> {
    let Contest { best, next, users, .. } = contest;
    let is_other_design = results.axes.apart(best, next) == Some(Apart::Design);
    let comparison =
        find(results, best, next, "headline", Some(users)).filter(|_| is_other_design)?;
    let ratio = oriented(comparison, best)?;
    let outcome = comparison.outcome;
    let is_ahead = matches!(outcome, Outcome::Better | Outcome::Worse | Outcome::Single);
    let is_of_host = results.is_host_limited(next, users) || host_explains(comparison);
    (is_ahead && !is_of_host && ratio.value > 1.0).then_some(ratio)
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
        [devices] => Some(devices.clone()),
        _ => None,
    };
    let (best, next) = (models(contest.best)?, models(contest.next)?);
    if best.0 == next.0 || !is_limited_by_devices(results, contest) {
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
    if results.workload.is_block_load() {
        let rate = results.workload.rate_words();
        return Some(number_of_blocks_sentence(&rate, (&best, &next), ratio));
    }
    let mode = results.bottleneck_of(contest.next, contest.users)?.mode;
    number_sentence(mode, title, (&best, &next), ratio)
}

/// Whether devices limit the design that is behind. What requests of a block load wait for is not sampled: they go to devices,
/// unless the load generator of either design may have been the limit.
fn is_limited_by_devices(results: &Results<'_>, contest: Contest) -> bool {
    if !results.workload.is_block_load() {
        let limit = results.limit_of(contest.next, contest.users);
        return limit.is_some_and(|limit| OF_DEVICES.contains(&limit));
    }
    let is_of_contest = |design: usize| [contest.best, contest.next].contains(&design);
    !results.findings.iter().any(|finding| {
        finding.code == GENERATOR_SATURATED && finding.design.is_none_or(is_of_contest)
    })
}

/// How many more of the device `next` a block load would need; each device has its own requests in flight.
fn number_of_blocks_sentence(
    rate: &str,
    (best, next): (&Devices, &Devices),
    ratio: &Ratio,
) -> String {
    format!(
        "For the same {rate} it would take {} of {} instead of {} of {}, if each had as many \
         requests in flight and nothing else limited them{}.",
        needed(next.1, ratio),
        next.0,
        best.1,
        best.0,
        chance(ratio)
    )
}

/// What more of the device `next` would do.
fn number_sentence(
    mode: LimitMode,
    title: &str,
    (best, next): (&Devices, &Devices),
    ratio: &Ratio,
) -> Option<String> {
    match mode {
        LimitMode::Unknown => None,
        LimitMode::Latency => Some(format!(
            "More of {} would hardly make up for it: the sessions of {title} wait for single requests, \
             which more devices do not shorten.",
            next.0
        )),
        LimitMode::Capacity => Some(format!(
            "It would take {} of {} to do what {} of {} does, if throughput grew with their number \
             and nothing else limited it{}.",
            needed(next.1, ratio),
            next.0,
            best.1,
            best.0,
            chance(ratio)
        )),
    }
}

/// `7 to 9`: this number of devices times both ends of a ratio, in whole devices. As in the headline with what the host may have
/// changed; without an interval the ratio itself.
fn needed(number: u64, ratio: &Ratio) -> String {
    let (low, high) = ratio.low.zip(ratio.high).unwrap_or((ratio.value, ratio.value));
    let low = ratio.host_low.map_or(low, |host| host.min(low));
    let high = ratio.host_high.map_or(high, |host| host.max(high));
    let whole = |times: f64| (number as f64 * times).ceil();
    let (low, high) = (whole(low), whole(high));
    if low < high { format!("{low} to {high}") } else { format!("{low}") }
}

/// What to know of a number that is based on one run of each design.
fn chance(ratio: &Ratio) -> String {
    match ratio.low {
        Some(_) => String::new(),
        None => format!(" ({ONE_RUN_EACH})"),
    }
}

fn value(rung: &Rung, metric: &str) -> Option<f64> {
    rung.metrics.get(metric)?.value.filter(|value| *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::{Devices, number_of_blocks_sentence, number_sentence};
    use crate::analysis::{LimitMode, Ratio};

    fn devices(model: &str, number: u64) -> Devices {
        (model.to_string(), number)
    }

    fn within(low: f64, high: f64) -> Ratio {
        let value = f64::sqrt(low * high);
        Ratio { value, low: Some(low), high: Some(high), host_low: None, host_high: None }
    }

    fn once(value: f64) -> Ratio {
        Ratio { value, low: None, high: None, host_low: None, host_high: None }
    }

    #[test]
    fn devices_are_counted_where_their_capacity_limits() {
        let best = devices("dc1500m-960", 1);
        let says = |mode, number, ratio: Ratio| {
            let next = devices("5200eco-1920", number);
            number_sentence(mode, "SATA", (&best, &next), &ratio)
        };
        let needed = |number, ratio: Ratio| says(LimitMode::Capacity, number, ratio).unwrap();
        let text = needed(1, within(6.2, 8.4));
        assert!(text.starts_with("It would take 7 to 9 of 5200eco-1920 to do"), "{text}");
        assert!(text.ends_with(" limited it."), "{text}");
        let text = needed(3, within(2.1, 2.2));
        assert!(text.starts_with("It would take 7 of 5200eco-1920 to do what 1 of"), "{text}");
        // The host's share makes an interval wider, never narrower.
        let widened = Ratio { host_low: Some(5.8), host_high: Some(8.1), ..within(6.2, 8.4) };
        let text = needed(1, widened);
        assert!(text.starts_with("It would take 6 to 9 of"), "{text}");
        assert_eq!(says(LimitMode::Unknown, 1, within(6.2, 8.4)), None);
        let latency = says(LimitMode::Latency, 1, within(6.2, 8.4)).unwrap();
        assert!(latency.contains("the sessions of SATA wait for single requests"), "{latency}");
    }

    #[test]
    fn devices_of_a_block_load_are_counted_with_their_assumption() {
        let (best, next) = (devices("dc1500m-1920", 1), devices("5200eco-1920", 1));
        let rate = "I/Os per second";
        let text = number_of_blocks_sentence(rate, (&best, &next), &within(4.1, 5.2));
        assert_eq!(
            text,
            "For the same I/Os per second it would take 5 to 6 of 5200eco-1920 instead of 1 of \
             dc1500m-1920, if each had as many requests in flight and nothing else limited them."
        );
        let text = number_of_blocks_sentence(rate, (&best, &next), &once(4.4));
        assert!(text.contains("it would take 5 of 5200eco-1920 instead of 1 of"), "{text}");
    }

    #[test]
    fn of_one_run_each_the_ratio_itself_is_used_and_the_sentence_says_so() {
        let (best, next) = (devices("dc1500m-960", 1), devices("5200eco-1920", 1));
        let says = |ratio: Ratio| {
            let mode = LimitMode::Capacity;
            number_sentence(mode, "SATA", (&best, &next), &ratio).unwrap()
        };
        let text = says(once(6.2));
        assert!(text.starts_with("It would take 7 of 5200eco-1920 to do"), "{text}");
        assert!(text.ends_with(" (in one run each: the difference may be chance)."), "{text}");
        let text = says(Ratio { host_low: Some(5.8), host_high: Some(7.1), ..once(6.2) });
        assert!(text.starts_with("It would take 6 to 8 of 5200eco-1920 to do"), "{text}");
    }
}
