//! Two records against each other.

use tempfile::{TempDir, tempdir};
use underlay_record::Record;
use underlay_report::analysis::{Outcome, RatioMethod};
use underlay_report::{
    Colour, CompareError, CompareOptions, GateOutcome, IdentityPolicy, compare, comparison_summary,
    gate,
};

use crate::synthetic::{Job, ROWS, Scenario, SimulatedDesign, nvme, record, sata, scenario};

const STRICT: CompareOptions =
    CompareOptions { identity: IdentityPolicy::RequireEqual, designs: None };

fn small(seed: u64, designs: Vec<SimulatedDesign>) -> Scenario {
    let mut small = scenario(designs);
    (small.seed, small.measure_s, small.users, small.repeats) = (seed, 12, vec![2, 4], 3);
    small
}

fn kept(dir: &TempDir, name: &str, scenario: &Scenario) -> Record {
    record(scenario, &dir.path().join(name))
}

#[test]
fn the_same_design_twice_shows_no_difference() {
    let dir = tempdir().unwrap();
    let monday = kept(&dir, "monday", &small(1, vec![sata(), nvme()]));
    let friday = kept(&dir, "friday", &small(2, vec![sata(), nvme()]));
    let found = compare(&monday, &friday, &STRICT).unwrap();
    assert!(found.same_workload);
    assert_eq!(found.pairs.len(), 2);
    for pair in &found.pairs {
        assert!(pair.confounds.is_empty(), "{:?}", pair.confounds);
        for comparison in pair.comparisons.iter().filter(|c| c.metric == "headline") {
            assert_eq!(comparison.method, RatioMethod::Welch);
            assert!(
                matches!(comparison.outcome, Outcome::Undecided | Outcome::Equivalent),
                "{}",
                comparison.text
            );
        }
    }
    assert!(found.headlines[0].contains("SATA in friday"), "{}", found.headlines[0]);
    let text = comparison_summary(&found, 100, Colour::Never);
    assert!(text.contains("no difference shown") && text.contains("not interleaved"), "{text}");
}

/// What a gate says of two records, and the whole interval that it says it by.
fn gated(a: &Record, b: &Record) -> (GateOutcome, Option<f64>) {
    let gate = gate(&compare(a, b, &STRICT).unwrap(), 0.05);
    (gate.outcome, gate.pairs[0].high.zip(gate.pairs[0].low).map(|(high, low)| high - low))
}

#[test]
fn a_gate_includes_what_the_host_may_have_changed() {
    let dir = tempdir().unwrap();
    let on_host = |name: &str, seed, adds| {
        let mut small = small(seed, vec![nvme()]);
        (small.host_adds, small.run_noise) = (Some(adds), 0.001);
        kept(&dir, name, &small)
    };
    let (quiet, again) = (on_host("quiet", 1, 0.0), on_host("again", 2, 0.0));
    let (late, later) = (on_host("late", 1, 0.3), on_host("later", 2, 0.3));
    let (outcome, width) = gated(&quiet, &again);
    assert_eq!(outcome, GateOutcome::Passed);
    let (of_host, wider) = gated(&late, &later);
    assert_eq!(of_host, GateOutcome::Undecided);
    assert!(wider > width, "{wider:?} {width:?}");

    // At the host's ceiling the designs are not what was measured.
    let mut limited = small(1, vec![nvme()]);
    (limited.users, limited.null_twin) = (vec![12], true);
    let before = kept(&dir, "before", &limited);
    limited.seed = 2;
    let after = kept(&dir, "after", &limited);
    let found = gate(&compare(&before, &after, &STRICT).unwrap(), 0.05);
    assert_eq!(found.outcome, GateOutcome::Undecided);
    assert!(found.reasons[0].ends_with("cannot tell, this host was measured"), "{found:?}");
}

#[test]
fn a_gate_judges_each_pair_by_its_own_record_and_passes_nothing_that_is_missing() {
    let dir = tempdir().unwrap();
    let calm = |seed, designs| Scenario { run_noise: 0.001, ..small(seed, designs) };
    let before = kept(&dir, "before", &calm(1, vec![sata(), nvme()]));
    // A clear loss of one design, and a failed check of the other.
    let mut worse = calm(2, vec![sata(), nvme()]);
    worse.designs[1].demands.cpu_ns *= 3.0;
    worse.violated_run = Some(0);
    let after = kept(&dir, "after", &worse);
    let found = gate(&compare(&before, &after, &STRICT).unwrap(), 0.05);
    let outcomes: Vec<GateOutcome> = found.pairs.iter().map(|pair| pair.outcome).collect();
    assert_eq!(outcomes, [GateOutcome::Undecided, GateOutcome::Worse], "{found:?}");
    assert_eq!(found.outcome, GateOutcome::Worse);
    assert!(!found.repeats_may_decide, "{found:?}");

    // A design that is no longer there does not pass, nor does a record that is compared with itself.
    let gone = kept(&dir, "gone", &calm(2, vec![nvme()]));
    let itself = Record::open_read_only(before.path()).unwrap();
    for (other, why) in [(&gone, "no design with the name of: sata"), (&itself, "same execution")] {
        let found = gate(&compare(&before, other, &STRICT).unwrap(), 0.05);
        assert_eq!(found.pairs.last().unwrap().outcome, GateOutcome::Passed, "{found:?}");
        assert_eq!(found.outcome, GateOutcome::Undecided);
        assert!(found.reasons.last().is_some_and(|said| said.contains(why)), "{found:?}");
    }
}

#[test]
fn a_changed_setting_is_found_with_its_effect() {
    let dir = tempdir().unwrap();
    let before = kept(&dir, "before", &small(1, vec![nvme()]));
    let mut changed = nvme();
    changed.settings = vec![("wal_compression", "lz4")];
    changed.demands.cpu_ns *= 1.5;
    let after = kept(&dir, "after", &small(2, vec![changed]));
    let found = compare(&before, &after, &STRICT).unwrap();
    let top = found.pairs[0].comparisons.iter().find(|c| c.users == Some(4)).unwrap();
    assert_eq!(top.outcome, Outcome::Worse, "{}", top.text);
    let paths: Vec<&str> = found.pairs[0].confounds.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["engine.in-force.wal_compression"]);
    assert!(found.findings.iter().any(|finding| finding.code == "confounded"));
}

#[test]
fn different_workloads_are_refused_unless_allowed() {
    let dir = tempdir().unwrap();
    let mut other = small(2, vec![nvme()]);
    other.identity = "decaf";
    let a = kept(&dir, "a", &small(1, vec![nvme()]));
    let b = kept(&dir, "b", &other);
    let refused = compare(&a, &b, &STRICT).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the records have different workloads (A: tpcc, identity c0ffee; B: tpcc, identity decaf): their numbers are \
         not comparable"
    );
    assert!(matches!(refused, CompareError::DifferentWorkload { is_same_measure: true, .. }));
    let options = CompareOptions { identity: IdentityPolicy::AllowDifferent, designs: None };
    let allowed = compare(&a, &b, &options).unwrap();
    assert!(!allowed.same_workload);
    assert!(allowed.findings.iter().any(|finding| finding.code == "different-workload"));
}

#[test]
fn what_counts_different_things_has_no_ratio() {
    let dir = tempdir().unwrap();
    let job = |identity, job| Scenario { identity, job: Some(job), ..small(1, vec![nvme()]) };
    let queries = Job {
        name: "warehouse",
        counted: "queries",
        unit: "queries/h",
        period_s: 3600,
        value: 4_664.0,
        took_s: &[],
    };
    let a = kept(&dir, "a", &job("decaf", queries));
    let b = kept(&dir, "b", &job("c0ffee", ROWS));
    let refused = compare(&a, &b, &STRICT).unwrap_err();
    assert!(matches!(refused, CompareError::DifferentWorkload { is_same_measure: false, .. }));
    let options = CompareOptions { identity: IdentityPolicy::AllowDifferent, designs: None };
    let allowed = compare(&a, &b, &options).unwrap();
    assert!(allowed.pairs[0].comparisons.is_empty(), "{:?}", allowed.pairs[0].comparisons);
    assert_eq!(
        allowed.headlines,
        [
            "No ratio between NVMe in a and NVMe in b: A counts queries per hour, B counts rows per second"
        ]
    );
    let text = comparison_summary(&allowed, 100, Colour::Never);
    assert!(text.contains("No ratio between") && text.contains("(warehouse and batch)"), "{text}");
    // Half as many rows of the same job can be compared with them.
    let half = kept(&dir, "half", &job("half", Job { value: 1_438.0, ..ROWS }));
    let allowed = compare(&b, &half, &options).unwrap();
    let headline = &allowed.pairs[0].comparisons[0];
    assert!((headline.ratio.unwrap() - 0.5).abs() < 0.01, "{}", headline.text);
}

#[test]
fn a_record_beside_itself_is_noticed_and_metrics_are_named() {
    let dir = tempdir().unwrap();
    let a = kept(&dir, "a", &small(1, vec![nvme()]));
    let found = compare(&a, &a, &STRICT).unwrap();
    assert!(found.findings.iter().any(|finding| finding.code == "same-record"));
    let text = comparison_summary(&found, 100, Colour::Never);
    assert!(text.contains("New orders per minute") && text.contains("p95 of new orders"), "{text}");
    assert!(!text.contains("headline"), "{text}");
}

#[test]
fn designs_can_be_named() {
    let dir = tempdir().unwrap();
    let a = kept(&dir, "a", &small(1, vec![nvme()]));
    let b = kept(&dir, "b", &small(2, vec![sata()]));
    // The only design of each is what can be meant.
    let found = compare(&a, &b, &STRICT).unwrap();
    assert!(found.headlines[0].starts_with("SATA in b has 0."), "{}", found.headlines[0]);
    let both = kept(&dir, "both", &small(3, vec![sata(), nvme()]));
    let named = |a: &str, b: &str| CompareOptions {
        identity: IdentityPolicy::RequireEqual,
        designs: Some((a.to_string(), b.to_string())),
    };
    let found = compare(&a, &both, &named("nvme", "sata")).unwrap();
    assert_eq!(found.pairs.len(), 1);
    let unknown = compare(&a, &both, &named("nvme", "tape")).unwrap_err();
    assert_eq!(unknown.to_string(), "record B has no design `tape`; it has sata, nvme");
}
