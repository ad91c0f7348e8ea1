//! The causal check: what throughput follows when one resource at a time is slowed, and whether the observed verdict agrees.
//!
//! The verdict from sampling stays as it is; this stands beside it, and says what the answer may name.

use underlay_core::Resource;

use crate::analysis::{
    Agreement, Bottleneck, CausalCheck, Confidence, NotPerturbed, Reaction, Sensitivity, TimeClass,
    WhatIf,
};
use crate::observed::{CausalFacts, CausalPeriod};
use crate::statistics::{ChangeEffect, Elasticity, Period, change_effects, holm};
use crate::wording::{amount, list};

/// Below this an effect is none, however certain: throughput falls less than a tenth as much as the resource gets slower.
const NOTICEABLE: f64 = 0.1;
/// Limit of the corrected p value.
const CERTAIN: f64 = 0.05;
/// Throughput that follows one resource so much, by its interval, leaves the smaller part to what is apart from it.
const MOST: f64 = 0.5;
/// The part of a period that is looked at; before it users react to the change.
const SEEN: f64 = 0.75;
/// Two effects are nearly the same within this share of the larger one.
const NEARLY: f64 = 0.25;
/// What is asked of a faster resource: 20 %.
const FASTER: f64 = 1.0 / 1.2;

/// Judges one check beside what was observed at its rung. `one_device`: log and data lie on the same one.
pub(crate) fn judge(
    facts: &CausalFacts,
    observed: Option<&Bottleneck>,
    one_device: bool,
) -> CausalCheck {
    let factor = facts.periods.iter().map(|period| period.factor).fold(1.0, f64::max);
    let wanted = observed.and_then(|observed| observed_resources(observed, one_device));
    let resources = sensitivities(facts, factor, wanted.as_deref().unwrap_or_default());
    let (class, tied) = leading(&resources);
    let agreement = agreement((observed, wanted), class.as_deref(), &tied, &resources);
    let seconds: Vec<f64> = facts.periods.iter().map(|period| period.seconds).collect();
    let needed = needed_s(&resources, factor, seconds.iter().sum::<f64>() / SEEN);
    CausalCheck {
        design: facts.design,
        users: facts.users,
        run: facts.run,
        factor,
        period_s: crate::statistics::mean(&seconds).unwrap_or(0.0),
        sentence: sentence(agreement, (observed, needed), class.as_deref(), &tied, &resources),
        named: named(agreement, class.as_deref(), &tied, observed),
        resources,
        not_perturbed: facts
            .not_perturbed
            .iter()
            .map(|(resource, reason)| NotPerturbed {
                resource: resource.as_str().to_string(),
                reason: reason.clone(),
            })
            .collect(),
        class,
        tied,
        agreement,
    }
}

/// `wanted` = what sampling names, before the experiment: the hypothesis that the experiment tests. It is corrected for itself
/// alone, and everything that may turn out besides for all of that.
fn sensitivities(facts: &CausalFacts, factor: f64, wanted: &[Resource]) -> Vec<Sensitivity> {
    let rate = |period: &CausalPeriod| Some(period.rate);
    let p95 = |period: &CausalPeriod| Some(period.p95_ns? as f64);
    let slowed = |period: &CausalPeriod| period.factor >= 1.0;
    let (rates, latencies) = (effects(facts, slowed, rate), effects(facts, slowed, p95));
    // Periods in which something was faster come after all others, with unchanged ones around each.
    let faster = effects(facts, |period| period.factor <= 1.0, rate);
    let asks_what_if = facts.periods.iter().any(|period| period.factor < 1.0);
    let found: Vec<(usize, ChangeEffect)> =
        rates.iter().enumerate().filter_map(|(i, effect)| Some((i, (*effect)?))).collect();
    let (expected, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(i, _)| wanted.contains(&Resource::ALL[*i]));
    let mut all: Vec<Sensitivity> = [expected, others]
        .iter()
        .flat_map(|family| {
            family
                .iter()
                .zip(holm(&family.iter().map(|(_, effect)| effect.p).collect::<Vec<f64>>()))
        })
        .map(|((i, effect), p_adjusted)| {
            let of_rate = effect.of_rate(factor);
            Sensitivity {
                resource: Resource::ALL[*i].as_str().to_string(),
                periods: effect.periods,
                throughput: reaction(of_rate),
                p_adjusted,
                p95: latencies[*i].map(|effect| reaction(effect.of_latency(factor))),
                what_if: asks_what_if.then(|| what_if(of_rate, faster[*i])),
            }
        })
        .collect();
    all.sort_by(|a, b| b.throughput.value.total_cmp(&a.throughput.value));
    all
}

/// The effect of each resource on a result, over the periods that `take` selects.
fn effects(
    facts: &CausalFacts,
    take: impl Fn(&CausalPeriod) -> bool,
    result: impl Fn(&CausalPeriod) -> Option<f64>,
) -> Vec<Option<ChangeEffect>> {
    let number = |resource| Resource::ALL.iter().position(|known| *known == resource);
    let periods: Vec<Period> = facts
        .periods
        .iter()
        .filter(|period| take(period))
        // A period without any response has no p95; as a rate it counts.
        .map(|period| Period {
            changed: period.resource.and_then(number),
            value: result(period).unwrap_or(0.0),
        })
        .collect();
    change_effects(&periods, Resource::ALL.len())
}

fn reaction(elasticity: Elasticity) -> Reaction {
    Reaction { value: elasticity.value, low: elasticity.low, high: elasticity.high }
}

fn what_if(elasticity: Elasticity, faster: Option<ChangeEffect>) -> WhatIf {
    let (value, low, high) = elasticity.predicted_rate(FASTER);
    let measured =
        faster.map(|effect| Reaction { value: effect.ratio, low: effect.low, high: effect.high });
    WhatIf { predicted: Reaction { value, low, high }, measured }
}

fn is_effective(sensitivity: &Sensitivity) -> bool {
    sensitivity.p_adjusted < CERTAIN && sensitivity.throughput.value >= NOTICEABLE
}

/// Whether an effect that leaves the smaller part to everything else could be there unseen.
fn is_vague(resources: &[Sensitivity]) -> bool {
    resources.iter().any(|it| it.throughput.high > MOST)
}

/// Seconds after which a check that took `seconds` would show such an effect, if its periods vary as they did: intervals shrink
/// with the root of the time. Rounded up to 10 s.
fn needed_s(resources: &[Sensitivity], factor: f64, seconds: f64) -> f64 {
    let log_time = |elasticity: f64| (1.0 + elasticity * (factor - 1.0)).ln();
    let half_width =
        |it: &Sensitivity| (log_time(it.throughput.high) - log_time(it.throughput.low)) / 2.0;
    let widest = resources.iter().map(half_width).fold(0.0, f64::max);
    let times = (widest / log_time(MOST)).powi(2).max(2.0);
    (seconds * times / 10.0).ceil() * 10.0
}

/// The resource that throughput follows most, and those that it follows nearly as much.
fn leading(resources: &[Sensitivity]) -> (Option<String>, Vec<String>) {
    let effective: Vec<&Sensitivity> = resources.iter().filter(|it| is_effective(it)).collect();
    let Some(first) = effective.first() else { return (None, Vec::new()) };
    let near = |it: &&&Sensitivity| it.throughput.value >= (1.0 - NEARLY) * first.throughput.value;
    let mut names: Vec<String> =
        effective.iter().filter(near).map(|it| it.resource.clone()).collect();
    let network = Resource::Network.as_str();
    if names.iter().any(|name| name == network) {
        // I/O of a cluster contains its network: slowing the I/O slows that too.
        names.retain(|name| name == network || !of_storage(name));
    }
    let connections = Resource::Connections.as_str();
    if names.iter().any(|name| name == connections) {
        // Whatever a transaction takes, it keeps its connection for: slowing that slows the use of connections too. If
        // something else were exhausted, throughput would not follow them.
        names.retain(|name| name == connections);
    }
    (Some(names.remove(0)), names)
}

fn of_storage(resource: &str) -> bool {
    [Resource::Log, Resource::Read, Resource::DataWrite].iter().any(|it| it.as_str() == resource)
}

/// What was observed, as resources that can be changed; `None` = nothing single was observed.
fn observed_resources(observed: &Bottleneck, one_device: bool) -> Option<Vec<Resource>> {
    let of_holders = || {
        let holder = observed.lock_holders.first()?;
        of_time(holder.class).map(|resource| vec![resource])
    };
    match &*observed.class {
        class if is_open(class) => None,
        // On a device of its own the log waits for itself.
        "log" if !one_device => Some(vec![Resource::Log]),
        "log" | "log-behind-data" => Some(vec![Resource::Log, Resource::DataWrite]),
        "data-read" => Some(vec![Resource::Read]),
        "data-write" => Some(vec![Resource::DataWrite]),
        "cpu" | "cpu-starved" | "cpu-limit" => Some(vec![Resource::Cpu]),
        "load-generator" => Some(vec![Resource::Client]),
        "connections" => Some(vec![Resource::Connections]),
        // Who waits for a lock waits for what its holder does.
        "lock" => Some(of_holders().unwrap_or_default()),
        _ => Some(Vec::new()),
    }
}

/// Whether sampling names nothing single.
fn is_open(class: &str) -> bool {
    matches!(class, "mixed" | "inconclusive")
}

/// Whether this time has nothing else in it. Who waits for a lock waits for all that its holder does.
fn is_apart(class: &str) -> bool {
    matches!(class, "network" | "host-io")
}

fn of_time(class: TimeClass) -> Option<Resource> {
    match class {
        TimeClass::Log => Some(Resource::Log),
        TimeClass::DataRead => Some(Resource::Read),
        TimeClass::LogBehindData => Some(Resource::Log),
        TimeClass::DataWrite => Some(Resource::DataWrite),
        TimeClass::Cpu | TimeClass::RunQueue | TimeClass::CpuLimit => Some(Resource::Cpu),
        TimeClass::Driver | TimeClass::DriverLimit => Some(Resource::Client),
        _ => None,
    }
}

fn agreement(
    (observed, wanted): (Option<&Bottleneck>, Option<Vec<Resource>>),
    class: Option<&str>,
    tied: &[String],
    resources: &[Sensitivity],
) -> Agreement {
    let Some(wanted) = wanted else {
        return match class.is_none() && is_vague(resources) {
            true => Agreement::TooShort,
            false => Agreement::ByExperiment,
        };
    };
    let was_changed =
        |resource: &Resource| resources.iter().any(|it| it.resource == resource.as_str());
    if !wanted.iter().any(was_changed) {
        let leads = resources.iter().find(|it| Some(it.resource.as_str()) == class);
        let most = leads.is_some_and(|it| it.throughput.low > MOST);
        return match observed {
            Some(observed) if most && is_apart(&observed.class) => Agreement::ByExperiment,
            _ => Agreement::Observed,
        };
    }
    let named: Vec<&str> = class.into_iter().chain(tied.iter().map(String::as_str)).collect();
    let is_named = |resource: &Resource| {
        // Where it is the network, what was observed is the I/O that passes through it.
        named.contains(&resource.as_str())
            || (of_storage(resource.as_str()) && named.contains(&Resource::Network.as_str()))
    };
    // Throughput follows another resource by more than half, and more than what was observed: their intervals are apart.
    let leads = resources.iter().find(|it| Some(it.resource.as_str()) == class);
    let is_less = |resource: &Resource| {
        let found = resources.iter().find(|it| it.resource == resource.as_str());
        found.zip(leads).is_some_and(|(it, leads)| it.throughput.high < leads.throughput.low)
    };
    let outweighed = leads.is_some_and(|it| it.throughput.value > MOST)
        && observed.is_some_and(|it| it.class != "lock")
        && wanted.iter().all(is_less);
    match wanted.iter().any(is_named) {
        true => Agreement::Confirmed,
        false if outweighed => Agreement::ByExperiment,
        false if class.is_none() && is_vague(resources) => Agreement::TooShort,
        false => Agreement::NotConfirmed,
    }
}

/// What may be named as the bottleneck. A name from sampling that no experiment tested is as good as its confidence.
fn named(
    agreement: Agreement,
    class: Option<&str>,
    tied: &[String],
    observed: Option<&Bottleneck>,
) -> Vec<String> {
    match agreement {
        Agreement::Confirmed | Agreement::ByExperiment => {
            class.map(str::to_string).into_iter().chain(tied.iter().cloned()).collect()
        }
        Agreement::Observed => observed
            .filter(|it| matches!(it.confidence, Confidence::Medium | Confidence::High))
            .map(|it| it.class.clone())
            .into_iter()
            .collect(),
        Agreement::NotConfirmed | Agreement::TooShort => Vec::new(),
    }
}

/// What a check that confirms adds to what sampling says: how much throughput follows it, or what is behind it. The I/O that
/// sessions of a cluster wait for may be its network, the log that they wait for the data writes of its device.
pub(crate) fn confirmation(check: &CausalCheck, observed: &Bottleneck) -> String {
    let of_observed = observed_resources(observed, false).unwrap_or_default();
    if of_observed.iter().any(|it| check.named.iter().any(|name| name == it.as_str())) {
        return check.sentence.clone();
    }
    let behind: Vec<String> = check.named.iter().map(|name| title(name).to_string()).collect();
    let (_, effect) = check.sentence.split_once(": ").unwrap_or_default();
    format!("by experiment it is {}: {effect}", list(&behind))
}

fn sentence(
    agreement: Agreement,
    (observed, needed_s): (Option<&Bottleneck>, f64),
    class: Option<&str>,
    tied: &[String],
    resources: &[Sensitivity],
) -> String {
    let effect = |name: &str| {
        let found = resources.iter().find(|it| it.resource == name).map(|it| it.throughput);
        found.map_or_else(String::new, |Reaction { value, low, high }| {
            format!(
                "throughput falls {} % [{}, {}] per 1 % slower {}",
                amount(value),
                amount(low),
                amount(high),
                title(name)
            )
        })
    };
    let also: Vec<String> = tied.iter().map(|name| effect(name)).collect();
    let found = match class {
        Some(class) => list(&[vec![effect(class)], also].concat()),
        None if is_vague(resources) => format!(
            "the check was too short to tell what throughput follows; a `causal-check` of about {needed_s} s could"
        ),
        None => "no resource that was slowed changes throughput noticeably".to_string(),
    };
    let seen = observed.map_or("", |it| &it.class).replace('-', " ");
    match agreement {
        Agreement::Confirmed => format!("confirmed by experiment: {found}"),
        Agreement::NotConfirmed => {
            format!("observed, not confirmed: sampling names {seen}, but {found}")
        }
        Agreement::TooShort => match observed.filter(|it| !is_open(&it.class)) {
            Some(_) => format!("observed: sampling names {seen}; {found}"),
            None => found,
        },
        Agreement::Observed => format!("observed only: {seen} cannot be slowed here; {found}"),
        Agreement::ByExperiment if observed.is_some_and(|it| is_apart(&it.class)) => {
            format!(
                "by experiment: {found}; {seen}, which sampling names and which cannot be slowed here, is the smaller part"
            )
        }
        Agreement::ByExperiment if observed.is_some_and(|it| !is_open(&it.class)) => {
            format!("by experiment: {found}; {seen}, which sampling names, is the smaller part")
        }
        Agreement::ByExperiment => format!("by experiment: {found}"),
    }
}

/// A resource for readers.
pub(crate) fn title(resource: &str) -> &'static str {
    match Resource::from_word(resource) {
        Some(Resource::Log) => "log",
        Some(Resource::Read) => "data reads",
        Some(Resource::DataWrite) => "data writes",
        Some(Resource::Network) => "cluster network",
        Some(Resource::Cpu) => "server CPU",
        Some(Resource::Client) => "load generator CPU",
        Some(Resource::Connections) => "use of shared connections",
        None => "resource",
    }
}

#[cfg(test)]
mod tests {
    use super::{confirmation, judge as judge_all};
    use crate::analysis::{
        Agreement, Bottleneck, BudgetPart, CausalCheck, Confidence, LimitMode, Reaction, TimeClass,
    };
    use crate::observed::{CausalFacts, CausalPeriod};
    use crate::synthetic_series::{normal, stream};
    use underlay_core::Resource;

    /// Log and data have devices of their own.
    fn judge(facts: &CausalFacts, observed: Option<&Bottleneck>) -> CausalCheck {
        judge_all(facts, observed, false)
    }

    const ALL: [Resource; 5] =
        [Resource::Log, Resource::Read, Resource::DataWrite, Resource::Cpu, Resource::Client];

    fn observed(class: &str, holder: Option<TimeClass>) -> Bottleneck {
        let part =
            |class| BudgetPart { class, sessions: 1.0, share: 0.7, per_transaction_ns: None };
        Bottleneck {
            design: 0,
            users: 8,
            class: class.to_string(),
            sentence: String::new(),
            mode: LimitMode::Unknown,
            confidence: Confidence::Medium,
            budget: Vec::new(),
            closure: None,
            lock_holders: holder.map(part).into_iter().collect(),
            ruled_out: Vec::new(),
            gates: Vec::new(),
        }
    }

    /// Three blocks of periods in which each resource is slowed twice, or made 20 % faster, of a closed loop whose time consists of
    /// these shares.
    fn facts(shares: &[(Resource, f64)], what_if: bool) -> CausalFacts {
        let mut random = stream("causal-verdict", 1);
        let mut periods = Vec::new();
        for factor in if what_if { vec![2.0, 1.0 / 1.2] } else { vec![2.0] } {
            let mut add = |change: Option<(Resource, f64)>| {
                let share = change.and_then(|(resource, _)| {
                    Some(shares.iter().find(|(known, _)| *known == resource)?.1)
                });
                let time = 1.0 + share.unwrap_or(0.0) * (change.map_or(1.0, |(_, f)| f) - 1.0);
                let noise = (0.01 * normal(&mut random)).exp();
                periods.push(CausalPeriod {
                    resource: change.map(|(resource, _)| resource),
                    factor: change.map_or(1.0, |(_, factor)| factor),
                    seconds: 0.75,
                    rate: 1000.0 / time * noise,
                    p95_ns: Some((8e6 * time) as u64),
                });
            };
            for _ in 0..3 {
                for (resource, _) in shares {
                    add(None);
                    add(Some((*resource, factor)));
                }
            }
            add(None);
        }
        let not_perturbed = vec![(Resource::Network, "there is none".to_string())];
        CausalFacts { run: 0, design: 0, users: 8, periods, not_perturbed }
    }

    fn with(leading: &[(Resource, f64)]) -> Vec<(Resource, f64)> {
        let share = |resource| {
            leading.iter().find(|(known, _)| *known == resource).map_or(0.02, |(_, share)| *share)
        };
        ALL.map(|resource| (resource, share(resource))).to_vec()
    }

    #[test]
    fn the_largest_elasticity_confirms_or_contradicts_what_was_observed() {
        let log = facts(&with(&[(Resource::Log, 0.7)]), false);
        let cases = [
            ("log", None, Agreement::Confirmed),
            // Nearly nothing follows these, and most of it the log.
            ("data-read", None, Agreement::ByExperiment),
            ("cpu", None, Agreement::ByExperiment),
            ("lock", Some(TimeClass::Log), Agreement::Confirmed),
            ("lock", Some(TimeClass::DataRead), Agreement::NotConfirmed),
            ("lock", None, Agreement::Observed),
            ("latch", None, Agreement::Observed),
            ("network", None, Agreement::ByExperiment),
            ("host-io", None, Agreement::ByExperiment),
            ("inconclusive", None, Agreement::ByExperiment),
            ("mixed", None, Agreement::ByExperiment),
        ];
        for (class, holder, expected) in cases {
            let found = judge(&log, Some(&observed(class, holder)));
            assert_eq!(
                (found.agreement, found.class.as_deref()),
                (expected, Some("log")),
                "{class}"
            );
            assert!(found.tied.is_empty(), "{found:?}");
        }
        let found = judge(&log, Some(&observed("data-read", None)));
        let smaller = "; data read, which sampling names, is the smaller part";
        assert!(found.sentence.starts_with("by experiment: ") && found.sentence.ends_with(smaller));
        // Half of the time leaves room for it.
        let half = facts(&with(&[(Resource::Log, 0.45)]), false);
        let found = judge(&half, Some(&observed("data-read", None)));
        assert_eq!(found.agreement, Agreement::NotConfirmed, "{}", found.sentence);
        // Where the intervals touch, the smaller one may be the larger.
        let mut near = facts(&with(&[(Resource::Log, 0.6), (Resource::Read, 0.4)]), false);
        let mut random = stream("near-verdict", 1);
        near.periods.iter_mut().for_each(|it| it.rate *= (0.1 * normal(&mut random)).exp());
        let found = judge(&near, Some(&observed("data-read", None)));
        assert!(
            found.sentence.starts_with("observed, not confirmed: sampling names data read"),
            "{}",
            found.sentence
        );
        assert_eq!(found.not_perturbed[0].resource, "network");

        // Less than half of the time leaves room for it.
        let third = facts(&with(&[(Resource::Log, 0.3)]), false);
        let found = judge(&third, Some(&observed("network", None)));
        assert_eq!(found.agreement, Agreement::Observed, "{}", found.sentence);
    }

    #[test]
    fn nearly_equal_elasticities_are_tied() {
        let both = facts(&with(&[(Resource::Log, 0.4), (Resource::Read, 0.36)]), false);
        let found = judge(&both, Some(&observed("data-read", None)));
        assert_eq!(found.agreement, Agreement::Confirmed, "{}", found.sentence);
        assert_eq!(
            (found.class.as_deref(), &*found.tied),
            (Some("log"), &["data-read".to_string()][..])
        );
        let apart = facts(&with(&[(Resource::Log, 0.4), (Resource::Read, 0.2)]), false);
        assert_eq!(judge(&apart, None).tied, Vec::<String>::new());
    }

    #[test]
    fn the_network_of_a_cluster_is_named_before_the_io_that_passes_through_it() {
        let shares = [(Resource::Log, 0.7), (Resource::Read, 0.02), (Resource::Network, 0.6)];
        let found = judge(&facts(&shares, false), Some(&observed("log", None)));
        assert_eq!(
            (found.class.as_deref(), found.agreement),
            (Some("network"), Agreement::Confirmed)
        );
    }

    #[test]
    fn a_log_that_waits_behind_the_data_of_its_device_is_confirmed_by_the_data() {
        let data = facts(&with(&[(Resource::DataWrite, 0.8)]), false);
        let (seen, class) = (observed("log", None), Some("data-write"));
        let apart = judge_all(&data, Some(&seen), false);
        assert_eq!((apart.agreement, apart.class.as_deref()), (Agreement::ByExperiment, class));
        let together = judge_all(&data, Some(&seen), true);
        assert_eq!((together.agreement, together.class.as_deref()), (Agreement::Confirmed, class));
        let behind = confirmation(&together, &seen);
        let expected = "by experiment it is data writes: throughput falls 0.";
        assert!(behind.starts_with(expected), "{behind}");
        let itself = confirmation(&together, &observed("data-write", None));
        assert!(itself.starts_with("confirmed by experiment: throughput falls 0."), "{itself}");
    }

    #[test]
    fn shared_connections_are_named_before_what_happens_on_them() {
        let shares = [(Resource::Log, 0.7), (Resource::Cpu, 0.25), (Resource::Connections, 0.95)];
        let found = judge(&facts(&shares, false), Some(&observed("connections", None)));
        assert_eq!(
            (found.class.as_deref(), found.agreement),
            (Some("connections"), Agreement::Confirmed)
        );
        assert!(found.tied.is_empty(), "{found:?}");
        // Connections that users queue for while something else is exhausted.
        let shares = [(Resource::Cpu, 0.95), (Resource::Connections, 0.02), (Resource::Log, 0.02)];
        let found = judge(&facts(&shares, false), Some(&observed("connections", None)));
        assert_eq!(
            (found.class.as_deref(), found.agreement),
            (Some("cpu"), Agreement::ByExperiment)
        );
    }

    #[test]
    fn what_sampling_names_is_the_hypothesis_that_is_tested() {
        let few = |seed| {
            let mut facts = facts(&with(&[(Resource::Log, 0.5)]), false);
            let mut random = stream("few-periods", seed);
            facts.periods.iter_mut().for_each(|it| it.rate *= (0.15 * normal(&mut random)).exp());
            facts
        };
        let p_of = |found: &CausalCheck, name: &str| {
            found.resources.iter().find(|it| it.resource == name).expect("it was slowed").p_adjusted
        };
        let mut only_expected = 0;
        for seed in 0..20 {
            let facts = few(seed);
            let asked = judge(&facts, Some(&observed("log", None)));
            let explored = judge(&facts, None);
            let (expected, found) = (p_of(&asked, "log"), p_of(&explored, "log"));
            assert!(expected <= found, "{expected} {found}");
            only_expected += u32::from(asked.class.is_some() && explored.class.is_none());
        }
        assert!(only_expected > 0, "of 20 vague experiments none confirms what was expected");
    }

    #[test]
    fn what_cannot_be_told_is_not_called_nothing() {
        let mut facts = facts(&with(&[(Resource::Log, 0.5)]), false);
        let mut random = stream("vague-periods", 1);
        facts.periods.iter_mut().for_each(|it| it.rate *= (0.5 * normal(&mut random)).exp());
        let seconds: f64 = facts.periods.iter().map(|it| it.seconds).sum();
        for class in ["data-read", "inconclusive"] {
            let found = judge(&facts, Some(&observed(class, None)));
            assert_eq!((found.class, found.agreement), (None, Agreement::TooShort), "{class}");
            let (_, needed) = found.sentence.split_once("of about ").expect(&found.sentence);
            let needed: f64 = needed.split(' ').next().unwrap().parse().expect(&found.sentence);
            assert!(needed > 2.0 * seconds && needed % 10.0 == 0.0, "{}", found.sentence);
        }
    }

    #[test]
    fn what_follows_nothing_confirms_nothing() {
        let idle = facts(&with(&[]), false);
        let found = judge(&idle, Some(&observed("log", None)));
        assert_eq!((found.class, found.agreement), (None, Agreement::NotConfirmed));
        assert!(found.sentence.contains("no resource"), "{}", found.sentence);
    }

    #[test]
    fn predictions_stand_beside_what_was_measured() {
        let found = judge(&facts(&with(&[(Resource::Log, 0.6)]), true), None);
        let log = found.resources[0].clone();
        let what_if = log.what_if.expect("it was asked for");
        // 1 / (0.4 + 0.6 / 1.2)
        assert!((what_if.predicted.value - 1.111).abs() < 0.03, "{what_if:?}");
        let measured = what_if.measured.expect("it was made faster");
        assert!((measured.value - 1.111).abs() < 0.03, "{what_if:?}");
        assert!((log.throughput.value - 0.6).abs() < 0.1, "{:?}", log.throughput);
        assert!((log.p95.expect("there are response times").value - 0.6).abs() < 0.1);
        assert!(judge(&facts(&with(&[]), false), None).resources[0].what_if.is_none());
    }

    /// What the log does when it is 20 % faster: as predicted, and as measured.
    fn faster_log(facts: &CausalFacts) -> (Reaction, Reaction) {
        let found = judge(facts, None);
        let log = found.resources.iter().find(|it| it.resource == "log").expect("it was changed");
        let what_if = log.what_if.expect("it was asked for");
        (what_if.predicted, what_if.measured.expect("it was made faster"))
    }

    #[test]
    fn predicted_and_measured_gains_are_those_of_the_share_of_time() {
        for share in [0.3, 0.6, 0.9] {
            let (predicted, measured) = faster_log(&facts(&with(&[(Resource::Log, share)]), true));
            let expected = 1.0 / (1.0 - share / 6.0);
            let found = format!("{share}: {predicted:?} {measured:?}, not {expected}");
            // Four standard deviations of three periods with 1 % of noise; an error of the elasticity counts for a sixth.
            assert!((predicted.value - expected).abs() < 0.015, "{found}");
            assert!((measured.value - expected).abs() < 0.03, "{found}");
            assert!(predicted.low > 1.0 && measured.low > 1.0, "{found}");
            let overlap = predicted.low <= measured.high && measured.low <= predicted.high;
            assert!(overlap, "{found}");
        }
    }

    #[test]
    fn a_gain_that_is_not_there_contradicts_its_prediction() {
        let mut facts = facts(&with(&[(Resource::Log, 0.6)]), true);
        for period in &mut facts.periods {
            if period.resource == Some(Resource::Log) && period.factor < 1.0 {
                // As if the log had stayed as it was.
                period.rate *= 0.9;
            }
        }
        let (predicted, measured) = faster_log(&facts);
        assert!((measured.value - 1.0).abs() < 0.03, "{measured:?}");
        assert!(measured.high < predicted.low, "{predicted:?} {measured:?}");
    }
}
