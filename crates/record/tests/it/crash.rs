//! `kill -9` at any moment: the file stays whole and holds every committed tick.
//!
//! The writer is this test program itself, started again with an environment variable that names the record. It
//! prints the number of each tick after its commit returned; whatever was printed must be found.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::tempdir;
use underlay_core::RootSeed;
use underlay_record::{ExecutionStatus, PhaseStatus, Record, Recorder, RunId};

use crate::sample::{
    design, histogram, manifest, measure, run, second, source, tick, transactions, waits,
};

const RECORD_VARIABLE: &str = "UNDERLAY_RECORD_CRASH_TEST";

/// Not a test of its own: what the child process executes.
#[test]
fn child_writer() {
    let Some(path) = std::env::var_os(RECORD_VARIABLE) else { return };
    let mut recorder = Recorder::create(Path::new(&path), &manifest()).unwrap();
    recorder.add_design(&design(0, "nvme")).unwrap();
    let id = recorder.begin_run(&run(0, 0)).unwrap();
    let series: Vec<String> = (0..100).map(|i| format!("series.{i}")).collect();
    let names: Vec<&str> = series.iter().map(String::as_str).collect();
    for index in 0..4 {
        recorder.source(id, &source(index, &format!("source-{index}"), &names)).unwrap();
    }
    let mut phase = recorder.begin_phase(&measure(id, 1, second(0))).unwrap();
    let mut out = std::io::stdout();
    for n in 0..u64::MAX {
        let values: Vec<f64> = (0..100).map(|i| (n * i) as f64).collect();
        for index in 0..4 {
            recorder.tick(id, index, tick(n), &values).unwrap();
        }
        recorder.transactions(id, &transactions(n)).unwrap();
        recorder.waits(id, &waits(n)).unwrap();
        recorder.histogram(id, tick(n), "datastore", "data.read", &histogram(&[n])).unwrap();
        recorder.commit().unwrap();
        writeln!(out, "committed {n}").unwrap();
        out.flush().unwrap();
        if n % 50 == 49 {
            recorder.end_phase(phase, second(n), PhaseStatus::Finished).unwrap();
            phase = recorder.begin_phase(&measure(id, 1, second(n))).unwrap();
        }
    }
}

/// Starts a writer, kills it after `delay`, and returns the last tick that it reported.
fn write_until_killed(path: &Path, delay: Duration) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child_writer", "--exact", "--nocapture", "--test-threads=1"])
        .env(RECORD_VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        BufReader::new(out)
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| line.rsplit("committed ").next()?.parse().ok())
            .last()
    });
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn committed_ticks_survive_a_kill() {
    use rand::RngExt;
    let mut random = RootSeed(9).stream("kill", 0);
    let mut written = 0;
    for attempt in 0..8 {
        let dir = tempdir().unwrap();
        let path = dir.path().join("record");
        let delay = Duration::from_millis(random.random_range(30..600));
        let Some(last) = write_until_killed(&path, delay) else { continue };
        written += 1;
        // Nothing may be missing for a reader, before any writer has recovered the file.
        verify(&path, last, attempt);
        let recorder = Recorder::resume(&path).unwrap();
        assert_eq!(recorder.unfinished_runs().unwrap().len(), 1);
        recorder.finish(ExecutionStatus::Cancelled).unwrap();
        verify(&path, last, attempt);
    }
    assert!(written >= 4, "only {written} of 8 writers came as far as the first commit");
}

#[test]
fn a_kill_while_a_record_is_created_leaves_one_or_none() {
    use rand::RngExt;
    let mut random = RootSeed(11).stream("kill", 0);
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    for attempt in 0..40 {
        write_until_killed(&path, Duration::from_micros(random.random_range(500..20_000)));
        if path.exists() {
            let recorder = Recorder::resume(&path);
            assert!(recorder.is_ok(), "attempt {attempt}: {recorder:?}");
            drop(recorder);
            std::fs::remove_file(&path).unwrap();
        }
    }
    Recorder::create(&path, &manifest()).unwrap();
}

fn verify(path: &Path, last: u64, attempt: u32) {
    let record = Record::open_read_only(path).unwrap();
    assert_eq!(record.integrity_problems().unwrap(), Vec::<String>::new(), "attempt {attempt}");
    let id = RunId(1);
    let expected: Vec<_> = (0..=last).map(tick).collect();
    for table in record.tables(id).unwrap() {
        assert!(table.ticks.len() as u64 > last, "attempt {attempt}: {}", table.ticks.len());
        assert_eq!(table.ticks[..expected.len()], expected[..], "no gap");
        // All sources of a tick are committed together.
        assert_eq!(table.ticks.len(), record.waits(id).unwrap().len());
    }
    assert_eq!(record.tables(id).unwrap().len(), 4);
}
