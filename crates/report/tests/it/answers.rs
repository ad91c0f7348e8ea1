//! The right answer, from the headline to the verdicts, on executions whose truth is known.

use tempfile::tempdir;
use underlay_report::Analysis;
use underlay_report::analysis::Answer;

use crate::synthetic::{Scenario, nvme, record, sata, scenario};

pub fn analysis(scenario: &Scenario) -> Analysis {
    let dir = tempdir().unwrap();
    underlay_report::analyse(&record(scenario, &dir.path().join("record"))).unwrap()
}

#[test]
fn the_faster_design_wins() {
    let found = analysis(&scenario(vec![sata(), nvme()]));
    assert_eq!(found.verdict.answer, Answer::Winner, "{}", found.verdict.headline);
    println!("{}\n{:#?}", found.verdict.headline, found.verdict.support);
    for f in &found.findings {
        println!("{:?} {} {}", f.severity, f.code, f.text);
    }
    for b in &found.bottlenecks {
        println!(
            "{} {} {} {:?} {:#?}",
            b.design,
            b.users,
            b.sentence,
            b.confidence,
            b.gates
                .iter()
                .map(|g| format!("{} {:?} {}", g.id, g.state, g.text))
                .collect::<Vec<_>>()
        );
    }
}
