//! An execution that was interrupted continues where it stopped, and nothing is deleted.

use tempfile::tempdir;
use underlay_record::{
    ExecutionStatus, OpenError, PhaseStatus, Record, Recorder, RunEnd, RunStatus,
};

use crate::sample::{design, finished, manifest, measure, run, second, source, tick, transactions};

#[test]
fn unfinished_runs_are_repeated_and_kept() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let mut first = Recorder::create(&path, &manifest()).unwrap();
    first.add_design(&design(0, "nvme")).unwrap();
    first.add_design(&design(1, "sata")).unwrap();
    let done = first.begin_run(&run(0, 0)).unwrap();
    first.end_run(done, &finished(second(30))).unwrap();
    let killed = first.begin_run(&run(1, 0)).unwrap();
    first.source(killed, &source(0, "host_cpu", &["cpu.user"])).unwrap();
    let rung = first.begin_phase(&measure(killed, 1, second(2))).unwrap();
    first.end_phase(rung, second(12), PhaseStatus::Finished).unwrap();
    first.begin_phase(&measure(killed, 2, second(12))).unwrap();
    first.tick(killed, 0, tick(14), &[1.0]).unwrap();
    drop(first);

    let mut second_writer = Recorder::resume(&path).unwrap();
    assert_eq!(*second_writer.manifest(), manifest());
    let unfinished = second_writer.unfinished_runs().unwrap();
    assert_eq!(unfinished.len(), 1);
    assert_eq!(unfinished[0].id, killed);
    assert_eq!(unfinished[0].status, RunStatus::Interrupted);
    assert_eq!(unfinished[0].end, Some(second(15)), "the last thing heard of it");
    let phases = second_writer.phases(Some(killed)).unwrap();
    assert_eq!(phases[0].status, PhaseStatus::Finished);
    assert_eq!((phases[1].status, phases[1].end), (PhaseStatus::Interrupted, Some(second(15))));

    let repeated = second_writer.begin_run(&run(1, 0)).unwrap();
    second_writer.transactions(repeated, &transactions(1)).unwrap();
    second_writer.end_run(repeated, &finished(second(30))).unwrap();
    assert_eq!(second_writer.unfinished_runs().unwrap(), vec![]);
    second_writer.finish(ExecutionStatus::Finished).unwrap();

    let record = Record::open_read_only(&path).unwrap();
    assert_eq!(record.execution().unwrap().sessions, 2);
    let runs = record.runs().unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[1].superseded_by, Some(repeated));
    let evidence: Vec<_> = runs.iter().filter(|run| run.is_evidence()).map(|run| run.id).collect();
    assert_eq!(evidence, vec![done, repeated]);
    let kept = record.table(killed, "host_cpu").unwrap().unwrap();
    assert_eq!(kept.ticks.len(), 1, "what was replaced is still there");
}

#[test]
fn a_failed_run_is_offered_again() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let mut recorder = Recorder::create(&path, &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    let id = recorder.begin_run(&run(0, 0)).unwrap();
    let failed = RunEnd {
        at: second(3),
        status: RunStatus::Failed,
        reason: Some("the server crashed: signal 9".into()),
    };
    recorder.end_run(id, &failed).unwrap();
    recorder.finish(ExecutionStatus::Failed).unwrap();
    let recorder = Recorder::resume(&path).unwrap();
    let unfinished = recorder.unfinished_runs().unwrap();
    assert_eq!(unfinished[0].reason.as_deref(), Some("the server crashed: signal 9"));
}

#[test]
fn there_is_one_writer() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    let recorder = Recorder::create(&path, &manifest()).unwrap();
    assert!(matches!(Recorder::resume(&path), Err(OpenError::Busy { .. })));
    drop(recorder);
    Recorder::resume(&path).unwrap().finish(ExecutionStatus::Finished).unwrap();
    assert!(matches!(Recorder::resume(&path), Err(OpenError::Finished { .. })));
    assert!(matches!(Recorder::create(&path, &manifest()), Err(OpenError::Exists { .. })));
}
