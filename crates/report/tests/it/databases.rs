//! Several databases under test at once: each has its results, and the total counts each of them once.

use tempfile::tempdir;
use underlay_report::analysis::Rung;
use underlay_report::{Analysis, Colour, terminal_summary};

use crate::synthetic::{Scenario, nvme, record, sata, scenario};

fn analysis(scenario: &Scenario) -> Analysis {
    let dir = tempdir().unwrap();
    underlay_report::analyse(&record(scenario, &dir.path().join("record"))).unwrap()
}

fn headline(rung: &Rung) -> f64 {
    rung.metrics["headline"].value.expect("a rate")
}

#[test]
fn each_database_has_its_rungs_and_the_total_has_all_of_them_once() {
    let one = analysis(&scenario(vec![nvme(), sata()]));
    assert!(one.databases.is_empty());
    let mut of_three = scenario(vec![nvme(), sata()]);
    of_three.databases = vec!["oltp-1", "oltp-2", "other"];
    let three = analysis(&of_three);
    let names: Vec<&str> = three.databases.iter().map(|database| &*database.name).collect();
    assert_eq!(names, of_three.databases);
    for (position, total) in three.rungs.iter().enumerate() {
        let of_one = headline(&one.rungs[position]);
        let parts: Vec<f64> =
            three.databases.iter().map(|database| headline(&database.rungs[position])).collect();
        assert!(parts.iter().all(|part| (part / of_one - 1.0).abs() < 1e-9), "{parts:?}, {of_one}");
        let sum: f64 = parts.iter().sum();
        assert!((sum / headline(total) - 1.0).abs() < 1e-9, "{parts:?}, {}", headline(total));
        // The distribution of all of them is that of each, not a mean of percentiles.
        let latency = |rung: &Rung| (rung.latencies[0].count, rung.latencies[0].p99.value);
        let (count, p99) = latency(&one.rungs[position]);
        assert_eq!(latency(&three.databases[2].rungs[position]), (count, p99));
        assert_eq!(latency(total), (3 * count, p99));
        assert!(total.latencies.iter().all(|row| !row.transaction.contains('/')), "{total:?}");
    }
    // Every database is as fast on either design as the one alone.
    assert_eq!(three.verdict.answer, one.verdict.answer);
    let text = terminal_summary(&three, 100, Colour::Never);
    for shown in ["database", "oltp-2", "other", "total"] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(!terminal_summary(&one, 100, Colour::Never).contains("total"), "one database has none");
}
