//! Studies whose workload is a block load, end to end: emulated devices, a design without delays, a real folder, an interruption,
//! and the same study in virtual time. No database server is involved.

use crate::common::{Bench, Ended};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use underlay_record::conventions::{document, finding};
use underlay_record::{Record, Run};

/// Two drives, each so small a part of itself that this host is far faster.
const DEVICES: &str = r#"
[[design.datastore.emulated.devices]]
name = "fast"
profile = "dc1500m-960"
overrides = { divisor = 128 }

[[design.datastore.emulated.devices]]
name = "slow"
profile = "5200eco-1920"
overrides = { divisor = 512 }
"#;

/// Says why emulated volumes cannot be made here.
fn cannot_emulate() -> Option<&'static str> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return Some("needs root: volumes");
    }
    let is_there = |path: &str| Path::new(path).exists();
    (!is_there("/dev/fuse") || !is_there("/dev/loop-control"))
        .then_some("needs /dev/fuse and /dev/loop-control")
}

fn study(designs: &str, load: &str, procedure: &str) -> String {
    format!(
        "name = \"blocks\"\nquestion = \"Which is faster?\"\n{designs}\n[workload.block]\n\
         profile = \"4k-random-70-30\"\nworking-set = \"16MiB\"\n{load}\n[procedure]\nsettle = \"0s\"\n\
         warm-up = \"0s\"\nramp-up = \"1s\"\nmeasure = \"5s\"\nrepeats = 1\n{procedure}\n"
    )
}

fn run(bench: &Bench, text: &str) -> Value {
    bench.write("blocks.toml", text);
    let arguments = ["run", "blocks.toml", "--out", "blocks.sqlite", "--no-progress", "--json"];
    let analysis = bench.run(&arguments).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    serde_json::from_str(&analysis).expect("JSON on standard output")
}

fn headline(analysis: &Value, rung: usize) -> f64 {
    analysis["rungs"][rung]["metrics"]["headline"]["value"].as_f64().expect("a rate")
}

/// Every run compared all its blocks.
fn assert_compared(analysis: &Value, runs: usize) {
    let checks = analysis["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), runs, "{checks:#?}");
    assert!(checks.iter().all(|it| it["id"] == "blocks" && it["outcome"] == "ok"), "{checks:#?}");
}

#[test]
fn the_slower_of_two_devices_is_found_slower() {
    if let Some(reason) = cannot_emulate() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::new();
    let design = |name: &str, data: &str, log: &str| {
        format!(
            "[[design]]\nname = \"{name}\"\nvolumes.data.device = \"{data}\"\nvolumes.wal.device = \"{log}\"\n{DEVICES}"
        )
    };
    let designs = format!(
        "[volumes]\ndata = {{ capacity = \"128MiB\" }}\nwal = {{ capacity = \"128MiB\" }}\n{}{}",
        design("pair", "fast", "slow"),
        design("slow", "slow", "slow")
    );
    let text = study(&designs, "threads = 2\nqueue-depth = 2", "null-twin = false");
    let analysis = run(&bench, &text);
    assert_eq!(analysis["rungs"].as_array().map(Vec::len), Some(2));
    assert_eq!(analysis["rungs"][0]["users"], 4, "requests in flight per volume");
    let (pair, slow) = (headline(&analysis, 0), headline(&analysis, 1));
    assert!(pair > 1.5 * slow, "{pair} and {slow} IOPS");
    assert_compared(&analysis, 2);
    // Both volumes are loaded, and the one on the slow device waits longer.
    let volumes = analysis["rungs"][0]["volumes"].as_array().expect("volumes");
    let latency = |name: &str| {
        let row = volumes.iter().find(|row| row["volume"] == name).expect("a volume");
        row["metrics"]["datastore_read_mean_ns"]["value"].as_f64().expect("a latency")
    };
    assert!(latency("wal") > 1.5 * latency("data"), "{volumes:#?}");
    let types: Vec<&str> = analysis["rungs"][0]["latencies"]
        .as_array()
        .expect("types")
        .iter()
        .filter_map(|row| row["transaction"].as_str())
        .collect();
    assert_eq!(types, ["read", "write", "reads and writes"]);
    let bytes = analysis["rungs"][0]["metrics"]["bytes_per_second"]["value"].as_f64();
    assert!(bytes.is_some_and(|bytes| (bytes / 4096.0 / pair - 1.0).abs() < 0.05), "{bytes:?}");
    let validity = &analysis["validity"][0];
    assert!(validity["late_share"].is_number() && validity["text"].is_string(), "{validity:#}");
    assert!(analysis["bottlenecks"].as_array().is_some_and(Vec::is_empty));
    // The same study in virtual time has the same rows, and a like ratio.
    let arguments =
        ["run", "blocks.toml", "--simulate", "--out", "virtual.sqlite", "--no-progress", "--json"];
    let json = bench.run(&arguments).expect(0);
    let simulated: Value = serde_json::from_str(&json).expect("JSON on standard output");
    assert_eq!(simulated["study"]["evidence"], "simulated");
    assert_eq!(simulated["rungs"][0]["users"], 4);
    let ratio = headline(&simulated, 0) / headline(&simulated, 1);
    assert!((0.5..2.0).contains(&(ratio / (pair / slow))), "{ratio} and {pair} over {slow}");
    let rows = simulated["rungs"][0]["latencies"].as_array().expect("types");
    let simulated_types: Vec<_> =
        rows.iter().filter_map(|row| row["transaction"].as_str()).collect();
    assert_eq!(simulated_types, types);
    // A record like any other.
    let shown = bench.run(&["show", "blocks.sqlite"]).expect(0);
    assert!(
        shown.contains("IOPS") && shown.contains("in flight") && !shown.contains("user"),
        "{shown}"
    );
    let plan = bench.run(&["check", "blocks.toml"]).expect(0);
    assert!(plan.contains("block load 4k-random-70-30") && !plan.contains("engine"), "{plan}");
}

/// A drive in its own time takes eight times as long on this host and does what the model says of it at any pace.
#[test]
fn a_dilated_load_is_recorded_in_design_time() {
    if let Some(reason) = cannot_emulate() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::new();
    let designs =
        "[volumes.data]\ncapacity = \"128MiB\"\n[[design]]\nuse = \"hdd\"\nname = \"disk\"\n";
    let load = "threads = 1\nqueue-depth = 1\nverify = false";
    let text = study(designs, load, "null-twin = false");
    let plain = headline(&run(&bench, &text), 0);
    let text = text
        .replace("measure = \"5s\"", "measure = \"1500ms\"")
        .replace("ramp-up = \"1s\"", "ramp-up = \"200ms\"");
    std::fs::remove_file(bench.path().join("blocks.sqlite")).expect("a record");
    let dilated = run(&bench, &format!("{text}time-dilation = 8\n"));
    assert_eq!(dilated["study"]["time_dilation"], 8, "{:#}", dilated["study"]);
    // Random requests to one arm: about 80 per second, of which 100 were seen.
    let ratio = headline(&dilated, 0) / plain;
    assert!((0.75..1.33).contains(&ratio), "{ratio} of {plain} IOPS");
    let p95 = &dilated["rungs"][0]["latencies"][0]["p95_ns"];
    assert!(p95.is_null() || p95.as_f64().is_none_or(|p95| p95 < 100e6), "{p95}");
}

/// How many runs of a record have opened their datastore.
fn runs_prepared(record: &Path) -> usize {
    let Ok(record) = Record::open_read_only(record) else { return 0 };
    let is_prepared = |run: &Run| {
        let phases = record.phases(Some(run.id));
        phases.is_ok_and(|phases| phases.iter().any(|phase| phase.end.is_some()))
    };
    record.runs().map_or(0, |runs| runs.iter().filter(|run| is_prepared(run)).count())
}

/// Executes `blocks.toml` with time dilation `auto` until so many runs have opened their datastore.
fn interrupted_after(bench: &Bench, runs: usize) {
    let arguments = ["run", "blocks.toml", "--out", "blocks.sqlite", "--no-progress"];
    let mut child = bench
        .underlay()
        .args(arguments)
        .args(["--time-dilation", "auto"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let record = bench.path().join("blocks.sqlite");
    let until = Instant::now() + Duration::from_secs(60);
    while runs_prepared(&record) < runs
        && Instant::now() < until
        && child.try_wait().expect("a child").is_none()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    if child.try_wait().expect("a child").is_none() {
        // SAFETY: the process is a child that has not been waited for.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    }
    let ended = Ended::of(child.wait_with_output().expect("a child"));
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(runs_prepared(&record), runs, "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
}

/// The pilot decides for all designs before the first run. A resumed execution keeps the factor.
/// No window is measured: its length would depend on the factor.
#[test]
fn the_fastest_design_decides_the_time_dilation_once() {
    if let Some(reason) = cannot_emulate() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::new();
    let designs = "[volumes.data]\ncapacity = \"128MiB\"\n\
                   [[design]]\nuse = \"kingston-nvme\"\nname = \"fast\"\n\
                   [[design]]\nuse = \"hdd\"\nname = \"slow\"\n";
    let load = "threads = 1\nqueue-depth = 1\nverify = false";
    bench.write("blocks.toml", &study(designs, load, "null-twin = false"));
    let open = || Record::open_read_only(&bench.path().join("blocks.sqlite")).expect("a record");
    let decision = || {
        let decided = open().document(None, document::TIME_DILATION).expect("it is readable");
        decided.expect("what decided")
    };

    interrupted_after(&bench, 1);
    let decided = decision();
    assert_eq!(decided["asked"], "auto");
    let pilot = decided["pilot"].as_array().expect("a row per design");
    let names: Vec<&str> = pilot.iter().filter_map(|row| row["design"].as_str()).collect();
    assert_eq!(names, ["fast", "slow"]);
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    for row in pilot {
        assert!(number(row, "host_ns") > 0 && number(row, "modelled_ns") > 0, "{decided:#}");
    }
    let factors: Vec<u64> = pilot.iter().map(|row| number(row, "factor")).collect();
    let factor = number(&decided, "factor");
    assert_eq!(Some(factor), factors.iter().copied().max(), "{decided:#}");
    // A mean request takes the SSD about 75 us and the disk several ms. A fifth of that is allowed.
    assert!(factors[0] >= 2 && factors[1] == 1, "{decided:#}");

    interrupted_after(&bench, 2);
    assert_eq!(decision(), decided, "a resumed execution keeps its factor");
    let findings = open().findings().expect("they are readable");
    let found: Vec<&str> = findings
        .iter()
        .filter(|found| found.code == finding::TIME_DILATION)
        .map(|found| found.text.as_str())
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!("time dilation {factor}: ")), "{found:?}");
}

#[test]
fn a_design_without_delays_is_this_host() {
    if let Some(reason) = cannot_emulate() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::new();
    let designs = "[volumes.data]\ncapacity = \"128MiB\"\n[[design]]\nuse = \"null\"\nname = \"none\"\n\
                   [[design]]\nuse = \"hdd\"\nname = \"disk\"\n";
    let analysis = run(&bench, &study(designs, "threads = 1\nqueue-depth = 1", ""));
    let validity = analysis["validity"].as_array().expect("rows");
    let of = |design: u64| validity.iter().find(|row| row["design"] == design).expect("a row");
    assert_eq!(of(0)["outcome"], "host-limited");
    assert_eq!(of(0)["no_device"], true);
    // The twin of the disk is the same load without its delays.
    let disk = of(1);
    assert_eq!(disk["ceiling"]["source"], "null-twin", "{disk:#}");
    assert!(disk["ceiling"]["reached"].as_f64().is_some_and(|reached| reached < 0.5), "{disk:#}");
    assert_ne!(disk["outcome"], "host-limited");
    let answer = &analysis["verdict"];
    assert_eq!(answer["answer"], "host-limited", "{answer:#}");
    assert_compared(&analysis, 2);
}

/// Measured on a folder of this host, which needs no rights.
#[test]
fn a_curve_on_a_real_folder_has_its_points_and_is_resumed() {
    let bench = Bench::new();
    let folder = bench.path().join("store");
    std::fs::create_dir(&folder).expect("a folder");
    if on_memory(&folder) {
        eprintln!("skip: {} has no direct I/O", folder.display());
        return;
    }
    let designs = format!(
        "[volumes.data]\ncapacity = \"128MiB\"\n[[design]]\nname = \"here\"\n[design.datastore.path]\ndirectory = \"{}\"\n",
        folder.display()
    );
    let load = "threads = 2\ncurve = [40]";
    let text = study(&designs, load, "").replace("ramp-up = \"1s\"", "ramp-up = \"0s\"");
    bench.write("blocks.toml", &text);
    let arguments = ["run", "blocks.toml", "--out", "blocks.sqlite", "--no-progress"];
    let mut child = bench
        .underlay()
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // The load is under way when its record is there.
    let until = Instant::now() + Duration::from_secs(20);
    while !bench.path().join("blocks.sqlite").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    // SAFETY: the process is a child that has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().expect("a child").code(), Some(130));
    let left = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(left, 0, "something is left in the folder");
    let analysis = run(&bench, &text);
    let counted =
        analysis["runs"].as_array().expect("runs").iter().filter(|it| it["counted"] == true);
    assert_eq!(counted.count(), 1);
    assert_eq!(analysis["study"]["sessions"], 2, "resumed");
    assert_compared(&analysis, 1);
    let curve = &analysis["curves"][0];
    let points = curve["points"].as_array().expect("points");
    assert_eq!(points.len(), 1);
    let done = points[0]["done_per_second"]["value"].as_f64().expect("a rate");
    let most = headline(&analysis, 0);
    assert!(done < 0.6 * most, "40 % of {most} are not {done}");
    assert!(points[0]["mean_ns"]["value"].is_number() && curve["found"].is_string());
    assert_eq!(analysis["study"]["evidence"], "measured");
    let report = std::fs::read_to_string(bench.path().join("blocks.html")).expect("a report");
    assert!(report.contains("rate_at_limit"), "the page has the curve");
}

fn on_memory(folder: &Path) -> bool {
    let output = std::process::Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("tmpfs"))
}

#[test]
fn a_curve_in_virtual_time_has_the_record_of_a_real_one() {
    let bench = Bench::new();
    let simulate = |out: &str| -> Value {
        let study = ["run", "storagereview/sr3", "--laptop", "--repeats", "1", "--out", out];
        let simulated = ["--simulate", "--no-progress", "--json"];
        let json = bench.run(&[&study[..], &simulated].concat()).expect(0);
        serde_json::from_str(&json).expect("JSON on standard output")
    };
    let analysis = simulate("curve.sqlite");
    assert_eq!(analysis["study"]["evidence"], "simulated");
    let volume = &analysis["rungs"][0]["volumes"][0];
    assert!(volume["metrics"]["read_latency_ns"]["value"].is_number(), "{volume:#}");
    let curve = &analysis["curves"][0];
    let points = curve["points"].as_array().expect("points");
    let field = |at: usize, name: &str| {
        let value = &points[at][name];
        value.as_f64().or(value["value"].as_f64()).expect("a number")
    };
    assert_eq!(points.len(), 5);
    let kept = (0..3).map(|at| field(at, "done_per_second") / field(at, "offered_per_second"));
    let kept: Vec<f64> = kept.collect();
    assert!(kept.iter().all(|share| (share - 1.0).abs() < 0.02), "{curve:#}");
    assert!(field(4, "done_per_second") < 0.9 * field(4, "offered_per_second"), "{curve:#}");
    let latencies: Vec<f64> = (0..3).map(|at| field(at, "mean_ns")).collect();
    assert!(latencies.is_sorted() && latencies[0] < 1e6, "{latencies:?}");
    let reasons = analysis["verdict"]["support"].to_string();
    assert!(reasons.contains("storage stack"), "{reasons}");
    let report = std::fs::read_to_string(bench.path().join("curve.html")).expect("a report");
    assert!(report.contains("rate_at_limit"), "the page has the curve");
    // The same again, whatever the processors do.
    let again = simulate("again.sqlite");
    assert_eq!(again["rungs"], analysis["rungs"]);
    assert_eq!(again["curves"], analysis["curves"]);
    assert_eq!(bench.left_on_host(), Vec::<String>::new());
}

#[test]
fn a_block_study_without_a_model_is_refused_with_every_reason() {
    let bench = Bench::new();
    let designs = "[volumes.data]\ncapacity = \"128MiB\"\n[[design]]\nuse = \"null\"\nname = \"instant\"\n\
                   [[design]]\nname = \"here\"\n[design.datastore.path]\ndirectory = \"/var/tmp\"\n";
    bench.write("blocks.toml", &study(designs, "threads = 1", ""));
    let ended = bench.run(&["run", "blocks.toml", "--simulate", "--out", "no.sqlite"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for reason in ["is real storage, which has no model", "devices without delay"] {
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
    assert!(!bench.path().join("no.sqlite").exists());
}

#[test]
fn the_same_study_is_simulated_at_its_full_size() {
    let bench = Bench::new();
    let arguments = ["simulate", "--study", "kingston/kh1", "--requests", "20000", "--json"];
    let page: Value = serde_json::from_str(&bench.run(&arguments).expect(0)).expect("JSON");
    assert_eq!((&page["evidence"], &page["study"]), (&"simulated".into(), &"kingston-kh1".into()));
    let simulations = page["simulations"].as_array().expect("one per design");
    assert_eq!(simulations.len(), 2);
    let setup = &simulations[0]["simulation"]["setup"];
    assert_eq!((&setup["volumes"], &setup["queue_depth"]), (&32.into(), &4.into()));
    let text = bench.run(&arguments[..5]).expect(0);
    assert!(text.contains("sata over nvme with 1 thread per volume"), "{text}");
    let refused = bench.run(&["simulate", "--study", "quickstart"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("only block loads are simulated"), "{}", refused.stderr);
}
