//! What is written is read back, exactly.

use serde_json::json;
use tempfile::tempdir;
use underlay_core::series::SeriesSpec;
use underlay_record::{
    Check, CheckMoment, CheckOutcome, Event, ExecutionStatus, Finding, PhaseStatus, Record,
    Recorder, Severity, SourceStatus, WriteError,
};

use crate::sample::{
    design, finished, histogram, manifest, measure, run, second, source, tick, transactions, waits,
};

#[test]
fn everything_comes_back() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("sub/record.underlay");
    let mut recorder = Recorder::create(&path, &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    recorder.add_design(&design(1, "sata")).unwrap();
    let id = recorder.begin_run(&run(1, 0)).unwrap();
    recorder.source(id, &source(0, "host_cpu", &["cpu.user", "cpu.idle"])).unwrap();
    let absent = SourceStatus::Absent("no PSI in this kernel".into());
    recorder
        .source(id, &underlay_record::Source { status: absent, ..source(1, "pressure", &[]) })
        .unwrap();
    let phase = recorder.begin_phase(&measure(id, 4, second(1))).unwrap();
    for n in 1..5 {
        recorder.tick(id, 0, tick(n), &[n as f64, f64::NAN]).unwrap();
        recorder.transactions(id, &transactions(n)).unwrap();
        recorder.waits(id, &waits(n)).unwrap();
        recorder.histogram(id, tick(n), "datastore", "data.read", &histogram(&[n])).unwrap();
        recorder.commit().unwrap();
    }
    let event = Event {
        run: Some(id),
        at: second(3),
        kind: "checkpoint-begin".into(),
        text: "checkpoint starting: time".into(),
        data: json!({ "reason": "time" }),
    };
    recorder.event(&event).unwrap();
    recorder.end_phase(phase, second(5), PhaseStatus::Finished).unwrap();
    let check = Check {
        run: id,
        moment: CheckMoment::After,
        id: "C1".into(),
        title: "W_YTD = sum(D_YTD)".into(),
        outcome: CheckOutcome::Violated { rows: 2, example: "warehouse 3".into() },
    };
    recorder.check(&check).unwrap();
    let finding = Finding {
        run: Some(id),
        severity: Severity::Warning,
        code: "steal".into(),
        text: "3 % steal".into(),
        data: json!({ "share": 0.03 }),
    };
    recorder.finding(&finding).unwrap();
    recorder.write_document(Some(id), "engine-settings", &json!({ "fsync": "off" })).unwrap();
    recorder.write_document(Some(id), "engine-settings", &json!({ "fsync": "on" })).unwrap();
    recorder.end_run(id, &finished(second(6))).unwrap();
    recorder.finish(ExecutionStatus::Finished).unwrap();

    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "one file, without WAL or lock: {names:?}");
    let record = Record::open_read_only(&path).unwrap();
    assert_eq!(*record.manifest(), manifest());
    let execution = record.execution().unwrap();
    assert_eq!((execution.status, execution.sessions), (ExecutionStatus::Finished, 1));
    assert_eq!(record.designs().unwrap(), vec![design(0, "nvme"), design(1, "sata")]);
    let runs = record.runs().unwrap();
    assert_eq!(runs.len(), 1);
    assert!(runs[0].is_evidence());
    assert_eq!((runs[0].design, runs[0].end), (1, Some(second(6))));
    let phases = record.phases(Some(id)).unwrap();
    assert_eq!(phases[0].users, Some(4));
    assert_eq!(phases[0].interval().unwrap().seconds(), 4.0);
    assert_eq!(record.phases(None).unwrap(), vec![]);
    assert_eq!(record.events(Some(id)).unwrap(), vec![event]);
    assert_eq!(record.checks(id).unwrap(), vec![check]);
    assert_eq!(record.findings().unwrap(), vec![finding]);
    assert_eq!(
        record.document(Some(id), "engine-settings").unwrap(),
        Some(json!({ "fsync": "on" }))
    );
    assert_eq!(record.documents().unwrap().len(), 1);
    assert_eq!(record.transactions(id).unwrap(), (1..5).map(transactions).collect::<Vec<_>>());
    assert_eq!(record.waits(id).unwrap(), (1..5).map(waits).collect::<Vec<_>>());
    assert_eq!(record.histograms(id).unwrap()[3].histogram.decoded(), histogram(&[4]));
    let table = record.table(id, "host_cpu").unwrap().unwrap();
    assert_eq!(table.ticks, (1..5).map(tick).collect::<Vec<_>>());
    assert_eq!(table.column("cpu.user").unwrap().values, vec![1.0, 2.0, 3.0, 4.0]);
    assert!(table.column("cpu.idle").unwrap().values.iter().all(|value| value.is_nan()));
    assert_eq!(record.table(id, "block").unwrap(), None);
    assert_eq!(record.sources(id).unwrap()[1].status.reason(), Some("no PSI in this kernel"));
    assert_eq!(record.integrity_problems().unwrap(), Vec::<String>::new());
}

#[test]
fn a_source_may_grow_but_not_change() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let mut recorder = Recorder::create(&path, &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    let id = recorder.begin_run(&run(0, 0)).unwrap();
    recorder.source(id, &source(0, "process", &["a"])).unwrap();
    recorder.tick(id, 0, tick(1), &[1.0]).unwrap();
    let too_long = recorder.tick(id, 0, tick(2), &[1.0, 2.0]);
    assert!(matches!(too_long, Err(WriteError::TooManyValues { values: 2, series: 1, .. })));
    let mut grown = source(0, "process", &["a"]);
    grown.series.push(SeriesSpec::gauge("b", "bytes"));
    recorder.source(id, &grown).unwrap();
    recorder.tick(id, 0, tick(2), &[3.0, 4.0]).unwrap();
    let changed = recorder.source(id, &source(0, "process", &["c"]));
    assert!(matches!(changed, Err(WriteError::SeriesChanged { position: 0, .. })));
    let unknown = recorder.tick(id, 5, tick(2), &[3.0]);
    assert!(matches!(unknown, Err(WriteError::UnknownSource { source_index: 5, .. })));
    recorder.commit().unwrap();

    // A second connection reads while the first one writes.
    let record = Record::open_read_only(&path).unwrap();
    let table = record.table(id, "process").unwrap().unwrap();
    assert_eq!(table.column("a").unwrap().values, vec![1.0, 3.0]);
    let late = &table.column("b").unwrap().values;
    assert!(late[0].is_nan());
    assert_eq!(late[1], 4.0);
}

#[test]
fn ended_things_cannot_end_again() {
    let dir = tempdir().unwrap();
    let mut recorder = Recorder::create(&dir.path().join("record"), &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    let id = recorder.begin_run(&run(0, 0)).unwrap();
    let phase = recorder.begin_phase(&measure(id, 1, second(0))).unwrap();
    recorder.end_run(id, &finished(second(9))).unwrap();
    assert_eq!(recorder.phases(Some(id)).unwrap()[0].end, Some(second(9)), "ended with its run");
    let again = recorder.end_phase(phase, second(10), PhaseStatus::Finished);
    assert!(matches!(again, Err(WriteError::NotRunning { what: "phase", .. })));
    assert!(matches!(
        recorder.end_run(id, &finished(second(10))),
        Err(WriteError::NotRunning { what: "run", .. })
    ));
    assert!(matches!(
        recorder.begin_run(&run(0, 0)),
        Err(WriteError::AlreadyFinished { design: 0, repeat: 0, .. })
    ));
}

#[test]
fn a_dropped_recorder_keeps_its_last_tick() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let mut recorder = Recorder::create(&path, &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    let id = recorder.begin_run(&run(0, 0)).unwrap();
    recorder.transactions(id, &transactions(1)).unwrap();
    std::thread::spawn(move || drop(recorder)).join().unwrap();
    let record = Record::open_read_only(&path).unwrap();
    assert_eq!(record.transactions(id).unwrap().len(), 1);
}
