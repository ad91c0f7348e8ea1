//! Records of block loads: they hold what the command printed, to the last request, and warn of what it warned of.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::harness::{Running, disk, io, is_empty, json, number, refused, text, wait_for};
use crate::common::Bench;

/// The analysis of a record.
fn analysis(bench: &Bench, record: &Path) -> Value {
    json(&bench.run(&["show", text(record), "--json"]).expect_ok())
}

/// What a record says to people.
fn shown(bench: &Bench, record: &Path) -> String {
    let text = bench.run(&["show", text(record)]).expect_ok().stdout;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn codes(analysis: &Value) -> Vec<&str> {
    let findings = analysis["findings"].as_array().expect("a list");
    findings.iter().filter_map(|finding| finding["code"].as_str()).collect()
}

fn same(recorded: &Value, printed: &Value) {
    let (recorded, printed) = (number(recorded), number(printed));
    assert!((recorded / printed - 1.0).abs() < 1e-9, "{recorded} recorded, {printed} printed");
}

#[test]
fn a_record_holds_what_was_printed() {
    let (bench, disk) = (Bench::new(), disk());
    let record = bench.path().join("io.sqlite");
    let folder = text(disk.path());
    // Two targets, reads and writes, and so much in flight that many requests end after the measured time.
    let outcome = json(
        &io(
            &bench,
            &[
                "4k-random-70-30",
                folder,
                folder,
                "--size",
                "32MiB",
                "--threads",
                "4",
                "--queue-depth",
                "32",
                "--duration",
                "1500ms",
                "--warm-up",
                "300ms",
                "--verify",
                "--record",
                text(&record),
                "--json",
            ],
        )
        .expect_ok(),
    );
    let result = &outcome["result"];
    let analysis = analysis(&bench, &record);
    let rung = &analysis["rungs"][0];
    same(&rung["metrics"]["headline"]["value"], &result["iops"]);
    let window = &analysis["windows"][0];
    let length = number(&window["end_s"]) - number(&window["begin_s"]);
    assert!((length - 1.5).abs() < 1e-6, "{window}");
    let rows = rung["latencies"].as_array().expect("a list");
    let kinds = result["kinds"].as_array().expect("a list");
    assert_eq!((rows.len(), kinds.len()), (5, 4), "each kind, and all together");
    for kind in kinds {
        let operation = kind["operation"].as_str().expect("a word");
        let name = format!("{}.{operation}", number(&kind["target"]) + 1.0);
        let row = rows.iter().find(|row| row["transaction"] == name.as_str()).expect("recorded");
        let printed = &kind["response_ns"];
        assert_eq!(number(&row["count"]), number(&printed["count"]), "{name}");
        for quantile in ["p50", "p95", "p99"] {
            assert_eq!(number(&row[quantile]["value"]), number(&printed[quantile]), "{name}");
        }
        assert_eq!(number(&row["max_ns"]), number(&printed["max"]), "{name}");
        same(&row["mean_ns"], &printed["mean"]);
    }
    let all = rows.iter().find(|row| row["transaction"] == "reads and writes").expect("recorded");
    assert_eq!(number(&all["p99"]["value"]), number(&result["all"]["response_ns"]["p99"]));
    // What was verified is a check like those of a database.
    assert_eq!(analysis["checks"][0]["outcome"], "ok");
    // Files that nobody can find any more have no place in a record.
    assert!(!analysis.to_string().contains("underlay-io-"), "{}", analysis["designs"]);
}

#[test]
fn what_the_command_warns_of_its_record_warns_of() {
    let (bench, disk) = (Bench::new(), disk());
    let common = ["4k-random-read", text(disk.path()), "--size", "32MiB", "--warm-up", "0s"];
    let run = |record: &Path, extra: &[&str]| {
        let record = ["--record", text(record), "--json"];
        io(&bench, &[&common[..], extra, &record].concat())
    };
    // Rounds: whether they are steady is the host's matter; that the record says the same is ours.
    let rounds = bench.path().join("rounds.sqlite");
    let outcome = json(
        &run(&rounds, &["--steady-state", "--rounds-max", "5", "--duration", "1s"]).expect_ok(),
    );
    let found = analysis(&bench, &rounds);
    let reached = outcome["steady_state"]["reached"] == true;
    let code = if reached { "steady-state" } else { "steady-state-not-reached" };
    assert!(codes(&found).contains(&code), "{reached}: {:?}", codes(&found));
    let headline = &found["rungs"][0]["metrics"]["headline"];
    same(&headline["value"], &outcome["result"]["iops"]);
    assert_ne!(headline["basis"], "runs", "rounds are no runs");
    assert_eq!(headline["runs"].as_array().map(Vec::len), Some(1));
    assert!(shown(&bench, &rounds).contains("of which 5 rounds are reported"));

    let late = bench.path().join("late.sqlite");
    let extra = ["--rate", "3000000", "--threads", "1", "--queue-depth", "1", "--duration", "1s"];
    refused(&run(&late, &extra), 6, &["were never started"]);
    let found = analysis(&bench, &late);
    assert_eq!(found["verdict"]["answer"], "invalid");
    let said = shown(&bench, &late);
    assert!(said.contains("requests that were due were never started"), "{said}");
    let compared = bench.run(&["compare", text(&late), text(&late)]).expect_ok().stdout;
    let compared = compared.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(compared.contains("are not comparable"), "{compared}");
    assert!(!compared.contains("more than their storage"), "{compared}");
}

#[test]
fn a_curve_that_was_interrupted_says_so() {
    let (bench, disk) = (Bench::new(), disk());
    let record = bench.path().join("curve.sqlite");
    let arguments = [
        "4k-random-read",
        text(disk.path()),
        "--size",
        "32MiB",
        "--queue-depth",
        "1",
        "--duration",
        "2s",
        "--warm-up",
        "0s",
        "--curve",
        "--record",
        text(&record),
        "--json",
    ];
    let running = Running::start(&bench, &arguments);
    wait_for("the file", || !is_empty(disk.path()));
    std::thread::sleep(Duration::from_secs(3));
    running.signal(libc::SIGINT);
    let ended = running.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let outcome = json(&ended);
    let phases = outcome["phases"].as_array().expect("a list");
    let cut = phases.iter().filter(|phase| phase["result"]["interrupted"] == true);
    assert!(cut.clone().count() <= 1 && phases.len() < 13, "{}", phases.len());
    assert!(cut.clone().all(|phase| phase["saturated"].is_null()), "it is not known");
    let found = analysis(&bench, &record);
    assert!(codes(&found).contains(&"interrupted"), "{}", found["findings"]);
    let loads = &found["block_loads"][0];
    assert_eq!(loads["planned"], 13);
    let early = loads["loads"].as_array().expect("a list").iter();
    assert_eq!(early.filter(|load| load["ended_early"] == true).count(), cut.count());
    let page = bench.path().join("page.html");
    bench.run(&["report", text(&record), "--out", text(&page)]).expect(0);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("The curve was interrupted"));
}

#[test]
fn options_that_would_do_nothing_are_refused_all_at_once() {
    let (bench, disk) = (Bench::new(), disk());
    let file = disk.path().join("data");
    std::fs::write(&file, vec![7; 16 << 20]).expect("a file");
    let without_effect = [
        "64k-sequential-read",
        text(&file),
        "--rounds-max",
        "7",
        "--arrivals",
        "uniform",
        "--spin",
        "50us",
        "--write-through",
        "--compress-ratio",
        "2",
        "--duplicate-percent",
        "10",
        "--zipf",
        "0.9",
        "--duration",
        "10ms",
    ];
    let said = [
        "8 problems",
        "--rounds-max has no effect",
        "--arrivals has no effect",
        "--spin has no effect",
        "--write-through has no effect",
        "--compress-ratio has no effect",
        "--duplicate-percent has no effect",
        "--zipf has no effect",
        "--duration must lie in",
    ];
    refused(&io(&bench, &without_effect), 2, &said);
    let every = ["4k-random-read", text(&file), "--flush-every", "4"];
    refused(&io(&bench, &every), 2, &["--flush-every has no effect: `4k-random-read` only reads"]);
    // What is created is filled with such content, and then they do something.
    let filled = [
        "4k-random-read",
        text(disk.path()),
        "--size",
        "16MiB",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--compress-ratio",
        "2",
    ];
    io(&bench, &filled).expect(0);
}
