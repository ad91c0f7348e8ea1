//! Both exports hold everything, and the columns of every file are documented.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use underlay_record::{
    Check, CheckMoment, CheckOutcome, ExecutionStatus, ExportError, Record, Recorder, export_csv,
    export_json_lines,
};

use crate::sample::{
    design, finished, manifest, measure, run, second, source, tick, transactions, waits,
};

fn small_record(path: &Path) -> Record {
    let mut recorder = Recorder::create(path, &manifest()).unwrap();
    let mut quoted = design(0, "nvme");
    quoted.description = "fast, \"very\" fast\nindeed".into();
    recorder.add_design(&quoted).unwrap();
    for repeat in 0..2 {
        let id = recorder.begin_run(&run(0, repeat)).unwrap();
        // The second run has another set of series under the same source.
        let series: &[&str] = if repeat == 0 { &["a", "b"] } else { &["b", "c"] };
        recorder.source(id, &source(0, "block", series)).unwrap();
        recorder.begin_phase(&measure(id, 1, second(0))).unwrap();
        recorder.tick(id, 0, tick(0), &[1.5, f64::NAN]).unwrap();
        recorder.transactions(id, &transactions(0)).unwrap();
        recorder.waits(id, &waits(0)).unwrap();
        let check = Check {
            run: id,
            moment: CheckMoment::Before,
            id: "C1".into(),
            title: "a title, with a comma".into(),
            outcome: CheckOutcome::Failed { error: "no connection".into() },
        };
        recorder.check(&check).unwrap();
        recorder.end_run(id, &finished(second(1))).unwrap();
    }
    recorder.finish(ExecutionStatus::Finished).unwrap();
    Record::open_read_only(path).unwrap()
}

#[test]
fn csv_files_are_complete_and_documented() {
    let dir = tempdir().unwrap();
    let record = small_record(&dir.path().join("record"));
    let out = dir.path().join("csv");
    let files = export_csv(&record, &out).unwrap();
    let documentation = std::fs::read_to_string(out.join("COLUMNS.md")).unwrap();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "csv")) {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(documentation.contains(&format!("## {name}")), "{name} is documented");
        for column in text.lines().next().unwrap().split(',') {
            assert!(documentation.contains(&format!("- `{column}`: ")), "{name}: {column}");
        }
    }
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(
        read("ticks-block.csv"),
        "run,begin_ns,end_ns,a,b,c\n1,0,1000000000,1.5,,\n2,0,1000000000,,1.5,\n"
    );
    assert!(read("designs.csv").contains("\"fast, \"\"very\"\" fast\nindeed\""));
    assert!(
        read("checks.csv").contains("1,before,C1,\"a title, with a comma\",failed,,no connection")
    );
    assert_eq!(read("transactions.csv").lines().count(), 3);
    assert_eq!(read("waits.csv").lines().count(), 1 + 2 * 6);
    assert!(matches!(export_csv(&record, &out), Err(ExportError::NotEmpty { .. })));
}

/// A spreadsheet calculates cells that begin so, and programs act on control characters.
#[test]
fn texts_of_others_are_neither_formulas_nor_control_sequences() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let mut recorder = Recorder::create(&path, &manifest()).unwrap();
    let formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "-2.5e3", "+7", "-"];
    for (index, title) in formulas.into_iter().enumerate() {
        let mut design = design(index as u32, &format!("design-{index}"));
        design.title = title.into();
        design.description = "\x1b]0;owned\x07 \u{9b}31m".into();
        recorder.add_design(&design).unwrap();
    }
    recorder.finish(ExecutionStatus::Finished).unwrap();
    let record = Record::open_read_only(&path).unwrap();
    export_csv(&record, &dir.path().join("csv")).unwrap();
    let text = std::fs::read_to_string(dir.path().join("csv/designs.csv")).unwrap();
    let titles: Vec<&str> =
        text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    let harmless =
        ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "'\t=1", "-2.5e3", "+7", "'-"];
    assert_eq!(titles, harmless);
    let mut lines = Vec::new();
    export_json_lines(&record, &mut lines).unwrap();
    let unsafe_in =
        |text: &str| text.contains(['\x1b', '\x07', '\u{9b}']) || text.contains("\\u001b");
    assert!(!unsafe_in(&text) && !unsafe_in(&String::from_utf8(lines).unwrap()));
    assert_eq!(record.designs().unwrap()[0].description, "␛]0;owned␇ \u{fffd}31m");
}

#[test]
fn json_lines_are_complete() {
    let dir = tempdir().unwrap();
    let record = small_record(&dir.path().join("record"));
    let mut out = Vec::new();
    export_json_lines(&record, &mut out).unwrap();
    let lines: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let tables: BTreeSet<&str> = lines.iter().filter_map(|line| line["table"].as_str()).collect();
    let expected =
        ["check", "design", "execution", "phase", "run", "source", "tick", "transactions", "waits"];
    assert_eq!(tables, BTreeSet::from(expected));
    assert_eq!(lines[0]["seed"], json!(u64::MAX.to_string()));
    let ticks: Vec<&Value> = lines.iter().filter(|line| line["table"] == "tick").collect();
    assert_eq!(ticks[0]["values"], json!({ "a": 1.5, "b": null }));
    assert_eq!(ticks[1]["run"], 2);
}
