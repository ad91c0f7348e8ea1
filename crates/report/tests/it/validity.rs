//! Whether designs or this host were measured, on executions in which the host's part is known.

use tempfile::tempdir;
use underlay_report::Analysis;
use underlay_report::analysis::{
    Answer, Comparison, Confidence, Outcome, RungValidity, Scope, Validity,
};

use crate::synthetic::{Scenario, null, nvme, record, sata, scenario};

fn analysis(scenario: &Scenario) -> Analysis {
    let dir = tempdir().unwrap();
    underlay_report::analyse(&record(scenario, &dir.path().join("record"))).unwrap()
}

/// Four users on four processors: storage is what they wait for.
fn quick(mut scenario: Scenario) -> Scenario {
    scenario.measure_s = 12;
    scenario.users = vec![1, 4];
    scenario.repeats = 3;
    scenario
}

/// Twelve users on four processors, which NVMe keeps busy.
fn crowded(mut scenario: Scenario) -> Scenario {
    scenario.users = vec![1, 12];
    scenario
}

fn row(analysis: &Analysis, design: usize, users: u32) -> &RungValidity {
    let mut rows = analysis.validity.iter();
    rows.find(|row| (row.design, row.users) == (design, users)).expect("the rung was measured")
}

fn top(analysis: &Analysis) -> &Comparison {
    let is_top = |c: &&Comparison| c.metric == "headline" && c.scope == Scope::Rung;
    analysis.comparisons.iter().filter(is_top).max_by_key(|c| c.users).unwrap()
}

/// Whether the interval with the host's share contains the one by chance.
fn contains(c: &Comparison) -> bool {
    c.host_low.unwrap() <= c.low.unwrap() && c.host_high.unwrap() >= c.high.unwrap()
}

#[test]
fn a_host_that_adds_next_to_nothing_leaves_designs_valid() {
    let found = analysis(&quick(scenario(vec![sata(), nvme()])));
    assert_eq!(found.validity.len(), found.rungs.len());
    assert!(found.validity.iter().all(|row| row.outcome == Validity::Valid));
    assert_eq!(found.verdict.answer, Answer::Winner);
    assert_eq!(found.verdict.validity, Some(Validity::Valid));
    assert!(!found.verdict.headline.contains("host"), "{}", found.verdict.headline);
    assert!(found.comparisons.iter().all(contains));
    let read = row(&found, 1, 4).excess.iter().find(|class| class.class == "read").unwrap();
    let mean = read.actual_mean_ns.unwrap() / read.modelled_mean_ns.unwrap();
    assert!((mean - 1.01).abs() < 1e-6, "{read:?}");
    // Four reads of 480 us, a hundredth of which is the host's.
    let excess_ns = read.excess_per_transaction_ns.unwrap();
    assert!((15_000.0..25_000.0).contains(&excess_ns), "{excess_ns}");
}

#[test]
fn a_conclusion_that_holds_with_the_hosts_share_is_bounded_and_says_the_interval() {
    let mut slow = quick(scenario(vec![sata(), nvme()]));
    slow.host_adds = Some(0.2);
    let found = analysis(&slow);
    let (answer, headline) = (found.verdict.answer, &found.verdict.headline);
    assert_eq!(answer, Answer::Winner, "{headline}");
    assert_eq!(found.verdict.validity, Some(Validity::Bounded));
    assert!(headline.starts_with("NVMe does "), "{headline}");
    assert!(headline.contains("] by chance, ["), "{headline}");
    assert!(headline.contains("] with the host's share the new orders"), "{headline}");
    let top = top(&found);
    assert!(contains(top) && top.host_high > top.high, "{top:?}");
    assert!(found.findings.iter().any(|finding| finding.code == "bounded"));
    let p95 = found.verdict.support.iter().find(|text| text.starts_with("p95")).unwrap();
    assert!(p95.contains("with the host's share) on NVMe"), "{p95}");
}

#[test]
fn a_difference_that_the_host_may_explain_is_no_answer() {
    let mut nearly = nvme();
    (nearly.name, nearly.title) = ("other", "Other");
    nearly.demands.read_ns *= 1.15;
    let mut slow = quick(scenario(vec![nearly, nvme()]));
    slow.host_adds = Some(0.5);
    slow.run_noise = 0.002;
    let found = analysis(&slow);
    let headline = &found.verdict.headline;
    assert_eq!(found.verdict.answer, Answer::HostLimited, "{headline}");
    assert_eq!(found.verdict.winner, None);
    assert!(
        headline.starts_with("The host's share may explain the difference between NVMe and Other"),
        "{headline}"
    );
}

#[test]
fn records_without_excess_say_that_validity_is_unknown() {
    let mut old = quick(scenario(vec![sata(), nvme()]));
    old.host_adds = None;
    let found = analysis(&old);
    assert!(found.validity.iter().all(|row| row.outcome == Validity::Unknown));
    assert_eq!(found.verdict.validity, Some(Validity::Unknown));
    let headline = &found.verdict.headline;
    assert!(headline.ends_with("(emulated; validity unknown)"), "{headline}");
    let said: Vec<_> = found.findings.iter().filter(|f| f.code == "validity-unknown").collect();
    assert_eq!(said.len(), 1, "said once for all rungs");
    assert!(said[0].text.contains("lateness p99 of 400 us"), "{}", said[0].text);
    assert!(found.verdict.confidence <= Confidence::Low);
    assert_eq!((top(&found).host_low, top(&found).host_high), (None, None));
}

#[test]
fn a_design_near_its_null_twin_never_gets_the_credit() {
    let mut scenario = crowded(quick(scenario(vec![sata(), nvme()])));
    scenario.null_twin = true;
    let found = analysis(&scenario);
    let limited = row(&found, 1, 12);
    assert_eq!(limited.outcome, Validity::HostLimited, "{}", limited.text);
    let ceiling = limited.ceiling.as_ref().unwrap();
    assert_eq!(ceiling.source, "null-twin");
    assert!(ceiling.reached.unwrap() > 0.8 && ceiling.reached.unwrap() < 1.1, "{ceiling:?}");
    assert!(limited.text.ends_with("not distinguishable from this host"), "{}", limited.text);
    // The twin is of the highest rung, and no measurement of the design.
    assert!(row(&found, 1, 1).ceiling.is_none());
    assert_eq!(found.windows.len(), 2 * 2 * 3);
    assert_eq!(row(&found, 0, 12).outcome, Validity::Valid, "{}", row(&found, 0, 12).text);

    let verdict = &found.verdict;
    assert_eq!(verdict.answer, Answer::HostLimited);
    assert_eq!(verdict.validity, Some(Validity::HostLimited));
    assert!(!verdict.headline.contains("NVMe"), "{}", verdict.headline);
    assert!(verdict.headline.starts_with("This host does "), "{}", verdict.headline);
    assert!(verdict.headline.contains("new orders per minute of SATA"), "{}", verdict.headline);
    assert_eq!(verdict.winner, None);
    assert!(found.findings.iter().any(|finding| finding.code == "host-limited"));
}

#[test]
fn what_its_own_cpu_limit_allows_is_no_ceiling_of_the_host() {
    let mut scenario = crowded(quick(scenario(vec![sata(), nvme()])));
    scenario.null_twin = true;
    scenario.stopped = Some(0.7);
    let found = analysis(&scenario);
    let stopped = row(&found, 1, 12);
    assert_eq!(stopped.outcome, Validity::Valid, "{}", stopped.text);
    assert!(stopped.text.ends_with("its server's CPU limit allows without a device"));
    assert!(found.verdict.headline.starts_with("NVMe does "), "{}", found.verdict.headline);
    // One that has something left is not limited by it.
    scenario.stopped = Some(0.2);
    let found = analysis(&scenario);
    assert_eq!(row(&found, 1, 12).outcome, Validity::HostLimited);
}

#[test]
fn a_design_without_a_device_is_the_ceiling_and_not_a_contestant() {
    let found = analysis(&quick(scenario(vec![null(), sata(), nvme()])));
    let verdict = &found.verdict;
    assert_eq!((verdict.winner, verdict.against), (Some(2), Some(1)), "{}", verdict.headline);
    let none = row(&found, 0, 4);
    assert!(none.no_device && none.outcome == Validity::HostLimited, "{}", none.text);
    let ceiling = row(&found, 2, 4).ceiling.clone().unwrap();
    assert_eq!(ceiling.source, "design");
    assert!(ceiling.reached.unwrap() < 0.8, "{ceiling:?}");
    let said = verdict.support.iter().find(|text| text.contains("has no device")).unwrap();
    assert!(said.starts_with("No delay has no device: its 2."), "{said}");
    assert!(verdict.support.iter().all(|text| !text.starts_with("NVMe compared")), "{said}");
}

#[test]
fn a_design_that_only_a_design_without_a_device_unmasks() {
    let found = analysis(&crowded(quick(scenario(vec![null(), sata(), nvme()]))));
    assert_eq!(found.verdict.answer, Answer::HostLimited, "{}", found.verdict.headline);
    assert!(!found.verdict.headline.contains("NVMe"), "{}", found.verdict.headline);
    assert!(!found.verdict.headline.contains("No delay"), "{}", found.verdict.headline);
}

/// Two designs of equal devices, of which the host adds so much to I/O, as a share of its time.
fn equal(host_adds: f64) -> Analysis {
    let mut other = nvme();
    (other.name, other.title) = ("other", "Other");
    let mut same = quick(scenario(vec![other, nvme()]));
    (same.host_adds, same.run_noise) = (Some(host_adds), 0.002);
    (same.repeats, same.measure_s) = (5, 30);
    analysis(&same)
}

#[test]
fn designs_are_the_same_only_if_the_host_cannot_hide_a_difference() {
    let found = equal(0.01);
    let headline = &found.verdict.headline;
    assert_eq!(found.verdict.answer, Answer::Equivalent, "{headline}");
    assert_eq!(top(&found).outcome, Outcome::Equivalent);
    assert!(found.comparisons.iter().all(contains));

    let found = equal(0.3);
    let (headline, top) = (&found.verdict.headline, top(&found));
    assert!(row(&found, 0, 4).outcome == Validity::Bounded, "{}", row(&found, 0, 4).text);
    assert!(top.p_equivalence.unwrap() < 0.05, "by chance alone they are the same: {top:?}");
    assert_eq!(top.outcome, Outcome::Undecided, "{top:?}");
    assert!(top.text.contains(": not shown to be the same within 5 %; ["), "{}", top.text);
    assert!(top.text.ends_with("] with the host's share"), "{}", top.text);
    assert_eq!(found.verdict.answer, Answer::NoDifferenceShown, "{headline}");
    assert!(headline.starts_with("No difference shown between"), "{headline}");
    assert!(headline.contains("] with the host's share"), "{headline}");
    let reasons = &found.verdict.confidence_reasons;
    assert!(reasons.iter().all(|reason| !reason.contains("repeats would")), "{reasons:?}");
}

#[test]
fn one_design_alone_that_is_the_host_is_not_named() {
    let mut alone = crowded(quick(scenario(vec![nvme()])));
    alone.null_twin = true;
    // Its best rung is the one with the twin.
    alone.users = vec![12];
    let found = analysis(&alone);
    let headline = &found.verdict.headline;
    assert_eq!(found.verdict.answer, Answer::SingleDesign);
    assert_eq!(found.verdict.validity, Some(Validity::HostLimited));
    assert!(headline.starts_with("This host, not a device, does "), "{headline}");
    assert!(!headline.contains("NVMe"), "{headline}");

    alone.designs = vec![sata()];
    let found = analysis(&alone);
    assert!(found.verdict.headline.starts_with("SATA does "), "{}", found.verdict.headline);
}
