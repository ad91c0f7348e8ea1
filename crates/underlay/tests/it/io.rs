//! `underlay io` as users meet it: what it delivers, what it refuses, what it notices, and that nothing is left behind.

mod emulated;
mod harness;
mod records;
mod verify;

use self::harness::{Running, Store, disk, io, is_empty, json, number, refused, text, wait_for};
use crate::common::Bench;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_load_is_delivered_and_its_file_removed() {
    let (bench, disk) = (Bench::new(), disk());
    let record = bench.path().join("io.sqlite");
    let arguments = [
        "8k-random-70-30",
        text(disk.path()),
        "--size",
        "64MiB",
        "--duration",
        "2s",
        "--warm-up",
        "500ms",
        "--queue-depth",
        "4",
        "--record",
        text(&record),
        "--json",
    ];
    let outcome = json(&io(&bench, &arguments).expect_ok());
    let result = &outcome["result"];
    let kinds = result["kinds"].as_array().expect("a list");
    let count = |operation: &str| {
        let of = kinds.iter().find(|kind| kind["operation"] == operation);
        number(&of.expect("it happened")["completed"])
    };
    let share = count("read") / (count("read") + count("write"));
    assert!((share - 0.7).abs() < 0.05, "{share} reads");
    assert!(number(&result["iops"]) > 50.0, "{result}");
    let bytes = number(&result["bytes_per_second"]) / number(&result["iops"]);
    assert!((bytes - 8192.0).abs() < 1.0, "{bytes} per request");
    let seconds = outcome["phases"][0]["seconds"].as_array().expect("a list");
    let measured: Vec<&Value> =
        seconds.iter().filter(|second| second["measured"] == true).collect();
    assert_eq!(measured.len(), 2);
    let requests: f64 =
        measured.iter().map(|second| number(&second["reads"]) + number(&second["writes"])).sum();
    assert!((requests / 2.0 - number(&result["iops"])).abs() < 1.0, "seconds add up to the whole");
    assert_eq!(outcome["targets"][0]["evidence"], "measured");
    assert_eq!(outcome["targets"][0]["in_memory"], false);
    assert!(is_empty(disk.path()), "the file was removed");
    assert_eq!(bench.left_on_host(), Vec::<String>::new());

    // The record holds the same, and can be read by everything that reads records.
    let exported = bench.path().join("exported");
    bench.run(&["export", text(&record), "--csv", text(&exported)]).expect(0);
    let rows = fs::read_to_string(exported.join("transactions.csv")).expect("exported");
    assert!(rows.contains(",read,") && rows.contains(",write,"), "{rows}");
    let answer = answer_of(&bench, &record);
    assert!(answer.contains("I/Os per second with 4 requests in flight (measured)"), "{answer}");
}

/// What the report of a record says first, without script.
fn answer_of(bench: &Bench, record: &Path) -> String {
    let page = bench.path().join("page.html");
    bench.run(&["report", text(record), "--out", text(&page)]).expect(0);
    let page = fs::read_to_string(page).expect("a page");
    let main = page.split("<main").nth(1).and_then(|rest| rest.split("</main>").next());
    let answer = main.expect("a page has a main part").to_string();
    // A block load has neither orders, nor users, nor checks of a database.
    for foreign in ["new orders", "users", "consistency check"] {
        assert!(!answer.contains(foreign), "{foreign}: {answer}");
    }
    answer
}

#[test]
fn memory_is_not_called_storage() {
    let bench = Bench::new();
    let mounts = fs::read_to_string("/proc/mounts").expect("a table");
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        underlay_host::skip!("needs a writable /dev/shm");
    };
    if !mounts.lines().any(|line| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"])) {
        underlay_host::skip!("needs a tmpfs at /dev/shm");
    }
    let file = memory.path().join("data");
    fs::write(&file, vec![1; 16 << 20]).expect("16 MiB of memory");
    let record = bench.path().join("memory.sqlite");
    let arguments = ["4k-random-read", text(&file), "--duration", "1s", "--warm-up", "0s"];
    // Kernels before 6.6 take no direct I/O there.
    let arguments = [&arguments[..], &["--buffered", "--queue-depth", "1"]].concat();
    let page = io(&bench, &[&arguments[..], &["--record", text(&record)]].concat()).expect_ok();
    assert!(page.stdout.contains("in MEMORY: this does not measure storage"), "{}", page.stdout);
    let outcome = json(&io(&bench, &[&arguments[..], &["--json"]].concat()).expect_ok());
    assert_eq!(outcome["targets"][0]["in_memory"], true);
    assert!(answer_of(&bench, &record).contains("(memory, not storage)"));
}

#[test]
fn the_report_of_a_curve_is_about_its_maximum() {
    let (bench, disk) = (Bench::new(), disk());
    let record = bench.path().join("curve.sqlite");
    let arguments = [
        "4k-random-read",
        text(disk.path()),
        "--size",
        "32MiB",
        "--threads",
        "1",
        "--queue-depth",
        "2",
        "--duration",
        "1s",
        "--warm-up",
        "200ms",
        "--curve",
        "--record",
        text(&record),
        "--json",
    ];
    let outcome = json(&io(&bench, &arguments).expect_ok());
    let phases = outcome["phases"].as_array().expect("a list");
    assert_eq!(phases.len(), 13, "the maximum and 10 to 120 % of it");
    let answer = answer_of(&bench, &record);
    let said = answer.split(" I/Os per second with 2 requests in flight").next().expect("a text");
    let said: String = said.chars().rev().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    let said: f64 =
        said.chars().rev().filter(|c| *c != ',').collect::<String>().parse().expect("a number");
    let maximum = number(&phases[0]["result"]["iops"]);
    assert!((said / maximum - 1.0).abs() < 0.02, "{said} said, {maximum} measured");
}

#[test]
fn an_open_loop_keeps_its_rate_and_says_when_it_does_not() {
    let (bench, disk) = (Bench::new(), disk());
    let common =
        ["4k-random-read", text(disk.path()), "--size", "32MiB", "--duration", "2s", "--json"];
    let rate = ["--rate", "200", "--arrivals", "uniform"];
    let outcome = json(&io(&bench, &[&common[..], &rate].concat()).expect_ok());
    let result = &outcome["result"];
    assert!((number(&result["iops"]) - 200.0).abs() < 5.0, "{}", result["iops"]);
    assert_eq!(result["undelivered"], 0);
    assert_eq!(outcome["phases"][0]["offered_per_second"], 200.0);
    // More than anything delivers with one request in flight.
    let rate = ["--rate", "3000000", "--threads", "1", "--queue-depth", "1"];
    let ended = io(&bench, &[&common[..], &rate].concat());
    refused(&ended, 6, &["were never started", "lower --rate"]);
    let result = &json(&ended)["result"];
    assert!(number(&result["undelivered"]) > 1e6 && number(&result["oldest_undelivered_ns"]) > 1e9);
    let p99 = |kind: &str| number(&result["all"][kind]["p99"]);
    assert!(p99("response_ns") > 1e9, "waiting counts: {result}");
    assert!(p99("service_ns") < p99("response_ns") / 10.0, "{result}");
}

#[test]
fn what_would_harm_or_mislead_is_refused_and_nothing_is_touched() {
    let (bench, disk) = (Bench::new(), disk());
    let file = disk.path().join("precious");
    let content = vec![7; 16 << 20];
    fs::write(&file, &content).expect("a file");
    let run = |arguments: &[&str]| io(&bench, arguments);
    refused(&run(&["4k-random-write", text(&file)]), 2, &["would destroy", "--destroy"]);
    refused(&run(&["4k-random-read", text(&file), "--fill"]), 2, &["would destroy"]);
    refused(&run(&["4k-random-read", text(&file), "--precondition", "1"]), 2, &["would destroy"]);
    let other = ["4k-random-write", text(disk.path()), "--destroy", text(&file)];
    refused(&run(&other), 2, &["is not a target"]);
    refused(&run(&["4k-random-raed", text(&file)]), 2, &["did you mean `4k-random-read`?"]);
    refused(&run(&["sql", "/nowhere/at/all"]), 2, &["could not open", "give a folder"]);
    refused(&run(&["oracle", text(&file), "--read-percent", "50"]), 2, &["underlay show oracle"]);
    refused(&run(&["sql", text(&file), "--block-size", "1000B"]), 2, &["multiples of 512"]);
    let verified = ["hcibench-4k-write", text(disk.path()), "--verify"];
    refused(&run(&verified), 2, &["--duplicate-percent 0"]);
    refused(&run(&["4k-random-read", "/dev/null"]), 2, &["neither a regular file nor"]);
    assert!(fs::read(&file).expect("there") == content, "not a byte changed");
    assert_eq!(fs::read_dir(disk.path()).expect("a folder").count(), 1);

    let profile = bench.write(
        "mine.toml",
        "name = \"mine\"\n[[job]]\nthread = 4\n[[job.stream]]\nread-percent = 170\nsize = \"4 kilo\"\n",
    );
    let ended = run(&[text(&profile), text(disk.path())]);
    refused(
        &ended,
        2,
        &["mine.toml", "did you mean `threads`?", "read-percent", "size", "3 problems"],
    );

    let named = ["4k-random-write", text(&file), "--destroy", text(&file), "--duration", "1s"];
    run(&named).expect(0);
    assert!(fs::read(&file).expect("there") != content, "now it was allowed");
}

#[test]
fn user_profiles_run_as_they_are_written() {
    let (bench, disk) = (Bench::new(), disk());
    let shown = bench.run(&["show", "redo-log-and-data"]).expect(0);
    let profile = bench.write("mine.toml", &shown.replace("redo-log-and-data", "mine"));
    let arguments = [
        text(&profile),
        text(disk.path()),
        "--size",
        "64MiB",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--json",
    ];
    let outcome = json(&io(&bench, &arguments).expect_ok());
    assert_eq!(outcome["profile"]["name"], "mine");
    let kinds = outcome["result"]["kinds"].as_array().expect("a list");
    let of = |job: &str, operation: &str| {
        let kind = kinds.iter().find(|kind| kind["job"] == job && kind["operation"] == operation);
        number(&kind.unwrap_or_else(|| panic!("no {job} {operation}"))["completed"])
    };
    assert!(of("data", "read") > 0.0 && of("data", "write") > 0.0);
    // Every write of the log is followed by a flush; at the end one may be cut off.
    assert!((of("log", "write") - of("log", "flush")).abs() <= 1.0);
}

#[test]
fn an_interrupted_load_says_what_it_measured() {
    let (bench, disk) = (Bench::new(), disk());
    let arguments = [
        "sql",
        text(disk.path()),
        "--size",
        "64MiB",
        "--duration",
        "60s",
        "--warm-up",
        "0s",
        "--json",
    ];
    let running = Running::start(&bench, &arguments);
    wait_for("the file", || !is_empty(disk.path()));
    std::thread::sleep(Duration::from_secs(3));
    running.signal(libc::SIGINT);
    let ended = running.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let outcome = json(&ended);
    assert_eq!(outcome["interrupted"], true);
    let measured = number(&outcome["result"]["duration_ns"]);
    assert!((5e8..1e10).contains(&measured), "{measured}");
    assert!(number(&outcome["result"]["iops"]) > 0.0);
    assert!(is_empty(disk.path()));
}

#[test]
fn rounds_end_when_they_are_steady() {
    let (bench, disk) = (Bench::new(), disk());
    let arguments = [
        "4k-random-read",
        text(disk.path()),
        "--size",
        "32MiB",
        "--rate",
        "200",
        "--arrivals",
        "uniform",
        "--steady-state",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--rounds-max",
        "8",
        "--json",
    ];
    let outcome = json(&io(&bench, &arguments).expect_ok());
    assert_eq!(outcome["steady_state"]["reached"], true, "{}", outcome["steady_state"]);
    let rounds = outcome["phases"].as_array().expect("a list");
    assert!((5..=8).contains(&rounds.len()));
    assert_eq!(rounds.iter().filter(|round| round["counts"] == true).count(), 5);
    assert_eq!(outcome["result"]["duration_ns"], 5_000_000_000_u64);
}

#[test]
fn a_frozen_device_is_seen_by_every_request_that_was_due() {
    let Some((store, device)) = Store::with_device("flushed") else { return };
    let record = store.bench.path().join("frozen.sqlite");
    let arguments = [
        "4k-random-read",
        text(&device),
        "--rate",
        "500",
        "--duration",
        "10s",
        "--warm-up",
        "0s",
        "--record",
        text(&record),
        "--json",
    ];
    let running = Running::start(&store.bench, &arguments);
    std::thread::sleep(Duration::from_secs(3));
    store.volume("fault", &["stuck", "dc1500m-960"]).expect(0);
    let frozen = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    store.volume("fault", &["mend", "dc1500m-960"]).expect(0);
    let frozen = frozen.elapsed().as_secs_f64();
    let outcome = json(&running.ended().expect_ok());
    let response = &outcome["result"]["all"]["response_ns"];
    // One request in five was due while nothing moved, evenly spread: 5 % of those waited for 95 % of the time or
    // more, which is the 99th percentile of all.
    let p99 = number(&response["p99"]) / 1e9;
    assert!((0.85..1.05).contains(&(p99 / frozen)), "p99 {p99} s of {frozen} s");
    assert!(number(&response["max"]) / 1e9 > 0.95 * frozen);
    // A thousand were late. On a crowded host the last ones may be under way when time is over.
    assert!(number(&outcome["result"]["undelivered"]) < 10.0, "it caught up: {outcome}");
    assert_eq!(outcome["targets"][0]["evidence"], "emulated");
    // Seconds in which nothing came back are seconds of the record too.
    let shown = json(&store.bench.run(&["show", text(&record), "--json"]).expect_ok());
    let recorded = number(&shown["rungs"][0]["metrics"]["headline"]["value"]);
    let printed = number(&outcome["result"]["iops"]);
    assert!((recorded / printed - 1.0).abs() < 1e-9, "{recorded} recorded, {printed} printed");
}

#[test]
fn devices_that_hold_something_or_are_in_use_are_refused() {
    let Some((store, device)) = Store::with_device("flushed") else { return };
    let made = std::process::Command::new("mkfs.ext4").arg("-q").arg(&device).status();
    assert!(made.expect("mkfs.ext4").success());
    let write = |extra: &[&str]| {
        io(&store.bench, &[&["4k-random-write", text(&device), "--duration", "1s"], extra].concat())
    };
    refused(&write(&[]), 2, &["holds an ext2, ext3 or ext4 file system", "--destroy"]);
    let point = store.bench.path().join("mounted");
    fs::create_dir(&point).expect("a folder");
    let mount = |program: &str, arguments: &[&Path]| {
        std::process::Command::new(program).args(arguments).status().expect(program).success()
    };
    assert!(mount("mount", &[&device, &point]));
    let ended = write(&["--destroy", text(&device)]);
    assert!(mount("umount", &[&point]));
    refused(&ended, 2, &["is in use", "unmount"]);
    write(&["--destroy", text(&device)]).expect(0);
}
