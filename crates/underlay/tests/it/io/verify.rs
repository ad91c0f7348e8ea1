//! Verification: what is corrupt is found where it is, and what a killed generator or a power cut may have lost is told from what it
//! may not.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::harness::{Running, Store, disk, io, is_empty, json, number, refused, text, wait_for};
use crate::common::Bench;

#[test]
fn corruption_is_found_where_it_is() {
    let (bench, disk) = (Bench::new(), disk());
    let journal = bench.path().join("journal");
    let common = [
        "4k-random-70-30",
        text(disk.path()),
        "--size",
        "32MiB",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--verify",
        "--json",
    ];
    let kept = ["--journal", text(&journal), "--keep"];
    let outcome = json(&io(&bench, &[&common[..], &kept].concat()).expect_ok());
    assert_eq!(outcome["verified"]["units"], (32 << 20) / 4096);
    assert_eq!(outcome["verified"]["violations"], 0);
    assert!(number(&outcome["result"]["verified_units"]) > 0.0, "reads are compared");
    let file = PathBuf::from(outcome["targets"][0]["path"].as_str().expect("a path"));
    let verify =
        |arguments: &[&str]| io(&bench, &[&["verify", text(&journal)], arguments].concat());
    let sound = verify(&["--json"]).expect_ok();
    let found = &json(&sound)["targets"][0];
    assert_eq!(found["units"]["last"], 8192, "{found}");
    assert_eq!(found["writes_begun"], found["writes_acknowledged"]);

    let bytes = OpenOptions::new().read(true).write(true).open(&file).expect("kept");
    let mut byte = [0];
    bytes.read_exact_at(&mut byte, 5_000_000).expect("there");
    bytes.write_all_at(&[byte[0] ^ 16], 5_000_000).expect("flipped");
    let ended = verify(&[]);
    refused(&ended, 5, &["1 blocks do not contain"]);
    assert!(ended.stdout.contains("CORRUPT"), "{}", ended.stdout);
    let place = format!("at byte {}: corrupt", 5_000_000 / 4096 * 4096);
    assert!(ended.stdout.contains(&place), "{}", ended.stdout);
    refused(&verify(&["--power-cut"]), 5, &["1 blocks"]);
    bytes.write_all_at(&byte, 5_000_000).expect("mended");
    verify(&[]).expect(0);

    // A block at another's place is sound in itself, and still wrong.
    let mut block = vec![0; 4096];
    bytes.read_exact_at(&mut block, 8192).expect("there");
    bytes.write_all_at(&block, 16384).expect("misplaced");
    let ended = verify(&["--json"]);
    assert_eq!(ended.code, Some(5));
    let violation = &json(&ended)["targets"][0]["first_violations"][0];
    assert_eq!(
        (&violation["offset_bytes"], &violation["finding"]),
        (&16384.into(), &"misplaced".into())
    );
}

#[test]
fn nothing_acknowledged_is_lost_by_killing_the_generator() {
    let (bench, disk) = (Bench::new(), disk());
    let journal = bench.path().join("journal");
    let arguments = [
        "redo-log-and-data",
        text(disk.path()),
        "--size",
        "64MiB",
        "--duration",
        "60s",
        "--verify",
        "--journal",
        text(&journal),
    ];
    let running = Running::start(&bench, &arguments);
    // Past the filling of the file: 64 writes with two records each.
    wait_for("the load", || fs::metadata(&journal).is_ok_and(|file| file.len() > 100_000));
    running.signal(libc::SIGKILL);
    running.ended();
    let ended = io(&bench, &["verify", text(&journal), "--json"]).expect_ok();
    let found = &json(&ended)["targets"][0];
    assert!(number(&found["writes_durable"]) > 64.0, "{found}");
    assert_eq!(found["violations"], 0);
    // The file of the dead generator is known to `clean`.
    assert!(!is_empty(disk.path()));
    bench.run(&["clean"]).expect(0);
    assert!(is_empty(disk.path()));
}

/// What `io verify` is to judge is the user's as soon as it is filled.
#[test]
fn a_file_to_be_kept_survives_its_generator_and_clean() {
    let (bench, disk) = (Bench::new(), disk());
    let journal = bench.path().join("journal");
    let arguments = ["4k-random-write", text(disk.path()), "--size", "32MiB", "--duration", "60s"];
    let kept = ["--keep", "--verify", "--journal", text(&journal)];
    let running = Running::start(&bench, &[&arguments[..], &kept].concat());
    // Past the filling of the file: 32 writes with two records each.
    wait_for("the load", || fs::metadata(&journal).is_ok_and(|file| file.len() > 100_000));
    running.signal(libc::SIGKILL);
    running.ended();
    bench.run(&["clean"]).expect(0);
    assert!(!is_empty(disk.path()), "it was to be kept");
    io(&bench, &["verify", text(&journal)]).expect_ok();
}

/// Writes, each thread flushing after so many of them, until the power goes, and returns the journal.
fn write_into_power_cut(store: &Store, device: &Path, flush_every: &str) -> PathBuf {
    let journal = store.bench.path().join("journal");
    let arguments = [
        "4k-random-write",
        text(device),
        "--threads",
        "4",
        "--queue-depth",
        "4",
        "--flush-every",
        flush_every,
        "--fill",
        "--duration",
        "60s",
        "--verify",
        "--journal",
        text(&journal),
    ];
    let running = Running::start(&store.bench, &arguments);
    wait_for("the load", || fs::metadata(&journal).is_ok_and(|file| file.len() > 200_000));
    store.volume("fault", &["power-cut"]).expect(0);
    let ended = running.ended();
    assert_eq!(ended.code, Some(4), "the load ends with an I/O error: {}", ended.stderr);
    store.volume("fault", &["power-on"]).expect(0);
    journal
}

#[test]
fn a_power_cut_loses_what_was_not_flushed_and_nothing_else() {
    let Some((store, device)) = Store::with_device("flushed") else { return };
    let journal = write_into_power_cut(&store, &device, "200");
    let verify = |arguments: &[&str]| {
        io(
            &store.bench,
            &[&["verify", text(&journal), text(&device), "--json"], arguments].concat(),
        )
    };
    let ended = verify(&["--power-cut"]).expect_ok();
    let found = &json(&ended)["targets"][0];
    assert_eq!(found["violations"], 0, "{found}");
    assert!(number(&found["writes_durable"]) > 64.0, "{found}");
    let lost = number(&found["units"]["unflushed-lost"]) + number(&found["units"]["torn"]);
    assert!(lost > 0.0, "the cut lost something: {found}");
    // Had only the generator died, the same would be a violation.
    let strict = verify(&[]);
    refused(&strict, 5, &["--power-cut"]);
    assert!(number(&json(&strict)["targets"][0]["units"]["lost"]) > 0.0);
}

#[test]
fn a_device_that_lies_about_flushes_is_caught() {
    let Some((store, device)) = Store::with_device("lying") else { return };
    let journal = write_into_power_cut(&store, &device, "1");
    let ended = io(&store.bench, &["verify", text(&journal), text(&device), "--power-cut"]);
    refused(&ended, 5, &["do not contain the expected data"]);
    assert!(ended.stdout.contains("LOST"), "{}", ended.stdout);
}
