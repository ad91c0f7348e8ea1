//! Studies that vary something besides designs and users: what was varied is what is answered.

use tempfile::tempdir;
use underlay_report::analysis::{Answer, Confidence, FindingSeverity, Outcome, Scope, Validity};
use underlay_report::{Analysis, Colour, terminal_summary};

use crate::synthetic::{
    Point, Scenario, SimulatedDesign, SimulatedVariant, nvme, record, sata, scenario,
};

fn analysis(scenario: &Scenario) -> Analysis {
    let dir = tempdir().unwrap();
    underlay_report::analyse(&record(scenario, &dir.path().join("record"))).unwrap()
}

/// A design with that much memory, in which a transaction reads so many pages from storage.
fn with_memory(
    base: SimulatedDesign,
    names: (&'static str, &'static str),
    memory_gib: u64,
    reads: u32,
) -> SimulatedDesign {
    let (design, design_title) = (base.name, base.title);
    let mut variant = SimulatedDesign { name: names.0, title: names.1, ..base };
    variant.demands.reads = reads;
    let at = Point::Memory(memory_gib);
    variant.variant = Some(SimulatedVariant { design, design_title, at });
    variant
}

/// Three sizes of memory on SATA.
fn sweep() -> Scenario {
    let mut scenario = scenario(vec![
        with_memory(sata(), ("sata.8gib", "8 GiB of memory"), 8, 4),
        with_memory(sata(), ("sata.16gib", "16 GiB of memory"), 16, 2),
        with_memory(sata(), ("sata.32gib", "32 GiB of memory"), 32, 1),
    ]);
    scenario.repeats = 5;
    scenario
}

/// Two sizes of memory on two designs.
fn grid() -> Scenario {
    scenario(vec![
        with_memory(sata(), ("sata.8gib", "SATA, 8 GiB of memory"), 8, 4),
        with_memory(sata(), ("sata.32gib", "SATA, 32 GiB of memory"), 32, 1),
        with_memory(nvme(), ("nvme.8gib", "NVMe, 8 GiB of memory"), 8, 4),
        with_memory(nvme(), ("nvme.32gib", "NVMe, 32 GiB of memory"), 32, 1),
    ])
}

#[test]
fn a_memory_sweep_names_memory_and_no_confound() {
    let found = analysis(&sweep());
    let verdict = &found.verdict;
    assert_eq!(verdict.answer, Answer::Winner, "{}", verdict.headline);
    assert!(verdict.headline.starts_with("32 GiB of memory does "), "{}", verdict.headline);
    let end = "the new orders per minute of 8 GiB of memory on SATA at 8 users (emulated)";
    assert!(verdict.headline.ends_with(end), "{}", verdict.headline);
    assert_eq!(verdict.confidence, Confidence::High, "{:?}", verdict.confidence_reasons);
    assert_eq!((verdict.winner, verdict.against), (Some(2), Some(0)));
    let memory = |path: &str| path == "design.engine.memory_limit_bytes";
    assert!(found.confounds.iter().any(|it| memory(&it.path) && it.asked), "{:?}", found.confounds);
    let not_asked: Vec<_> = found.confounds.iter().filter(|confound| !confound.asked).collect();
    assert!(not_asked.is_empty(), "{not_asked:?}");
    assert!(found.findings.iter().all(|finding| finding.code != "confounded"));
    let line = "On SATA compared with 8 GiB of memory: ";
    let along = verdict.support.iter().find(|text| text.starts_with(line));
    assert!(along.is_some_and(|text| text.contains("x [")), "{:#?}", verdict.support);
}

#[test]
fn a_point_may_reach_the_ceiling_of_the_host() {
    let mut scenario = sweep();
    // All pages fit and the log is quick: processors are what is left.
    scenario.designs[2].demands.reads = 0;
    scenario.designs.iter_mut().for_each(|design| design.demands.log_ns /= 4.0);
    scenario.null_twin = true;
    let found = analysis(&scenario);
    let top = found.validity.iter().find(|row| (row.design, row.users) == (2, 8)).unwrap();
    assert_eq!(top.outcome, Validity::HostLimited, "{}", top.text);
    let verdict = &found.verdict;
    assert_eq!(verdict.answer, Answer::Winner, "{}", verdict.headline);
    assert!(verdict.headline.starts_with("32 GiB of memory does "), "{}", verdict.headline);
    assert_eq!(verdict.confidence, Confidence::High, "{:?}", verdict.confidence_reasons);
    // It is said all the same.
    let said = verdict.support.iter().any(|text| text.contains("host-limited"));
    assert!(said, "{:#?}", verdict.support);
}

#[test]
fn points_are_compared_with_the_first_one() {
    let found = analysis(&sweep());
    let mut pairs: Vec<(usize, usize)> = found.comparisons.iter().map(|it| (it.a, it.b)).collect();
    pairs.dedup();
    assert_eq!(pairs, [(0, 1), (0, 2)]);
    let all = |it: &&underlay_report::analysis::Comparison| it.scope == Scope::Rung;
    let better = found.comparisons.iter().filter(all).filter(|it| it.users == Some(8));
    assert!(
        better.clone().all(|it| it.outcome == Outcome::Better),
        "{:?}",
        better.collect::<Vec<_>>()
    );
    assert_eq!(found.designs[1].coordinates, [1]);
    assert_eq!(
        (found.designs[1].of.as_str(), found.designs[1].of_title.as_str()),
        ("sata", "SATA")
    );
    assert_eq!(found.axes[0].points[2].label, "32GiB");
}

#[test]
fn designs_are_compared_at_each_point_and_never_across() {
    let found = analysis(&grid());
    let mut pairs: Vec<(usize, usize)> = found.comparisons.iter().map(|it| (it.a, it.b)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    // Memory on each design, designs at each size; neither (0, 3) nor (1, 2).
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 3), (2, 3)]);
    let headline = &found.verdict.headline;
    assert!(headline.starts_with("32 GiB of memory does "), "{headline}");
    assert!(headline.contains("of 8 GiB of memory on NVMe at 8 users"), "{headline}");
    let support = found.verdict.support.join("\n");
    assert!(support.contains("On SATA compared with 8 GiB of memory: "), "{support}");
    assert!(support.contains("At 8 GiB of memory: NVMe does "), "{support}");
    assert!(support.contains("At 32 GiB of memory: NVMe does "), "{support}");
    assert!(found.confounds.iter().all(|confound| confound.asked), "{:?}", found.confounds);
}

#[test]
fn what_else_differs_stays_a_confound() {
    let mut scenario = sweep();
    scenario.designs[2].settings = vec![("synchronous_commit", "local")];
    let found = analysis(&scenario);
    let confounded = found.findings.iter().find(|finding| finding.code == "confounded").unwrap();
    assert_eq!(confounded.severity, FindingSeverity::Warning);
    let text = &confounded.text;
    assert!(text.contains("(memory): engine.in-force.synchronous_commit"), "{text}");
    assert_eq!(found.verdict.confidence, Confidence::Low);
    assert!(found.verdict.headline.ends_with("; more differs than what was asked)"));
}

#[test]
fn the_terminal_shows_the_points_against_the_first() {
    let text = terminal_summary(&analysis(&sweep()), 120, Colour::Never);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(line("memory ").contains("of the first"), "{text}");
    assert!(line("8GiB ").contains("1.00x"), "{text}");
    assert!(line("32GiB ").contains("["), "{text}");
}
