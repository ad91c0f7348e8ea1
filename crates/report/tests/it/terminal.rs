//! The summary in a terminal, as it is printed.

use underlay_report::analysis::WorkingSet;
use underlay_report::{Colour, terminal_summary};

use crate::answers::analysis;
use crate::synthetic::{ROWS, nvme, sata, scenario};

fn check(name: &str, width: usize, change: impl FnOnce(&mut crate::synthetic::Scenario)) {
    let mut example = scenario(vec![sata(), nvme()]);
    (example.measure_s, example.users, example.repeats) = (12, vec![1, 4], 2);
    change(&mut example);
    let text = terminal_summary(&analysis(&example), width, Colour::Never);
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(longest <= width, "{longest} columns in {width}:\n{text}");
    assert!(text.is_ascii() && text.ends_with('\n'));
    insta::assert_snapshot!(name, text);
}

#[test]
fn a_winner() {
    check("winner", 120, |_| {});
}

#[test]
fn a_winner_on_a_narrow_terminal() {
    check("winner-narrow", 72, |_| {});
}

#[test]
fn an_invalid_result() {
    check("invalid", 100, |scenario| scenario.violated_run = Some(1));
}

#[test]
fn one_run_each() {
    check("one-run", 100, |scenario| (scenario.repeats, scenario.measure_s) = (1, 24));
}

#[test]
fn a_job_has_sessions_and_no_users() {
    let mut example = scenario(vec![sata(), nvme()]);
    (example.measure_s, example.users, example.repeats) = (12, vec![4], 2);
    example.job = Some(ROWS);
    let found = analysis(&example);
    assert!(found.workload.is_job);
    let text = terminal_summary(&found, 120, Colour::Never);
    let header = text.lines().find(|line| line.starts_with("design ")).expect("a table");
    assert!(header.contains("sessions") && header.contains("rows/s"), "{text}");
    assert!(text.contains("NVMe, 4 sessions: "), "{text}");
    assert!(!text.contains("4 users: "), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let mut example = scenario(vec![sata(), nvme()]);
    (example.measure_s, example.users, example.repeats) = (12, vec![2], 2);
    let found = analysis(&example);
    let plain = terminal_summary(&found, 100, Colour::Never);
    let coloured = terminal_summary(&found, 100, Colour::Always);
    assert!(coloured.contains("\u{1b}[1;32mNVMe does"));
    let mut stripped = String::new();
    let mut pieces = coloured.split('\u{1b}');
    stripped.extend(pieces.next());
    for piece in pieces {
        stripped.extend(piece.split_once('m').map(|(_, text)| text));
    }
    assert_eq!(stripped, plain);
}

#[test]
fn what_the_rungs_touch_is_said_once_or_per_rung() {
    let mut found = analysis(&scenario(vec![sata(), nvme()]));
    let set = |text: &str| {
        let (touched_bytes, memory_bytes) = (Some(0.9e9), Some(0.3e9));
        Some(WorkingSet { share: 1.0, touched_bytes, memory_bytes, text: text.to_string() })
    };
    for rung in &mut found.rungs {
        rung.working_set = set("touches 0.9 GB, 0.3 GB fits");
    }
    for width in [80, 160] {
        let text = terminal_summary(&found, width, Colour::Never);
        assert!(text.contains("Each rung touches 0.9 GB, 0.3 GB fits."), "{text}");
        assert!(!text.contains("working set"), "{text}");
    }
    found.rungs[0].working_set = set("touches 0.1 GB, all of it fits");
    let text = terminal_summary(&found, 200, Colour::Never);
    assert!(text.contains("working set") && !text.contains("Each rung"), "{text}");
    assert!(text.contains("touches 0.1 GB, all of it fits"), "{text}");
}
