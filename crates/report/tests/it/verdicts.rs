//! Verdicts on induced bottlenecks: the right class where the cause dominates, and never a confident wrong one.

use underlay_report::analysis::{Bottleneck, Confidence};

use crate::answers::analysis;
use crate::simulation::Demands;
use crate::synthetic::{Scenario, SimulatedDesign, nvme, scenario};

/// Users of the only rung.
const USERS: u32 = 8;
const SEEDS: u64 = 5;

fn design(change: impl FnOnce(&mut Demands)) -> SimulatedDesign {
    let mut design = nvme();
    // Nothing dominates: 4 x 0.1 ms of reads, 0.3 ms of log, 0.4 ms of processor, and a little of the driver.
    design.demands = Demands {
        cpu_ns: 400_000.0,
        reads: 4,
        read_ns: 100_000.0,
        log_ns: 150_000.0,
        driver_ns: 40_000.0,
        think_ns: 0.0,
        processors: 4,
    };
    change(&mut design.demands);
    design
}

fn verdict(seed: u64, design: SimulatedDesign, change: impl FnOnce(&mut Scenario)) -> Bottleneck {
    let mut alone = scenario(vec![design]);
    (alone.seed, alone.users, alone.repeats, alone.measure_s) = (seed, vec![USERS], 2, 30);
    // The host has what the server may use, and what the driver needs.
    alone.host_cores = 6.0;
    change(&mut alone);
    analysis(&alone).bottlenecks.remove(0)
}

/// All verdicts of a case are `expected`; mistakes are printed with their gates.
fn check(expected: &str, design: &SimulatedDesign, change: impl Fn(&mut Scenario)) {
    for seed in 0..SEEDS {
        let found = verdict(seed, design.clone(), &change);
        assert_eq!(found.class, expected, "{}\n{:#?}", found.sentence, found.gates);
        assert!(!found.ruled_out.iter().any(|out| out.class == expected));
    }
}

#[test]
fn slow_reads() {
    check("data-read", &design(|demands| demands.read_ns = 2e6), |_| {});
}

#[test]
fn a_slow_log() {
    check("log", &design(|demands| demands.log_ns = 5e6), |_| {});
}

#[test]
fn scarce_processors() {
    let scarce = design(|demands| {
        demands.cpu_ns = 3e6;
        demands.processors = 2;
    });
    check("cpu", &scarce, |scenario| scenario.host_cores = 2.2);
}

#[test]
fn thinking_users() {
    // The simulation's think time is what the plan says: 0.02 x the standard's mean of 22.3 s.
    let thinking = design(|demands| demands.think_ns = 0.02 * 22.29e9);
    check("offered-load", &thinking, |scenario| scenario.key_think = 0.02);
}

#[test]
fn a_saturated_generator() {
    check("load-generator", &design(|_| {}), |scenario| scenario.driver_busy = 0.95);
}

#[test]
fn a_balanced_load_is_called_mixed() {
    check("mixed", &design(|demands| demands.read_ns = 150_000.0), |_| {});
}

#[test]
fn a_growing_dose_flips_the_verdict_once() {
    let classes: Vec<String> = [0.25, 1.0, 4.0, 16.0]
        .into_iter()
        .map(|dose| verdict(1, design(|demands| demands.read_ns *= dose), |_| {}).class)
        .collect();
    let flips = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(flips <= 2, "{classes:?}: once to mixed, once to the cause");
    assert_eq!(classes.last().map(String::as_str), Some("data-read"), "{classes:?}");
    assert_ne!(classes[0], "data-read");
}

#[test]
fn no_confident_verdict_is_wrong() {
    // Causes of all strengths; whatever is said with confidence must be the largest true cause.
    let mut confident = 0;
    for (seed, (reads, log)) in
        [(1.0, 1.0), (4.0, 1.0), (1.0, 8.0), (6.0, 12.0), (20.0, 2.0)].into_iter().enumerate()
    {
        let strong = design(|demands| {
            demands.read_ns *= reads;
            demands.log_ns *= log;
        });
        let found = verdict(seed as u64, strong, |_| {});
        if found.confidence >= Confidence::Medium && found.class != "mixed" {
            confident += 1;
            let largest = found.budget.first().unwrap();
            let word = serde_json::to_value(largest.class).unwrap();
            assert_eq!(
                word,
                found.class.as_str(),
                "reads x{reads}, log x{log}: {}",
                found.sentence
            );
            assert!(largest.share >= 0.5, "{}", found.sentence);
        }
    }
    // A single cause of several times the rest is named.
    assert!(confident >= 2, "only {confident} of 5 are named");
}
