//! `underlay io` as users meet it: what it delivers, what it refuses, what it notices, and that nothing is left behind.

mod common;

use common::{Bench, Ended};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A folder on a file system that takes direct I/O.
fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ended.stdout, ended.stderr))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("a folder").next().is_none()
}

fn io(bench: &Bench, arguments: &[&str]) -> Ended {
    bench.run(&[&["io"], arguments].concat())
}

#[track_caller]
fn refused(ended: &Ended, code: i32, said: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}\n{}", ended.stdout, ended.stderr);
    for said in said {
        assert!(ended.stderr.contains(said), "`{said}` is missing:\n{}", ended.stderr);
    }
}

/// A program that is ended with the test.
struct Running(Child);

impl Running {
    fn start(bench: &Bench, arguments: &[&str]) -> Running {
        let mut command = bench.underlay();
        command.arg("io").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().expect("the program starts"))
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and was not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    fn ended(mut self) -> Ended {
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.expect("piped").read_to_string(&mut text).expect("text");
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|s| s as &mut dyn std::io::Read));
        let stderr = read(self.0.stderr.as_mut().map(|s| s as &mut dyn std::io::Read));
        let code = self.0.wait().expect("our child").code();
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !there() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

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
    refused(&run(&["4k-random-write", text(&file)]), 2, &["would be destroyed", "--destroy"]);
    refused(&run(&["4k-random-read", text(&file), "--fill"]), 2, &["would be destroyed"]);
    refused(&run(&["4k-random-read", text(&file), "--precondition", "1"]), 2, &["destroyed"]);
    let other = ["4k-random-write", text(disk.path()), "--destroy", text(&file)];
    refused(&run(&other), 2, &["is not a target"]);
    refused(&run(&["4k-random-raed", text(&file)]), 2, &["did you mean `4k-random-read`?"]);
    refused(&run(&["sql", "/nowhere/at/all"]), 2, &["could not open", "name a folder"]);
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
    refused(&ended, 5, &["1 blocks do not hold"]);
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

/// Emulated volumes, stopped at the end.
struct Store {
    bench: Bench,
    directory: PathBuf,
}

impl Store {
    /// A bare block device of 64 MiB on a device with that durability; none where that cannot be.
    fn with_device(durability: &str) -> Option<(Store, PathBuf)> {
        // SAFETY: geteuid has no preconditions.
        let root = unsafe { libc::geteuid() } == 0;
        if !root || !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skip: block devices need root, /dev/fuse and /dev/loop-control");
            return None;
        }
        let bench = Bench::new();
        let directory = bench.path().canonicalize().expect("a folder").join("store");
        let store = Store { bench, directory };
        let created = store.volume(
            "create",
            &[
                "data",
                "--size",
                "64MiB",
                "--device",
                "dc1500m-960",
                "--durability",
                durability,
                "--json",
            ],
        );
        let volume: Value = serde_json::from_str(&created.expect(0)).expect("JSON");
        let device = PathBuf::from(volume["link"].as_str().expect("a device"));
        Some((store, device))
    }

    fn volume(&self, command: &str, arguments: &[&str]) -> Ended {
        self.bench.run(&[&["volume", command, text(&self.directory)], arguments].concat())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.volume("stop", &["--force"]);
        self.bench.run(&["clean"]);
    }
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
    refused(&ended, 5, &["do not hold what they must"]);
    assert!(ended.stdout.contains("LOST"), "{}", ended.stdout);
}

#[test]
fn a_frozen_device_is_seen_by_every_request_that_was_due() {
    let Some((store, device)) = Store::with_device("flushed") else { return };
    let arguments = [
        "4k-random-read",
        text(&device),
        "--rate",
        "500",
        "--duration",
        "10s",
        "--warm-up",
        "0s",
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
    assert_eq!(outcome["result"]["undelivered"], 0, "it caught up");
    assert_eq!(outcome["targets"][0]["evidence"], "emulated");
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
